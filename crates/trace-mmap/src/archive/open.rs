//! Opening an archive. The header and the tables that all ranks share are verified at once, data pages when they are first read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use pdes_core::Rank;

use crate::archive::layout::{
    BYTE_ORDER, BadHeader, HEADER_BYTES, Header, OLDEST_VERSION, PAGE_BYTES, Section, TAIL_PADDING, VERSION,
};
use crate::archive::map::MappedFile;
use crate::archive::shard::ShardFile;
use crate::archive::tables::Tables;
use crate::archive::{Archive, ArchiveError, Directory, Shard};
use crate::channel::Tag;
use crate::provenance::Provenance;
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
    let header = Header::from_bytes(file.bytes()).map_err(|bad| bad_header(&file, bad))?;
    let found = file.bytes().len() as u64;
    if cfg!(target_endian = "big") {
        return Err(bad_header(&file, BadHeader::ByteOrder(BYTE_ORDER)));
    }
    if found != header.length {
        return Err(ArchiveError::Length { file: path.to_path_buf(), found, expected: header.length });
    }
    let tables = Tables::new(&file, &header)?;
    let shards = read_shards(&tables, &header, &file)?;
    let archive = Arc::new(Archive {
        shards,
        header: header.clone(),
        file: Arc::clone(&file),
        damage: Mutex::default(),
    });
    verify_first_pages(&archive)?;
    let provenance = Provenance::from_words(header.provenance);
    let provenance = provenance.ok_or_else(|| ArchiveError::Provenance { file: path.to_path_buf() })?;
    Ok((Directory::new(&tables, archive)?, read_unreceived(&tables, &header)?, provenance))
}

fn bad_header(file: &MappedFile, bad: BadHeader) -> ArchiveError {
    let found = file.bytes().len() as u64;
    let file = file.path().to_path_buf();
    match bad {
        BadHeader::Magic => ArchiveError::Magic { file },
        BadHeader::ByteOrder(found) => {
            ArchiveError::ByteOrder { file, found, expected: u32::from_ne_bytes(BYTE_ORDER.to_le_bytes()) }
        }
        BadHeader::Version(found) => {
            ArchiveError::Version { file, found, oldest: OLDEST_VERSION, newest: VERSION }
        }
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

fn read_shards(
    tables: &Tables<'_>,
    header: &Header,
    file: &Arc<MappedFile>,
) -> Result<Vec<Shard>, ArchiveError> {
    let section = Section::Shards;
    let files = u64::from(header.files);
    let rows = tables.all::<2>(section)?;
    tables.check_at_most((section, 0), "number of shards", rows.len() as u64, files.max(1))?;
    tables.check_below((section, 0), "number of shards", files.max(1) - 1, rows.len() as u64)?;
    let mut first_page = 0;
    let mut shards = Vec::with_capacity(rows.len());
    for (number, [offset, len]) in (0_u32..).zip(rows) {
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
        let sums =
            tables.rows::<1>(Section::PageSums, first_page, pages, entry_id)?.map(|[sum]| sum).collect();
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

fn read_unreceived(tables: &Tables<'_>, header: &Header) -> Result<Option<Unreceived>, ArchiveError> {
    let [rank, peer, tag] = header.first_unreceived.map(u64::from);
    let entry_id = (Section::Ranks, 0);
    for (field, number) in [("rank of an unreceived message", rank), ("peer of an unreceived message", peer)]
    {
        tables.check_at_most(entry_id, field, number, u64::from(header.ranks))?;
    }
    tables.check_at_most(entry_id, "tag of an unreceived message", tag, i32::MAX as u64)?;
    let (rank, peer, tag) = (Rank::new(rank as u32), Rank::new(peer as u32), Tag::new(tag as i32));
    Ok((header.unreceived > 0).then_some(Unreceived { messages: header.unreceived, rank, peer, tag }))
}
