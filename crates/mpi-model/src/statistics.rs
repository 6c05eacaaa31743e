//! Statistics of a rank: number and time of its actions by kind, messages, outcomes that depended on time.

mod events;
mod kind;

use pdes_core::{Bytes, SimDuration, Total};
use serde::{Deserialize, Serialize};
use trace_mmap::Collective;

use crate::breakdown::Breakdown;

macro_rules! action_kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// Kind of action, to which time is attributed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "the names are those of the actions of a trace")]
        pub enum ActionKind {
            $($(#[$doc])* $kind,)*
        }

        impl ActionKind {
            /// All kinds, in the order of the enumeration.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// Returns the name of the action in a trace, such as `sendRecv`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

action_kinds! {
    Compute = "compute",
    Sleep = "sleep",
    Send = "send",
    Isend = "isend",
    Recv = "recv",
    Irecv = "irecv",
    SendRecv = "sendRecv",
    Wait = "wait",
    Waitall = "waitall",
    Test = "test",
    Waitany = "waitany",
    Waitsome = "waitsome",
    Probe = "probe",
    Iprobe = "iprobe",
    Start = "start",
    Cancel = "cancel",
    Barrier = "barrier",
    Bcast = "bcast",
    Reduce = "reduce",
    Allreduce = "allreduce",
    Alltoall = "alltoall",
    Alltoallv = "alltoallv",
    Gather = "gather",
    Gatherv = "gatherv",
    Scatter = "scatter",
    Scatterv = "scatterv",
    Allgather = "allgather",
    Allgatherv = "allgatherv",
    ReduceScatter = "reducescatter",
    Scan = "scan",
    Exscan = "exscan",
    /// `neighbor_alltoall`, `neighbor_alltoallv`.
    NeighborAlltoall = "neighbor_alltoall",
    /// `comm_split`, `comm_dup` and `comm_create` of a communicator that the trace uses.
    NewCommunicator = "comm_split",
    /// The call of a non-blocking collective operation.
    NonBlocking = "icollective",
    /// `init`, `comm_size`, `comm_split`, `comm_dup`, `location`, `unmodelled`: take no time.
    Marker = "marker",
    /// `finalize`, and the completion of requests that are still pending at the end of the trace.
    Finalize = "finalize",
    FileOpen = "io-open",
    FileClose = "io-close",
    FileSync = "io-sync",
    /// `io-read`, `io-read_at`.
    FileRead = "io-read",
    /// `io-write`, `io-write_at`.
    FileWrite = "io-write",
    /// `io-read_all`, `io-read_at_all`.
    FileReadAll = "io-read_all",
    /// `io-write_all`, `io-write_at_all`.
    FileWriteAll = "io-write_all",
    /// The calls of nonblocking reads, `io-iread`, `io-iread_at_all` and so on.
    FileReadStart = "io-iread",
    /// The calls of nonblocking writes.
    FileWriteStart = "io-iwrite",
    FileSetView = "io-set_view",
    /// `put`, `rput`.
    Put = "put",
    /// `get`, `rget`.
    Get = "get",
    /// `accumulate`, `raccumulate`.
    Accumulate = "accumulate",
    /// `get_accumulate`, `rget_accumulate`, `fetch_and_op`, `compare_and_swap`.
    Fetch = "get_accumulate",
    WindowFence = "win_fence",
    WindowPost = "win_post",
    WindowStart = "win_start",
    WindowComplete = "win_complete",
    WindowWait = "win_wait",
    /// `win_lock`, `win_lock_all`.
    WindowLock = "win_lock",
    /// `win_unlock`, `win_unlock_all`.
    WindowUnlock = "win_unlock",
    /// `win_flush`, `win_flush_local`, `win_flush_all`, `win_flush_local_all`.
    WindowFlush = "win_flush",
    WindowFree = "win_free",
    /// Copies to and from accelerators, where regions of the program begin and end.
    Copy = "copy",
}

impl ActionKind {
    /// Returns the kind with this number, the inverse of `kind as u32`.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

impl From<&Collective> for ActionKind {
    fn from(operation: &Collective) -> Self {
        match operation {
            Collective::Barrier => Self::Barrier,
            Collective::Bcast { .. } => Self::Bcast,
            Collective::Reduce { .. } => Self::Reduce,
            Collective::Allreduce { .. } => Self::Allreduce,
            Collective::Alltoall { .. } => Self::Alltoall,
            Collective::Alltoallv { .. } => Self::Alltoallv,
            Collective::Gather { .. } => Self::Gather,
            Collective::Gatherv { .. } => Self::Gatherv,
            Collective::Scatter { .. } => Self::Scatter,
            Collective::Scatterv { .. } => Self::Scatterv,
            Collective::Allgather { .. } => Self::Allgather,
            Collective::Allgatherv { .. } => Self::Allgatherv,
            Collective::ReduceScatter { .. } => Self::ReduceScatter,
            Collective::Scan { .. } => Self::Scan,
            Collective::Exscan { .. } => Self::Exscan,
        }
    }
}

/// Totals of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    totals: Totals,
    /// Messages sent, point-to-point and inside collectives.
    pub messages: u64,
    /// Payload of the messages sent \[B\].
    pub bytes: Bytes,
    /// Outcomes that depended on time, where there were any.
    outcomes: Option<Box<OutcomeCount>>,
    /// Breakdown of the time, on request.
    breakdown: Option<Box<Breakdown>>,
}

/// Returns `now + times * (now - before)`: a sum after `times` more repetitions of its last growth; `None` on overflow.
pub(crate) fn extrapolate(now: u64, before: u64, times: u64) -> Option<u64> {
    now.checked_sub(before)?.checked_mul(times)?.checked_add(now)
}

/// Returns the same for a time.
pub(crate) fn extrapolate_time(now: SimDuration, before: SimDuration, times: u64) -> Option<SimDuration> {
    extrapolate(now.as_picos(), before.as_picos(), times).map(SimDuration::from_picos)
}

/// Totals of all kinds of actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Totals of the first kinds, which make up most of a program.
    common: [KindTotal; COMMON_KINDS],
    /// Totals of other kinds, of which most programs use few, in the order of their first occurrence.
    other: Vec<(ActionKind, KindTotal)>,
}

/// Totals of a kind of action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KindTotal {
    time: SimDuration,
    count: u64,
}

/// Number of kinds from `compute` to `waitall`.
const COMMON_KINDS: usize = ActionKind::Waitall as usize + 1;

/// Number of calls whose outcome depended on simulated time, and differed from the recorded run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCount {
    /// Number of outcomes that were decided.
    pub decided: u64,
    /// Number of outcomes that differ from the recorded run.
    pub different: u64,
    /// Index of the first action with a different outcome.
    pub first_different: Option<u64>,
    /// Number of receives and probes from any source that took the message of the recorded source although outcomes are
    /// [reenacted](crate::Outcomes::Reenact), because the program depends on it.
    pub kept_sources: u64,
}

