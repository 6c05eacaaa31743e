//! Directory of an archive: the tables that all ranks share, and an outline of each rank before it is read.

mod communicators;
mod ranks;

use std::sync::{Arc, OnceLock};

use pdes_core::Rank;

use crate::archive::archived_rank::Program;
use crate::archive::layout::{MAX_DEPTH, Section};
use crate::archive::tables::{ClaimedEntries, Tables};
use crate::archive::tally::Traffic;
use crate::archive::{Archive, ArchiveError};
use crate::communicator::Group;
use crate::load::MAX_RANKS;
use crate::record::ACTION_KINDS;
use crate::side_tables::{SideTables, TableRequirements};
use crate::trace::RankTrace;
use ranks::{RankEntry, RankReader};

/// Side tables, and what they require of the other tables of their rank.
type SideTablesWithNeeds = (Arc<SideTables>, Arc<TableRequirements>);

/// An open archive with the tables that its ranks share.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) archive: Arc<Archive>,
    programs: Vec<Arc<Program>>,
    side_tables: Vec<SideTablesWithNeeds>,
    groups: Vec<Arc<Group>>,
    world: Arc<Group>,
}

impl Directory {
    pub(crate) fn new(tables: &Tables<'_>, archive: Arc<Archive>) -> Result<Self, ArchiveError> {
        let (entry_id, ranks) = ((Section::Ranks, 0), archive.header.ranks);
        tables.check_at_most(entry_id, "number of ranks", ranks.into(), MAX_RANKS.into())?;
        tables.check_at_most(entry_id, "end of a range", ranks.into(), tables.len(Section::Ranks))?;
        let mut claimed = ClaimedEntries::default();
        let programs = read_programs(tables, &archive)?;
        let sides = read_side_tables(tables, ranks, &mut claimed)?;
        let groups = communicators::read_groups(tables, ranks, &mut claimed)?;
        Ok(Self { archive, programs, side_tables: sides, groups, world: Arc::new(Group::world(ranks)) })
    }

    fn tables(&self) -> Tables<'_> {
        Tables::of_verified(&self.archive.file, &self.archive.header)
    }

    /// Returns the number of ranks.
    pub(crate) fn ranks(&self) -> u32 {
        self.archive.header.ranks
    }

    /// Returns the side tables.
    pub(crate) fn side_tables(&self) -> impl Iterator<Item = &SideTables> {
        self.side_tables.iter().map(|(side, _)| &**side)
    }

    /// Returns the number of actions of all ranks, from the header.
    pub(crate) fn actions(&self) -> u64 {
        self.archive.header.actions
    }

    /// Reads ranks in this order. Only their entries are verified.
    pub(crate) fn read_ranks(
        &self,
        ranks: impl Iterator<Item = Rank>,
    ) -> Result<Vec<RankTrace>, ArchiveError> {
        let mut reading = RankReader::new(self);
        let mut read = Vec::with_capacity(ranks.size_hint().0);
        for rank in ranks {
            read.push(reading.read_rank(rank, &self.entry(rank)?)?);
        }
        Ok(read)
    }

    /// Checks that the total number of actions is that of the header.
    pub(crate) fn check_actions(&self, found: u64) -> Result<(), ArchiveError> {
        let (tables, entry_id) = (self.tables(), (Section::Ranks, u64::from(self.ranks())));
        tables.check_at_most(entry_id, "number of all actions", found, self.actions())?;
        tables
            .check_at_most(entry_id, "number of all actions in the header", self.actions(), found)
            .map(|_| ())
    }

    /// Returns the numbers of actions and of requests pending at the end of a rank that need not have been read.
    pub(crate) fn outline(&self, rank: Rank) -> Result<(u64, u64), ArchiveError> {
        let (tables, entry) = (self.tables(), self.entry(rank)?);
        let entry_id = (Section::Ranks, u64::from(rank.get()));
        tables.check_below(entry_id, "program", entry.program, self.programs.len() as u64)?;
        let program = &self.programs[entry.program as usize];
        let columns = tables.rows::<3>(Section::Columns, entry.columns.0, entry.columns.1, entry_id)?;
        let columns =
            columns.map(|row| ranks::read_column(&tables, entry_id, row)).collect::<Result<Vec<_>, _>>()?;
        let inserts = entry.has_inserts(&tables, entry_id)?;
        let (_, actions) = ranks::count_actions(&tables, entry_id, program.actions, &columns, inserts)?;
        Ok((actions, entry.pending.1))
    }

    /// Returns receiver and traffic of each outgoing channel of a rank that need not have been read.
    pub(crate) fn traffic(
        &self,
        rank: Rank,
    ) -> Result<impl Iterator<Item = Result<(Rank, Traffic), ArchiveError>> + '_, ArchiveError> {
        let (tables, entry) = (self.tables(), self.entry(rank)?);
        let entry_id = (Section::Ranks, u64::from(rank.get()));
        let rows = tables.rows::<4>(Section::Outgoing, entry.outgoing.0, entry.outgoing.1, entry_id)?;
        Ok(rows.map(move |[name, _, messages, bytes]| {
            let peer = tables.check_below(entry_id, "peer", name & 0xffff_ffff, self.ranks().into())?;
            Ok((Rank::new(peer as u32), Traffic { messages, bytes }))
        }))
    }

    fn entry(&self, rank: Rank) -> Result<RankEntry, ArchiveError> {
        let (section, number) = (Section::Ranks, u64::from(rank.get()));
        let mut rows = self.tables().rows::<11>(section, number, 1, (section, number))?;
        Ok(RankEntry::new(rows.next().expect("the range of one row has a row")))
    }

    /// Returns the number of ports of a rank that need not have been read, and whether it has a mailbox: whether it receives
    /// from any source.
    fn ports(&self, rank: Rank) -> Result<(u32, bool), ArchiveError> {
        let entry = self.entry(rank)?;
        let side = usize::try_from(entry.side).ok().and_then(|side| self.side_tables.get(side));
        Ok((entry.ports as u32, side.is_some_and(|(_, needs)| needs.has_timing_dependent_matching)))
    }
}

