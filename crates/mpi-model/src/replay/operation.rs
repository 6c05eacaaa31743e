//! Collective operations in progress.

use pdes_core::{Bytes, Outbox, Rank, SimTime};
use serde::{Deserialize, Serialize};
use trace_mmap::{CallId, CollectiveId, CommId, Communicator, Slot};

use super::pending::Pending;
use super::tag::{self, MessageClass};
use super::thread::Thread;
use super::{Failure, Outcome, RankProcess};
use crate::collective::{Answer, Schedule, Step, Steps as _};
use crate::machine::Machine;
use crate::observer::{Analysis, UncontendedMessages};
use crate::request::{Awaited, OperationIndex, Request, RequestCompletion, RequestId};
use crate::statistics::ActionKind;
use crate::token::Token;

/// Size of an announcement.
const ANNOUNCEMENT: Bytes = Bytes::new(1);

/// A collective operation in progress.
pub(super) struct Operation<'t> {
    pub(super) kind: ActionKind,
    /// Tag of its messages.
    pub(super) tag: u32,
    pub(super) communicator: &'t Communicator,
    /// Action that the operation carries out.
    origin: Origin,
    schedule: Schedule<'t>,
    /// Number of steps taken from the schedule, and the answers to them.
    steps_taken: u64,
    answers: Vec<Answer>,
    /// Answer to its last step.
    pub(super) answer: Answer,
    pub(super) thread: Thread,
    /// Its requests that no wait has completed yet, in the order of creation.
    requests: Vec<RequestId>,
    pub(super) wait: Wait,
    /// Number of failed polls since the last successful one.
    pub(super) failed_polls: u32,
    /// Request of the program; `None` for a blocking operation.
    pub(super) request: Option<RequestId>,
}

/// Action of the trace that an operation carries out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Origin {
    /// A blocking collective operation on `MPI_COMM_WORLD`.
    Collective(CollectiveId),
    /// A call.
    Call(CallId),
}

/// Operation of an action of the trace, before it begins.
pub(super) struct OperationPlan<'t> {
    pub(super) kind: ActionKind,
    pub(super) communicator: &'t Communicator,
    pub(super) schedule: Schedule<'t>,
    /// Slot of its request; `None` for a blocking operation.
    pub(super) slot: Option<Slot>,
}

/// State of an operation in progress that does not follow from the trace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OperationState {
    origin: Origin,
    tag: u32,
    steps_taken: u64,
    answers: Vec<Answer>,
    answer: Answer,
    thread: Thread,
    requests: Vec<RequestId>,
    wait: Wait,
    failed_polls: u32,
    request: Option<RequestId>,
}

impl OperationState {
    pub(super) fn of(operation: &Operation<'_>) -> Self {
        let &Operation {
            origin, tag, steps_taken: taken, answer, thread, wait, failed_polls, request, ..
        } = operation;
        let (answers, requests) = (operation.answers.clone(), operation.requests.clone());
        Self {
            origin,
            tag,
            steps_taken: taken,
            answers,
            answer,
            thread,
            requests,
            wait,
            failed_polls,
            request,
        }
    }
}

