//! Byte streams of trace files: plain, decompressed, or converted from the records of a tracer's shard.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use ti_shard::TextReader;

use crate::error::TraceError;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// A stream of text with its name for error messages.
pub(crate) struct Source<'a> {
    file: PathBuf,
    reader: Box<dyn Read + 'a>,
    compression: Option<&'static str>,
}

impl<'a> Source<'a> {
    /// Opens a file; detects compression, or a shard, by its first bytes.
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        let (reader, compression) =
            open(path).map_err(|source| TraceError::Io { file: path.to_path_buf(), source })?;
        Ok(Self { file: path.to_path_buf(), reader, compression })
    }

    /// Reads from a string.
    pub(crate) fn from_text(name: &Path, text: &'a str) -> Self {
        Self { file: name.to_path_buf(), reader: Box::new(text.as_bytes()), compression: None }
    }

    /// Returns the name.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Reads at least one byte, or none at the end. Retries interrupted reads.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TraceError> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(|source| self.error(source)),
            }
        }
    }

    fn error(&self, source: io::Error) -> TraceError {
        let file = self.file.clone();
        match self.compression {
            // An error with a number is of the operating system, not of the decoder.
            Some(format) if source.raw_os_error().is_none() => {
                TraceError::Compressed { file, format, source }
            }
            _ => TraceError::Io { file, source },
        }
    }
}

type Opened = (Box<dyn Read>, Option<&'static str>);

fn open(path: &Path) -> io::Result<Opened> {
    let mut file = File::open(path)?;
    let mut head = Vec::with_capacity(ti_shard::MAGIC.len());
    Read::by_ref(&mut file).take(ti_shard::MAGIC.len() as u64).read_to_end(&mut head)?;
    let (is_gzip, is_zstd) = (head.starts_with(GZIP_MAGIC), head.starts_with(ZSTD_MAGIC));
    let is_shard = head == ti_shard::MAGIC.as_bytes();
    let whole = io::Cursor::new(head).chain(file);
    Ok(match (is_gzip, is_zstd, is_shard) {
        (true, ..) => (Box::new(MultiGzDecoder::new(whole)), Some("gzip")),
        (_, true, _) => (Box::new(zstd::Decoder::new(whole)?), Some("zstd")),
        (_, _, true) => (Box::new(TextReader::new(whole)?), Some("shard")),
        _ => (Box::new(whole), None),
    })
}
