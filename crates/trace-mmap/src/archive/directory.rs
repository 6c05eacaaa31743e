//! Directory of an archive: the tables that all ranks share, and an outline of each rank before it is read.

mod communicators;
mod ranks;

use std::sync::{Arc, OnceLock};

use pdes_core::Rank;

use crate::archive::archived_rank::Program;
use crate::archive::layout::{MAX_DEPTH, Section};
use crate::archive::rows::{ArchivedRankRow, OutgoingRow, ProgramRow, RankRow, SideIndexRow, Span};
use crate::archive::tables::{ClaimedEntries, Tables};
use crate::archive::tally::Traffic;
use crate::archive::{Archive, ArchiveError};
use crate::communicator::Group;
use crate::record::FINALIZE;
use crate::side_tables::{SideTables, TableRequirements};
use crate::trace::RankTrace;
use ranks::RankReader;

/// Side tables, and what they require of the other tables of their rank.
type SideTablesWithNeeds = (Arc<SideTables>, Arc<TableRequirements>);

/// An open archive with the tables that its ranks share.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) archive: Arc<Archive>,
    programs: Vec<Arc<Program>>,
    /// Side tables, read when they are first used; `None` if they are malformed.
    side_tables: Vec<OnceLock<Option<SideTablesWithNeeds>>>,
    groups: Vec<Arc<Group>>,
    world: Arc<Group>,
}

impl Directory {
    pub(crate) fn new(archive: Arc<Archive>) -> Result<Self, ArchiveError> {
        let (tables, ranks) = (&archive.tables, archive.overview.ranks);
        let count = tables.len::<RankRow>()?;
        tables.check_at_most((Section::Ranks, 0), "end of a range", ranks.into(), count)?;
        let mut claimed = ClaimedEntries::default();
        let programs = read_programs(tables, &archive)?;
        for (entry, row) in (0..).zip(tables.all::<SideIndexRow>()?) {
            claimed.claim_side_table(tables, row.len.to_native(), (Section::SideIndex, entry))?;
        }
        let side_tables = tables.all::<SideIndexRow>()?.iter().map(|_| OnceLock::new()).collect();
        let groups = communicators::read_groups(tables, ranks, &mut claimed)?;
        Ok(Self { programs, side_tables, groups, world: Arc::new(Group::world(ranks)), archive })
    }

    fn tables(&self) -> &Tables {
        &self.archive.tables
    }

    /// Returns the number of ranks.
    pub(crate) fn ranks(&self) -> u32 {
        self.archive.overview.ranks
    }

    /// Returns the side tables.
    ///
    /// # Errors
    /// Fails if some are malformed.
    pub(crate) fn side_tables(&self) -> impl Iterator<Item = Result<&SideTables, ArchiveError>> {
        (0..self.side_tables.len() as u64).map(|number| self.side_table(number).map(|(side, _)| &**side))
    }

    /// Returns a side table, which is validated and read when it is first used.
    fn side_table(&self, number: u64) -> Result<&SideTablesWithNeeds, ArchiveError> {
        let (tables, entry_id) = (self.tables(), (Section::SideTables, number));
        let read = || {
            let row = tables.all::<SideIndexRow>().ok()?.get(number as usize)?;
            let bytes = tables.side_table(row.offset.to_native(), row.len.to_native())?;
            let side = SideTables::from_bytes(bytes, self.ranks())?;
            let needs = Arc::new(TableRequirements::of(&side));
            Some((Arc::new(side), needs))
        };
        let side = self.side_tables.get(number as usize).and_then(|side| side.get_or_init(read).as_ref());
        side.ok_or_else(|| tables.malformed(entry_id))
    }

    /// Returns the number of actions of all ranks, from the header.
    pub(crate) fn actions(&self) -> u64 {
        self.archive.overview.actions
    }

