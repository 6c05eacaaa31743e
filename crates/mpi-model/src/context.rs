//! Context of a rank: what its program, its point-to-point messages and its collective operations share.

mod thread;

use std::collections::BTreeMap;
use std::ops::Range;

use pdes_core::{Bytes, Fault, LpId, Outbox, Rank, SimDuration, SimTime};
use trace_mmap::{CommId, CommIdx, RankTrace};

use crate::completion::Completion;
use crate::error::{ReplayError, ReplayErrorKind};
use crate::machine::{ComputationNoise, DeviceHistory, Machine, Work};
use crate::observer::{Analysis, ObservedRank, RankObservers};
use crate::parameters::Progress;
use crate::point_to_point::OperationIndex;
use crate::replay::Replay;
use crate::statistics::ActionKind;
use crate::token::Token;
pub(crate) use thread::Thread;

/// Failure of a rank, with its place in the order of time.
pub(crate) type Failure<E> = Fault<Box<ReplayError<E>>>;

/// Request for the transfer of a message, or the time that it takes.
pub(crate) type Transfer<M> = Result<<M as Machine>::WorkRequest, Option<SimDuration>>;

/// Outbox of a rank, which addresses the ranks of its program.
pub(crate) struct RankOutbox<'o, M: Machine> {
    outbox: &'o mut Outbox<Token, M::WorkRequest>,
    first_lp: LpId,
}

impl<'o, M: Machine> RankOutbox<'o, M> {
    #[inline]
    pub(crate) fn new(outbox: &'o mut Outbox<Token, M::WorkRequest>, first_lp: LpId) -> Self {
        Self { outbox, first_lp }
    }

    /// Sends a token to a rank.
    #[inline]
    pub(crate) fn send(&mut self, to: Rank, token: Token) {
        self.outbox.send(lp_of(self.first_lp, to), token);
    }

    /// Sends a token to a logical process, of any program.
    pub(crate) fn send_to_lp(&mut self, to: u32, token: Token) {
        self.outbox.send(LpId::new(to), token);
    }

    /// Submits work to the machine, as [`Outbox::submit`] does.
    #[inline]
    pub(crate) fn submit(&mut self, at: SimTime, tie_break: u64, request: M::WorkRequest) {
        self.outbox.submit(at, tie_break, request);
    }
}

/// Returns the logical process of a rank of a program.
#[inline]
pub(crate) fn lp_of(first_lp: LpId, rank: Rank) -> LpId {
    LpId::new(first_lp.get() + rank.get())
}

/// Place of a rank in the replay, its current thread of control, and its observers.
pub(crate) struct RankContext<'t, M: Machine, A: Analysis> {
    pub(crate) replay: &'t Replay<'t, M, A>,
    pub(crate) me: Rank,
    pub(crate) trace: &'t RankTrace,
    /// Thread of control that runs now: the program, or a collective operation.
    pub(crate) thread: Thread,
    pub(crate) pace: Pace,
    /// Time in which the host is known to be quiet, without noise all of it: most computations are shorter than the time between two events.
    pub(crate) quiet: Range<SimTime>,
    /// Calls have costs by their kind.
    pub(crate) charges_calls: bool,
    /// Something is to be done before each action: calls have costs, or data move in calls only.
    pub(crate) prepares_actions: bool,
    pub(crate) observers: RankObservers<A::Observer<'t>>,
    /// Histories of the devices that the rank has accessed, by their numbers, where the machine makes no work requests.
    pub(crate) device_histories: BTreeMap<u32, DeviceHistory>,
}

impl<'t, M: Machine, A: Analysis> RankContext<'t, M, A> {
    pub(crate) fn new(replay: &'t Replay<'t, M, A>, me: Rank) -> Self {
        let trace = replay.trace.rank(me);
        let charges_calls = !replay.parameters.call_overheads.is_empty();
        let observed = ObservedRank { rank: me, trace, parameters: replay.parameters };
        Self {
            replay,
            me,
            trace,
            thread: Thread::main(replay.start()),
            pace: Pace::of(replay.machine, me),
            quiet: SimTime::ZERO..if replay.machine.has_noise() { SimTime::ZERO } else { SimTime::MAX },
            charges_calls,
            prepares_actions: charges_calls || replay.parameters.progress == Progress::Calls,
            observers: RankObservers::new(&replay.analysis, &observed),
            device_histories: BTreeMap::new(),
        }
    }

