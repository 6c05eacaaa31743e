//! Directory of an archive: the tables that all ranks share, and an outline of each rank before it is read.

mod communicators;
mod ranks;

use std::sync::{Arc, OnceLock};

use pdes_core::Rank;

use crate::archive::body::Program;
use crate::archive::layout::{MAX_DEPTH, Section};
use crate::archive::tables::{Tables, Taken};
use crate::archive::tally::Traffic;
use crate::archive::{Archive, ArchiveError};
use crate::communicator::Group;
use crate::load::MAX_RANKS;
use crate::record::ACTION_KINDS;
use crate::side::{Side, SideNeeds};
use crate::trace::RankTrace;
use ranks::{Entry, Reading};

/// Side tables, and what they require of the other tables of their rank.
type NeedySide = (Arc<Side>, Arc<SideNeeds>);

/// An open archive with the tables that its ranks share.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) archive: Arc<Archive>,
    programs: Vec<Arc<Program>>,
    sides: Vec<NeedySide>,
    groups: Vec<Arc<Group>>,
    world: Arc<Group>,
}

impl Directory {
    pub(crate) fn new(tables: &Tables<'_>, archive: Arc<Archive>) -> Result<Self, ArchiveError> {
        let (named, ranks) = ((Section::Ranks, 0), archive.header.ranks);
        tables.limit(named, "number of ranks", ranks.into(), MAX_RANKS.into())?;
        tables.limit(named, "end of a range", ranks.into(), tables.len(Section::Ranks))?;
        let mut taken = Taken::default();
        let programs = read_programs(tables, &archive)?;
        let sides = read_sides(tables, ranks, &mut taken)?;
        let groups = communicators::read_groups(tables, ranks, &mut taken)?;
        Ok(Self { archive, programs, sides, groups, world: Arc::new(Group::world(ranks)) })
    }

    fn tables(&self) -> Tables<'_> {
        Tables::opened(&self.archive.file, &self.archive.header)
    }

    /// Returns the number of ranks.
    pub(crate) fn ranks(&self) -> u32 {
        self.archive.header.ranks
    }

    /// Returns the side tables.
    pub(crate) fn sides(&self) -> impl Iterator<Item = &Side> {
        self.sides.iter().map(|(side, _)| &**side)
    }

    /// Returns the number of actions of all ranks, from the header.
    pub(crate) fn actions(&self) -> u64 {
        self.archive.header.actions
    }

    /// Reads ranks in this order. Only their entries are verified.
    pub(crate) fn read(&self, ranks: impl Iterator<Item = Rank>) -> Result<Vec<RankTrace>, ArchiveError> {
        let mut reading = Reading::new(self);
        let mut read = Vec::with_capacity(ranks.size_hint().0);
        for rank in ranks {
            read.push(reading.rank(rank, &self.entry(rank)?)?);
        }
        Ok(read)
    }

    /// Checks that the total number of actions is that of the header.
    pub(crate) fn check_actions(&self, found: u64) -> Result<(), ArchiveError> {
        let (tables, named) = (self.tables(), (Section::Ranks, u64::from(self.ranks())));
        tables.limit(named, "number of all actions", found, self.actions())?;
        tables.limit(named, "number of all actions in the header", self.actions(), found).map(|_| ())
    }

    /// Returns the numbers of actions and of requests pending at the end of a rank that need not have been read.
    pub(crate) fn outline(&self, rank: Rank) -> Result<(u64, u64), ArchiveError> {
        let (tables, entry) = (self.tables(), self.entry(rank)?);
        let named = (Section::Ranks, u64::from(rank.get()));
        tables.below(named, "program", entry.program, self.programs.len() as u64)?;
        let program = &self.programs[entry.program as usize];
        let columns = tables.rows::<3>(Section::Columns, entry.columns.0, entry.columns.1, named)?;
        let columns = columns.map(|row| ranks::column(&tables, named, row)).collect::<Result<Vec<_>, _>>()?;
        let inserts = entry.inserts(&tables, named)?;
        let (_, actions) = ranks::actions(&tables, named, program.actions, &columns, inserts)?;
        Ok((actions, entry.pending.1))
    }

    /// Returns receiver and traffic of each outgoing channel of a rank that need not have been read.
    pub(crate) fn traffic(
        &self,
        rank: Rank,
    ) -> Result<impl Iterator<Item = Result<(Rank, Traffic), ArchiveError>> + '_, ArchiveError> {
        let (tables, entry) = (self.tables(), self.entry(rank)?);
        let named = (Section::Ranks, u64::from(rank.get()));
        let rows = tables.rows::<4>(Section::Outgoing, entry.outgoing.0, entry.outgoing.1, named)?;
        Ok(rows.map(move |[name, _, messages, bytes]| {
            let peer = tables.below(named, "peer", name & 0xffff_ffff, self.ranks().into())?;
            Ok((Rank::new(peer as u32), Traffic { messages, bytes }))
        }))
    }

    fn entry(&self, rank: Rank) -> Result<Entry, ArchiveError> {
        let (section, number) = (Section::Ranks, u64::from(rank.get()));
        let mut rows = self.tables().rows::<11>(section, number, 1, (section, number))?;
        Ok(Entry::new(rows.next().expect("the range of one row has a row")))
    }

    /// Returns the number of ports of a rank that need not have been read, and whether it has a mailbox: whether it receives
    /// from any source.
    fn ports(&self, rank: Rank) -> Result<(u32, bool), ArchiveError> {
        let entry = self.entry(rank)?;
        let side = usize::try_from(entry.side).ok().and_then(|side| self.sides.get(side));
        Ok((entry.ports as u32, side.is_some_and(|(_, needs)| needs.matches_by_time)))
    }
}

