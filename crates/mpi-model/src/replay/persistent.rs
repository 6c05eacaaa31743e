//! Persistent requests.

use pdes_core::{Bytes, Outbox};
use serde::{Deserialize, Serialize};
use trace_mmap::{OutIdx, SendMode, Slot, Source};

use super::{Failure, RankProcess};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::statistics::ActionKind;
use crate::token::Token;

/// Operation that a persistent request starts each time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Persistent {
    Send { mode: SendMode, to: Option<OutIdx>, bytes: Bytes },
    Receive { from: Source, bytes: Bytes },
}

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    pub(super) fn make_persistent(&mut self, slot: Slot, persistent: Persistent) {
        let request = self.request(slot);
        self.cold().persistent.insert(request, persistent);
    }

    pub(super) fn start_persistent(
        &mut self,
        slot: Slot,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<(), Failure<M::Error>> {
        let request = self.request(slot);
        match self.cold().persistent.get(&request).copied() {
            Some(Persistent::Send { mode, to, bytes }) => {
                self.isend_call(mode, to, bytes, (request, ActionKind::Start), outbox);
                Ok(())
            }
            Some(Persistent::Receive { from, bytes }) => {
                self.pay_for_irecv(ActionKind::Start);
                self.receive_call(from, bytes, request, outbox)
            }
            None => unreachable!("the reader of traces rejects a start of a request that is not persistent"),
        }
    }
}
