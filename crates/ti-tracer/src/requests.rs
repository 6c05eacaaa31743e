//! Requests of a process: their handles, and their numbers in the trace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Sends a message.
    Send,
    /// Receives a message.
    Receive,
    /// A collective operation.
    Collective,
    /// An access to a file.
    File,
    /// An access to a window.
    Window,
    /// An unmodelled call.
    Unmodelled,
}

/// Offsets in the shard of deferred units that are filled in when the request completes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Patches {
    /// Deferred unit of a receive with `MPI_ANY_TAG` from a named source.
    pub(crate) tag: Option<u64>,
    /// Deferred unit of a receive with `MPI_ANY_SOURCE`.
    pub(crate) source: Option<u64>,
    /// Deferred unit of its cancellation.
    pub(crate) cancel: Option<u64>,
    /// Record of a receive, whose size is filled in if its message is longer.
    pub(crate) receive: Option<u64>,
}

impl Patches {
    /// Returns whether nothing is to be filled in when the request completes without an error.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self { receive: self.receive, ..Self::default() }
    }
}

/// A request of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestEntry {
    /// Number in the trace.
    pub(crate) number: u32,
    /// Kind of the request.
    pub(crate) kind: RequestKind,
    /// True if the request is persistent and stays after completion.
    pub(crate) is_persistent: bool,
    /// True if each start is recorded as the operation itself, so that the trace knows no request between them.
    pub(crate) is_recorded_at_start: bool,
    /// True if such a request is started and not complete.
    pub(crate) is_started: bool,
    /// Deferred units to fill in.
    pub(crate) patches: Patches,
    /// Handle of the communicator of a receive.
    pub(crate) communicator: i64,
    /// Address at which the program stores the handle.
    address: usize,
}

impl RequestEntry {
    /// Returns a request whose handle is not known yet.
    pub(crate) fn new(number: u32, kind: RequestKind, patches: Patches, communicator: i64) -> Self {
        Self {
            number,
            kind,
            is_persistent: false,
            is_recorded_at_start: false,
            is_started: false,
            patches,
            communicator,
            address: 0,
        }
    }

    /// Returns a persistent request each start of which is recorded as the operation itself.
    pub(crate) fn recorded_at_start(number: u32, kind: RequestKind, communicator: i64) -> Self {
        Self { is_recorded_at_start: true, ..Self::new(number, kind, Patches::default(), communicator) }
    }

    /// Returns whether the trace knows the request now.
    pub(crate) fn is_in_trace(&self) -> bool {
        self.is_started || !self.is_recorded_at_start
    }

    /// Returns whether a replay models the call that posted it.
    pub(crate) fn is_modelled(&self) -> bool {
        self.kind != RequestKind::Unmodelled
    }
}

/// Pending and persistent requests.
///
/// MPI libraries use one handle for several requests that are complete already: these are distinguished by the address at
/// which the program stores the handle, and otherwise completed in posting order.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    by_handle: FxHashMap<i64, Vec<RequestEntry>>,
    free: BinaryHeap<Reverse<u32>>,
    numbers: u32,
}

impl Requests {
    /// Takes the lowest free number, so that the iterations of a loop produce equal records.
    pub(crate) fn take_number(&mut self) -> u32 {
        self.free.pop().map_or_else(
            || {
                self.numbers += 1;
                self.numbers - 1
            },
            |Reverse(number)| number,
        )
    }

    /// Registers a request under its handle.
    pub(crate) fn bind(&mut self, handle: i64, address: usize, is_persistent: bool, entry: RequestEntry) {
        self.by_handle.entry(handle).or_default().push(RequestEntry { address, is_persistent, ..entry });
    }

    /// Returns the request of a handle, among those that are eligible.
    pub(crate) fn find(
        &self,
        handle: i64,
        address: usize,
        is_eligible: impl Fn(&RequestEntry) -> bool,
    ) -> Option<RequestEntry> {
        let mut entries = self.by_handle.get(&handle)?.iter().filter(|entry| is_eligible(entry));
        let first = entries.next()?;
        match first.address == address {
            true => Some(*first),
            false => Some(*entries.find(|entry| entry.address == address).unwrap_or(first)),
        }
    }

    /// Returns a request by handle and number, to change it.
    pub(crate) fn get_mut(&mut self, handle: i64, number: u32) -> Option<&mut RequestEntry> {
        self.by_handle.get_mut(&handle)?.iter_mut().find(|entry| entry.number == number)
    }

    /// Removes a request and frees its number.
    pub(crate) fn remove(&mut self, handle: i64, number: u32) {
        let Some(entries) = self.by_handle.get_mut(&handle) else { return };
        let Some(index) = entries.iter().position(|entry| entry.number == number) else { return };
        // Not `swap_remove`: the others stay in posting order.
        entries.remove(index);
        self.release_number(number);
    }

    /// Frees a number.
    pub(crate) fn release_number(&mut self, number: u32) {
        self.free.push(Reverse(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(requests: &mut Requests, handle: i64, address: usize) -> u32 {
        let number = requests.take_number();
        let entry = RequestEntry::new(number, RequestKind::Send, Patches::default(), 0);
        requests.bind(handle, address, false, entry);
        number
    }

    #[test]
    fn one_handle_of_several_requests_is_told_apart_by_address_then_by_order() {
        let mut requests = Requests::default();
        let [a, b, c] = [10, 20, 30].map(|address| post(&mut requests, 7, address));
        let find =
            |requests: &Requests, address| requests.find(7, address, |_| true).map(|entry| entry.number);
        assert_eq!(find(&requests, 20), Some(b));
        requests.remove(7, b);
        assert_eq!(find(&requests, 99), Some(a));
        requests.remove(7, a);
        assert_eq!(find(&requests, 99), Some(c));
        requests.remove(7, c);
        assert_eq!(find(&requests, 30), None);
        assert_eq!(requests.find(8, 10, |_| true), None);
    }

    #[test]
    fn the_lowest_free_number_is_taken() {
        let mut requests = Requests::default();
        let numbers: Vec<u32> = (0..4).map(|handle| post(&mut requests, handle, 0)).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        requests.remove(2, 2);
        requests.remove(0, 0);
        assert_eq!([9, 8, 7].map(|handle| post(&mut requests, handle, 0)), [0, 2, 4]);
    }
}
