//! Shard file of one process, written through a memory mapping.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{Ordering, compiler_fence};

use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{FallocateFlags, fallocate};
use ti_shard::{COMPLETE_MARK, Header, ProcessState, UNIT};

/// Size of the window \[B\]: a multiple of every page size in use.
const WINDOW: u64 = 1 << 20;

/// A shard file that grows by records, through a sliding window into the file.
///
/// The file is zero behind the last record, until [`finish`](Self::finish) truncates it.
#[derive(Debug)]
pub struct ShardFile {
    file: File,
    /// The beginning of the file, which has the state of the process; it stays mapped.
    head: MmapMut,
    /// Offset of the state.
    state: usize,
    window: MmapMut,
    /// Offset of the window in the file.
    start: u64,
    /// Number of bytes of records in the window.
    used: usize,
    /// True if an announced record may be behind the last one.
    is_announced: bool,
    /// First error, after which nothing is written.
    failed: Option<io::Error>,
}

impl ShardFile {
    /// Creates a file with this header; the file must not exist.
    ///
    /// # Errors
    /// If it cannot be created, reserved or mapped.
    pub fn create(path: &Path, header: &Header<'_>) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let window = map(&file, 0, WINDOW)?;
        let header = header.to_bytes();
        let head = map(&file, 0, header.len() as u64)?;
        let state = header.len() - ProcessState::BYTES;
        let mut shard =
            Self { file, head, state, window, start: 0, used: 0, is_announced: false, failed: None };
        shard.used = header.len();
        shard.window[..header.len()].copy_from_slice(&header);
        Ok(shard)
    }

    /// Appends a record: its first unit, and further whole units. Returns its offset in the file; `None` if it could not be
    /// written.
    #[inline]
    pub fn append(&mut self, [head, amount]: [u64; 2], rest: &[u8]) -> Option<u64> {
        let len = UNIT + rest.len();
        if self.used + len > self.window.len() {
            self.move_window(len);
        }
        if self.failed.is_some() {
            return None;
        }
        let (begin, body) = (self.used, self.used + UNIT);
        self.window[body..begin + len].copy_from_slice(rest);
        self.window[begin + 8..body].copy_from_slice(&amount.to_le_bytes());
        // A killed process leaves what it has stored so far: storing the first word last commits the record.
        compiler_fence(Ordering::Release);
        self.window[begin..begin + 8].copy_from_slice(&head.to_le_bytes());
        self.used += len;
        Some(self.start + begin as u64)
    }

    /// Overwrites words of the state of the process.
    #[inline]
    pub fn set_state(&mut self, first: usize, words: &[u64]) {
        let begin = self.state + first * 8;
        for (bytes, word) in self.head[begin..].chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Writes the record of an action that has begun, which the next record overwrites.
    #[inline]
    pub fn announce(&mut self, words: [u64; 2]) {
        if self.append(words, &[]).is_some() {
            self.used -= UNIT;
            self.is_announced = true;
        }
    }

    /// Removes the record of an action that has begun, unless another record has overwritten it.
    #[inline]
    pub fn retract(&mut self) {
        if std::mem::take(&mut self.is_announced) && self.used + UNIT <= self.window.len() {
            self.window[self.used..self.used + UNIT].fill(0);
        }
    }

    /// Overwrites a word of an appended record.
    pub fn patch(&mut self, offset: u64, word: u64) {
        let bytes = word.to_le_bytes();
        match offset.checked_sub(self.start) {
            Some(begin) => {
                let begin = begin as usize;
                self.window[begin..begin + bytes.len()].copy_from_slice(&bytes);
            }
            // Behind the window: a write to the file is coherent with its mappings.
            None => {
                if let Err(error) = self.file.write_all_at(&bytes, offset) {
                    self.failed.get_or_insert(error);
                }
            }
        }
    }

    /// Stops writing after an error.
    #[cold]
    pub(crate) fn fail(&mut self, error: io::Error) {
        self.failed.get_or_insert(error);
    }

    /// Appends the mark of completeness, and truncates the file after it.
    ///
    /// # Errors
    /// If a write to the file has failed.
    pub fn finish(mut self) -> io::Result<()> {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| COMPLETE_MARK[at + byte]));
        self.append([word(0), word(8)], &[]);
        self.file.set_len(self.start + self.used as u64)?;
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Moves the window to the next record, of this length.
    #[cold]
    fn move_window(&mut self, len: usize) {
        if self.failed.is_some() {
            return;
        }
        let next = self.start + self.used as u64;
        // A mapping begins at a page.
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

/// Reserves a part of the file, so that a full disk does not kill the process (`SIGBUS`), and maps it.
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

    const HEADER: Header<'static> =
        Header { job: "test", world: 1, rank: 0, counter: "cpu-time", rate: 1e9, library: "" };

    #[test]
    fn windows_move_along_and_records_stay_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shard");
        let mut shard = ShardFile::create(&path, &HEADER).unwrap();
        let rests = (0..40_000_usize).map(|record| vec![record as u8 | 1; record % 7 * UNIT]);
        let rests: Vec<Vec<u8>> = rests.chain([vec![9; 3 << 20]]).collect();
        let offsets: Vec<u64> =
            (1..).zip(&rests).map(|(number, rest)| shard.append([number, !number], rest).unwrap()).collect();
        let expect = |bytes: &[u8], patched: &[usize]| {
            for ((number, rest), offset) in (1_u64..).zip(&rests).zip(&offsets) {
                let (first, body) = bytes[*offset as usize..].split_at(UNIT);
                let amount = if patched.contains(&(number as usize - 1)) { 77 } else { !number };
                assert_eq!(first, [number.to_le_bytes(), amount.to_le_bytes()].concat());
                assert!(body.starts_with(rest), "record {number}");
            }
        };
        // If the process were killed here, the file would have these records and zeros.
        let bytes = std::fs::read(&path).unwrap();
        expect(&bytes, &[]);
        let end = *offsets.last().unwrap() as usize + UNIT + (3 << 20);
        assert!(bytes[end..].iter().all(|byte| *byte == 0));
        for index in [0, 20_000, 40_000] {
            shard.patch(offsets[index] + 8, 77);
        }
        shard.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        expect(&bytes, &[0, 20_000, 40_000]);
        assert_eq!(bytes[end..], COMPLETE_MARK);
    }

    #[test]
    fn a_file_that_is_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shard");
        std::fs::write(&path, "mine").unwrap();
        assert_eq!(ShardFile::create(&path, &HEADER).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }
}
