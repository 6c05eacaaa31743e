//! Files of an archive while they are written: they have temporary names until they are complete.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::archive::layout::{Extent, HEADER_BYTES, PAGE_BYTES, TAIL_PADDING};

/// Size of the write buffer [B].
const BUFFER_BYTES: usize = 1 << 20;

/// A file that gets its name when it is complete and is removed if it is dropped before.
pub(crate) struct OutputFile {
    temporary: NamedTempFile,
    path: PathBuf,
    buffer: Vec<u8>,
    len: u64,
}

impl OutputFile {
    /// Creates the file in its final directory, with room for a header.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = temporary_prefix(path);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".part");
        #[cfg(unix)]
        {
            // The umask applies, as to any other file; tempfile would make it 0600.
            let permissions: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
            builder.permissions(permissions);
        }
        let temporary = builder.tempfile_in(dir)?;
        let mut file = Self { temporary, path: path.to_path_buf(), buffer: Vec::new(), len: 0 };
        file.write(&[0; HEADER_BYTES])?;
        Ok(file)
    }

    /// Returns the final path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes written.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.len += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes a table of words and returns its extent.
    pub(crate) fn write_section(&mut self, words: &[u64]) -> io::Result<Extent> {
        let padding = self.len.next_multiple_of(8) - self.len;
        self.write(&[0; 8][..padding as usize])?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let extent = Extent { offset: self.len, len: bytes.len() as u64, checksum: xxh3_64(&bytes) };
        self.write(&bytes)?;
        Ok(extent)
    }

    /// Writes the header and syncs the file. The file is one byte longer than its header says, so that nobody can open it
    /// before [`publish`](Self::publish).
    pub(crate) fn complete(&mut self, header: &[u8]) -> io::Result<()> {
        self.buffer.push(0);
        self.flush()?;
        self.temporary.seek(SeekFrom::Start(0))?;
        self.temporary.write_all(header)?;
        self.temporary.as_file().sync_all()
    }

    /// Sets the final length and renames the file to its path; replaces an existing file.
    pub(crate) fn publish(self) -> Result<(), (PathBuf, io::Error)> {
        let Self { temporary, path, len, .. } = self;
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let published = temporary
            .as_file()
            .set_len(len)
            .and_then(|()| temporary.persist(&path).map(drop).map_err(|error| error.error));
        // The rename is durable once the directory is synced. Systems on which directories cannot be opened do not need it.
        let synced = published.and_then(|()| File::open(dir).map_or(Ok(()), |dir| dir.sync_all()));
        synced.map_err(|source| (path, source))
    }
}

/// Returns a prefix of the name of the temporary file by which a user recognizes it if the writer was killed.
fn temporary_prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Names have at most 255 bytes, and characters up to four.
    format!(".{}.", name.chars().take(50).collect::<String>())
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
