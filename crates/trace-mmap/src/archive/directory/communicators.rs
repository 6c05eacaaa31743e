//! Reader of the communicators and groups of an archive.

use std::sync::Arc;

use pdes_core::Rank;

use crate::archive::ArchiveError;
use crate::archive::directory::ranks::{Entry, Reading};
use crate::archive::layout::Section;
use crate::archive::tables::{Tables, Taken};
use crate::communicator::{CommId, CommIdx, Communicator, Group, Run};

/// Reads the groups. Each member of a group has a row in the table of communicators, so that all groups together have at most
/// as many members as there are rows: this bounds the cost of checking them.
pub(super) fn read_groups(
    tables: &Tables<'_>,
    ranks: u32,
    taken: &mut Taken,
) -> Result<Vec<Arc<Group>>, ArchiveError> {
    let section = Section::Groups;
    let mut groups = Vec::new();
    let (mut members, limit) = (0_u64, tables.len(Section::Communicators));
    for (entry, [first, len]) in (0..).zip(tables.all::<2>(section)?) {
        let named = (section, entry);
        taken.add(tables, Section::Runs, len, named)?;
        let rows = tables.rows::<2>(Section::Runs, first, len, named)?;
        let runs = rows.map(|row| run(tables, ranks, named, row)).collect::<Result<Vec<Run>, _>>()?;
        members = runs.iter().fold(members, |sum, run| sum.saturating_add(run.len.into()));
        tables.limit(named, "number of members of all groups", members, limit)?;
        match Group::from_runs(&runs) {
            Ok(group) if group.runs() == runs => groups.push(Arc::new(group)),
            _ => return Err(tables.malformed(named)),
        }
    }
    Ok(groups)
}

fn run(
    tables: &Tables<'_>,
    ranks: u32,
    named: (Section, u64),
    [extent, stride]: [u64; 2],
) -> Result<Run, ArchiveError> {
    let (first, len) = (extent & 0xffff_ffff, extent >> 32);
    tables.limit(named, "stride of a run", stride, u32::MAX.into())?;
    tables.below(named, "first rank of a run", first, ranks.into())?;
    let stride = stride as u32 as i32;
    let last = first as i64 + i64::from(stride) * (len as i64 - 1);
    if stride == 0 || len == 0 || !(0..i64::from(ranks)).contains(&last) {
        return Err(tables.malformed(named));
    }
    Ok(Run { first: Rank::new(first as u32), stride, len: len as u32 })
}

impl Reading<'_> {
    /// Checks the index of a communicator; index 0 is the world, which has no row.
    pub(super) fn communicator(
        &self,
        named: (Section, u64),
        number: u64,
        entry: &Entry,
    ) -> Result<CommIdx, ArchiveError> {
        let number = self.tables.limit(named, "communicator of a channel", number, entry.communicators.1)?;
        Ok(CommIdx::new(number as u32))
    }

    pub(super) fn communicators(
        &mut self,
        rank: Rank,
        named: (Section, u64),
        entry: &Entry,
    ) -> Result<Vec<Communicator>, ArchiveError> {
        let (first, len) = entry.communicators;
        self.taken.add(&self.tables, Section::Communicators, len, named)?;
        let world =
            Communicator { id: CommId::WORLD, rank: rank.get(), group: Arc::clone(&self.directory.world) };
        let mut communicators = vec![world];
        for [name, group] in self.tables.rows::<2>(Section::Communicators, first, len, named)? {
            self.tables.below(named, "group", group, self.directory.groups.len() as u64)?;
            let group = Arc::clone(&self.directory.groups[group as usize]);
            let (id, own) = (CommId::new(name as u32), name >> 32);
            let own =
                self.tables.below(named, "own number in a communicator", own, group.len().into())? as u32;
            if id == CommId::WORLD || group.member(own) != rank {
                return Err(self.tables.malformed(named));
            }
            communicators.push(Communicator { id, rank: own, group });
        }
        Ok(communicators)
    }
}
