//! Persistent requests.

use pdes_core::Bytes;
use serde::{Deserialize, Serialize};
use trace_mmap::{OutIdx, SendMode, Slot, Source};

use super::PointToPoint;
use crate::context::{RankContext, RankOutbox};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::statistics::ActionKind;

/// Operation that a persistent request starts each time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Persistent {
    Send { mode: SendMode, to: Option<OutIdx>, bytes: Bytes },
    Receive { from: Source, bytes: Bytes },
}

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    pub(crate) fn make_persistent(&mut self, slot: Slot, persistent: Persistent) {
        self.cold().persistent.insert(slot, persistent);
    }

    pub(crate) fn free_persistent(&mut self, slot: Slot) {
        self.cold().persistent.remove(&slot);
    }

    pub(crate) fn start_persistent(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        slot: Slot,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let request = self.request(slot);
        match self.cold().persistent.get(&slot).copied() {
            Some(Persistent::Send { mode, to, bytes }) => {
                self.isend_in(context, mode, to, bytes, (request, ActionKind::Start), outbox);
            }
            Some(Persistent::Receive { from, bytes }) => {
                self.pay_for_irecv(context, ActionKind::Start);
                self.receive_from(context, from, bytes, request, outbox);
            }
            None => unreachable!("the reader of traces rejects a start of a request that is not persistent"),
        }
    }
}
