//! Change of messages between two ranks: folded programs stay folded.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;

use crate::action::{Action, SendRecv};
use crate::archive::amounts::possible_changes;
use crate::archive::convert::{encode_error, in_order};
use crate::archive::cut::{RemovedRequests, damaged, encode_records, filter_records, folded_rank};
use crate::archive::encode::Encoded;
use crate::archive::{ArchiveWriter, ArchivedRank, ConvertOptions, Damage, MAX_DEPTH, Summary, WriteError};
use crate::builder::LinkableRank;
use crate::call::{Call, CallId, Indexed, SendMode, Source, Visit};
use crate::channel::{InIdx, OutIdx, Slot, Tag};
use crate::communicator::{CommId, CommIdx};
use crate::error::TraceError;
use crate::record::{CALL, IRECV, ISEND, LOOP_BEGIN, LOOP_END, RECV, Record, SEND, SEND_RECV};
use crate::side_tables::SideTables;
use crate::trace::{RankTrace, Trace};

/// Largest size of a message \[B\].
const MAX_BYTES: u64 = 1 << 48;

/// A message as its sender posts it.
#[derive(Clone, Copy, Debug)]
pub struct SentMessage {
    /// Name of the action in a trace.
    pub call: &'static str,
    /// The destination.
    pub to: Rank,
    /// The tag.
    pub tag: Tag,
    /// The communicator.
    pub communicator: CommId,
    /// The size.
    pub bytes: Bytes,
}

/// A change of messages that depends on the message, its sender, and the last call site before it.
pub trait MessageChange: Sync {
    /// Returns whether messages of a rank change at a call site, `file:line`, or before the first one.
    fn is_here(&self, rank: Rank, site: Option<&str>) -> bool;

    /// Returns whether a message changes, at such a place.
    fn selects(&self, message: &SentMessage) -> bool;

    /// Returns the new size of a message or of its buffer; `None` if the message disappears.
    fn size(&self, bytes: Bytes) -> Option<Bytes> {
        Some(bytes)
    }

    /// Returns the mode that sends get in place of a change of their size; combined sends and receives have none.
    fn mode(&self) -> Option<SendMode> {
        None
    }
}

/// Writes an archive of a folded trace with changed messages, in its folded form; returns `None` where that is not possible, and
/// nothing is written: if the trace has measured times or ranks that are not folded, if calls have messages or name requests, if
/// receives take any source or tag, if a size becomes illegal, or if a place, or the receives of a channel, do not tell which messages
/// change.
///
/// Messages that change disappear with their receives, and with waits and tests for these requests, or both sides have another size.
/// If some messages of a channel change and others do not, their sizes tell which: as many receives as messages have each size, so
/// that in a program without truncated messages each receive has the size of its message.
///
/// The cost is linear in the length of the programs of all ranks, not in the number of actions.
///
/// # Errors
/// Fails if the trace is damaged or the archive cannot be written.
pub fn write_with_messages(
    trace: &Trace,
    output: &Path,
    change: &dyn MessageChange,
    options: &ConvertOptions<'_>,
) -> Result<Option<Summary>, WriteError> {
    let Some(channels) = Channels::find(trace, change)? else { return Ok(None) };
    let mut writer = ArchiveWriter::for_conversion(output, trace.ranks(), trace.provenance(), options)?;
    let prepare = |rank| {
        let calls = RefCell::default();
        let changed = ChangedMessages { channels: &channels, change, rank, trace: trace.rank(rank), calls };
        changed.encode()
    };
    in_order(options.load.threads, trace.ranks(), prepare, |rank, (encoded, linkable)| {
        writer.write_as_encoded(rank, encoded, linkable)
    })?;
    trace.integrity().map_err(TraceError::from)?;
    Ok(Some(writer.finish()?))
}

/// Source, destination, communicator and tag.
type Key = (Rank, Rank, CommId, Tag);

/// The messages of a channel by size: their number, and whether they change.
#[derive(Debug, Default)]
struct Sizes(FxHashMap<u64, (u128, bool)>);

impl Sizes {
    /// Returns whether all messages of the channel change, or none does; `None` if some do.
    fn uniform(&self) -> Option<bool> {
        let mut all = self.0.values().map(|(_, is_changed)| *is_changed);
        let first = all.next().unwrap_or_default();
        all.all(|other| other == first).then_some(first)
    }

    fn is_changed(&self, bytes: u64) -> bool {
        self.uniform().unwrap_or_else(|| self.0.get(&bytes).is_some_and(|(_, is_changed)| *is_changed))
    }
}

