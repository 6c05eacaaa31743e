//! A region group: a region and the logical processes that belong to it.

use std::ops::Range;

use super::contribution::Contribution;
use super::mailboxes::{RegionMessage, RegionMessages};
use super::{ProcessLocation, Region, RegionIndex};
use crate::engine::first_fault::FirstFault;
use crate::engine::jitter::Jitter;
use crate::resource_run_queue::ResourceRunQueue;
use crate::{Process, Rank, SimTime, Wake};

/// The outgoing tokens and messages of a region group.
pub(super) struct Outgoing<T, M> {
    pub(super) tokens: Vec<(RegionIndex, Rank, T)>,
    pub(super) messages: Vec<(RegionIndex, M)>,
}

impl<T, M> Outgoing<T, M> {
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.messages.is_empty()
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (RegionIndex, RegionMessage<T, M>)> + '_ {
        let tokens = self.tokens.drain(..).map(|(home, to, token)| (home, RegionMessage::Token(to, token)));
        tokens.chain(self.messages.drain(..).map(|(to, message)| (to, RegionMessage::Region(message))))
    }
}

/// A region with its processes: the unit that a worker claims and runs.
pub(super) struct RegionGroup<P: Process, R: Region<P>> {
    index: RegionIndex,
    region: R,
    ranks: Vec<Rank>,
    run_queue: ResourceRunQueue<P>,
    /// First conditional event for which a process has paused; it ends the run.
    conditional: Option<(SimTime, Rank)>,
    pub(super) outgoing: Outgoing<P::Token, R::Message>,
    /// Contribution after the last task.
    contribution: Contribution,
    /// True if the group has no event and no active boundary, unless a message comes.
    is_inactive: bool,
}

/// The result of a region group.
pub(super) struct GroupResult<P: Process, R> {
    pub(super) region: R,
    pub(super) processes: Vec<P>,
    pub(super) waiting: Vec<Rank>,
    pub(super) fault: FirstFault<P::Error>,
    pub(super) steps: u64,
    pub(super) conditional: Option<(SimTime, Rank)>,
}

impl<P: Process, R: Region<P>> RegionGroup<P, R> {
    pub(super) fn new(
        index: RegionIndex,
        region: R,
        ranked_processes: Vec<(Rank, P)>,
        jitter: Option<u64>,
    ) -> Self {
        let (ranks, processes): (Vec<Rank>, Vec<P>) = ranked_processes.into_iter().unzip();
        Self {
            index,
            region,
            ranks,
            run_queue: ResourceRunQueue::new(processes, jitter.map(|seed| Jitter::new(seed, index as usize))),
            conditional: None,
            outgoing: Outgoing { tokens: Vec::new(), messages: Vec::new() },
            contribution: Contribution { event: SimTime::ZERO, ..Contribution::IDENTITY },
            is_inactive: false,
        }
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

    /// Updates the contribution after a task.
    pub(super) fn update_contribution(&mut self) {
        let failure = self.run_queue.fault.cutoff();
        let event = self.region.next_event_time().filter(|&at| at <= failure).unwrap_or(SimTime::MAX);
        let boundary = self.region.next_boundary().filter(|&at| at <= failure).unwrap_or(SimTime::MAX);
        self.conditional = self.conditional.or_else(|| self.region.late_work());
        let conditional = self.conditional.map_or(SimTime::MAX, |(at, _)| at);
        let checkpoint = self.run_queue.checkpoint.unwrap_or(SimTime::MAX);
        let own =
            Contribution { event, boundary, failure, conditional, checkpoint, ..Contribution::IDENTITY };
        self.contribution = own;
    }

    /// Runs all events before an instant and not after a failure.
    pub(super) fn run(&mut self, end: SimTime, cutoff: SimTime, locations: &[ProcessLocation]) {
        let cutoff = cutoff.min(self.run_queue.fault.cutoff());
        self.run_processes(cutoff, locations);
        while let Some(at) = self.region.next_event_time()
            && at < end
            && at <= cutoff.min(self.run_queue.fault.cutoff())
        {
            if let Err((rank, fault)) = self.region.advance(&mut self.run_queue.outbox) {
                // Later events of the region do not matter any more.
                self.run_queue.fault.record(rank, fault);
                break;
            }
            self.dispatch(locations);
            self.run_processes(cutoff, locations);
        }
        self.update_contribution();
        self.is_inactive = self.region.next_event_time().is_none() && self.region.next_boundary().is_none();
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
        self.region.exchange_round(epoch, exchange, round, &mut self.outgoing.messages);
        self.update_contribution();
    }

    pub(super) fn begin_epoch(&mut self, boundary: SimTime) {
        self.region.begin_epoch(boundary);
        self.update_contribution();
    }

    #[inline]
    fn run_processes(&mut self, cutoff: SimTime, locations: &[ProcessLocation]) {
        if self.run_queue.has_work() {
            self.run_ready_processes(cutoff, locations);
        }
    }

    fn run_ready_processes(&mut self, cutoff: SimTime, locations: &[ProcessLocation]) {
        while let Some(place) = self.run_queue.next_ready() {
            let rank = self.ranks[place as usize];
            if let Some(at) = self.run_queue.resume(place, rank, cutoff, false) {
                self.conditional.get_or_insert((at, rank));
            }
            self.dispatch(locations);
        }
        self.run_queue.sort_submitted();
        for &work in &self.run_queue.outbox.submitted {
            self.region.submit(work, &mut self.outgoing.messages);
        }
        self.run_queue.outbox.submitted.clear();
    }

    /// Delivers the tokens of the outbox, and those that their receivers send in response; keeps those for other regions.
    fn dispatch(&mut self, locations: &[ProcessLocation]) {
        let mut next = 0;
        while let Some((to, token)) = self.run_queue.outbox.token_at(next) {
            next += 1;
            let home = locations[to.index()].region;
            if home == self.index {
                self.deliver(to, token, locations);
            } else {
                self.outgoing.tokens.push((home, to, token));
            }
        }
        self.run_queue.outbox.clear();
    }

    fn deliver(&mut self, to: Rank, token: P::Token, locations: &[ProcessLocation]) {
        if let Wake::Conditional(at) = self.run_queue.deliver(locations[to.index()].index, to, token) {
            self.conditional.get_or_insert((at, to));
        }
    }

    pub(super) fn finish(self) -> GroupResult<P, R> {
        let waiting = self.run_queue.unfinished().map(|place| self.ranks[place]).collect();
        let Self { region, run_queue: ResourceRunQueue { processes, fault, steps, .. }, conditional, .. } =
            self;
        GroupResult { region, processes, waiting, fault, steps, conditional }
    }
}
