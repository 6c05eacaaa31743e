//! Reader of the ranks of an archive from their table entries.

use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;

use crate::archive::directory::Directory;
use crate::archive::layout::{MAX_COLUMNS, Section};
use crate::archive::rows::{
    ArchivedColumnRow, ArchivedIncomingRow, ArchivedOutgoingRow, ArchivedPendingRow, ArchivedRankRow,
    ColumnRow, HAS_INSERTS, HAS_NAMED_REQUESTS, IncomingRow, OutgoingRow, PendingRow, Span, TimesRow,
};
use crate::archive::tables::{ClaimedEntries, Tables};
use crate::archive::{ArchiveError, ArchivedRank, RankClass};
use crate::channel::{Arrival, Incoming, Outgoing, PortId, Slot, Tag};
use crate::column::{ActionCountChanges, Column, ColumnStorage};
use crate::measured::MeasuredTimes;
use crate::record::{ACTION_KINDS, Limits, MAX_AMOUNT_BITS, MAX_SLOTS, TableSizes};
use crate::trace::{ActionStorage, RankTrace};

/// Key of a [`RankClass`]: program, columns, whether these hold inserted computations, and table sizes.
type RankClassKey = (usize, Span, bool, TableSizes);

/// Reader of ranks, with the state that they share.
pub(super) struct RankReader<'a> {
    pub(super) directory: &'a Directory,
    pub(super) tables: &'a Tables,
    /// Columns by their first entry and number; ranks share them.
    columns: FxHashMap<Span, Arc<[Column]>>,
    limits: FxHashMap<TableSizes, Arc<Limits>>,
    classes: FxHashMap<RankClassKey, Arc<RankClass>>,
    pub(super) claimed: ClaimedEntries,
}

/// Returns whether the last two columns of a rank hold inserted computations.
pub(super) fn has_inserts(
    tables: &Tables,
    entry_id: (Section, u64),
    entry: &ArchivedRankRow,
) -> Result<bool, ArchiveError> {
    let flags = entry.flags.to_native();
    Ok(tables.check_at_most(entry_id, "flags", flags, HAS_NAMED_REQUESTS | HAS_INSERTS)? & HAS_INSERTS != 0)
}

