//! Data of an archive: programs and columns, verified page by page when they are first read.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_64;

use crate::archive::Damage;
use crate::archive::layout::{Header, PAGE_BYTES, SHARD_MAGIC, TAIL_PADDING};
use crate::archive::map::{MappedFile, records};
use crate::record::Record;

/// The part of the data that is in one file.
#[derive(Debug)]
pub(crate) struct Shard {
    number: u32,
    file: ShardFile,
    /// Offset of the data in the file [B].
    offset: u64,
    /// Length of the data [B].
    len: u64,
    /// Checksum of each page.
    checksums: Box<[u64]>,
    /// One bit per page, set once its checksum was verified.
    verified: Box<[AtomicU64]>,
}

/// The file with the data.
#[derive(Debug)]
pub(crate) enum ShardFile {
    /// The main file of the archive.
    Main(Arc<MappedFile>),
    /// A file of its own, mapped on first use.
    Separate { path: PathBuf, id: u64, map: OnceLock<Option<MappedFile>> },
}

impl Shard {
    /// Creates a shard with its data at `offset` of the file, with one checksum per page.
    pub(crate) fn new(number: u32, file: ShardFile, offset: u64, len: u64, sums: Box<[u64]>) -> Self {
        let verified = (0..sums.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { number, file, offset, len, checksums: sums, verified }
    }

    /// Returns the number of pages.
    pub(crate) fn pages(&self) -> u64 {
        self.checksums.len() as u64
    }

    /// Returns the length of the data [B].
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the file, if it is mapped.
    pub(crate) fn mapped(&self) -> Option<&MappedFile> {
        match &self.file {
            ShardFile::Main(map) => Some(map),
            ShardFile::Separate { map, .. } => map.get()?.as_ref(),
        }
    }

    /// Returns verified bytes of the data.
    pub(crate) fn bytes(&self, offset: u64, len: u64) -> Result<&[u8], Damage> {
        let data = self.verified_data(offset, len)?;
        Ok(&data[offset as usize..(offset + len) as usize])
    }

    /// Returns verified bytes of the data, followed by eight unverified ones.
    pub(crate) fn bytes_with_padding(&self, offset: u64, len: u64) -> Result<&[u8], Damage> {
        let data = self.verified_data(offset, len)?;
        Ok(&data[offset as usize..(offset + len + TAIL_PADDING) as usize])
    }

    /// Returns the records from this offset to the end of its page, or until `end` if that comes first.
    pub(crate) fn records(&self, offset: u64, end: u64) -> Result<&[Record], Damage> {
        let page_end = (offset / PAGE_BYTES + 1) * PAGE_BYTES;
        let end = end.min(page_end);
        Ok(records(self.bytes(offset, end.saturating_sub(offset))?))
    }

    /// Verifies a page. For an empty shard, this only checks that the file exists and is the right one.
    pub(crate) fn check(&self, page: u64) -> Result<(), Damage> {
        if page < self.pages() { self.verify(page) } else { self.data() }.map(|_| ())
    }

    /// Verifies a page; returns all data.
    pub(crate) fn verify(&self, page: u64) -> Result<&[u8], Damage> {
        let data = self.data()?;
        let (word, bit) = (&self.verified[(page / 64) as usize], 1_u64 << (page % 64));
        // Relaxed: the bit only records that the checksum matched; it publishes nothing. Two threads may verify the same page.
        if word.load(Ordering::Relaxed) & bit == 0 {
            let start = page * PAGE_BYTES;
            let bytes = &data[start as usize..(start + PAGE_BYTES).min(self.len) as usize];
            if xxh3_64(bytes) != self.checksums[page as usize] {
                return Err(Damage::Page { shard: self.number, page, offset: self.offset + start });
            }
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(data)
    }

    /// Verifies the pages of a range; returns all data with their padding.
    fn verified_data(&self, offset: u64, len: u64) -> Result<&[u8], Damage> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len);
        let Some(end) = end else {
            return Err(Damage::Range { shard: self.number, offset, len, limit: self.len });
        };
        let mut data = self.data()?;
        for page in offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            data = self.verify(page)?;
        }
        Ok(data)
    }

    /// Returns the data with their padding.
    fn data(&self) -> Result<&[u8], Damage> {
        let missing = Damage::Shard { shard: self.number };
        let map = match &self.file {
            ShardFile::Main(map) => &**map,
            ShardFile::Separate { path, id, map } => {
                map.get_or_init(|| self.map_separate(path, *id)).as_ref().ok_or(missing)?
            }
        };
        let start = self.offset as usize;
        map.bytes().get(start..start + (self.len + TAIL_PADDING) as usize).ok_or(missing)
    }

    fn map_separate(&self, path: &Path, id: u64) -> Option<MappedFile> {
        // SAFETY: the caller of `Trace::load` promises that the archive stays as it is, with its shards.
        #[expect(unsafe_code, reason = "it is mapped")]
        let map = unsafe { MappedFile::open(path) }.ok()?;
        let header = Header::from_bytes(map.bytes(), SHARD_MAGIC).ok()?;
        let expected = Header::new(SHARD_MAGIC, map.bytes().len() as u64, self.number, id).sealed();
        (header == expected).then_some(map)
    }
}
