//! Steps of collective operations, as point-to-point messages.

use pdes_core::{Bytes, Rank};

use super::Means;
use super::operation::{RunningOperation, Wait};
use crate::collective::{OneSided, Step};
use crate::context::Failure;
use crate::error::ReplayErrorKind;
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::{CollectiveMessage, MessageClass, ONE_SIDED, RequestId};
use crate::statistics::ActionKind;

/// Size of an announcement.
pub(super) const ANNOUNCEMENT: Bytes = Bytes::new(1);

impl<'t> RunningOperation<'t> {
    pub(super) fn step<M: Machine, A: Analysis>(
        &mut self,
        step: Step,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        const DATA: MessageClass = MessageClass::Data;
        means.context.worked(self.kind);
        match step {
            Step::Send { to, bytes } => self.send(to, bytes, DATA, means),
            Step::Recv { from, bytes } => self.receive(from, bytes, DATA, means)?,
            Step::Isend { to, bytes } => {
                means.context.spend(means.point_to_point.parameters().isend.cost(bytes));
                let request = self.start_send(to, bytes, DATA, means);
                self.requests.push(request);
            }
            Step::Irecv { from, bytes } => {
                means.point_to_point.pay_for_irecv(means.context, self.kind);
                let request = self.start_receive(from, bytes, DATA, means)?;
                self.requests.push(request);
            }
            Step::SendRecv { to, from, .. } if self.is_self(to) && self.is_self(from) => {}
            Step::SendRecv { to, send_bytes, from, recv_bytes } => {
                means.context.spend(means.point_to_point.parameters().isend.cost(send_bytes));
                let sent = self.start_send(to, send_bytes, DATA, means);
                let received = self.start_receive(from, recv_bytes, DATA, means)?;
                self.wait = Wait::Two([sent, received]);
            }
            Step::WaitAll => self.wait = Wait::All,
            Step::WaitEach => self.wait = Wait::Each { next: 0 },
            Step::Wait { request } => self.wait = Wait::Request(request as usize),
            Step::SendToken { to, bytes } => self.send_time(to, bytes, means)?,
            Step::RecvToken { from } => self.receive_time(from, means),
            Step::UncontendedTransfers { peer, bytes, times } => {
                self.charge_transfers(peer, bytes, times, means)?;
            }
            Step::Unmeasured { operation, bytes } => {
                let ranks = self.communicator.group.len();
                let times = means.point_to_point.parameters().collectives.measured(operation);
                if let Some(Err(source)) = times.map(|times| times.time(operation, ranks, bytes)) {
                    return Err(means.context.fail(ReplayErrorKind::Unmeasured(source)));
                }
            }
            Step::Compute { flops } => {
                if means.context.start_computation(flops, false, Some(self.index), means.outbox)? {
                    self.wait = Wait::Work;
                }
            }
            Step::Access { access, number } => {
                let call = self.origin.call().expect("the operation is a call on a file");
                let operation = Some(self.index);
                if means.context.start_access_step(call, &access, number, operation, means.outbox)? {
                    self.wait = Wait::Work;
                }
            }
            Step::Switches { operation, bytes } => self.take_part(operation, bytes, means),
            Step::Sleep { duration } => {
                let amount = || format!("a sleep of {duration}");
                means.context.advance(Some(duration), "a collective operation", amount)?;
            }
            Step::SendAnnouncement { to } => self.send(to, ANNOUNCEMENT, MessageClass::Announcement, means),
            Step::RecvAnnouncement { from } => {
                self.receive(from, ANNOUNCEMENT, MessageClass::Announcement, means)?;
            }
            Step::PollAnnouncement { from } => self.wait = Wait::Poll { from, paid: false },
            Step::DiscardAnnouncement { from } => {
                let announcement = self.message(from, ANNOUNCEMENT, MessageClass::Announcement);
                means.point_to_point.ignore(means.context, announcement);
            }
            Step::SendOutOfBand { to, numbers } => self.send_numbers(to, numbers, means),
            Step::RecvOutOfBand { from } => self.receive_numbers(from, means),
            Step::Complete { slot } => self.wait = Wait::Slot(means.point_to_point.request(slot)),
            Step::OneSided { of, access } => self.access(of, access, means)?,
            Step::Put { to, bytes } => self.send(to, bytes, MessageClass::Put, means),
            Step::ExpectPut { from, bytes } => {
                let request = self.start_receive(from, bytes, MessageClass::Put, means)?;
                self.requests.push(request);
            }
        }
        Ok(())
    }

