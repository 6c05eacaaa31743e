//! Access to the tables of an archive: verifies sections, splits them into entries and checks fields.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::archive::ArchiveError;
use crate::archive::layout::{Extent, Header, Section};
use crate::archive::map::MappedFile;

/// The tables of a file.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    file: &'a MappedFile,
    header: &'a Header,
}

impl<'a> Tables<'a> {
    /// Verifies length and checksum of all sections.
    pub(crate) fn new(file: &'a MappedFile, header: &'a Header) -> Result<Self, ArchiveError> {
        let tables = Self { file, header };
        for section in Section::ALL {
            let extent = header.sections[section as usize];
            if section == Section::Times && extent == Extent::default() {
                continue;
            }
            let bytes = usize::try_from(extent.offset).ok().zip(usize::try_from(extent.len).ok());
            let bytes = bytes.and_then(|(offset, len)| file.bytes().get(offset..offset.checked_add(len)?));
            let is_whole = extent.len.is_multiple_of(8 * section.entry_words() as u64);
            if !is_whole || bytes.is_none_or(|bytes| xxh3_64(bytes) != extent.checksum) {
                let (file, section) = (file.path().to_path_buf(), section.name());
                return Err(ArchiveError::Checksum { file, section });
            }
        }
        Ok(tables)
    }

    /// Returns the tables of a file that was verified when it was opened.
    pub(crate) fn of_verified(file: &'a MappedFile, header: &'a Header) -> Self {
        Self { file, header }
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &'a Path {
        self.file.path()
    }

    fn bytes(&self, section: Section) -> &'a [u8] {
        let extent = self.header.sections[section as usize];
        // `new` has found the section within the file.
        &self.file.bytes()[extent.offset as usize..(extent.offset + extent.len) as usize]
    }

    /// Returns the error for an entry that contradicts itself or another one.
    pub(crate) fn malformed(&self, (section, entry): (Section, u64)) -> ArchiveError {
        let (file, section) = (self.path().to_path_buf(), section.name());
        ArchiveError::Malformed { file, section, entry }
    }

    /// Returns the number of entries of a section.
    pub(crate) fn len(&self, section: Section) -> u64 {
        self.bytes(section).len() as u64 / (8 * section.entry_words() as u64)
    }

    /// Returns `count` entries of a section from `first` on.
    ///
    /// # Errors
    /// Fails if there are fewer than `first + count` entries; the error names the referring entry, `entry_id`.
    pub(crate) fn rows<const WORDS: usize>(
        &self,
        section: Section,
        first: u64,
        count: u64,
        entry_id: (Section, u64),
    ) -> Result<impl ExactSizeIterator<Item = [u64; WORDS]> + use<'a, WORDS>, ArchiveError> {
        debug_assert_eq!(WORDS, section.entry_words());
        let len = self.len(section);
        let end = first.saturating_add(count);
        self.check_at_most(entry_id, "end of a range", end, len)?;
        let rows = &self.bytes(section)[8 * WORDS * first as usize..8 * WORDS * end as usize];
        Ok(rows.chunks_exact(8 * WORDS).map(|row| {
            std::array::from_fn(|word| {
                let bytes = row[8 * word..].first_chunk().expect("a row is whole words");
                u64::from_le_bytes(*bytes)
            })
        }))
    }

    /// Returns all entries of a section.
    pub(crate) fn all<const WORDS: usize>(
        &self,
        section: Section,
    ) -> Result<impl ExactSizeIterator<Item = [u64; WORDS]> + 'a, ArchiveError> {
        self.rows(section, 0, self.len(section), (section, 0))
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

/// Number of entries of each section that have an owner. No entry has two, so that memory is bounded by the size of the file.
#[derive(Default)]
pub(crate) struct ClaimedEntries([u64; Section::ALL.len()]);

impl ClaimedEntries {
    /// Counts entries of a section that belong to one owner alone.
    pub(crate) fn claim(
        &mut self,
        tables: &Tables<'_>,
        section: Section,
        count: u64,
        entry_id: (Section, u64),
    ) -> Result<(), ArchiveError> {
        let taken = &mut self.0[section as usize];
        *taken = taken.saturating_add(count);
        tables
            .check_at_most(entry_id, "number of entries of all ranks", *taken, tables.len(section))
            .map(|_| ())
    }
}