fn read_programs(tables: &Tables<'_>, archive: &Archive) -> Result<Vec<Arc<Program>>, ArchiveError> {
    let section = Section::Programs;
    let mut programs = Vec::new();
    for (entry, row) in (0..).zip(tables.all::<24>(section)?) {
        let [shard, offset, records, actions, columns, depth, counts @ ..] = row;
        let named = (section, entry);
        tables.below(named, "shard", shard, archive.shards.len() as u64)?;
        let len = archive.shards[shard as usize].len();
        tables.limit(named, "offset", offset, len)?;
        tables.limit(named, "rest of the offset by 16", offset % 16, 0)?;
        tables.limit(named, "number of records", records, (len - offset) / 16)?;
        tables.limit(named, "depth of loops", depth, MAX_DEPTH as u64)?;
        tables.limit(named, "number of columns", columns, records)?;
        let sum = counts[..ACTION_KINDS].iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let sum = sum.unwrap_or(u64::MAX);
        tables.limit(named, "number of actions", actions, sum)?;
        tables.limit(named, "sum of the actions by kind", sum, actions)?;
        let by_kind = std::array::from_fn(|kind| counts[kind]);
        let shard = shard as u32;
        let (unrolled, by_iterations) = (OnceLock::new(), OnceLock::new());
        let program =
            Program { shard, offset, records, actions, columns, by_kind, depth, unrolled, by_iterations };
        programs.push(Arc::new(program));
    }
    Ok(programs)
}

fn read_sides(tables: &Tables<'_>, ranks: u32, taken: &mut Taken) -> Result<Vec<NeedySide>, ArchiveError> {
    let section = Section::SideIndex;
    let mut sides = Vec::new();
    for (entry, [first, len]) in (0..).zip(tables.all::<2>(section)?) {
        taken.add(tables, Section::Sides, len, (section, entry))?;
        let words = tables.rows::<1>(Section::Sides, first, len, (section, entry))?;
        let words: Vec<u64> = words.map(|[word]| word).collect();
        let Some(side) = Side::from_words(&words, ranks) else {
            return Err(tables.malformed((Section::Sides, entry)));
        };
        let needs = Arc::new(SideNeeds::of(&side));
        sides.push((Arc::new(side), needs));
    }
    Ok(sides)
}
