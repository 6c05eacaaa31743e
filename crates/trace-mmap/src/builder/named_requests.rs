//! Named requests: those with a field `req=`, unlike those that SimGrid's format identifies by source, destination and tag.

use crate::builder::{OpError, Requests};
use crate::call::{CallError, Source};
use crate::channel::Slot;
use crate::structure::RequestName;
use crate::transfer::Transfer;

/// The state of a named request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedRequest {
    pub(super) slot: Slot,
    /// The message sent or received; `None` for a send to `MPI_PROC_NULL` and for collective operations.
    transfer: Option<Transfer>,
    is_persistent: bool,
    pub(super) is_active: bool,
    is_cancelled: bool,
}

impl Requests {
    /// Adds a pending request.
    pub(crate) fn post_named(
        &mut self,
        request: RequestName,
        transfer: Option<Transfer>,
    ) -> Result<Slot, OpError> {
        self.add_named(request, NamedRequest { transfer, is_active: true, ..NamedRequest::NEW })
    }

    /// Adds an inactive persistent request.
    pub(crate) fn init_persistent(
        &mut self,
        request: RequestName,
        transfer: Option<Transfer>,
    ) -> Result<Slot, OpError> {
        self.add_named(request, NamedRequest { transfer, is_persistent: true, ..NamedRequest::NEW })
    }

    fn add_named(&mut self, request: RequestName, named: NamedRequest) -> Result<Slot, OpError> {
        let slot = self.allocate_slot()?;
        self.has_names = true;
        self.named.insert(request, NamedRequest { slot, ..named });
        Ok(slot)
    }

    /// Checks that a name is free.
    pub(crate) fn check_free(&self, request: RequestName) -> Result<(), CallError> {
        match self.named.get(&request) {
            Some(_) => Err(CallError::RequestInUse { request }),
            None => Ok(()),
        }
    }

    fn find_named(&self, request: RequestName) -> Result<NamedRequest, CallError> {
        self.named.get(&request).copied().ok_or_else(|| self.unknown_request(request))
    }

    #[cold]
    fn unknown_request(&self, request: RequestName) -> CallError {
        const SHOWN: usize = 8;
        let mut known: Vec<RequestName> = self.named.keys().copied().collect();
        known.sort_unstable();
        let more = known.len().saturating_sub(SHOWN);
        known.truncate(SHOWN);
        CallError::UnknownRequest { request, known, more }
    }

    /// Returns the slot of a request.
    pub(crate) fn slot_of(&self, request: RequestName) -> Result<Slot, CallError> {
        Ok(self.find_named(request)?.slot)
    }

    /// Returns the slots of requests, which must all be different.
    pub(crate) fn slots_of(&self, requests: &[RequestName]) -> Result<Box<[Slot]>, CallError> {
        let mut sorted = requests.to_vec();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(CallError::DuplicateRequest { request: pair[0] }),
            None => requests.iter().map(|request| self.slot_of(*request)).collect(),
        }
    }

    /// Completes a request, if it is active, and returns its slot. The slot is free afterwards, unless the request is persistent.
    pub(crate) fn complete_named(&mut self, request: RequestName) -> Result<Slot, CallError> {
        let named = self.find_named(request)?;
        if named.is_persistent {
            self.named.insert(request, NamedRequest { is_active: false, is_cancelled: false, ..named });
        } else {
            self.named.remove(&request);
            self.release_slot(named.slot);
        }
        Ok(named.slot)
    }

    /// Completes all requests of a list.
    pub(crate) fn complete_listed(&mut self, requests: &[RequestName]) -> Result<(), CallError> {
        requests.iter().try_for_each(|request| self.complete_named(*request).map(|_| ()))
    }

    /// Completes those requests of a list that completed in the recorded run.
    pub(crate) fn complete_some(
        &mut self,
        requests: &[RequestName],
        done: &[RequestName],
    ) -> Result<(), CallError> {
        for &request in done {
            if !requests.contains(&request) {
                return Err(CallError::DoneNotListed { request });
            }
            if !self.find_named(request)?.is_active {
                return Err(CallError::DoneInactive { request });
            }
        }
        self.complete_listed(done)
    }

    /// Checks that no listed request is active.
    pub(crate) fn check_inactive(&self, requests: &[RequestName]) -> Result<(), CallError> {
        let is_active =
            |request: &&RequestName| self.find_named(**request).is_ok_and(|named| named.is_active);
        match requests.iter().find(is_active) {
            Some(&request) => Err(CallError::NoneCompleted { request }),
            None => Ok(()),
        }
    }

    /// Starts a persistent request and returns the message that this sends or receives.
    pub(crate) fn start(&mut self, request: RequestName) -> Result<Option<Transfer>, CallError> {
        let named = self.find_named(request)?;
        match named {
            NamedRequest { is_persistent: false, .. } => Err(CallError::NotPersistent { request }),
            NamedRequest { is_active: true, .. } => Err(CallError::AlreadyActive { request }),
            NamedRequest { slot, transfer, .. } => {
                self.mark_newest(slot);
                self.named.insert(request, NamedRequest { is_active: true, ..named });
                Ok(transfer)
            }
        }
    }

    /// Frees a request. The slot of an active one stays occupied, because only the replay knows when it completes.
    pub(crate) fn free_request(&mut self, request: RequestName) -> Result<Slot, CallError> {
        let named = self.find_named(request)?;
        self.named.remove(&request);
        if named.is_active {
            self.freed_active.push(named.slot);
        } else {
            self.release_slot(named.slot);
        }
        Ok(named.slot)
    }

    /// Applies `MPI_Cancel` to a receive and returns its slot and source. `cancelled` is the recorded outcome.
    pub(crate) fn cancel(
        &mut self,
        request: RequestName,
        cancelled: bool,
    ) -> Result<(Slot, Source), CallError> {
        let named = self.find_named(request)?;
        let Some(Transfer::Receive(source, _)) = named.transfer else {
            return Err(CallError::NotReceive { request });
        };
        if !named.is_active || named.is_cancelled {
            return Err(CallError::NotCancellable { request });
        }
        self.named.insert(request, NamedRequest { is_cancelled: cancelled, ..named });
        Ok((named.slot, source))
    }

    /// Completes all named requests and frees the slots of those that are not persistent.
    pub(super) fn complete_all_named(&mut self) {
        let mut freed = std::mem::take(&mut self.freed_active);
        self.named.retain(|_, named| {
            (named.is_active, named.is_cancelled) = (false, false);
            if !named.is_persistent {
                freed.push(named.slot);
            }
            named.is_persistent
        });
        freed.into_iter().for_each(|slot| self.release_slot(slot));
    }
}

impl NamedRequest {
    /// Initial state of a request.
    const NEW: Self = Self {
        slot: Slot::new(0),
        transfer: None,
        is_persistent: false,
        is_active: false,
        is_cancelled: false,
    };
}