    /// Reads ranks in this order. Only their entries are verified.
    pub(crate) fn read_ranks(
        &self,
        ranks: impl Iterator<Item = Rank>,
    ) -> Result<Vec<RankTrace>, ArchiveError> {
        let mut reading = RankReader::new(self);
        let mut read = Vec::with_capacity(ranks.size_hint().0);
        for rank in ranks {
            read.push(reading.read_rank(rank, self.entry(rank)?)?);
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
        let program = &self.programs[self.program_index(entry_id, entry)?];
        let columns = ranks::read_columns(tables, entry_id, entry.columns.to_native())?;
        let inserts = ranks::has_inserts(tables, entry_id, entry)?;
        let (_, actions) = ranks::count_actions(tables, entry_id, program.actions, &columns, inserts)?;
        Ok((actions, entry.pending.count.to_native()))
    }

    /// Returns for each rank whether it leaves MPI; `None` for one without actions, or with malformed tables.
    pub(crate) fn ends(&self) -> impl Iterator<Item = Option<bool>> + '_ {
        (0..self.ranks()).map(|rank| {
            let index = self.program_index((Section::Ranks, rank.into()), self.entry(Rank::new(rank)).ok()?);
            let program = &self.programs[index.ok()?];
            (program.actions > 0).then_some(program.by_kind[usize::from(FINALIZE)] > 0)
        })
    }

    /// Returns receiver and traffic of each outgoing channel of a rank that need not have been read.
    pub(crate) fn traffic(
        &self,
        rank: Rank,
    ) -> Result<impl Iterator<Item = Result<(Rank, Traffic), ArchiveError>> + '_, ArchiveError> {
        let (tables, entry) = (self.tables(), self.entry(rank)?);
        let entry_id = (Section::Ranks, u64::from(rank.get()));
        let rows = tables.rows::<OutgoingRow>(entry.outgoing.to_native(), entry_id)?;
        Ok(rows.iter().map(move |row| {
            let peer =
                tables.check_below(entry_id, "peer", row.peer.to_native().into(), self.ranks().into())?;
            Ok((Rank::new(peer as u32), row.traffic()))
        }))
    }

    fn entry(&self, rank: Rank) -> Result<&ArchivedRankRow, ArchiveError> {
        let number = u64::from(rank.get());
        let row =
            self.tables().rows::<RankRow>(Span { first: number, count: 1 }, (Section::Ranks, number))?;
        Ok(&row[0])
    }

    fn program_index(
        &self,
        entry_id: (Section, u64),
        entry: &ArchivedRankRow,
    ) -> Result<usize, ArchiveError> {
        let (program, len) = (entry.program.to_native().into(), self.programs.len() as u64);
        Ok(self.tables().check_below(entry_id, "program", program, len)? as usize)
    }

    /// Returns the number of ports of a rank that need not have been read, and whether it has a mailbox: whether it receives
    /// from any source.
    fn ports(&self, rank: Rank) -> Result<(u32, bool), ArchiveError> {
        let entry = self.entry(rank)?;
        let (_, needs) = self.side_table(entry.side_table.to_native().into())?;
        Ok((entry.ports.to_native(), needs.has_timing_dependent_matching))
    }
}

fn read_programs(tables: &Tables, archive: &Archive) -> Result<Vec<Arc<Program>>, ArchiveError> {
    let mut programs = Vec::new();
    for (entry, row) in (0..).zip(tables.all::<ProgramRow>()?) {
        let entry_id = (Section::Programs, entry);
        let shard = row.shard.to_native();
        tables.check_below(entry_id, "shard", shard.into(), archive.shards.len() as u64)?;
        let program = Program {
            shard,
            offset: row.offset.to_native(),
            records: row.records.to_native(),
            actions: row.actions.to_native(),
            columns: row.columns.to_native(),
            by_kind: row.by_kind.map(|count| count.to_native()),
            depth: row.depth.to_native().into(),
            unrolled: OnceLock::new(),
            inner_unrolled: OnceLock::new(),
        };
        let len = archive.shards[shard as usize].len();
        tables.check_at_most(entry_id, "offset", program.offset, len)?;
        tables.check_at_most(entry_id, "rest of the offset by 16", program.offset % 16, 0)?;
        tables.check_at_most(entry_id, "number of records", program.records, (len - program.offset) / 16)?;
        tables.check_at_most(entry_id, "depth of loops", program.depth, MAX_DEPTH as u64)?;
        tables.check_at_most(entry_id, "number of columns", program.columns, program.records)?;
        let sum = program.by_kind.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let sum = sum.unwrap_or(u64::MAX);
        tables.check_at_most(entry_id, "number of actions", program.actions, sum)?;
        tables.check_at_most(entry_id, "sum of the actions by kind", sum, program.actions)?;
        programs.push(Arc::new(program));
    }
    Ok(programs)
}
