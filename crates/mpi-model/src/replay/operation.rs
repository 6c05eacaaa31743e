//! Collective operations in progress.

use pdes_core::{Bytes, Outbox, Rank, SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use trace_mmap::{CallId, CollectiveId, CommId, Communicator, Slot};

use super::partners::{Partner, Scope};
use super::pending::Pending;
use super::strand::Strand;
use super::tag::{self, Side};
use super::times::Alone;
use super::{Failure, Outcome, RankProcess};
use crate::collective::{Answer, Schedule, Step, Steps as _};
use crate::critical_path::CriticalPath;
use crate::machine::Machine;
use crate::request::{Awaited, Completion, OperationIndex, Request, RequestId};
use crate::statistics::ActionKind;
use crate::token::Token;
use crate::wait_state::WaitState;

/// The size of an announcement.
const ANNOUNCEMENT: Bytes = Bytes::new(1);

/// A collective operation in progress.
pub(super) struct Operation<'t> {
    pub(super) kind: ActionKind,
    /// The tag of its messages.
    pub(super) tag: u32,
    pub(super) communicator: &'t Communicator,
    /// The action that it carries out.
    origin: Origin,
    schedule: Schedule<'t>,
    /// How many steps the schedule has given, and what answers it got.
    taken: u64,
    answers: Vec<Answer>,
    /// The answer to its last step.
    pub(super) answer: Answer,
    pub(super) strand: Strand,
    /// Its requests that no wait has completed yet, in the order in which they were made.
    requests: Vec<RequestId>,
    pub(super) wait: Wait,
    /// Its looks in vain since the last that found something.
    pub(super) vain: u32,
    /// What the program waits for, unless the operation blocks.
    pub(super) request: Option<RequestId>,
    /// For whom it has waited.
    scope: Scope,
    /// What led to where it is, unless it blocks.
    path: Option<CriticalPath>,
}

/// The action of the trace that an operation carries out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Origin {
    /// A collective operation on the world.
    Collective(CollectiveId),
    /// A call.
    Call(CallId),
}

/// What an action of the trace asks for.
pub(super) struct Plan<'t> {
    pub(super) kind: ActionKind,
    pub(super) communicator: &'t Communicator,
    pub(super) schedule: Schedule<'t>,
    /// Its request, unless it blocks.
    pub(super) slot: Option<Slot>,
}

/// An operation in progress, but for what follows from the trace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OperationState {
    origin: Origin,
    tag: u32,
    taken: u64,
    answers: Vec<Answer>,
    answer: Answer,
    strand: Strand,
    requests: Vec<RequestId>,
    wait: Wait,
    vain: u32,
    request: Option<RequestId>,
    scope: Scope,
}

impl OperationState {
    pub(super) fn of(operation: &Operation<'_>) -> Self {
        let &Operation { origin, tag, taken, answer, strand, wait, vain, request, scope, .. } = operation;
        let (answers, requests) = (operation.answers.clone(), operation.requests.clone());
        Self { origin, tag, taken, answers, answer, strand, requests, wait, vain, request, scope }
    }
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Wait {
    Nothing,
    /// A blocking send or receive.
    One(RequestId),
    /// A combined send and receive.
    Two([RequestId; 2]),
    /// All its requests, in the order in which they end.
    All,
    /// All its requests from this one on, one after the other.
    Each {
        next: usize,
    },
    /// One of its requests, by its place.
    Request(usize),
    /// Work of the machine.
    Work,
    /// The time that a member tells.
    Hear(RequestId),
    /// What a member lets this one know.
    Learn(RequestId),
    /// A look for an announcement of this rank to be granted: first to pay for it, then to look.
    Look {
        from: Rank,
        paid: bool,
    },
}

impl<'t, M: Machine> RankProcess<'t, M> {
    /// Begins an operation. One that blocks is carried out as far as possible.
    pub(super) fn begin_operation(
        &mut self,
        origin: Origin,
        plan: Plan<'t>,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Outcome<M::Error> {
        let Plan { kind, communicator, schedule, slot } = plan;
        let request = slot.map(|slot| self.request(slot));
        let number = self.number_on(communicator);
        let index = self.vacant_operation();
        let strand = match request {
            Some(_) => {
                let branches = &mut self.rare().branches;
                *branches = branches.wrapping_add(1);
                let number = *branches;
                self.strand.branch(number)
            }
            None => self.strand,
        };
        let tag = tag::of_operation(number, kind);
        let operation = Operation {
            kind,
            tag,
            communicator,
            origin,
            schedule,
            taken: 0,
            answers: Vec::new(),
            answer: Answer::Nothing,
            strand,
            requests: Vec::new(),
            wait: Wait::Nothing,
            vain: 0,
            request,
            scope: request.map(|_| Partner::NOBODY),
            path: request.and_then(|_| self.branch_path()),
        };
        self.operations[index.index()] = Some(Box::new(operation));
        match request {
            None => self.go_on_with(index, outbox),
            Some(request) => {
                self.requests.set(request, Request::Pending(Awaited::Operation(kind)));
                self.run_operation(index, outbox)?;
                Ok(self.end(ActionKind::NonBlocking))
            }
        }
    }

