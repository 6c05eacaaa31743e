//! The end of a file of an archive.
//!
//! The library reads a chunk into memory of the last chunk's size, and does not look where the file ended: of a file that was cut it
//! takes what an earlier reader left in that memory.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Kinds of records that have no length. The last chunk ends with both, the end of the file first.
const END_OF_CHUNK: u8 = 1;
const END_OF_FILE: u8 = 2;
const CHUNK_HEADER: u8 = 3;
/// Bytes of a header after its kind: the order of bytes, and the numbers of the chunk's first and last event.
const HEADER_BYTES: u64 = 1 + 2 * 8;
/// Kind of the record of a time, and its bytes, in files of events.
const TIMESTAMP: u8 = 5;
const TIMESTAMP_BYTES: u64 = 8;
/// Length that stands for one of 64 bits, which follows.
const IS_LONG: u8 = 0xff;

/// Returns whether an anchor ends as anchors do. Bytes of zero may follow.
pub(super) fn is_complete_anchor(path: &Path) -> io::Result<bool> {
    let bytes = fs::read(path)?;
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    Ok(bytes[..end].ends_with(&[END_OF_FILE, END_OF_CHUNK]))
}

/// Kind of a file, by its records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Definitions,
    Events,
}

/// Returns whether the records of a file end with it, given the bytes of a chunk. A file that does not exist has nothing to end. Reads one
/// chunk at most.
pub(super) fn is_complete(path: &Path, kind: Kind, chunk_bytes: u64) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        opened => opened?,
    };
    let bytes = file.metadata()?.len();
    let Some(start) = bytes.saturating_sub(1).checked_div(chunk_bytes).map(|chunks| chunks * chunk_bytes)
    else {
        return Ok(false);
    };
    file.seek(SeekFrom::Start(start))?;
    let mut chunk = Vec::new();
    file.read_to_end(&mut chunk)?;
    Ok(ends(&chunk, kind).is_some())
}

/// Goes over the records of a chunk; `None` if they do not end with it, and the file.
fn ends(chunk: &[u8], kind: Kind) -> Option<()> {
    let is_big = *chunk.get(1)? == b'#';
    let mut rest = chunk;
    loop {
        let (&record, after) = rest.split_first()?;
        rest = after;
        let bytes = match record {
            END_OF_FILE => return (rest == [END_OF_CHUNK]).then_some(()),
            END_OF_CHUNK => return None,
            CHUNK_HEADER => HEADER_BYTES,
            TIMESTAMP if kind == Kind::Events => TIMESTAMP_BYTES,
            _ => {
                let (&length, after) = rest.split_first()?;
                rest = after;
                if length == IS_LONG {
                    let (long, after) = rest.split_first_chunk()?;
                    rest = after;
                    if is_big { u64::from_be_bytes(*long) } else { u64::from_le_bytes(*long) }
                } else {
                    length.into()
                }
            }
        };
        rest = rest.get(usize::try_from(bytes).ok()?..)?;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Kind, is_complete};
    use crate::writer::Archive;

    #[test]
    fn files_of_several_chunks_end_in_their_last() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut archive = Archive::create(directory.path(), "run").expect("it is created");
        archive.begin_location(0).expect("it begins");
        for time in 0..100_000 {
            archive.enter(2 * time, 0).expect("it is written");
            archive.leave(2 * time + 1, 0).expect("it is written");
        }
        archive.end_location().expect("it ends");
        drop(archive);
        let path = directory.path().join("run/0.evt");
        let bytes = fs::read(&path).expect("the file is there");
        let chunk_bytes = 1 << 20;
        assert!(bytes.len() > 2 * chunk_bytes, "{} bytes", bytes.len());
        let check = || is_complete(&path, Kind::Events, chunk_bytes as u64).expect("it can be read");
        assert!(check());
        for end in
            [bytes.len() - 1, bytes.len() - 100, 2 * chunk_bytes + 1, 2 * chunk_bytes, chunk_bytes, 1, 0]
        {
            fs::write(&path, &bytes[..end]).expect("it is written");
            assert!(!check(), "{end} bytes");
        }
        fs::remove_file(&path).expect("it is there");
        assert!(check(), "a file that is missing is left to the library");
    }
}