/// Returns the changes that the columns of a rank make to the actions of its program, and the resulting number of actions.
pub(super) fn count_actions(
    tables: &Tables,
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

/// Reads columns.
pub(super) fn read_columns(
    tables: &Tables,
    entry_id: (Section, u64),
    span: Span,
) -> Result<Arc<[Column]>, ArchiveError> {
    let rows = tables.rows::<ColumnRow>(span, entry_id)?.iter();
    let column = |row: &ArchivedColumnRow| {
        let (len, absent, word) = (row.len.to_native(), row.absent.to_native(), row.word.to_native());
        let storage = match tables.check_at_most(entry_id, "kind of a column", row.kind.to_native(), 1)? {
            0 => ColumnStorage::Constant(tables.check_at_most(
                entry_id,
                "bits of an amount",
                word,
                MAX_AMOUNT_BITS,
            )?),
            _ => ColumnStorage::Blocks(word),
        };
        tables.check_at_most(entry_id, "gaps of a column", absent, len)?;
        Ok(Column { len, absent, storage })
    };
    rows.map(column).collect()
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

    pub(super) fn read_rank(
        &mut self,
        rank: Rank,
        entry: &ArchivedRankRow,
    ) -> Result<RankTrace, ArchiveError> {
        let (directory, tables, entry_id) =
            (self.directory, self.tables, (Section::Ranks, u64::from(rank.get())));
        let (outgoing, incoming) = (entry.outgoing.to_native(), entry.incoming.to_native());
        self.claimed.claim::<OutgoingRow>(tables, outgoing.count, entry_id)?;
        self.claimed.claim::<IncomingRow>(tables, incoming.count, entry_id)?;
        let program_index = directory.program_index(entry_id, entry)?;
        let program = Arc::clone(&directory.programs[program_index]);
        let communicators = self.read_communicators(rank, entry_id, entry)?;
        let (side, needs) = directory.side_table(entry.side_table.to_native().into())?.clone();
        let matches_by_time = needs.has_timing_dependent_matching;
        // Each slot is first filled by a record and each port belongs to a channel, so larger numbers are malformed.
        let max_slots = program.records.min(u64::from(MAX_SLOTS));
        let (slots, ports) = (entry.slots.to_native(), entry.ports.to_native());
        tables.check_at_most(entry_id, "number of slots", slots.into(), max_slots)?;
        tables.check_at_most(entry_id, "number of ports", ports.into(), incoming.count)?;
        let columns = self.shared_columns(entry_id, entry.columns.to_native())?;
        let inserts = has_inserts(tables, entry_id, entry)?;
        let (changes, actions) = count_actions(tables, entry_id, program.actions, &columns, inserts)?;
        let own_columns = columns.len() - if inserts { 2 } else { 0 };
        tables.check_at_most(
            entry_id,
            "number of columns of the program",
            program.columns,
            own_columns as u64,
        )?;
        for (field, needed, len) in [
            ("slot of a call", needs.slots, slots.into()),
            ("outgoing channel of a call", needs.outgoing, outgoing.count),
            ("incoming channel of a call", needs.incoming, incoming.count),
            ("communicator of a call", needs.communicators, communicators.len() as u64),
        ] {
            tables.check_at_most(entry_id, field, needed, len)?;
        }
        if !needs.are_met_by(&communicators) {
            return Err(tables.malformed(entry_id));
        }
        let names_requests = entry.flags.to_native() & HAS_NAMED_REQUESTS != 0;
        let sizes = TableSizes {
            outgoing: outgoing.count as usize,
            incoming: incoming.count as usize,
            slots,
            collectives: side.collectives.len(),
            send_recvs: side.send_recvs.len(),
            locations: side.locations.len(),
            calls: side.calls.len(),
        };
        let pending_at_end = self.read_pending(entry_id, entry)?;
        let times = self.read_times(rank)?;
        let limits = self.limits.entry(sizes).or_insert_with(|| Arc::new(Limits::new(&sizes)));
        let form = self
            .classes
            .entry((program_index, entry.columns.to_native(), inserts, sizes))
            .or_insert_with(|| {
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
            blocks_offset: entry.blocks_offset.to_native(),
            outgoing,
            incoming,
        });
        Ok(RankTrace {
            storage: body,
            outgoing: self.read_outgoing(entry_id, entry)?,
            incoming: self.read_incoming(entry_id, entry)?,
            ports,
            slots,
            pending_at_end,
            has_timing_dependent_matching: matches_by_time,
            has_named_requests: names_requests,
            communicators: communicators.into(),
            side_tables: side,
            measured_times: times,
            graph: None,
            growing: None,
        })
    }

    /// Reads columns, or returns them if they were read before.
    fn shared_columns(
        &mut self,
        entry_id: (Section, u64),
        span: Span,
    ) -> Result<Arc<[Column]>, ArchiveError> {
        if let Some(columns) = self.columns.get(&span) {
            return Ok(Arc::clone(columns));
        }
        self.claimed.claim::<ColumnRow>(self.tables, span.count, entry_id)?;
        self.tables.check_at_most(entry_id, "number of columns", span.count, MAX_COLUMNS)?;
        let columns = read_columns(self.tables, entry_id, span)?;
        self.columns.insert(span, Arc::clone(&columns));
        Ok(columns)
    }

    /// Reads the columns of measured times of a rank, if it has any.
    fn read_times(&mut self, rank: Rank) -> Result<Option<MeasuredTimes>, ArchiveError> {
        let entry_id = (Section::Times, u64::from(rank.get()));
        if self.tables.len::<TimesRow>()? == 0 {
            return Ok(None);
        }
        let row = &self.tables.rows::<TimesRow>(Span { first: entry_id.1, count: 1 }, entry_id)?[0];
        match (row.blocks_offset.to_native(), row.columns.to_native()) {
            (0, Span { first: 0, count: 0 }) => Ok(None),
            (blocks, columns) if columns.count == ACTION_KINDS as u64 => {
                let columns = self.shared_columns(entry_id, columns)?;
                Ok(Some(MeasuredTimes::Archive { columns, blocks }))
            }
            _ => Err(self.tables.malformed(entry_id)),
        }
    }

    fn read_outgoing(
        &self,
        entry_id: (Section, u64),
        entry: &ArchivedRankRow,
    ) -> Result<Box<[Outgoing]>, ArchiveError> {
        let rows = self.tables.rows::<OutgoingRow>(entry.outgoing.to_native(), entry_id)?;
        let channel = |row: &ArchivedOutgoingRow| {
            let peer = self.check_peer(entry_id, row.peer.to_native())?;
            let tag = self.check_tag(entry_id, row.tag.to_native(), i32::MAX as u32)?;
            let (ports, has_mailbox) = self.directory.ports(peer)?;
            let arrival = match row.arrival.to_native() {
                1 if has_mailbox => Arrival::AnySource,
                0 if !has_mailbox => Arrival::Unmatched,
                port @ 2.. if !has_mailbox => {
                    let (port, ports) = (port - 2, ports.into());
                    self.tables.check_below(entry_id, "port of an outgoing channel", port.into(), ports)?;
                    Arrival::Port(PortId::new(port))
                }
                _ => return Err(self.tables.malformed(entry_id)),
            };
            let communicator = self.check_communicator(entry_id, row.communicator.to_native(), entry)?;
            Ok(Outgoing::new(peer, Tag::new(tag as i32), communicator, arrival))
        };
        collect_exact(rows, channel)
    }

    fn read_incoming(
        &self,
        entry_id: (Section, u64),
        entry: &ArchivedRankRow,
    ) -> Result<Box<[Incoming]>, ArchiveError> {
        let rows = self.tables.rows::<IncomingRow>(entry.incoming.to_native(), entry_id)?;
        let channel = |row: &ArchivedIncomingRow| {
            let peer = self.check_peer(entry_id, row.peer.to_native())?;
            let tag = self.check_tag(entry_id, row.tag.to_native(), i32::MAX as u32 + 1)?;
            let communicator = self.check_communicator(entry_id, row.communicator.to_native(), entry)?;
            let (port, ports) = (row.port.to_native(), entry.ports.to_native().into());
            self.tables.check_below(entry_id, "port of an incoming channel", port.into(), ports)?;
            let tag = tag.checked_sub(1).map(|tag| Tag::new(tag as i32));
            Ok(Incoming { peer, tag, communicator, port: PortId::new(port) })
        };
        collect_exact(rows, channel)
    }

    fn check_peer(&self, entry_id: (Section, u64), peer: u32) -> Result<Rank, ArchiveError> {
        self.tables.check_below(entry_id, "peer", peer.into(), self.directory.ranks().into())?;
        Ok(Rank::new(peer))
    }

    fn check_tag(&self, entry_id: (Section, u64), tag: u32, limit: u32) -> Result<u32, ArchiveError> {
        self.tables.check_at_most(entry_id, "tag", tag.into(), limit.into())?;
        Ok(tag)
    }

    fn read_pending(
        &mut self,
        entry_id: (Section, u64),
        entry: &ArchivedRankRow,
    ) -> Result<Box<[Slot]>, ArchiveError> {
        let span = entry.pending.to_native();
        self.claimed.claim::<PendingRow>(self.tables, span.count, entry_id)?;
        let rows = self.tables.rows::<PendingRow>(span, entry_id)?.iter();
        let slot = |row: &ArchivedPendingRow| {
            let (slot, slots) = (row.slot.to_native(), entry.slots.to_native().into());
            self.tables.check_below(entry_id, "slot of a pending request", slot.into(), slots)?;
            Ok(Slot::new(slot))
        };
        rows.map(slot).collect()
    }
}

/// Makes values of rows with exact capacity: there may be millions of ranks.
fn collect_exact<T, U>(
    rows: &[T],
    make: impl Fn(&T) -> Result<U, ArchiveError>,
) -> Result<Box<[U]>, ArchiveError> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        all.push(make(row)?);
    }
    Ok(all.into())
}
