//! Files of an archive while they are written: they have temporary names until they are complete.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::archive::layout::{Extent, HEADER_BYTES, Header, PAGE_BYTES, TAIL_PADDING};
use outputs::AtomicFile;

/// A file of an archive, whose header is written last.
pub(crate) struct OutputFile {
    file: AtomicFile,
    len: u64,
}

impl OutputFile {
    /// Creates the file, with room for a header.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut file = Self { file: AtomicFile::create_seekable(path)?, len: 0 };
        file.write(&[0; HEADER_BYTES])?;
        Ok(file)
    }

    /// Returns the final path of the file.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the number of bytes written.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.len += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Writes a section at a multiple of eight bytes and returns its extent.
    pub(crate) fn write_section(&mut self, bytes: &[u8]) -> io::Result<Extent> {
        let padding = self.len.next_multiple_of(8) - self.len;
        self.write(&[0; 8][..padding as usize])?;
        let extent = Extent { offset: self.len, len: bytes.len() as u64, checksum: xxh3_64(bytes) };
        self.write(bytes)?;
        Ok(extent)
    }

    /// Writes the header and syncs the file. The file is one byte longer than its header says, so that nobody can open it
    /// before [`publish`](Self::publish).
    pub(crate) fn complete(&mut self, header: &Header) -> io::Result<()> {
        self.file.write_all(&[0])?;
        self.file.write_first(bytemuck::bytes_of(header))?;
        self.file.sync()
    }

    /// Sets the final length and renames the file to its path; replaces an existing file.
    pub(crate) fn publish(self) -> Result<(), (PathBuf, io::Error)> {
        let Self { mut file, len } = self;
        let path = file.path().to_path_buf();
        file.set_len(len).and_then(|()| file.commit()).map(drop).map_err(|source| (path, source))
    }
}

/// The data of a shard while they are written, with a checksum per page.
pub(crate) struct DataOutput {
    pub(crate) file: OutputFile,
    len: u64,
    page_hasher: Xxh3,
    page_checksums: Vec<u64>,
}

impl DataOutput {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: OutputFile::create(path)?,
            len: 0,
            page_hasher: Xxh3::new(),
            page_checksums: Vec::new(),
        })
    }

    /// Returns the length of the data [B], without header.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.file.write(bytes)?;
        while !bytes.is_empty() {
            let room = PAGE_BYTES - self.len % PAGE_BYTES;
            let (first, rest) = bytes.split_at(bytes.len().min(room as usize));
            self.page_hasher.update(first);
            self.len += first.len() as u64;
            if self.len.is_multiple_of(PAGE_BYTES) {
                self.end_page();
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Writes zeros up to a multiple of `alignment` (at most 16); returns the length of the data.
    pub(crate) fn align(&mut self, alignment: u64) -> io::Result<u64> {
        let padding = self.len.next_multiple_of(alignment) - self.len;
        self.write(&[0; 16][..padding as usize])?;
        Ok(self.len)
    }

    fn end_page(&mut self) {
        self.page_checksums.push(self.page_hasher.digest());
        self.page_hasher.reset();
    }

    /// Ends the data and returns the checksums of their pages.
    pub(crate) fn finish(&mut self) -> io::Result<Vec<u64>> {
        if !self.len.is_multiple_of(PAGE_BYTES) {
            self.end_page();
        }
        self.file.write(&[0; TAIL_PADDING as usize])?;
        Ok(std::mem::take(&mut self.page_checksums))
    }
}
