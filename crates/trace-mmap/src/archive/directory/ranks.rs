//! Reader of the ranks of an archive from their table entries.

use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;

use crate::archive::directory::Directory;
use crate::archive::layout::{MAX_COLUMNS, Section};
use crate::archive::tables::{ClaimedEntries, Tables};
use crate::archive::{ArchiveError, ArchivedRank, RankClass};
use crate::channel::{Arrival, Incoming, Outgoing, PortId, Slot, Tag};
use crate::column::{ActionCountChanges, Column, ColumnStorage};
use crate::measured::MeasuredTimes;
use crate::record::{ACTION_KINDS, Limits, MAX_AMOUNT_BITS, MAX_SLOTS, TableSizes};
use crate::trace::{ActionStorage, RankTrace};

/// Key of a [`RankClass`]: program, columns, whether these hold inserted computations, and table sizes.
type RankClassKey = (u64, (u64, u64), bool, TableSizes);

/// Reader of ranks, with the state that they share.
pub(super) struct RankReader<'a> {
    pub(super) directory: &'a Directory,
    pub(super) tables: Tables<'a>,
    /// Columns by their first entry and number; ranks share them.
    columns: FxHashMap<(u64, u64), Arc<[Column]>>,
    limits: FxHashMap<TableSizes, Arc<Limits>>,
    classes: FxHashMap<RankClassKey, Arc<RankClass>>,
    pub(super) claimed: ClaimedEntries,
}

/// An entry of the table of ranks.
pub(super) struct RankEntry {
    pub(super) program: u64,
    pub(super) side: u64,
    blocks: u64,
    pub(super) outgoing: (u64, u64),
    incoming: (u64, u64),
    pub(super) ports: u64,
    slots: u64,
    pub(super) pending: (u64, u64),
    pub(super) columns: (u64, u64),
    pub(super) communicators: (u64, u64),
    flags: u64,
}

impl RankEntry {
    pub(super) fn new(words: [u64; 11]) -> Self {
        let [
            program,
            blocks,
            outgoing,
            channels,
            incoming,
            places,
            pending,
            counts,
            columns,
            communicators,
            flags,
        ] = words;
        let halves = |word: u64| (word & 0xffff_ffff, word >> 32);
        let (program, side) = halves(program);
        let (out, into) = halves(channels);
        let (ports, slots) = halves(places);
        let (pending_len, columns_len) = halves(counts);
        let (communicators_len, flags) = halves(flags);
        Self {
            program,
            side,
            blocks,
            outgoing: (outgoing, out),
            incoming: (incoming, into),
            ports,
            slots,
            pending: (pending, pending_len),
            columns: (columns, columns_len),
            communicators: (communicators, communicators_len),
            flags,
        }
    }
}

/// Flag of a rank whose requests have names.
const HAS_NAMED_REQUESTS: u64 = 1;

/// Flag of a rank whose last two columns hold inserted computations.
const HAS_INSERTS: u64 = 2;

impl RankEntry {
    pub(super) fn has_inserts(
        &self,
        tables: &Tables<'_>,
        entry_id: (Section, u64),
    ) -> Result<bool, ArchiveError> {
        Ok(tables.check_at_most(entry_id, "flags", self.flags, HAS_NAMED_REQUESTS | HAS_INSERTS)?
            & HAS_INSERTS
            != 0)
    }
}

/// Returns the changes that the columns of a rank make to the actions of its program, and the resulting number of actions.
pub(super) fn count_actions(
    tables: &Tables<'_>,
    entry_id: (Section, u64),
    of_program: u64,
    columns: &[Column],
    inserts: bool,
) -> Result<(ActionCountChanges, u64), ArchiveError> {
    let changes = ActionCountChanges::of(columns, inserts).ok_or_else(|| tables.malformed(entry_id))?;
    tables.check_at_most(entry_id, "gaps of all columns", changes.absent, of_program)?;
    let actions = changes.apply(of_program).ok_or_else(|| tables.malformed(entry_id))?;
    Ok((changes, actions))
}

/// Reads a row of the table of columns.
pub(super) fn read_column(
    tables: &Tables<'_>,
    entry_id: (Section, u64),
    [head, word, absent]: [u64; 3],
) -> Result<Column, ArchiveError> {
    let len = head & ((1 << 56) - 1);
    let place = match tables.check_at_most(entry_id, "kind of a column", head >> 56, 1)? {
        0 => ColumnStorage::Constant(tables.check_at_most(
            entry_id,
            "bits of an amount",
            word,
            MAX_AMOUNT_BITS,
        )?),
        _ => ColumnStorage::Blocks(word),
    };
    tables.check_at_most(entry_id, "gaps of a column", absent, len)?;
    Ok(Column { len, absent, storage: place })
}

