//! Operations that switches carry out for their members.

use pdes_core::{Bytes, Rank, SimDuration, SimTime};

use super::Means;
use super::operation::{RunningOperation, Wait};
use crate::machine::{Machine, SwitchOperation, Work};
use crate::observer::Analysis;
use crate::point_to_point::number_of;

impl<'t> RunningOperation<'t> {
    /// Takes part in an operation of switches, with the overheads of a message that it sends and of one that it receives.
    pub(super) fn take_part<M: Machine, A: Analysis>(
        &mut self,
        operation: SwitchOperation<Rank>,
        bytes: Bytes,
        Means { context, point_to_point, outbox }: &mut Means<'_, '_, 't, M, A>,
    ) {
        let (sends, receives) = match operation {
            SwitchOperation::Allreduce => (true, true),
            SwitchOperation::Reduce { to } => (true, self.is_self(to)),
            SwitchOperation::Bcast { from } => (self.is_self(from), !self.is_self(from)),
        };
        let (parameters, machine) = (point_to_point.parameters(), context.replay.machine);
        if sends {
            context.spend(parameters.isend.cost(bytes));
        }
        let is_copied = receives && point_to_point.is_detached(bytes);
        let overhead = if is_copied { parameters.receive.cost(bytes) } else { SimDuration::ZERO };
        let communicator = machine.switch_communicator(self.communicator.id);
        let work = Work::Switches {
            communicator: communicator.expect("members have such steps where there are switches"),
            number: number_of(self.tag),
            operation: operation.map(|member| machine.node(self.member(member))),
            bytes: bytes + parameters.envelope,
        };
        if context.submit_work(work, Some(self.index), outbox) {
            self.wait = Wait::Switches { overhead };
        }
    }

    /// Takes in that the work for which the operation waits has ended.
    pub(super) fn end_work(&mut self, at: SimTime) {
        let overhead = match std::mem::replace(&mut self.wait, Wait::Nothing) {
            Wait::Switches { overhead } => overhead,
            _ => SimDuration::ZERO,
        };
        self.thread.clock = at.saturating_add(overhead);
    }
}
