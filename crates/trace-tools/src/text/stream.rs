//! Byte streams of trace files, plain or decompressed.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::zstd::ZstdDecoder;
use crate::error::InputError;
use crate::format::HEAD;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// A stream of text with its name for error messages.
pub(crate) struct Stream<'a> {
    file: PathBuf,
    reader: Box<dyn Read + 'a>,
    compression: Option<&'static str>,
    is_file: bool,
}

impl<'a> Stream<'a> {
    /// Opens a file; detects compression by its first bytes.
    pub(crate) fn open(path: &Path) -> Result<Self, InputError> {
        let (reader, compression) =
            open(path).map_err(|source| InputError::Io { file: path.to_path_buf(), source })?;
        Ok(Self { file: path.to_path_buf(), reader, compression, is_file: true })
    }

    /// Returns whether a file that begins with these bytes is compressed.
    pub(crate) fn is_compressed(head: &[u8]) -> bool {
        head.starts_with(GZIP_MAGIC) || head.starts_with(ZSTD_MAGIC)
    }

    /// Reads from a string.
    pub(crate) fn from_text(name: &Path, text: &'a str) -> Self {
        Self {
            file: name.to_path_buf(),
            reader: Box::new(text.as_bytes()),
            compression: None,
            is_file: false,
        }
    }

    /// Returns whether the text is in a file, which may have been cut short.
    pub(crate) fn is_file(&self) -> bool {
        self.is_file
    }

    /// Returns the name.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Reads at least one byte, or none at the end. Retries interrupted reads.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, InputError> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(|source| self.error(source)),
            }
        }
    }

    /// Reads the first bytes, up to [`HEAD`], as far as they are not damaged.
    pub(crate) fn into_head(mut self) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        let mut len = 0;
        while let Ok(read @ 1..) = self.read(&mut head[len..]) {
            len += read;
        }
        head.truncate(len);
        head
    }

    fn error(&self, source: io::Error) -> InputError {
        let file = self.file.clone();
        match self.compression {
            // An error with a number is of the operating system, not of the decoder.
            Some(format) if source.raw_os_error().is_none() => {
                InputError::Compressed { file, format, source }
            }
            _ => InputError::Io { file, source },
        }
    }
}

type Opened = (Box<dyn Read>, Option<&'static str>);

fn open(path: &Path) -> io::Result<Opened> {
    let mut file = File::open(path)?;
    let mut head = Vec::with_capacity(ZSTD_MAGIC.len());
    Read::by_ref(&mut file).take(ZSTD_MAGIC.len() as u64).read_to_end(&mut head)?;
    let (is_gzip, is_zstd) = (head.starts_with(GZIP_MAGIC), head.starts_with(ZSTD_MAGIC));
    let whole = io::Cursor::new(head).chain(file);
    Ok(match (is_gzip, is_zstd) {
        (true, _) => (Box::new(MultiGzDecoder::new(whole)), Some("gzip")),
        (_, true) => (Box::new(ZstdDecoder::new(BufReader::new(whole))), Some("zstd")),
        _ => (Box::new(whole), None),
    })
}
