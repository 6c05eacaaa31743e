//! Reader of the communicators and groups of an archive.

use std::sync::Arc;

use pdes_core::Rank;

use crate::archive::ArchiveError;
use crate::archive::directory::ranks::RankReader;
use crate::archive::layout::Section;
use crate::archive::rows::{ArchivedRankRow, ArchivedRunRow, CommunicatorRow, GroupRow, RunRow};
use crate::archive::tables::{ClaimedEntries, Tables};
use crate::communicator::{CommId, CommIdx, Communicator, Group, RankRange};

/// Reads the groups. Each member of a group has a row in the table of communicators, so that all groups together have at most
/// as many members as there are rows: this bounds the cost of checking them.
pub(super) fn read_groups(
    tables: &Tables,
    ranks: u32,
    taken: &mut ClaimedEntries,
) -> Result<Vec<Arc<Group>>, ArchiveError> {
    let mut groups = Vec::new();
    let (mut members, limit) = (0_u64, tables.len::<CommunicatorRow>()?);
    for (entry, row) in (0..).zip(tables.all::<GroupRow>()?) {
        let (entry_id, runs) = ((Section::Groups, entry), row.runs.to_native());
        taken.claim::<RunRow>(tables, runs.count, entry_id)?;
        let rows = tables.rows::<RunRow>(runs, entry_id)?.iter();
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
    tables: &Tables,
    ranks: u32,
    entry_id: (Section, u64),
    row: &ArchivedRunRow,
) -> Result<RankRange, ArchiveError> {
    let (first, len, stride) = (row.first.to_native(), row.len.to_native(), row.stride.to_native());
    tables.check_below(entry_id, "first rank of a run", first.into(), ranks.into())?;
    let last = i64::from(first) + i64::from(stride) * (i64::from(len) - 1);
    if stride == 0 || len == 0 || !(0..i64::from(ranks)).contains(&last) {
        return Err(tables.malformed(entry_id));
    }
    Ok(RankRange { first: Rank::new(first), stride, len })
}

impl RankReader<'_> {
    /// Checks the index of a communicator; index 0 is the world, which has no row.
    pub(super) fn check_communicator(
        &self,
        entry_id: (Section, u64),
        number: u32,
        entry: &ArchivedRankRow,
    ) -> Result<CommIdx, ArchiveError> {
        let number = self.tables.check_at_most(
            entry_id,
            "communicator of a channel",
            number.into(),
            entry.communicators.count.to_native(),
        )?;
        Ok(CommIdx::new(number as u32))
    }

    pub(super) fn read_communicators(
        &mut self,
        rank: Rank,
        entry_id: (Section, u64),
        entry: &ArchivedRankRow,
    ) -> Result<Vec<Communicator>, ArchiveError> {
        let (tables, span) = (self.tables, entry.communicators.to_native());
        self.claimed.claim::<CommunicatorRow>(tables, span.count, entry_id)?;
        let world =
            Communicator { id: CommId::WORLD, rank: rank.get(), group: Arc::clone(&self.directory.world) };
        let mut communicators = vec![world];
        for row in tables.rows::<CommunicatorRow>(span, entry_id)? {
            let group = row.group.to_native().into();
            tables.check_below(entry_id, "group", group, self.directory.groups.len() as u64)?;
            let group = Arc::clone(&self.directory.groups[group as usize]);
            let (id, own) = (CommId::new(row.id.to_native()), row.rank.to_native());
            tables.check_below(entry_id, "own number in a communicator", own.into(), group.len().into())?;
            if id == CommId::WORLD || group.member(own) != rank {
                return Err(tables.malformed(entry_id));
            }
            communicators.push(Communicator { id, rank: own, group });
        }
        Ok(communicators)
    }
}