fn read_programs(tables: &Tables<'_>, archive: &Archive) -> Result<Vec<Arc<Program>>, ArchiveError> {
    let section = Section::Programs;
    let mut programs = Vec::new();
    for (entry, row) in (0..).zip(tables.all::<24>(section)?) {
        let [shard, offset, records, actions, columns, depth, counts @ ..] = row;
        let entry_id = (section, entry);
        tables.check_below(entry_id, "shard", shard, archive.shards.len() as u64)?;
        let len = archive.shards[shard as usize].len();
        tables.check_at_most(entry_id, "offset", offset, len)?;
        tables.check_at_most(entry_id, "rest of the offset by 16", offset % 16, 0)?;
        tables.check_at_most(entry_id, "number of records", records, (len - offset) / 16)?;
        tables.check_at_most(entry_id, "depth of loops", depth, MAX_DEPTH as u64)?;
        tables.check_at_most(entry_id, "number of columns", columns, records)?;
        let sum = counts[..ACTION_KINDS].iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let sum = sum.unwrap_or(u64::MAX);
        tables.check_at_most(entry_id, "number of actions", actions, sum)?;
        tables.check_at_most(entry_id, "sum of the actions by kind", sum, actions)?;
        let by_kind = std::array::from_fn(|kind| counts[kind]);
        let shard = shard as u32;
        let (unrolled, by_iterations) = (OnceLock::new(), OnceLock::new());
        let program = Program {
            shard,
            offset,
            records,
            actions,
            columns,
            by_kind,
            depth,
            unrolled,
            inner_unrolled: by_iterations,
        };
        programs.push(Arc::new(program));
    }
    Ok(programs)
}

fn read_side_tables(
    tables: &Tables<'_>,
    ranks: u32,
    claimed: &mut ClaimedEntries,
) -> Result<Vec<SideTablesWithNeeds>, ArchiveError> {
    let section = Section::SideIndex;
    let mut sides = Vec::new();
    for (entry, [first, len]) in (0..).zip(tables.all::<2>(section)?) {
        claimed.claim(tables, Section::SideTables, len, (section, entry))?;
        let words = tables.rows::<1>(Section::SideTables, first, len, (section, entry))?;
        let words: Vec<u64> = words.map(|[word]| word).collect();
        let Some(side) = SideTables::from_words(&words, ranks) else {
            return Err(tables.malformed((Section::SideTables, entry)));
        };
        let needs = Arc::new(TableRequirements::of(&side));
        sides.push((Arc::new(side), needs));
    }
    Ok(sides)
}