impl<'a> RankReader<'a> {
    pub(super) fn new(directory: &'a Directory) -> Self {
        Self {
            directory,
            tables: directory.tables(),
            columns: FxHashMap::default(),
            limits: FxHashMap::default(),
            classes: FxHashMap::default(),
            claimed: ClaimedEntries::default(),
        }
    }

    pub(super) fn read_rank(&mut self, rank: Rank, entry: &RankEntry) -> Result<RankTrace, ArchiveError> {
        let (directory, tables, entry_id) =
            (self.directory, self.tables, (Section::Ranks, u64::from(rank.get())));
        self.claimed.claim(&self.tables, Section::Outgoing, entry.outgoing.1, entry_id)?;
        self.claimed.claim(&self.tables, Section::Incoming, entry.incoming.1, entry_id)?;
        self.claimed.claim(&self.tables, Section::Pending, entry.pending.1, entry_id)?;
        tables.check_below(entry_id, "program", entry.program, directory.programs.len() as u64)?;
        tables.check_below(entry_id, "side table", entry.side, directory.side_tables.len() as u64)?;
        let program = Arc::clone(&directory.programs[entry.program as usize]);
        let communicators = self.read_communicators(rank, entry_id, entry)?;
        let (side, needs) = directory.side_tables[entry.side as usize].clone();
        let matches_by_time = needs.has_timing_dependent_matching;
        // Each slot is first filled by a record and each port belongs to a channel, so larger numbers are malformed.
        let max_slots = program.records.min(u64::from(MAX_SLOTS));
        let slots = tables.check_at_most(entry_id, "number of slots", entry.slots, max_slots)? as u32;
        let ports = tables.check_at_most(entry_id, "number of ports", entry.ports, entry.incoming.1)? as u32;
        let columns = self.read_columns(entry_id, entry.columns)?;
        let inserts = entry.has_inserts(&tables, entry_id)?;
        let (changes, actions) = count_actions(&tables, entry_id, program.actions, &columns, inserts)?;
        let own_columns = columns.len() - if inserts { 2 } else { 0 };
        tables.check_at_most(
            entry_id,
            "number of columns of the program",
            program.columns,
            own_columns as u64,
        )?;
        let outgoing = self.read_outgoing(entry_id, entry)?;
        let incoming = self.read_incoming(entry_id, entry)?;
        for (field, needed, len) in [
            ("slot of a call", needs.slots, entry.slots),
            ("outgoing channel of a call", needs.outgoing, outgoing.len() as u64),
            ("incoming channel of a call", needs.incoming, incoming.len() as u64),
            ("communicator of a call", needs.communicators, communicators.len() as u64),
        ] {
            tables.check_at_most(entry_id, field, needed, len)?;
        }
        if !needs.are_met_by(&communicators) {
            return Err(tables.malformed(entry_id));
        }
        let names_requests = entry.flags & HAS_NAMED_REQUESTS != 0;
        let sizes = TableSizes {
            outgoing: outgoing.len(),
            incoming: incoming.len(),
            slots,
            collectives: side.collectives.len(),
            send_recvs: side.send_recvs.len(),
            locations: side.locations.len(),
            calls: side.calls.len(),
        };
        let pending_at_end = self.read_pending(entry_id, entry)?;
        let times = self.read_times(rank)?;
        let limits = self.limits.entry(sizes).or_insert_with(|| Arc::new(Limits::new(&sizes)));
        let form = self.classes.entry((entry.program, entry.columns, inserts, sizes)).or_insert_with(|| {
            let (archive, limits) = (Arc::clone(&directory.archive), Arc::clone(limits));
            Arc::new(RankClass {
                archive,
                program,
                actions,
                changes,
                columns,
                program_columns: own_columns,
                limits,
            })
        });
        let body = ActionStorage::Archive(ArchivedRank {
            class: Arc::clone(form),
            rank,
            blocks_offset: entry.blocks,
            first_channels: [entry.outgoing.0, entry.incoming.0],
            channels: [outgoing.len() as u32, incoming.len() as u32],
        });
        Ok(RankTrace {
            storage: body,
            outgoing,
            incoming,
            ports,
            slots,
            pending_at_end,
            has_timing_dependent_matching: matches_by_time,
            has_named_requests: names_requests,
            communicators: communicators.into(),
            side_tables: side,
            measured_times: times,
        })
    }