impl Statistics {
    /// Creates statistics with a breakdown of the time, and perhaps with the causes of waits.
    pub(crate) fn with_breakdown(has_causes: bool) -> Self {
        Self { breakdown: Some(Box::new(Breakdown::new(has_causes))), ..Self::default() }
    }

    /// Returns the breakdown of the time, where [requested](crate::Replay::with_breakdowns).
    pub fn breakdown(&self) -> Option<&Breakdown> {
        self.breakdown.as_deref()
    }

    /// Returns the simulated time spent in actions of this kind, waiting included.
    pub fn time(&self, kind: ActionKind) -> SimDuration {
        self.totals.of(kind).time
    }

    /// Returns the number of completed actions of this kind.
    pub fn count(&self, kind: ActionKind) -> u64 {
        self.totals.of(kind).count
    }

    /// Returns the kinds of which there were actions, in their order.
    pub fn kinds(&self) -> impl Iterator<Item = ActionKind> + '_ {
        self.totals.kinds()
    }

    /// Returns the number of outcomes that depended on time.
    pub fn outcomes(&self) -> OutcomeCount {
        self.outcomes.as_deref().copied().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn add_action(&mut self, kind: ActionKind, time: SimDuration) {
        self.totals.add(kind, 1, time);
    }

    /// Adds time of actions of this kind that are counted already.
    pub(crate) fn add_time(&mut self, kind: ActionKind, time: SimDuration) {
        self.totals.add(kind, 0, time);
    }

    /// Records the end of the rank, with the time of its last action.
    pub(crate) fn finish(&mut self, time: SimDuration) {
        self.totals.add(ActionKind::Finalize, 0, time);
        if let Some(breakdown) = &mut self.breakdown {
            breakdown.attribute(&self.totals);
        }
    }

    /// Returns the index of the current region in the breakdown; 0 without one.
    pub(crate) fn current_region(&self) -> usize {
        self.breakdown.as_deref().map_or(0, Breakdown::current_region)
    }

    /// Adds time in which a rank waited for one message while the next one had been sent.
    pub(crate) fn add_wrong_order(&mut self, region: usize, kind: ActionKind, time: SimDuration) {
        if let Some(breakdown) = &mut self.breakdown {
            breakdown.add_wrong_order(region, kind, time);
        }
    }

    /// Returns the numbers of decided outcomes, and of calls whose outcome may depend on time.
    pub(crate) fn outcome_counts(&self) -> impl Serialize + PartialEq + use<> {
        use ActionKind::{Cancel, Iprobe, Probe, Test, Waitany, Waitsome};
        let kinds = [Test, Waitany, Waitsome, Probe, Iprobe, Cancel];
        (OutcomeCount { kept_sources: 0, ..self.outcomes() }, kinds.map(|kind| self.count(kind)))
    }
}

