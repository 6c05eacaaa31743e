//! A region group: a region and the logical processes that belong to it, in the order of time.

use std::ops::Range;

use super::contribution::Contribution;
use super::mailboxes::{RegionMessage, RegionMessages};
use super::{ProcessLocation, Region, RegionIndex};
use crate::engine::conditional_events::{Candidate, ConditionalEvents};
use crate::engine::first_fault::FirstFault;
use crate::engine::jitter::Jitter;
use crate::resource_run_queue::ResourceRunQueue;
use crate::{LpId, Process, SimTime, Wake};

/// The outgoing tokens and messages of a region group.
pub(super) struct Outgoing<T, M> {
    pub(super) tokens: Vec<(RegionIndex, LpId, T)>,
    pub(super) messages: Vec<(RegionIndex, M)>,
}

impl<T, M> Outgoing<T, M> {
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.messages.is_empty()
    }

    pub(super) fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (RegionIndex, RegionMessage<T, M>)> + '_ {
        let tokens =
            self.tokens.drain(..).map(|(region, to, token)| (region, RegionMessage::Token(to, token)));
        tokens.chain(self.messages.drain(..).map(|(to, message)| (to, RegionMessage::Region(message))))
    }
}

/// A region with its processes: the unit that a worker claims and runs.
pub(crate) struct RegionGroup<P: Process, R: Region<P>> {
    index: RegionIndex,
    pub(crate) region: R,
    lps: Vec<LpId>,
    pub(crate) run_queue: ResourceRunQueue<P>,
    /// The region has all processes: there is one order of events.
    is_whole: bool,
    /// Time of the last event of a whole.
    pub(crate) now: SimTime,
    /// Conditional events, which a whole commits in the order of time.
    conditionals: ConditionalEvents,
    /// First conditional event for which a process of a part has paused; it ends the run.
    conditional: Option<(SimTime, LpId)>,
    outgoing: Outgoing<P::Token, R::Message>,
    /// Contribution after the last task.
    contribution: Contribution,
    /// True if the group has no event and no active boundary since it last ran, was delivered to, or began an epoch, and no message has come.
    is_inactive: bool,
}

/// The result of a region group.
pub(crate) struct GroupResult<P: Process, R> {
    pub(crate) region: R,
    pub(crate) processes: Vec<P>,
    pub(crate) waiting: Vec<LpId>,
    pub(crate) fault: FirstFault<P::Error>,
    pub(crate) steps: u64,
    pub(super) conditional: Option<(SimTime, LpId)>,
}

impl<P: Process, R: Region<P>> RegionGroup<P, R> {
    /// Makes a group of the processes of a region; `is_whole` if these are all.
    pub(crate) fn new(
        index: RegionIndex,
        region: R,
        numbered_processes: Vec<(LpId, P)>,
        is_whole: bool,
        jitter: Option<u64>,
    ) -> Self {
        let (lps, processes): (Vec<LpId>, Vec<P>) = numbered_processes.into_iter().unzip();
        Self {
            index,
            region,
            lps,
            run_queue: ResourceRunQueue::new(processes, jitter.map(|seed| Jitter::new(seed, index as usize))),
            is_whole,
            now: SimTime::ZERO,
            conditionals: ConditionalEvents::default(),
            conditional: None,
            outgoing: Outgoing { tokens: Vec::new(), messages: Vec::new() },
            contribution: Contribution { event: SimTime::ZERO, ..Contribution::IDENTITY },
            is_inactive: false,
        }
    }

    /// Returns the outgoing tokens and messages after a task.
    pub(super) fn outgoing(&mut self) -> &mut Outgoing<P::Token, R::Message> {
        self.region.take_messages(&mut self.outgoing.messages);
        &mut self.outgoing
    }

    /// Returns the number of steps of its processes.
    pub(super) fn steps(&self) -> u64 {
        self.run_queue.steps
    }

    /// Returns the contribution of the group, without the number of messages that it has sent.
    pub(super) fn contribution(&self) -> Contribution {
        self.contribution
    }