    fn read_columns(
        &mut self,
        entry_id: (Section, u64),
        range: (u64, u64),
    ) -> Result<Arc<[Column]>, ArchiveError> {
        if let Some(columns) = self.columns.get(&range) {
            return Ok(Arc::clone(columns));
        }
        self.claimed.claim(&self.tables, Section::Columns, range.1, entry_id)?;
        self.tables.check_at_most(entry_id, "number of columns", range.1, MAX_COLUMNS)?;
        let rows = self.tables.rows::<3>(Section::Columns, range.0, range.1, entry_id)?;
        let columns =
            rows.map(|row| read_column(&self.tables, entry_id, row)).collect::<Result<Arc<[Column]>, _>>()?;
        self.columns.insert(range, Arc::clone(&columns));
        Ok(columns)
    }

    /// Reads the columns of measured times of a rank, if it has any.
    fn read_times(&mut self, rank: Rank) -> Result<Option<MeasuredTimes>, ArchiveError> {
        let entry_id = (Section::Times, u64::from(rank.get()));
        if self.tables.len(Section::Times) == 0 {
            return Ok(None);
        }
        let mut rows = self.tables.rows::<3>(Section::Times, entry_id.1, 1, entry_id)?;
        match rows.next().expect("the range of one row has a row") {
            [0, 0, 0] => Ok(None),
            [blocks, first, count] if count == ACTION_KINDS as u64 => {
                let columns = self.read_columns(entry_id, (first, count))?;
                Ok(Some(MeasuredTimes::Archive { columns, blocks }))
            }
            _ => Err(self.tables.malformed(entry_id)),
        }
    }

    fn read_outgoing(
        &self,
        entry_id: (Section, u64),
        entry: &RankEntry,
    ) -> Result<Box<[Outgoing]>, ArchiveError> {
        let rows = self.tables.rows::<4>(Section::Outgoing, entry.outgoing.0, entry.outgoing.1, entry_id)?;
        let channel = |[name, place, _, _]: [u64; 4]| {
            let (peer, tag) = self.peer_and_tag(entry_id, name, i32::MAX as u64)?;
            let (ports, has_mailbox) = self.directory.ports(peer)?;
            let arrival = match place & 0xffff_ffff {
                1 if has_mailbox => Arrival::AnySource,
                0 if !has_mailbox => Arrival::Unmatched,
                port @ 2.. if !has_mailbox => {
                    let port = self.tables.check_below(
                        entry_id,
                        "port of an outgoing channel",
                        port - 2,
                        ports.into(),
                    )?;
                    Arrival::Port(PortId::new(port as u32))
                }
                _ => return Err(self.tables.malformed(entry_id)),
            };
            let communicator = self.check_communicator(entry_id, place >> 32, entry)?;
            Ok(Outgoing::new(peer, Tag::new(tag as i32), communicator, arrival))
        };
        collect_exact(rows, channel)
    }

    fn read_incoming(
        &self,
        entry_id: (Section, u64),
        entry: &RankEntry,
    ) -> Result<Box<[Incoming]>, ArchiveError> {
        let rows = self.tables.rows::<3>(Section::Incoming, entry.incoming.0, entry.incoming.1, entry_id)?;
        let channel = |[name, place, _]: [u64; 3]| {
            let (peer, tag) = self.peer_and_tag(entry_id, name, i32::MAX as u64 + 1)?;
            let communicator = self.check_communicator(entry_id, place >> 32, entry)?;
            let port = place & 0xffff_ffff;
            let port = self.tables.check_below(entry_id, "port of an incoming channel", port, entry.ports)?;
            let tag = tag.checked_sub(1).map(|tag| Tag::new(tag as i32));
            Ok(Incoming { peer, tag, communicator, port: PortId::new(port as u32) })
        };
        collect_exact(rows, channel)
    }

    fn peer_and_tag(
        &self,
        entry_id: (Section, u64),
        word: u64,
        max_tag: u64,
    ) -> Result<(Rank, u64), ArchiveError> {
        let peer =
            self.tables.check_below(entry_id, "peer", word & 0xffff_ffff, self.directory.ranks().into())?;
        let tag = self.tables.check_at_most(entry_id, "tag", word >> 32, max_tag)?;
        Ok((Rank::new(peer as u32), tag))
    }

    fn read_pending(&self, entry_id: (Section, u64), entry: &RankEntry) -> Result<Box<[Slot]>, ArchiveError> {
        let rows = self.tables.rows::<1>(Section::Pending, entry.pending.0, entry.pending.1, entry_id)?;
        let slot = |[slot]: [u64; 1]| {
            let slot = self.tables.check_below(entry_id, "slot of a pending request", slot, entry.slots)?;
            Ok(Slot::new(slot as u32))
        };
        rows.map(slot).collect()
    }
}

/// Collects rows with exact capacity: there may be millions of ranks.
fn collect_exact<T, U>(
    rows: impl ExactSizeIterator<Item = T>,
    make: impl Fn(T) -> Result<U, ArchiveError>,
) -> Result<Box<[U]>, ArchiveError> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        all.push(make(row)?);
    }
    Ok(all.into())
}
