//! Access to the tables of an archive: verifies checksums, validates tables when they are first used, and checks fields.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rkyv::Archived;
use rkyv::rancor::Failure;
use rkyv::vec::ArchivedVec;
use xxhash_rust::xxh3::xxh3_64;

use crate::archive::ArchiveError;
use crate::archive::layout::{Extent, Section};
use crate::archive::map::MappedFile;
use crate::archive::rows::{Overview, Row, Span};

/// The tables of a mapped file.
#[derive(Debug)]
pub(crate) struct Tables {
    file: Arc<MappedFile>,
    sections: [Extent; Section::ALL.len()],
    /// The bytes of the rows of each table in the file; `None` if the table is malformed.
    rows: [OnceLock<Option<Range<usize>>>; Section::ALL.len()],
}

impl Tables {
    /// Verifies length and checksum of all sections.
    pub(crate) fn new(
        file: Arc<MappedFile>,
        sections: [Extent; Section::ALL.len()],
    ) -> Result<Self, ArchiveError> {
        for section in Section::ALL {
            let extent = sections[section as usize];
            let bytes = usize::try_from(extent.offset).ok().zip(usize::try_from(extent.len).ok());
            let bytes = bytes.and_then(|(offset, len)| file.bytes().get(offset..offset.checked_add(len)?));
            if bytes.is_none_or(|bytes| xxh3_64(bytes) != extent.checksum) {
                let (file, section) = (file.path().to_path_buf(), section.name());
                return Err(ArchiveError::Checksum { file, section });
            }
        }
        Ok(Self { file, sections, rows: std::array::from_fn(|_| OnceLock::new()) })
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    fn bytes(&self, section: Section) -> &[u8] {
        let extent = self.sections[section as usize];
        // `new` has found the section within the file.
        &self.file.bytes()[extent.offset as usize..(extent.offset + extent.len) as usize]
    }

    /// Returns the error for an entry that contradicts itself or another one.
    pub(crate) fn malformed(&self, (section, entry): (Section, u64)) -> ArchiveError {
        let (file, section) = (self.path().to_path_buf(), section.name());
        ArchiveError::Malformed { file, section, entry }
    }

    /// Returns the facts about the whole trace.
    pub(crate) fn overview(&self) -> Result<Overview, ArchiveError> {
        let overview = rkyv::from_bytes::<Overview, Failure>(self.bytes(Section::Overview));
        overview.map_err(|_| self.malformed((Section::Overview, 0)))
    }

    /// Returns some bytes of the side tables.
    pub(crate) fn side_table(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let (start, end) = (usize::try_from(offset).ok()?, usize::try_from(offset.checked_add(len)?).ok()?);
        self.bytes(Section::SideTables).get(start..end)
    }

    /// Returns all rows of a table, which is validated when it is first used.
    pub(crate) fn all<R: Row>(&self) -> Result<&[Archived<R>], ArchiveError> {
        let range = self.rows[R::SECTION as usize].get_or_init(|| self.find_rows::<R>());
        let Some(range) = range.clone() else { return Err(self.malformed((R::SECTION, 0))) };
        Ok(bytemuck::cast_slice(&self.file.bytes()[range]))
    }

    /// Validates a table and returns the bytes of its rows in the file.
    fn find_rows<R: Row>(&self) -> Option<Range<usize>> {
        let bytes = self.bytes(R::SECTION);
        let rows = rkyv::access::<ArchivedVec<Archived<R>>, Failure>(bytes).ok()?.as_slice();
        if rows.is_empty() {
            return Some(0..0);
        }
        let first = rows.as_ptr().addr() - self.file.bytes().as_ptr().addr();
        Some(first..first + size_of_val(rows))
    }

    /// Returns the number of rows of a table.
    pub(crate) fn len<R: Row>(&self) -> Result<u64, ArchiveError> {
        Ok(self.all::<R>()?.len() as u64)
    }

    /// Returns some rows of a table.
    ///
    /// # Errors
    /// Fails if the table has fewer rows; the error names the referring entry, `entry_id`.
    pub(crate) fn rows<R: Row>(
        &self,
        Span { first, count }: Span,
        entry_id: (Section, u64),
    ) -> Result<&[Archived<R>], ArchiveError> {
        let (all, end) = (self.all::<R>()?, first.saturating_add(count));
        self.check_at_most(entry_id, "end of a range", end, all.len() as u64)?;
        Ok(&all[first as usize..end as usize])
    }

    /// Checks that a field is at most `limit`.
    pub(crate) fn check_at_most(
        &self,
        (section, entry): (Section, u64),
        field: &'static str,
        found: u64,
        limit: u64,
    ) -> Result<u64, ArchiveError> {
        if found <= limit {
            return Ok(found);
        }
        let (file, section) = (self.path().to_path_buf(), section.name());
        Err(ArchiveError::Entry { file, section, entry, field, found, limit })
    }

    /// Checks that a field is below `end`.
    pub(crate) fn check_below(
        &self,
        entry_id: (Section, u64),
        field: &'static str,
        found: u64,
        end: u64,
    ) -> Result<u64, ArchiveError> {
        // If `end` is 0 no value is allowed, which no largest value expresses: a value of at least 1 is then reported as above 0.
        match end.checked_sub(1) {
            Some(limit) => self.check_at_most(entry_id, field, found, limit),
            None => self.check_at_most(entry_id, field, found.max(1), 0),
        }
    }
}

/// Number of rows of each table that have an owner. No row has two, so that memory is bounded by the size of the file.
#[derive(Default)]
pub(crate) struct ClaimedEntries([u64; Section::ALL.len()]);

impl ClaimedEntries {
    /// Counts rows of a table that belong to one owner alone.
    pub(crate) fn claim<R: Row>(
        &mut self,
        tables: &Tables,
        count: u64,
        entry_id: (Section, u64),
    ) -> Result<(), ArchiveError> {
        self.claim_of(tables, R::SECTION, count, tables.len::<R>()?, entry_id)
    }

    /// Counts bytes of the side tables that belong to one of them alone.
    pub(crate) fn claim_side_table(
        &mut self,
        tables: &Tables,
        bytes: u64,
        entry_id: (Section, u64),
    ) -> Result<(), ArchiveError> {
        let section = Section::SideTables;
        self.claim_of(tables, section, bytes, tables.bytes(section).len() as u64, entry_id)
    }

    fn claim_of(
        &mut self,
        tables: &Tables,
        section: Section,
        count: u64,
        len: u64,
        entry_id: (Section, u64),
    ) -> Result<(), ArchiveError> {
        let taken = &mut self.0[section as usize];
        *taken = taken.saturating_add(count);
        tables.check_at_most(entry_id, "number of entries of all ranks", *taken, len).map(|_| ())
    }
}