impl Total for Statistics {
    fn repeated(&self, before: &Self, times: u64) -> Option<Self> {
        let mut totals = self.clone();
        totals.totals = self.totals.extrapolate(&before.totals, times)?;
        totals.messages = extrapolate(self.messages, before.messages, times)?;
        totals.bytes = Bytes::new(extrapolate(self.bytes.get(), before.bytes.get(), times)?);
        if let Some(outcomes) = totals.outcomes.as_deref_mut() {
            let earlier = before.outcomes();
            outcomes.decided = extrapolate(outcomes.decided, earlier.decided, times)?;
            outcomes.different = extrapolate(outcomes.different, earlier.different, times)?;
            outcomes.kept_sources = extrapolate(outcomes.kept_sources, earlier.kept_sources, times)?;
        }
        if let (Some(now), Some(earlier)) = (&self.breakdown, &before.breakdown) {
            // What comes after the last change of the call site may differ from that of the iterations before.
            let (now, earlier) = (now.including(&self.totals), earlier.including(&before.totals));
            totals.breakdown = Some(Box::new(now.extrapolate(&earlier, times)?));
        }
        Some(totals)
    }
}

impl Statistics {
    /// Counts one decided outcome of an action.
    pub(crate) fn add_outcome(&mut self, action: u64, as_recorded: bool) {
        let outcomes = self.outcomes.get_or_insert_default();
        outcomes.decided += 1;
        if !as_recorded {
            outcomes.different += 1;
            outcomes.first_different =
                Some(outcomes.first_different.map_or(action, |first| first.min(action)));
        }
    }

    /// Counts one receive or probe that kept its recorded source.
    pub(crate) fn add_kept_source(&mut self) {
        self.outcomes.get_or_insert_default().kept_sources += 1;
    }

    #[inline]
    pub(crate) fn add_message(&mut self, bytes: Bytes) {
        self.messages += 1;
        self.bytes += bytes;
    }
}

impl Totals {
    #[inline]
    pub(crate) fn add(&mut self, kind: ActionKind, count: u64, time: SimDuration) {
        let total = self.of_mut(kind);
        total.time += time;
        total.count += count;
    }

