//! Statistics of a trace: actions, messages, bytes, storage.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pdes_core::{Bytes, Rank};

use crate::archive::tally::{Tally, Traffic};
use crate::archive::{ArchiveError, Damage, UnmodelledCalls};
use crate::column::ActionCountChanges;
use crate::record::{ACTION_KINDS, CALL, COMPUTE};
use crate::side_tables::SideTables;
use crate::trace::{ActionStorage, RankTrace, Trace};

/// Names of the kinds of actions, indexed by kind.
const KINDS: [&str; ACTION_KINDS] = [
    "init",
    "finalize",
    "communicator",
    "location",
    "compute",
    "sleep",
    "send",
    "isend",
    "recv",
    "irecv",
    "null",
    "null request",
    "sendRecv",
    "wait",
    "test",
    "waitall",
    "collective",
    // Calls are counted by their own names.
    "call",
];

/// Largest number of pairs in [`Info::heaviest`].
const HEAVIEST: usize = 8;

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// Number of ranks.
    pub ranks: u32,
    /// Number of actions of all ranks.
    pub actions: u64,
    /// Name and number of actions of each kind that occurs; calls are named by [`Call::name`](crate::Call::name).
    pub by_kind: Vec<(&'static str, u64)>,
    /// Number of point-to-point messages.
    pub messages: u64,
    /// Sum of their sizes \[B\].
    pub message_bytes: u128,
    /// Number of pairs of a sender and a receiver.
    pub pairs: u64,
    /// Largest number of receivers of one sender.
    pub max_receivers: u32,
    /// Pairs with most bytes, in descending order.
    pub heaviest: Vec<PairTraffic>,
    /// Calls that no replay models, by function.
    pub unmodelled: Vec<UnmodelledCalls>,
    /// Storage in an archive; `None` for text.
    pub storage: Option<Storage>,
}

/// Point-to-point traffic from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairTraffic {
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
    /// Number of messages.
    pub messages: u64,
    /// Sum of their sizes.
    pub bytes: Bytes,
}

impl PairTraffic {
    /// Returns all pairs of a trace with point-to-point messages, ordered by sender and then by receiver. For an archive this
    /// reads its tables only, also for ranks that are not [loaded](Trace::load_ranks); text is read as a whole.
    ///
    /// # Errors
    /// Fails if sums exceed 64 bits, or if the tables of a rank that is not loaded are malformed.
    ///
    /// ```
    /// use trace_mmap::PairTraffic;
    /// let trace = trace_tools::from_text("0 init\n1 init\n0 send 1 7 8\n0 send 1 9 8\n1 recv 0 7 8\n1 recv 0 9 8\n")?;
    /// let pairs = PairTraffic::all(&trace)?;
    /// assert_eq!((pairs.len(), pairs[0].messages, pairs[0].bytes.get()), (1, 2, 16));
    /// # Ok::<(), trace_mmap::TraceError>(())
    /// ```
    pub fn all(trace: &Trace) -> Result<Vec<Self>, ArchiveError> {
        let mut pairs = Vec::new();
        for rank in (0..trace.ranks()).map(Rank::new) {
            let of_rank = match trace.directory() {
                Some(directory) => {
                    sum_by_receiver(directory.traffic(rank)?.collect::<Result<Vec<_>, _>>()?.into_iter())
                }
                None => sum_by_receiver(with_peers(trace.rank(rank), &tally(trace.rank(rank), rank)?.sends)),
            };
            pairs.extend(of_rank.into_iter().map(|(to, (messages, bytes))| Self {
                from: rank,
                to,
                messages,
                bytes: Bytes::new(bytes),
            }));
        }
        Ok(pairs)
    }
}

/// Returns the receiver and traffic of each outgoing channel.
fn with_peers<'a>(trace: &'a RankTrace, sends: &'a [Traffic]) -> impl Iterator<Item = (Rank, Traffic)> + 'a {
    trace.outgoing().iter().map(|channel| channel.peer).zip(sends.iter().copied())
}

