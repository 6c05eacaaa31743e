//! Reader of the ranks of an archive from their table entries.

use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;

use crate::archive::directory::Directory;
use crate::archive::layout::{MAX_COLUMNS, Section};
use crate::archive::tables::{Tables, Taken};
use crate::archive::{ArchiveError, ArchivedRank, Form};
use crate::channel::{Arrival, Incoming, Outgoing, PortId, Slot, Tag};
use crate::column::{Changes, Column, Place};
use crate::measured::Times;
use crate::record::{ACTION_KINDS, Limits, MAX_AMOUNT_BITS, MAX_SLOTS, TableSizes};
use crate::trace::{Body, RankTrace};

/// Key of a [`RankClass`]: program, columns, whether these hold inserted computations, and table sizes.
type FormKey = (u64, (u64, u64), bool, TableSizes);

/// Reader of ranks, with the state that they share.
pub(super) struct Reading<'a> {
    pub(super) directory: &'a Directory,
    pub(super) tables: Tables<'a>,
    /// Columns by their first entry and number; ranks share them.
    columns: FxHashMap<(u64, u64), Arc<[Column]>>,
    limits: FxHashMap<TableSizes, Arc<Limits>>,
    forms: FxHashMap<FormKey, Arc<Form>>,
    pub(super) taken: Taken,
}

/// An entry of the table of ranks.
pub(super) struct Entry {
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

impl Entry {
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
const NAMES_REQUESTS: u64 = 1;

/// Flag of a rank whose last two columns hold inserted computations.
const INSERTS: u64 = 2;

impl Entry {
    pub(super) fn inserts(&self, tables: &Tables<'_>, named: (Section, u64)) -> Result<bool, ArchiveError> {
        Ok(tables.limit(named, "flags", self.flags, NAMES_REQUESTS | INSERTS)? & INSERTS != 0)
    }
}

/// Returns the changes that the columns of a rank make to the actions of its program, and the resulting number of actions.
pub(super) fn actions(
    tables: &Tables<'_>,
    named: (Section, u64),
    of_program: u64,
    columns: &[Column],
    inserts: bool,
) -> Result<(Changes, u64), ArchiveError> {
    let changes = Changes::of(columns, inserts).ok_or_else(|| tables.malformed(named))?;
    tables.limit(named, "gaps of all columns", changes.absent, of_program)?;
    let actions = changes.apply(of_program).ok_or_else(|| tables.malformed(named))?;
    Ok((changes, actions))
}

/// Reads a row of the table of columns.
pub(super) fn column(
    tables: &Tables<'_>,
    named: (Section, u64),
    [head, word, absent]: [u64; 3],
) -> Result<Column, ArchiveError> {
    let len = head & ((1 << 56) - 1);
    let place = match tables.limit(named, "kind of a column", head >> 56, 1)? {
        0 => Place::Constant(tables.limit(named, "bits of an amount", word, MAX_AMOUNT_BITS)?),
        _ => Place::Blocks(word),
    };
    tables.limit(named, "gaps of a column", absent, len)?;
    Ok(Column { len, absent, place })
}

impl<'a> Reading<'a> {
    pub(super) fn new(directory: &'a Directory) -> Self {
        Self {
            directory,
            tables: directory.tables(),
            columns: FxHashMap::default(),
            limits: FxHashMap::default(),
            forms: FxHashMap::default(),
            taken: Taken::default(),
        }
    }