    fn access<M: Machine, A: Analysis>(
        &mut self,
        of: Rank,
        access: OneSided,
        Means { context, point_to_point, outbox }: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        let message = |bytes| self.message(of, bytes, MessageClass::Data);
        match access {
            OneSided::Get(bytes) => {
                let request = point_to_point.requests.add_part(self.index);
                point_to_point.get(context, message(bytes), request, outbox)?;
                self.wait = Wait::One(request);
            }
            OneSided::Accumulate(bytes) => {
                let request = point_to_point.requests.add_part(self.index);
                point_to_point.put(context, message(bytes), Some(request), outbox);
                self.wait = Wait::One(request);
            }
            OneSided::Put { bytes, completes } => {
                let request = completes.map(|slot| point_to_point.request(slot));
                point_to_point.put(context, message(bytes), request, outbox);
            }
            OneSided::Lock { lock, call } => self.wait = Wait::Lock { of, lock, call },
        }
        Ok(())
    }

    /// Sends a message, which the operation waits for where it is not detached.
    fn send<M: Machine, A: Analysis>(
        &mut self,
        to: Rank,
        bytes: Bytes,
        class: MessageClass,
        means: &mut Means<'_, '_, 't, M, A>,
    ) {
        if means.point_to_point.is_detached(bytes) || class != MessageClass::Data {
            means.context.spend(means.point_to_point.parameters().send.cost(bytes));
        }
        self.wait = Wait::One(self.start_send(to, bytes, class, means));
    }

    fn receive<M: Machine, A: Analysis>(
        &mut self,
        from: Rank,
        bytes: Bytes,
        class: MessageClass,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        self.wait = Wait::One(self.start_receive(from, bytes, class, means)?);
        Ok(())
    }

    fn start_send<M: Machine, A: Analysis>(
        &self,
        to: Rank,
        bytes: Bytes,
        class: MessageClass,
        Means { context, point_to_point, outbox }: &mut Means<'_, '_, 't, M, A>,
    ) -> RequestId {
        let request = point_to_point.requests.add_part(self.index);
        context.worked(self.kind);
        point_to_point.send_collective(context, self.message(to, bytes, class), request, outbox);
        request
    }

    fn start_receive<M: Machine, A: Analysis>(
        &self,
        from: Rank,
        bytes: Bytes,
        class: MessageClass,
        Means { context, point_to_point, outbox }: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<RequestId, Failure<M::Error>> {
        let request = point_to_point.requests.add_part(self.index);
        point_to_point.receive_collective(context, self.message(from, bytes, class), request, outbox)?;
        Ok(request)
    }

    /// Returns a message to or from a member.
    pub(super) fn message(&self, peer: Rank, bytes: Bytes, class: MessageClass) -> CollectiveMessage {
        // Those that a fence expects were put by calls before it.
        let ends_puts = matches!(self.kind, ActionKind::WindowFence | ActionKind::WindowFree);
        let tag = if ends_puts && class == MessageClass::Put { ONE_SIDED } else { self.tag };
        let (communicator, tag) = (self.communicator.id, class.tag_of(tag));
        CollectiveMessage { peer: self.member(peer), communicator, tag, bytes }
    }

    pub(super) fn member(&self, number: Rank) -> Rank {
        self.communicator.group.member(number.get())
    }

    pub(super) fn is_self(&self, member: Rank) -> bool {
        member.get() == self.communicator.rank
    }
}