/// Sums messages and bytes of the channels to each receiver.
fn sum_by_receiver(channels: impl Iterator<Item = (Rank, Traffic)>) -> BTreeMap<Rank, (u64, u64)> {
    let mut receivers = BTreeMap::new();
    // A persistent send that is never started has a channel and no messages.
    for (peer, Traffic { messages, bytes }) in channels.filter(|(_, traffic)| traffic.messages > 0) {
        let sum: &mut (u64, u64) = receivers.entry(peer).or_default();
        *sum = (sum.0.saturating_add(messages), sum.1.saturating_add(bytes));
    }
    receivers
}

/// Storage of a trace in an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// Number of distinct programs.
    pub programs: u64,
    /// Number of records of all programs.
    pub records: u64,
    /// Deepest nesting of loops.
    pub depth: u64,
    /// Size of programs and columns \[B\].
    pub data_bytes: u64,
    /// Number of data files.
    pub shards: u64,
    /// Number of absent values: executions of optional computations that the tracer left out.
    pub absent: u64,
    /// Number of computations at places where the tracer mostly left them out; they are inserted between the records of programs.
    pub inserted: u64,
}

impl Info {
    /// Computes the statistics of a trace. For an archive, which has sums in its tables, the cost is linear in the number of
    /// channels and in the records of programs with calls; text is read as a whole.
    ///
    /// # Errors
    /// Fails if sums exceed 64 bits or a program with calls is damaged.
    ///
    /// ```
    /// use trace_mmap::Info;
    /// let trace = trace_tools::from_text("0 init\n0 send 0 1 8\n0 send 0 1 8\n0 recv 0 1 8\n0 recv 0 1 8\n")?;
    /// let info = Info::of(&trace)?;
    /// assert_eq!((info.actions, info.messages, info.message_bytes), (5, 2, 16));
    /// assert_eq!(info.by_kind, [("init", 1), ("send", 2), ("recv", 2)]);
    /// # Ok::<(), trace_mmap::TraceError>(())
    /// ```
    pub fn of(trace: &Trace) -> Result<Self, ArchiveError> {
        let (mut by_kind, mut by_call) = ([0_u64; ACTION_KINDS], BTreeMap::new());
        let (mut heaviest, mut max_receivers) = (Vec::<PairTraffic>::new(), 0);
        for rank in (0..trace.ranks()).map(Rank::new) {
            let sums = RankSums::of(trace.rank(rank), rank)?;
            by_kind.iter_mut().zip(sums.by_kind).for_each(|(sum, more)| *sum = sum.saturating_add(more));
            for (name, more) in sums.by_call {
                let sum: &mut u64 = by_call.entry(name).or_default();
                *sum = sum.saturating_add(more);
            }
            let receivers = sum_by_receiver(with_peers(trace.rank(rank), &sums.sends));
            max_receivers = max_receivers.max(receivers.len() as u32);
            let pair =
                |(to, (messages, bytes))| PairTraffic { from: rank, to, messages, bytes: Bytes::new(bytes) };
            heaviest.extend(receivers.into_iter().map(pair));
        }
        let pairs = heaviest.len() as u64;
        let messages = heaviest.iter().fold(0, |sum: u64, pair| sum.saturating_add(pair.messages));
        let message_bytes = heaviest.iter().map(|pair| u128::from(pair.bytes.get())).sum();
        heaviest.sort_by_key(|pair| std::cmp::Reverse(pair.bytes));
        heaviest.truncate(HEAVIEST);
        Ok(Self {
            ranks: trace.ranks(),
            actions: trace.actions(),
            by_kind: name_kinds(by_kind, by_call),
            messages,
            message_bytes,
            pairs,
            max_receivers,
            heaviest,
            unmodelled: UnmodelledCalls::of(trace)?,
            storage: Storage::of(trace),
        })
    }
}