    /// Returns whether the rank repeats what it did before the checkpoint from which its program goes on.
    #[inline]
    pub(crate) fn repeats(&self) -> bool {
        matches!(self.pace, Pace::Repeating)
    }

    /// Makes the rank repeat what it did, or go on.
    pub(crate) fn set_repeats(&mut self, repeats: bool) {
        self.pace = if repeats { Pace::Repeating } else { Pace::of(self.replay.machine, self.me) };
    }

    /// Returns the time of a flop \[ps\] where it is always the same.
    pub(crate) fn steady_pace(&self) -> Option<f64> {
        match self.pace {
            Pace::Steady(picos) => Some(picos),
            _ => None,
        }
    }

    /// Returns the factor of the duration of computations in a region of the program, at the present speed.
    pub(crate) fn compute_factor(&self, region: &str) -> f64 {
        let Replay { machine, parameters, .. } = self.replay;
        let speed = machine.speed(self.me, self.thread.clock);
        parameters.compute_factor(region, speed, machine.memory_bandwidth(self.me))
    }

    #[inline]
    pub(crate) fn communicator(&self, index: CommIdx) -> CommId {
        if index == CommIdx::WORLD { CommId::WORLD } else { self.trace.communicator(index).id }
    }

    /// Reports that the current thread of control has worked until now, in an action of this kind.
    #[inline(always)]
    pub(crate) fn worked(&mut self, kind: ActionKind) {
        self.observers.worked(kind, self.thread.clock);
    }

    /// Starts a computation, which the rank runs ahead of or not, of the program or of an operation; returns whether it has to be
    /// waited for.
    #[inline(always)]
    pub(crate) fn start_computation(
        &mut self,
        flops: f64,
        is_ahead: bool,
        operation: Option<OperationIndex>,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<bool, Failure<M::Error>> {
        let (flops, duration) = match self.pace {
            Pace::Steady(picos) => (flops, SimDuration::try_from_picos_f64(flops * picos)),
            _ => self.unsteady_computation(flops),
        };
        let work = Work::Compute { flops, accelerator: None };
        if !is_ahead && duration.is_some() && self.submit_work(work, operation, outbox) {
            return Ok(true);
        }
        self.advance_clock(duration, "a computation", || format!("{flops} flop"))?;
        Ok(false)
    }

    /// Returns the work and the time of a computation that has not always the same: noise keeps the core busy.
    #[inline(never)]
    fn unsteady_computation(&mut self, flops: f64) -> (f64, Option<SimDuration>) {
        let (machine, begin) = (self.replay.machine, self.thread.clock);
        let duration = match self.pace {
            Pace::Repeating => return (flops, Some(SimDuration::ZERO)),
            Pace::Steady(picos) | Pace::Noisy(picos) => SimDuration::try_from_picos_f64(flops * picos),
            Pace::Changing => machine.compute_time(self.me, flops, begin),
        };
        let length = duration.unwrap_or(SimDuration::ZERO);
        let is_quiet = self.quiet.start <= begin && begin.saturating_add(length) <= self.quiet.end;
        if is_quiet || length == SimDuration::ZERO {
            return (flops, duration);
        }
        self.noisy_computation(flops, length)
    }

    /// Returns the work and the time of a computation in which there may be noise.
    #[cold]
    fn noisy_computation(&mut self, flops: f64, length: SimDuration) -> (f64, Option<SimDuration>) {
        let (machine, begin) = (self.replay.machine, self.thread.clock);
        let ComputationNoise { delay, quiet } = machine.noise(self.me, begin, length, &self.quiet);
        self.quiet = quiet;
        if delay == SimDuration::ZERO {
            return (flops, Some(length));
        }
        let work = flops + machine.speed(self.me, begin) * delay.as_secs_f64();
        (work, length.checked_add(delay))
    }

    /// Submits work to the machine, if it does such work in the order of time; returns whether the work has to be waited for.
    #[inline]
    pub(crate) fn submit_work(
        &mut self,
        work: Work<M::Route>,
        operation: Option<OperationIndex>,
        outbox: &mut RankOutbox<'_, M>,
    ) -> bool {
        if self.repeats() {
            return false;
        }
        let order =
            self.replay.machine.work_request(work, Completion::of_work(self.replay.lp(self.me), operation));
        if let Some(order) = order {
            outbox.submit(self.thread.clock, 0, order);
        }
        order.is_some()
    }

    /// Advances the clock by a time that the library takes.
    #[inline]
    pub(crate) fn spend(&mut self, time: SimDuration) {
        if !self.repeats() {
            self.thread.clock += time;
        }
    }

    /// Returns the request for the transfer of a message, if the machine does such work in the order of time, or what it takes otherwise: one
    /// that is repeated nothing. `None` where that exceeds a [`SimDuration`].
    #[inline]
    pub(crate) fn transfer(
        &self,
        (route, wire): (M::Route, Bytes),
        start: SimTime,
        is_repeated: bool,
        completion: Completion,
    ) -> Transfer<M> {
        if is_repeated {
            return Err(Some(SimDuration::ZERO));
        }
        let machine = self.replay.machine;
        let request = machine.work_request(Work::Transfer { route, bytes: wire }, completion);
        request.ok_or_else(|| machine.transfer(route, wire, start))
    }

    /// Advances the clock.
    ///
    /// # Errors
    /// The clock would overflow.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        duration: Option<SimDuration>,
        what: &'static str,
        amount: impl FnOnce() -> String,
    ) -> Result<(), Failure<M::Error>> {
        let duration = if self.repeats() { Some(SimDuration::ZERO) } else { duration };
        self.advance_clock(duration, what, amount)
    }