/// Event for which an operation waits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Wait {
    Nothing,
    /// A blocking send or receive.
    One(RequestId),
    /// A combined send and receive.
    Two([RequestId; 2]),
    /// All its requests, in the order of completion.
    All,
    /// All its requests from `next` on, one after the other.
    Each {
        next: usize,
    },
    /// One of its requests, by index.
    Request(usize),
    /// Work of the machine.
    Work,
    /// Time from a member.
    Time(RequestId),
    /// Numbers from a member.
    Numbers(RequestId),
    /// A poll for an announcement of `from` to be granted: first to pay for it, then to carry it out.
    Poll {
        from: Rank,
        paid: bool,
    },
}

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    /// Begins an operation and runs it as far as possible.
    pub(super) fn begin_operation(
        &mut self,
        origin: Origin,
        plan: OperationPlan<'t>,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Outcome<M::Error> {
        let OperationPlan { kind, communicator, schedule, slot } = plan;
        let request = slot.map(|slot| self.request(slot));
        let number = self.number_on(communicator);
        let index = self.free_operation_index();
        let thread = match request {
            Some(_) => {
                let branches = &mut self.cold().nonblocking_operations;
                *branches = branches.wrapping_add(1);
                let number = *branches;
                self.thread.fork(number)
            }
            None => self.thread,
        };
        let tag = tag::operation_tag(number, kind);
        let operation = Operation {
            kind,
            tag,
            communicator,
            origin,
            schedule,
            steps_taken: 0,
            answers: Vec::new(),
            answer: Answer::Nothing,
            thread,
            requests: Vec::new(),
            wait: Wait::Nothing,
            failed_polls: 0,
            request,
        };
        self.operations[index.index()] = Some(Box::new(operation));
        match request {
            None => self.resume_blocking_operation(index, outbox),
            Some(request) => {
                self.requests.set(request, Request::Pending(Awaited::Operation(kind)));
                self.observers.operation_started(index);
                self.run_operation(index, outbox)?;
                Ok(self.end(ActionKind::NonBlocking))
            }
        }
    }

    /// Counts the operations on a communicator. All its ranks call them in the same order, so that the number assigns messages to
    /// operations.
    fn number_on(&mut self, communicator: &Communicator) -> u32 {
        let calls = match communicator.id {
            CommId::WORLD => &mut self.operations_on_world,
            id => self.cold().operations_on.entry(id).or_insert(0),
        };
        *calls = calls.wrapping_add(1);
        *calls
    }

    fn free_operation_index(&mut self) -> OperationIndex {
        let index = self.operations.iter().position(Option::is_none).unwrap_or_else(|| {
            // Exact capacity: there may be millions of ranks.
            self.operations.reserve_exact(1);
            self.operations.push(None);
            self.operations.len() - 1
        });
        OperationIndex(index as u32)
    }

    /// Resumes the operation for which the program waits.
    pub(super) fn resume_blocking_operation(
        &mut self,
        index: OperationIndex,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Outcome<M::Error> {
        match self.run_operation(index, outbox)? {
            Some(kind) => Ok(self.end(kind)),
            None => Ok(self.keep_pending(Pending::Operation { index })),
        }
    }

    /// Runs an operation as far as possible; returns its kind where it has ended.
    pub(super) fn run_operation(
        &mut self,
        index: OperationIndex,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<Option<ActionKind>, Failure<M::Error>> {
        let taken = self.operations[index.index()].take();
        let mut operation = taken.expect("an awaited operation is in progress");
        // The operation runs as the current thread of control: its clock, waits and path stand in for those of the program.
        std::mem::swap(&mut self.thread, &mut operation.thread);
        let is_beside = operation.request.is_some();
        if is_beside {
            self.observers.operation_resumed(index);
        }
        let ended = self.run_steps(index, &mut operation, outbox);
        if is_beside {
            self.observers.operation_paused(index);
        }
        std::mem::swap(&mut self.thread, &mut operation.thread);
        if !ended? {
            self.operations[index.index()] = Some(operation);
            return Ok(None);
        }
        debug_assert_eq!(self.requests.pending_parts(index), 0, "an operation waits for all its requests");
        operation.requests.iter().for_each(|&request| self.requests.release_part(request));
        match operation.request {
            None => self.thread = operation.thread,
            Some(request) => {
                let completion = RequestCompletion { at: operation.thread.clock, received: None };
                self.observers.operation_ended(index, request);
                self.requests.set(request, Request::Complete(completion));
            }
        }
        Ok(Some(operation.kind))
    }

    /// Takes steps until the operation waits; returns whether it has ended.
    fn run_steps(
        &mut self,
        index: OperationIndex,
        operation: &mut Operation<'t>,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<bool, Failure<M::Error>> {
        loop {
            if !self.is_wait_over(index, operation) {
                return Ok(false);
            }
            self.complete_wait(operation);
            if !matches!(operation.wait, Wait::Nothing) {
                continue;
            }
            match operation.next_step() {
                Some(step) => self.step(step, index, operation, outbox)?,
                None => {
                    self.worked(operation.kind);
                    return Ok(true);
                }
            }
        }
    }

    /// Returns whether the wait of an operation is over.
    fn is_wait_over(&self, index: OperationIndex, operation: &Operation<'_>) -> bool {
        let is_pending = |request| matches!(self.requests.get(request), Request::Pending(_));
        match operation.wait {
            Wait::Nothing => true,
            Wait::One(request) | Wait::Time(request) | Wait::Numbers(request) => !is_pending(request),
            Wait::Two(requests) => !requests.into_iter().any(is_pending),
            Wait::All => self.requests.pending_parts(index) == 0,
            Wait::Each { next } => !operation.requests.get(next).is_some_and(|&request| is_pending(request)),
            Wait::Request(index) => !is_pending(operation.requests[index]),
            Wait::Work | Wait::Poll { .. } => false,
        }
    }

    /// Advances the clock past the events for which the operation has waited, and charges them.
    fn complete_wait(&mut self, operation: &mut Operation<'_>) {
        let kind = operation.kind;
        match std::mem::replace(&mut operation.wait, Wait::Nothing) {
            Wait::Nothing | Wait::Work | Wait::Poll { .. } => {}
            Wait::Time(request) => {
                if let Some(told) = self.take_part(request) {
                    self.wait_for(Some(request), told.at, kind);
                }
            }
            Wait::Numbers(request) => operation.answer = self.received_numbers(request),
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
            Wait::Request(index) => self.settle_part(kind, operation.requests[index]),
        }
    }

    fn settle_part(&mut self, kind: ActionKind, request: RequestId) {
        if let Some(completion) = self.requests.take_completion(request) {
            self.settle(request, completion, kind);
        }
    }

    /// Completes and frees a request, at no cost.
    pub(super) fn take_part(&mut self, request: RequestId) -> Option<RequestCompletion> {
        let completion = self.requests.take_completion(request);
        self.requests.release_part(request);
        completion
    }

    /// Completes and frees requests, in the order of time, and charges each; among those of one instant, the order does not change
    /// the sum.
    fn take_parts(&mut self, kind: ActionKind, requests: &mut Vec<RequestId>) {
        self.report_completing(requests.iter().copied());
        let completions =
            requests.iter().filter_map(|&request| self.requests.take_completion(request)).collect();
        requests.drain(..).for_each(|request| self.requests.release_part(request));
        self.settle_all(completions, kind);
    }

    fn step(
        &mut self,
        step: Step,
        index: OperationIndex,
        operation: &mut Operation<'t>,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<(), Failure<M::Error>> {
        let parameters = self.replay.parameters;
        self.worked(operation.kind);
        match step {
            Step::Send { to, bytes } => {
                if self.is_detached(bytes) {
                    self.thread.clock += parameters.send.cost(bytes);
                }
                let request = self.requests.add_part(index);
                self.send_part(operation, to, bytes, MessageClass::Data, request, outbox);
                operation.wait = Wait::One(request);
            }
            Step::Recv { from, bytes } => {
                let request = self.requests.add_part(index);
                self.receive_part(operation, from, bytes, MessageClass::Data, request, outbox)?;
                operation.wait = Wait::One(request);
            }
            Step::Isend { to, bytes } => {
                self.thread.clock += parameters.isend.cost(bytes);
                let request = self.requests.add_part(index);
                operation.requests.push(request);
                self.send_part(operation, to, bytes, MessageClass::Data, request, outbox);
            }
            Step::Irecv { from, bytes } => {
                self.pay_for_irecv(operation.kind);
                let request = self.requests.add_part(index);
                operation.requests.push(request);
                self.receive_part(operation, from, bytes, MessageClass::Data, request, outbox)?;
            }
            Step::SendRecv { to, send_bytes, from, recv_bytes } => {
                if operation.is_self(to) && operation.is_self(from) {
                    return Ok(());
                }
                self.thread.clock += parameters.isend.cost(send_bytes);
                let requests = [self.requests.add_part(index), self.requests.add_part(index)];
                self.send_part(operation, to, send_bytes, MessageClass::Data, requests[0], outbox);
                self.receive_part(operation, from, recv_bytes, MessageClass::Data, requests[1], outbox)?;
                operation.wait = Wait::Two(requests);
            }
            Step::WaitAll => operation.wait = Wait::All,
            Step::WaitEach => operation.wait = Wait::Each { next: 0 },
            Step::Wait { request } => operation.wait = Wait::Request(request as usize),
            Step::SendToken { to, bytes } => {
                let to = operation.communicator.group.member(to.get());
                let data = bytes
                    .map_or(Ok(UncontendedMessages::default()), |bytes| self.uncontended(to, bytes, 1))?;
                let told = (operation.tag, operation.kind);
                self.send_time(to, operation.communicator.id, told, data, outbox)?;
                if bytes.is_some_and(|bytes| !self.is_detached(bytes)) {
                    self.thread.clock += data.time;
                    self.observers.messages_charged(operation.kind, &data);
                }
            }
            Step::RecvToken { from } => {
                let from = operation.communicator.group.member(from.get());
                let request = self.requests.add_part(index);
                let receive = self.new_receive(Bytes::ZERO, Some(operation.tag), request);
                self.post_time(from, operation.communicator.id, receive, outbox);
                operation.wait = Wait::Time(request);
            }
            Step::UncontendedTransfers { peer, bytes, times } => {
                let peer = operation.communicator.group.member(peer.get());
                let data = self.uncontended(peer, bytes, times)?;
                self.advance(Some(data.time), "a collective operation", || {
                    format!("{times} messages of {bytes}")
                })?;
                self.observers.messages_charged(operation.kind, &data);
            }
            Step::Compute { flops } => {
                if self.start_computation(flops, Some(index), outbox)? {
                    operation.wait = Wait::Work;
                }
            }
            Step::Sleep { duration } => {
                self.advance(Some(duration), "a collective operation", || format!("a sleep of {duration}"))?;
            }
            Step::SendAnnouncement { to } => {
                self.thread.clock += parameters.send.cost(ANNOUNCEMENT);
                let request = self.requests.add_part(index);
                self.send_part(operation, to, ANNOUNCEMENT, MessageClass::Announcement, request, outbox);
                operation.wait = Wait::One(request);
            }
            Step::RecvAnnouncement { from } => {
                let request = self.requests.add_part(index);
                self.receive_part(
                    operation,
                    from,
                    ANNOUNCEMENT,
                    MessageClass::Announcement,
                    request,
                    outbox,
                )?;
                operation.wait = Wait::One(request);
            }
            Step::PollAnnouncement { from } => self.begin_poll(operation, from),
            Step::DiscardAnnouncement { from } => self.ignore_announcement(operation, from),
            Step::SendOutOfBand { to, numbers } => self.send_numbers(operation, to, numbers, outbox),
            Step::RecvOutOfBand { from } => {
                let request = self.requests.add_part(index);
                self.post_numbers(operation, from, request, outbox);
                operation.wait = Wait::Numbers(request);
            }
            Step::Put { to, bytes } => {
                self.thread.clock += parameters.send.cost(bytes);
                let request = self.requests.add_part(index);
                self.send_part(operation, to, bytes, MessageClass::Put, request, outbox);
                operation.wait = Wait::One(request);
            }
            Step::ExpectPut { from, bytes } => {
                let request = self.requests.add_part(index);
                operation.requests.push(request);
                self.receive_part(operation, from, bytes, MessageClass::Put, request, outbox)?;
            }
        }
        Ok(())
    }

    fn send_part(
        &mut self,
        operation: &Operation<'_>,
        to: Rank,
        bytes: Bytes,
        class: MessageClass,
        request: RequestId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        let to = operation.communicator.group.member(to.get());
        let tag = class.tag_of(operation.tag);
        self.worked(operation.kind);
        self.send_collective(to, operation.communicator.id, tag, bytes, request, outbox);
    }

    fn receive_part(
        &mut self,
        operation: &Operation<'_>,
        from: Rank,
        capacity: Bytes,
        class: MessageClass,
        request: RequestId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<(), Failure<M::Error>> {
        let from = operation.communicator.group.member(from.get());
        let tag = class.tag_of(operation.tag);
        self.receive_collective(from, operation.communicator.id, tag, capacity, request, outbox)
    }

    /// Handles the completion of a request of an operation; returns whether the program can resume.
    pub(super) fn part_completed(
        &mut self,
        index: OperationIndex,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<bool, Failure<M::Error>> {
        let Some(operation) = &self.operations[index.index()] else { return Ok(false) };
        if !self.is_wait_over(index, operation) {
            return Ok(false);
        }
        let Some(request) = operation.request else { return Ok(true) };
        let ended = self.run_operation(index, outbox)?.is_some();
        Ok(ended && self.awaited == Some(request))
    }

    /// Handles the end of work that the machine did for an operation; returns whether the program can resume.
    pub(super) fn work_done(
        &mut self,
        index: OperationIndex,
        at: SimTime,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<bool, Failure<M::Error>> {
        if let Some(operation) = &mut self.operations[index.index()] {
            operation.thread.clock = at;
            operation.wait = Wait::Nothing;
        }
        self.part_completed(index, outbox)
    }

    /// Returns the event for which an operation waits.
    pub(super) fn operation_awaits(&self, index: OperationIndex) -> Option<Awaited> {
        let operation = self.operations[index.index()].as_ref()?;
        let pending = |request| match self.requests.get(request) {
            Request::Pending(awaited) => Some(awaited),
            Request::Inactive | Request::Complete(_) => None,
        };
        match operation.wait {
            Wait::One(request) | Wait::Time(request) | Wait::Numbers(request) => pending(request),
            Wait::Two(requests) => requests.into_iter().find_map(pending),
            Wait::Request(index) => pending(operation.requests[index]),
            _ => operation.requests.iter().copied().find_map(pending),
        }
    }

    /// Returns the operation in progress with this request.
    pub(super) fn operation_at(&self, request: RequestId) -> Option<OperationIndex> {
        let found = self.operations.iter().position(|operation| {
            operation.as_deref().is_some_and(|operation| operation.request == Some(request))
        })?;
        Some(OperationIndex(found as u32))
    }
}

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    /// Restores an operation from a state; `None` where the trace has no such operation.
    pub(super) fn restore_operation(&self, state: OperationState) -> Option<Operation<'t>> {
        let OperationState {
            origin,
            tag,
            steps_taken: taken,
            answers,
            answer,
            thread,
            requests,
            wait,
            failed_polls,
            request,
        } = state;
        let OperationPlan { kind, communicator, mut schedule, .. } = self.plan(origin)?;
        let (mut given, mut next) = (answers.iter(), Answer::Nothing);
        for step in 1..=taken {
            let is_asking = matches!(
                schedule.next_step(next)?,
                Step::PollAnnouncement { .. } | Step::RecvOutOfBand { .. }
            );
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
            steps_taken: taken,
            answers,
            answer,
            thread,
            requests,
            wait,
            failed_polls,
            request,
        })
    }
}

impl Operation<'_> {
    /// Takes the next step of the schedule, given the answer to the last one.
    #[inline]
    fn next_step(&mut self) -> Option<Step> {
        let answer = std::mem::take(&mut self.answer);
        if answer != Answer::Nothing {
            self.answers.push(answer);
        }
        self.steps_taken += 1;
        self.schedule.next_step(answer)
    }

    fn is_self(&self, member: Rank) -> bool {
        member.get() == self.communicator.rank
    }
}