/// All messages of a trace.
#[derive(Debug, Default)]
struct Channels(FxHashMap<Key, Sizes>);

impl Channels {
    /// Finds the messages that change; `None` if their places, sizes and receives do not tell, or none does.
    fn find(trace: &Trace, change: &dyn MessageChange) -> Result<Option<Self>, WriteError> {
        if trace.has_measured_times() {
            return Ok(None);
        }
        let mut channels = Self::default();
        let ranks = || (0..trace.ranks()).map(Rank::new);
        for rank in ranks() {
            let of_rank = trace.rank(rank);
            let Some(body) = folded_rank(of_rank) else { return Ok(None) };
            let is_known = channels.add_sends(of_rank, body, rank, change);
            if !is_known.map_err(|damage| damaged(rank, of_rank, damage))? {
                return Ok(None);
            }
        }
        // Receives have no mode.
        for rank in ranks().filter(|_| change.mode().is_none()) {
            let of_rank = trace.rank(rank);
            let Some(body) = folded_rank(of_rank) else { return Ok(None) };
            let is_known = channels.fit_receives(of_rank, body, rank, change);
            if !is_known.map_err(|damage| damaged(rank, of_rank, damage))? {
                return Ok(None);
            }
        }
        let is_any = channels.0.values().any(|sizes| sizes.0.values().any(|(_, is_changed)| *is_changed));
        Ok(is_any.then_some(channels))
    }