    #[inline]
    fn advance_clock(
        &mut self,
        duration: Option<SimDuration>,
        what: &'static str,
        amount: impl FnOnce() -> String,
    ) -> Result<(), Failure<M::Error>> {
        match duration.and_then(|duration| self.thread.clock.checked_add(duration)) {
            Some(clock) => {
                self.thread.clock = clock;
                Ok(())
            }
            None => Err(self.overflow(what, amount)),
        }
    }

    /// Returns the failure of a clock that leaves its range.
    #[cold]
    #[inline(never)]
    fn overflow(&self, what: &'static str, amount: impl FnOnce() -> String) -> Failure<M::Error> {
        self.fail(ReplayErrorKind::TimeOverflow { what, amount: amount() })
    }

    /// Returns a failure of the action in progress.
    pub(crate) fn fail(&self, kind: ReplayErrorKind<M::Error>) -> Failure<M::Error> {
        self.failure(self.thread.clock, self.thread.action, kind)
    }

    pub(crate) fn failure(
        &self,
        at: SimTime,
        action: u64,
        kind: ReplayErrorKind<M::Error>,
    ) -> Failure<M::Error> {
        Fault { at, order: action, error: Box::new(ReplayError { rank: self.me, action, kind }) }
    }
}

/// Time of the computations of a rank.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// That of a flop \[ps\].
    Steady(f64),
    /// That of a flop \[ps\], and noise.
    Noisy(f64),
    /// That of the speed at the time, and noise if there is any.
    Changing,
    /// None: the rank repeats what it did before the checkpoint from which its program goes on.
    Repeating,
}

impl Pace {
    fn of<M: Machine>(machine: &M, rank: Rank) -> Self {
        let picos = || 1e12 / machine.speed(rank, SimTime::ZERO);
        match (machine.has_changing_speed(rank), machine.has_noise()) {
            (true, _) => Self::Changing,
            (false, true) => Self::Noisy(picos()),
            (false, false) => Self::Steady(picos()),
        }
    }
}
