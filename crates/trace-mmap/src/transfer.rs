//! What calls send and receive, among them the starts of persistent requests.

use std::collections::BTreeMap;

use pdes_core::Bytes;

use crate::call::{Call, Source};
use crate::channel::{OutIdx, Slot};

/// One message that is sent, or a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    Send(OutIdx, Bytes),
    Receive(Source, Bytes),
    /// A receive of before takes no message.
    Cancelled(Source),
}

/// The persistent requests of a rank by their places, in the order of its program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Persistent(BTreeMap<Slot, Option<Transfer>>);

/// A place is started where there is no persistent request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotPersistent;

impl Persistent {
    /// Follows a call, and tells what it sends and receives.
    pub(crate) fn follow<E: From<NotPersistent>>(
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