/// Names the kinds that occur and adds the calls: to the kind of the same name, else after all kinds.
fn name_kinds(
    mut by_kind: [u64; ACTION_KINDS],
    mut by_call: BTreeMap<&'static str, u64>,
) -> Vec<(&'static str, u64)> {
    by_kind[usize::from(CALL)] = 0;
    let kinds = KINDS.into_iter().zip(by_kind);
    let mut sums: Vec<_> = kinds.map(|(name, sum)| (name, sum + by_call.remove(name).unwrap_or(0))).collect();
    sums.extend(by_call);
    sums.retain(|(_, count)| *count > 0);
    sums
}

impl Storage {
    fn of(trace: &Trace) -> Option<Self> {
        let (mut programs, mut storage) = (BTreeMap::new(), None);
        for rank in (0..trace.ranks()).map(Rank::new) {
            let ActionStorage::Archive(body) = &trace.rank(rank).storage else { return None };
            let shards = body.class.archive.shards();
            let data_bytes = shards.iter().map(|shard| shard.len()).sum();
            let storage = storage.get_or_insert_with(|| Self {
                data_bytes,
                shards: shards.len() as u64,
                ..Self::default()
            });
            let ActionCountChanges { absent, inserted } = body.class.changes;
            storage.absent = storage.absent.saturating_add(absent);
            storage.inserted = storage.inserted.saturating_add(inserted);
            programs.insert(
                (body.class.program.shard, body.class.program.offset, body.class.program.records),
                body.class.program.depth,
            );
        }
        let mut storage = storage?;
        storage.programs = programs.len() as u64;
        storage.records = programs.keys().map(|(_, _, records)| records).sum();
        storage.depth = programs.values().copied().max().unwrap_or_default();
        Some(storage)
    }
}

/// Sums of one rank.
struct RankSums {
    by_kind: [u64; ACTION_KINDS],
    by_call: BTreeMap<&'static str, u64>,
    /// Messages and bytes of each outgoing channel.
    sends: Vec<Traffic>,
}

impl RankSums {
    fn of(trace: &RankTrace, rank: Rank) -> Result<Self, ArchiveError> {
        if let ActionStorage::Archive(body) = &trace.storage {
            let mut by_kind = body.class.program.by_kind;
            let computations = &mut by_kind[usize::from(COMPUTE)];
            *computations = body.class.changes.apply(*computations).unwrap_or(0);
            let sends = body.sends().collect();
            let by_call = match by_kind[usize::from(CALL)] {
                0 => BTreeMap::new(),
                _ => count_calls_by_name(&tally(trace, rank)?, &trace.side_tables),
            };
            return Ok(Self { by_kind, by_call, sends });
        }
        let tally = tally(trace, rank)?;
        let by_call = count_calls_by_name(&tally, &trace.side_tables);
        Ok(Self { by_kind: tally.by_kind, by_call, sends: tally.sends })
    }
}

pub(crate) fn tally(trace: &RankTrace, rank: Rank) -> Result<Tally, ArchiveError> {
    let mut tally = Tally::new();
    for record in trace.storage.records() {
        let record = record.map_err(|damage| damaged(trace, rank, damage))?;
        tally.push(record, &trace.side_tables).map_err(|_| ArchiveError::TooMany { rank })?;
    }
    Ok(tally)
}

/// Returns the error for a damaged rank; only archives can be damaged.
fn damaged(trace: &RankTrace, rank: Rank, damage: Damage) -> ArchiveError {
    let file = match &trace.storage {
        ActionStorage::Archive(body) => body.class.archive.path().to_path_buf(),
        ActionStorage::Memory(_) => PathBuf::new(),
    };
    ArchiveError::Damaged { file, rank, damage }
}

/// Counts the calls of each name.
fn count_calls_by_name(tally: &Tally, side: &SideTables) -> BTreeMap<&'static str, u64> {
    let mut by_call = BTreeMap::new();
    for (call, uses) in side.calls.iter().zip(&tally.calls) {
        let sum: &mut u64 = by_call.entry(call.name()).or_default();
        *sum = sum.saturating_add(*uses);
    }
    by_call
}