    fn add_sends(
        &mut self,
        trace: &RankTrace,
        body: &ArchivedRank,
        rank: Rank,
        change: &dyn MessageChange,
    ) -> Result<bool, Damage> {
        if trace.side_tables.calls.iter().any(|call| !is_plain(call)) {
            return Ok(false);
        }
        let records = body.records().collect::<Result<Vec<_>, _>>()?;
        let here = |site: Option<&str>| u64::from(change.is_here(rank, site));
        let at_sites: Vec<u64> = trace.side_tables.locations.iter().map(|site| here(Some(site))).collect();
        let places = possible_changes(&records, here(None), &at_sites, |kind| {
            matches!(kind, SEND | ISEND | SEND_RECV)
        })?;
        for ((record, place), count) in records.iter().zip(places).zip(multiplicities(&records)?) {
            let sent = match record.kind() {
                SEND => Some(("send", OutIdx::new(record.index()), record.amount())),
                ISEND => Some(("isend", OutIdx::new(record.index()), record.amount())),
                SEND_RECV => send_recv(trace, *record)?
                    .and_then(|both| Some(("sendRecv", both.to?, both.send_bytes.get()))),
                _ => None,
            };
            let Some((call, to, bytes)) = sent else { continue };
            let channel = trace.outgoing.get(to.index()).ok_or(Damage::of(*record))?;
            let communicator = communicator(trace, channel.communicator, *record)?;
            let message = SentMessage {
                call,
                to: channel.peer,
                tag: channel.tag,
                communicator,
                bytes: Bytes::new(bytes),
            };
            let is_changed = match (change.selects(&message), &place[..]) {
                (false, _) => false,
                (true, [place]) => *place == 1,
                (true, _) => return Ok(false),
            };
            if is_changed && record.kind() == SEND_RECV && change.mode().is_some() {
                return Ok(false);
            }
            let sizes = self.0.entry((rank, channel.peer, communicator, channel.tag)).or_default();
            let (sum, known) = sizes.0.entry(bytes).or_insert((0, is_changed));
            *sum += count;
            if *known != is_changed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether the receives of a rank tell which messages they take, and no buffer becomes too large.
    fn fit_receives(
        &self,
        trace: &RankTrace,
        body: &ArchivedRank,
        rank: Rank,
        change: &dyn MessageChange,
    ) -> Result<bool, Damage> {
        if trace.incoming.iter().any(|channel| channel.tag.is_none()) {
            return Ok(false);
        }
        let records = body.records().collect::<Result<Vec<_>, _>>()?;
        let mut buffers: FxHashMap<(u32, u64), u128> = FxHashMap::default();
        for (record, count) in records.iter().zip(multiplicities(&records)?) {
            let received = match record.kind() {
                RECV | IRECV => Some((record.index(), record.amount())),
                SEND_RECV => send_recv(trace, *record)?
                    .and_then(|both| Some((both.from?.get(), both.recv_bytes.get()))),
                _ => None,
            };
            if let Some(received) = received {
                *buffers.entry(received).or_default() += count;
            }
        }
        for index in 0..trace.incoming.len() as u32 {
            let Some(sizes) = self.incoming(trace, rank, InIdx::new(index)) else { continue };
            let of_channel = buffers.keys().filter(|(channel, _)| *channel == index).map(|(_, bytes)| *bytes);
            let mut changed =
                of_channel.chain(sizes.0.keys().copied()).filter(|bytes| sizes.is_changed(*bytes));
            let is_legal = |bytes: Bytes| bytes.get() <= MAX_BYTES;
            if !changed.all(|bytes| change.size(Bytes::new(bytes)).is_none_or(is_legal)) {
                return Ok(false);
            }
            if sizes.uniform().is_some() {
                continue;
            }
            let number = buffers.keys().filter(|(channel, _)| *channel == index).count();
            let is_equal =
                |(bytes, (count, _)): (&u64, &(u128, bool))| buffers.get(&(index, *bytes)) == Some(count);
            if number != sizes.0.len() || !sizes.0.iter().all(is_equal) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn incoming(&self, trace: &RankTrace, rank: Rank, from: InIdx) -> Option<&Sizes> {
        let channel = trace.incoming.get(from.index())?;
        let communicator = trace.communicators.get(channel.communicator.index())?.id;
        self.0.get(&(channel.peer, rank, communicator, channel.tag?))
    }

    fn outgoing(&self, trace: &RankTrace, rank: Rank, to: OutIdx) -> Option<&Sizes> {
        let channel = trace.outgoing.get(to.index())?;
        let communicator = trace.communicators.get(channel.communicator.index())?.id;
        self.0.get(&(rank, channel.peer, communicator, channel.tag))
    }
}

/// Returns whether a call has no messages, and names no requests but its own.
fn is_plain(call: &Call) -> bool {
    let mut messages = Messages(false);
    call.visit(&mut messages);
    !messages.0 && !call.refers_to_requests()
}

/// Finds whether a call sends or receives.
struct Messages(bool);

impl<'a> Visit<'a, Indexed> for Messages {
    fn destination(&mut self, _: &'a Option<OutIdx>) {
        self.0 = true;
    }

    fn source(&mut self, _: &'a Source) {
        self.0 = true;
    }
}

fn communicator(trace: &RankTrace, index: CommIdx, record: Record) -> Result<CommId, Damage> {
    Ok(trace.communicators.get(index.index()).ok_or(Damage::of(record))?.id)
}

fn send_recv(trace: &RankTrace, record: Record) -> Result<Option<SendRecv>, Damage> {
    let both = trace.side_tables.send_recvs.get(record.index() as usize).ok_or(Damage::of(record))?;
    Ok(Some(*both))
}

/// Returns how often each record is executed.
pub(super) fn multiplicities(records: &[Record]) -> Result<Vec<u128>, Damage> {
    let bad_loop = Damage::Loop { limit: MAX_DEPTH as u64 };
    let (mut now, mut outer, mut all) = (1_u128, Vec::new(), Vec::with_capacity(records.len()));
    for record in records {
        match record.kind() {
            LOOP_BEGIN => {
                outer.push(now);
                now = now.saturating_mul(record.amount().into());
            }
            LOOP_END => now = outer.pop().ok_or(bad_loop)?,
            _ => {}
        }
        all.push(now);
    }
    Ok(all)
}

/// A rank with changed messages.
struct ChangedMessages<'a> {
    channels: &'a Channels,
    change: &'a dyn MessageChange,
    rank: Rank,
    trace: &'a RankTrace,
    /// New calls with their places behind those of the rank.
    calls: RefCell<FxHashMap<Call, u32>>,
}

/// A side of a message: its size; `None` if it disappears.
type Side = Option<Bytes>;

impl ChangedMessages<'_> {
    /// Returns whether a message that the rank sends changes.
    fn changes(&self, to: OutIdx, bytes: Bytes) -> bool {
        let sizes = self.channels.outgoing(self.trace, self.rank, to);
        sizes.is_some_and(|sizes| match self.change.mode() {
            Some(_) => sizes.0.get(&bytes.get()).is_some_and(|(_, is_changed)| *is_changed),
            None => sizes.is_changed(bytes.get()),
        })
    }

    fn sent(&self, to: OutIdx, bytes: Bytes) -> Side {
        self.changed(self.changes(to, bytes), bytes)
    }

    fn received(&self, from: InIdx, bytes: Bytes) -> Side {
        if self.change.mode().is_some() {
            return Some(bytes);
        }
        let sizes = self.channels.incoming(self.trace, self.rank, from);
        self.changed(sizes.is_some_and(|sizes| sizes.is_changed(bytes.get())), bytes)
    }

    fn changed(&self, is_changed: bool, bytes: Bytes) -> Side {
        if is_changed { self.change.size(bytes) } else { Some(bytes) }
    }

    /// Returns a send in another mode.
    fn with_mode(&self, record: Record, mode: SendMode) -> Record {
        let (to, bytes) = (Some(OutIdx::new(record.index())), Bytes::new(record.amount()));
        let channel = self.trace.outgoing.get(record.index() as usize);
        let is_plain = mode == SendMode::Standard
            && channel.is_some_and(|channel| channel.communicator == CommIdx::WORLD);
        if is_plain {
            return record;
        }
        let call = match record.kind() {
            SEND => Call::Send { mode, to, bytes },
            _ => Call::Isend { mode, to, bytes, slot: record.slot() },
        };
        let mut calls = self.calls.borrow_mut();
        let next = self.trace.side_tables.calls.len() + calls.len();
        let number = *calls.entry(call).or_insert(next as u32);
        Record::encode(Action::Call(CallId::new(number)))
    }

    /// Returns a combined send and receive without the sides that disappear.
    fn send_recv(&self, both: &SendRecv) -> SendRecv {
        let (send, receive) = (
            both.to.and_then(|to| Some((to, self.sent(to, both.send_bytes)?))),
            both.from.and_then(|from| Some((from, self.received(from, both.recv_bytes)?))),
        );
        SendRecv {
            to: send.map(|(to, _)| to),
            send_bytes: send.map_or(both.send_bytes, |(_, bytes)| bytes),
            from: receive.map(|(from, _)| from),
            recv_bytes: receive.map_or(both.recv_bytes, |(_, bytes)| bytes),
        }
    }

    fn keep(&self, record: Record, removed: &mut RemovedRequests) -> Option<Record> {
        let bytes = Bytes::new(record.amount());
        let side = match record.kind() {
            SEND | ISEND => self.sent(OutIdx::new(record.index()), bytes),
            RECV | IRECV => self.received(InIdx::new(record.index()), bytes),
            SEND_RECV => {
                let both = self.trace.side_tables.send_recvs.get(record.index() as usize)?;
                let left = self.send_recv(both);
                let had_any = both.to.is_some() || both.from.is_some();
                return (!had_any || left.to.is_some() || left.from.is_some()).then_some(record);
            }
            CALL => {
                let call = self.trace.side_tables.calls.get(record.index() as usize);
                let posted: Option<Slot> = call.and_then(Call::posted_slot);
                posted.into_iter().for_each(|slot| removed.set(slot, false));
                return Some(record);
            }
            _ => return removed.follow(record, false).then_some(record),
        };
        removed.follow(record, side.is_none());
        if let (SEND | ISEND, Some(mode)) = (record.kind(), self.change.mode())
            && self.changes(OutIdx::new(record.index()), bytes)
        {
            return Some(self.with_mode(record, mode));
        }
        side.map(|bytes| Record::from_words(record.head(), bytes.get()))
    }

    /// Returns the calls of the rank, and then the new ones.
    fn all_calls(&self) -> Vec<Call> {
        let new = self.calls.borrow();
        let mut new: Vec<(&Call, u32)> = new.iter().map(|(call, number)| (call, *number)).collect();
        new.sort_unstable_by_key(|(_, number)| *number);
        let old = self.trace.side_tables.calls.iter();
        old.chain(new.into_iter().map(|(call, _)| call)).cloned().collect()
    }

    fn encode(&self) -> Result<(Encoded, LinkableRank), WriteError> {
        let Self { trace, rank, .. } = *self;
        let failed = |damage| damaged(rank, trace, damage);
        let body = folded_rank(trace).expect("all ranks are folded");
        let keep = |record: Record, removed: &mut RemovedRequests| self.keep(record, removed);
        let (records, removed) = filter_records(trace, body, None, &keep).map_err(failed)?;
        let old = &trace.side_tables;
        let side = SideTables {
            collectives: old.collectives.clone(),
            group_collectives: old.group_collectives.clone(),
            send_recvs: old.send_recvs.iter().map(|both| self.send_recv(both)).collect(),
            locations: old.locations.clone(),
            calls: self.all_calls(),
        };
        let encoded =
            encode_records(&records, body, &side, None).map_err(|error| encode_error(rank, error))?;
        let pending = trace.pending_at_end.iter().filter(|slot| !removed.contains(**slot));
        let tables = RankTrace {
            pending_at_end: pending.copied().collect(),
            side_tables: Arc::new(side),
            ..trace.tables()
        };
        Ok((encoded, LinkableRank { trace: tables, ..LinkableRank::default() }))
    }
}