    /// Returns true if the group has no event before an instant, unless a message comes.
    pub(super) fn is_idle_until(&self, end: SimTime) -> bool {
        self.contribution.event >= end
    }

    /// Returns true if the group is inactive at boundaries, unless a message comes.
    pub(super) fn is_inactive(&self) -> bool {
        self.is_inactive
    }

    /// Updates the contribution, and whether the group is active at the next boundary, after all tasks but those of an exchange: it takes part
    /// in the whole of it. So the same groups take part in a run that continues an earlier one.
    pub(super) fn settle(&mut self) {
        let (event, boundary) = self.update_contribution();
        self.is_inactive = event.is_none() && boundary.is_none();
    }

    /// Updates the contribution after a task; returns the next event and the next boundary of the region.
    fn update_contribution(&mut self) -> (Option<SimTime>, Option<SimTime>) {
        let failure = self.run_queue.fault.cutoff();
        let next = (self.region.next_event_time(), self.region.next_boundary());
        let event = next.0.filter(|&at| at <= failure).unwrap_or(SimTime::MAX);
        let boundary = next.1.filter(|&at| at <= failure).unwrap_or(SimTime::MAX);
        self.conditional = self.conditional.or_else(|| self.region.late_work());
        let conditional = self.conditional.map_or(SimTime::MAX, |(at, _)| at);
        let checkpoint = self.run_queue.checkpoint.unwrap_or(SimTime::MAX);
        let own =
            Contribution { event, boundary, failure, conditional, checkpoint, ..Contribution::IDENTITY };
        self.contribution = own;
        next
    }

    /// Runs all events before an instant and not after a failure.
    pub(super) fn run(&mut self, end: SimTime, cutoff: SimTime, locations: &[ProcessLocation]) {
        let cutoff = cutoff.min(self.run_queue.fault.cutoff());
        let last = SimTime::from_picos(end.as_picos() - 1).min(cutoff);
        self.run_processes(cutoff, locations);
        while self.commit(last, locations) {
            self.run_processes(cutoff, locations);
        }
        self.settle();
    }

    /// Commits the earliest event, of the region before a conditional one of the same instant; returns false if there is none up to
    /// `last` and the earliest failure.
    #[inline]
    pub(crate) fn commit(&mut self, last: SimTime, locations: &[ProcessLocation]) -> bool {
        let last = last.min(self.run_queue.fault.cutoff());
        let next = self.region.next_event_time().filter(|&at| at <= last);
        let conditional = self.conditionals.first().filter(|first| first.at <= last);
        match (next, conditional) {
            (Some(at), conditional) if conditional.is_none_or(|first| at <= first.at) => {
                self.now = at;
                if let Err((lp, fault)) = self.region.advance(&mut self.run_queue.outbox) {
                    // All earlier events are committed, and the region cannot continue.
                    self.run_queue.fault.record(lp, fault);
                    return false;
                }
                self.dispatch(locations);
            }
            (_, Some(Candidate { at, lp, .. })) => {
                self.now = at;
                self.conditionals.pop_first();
                let local = locations[lp.index()].index;
                let undisturbed_until = self.undisturbed_until(local);
                self.resume(local, SimTime::MAX, Some(undisturbed_until), locations);
            }
            (_, None) => return false,
        }
        true
    }

    /// Returns an instant before which a process gets no token of the work of others, if it needs that.
    fn undisturbed_until(&mut self, local: u32) -> SimTime {
        if !self.run_queue.processes[local as usize].needs_undisturbed_time() {
            return SimTime::ZERO;
        }
        let next = self.conditionals.first().map_or(SimTime::MAX, |next| next.at);
        self.region.undisturbed_until(next)
    }

    /// Returns the time of the next event.
    pub(crate) fn next_event(&mut self) -> Option<SimTime> {
        let conditional = self.conditionals.first().map(|first| first.at);
        self.region.next_event_time().into_iter().chain(conditional).min()
    }

