//! Reader of the communicators and groups of an archive.

use std::sync::Arc;

use pdes_core::Rank;

use crate::archive::ArchiveError;
use crate::archive::directory::ranks::{RankEntry, RankReader};
use crate::archive::layout::Section;
use crate::archive::tables::{ClaimedEntries, Tables};
use crate::communicator::{CommId, CommIdx, Communicator, Group, RankRange};

/// Reads the groups. Each member of a group has a row in the table of communicators, so that all groups together have at most
/// as many members as there are rows: this bounds the cost of checking them.
pub(super) fn read_groups(
    tables: &Tables<'_>,
    ranks: u32,
    taken: &mut ClaimedEntries,
) -> Result<Vec<Arc<Group>>, ArchiveError> {
    let section = Section::Groups;
    let mut groups = Vec::new();
    let (mut members, limit) = (0_u64, tables.len(Section::Communicators));
    for (entry, [first, len]) in (0..).zip(tables.all::<2>(section)?) {
        let entry_id = (section, entry);
        taken.claim(tables, Section::Runs, len, entry_id)?;
        let rows = tables.rows::<2>(Section::Runs, first, len, entry_id)?;
        let runs =
            rows.map(|row| read_run(tables, ranks, entry_id, row)).collect::<Result<Vec<RankRange>, _>>()?;
        members = runs.iter().fold(members, |sum, run| sum.saturating_add(run.len.into()));
        tables.check_at_most(entry_id, "number of members of all groups", members, limit)?;
        match Group::from_ranges(&runs) {
            Ok(group) if group.ranges() == runs => groups.push(Arc::new(group)),
            _ => return Err(tables.malformed(entry_id)),
        }
    }
    Ok(groups)
}

fn read_run(
    tables: &Tables<'_>,
    ranks: u32,
    entry_id: (Section, u64),
    [extent, stride]: [u64; 2],
) -> Result<RankRange, ArchiveError> {
    let (first, len) = (extent & 0xffff_ffff, extent >> 32);
    tables.check_at_most(entry_id, "stride of a run", stride, u32::MAX.into())?;
    tables.check_below(entry_id, "first rank of a run", first, ranks.into())?;
    let stride = stride as u32 as i32;
    let last = first as i64 + i64::from(stride) * (len as i64 - 1);
    if stride == 0 || len == 0 || !(0..i64::from(ranks)).contains(&last) {
        return Err(tables.malformed(entry_id));
    }
    Ok(RankRange { first: Rank::new(first as u32), stride, len: len as u32 })
}

impl RankReader<'_> {
    /// Checks the index of a communicator; index 0 is the world, which has no row.
    pub(super) fn check_communicator(
        &self,
        entry_id: (Section, u64),
        number: u64,
        entry: &RankEntry,
    ) -> Result<CommIdx, ArchiveError> {
        let number = self.tables.check_at_most(
            entry_id,
            "communicator of a channel",
            number,
            entry.communicators.1,
        )?;
        Ok(CommIdx::new(number as u32))
    }

    pub(super) fn read_communicators(
        &mut self,
        rank: Rank,
        entry_id: (Section, u64),
        entry: &RankEntry,
    ) -> Result<Vec<Communicator>, ArchiveError> {
        let (first, len) = entry.communicators;
        self.claimed.claim(&self.tables, Section::Communicators, len, entry_id)?;
        let world =
            Communicator { id: CommId::WORLD, rank: rank.get(), group: Arc::clone(&self.directory.world) };
        let mut communicators = vec![world];
        for [name, group] in self.tables.rows::<2>(Section::Communicators, first, len, entry_id)? {
            self.tables.check_below(entry_id, "group", group, self.directory.groups.len() as u64)?;
            let group = Arc::clone(&self.directory.groups[group as usize]);
            let (id, own) = (CommId::new(name as u32), name >> 32);
            let own =
                self.tables.check_below(entry_id, "own number in a communicator", own, group.len().into())?
                    as u32;
            if id == CommId::WORLD || group.member(own) != rank {
                return Err(self.tables.malformed(entry_id));
            }
            communicators.push(Communicator { id, rank: own, group });
        }
        Ok(communicators)
    }
}