    pub(super) fn rank(&mut self, rank: Rank, entry: &Entry) -> Result<RankTrace, ArchiveError> {
        let (directory, tables, named) =
            (self.directory, self.tables, (Section::Ranks, u64::from(rank.get())));
        self.taken.add(&self.tables, Section::Outgoing, entry.outgoing.1, named)?;
        self.taken.add(&self.tables, Section::Incoming, entry.incoming.1, named)?;
        self.taken.add(&self.tables, Section::Pending, entry.pending.1, named)?;
        tables.below(named, "program", entry.program, directory.programs.len() as u64)?;
        tables.below(named, "side table", entry.side, directory.sides.len() as u64)?;
        let program = Arc::clone(&directory.programs[entry.program as usize]);
        let communicators = self.communicators(rank, named, entry)?;
        let (side, needs) = directory.sides[entry.side as usize].clone();
        let matches_by_time = needs.matches_by_time;
        // Each slot is first filled by a record and each port belongs to a channel, so larger numbers are malformed.
        let max_slots = program.records.min(u64::from(MAX_SLOTS));
        let slots = tables.limit(named, "number of slots", entry.slots, max_slots)? as u32;
        let ports = tables.limit(named, "number of ports", entry.ports, entry.incoming.1)? as u32;
        let columns = self.columns(named, entry.columns)?;
        let inserts = entry.inserts(&tables, named)?;
        let (changes, actions) = actions(&tables, named, program.actions, &columns, inserts)?;
        let own_columns = columns.len() - if inserts { 2 } else { 0 };
        tables.limit(named, "number of columns of the program", program.columns, own_columns as u64)?;
        let outgoing = self.outgoing(named, entry)?;
        let incoming = self.incoming(named, entry)?;
        for (field, needed, len) in [
            ("slot of a call", needs.slots, entry.slots),
            ("outgoing channel of a call", needs.outgoing, outgoing.len() as u64),
            ("incoming channel of a call", needs.incoming, incoming.len() as u64),
            ("communicator of a call", needs.communicators, communicators.len() as u64),
        ] {
            tables.limit(named, field, needed, len)?;
        }
        if !needs.fit(&communicators) {
            return Err(tables.malformed(named));
        }
        let names_requests = entry.flags & NAMES_REQUESTS != 0;
        let sizes = TableSizes {
            outgoing: outgoing.len(),
            incoming: incoming.len(),
            slots,
            collectives: side.collectives.len(),
            send_recvs: side.send_recvs.len(),
            locations: side.locations.len(),
            calls: side.calls.len(),
        };
        let pending_at_end = self.pending(named, entry)?;
        let times = self.times(rank)?;
        let limits = self.limits.entry(sizes).or_insert_with(|| Arc::new(Limits::new(&sizes)));
        let form = self.forms.entry((entry.program, entry.columns, inserts, sizes)).or_insert_with(|| {
            let (archive, limits) = (Arc::clone(&directory.archive), Arc::clone(limits));
            Arc::new(Form { archive, program, actions, changes, columns, own_columns, limits })
        });
        let body = Body::Archive(ArchivedRank {
            form: Arc::clone(form),
            rank,
            blocks: entry.blocks,
            first_channels: [entry.outgoing.0, entry.incoming.0],
            channels: [outgoing.len() as u32, incoming.len() as u32],
        });
        Ok(RankTrace {
            body,
            outgoing,
            incoming,
            ports,
            slots,
            pending_at_end,
            matches_by_time,
            names_requests,
            communicators: communicators.into(),
            side,
            times,
        })
    }

    fn columns(&mut self, named: (Section, u64), range: (u64, u64)) -> Result<Arc<[Column]>, ArchiveError> {
        if let Some(columns) = self.columns.get(&range) {
            return Ok(Arc::clone(columns));
        }
        self.taken.add(&self.tables, Section::Columns, range.1, named)?;
        self.tables.limit(named, "number of columns", range.1, MAX_COLUMNS)?;
        let rows = self.tables.rows::<3>(Section::Columns, range.0, range.1, named)?;
        let columns =
            rows.map(|row| column(&self.tables, named, row)).collect::<Result<Arc<[Column]>, _>>()?;
        self.columns.insert(range, Arc::clone(&columns));
        Ok(columns)
    }

