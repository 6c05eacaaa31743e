//! Opening an archive. The header and the tables that all ranks share are verified at once, data pages when they are first read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use crate::archive::layout::{
    BYTE_ORDER, BadHeader, HEADER_BYTES, Header, MAGIC, PAGE_BYTES, Section, TAIL_PADDING, VERSION,
};
use crate::archive::map::MappedFile;
use crate::archive::rows::{Overview, PageSumRow, ShardRow, Span};
use crate::archive::shard::ShardFile;
use crate::archive::tables::Tables;
use crate::archive::{Archive, ArchiveError, Directory, Shard};
use crate::provenance::Provenance;
use crate::source::MAX_RANKS;
use crate::warning::Unreceived;

/// Number of data pages that are verified at open: 16 MiB, which takes a few milliseconds. Most folded traces fit, so that
/// their damage is reported at once.
const PAGES_VERIFIED_AT_OPEN: u64 = 256;

/// Opens an archive without reading its ranks.
pub(crate) fn open(path: &Path) -> Result<(Directory, Option<Unreceived>, Provenance), ArchiveError> {
    let io = |source| ArchiveError::Io { file: path.to_path_buf(), source };
    // SAFETY: the caller of `Trace::load` promises that the archive stays as it is.
    #[expect(unsafe_code, reason = "it is mapped")]
    let file = Arc::new(unsafe { MappedFile::open(path) }.map_err(io)?);
    let header = Header::from_bytes(file.bytes(), MAGIC).map_err(|bad| bad_header(&file, bad))?;
    let found = file.bytes().len() as u64;
    if found != header.length {
        return Err(ArchiveError::Length { file: path.to_path_buf(), found, expected: header.length });
    }
    let tables = Tables::new(Arc::clone(&file), header.sections)?;
    let overview = tables.overview()?;
    let shards = read_shards(&tables, &header, &file)?;
    check_overview(&tables, &overview)?;
    let (unreceived, provenance) = (overview.unreceived, overview.provenance.clone());
    let archive = Arc::new(Archive { file, header, tables, overview, shards, damage: Mutex::default() });
    verify_first_pages(&archive)?;
    Ok((Directory::new(archive)?, unreceived, provenance))
}

fn bad_header(file: &MappedFile, bad: BadHeader) -> ArchiveError {
    let found = file.bytes().len() as u64;
    let file = file.path().to_path_buf();
    match bad {
        BadHeader::Magic => ArchiveError::Magic { file },
        BadHeader::ByteOrder(found) => {
            ArchiveError::ByteOrder { file, found, expected: u32::from_ne_bytes(BYTE_ORDER.to_le_bytes()) }
        }
        BadHeader::Version(found) => ArchiveError::Version { file, found, expected: VERSION },
        BadHeader::Short => ArchiveError::Length { file, found, expected: HEADER_BYTES as u64 },
        BadHeader::Checksum => ArchiveError::Checksum { file, section: "header" },
    }
}

/// Returns the path of a shard file of an archive.
pub(crate) fn shard_path(archive: &Path, number: u32) -> PathBuf {
    let mut name: OsString = archive.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

fn read_shards(tables: &Tables, header: &Header, file: &Arc<MappedFile>) -> Result<Vec<Shard>, ArchiveError> {
    let section = Section::Shards;
    let files = u64::from(header.files);
    let rows = tables.all::<ShardRow>()?;
    tables.check_at_most((section, 0), "number of shards", rows.len() as u64, files.max(1))?;
    tables.check_below((section, 0), "number of shards", files.max(1) - 1, rows.len() as u64)?;
    let mut first_page = 0;
    let mut shards = Vec::with_capacity(rows.len());
    for (number, row) in (0_u32..).zip(rows) {
        let (offset, len) = (row.offset.to_native(), row.len.to_native());
        let entry_id = (section, u64::from(number));
        let file = if files == 0 {
            let end = header.length.saturating_sub(TAIL_PADDING);
            tables.check_at_most(entry_id, "end of the data", offset.saturating_add(len), end)?;
            ShardFile::Main(Arc::clone(file))
        } else {
            let path = shard_path(tables.path(), number);
            ShardFile::Separate { path, id: header.id, map: OnceLock::new() }
        };
        // Records are read in place, so they have to be aligned.
        tables.check_at_most(entry_id, "rest of the offset by 4096", offset % HEADER_BYTES as u64, 0)?;
        tables.check_at_most(entry_id, "length", len, i64::MAX as u64 - header.length.max(offset))?;
        let pages = len.div_ceil(PAGE_BYTES);
        let sums = tables.rows::<PageSumRow>(Span { first: first_page, count: pages }, entry_id)?;
        let sums = sums.iter().map(|row| row.checksum.to_native()).collect();
        first_page += pages;
        shards.push(Shard::new(number, file, offset, len, sums));
    }
    Ok(shards)
}

fn verify_first_pages(archive: &Archive) -> Result<(), ArchiveError> {
    let Some(shard) = archive.shards().first() else { return Ok(()) };
    for page in 0..shard.pages().min(PAGES_VERIFIED_AT_OPEN) {
        let file = || archive.path().to_path_buf();
        shard.verify(page).map_err(|damage| ArchiveError::Data { file: file(), damage })?;
    }
    Ok(())
}

fn check_overview(tables: &Tables, overview: &Overview) -> Result<(), ArchiveError> {
    let entry_id = (Section::Overview, 0);
    tables.check_at_most(entry_id, "number of ranks", overview.ranks.into(), MAX_RANKS.into())?;
    if let Some(Unreceived { messages, rank, peer, tag }) = overview.unreceived {
        let is_valid = messages > 0 && rank.get().max(peer.get()) < overview.ranks && tag.get() >= 0;
        is_valid.then_some(()).ok_or_else(|| tables.malformed(entry_id))?;
    }
    overview.provenance.is_valid().then_some(()).ok_or_else(|| tables.malformed(entry_id))
}
