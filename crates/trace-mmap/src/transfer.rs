//! Messages sent and received by calls, including starts of persistent requests.

use std::collections::BTreeMap;

use pdes_core::Bytes;

use crate::action::Action;
use crate::call::{Call, Source};
use crate::channel::{OutIdx, Slot};
use crate::trace::RankTrace;

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

/// Yields the messages and receives of a rank, each with the index of its action.
pub(crate) fn transfers(trace: &RankTrace) -> impl Iterator<Item = (u64, Transfer)> + '_ {
    let mut persistent = PersistentRequests::default();
    (0..).zip(trace.cursor()).flat_map(move |(index, action)| {
        let mut all = Vec::new();
        match action {
            Action::Send { to, bytes } | Action::Isend { to, bytes, .. } => {
                all.push(Transfer::Send(to, bytes))
            }
            Action::Recv { from, bytes } | Action::Irecv { from, bytes, .. } => {
                all.push(Transfer::Receive(Source::Rank(from), bytes));
            }
            Action::SendRecv(id) => {
                let both = trace.send_recv(id);
                all.extend(both.to.map(|to| Transfer::Send(to, both.send_bytes)));
                all.extend(both.from.map(|from| Transfer::Receive(Source::Rank(from), both.recv_bytes)));
            }
            Action::Call(id) => {
                let each = |transfer| -> Result<(), NotPersistent> {
                    all.push(transfer);
                    Ok(())
                };
                // Only a forged archive starts a request that is not persistent; it then transfers nothing.
                let _ = persistent.visit_transfers(trace.call(id), each);
            }
            _ => {}
        }
        all.into_iter().map(move |transfer| (index, transfer))
    })
}