    /// Counts the operations on a communicator. All its ranks call them in the same order, so that the number tells
    /// which message belongs to which.
    fn number_on(&mut self, communicator: &Communicator) -> u32 {
        let calls = match communicator.id {
            CommId::WORLD => &mut self.on_world,
            id => self.rare().operations_on.entry(id).or_insert(0),
        };
        *calls = calls.wrapping_add(1);
        *calls
    }

    fn vacant_operation(&mut self) -> OperationIndex {
        let index = self.operations.iter().position(Option::is_none).unwrap_or_else(|| {
            // No room for more: there are millions of ranks.
            self.operations.reserve_exact(1);
            self.operations.push(None);
            self.operations.len() - 1
        });
        OperationIndex(index as u32)
    }

    /// Goes on with the operation for which the program waits.
    pub(super) fn go_on_with(
        &mut self,
        index: OperationIndex,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Outcome<M::Error> {
        match self.run_operation(index, outbox)? {
            Some(kind) => Ok(self.end(kind)),
            None => Ok(self.hold(Pending::Operation { index })),
        }
    }

    /// Carries an operation out as far as possible; returns its kind where it has ended.
    pub(super) fn run_operation(
        &mut self,
        index: OperationIndex,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<Option<ActionKind>, Failure<M::Error>> {
        let taken = self.operations[index.index()].take();
        let mut operation = taken.expect("an operation that is waited for is in progress");
        std::mem::swap(&mut self.strand, &mut operation.strand);
        self.swap_scope(&mut operation.scope);
        self.swap_path(&mut operation.path);
        let ended = self.steps(index, &mut operation, outbox);
        self.swap_path(&mut operation.path);
        self.swap_scope(&mut operation.scope);
        std::mem::swap(&mut self.strand, &mut operation.strand);
        if !ended? {
            self.operations[index.index()] = Some(operation);
            return Ok(None);
        }
        debug_assert_eq!(self.requests.pending_parts(index), 0, "an operation waits for all its requests");
        operation.requests.iter().for_each(|&request| self.requests.release_part(request));
        match operation.request {
            None => self.strand = operation.strand,
            Some(request) => {
                let completion = Completion { at: operation.strand.clock, received: None };
                self.meet_operation(request, operation.scope);
                self.end_path(request, operation.path);
                self.requests.set(request, Request::Complete(completion));
            }
        }
        Ok(Some(operation.kind))
    }

    /// Takes steps until the operation waits; returns whether it has ended.
    fn steps(
        &mut self,
        index: OperationIndex,
        operation: &mut Operation<'t>,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<bool, Failure<M::Error>> {
        loop {
            if !self.is_over(index, operation) {
                return Ok(false);
            }
            self.complete_wait(operation);
            if !matches!(operation.wait, Wait::Nothing) {
                continue;
            }
            match operation.next_step() {
                Some(step) => self.step(step, index, operation, outbox)?,
                None => {
                    self.spend(operation.kind);
                    return Ok(true);
                }
            }
        }
    }

    /// Returns whether an operation need not wait any longer.
    fn is_over(&self, index: OperationIndex, operation: &Operation<'_>) -> bool {
        let is_pending = |request| matches!(self.requests.get(request), Request::Pending(_));
        match operation.wait {
            Wait::Nothing => true,
            Wait::One(request) | Wait::Hear(request) | Wait::Learn(request) => !is_pending(request),
            Wait::Two(requests) => !requests.into_iter().any(is_pending),
            Wait::All => self.requests.pending_parts(index) == 0,
            Wait::Each { next } => !operation.requests.get(next).is_some_and(|&request| is_pending(request)),
            Wait::Request(place) => !is_pending(operation.requests[place]),
            Wait::Work | Wait::Look { .. } => false,
        }
    }

    /// Moves the clock past what the operation has waited for.
    fn complete_wait(&mut self, operation: &mut Operation<'_>) {
        let kind = operation.kind;
        match std::mem::replace(&mut operation.wait, Wait::Nothing) {
            Wait::Nothing | Wait::Work | Wait::Look { .. } => {}
            Wait::Hear(request) => {
                self.gather_causes(|rank, due| due.extend(rank.complete_later([request].into_iter())));
                if let Some(told) = self.take_part(request) {
                    self.wait_until(told.at, kind, told_by(told));
                }
            }
            Wait::Learn(request) => operation.answer = self.learned(request),
            Wait::One(request) => self.take_parts(kind, &mut vec![request]),
            Wait::Two(requests) => self.take_parts(kind, &mut requests.to_vec()),
            Wait::All => self.take_parts(kind, &mut operation.requests),
            Wait::Each { next } if next < operation.requests.len() => {
                self.settle_part(kind, operation.requests[next]);
                operation.wait = Wait::Each { next: next + 1 };
            }
            Wait::Each { .. } => {
                operation.requests.drain(..).for_each(|part| self.requests.release_part(part))
            }
            Wait::Request(place) => self.settle_part(kind, operation.requests[place]),
        }
    }

    fn settle_part(&mut self, kind: ActionKind, request: RequestId) {
        if let Some(completion) = self.requests.take(request) {
            self.settle(request, completion, kind);
        }
    }

    /// Completes a request and gives it up, without a cost.
    pub(super) fn take_part(&mut self, request: RequestId) -> Option<Completion> {
        let completion = self.requests.take(request);
        self.requests.release_part(request);
        completion
    }

    /// Completes requests and gives them up. The library takes what is complete first and pays for one after the other;
    /// among those that are complete at once, the order does not change the sum.
    fn take_parts(&mut self, kind: ActionKind, requests: &mut Vec<RequestId>) {
        let partner = self.last_partner(requests.iter().copied());
        self.gather_causes(|rank, due| due.extend(rank.complete_later(requests.iter().copied())));
        let completions = requests.iter().filter_map(|&request| self.requests.take(request)).collect();
        requests.drain(..).for_each(|request| self.requests.release_part(request));
        self.settle_all(completions, kind, partner);
    }

    fn step(
        &mut self,
        step: Step,
        index: OperationIndex,
        operation: &mut Operation<'t>,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<(), Failure<M::Error>> {
        let parameters = self.world.parameters;
        self.spend(operation.kind);
        match step {
            Step::Send { to, bytes } => {
                if self.is_detached(bytes) {
                    self.strand.clock += parameters.send.cost(bytes);
                }
                let request = self.requests.add_part(index);
                self.send_part(operation, to, bytes, Side::Data, request, outbox);
                operation.wait = Wait::One(request);
            }
            Step::Recv { from, bytes } => {
                let request = self.requests.add_part(index);
                self.receive_part(operation, from, bytes, Side::Data, request, outbox)?;
                operation.wait = Wait::One(request);
            }
            Step::Isend { to, bytes } => {
                self.strand.clock += parameters.isend.cost(bytes);
                let request = self.requests.add_part(index);
                operation.requests.push(request);
                self.send_part(operation, to, bytes, Side::Data, request, outbox);
            }
            Step::Irecv { from, bytes } => {
                self.pay_for_irecv(operation.kind);
                let request = self.requests.add_part(index);
                operation.requests.push(request);
                self.receive_part(operation, from, bytes, Side::Data, request, outbox)?;
            }
            Step::SendRecv { to, send_bytes, from, recv_bytes } => {
                if operation.is_own(to) && operation.is_own(from) {
                    return Ok(());
                }
                self.strand.clock += parameters.isend.cost(send_bytes);
                let requests = [self.requests.add_part(index), self.requests.add_part(index)];
                self.send_part(operation, to, send_bytes, Side::Data, requests[0], outbox);
                self.receive_part(operation, from, recv_bytes, Side::Data, requests[1], outbox)?;
                operation.wait = Wait::Two(requests);
            }
            Step::WaitAll => operation.wait = Wait::All,
            Step::WaitEach => operation.wait = Wait::Each { next: 0 },
            Step::Wait { request } => operation.wait = Wait::Request(request as usize),
            Step::Tell { to, bytes } => {
                let to = operation.communicator.group.member(to.get());
                let data = bytes.map_or(Ok(Alone::default()), |bytes| self.alone(to, bytes, 1))?;
                let told = (operation.tag, operation.kind);
                self.tell(to, operation.communicator.id, told, data, outbox)?;
                if bytes.is_some_and(|bytes| !self.is_detached(bytes)) {
                    self.strand.clock += data.time;
                    self.add_transfer(operation.kind, data);
                }
            }
            Step::Hear { from } => {
                let from = operation.communicator.group.member(from.get());
                let request = self.requests.add_part(index);
                let receive = self.new_receive(Bytes::ZERO, Some(operation.tag), request);
                self.hear(from, operation.communicator.id, receive, outbox);
                operation.wait = Wait::Hear(request);
            }
            Step::Pass { peer, bytes, times } => {
                let peer = operation.communicator.group.member(peer.get());
                let data = self.alone(peer, bytes, times)?;
                self.advance(Some(data.time), "a collective operation", || {
                    format!("{times} messages of {bytes}")
                })?;
                self.add_transfer(operation.kind, data);
            }
            Step::Compute { flops } => {
                if self.computes(flops, Some(index), outbox)? {
                    operation.wait = Wait::Work;
                }
            }
            Step::Sleep { duration } => {
                self.advance(Some(duration), "a collective operation", || format!("a sleep of {duration}"))?;
            }
            Step::Announce { to } => {
                self.strand.clock += parameters.send.cost(ANNOUNCEMENT);
                let request = self.requests.add_part(index);
                self.send_part(operation, to, ANNOUNCEMENT, Side::Announcement, request, outbox);
                operation.wait = Wait::One(request);
            }
            Step::Greet { from } => {
                let request = self.requests.add_part(index);
                self.receive_part(operation, from, ANNOUNCEMENT, Side::Announcement, request, outbox)?;
                operation.wait = Wait::One(request);
            }
            Step::Look { from } => self.begin_look(operation, from),
            Step::Ignore { from } => self.ignore(operation, from),
            Step::Assign { to, numbers } => self.assign(operation, to, numbers, outbox),
            Step::Learn { from } => {
                let request = self.requests.add_part(index);
                self.begin_learning(operation, from, request, outbox);
                operation.wait = Wait::Learn(request);
            }
            Step::Put { to, bytes } => {
                self.strand.clock += parameters.send.cost(bytes);
                let request = self.requests.add_part(index);
                self.send_part(operation, to, bytes, Side::Put, request, outbox);
                operation.wait = Wait::One(request);
            }
            Step::Accept { from, bytes } => {
                let request = self.requests.add_part(index);
                operation.requests.push(request);
                self.receive_part(operation, from, bytes, Side::Put, request, outbox)?;
            }
        }
        Ok(())
    }

    fn send_part(
        &mut self,
        operation: &Operation<'_>,
        to: Rank,
        bytes: Bytes,
        side: Side,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let to = operation.communicator.group.member(to.get());
        let tag = side.of(operation.tag);
        self.spend(operation.kind);
        self.send_collective(to, operation.communicator.id, tag, bytes, request, outbox);
    }

    fn receive_part(
        &mut self,
        operation: &Operation<'_>,
        from: Rank,
        capacity: Bytes,
        side: Side,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<(), Failure<M::Error>> {
        let from = operation.communicator.group.member(from.get());
        let tag = side.of(operation.tag);
        self.receive_collective(from, operation.communicator.id, tag, capacity, request, outbox)
    }

    /// Takes in that a request of an operation is complete; returns whether the program can go on.
    pub(super) fn part_completed(
        &mut self,
        index: OperationIndex,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<bool, Failure<M::Error>> {
        let Some(operation) = &self.operations[index.index()] else { return Ok(false) };
        if !self.is_over(index, operation) {
            return Ok(false);
        }
        let Some(request) = operation.request else { return Ok(true) };
        let ended = self.run_operation(index, outbox)?.is_some();
        Ok(ended && self.awaited == Some(request))
    }

    /// Takes in that the machine has done what an operation had it do; returns whether the program can go on.
    pub(super) fn work_done(
        &mut self,
        index: OperationIndex,
        at: SimTime,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<bool, Failure<M::Error>> {
        if let Some(operation) = &mut self.operations[index.index()] {
            operation.strand.clock = at;
            operation.wait = Wait::Nothing;
        }
        self.part_completed(index, outbox)
    }

    /// Returns what keeps an operation waiting.
    pub(super) fn operation_waits(&self, index: OperationIndex) -> Option<Awaited> {
        let operation = self.operations[index.index()].as_ref()?;
        let pending = |request| match self.requests.get(request) {
            Request::Pending(awaited) => Some(awaited),
            Request::Inactive | Request::Complete(_) => None,
        };
        match operation.wait {
            Wait::One(request) | Wait::Hear(request) | Wait::Learn(request) => pending(request),
            Wait::Two(requests) => requests.into_iter().find_map(pending),
            Wait::Request(place) => pending(operation.requests[place]),
            _ => operation.requests.iter().copied().find_map(pending),
        }
    }

    /// Finds the operation in progress whose request has this place.
    pub(super) fn operation_at(&self, request: RequestId) -> Option<OperationIndex> {
        let found = self.operations.iter().position(|operation| {
            operation.as_deref().is_some_and(|operation| operation.request == Some(request))
        })?;
        Some(OperationIndex(found as u32))
    }
}

/// The member that has told the time, and beside it how long the data take.
fn told_by(told: Completion) -> Partner {
    let delay = told.received.map_or(SimDuration::ZERO, |picos| SimDuration::from_picos(picos.get()));
    let ready =
        told.at.checked_since(SimTime::ZERO + delay).map_or(SimTime::ZERO, |since| SimTime::ZERO + since);
    Partner { ready, state: WaitState::LateSender }
}

impl<'t, M: Machine> RankProcess<'t, M> {
    /// Makes an operation go on from a state; `None` where the trace asks for no such operation.
    pub(super) fn take_up_operation(&self, state: OperationState) -> Option<Operation<'t>> {
        let OperationState {
            origin,
            tag,
            taken,
            answers,
            answer,
            strand,
            requests,
            wait,
            vain,
            request,
            scope,
        } = state;
        let Plan { kind, communicator, mut schedule, .. } = self.plan(origin)?;
        let (mut given, mut next) = (answers.iter(), Answer::Nothing);
        for step in 1..=taken {
            let is_asking = matches!(schedule.next_step(next)?, Step::Look { .. } | Step::Learn { .. });
            // The answer to the last step may be still to come.
            let is_answered = is_asking && step < taken;
            next = if is_answered { *given.next()? } else { Answer::Nothing };
        }
        Some(Operation {
            kind,
            tag,
            communicator,
            origin,
            schedule,
            taken,
            answers,
            answer,
            strand,
            requests,
            wait,
            vain,
            request,
            scope,
            path: None,
        })
    }
}

impl Operation<'_> {
    /// Takes the next step of the schedule, with what it is to know of the last one.
    #[inline]
    fn next_step(&mut self) -> Option<Step> {
        let answer = std::mem::take(&mut self.answer);
        if answer != Answer::Nothing {
            self.answers.push(answer);
        }
        self.taken += 1;
        self.schedule.next_step(answer)
    }

    fn is_own(&self, member: Rank) -> bool {
        member.get() == self.communicator.rank
    }
}