    /// Returns the additions since `before`: kind, number and time.
    pub(crate) fn growth_since(&self, before: &Self) -> impl Iterator<Item = (ActionKind, u64, SimDuration)> {
        let common = ActionKind::ALL.into_iter().zip(self.common.iter().copied());
        let all = common.chain(self.other.iter().copied());
        all.filter_map(|(kind, now)| {
            let before = before.of(kind);
            let time = SimDuration::from_picos(now.time.as_picos() - before.time.as_picos());
            (now != before).then_some((kind, now.count - before.count, time))
        })
    }

    /// Returns the totals after `times` more repetitions of what was added since `before`; `None` where a sum overflows.
    pub(crate) fn extrapolate(&self, before: &Self, times: u64) -> Option<Self> {
        let mut totals = self.clone();
        for kind in self.kinds() {
            let (now, earlier) = (self.of(kind), before.of(kind));
            let time = extrapolate_time(now.time, earlier.time, times)?;
            let count = extrapolate(now.count, earlier.count, times)?;
            *totals.of_mut(kind) = KindTotal { time, count };
        }
        Some(totals)
    }

    /// Returns the kinds with a nonzero total, in their order.
    fn kinds(&self) -> impl Iterator<Item = ActionKind> + '_ {
        ActionKind::ALL.into_iter().filter(|&kind| self.of(kind) != KindTotal::default())
    }

    fn of(&self, kind: ActionKind) -> KindTotal {
        let other = || self.other.iter().find(|(of, _)| *of == kind).map(|&(_, total)| total);
        self.common.get(kind as usize).copied().or_else(other).unwrap_or_default()
    }

    #[inline]
    fn of_mut(&mut self, kind: ActionKind) -> &mut KindTotal {
        match self.common.get_mut(kind as usize) {
            Some(total) => total,
            None => Self::other_mut(&mut self.other, kind),
        }
    }

    fn other_mut(other: &mut Vec<(ActionKind, KindTotal)>, kind: ActionKind) -> &mut KindTotal {
        let known = other.iter().position(|(of, _)| *of == kind);
        let index = known.unwrap_or_else(|| {
            // Exact capacity: there may be millions of ranks.
            other.reserve_exact(1);
            other.push((kind, KindTotal::default()));
            other.len() - 1
        });
        &mut other[index].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round_trip::assert_round_trip;

    #[test]
    fn kinds_are_numbered_in_the_order_of_the_list() {
        for (number, kind) in ActionKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            assert_eq!(ActionKind::from_number(number as u32), Some(kind));
        }
    }

    #[test]
    fn totals_grow_by_what_was_added() {
        let add = |totals: &mut Statistics, picos| {
            totals.add_action(ActionKind::Recv, SimDuration::from_picos(picos));
            totals.add_action(ActionKind::Bcast, SimDuration::from_picos(1));
            totals.add_message(Bytes::new(picos));
        };
        let mut before = Statistics::default();
        add(&mut before, 100);
        let mut now = before.clone();
        add(&mut now, 7);
        let mut expected = now.clone();
        (0..3).for_each(|_| add(&mut expected, 7));
        assert_eq!(now.repeated(&before, 3), Some(expected));
        assert_eq!(now.repeated(&before, u64::MAX / 2), None);
        assert!(now.outcome_counts() == before.outcome_counts());
        now.add_action(ActionKind::Test, SimDuration::ZERO);
        assert!(now.outcome_counts() != before.outcome_counts());
    }

    #[test]
    fn totals_survive_a_round_trip() {
        for mut totals in [Statistics::default(), Statistics::with_breakdown(true)] {
            totals.add_action(ActionKind::Send, SimDuration::from_picos(5));
            totals.add_action(ActionKind::Finalize, SimDuration::ZERO);
            totals.totals.add(ActionKind::Wait, 0, SimDuration::from_picos(u64::MAX / 2));
            totals.finish(SimDuration::from_picos(3));
            totals.add_message(Bytes::new(77));
            totals.add_outcome(9, false);
            totals.add_outcome(10, true);
            totals.add_kept_source();
            assert_round_trip(&totals);
        }
        assert!(postcard::from_bytes::<ActionKind>(&[ActionKind::ALL.len() as u8]).is_err());
    }
}
