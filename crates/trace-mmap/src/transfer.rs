//! Messages sent and received by calls, including starts of persistent requests.

use std::collections::BTreeMap;

use pdes_core::Bytes;

use crate::call::{Call, Source};
use crate::channel::{OutIdx, Slot};

/// A message sent, a receive, or the cancellation of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    Send(OutIdx, Bytes),
    Receive(Source, Bytes),
    /// An earlier receive is cancelled and matches no message.
    Cancelled(Source),
}

/// The persistent requests of a rank by slot, updated in program order; `None` for a send to `MPI_PROC_NULL`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PersistentRequests(BTreeMap<Slot, Option<Transfer>>);

/// A slot without a persistent request is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotPersistent;

impl PersistentRequests {
    /// Updates the persistent requests for a call and runs `each` for every message that the call sends or receives.
    pub(crate) fn visit_transfers<E: From<NotPersistent>>(
        &mut self,
        call: &Call,
        mut each: impl FnMut(Transfer) -> Result<(), E>,
    ) -> Result<(), E> {
        let send = |to: &Option<OutIdx>, bytes| to.map(|to| Transfer::Send(to, bytes));
        match call {
            Call::Send { to, bytes, .. } | Call::Isend { to, bytes, .. } => {
                send(to, *bytes).map_or(Ok(()), each)
            }
            Call::Recv { from, bytes } | Call::Irecv { from, bytes, .. } => {
                each(Transfer::Receive(*from, *bytes))
            }
            Call::SendRecv { to, send_bytes, from, recv_bytes } => {
                send(to, *send_bytes).map_or(Ok(()), &mut each)?;
                each(Transfer::Receive(*from, *recv_bytes))
            }
            Call::SendInit { to, bytes, slot, .. } => {
                self.0.insert(*slot, send(to, *bytes));
                Ok(())
            }
            Call::RecvInit { from, bytes, slot } => {
                self.0.insert(*slot, Some(Transfer::Receive(*from, *bytes)));
                Ok(())
            }
            Call::Start { slots } => slots.iter().try_for_each(|slot| {
                let started = self.0.get(slot).ok_or(NotPersistent)?;
                started.map_or(Ok(()), &mut each)
            }),
            Call::Free { slot } => {
                self.0.remove(slot);
                Ok(())
            }
            Call::Cancel { from, cancelled: true, .. } => each(Transfer::Cancelled(*from)),
            _ => Ok(()),
        }
    }
}