    /// Delivers messages, and runs the processes that they make ready.
    pub(super) fn deliver_messages(
        &mut self,
        messages: &mut RegionMessages<P::Token, R::Message>,
        cutoff: SimTime,
        locations: &[ProcessLocation],
    ) {
        self.is_inactive = false;
        for (_, message) in messages.drain(..) {
            match message {
                RegionMessage::Token(to, token) => {
                    self.deliver(to, token, locations);
                    self.dispatch(locations);
                }
                RegionMessage::Region(message) => self.region.receive(message),
            }
        }
        self.run_processes(cutoff, locations);
    }

    /// Takes part in a round of an exchange.
    pub(super) fn exchange_round(&mut self, epoch: Range<SimTime>, exchange: u32, round: u32) {
        self.region.exchange_round(epoch, exchange, round);
        self.update_contribution();
    }

    pub(super) fn begin_epoch(&mut self, epoch: Range<SimTime>) {
        self.region.begin_epoch(epoch);
        self.settle();
    }

    /// Runs the processes that are ready, and submits their work.
    #[inline]
    pub(crate) fn run_processes(&mut self, cutoff: SimTime, locations: &[ProcessLocation]) {
        if self.run_queue.has_work() {
            self.run_ready_processes(cutoff, locations);
        }
    }

    fn run_ready_processes(&mut self, cutoff: SimTime, locations: &[ProcessLocation]) {
        while let Some(local) = self.run_queue.next_ready() {
            self.resume(local, cutoff, None, locations);
        }
        self.run_queue.sort_submitted();
        for &work in &self.run_queue.outbox.submitted {
            if self.is_whole && work.at < self.now {
                refuse_late(work.from, work.at, self.now);
            }
            self.region.submit(work);
        }
        self.run_queue.outbox.submitted.clear();
    }

    /// Resumes a process and dispatches what it sends.
    fn resume(
        &mut self,
        local: u32,
        cutoff: SimTime,
        granted: Option<SimTime>,
        locations: &[ProcessLocation],
    ) {
        let lp = self.lps[local as usize];
        if let Some(at) = self.run_queue.resume(local, lp, cutoff, granted) {
            self.await_event(lp, at);
        }
        self.dispatch(locations);
    }

    /// Lets a process wait for a conditional event.
    fn await_event(&mut self, lp: LpId, at: SimTime) {
        if self.is_whole {
            self.conditionals.set(lp, at);
        } else {
            self.conditional.get_or_insert((at, lp));
        }
    }

    /// Delivers the tokens of the outbox, and those that their receivers send in response; keeps those for other regions.
    #[inline(always)]
    fn dispatch(&mut self, locations: &[ProcessLocation]) {
        // Most turns send none.
        if self.run_queue.outbox.token_at(0).is_some() {
            self.dispatch_tokens(locations);
        }
    }

    fn dispatch_tokens(&mut self, locations: &[ProcessLocation]) {
        let mut next = 0;
        while let Some((to, token)) = self.run_queue.outbox.token_at(next) {
            next += 1;
            let region = locations[to.index()].region;
            if region == self.index {
                self.deliver(to, token, locations);
            } else {
                self.outgoing.tokens.push((region, to, token));
            }
        }
        self.run_queue.outbox.clear();
    }

    fn deliver(&mut self, to: LpId, token: P::Token, locations: &[ProcessLocation]) {
        match self.run_queue.deliver(locations[to.index()].index, to, token) {
            Wake::No => {}
            Wake::Ready => self.conditionals.remove(to),
            Wake::Conditional(at) => self.await_event(to, at),
        }
    }

    pub(crate) fn finish(self) -> GroupResult<P, R> {
        let waiting = self.run_queue.unfinished().map(|local| self.lps[local]).collect();
        let Self { region, run_queue: ResourceRunQueue { processes, fault, steps, .. }, conditional, .. } =
            self;
        GroupResult { region, processes, waiting, fault, steps, conditional }
    }
}

// By value: of what a message names, the address would keep each piece of work in memory.
#[cold]
fn refuse_late(from: LpId, at: SimTime, now: SimTime) -> ! {
    panic!("lp {from} submits work for {at} s, before the present of {now} s")
}
