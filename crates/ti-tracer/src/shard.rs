//! The file of one process.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{Ordering, compiler_fence};

use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{FallocateFlags, fallocate};

/// Bytes of a window: a multiple of every page size in use.
const WINDOW: u64 = 1 << 20;

/// What stands in the first line of a shard.
#[derive(Clone, Debug, PartialEq)]
pub struct Header<'a> {
    /// Names the run: equal in all its shards.
    pub job: &'a str,
    /// Processes of the run.
    pub world: u32,
    /// The process.
    pub rank: u32,
    /// What is counted: `instructions` or `cpu-time`.
    pub counter: &'static str,
    /// Flops per second of processor time; 0 where instructions are counted.
    pub rate: f64,
}

impl fmt::Display for Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, world, rank, counter, rate } = self;
        write!(
            f,
            "# pdes-replay shard version=1 job={job} world={world} rank={rank} counter={counter} rate={rate}"
        )
    }
}

/// A file that grows by lines, through a window into it that moves along.
///
/// What is behind the last line is zero, until [`finish`](Self::finish) cuts it off.
#[derive(Debug)]
pub struct ShardFile {
    file: File,
    window: MmapMut,
    /// Where the window begins in the file.
    start: u64,
    /// Bytes of lines in the window.
    used: usize,
    /// Why nothing is written any more.
    failed: Option<io::Error>,
}

impl ShardFile {
    /// Creates an empty file, which must not be there.
    ///
    /// # Errors
    /// Where it cannot be created, reserved or mapped.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let window = map(&file, 0, WINDOW)?;
        Ok(Self { file, window, start: 0, used: 0, failed: None })
    }

    /// Appends a line, without its end, and returns where it begins in the file; `None` where it could not be written.
    pub fn append(&mut self, line: &str) -> Option<u64> {
        let len = line.len() + 1;
        if self.used + len > self.window.len() {
            self.move_on(len);
        }
        if self.failed.is_some() {
            return None;
        }
        let (begin, end) = (self.used, self.used + line.len());
        self.window[begin..end].copy_from_slice(line.as_bytes());
        // A process that is killed leaves what it has stored so far: the line counts once its end is there.
        compiler_fence(Ordering::Release);
        self.window[end] = b'\n';
        self.used += len;
        Some(self.start + begin as u64)
    }

    /// Writes over a part of what was appended.
    pub fn patch(&mut self, offset: u64, text: &str) {
        match offset.checked_sub(self.start) {
            Some(begin) => {
                let begin = begin as usize;
                self.window[begin..begin + text.len()].copy_from_slice(text.as_bytes());
            }
            // Mappings and writes of one file see each other.
            None => {
                if let Err(error) = self.file.write_all_at(text.as_bytes(), offset) {
                    self.failed.get_or_insert(error);
                }
            }
        }
    }

    /// Cuts off what is behind the last line.
    ///
    /// # Errors
    /// Where the file could not be written at some time.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.set_len(self.start + self.used as u64)?;
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Returns why nothing is written any more.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// Moves the window to where the next line of this length begins.
    #[cold]
    fn move_on(&mut self, len: usize) {
        if self.failed.is_some() {
            return;
        }
        let next = self.start + self.used as u64;
        // A window begins at a page.
        let start = next - next % page();
        let need = (next - start) + len as u64;
        match map(&self.file, start, need.next_multiple_of(WINDOW)) {
            Ok(window) => (self.window, self.start, self.used) = (window, start, (next - start) as usize),
            Err(error) => self.failed = Some(error),
        }
    }
}

fn page() -> u64 {
    rustix::param::page_size() as u64
}

/// Reserves a part of the file, so that the process is not killed for a full drive, and maps it.
#[expect(unsafe_code, reason = "files are mapped here only")]
fn map(file: &File, start: u64, len: u64) -> io::Result<MmapMut> {
    match fallocate(file, FallocateFlags::empty(), start, len) {
        // Some file systems cannot reserve.
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(start + len)?,
        result => result?,
    }
    // SAFETY: the file is new and belongs to this process; whoever cuts it off meanwhile ends the process, no more.
    unsafe { MmapOptions::new().offset(start).len(len as usize).map_mut(file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_move_along_and_lines_stay_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shard");
        let mut shard = ShardFile::create(&path).unwrap();
        let lines: Vec<String> = (0..40_000)
            .map(|line| format!("{line} {}", "x".repeat(line % 97)))
            .chain(["y".repeat(3 << 20)])
            .collect();
        let offsets: Vec<u64> = lines.iter().map(|line| shard.append(line).unwrap()).collect();
        // Killed here, the file would have these lines and zeros.
        let text = std::fs::read(&path).unwrap();
        let end = text.iter().rposition(|byte| *byte != 0).unwrap();
        assert!(text[..end] == lines.join("\n").as_bytes()[..end]);
        for index in [0, 20_000, 40_000] {
            shard.patch(offsets[index], "#");
        }
        shard.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), lines.len());
        for (index, (found, line)) in text.lines().zip(&lines).enumerate() {
            let first = if [0, 20_000, 40_000].contains(&index) { "#" } else { &line[..1] };
            assert_eq!((&found[..1], &found[1..]), (first, &line[1..]));
        }
    }

    #[test]
    fn a_file_that_is_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shard");
        std::fs::write(&path, "mine").unwrap();
        assert_eq!(ShardFile::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }
}