    /// Reads the columns of measured times of a rank, if it has any.
    fn times(&mut self, rank: Rank) -> Result<Option<Times>, ArchiveError> {
        let named = (Section::Times, u64::from(rank.get()));
        if self.tables.len(Section::Times) == 0 {
            return Ok(None);
        }
        let mut rows = self.tables.rows::<3>(Section::Times, named.1, 1, named)?;
        match rows.next().expect("the range of one row has a row") {
            [0, 0, 0] => Ok(None),
            [blocks, first, count] if count == ACTION_KINDS as u64 => {
                let columns = self.columns(named, (first, count))?;
                Ok(Some(Times::Archive { columns, blocks }))
            }
            _ => Err(self.tables.malformed(named)),
        }
    }

    fn outgoing(&self, named: (Section, u64), entry: &Entry) -> Result<Box<[Outgoing]>, ArchiveError> {
        let rows = self.tables.rows::<4>(Section::Outgoing, entry.outgoing.0, entry.outgoing.1, named)?;
        let channel = |[name, place, _, _]: [u64; 4]| {
            let (peer, tag) = self.peer_and_tag(named, name, i32::MAX as u64)?;
            let (ports, has_mailbox) = self.directory.ports(peer)?;
            let arrival = match place & 0xffff_ffff {
                1 if has_mailbox => Arrival::Mailbox,
                0 if !has_mailbox => Arrival::Nowhere,
                port @ 2.. if !has_mailbox => {
                    let port =
                        self.tables.below(named, "port of an outgoing channel", port - 2, ports.into())?;
                    Arrival::Port(PortId::new(port as u32))
                }
                _ => return Err(self.tables.malformed(named)),
            };
            let communicator = self.communicator(named, place >> 32, entry)?;
            Ok(Outgoing::new(peer, Tag::new(tag as i32), communicator, arrival))
        };
        exact(rows, channel)
    }

    fn incoming(&self, named: (Section, u64), entry: &Entry) -> Result<Box<[Incoming]>, ArchiveError> {
        let rows = self.tables.rows::<3>(Section::Incoming, entry.incoming.0, entry.incoming.1, named)?;
        let channel = |[name, place, _]: [u64; 3]| {
            let (peer, tag) = self.peer_and_tag(named, name, i32::MAX as u64 + 1)?;
            let communicator = self.communicator(named, place >> 32, entry)?;
            let port = place & 0xffff_ffff;
            let port = self.tables.below(named, "port of an incoming channel", port, entry.ports)?;
            let tag = tag.checked_sub(1).map(|tag| Tag::new(tag as i32));
            Ok(Incoming { peer, tag, communicator, port: PortId::new(port as u32) })
        };
        exact(rows, channel)
    }

    fn peer_and_tag(
        &self,
        named: (Section, u64),
        word: u64,
        max_tag: u64,
    ) -> Result<(Rank, u64), ArchiveError> {
        let peer = self.tables.below(named, "peer", word & 0xffff_ffff, self.directory.ranks().into())?;
        let tag = self.tables.limit(named, "tag", word >> 32, max_tag)?;
        Ok((Rank::new(peer as u32), tag))
    }

    fn pending(&self, named: (Section, u64), entry: &Entry) -> Result<Box<[Slot]>, ArchiveError> {
        let rows = self.tables.rows::<1>(Section::Pending, entry.pending.0, entry.pending.1, named)?;
        let slot = |[slot]: [u64; 1]| {
            let slot = self.tables.below(named, "slot of a pending request", slot, entry.slots)?;
            Ok(Slot::new(slot as u32))
        };
        rows.map(slot).collect()
    }
}

/// Collects rows with exact capacity: there may be millions of ranks.
fn exact<T, U>(
    rows: impl ExactSizeIterator<Item = T>,
    make: impl Fn(T) -> Result<U, ArchiveError>,
) -> Result<Box<[U]>, ArchiveError> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        all.push(make(row)?);
    }
    Ok(all.into())
}
