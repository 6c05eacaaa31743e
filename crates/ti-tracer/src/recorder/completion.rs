//! Recording of calls on requests: completion, start, cancellation.

use super::{Argument, Recorder};
use crate::requests::{Patches, RequestEntry, RequestKind, Requests};
use ti_shard::{Deferred, Kind, Unit};

/// Status of a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Rank of the sender in the communicator.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// True if the request was cancelled.
    pub is_cancelled: bool,
}

/// Requests of one call, and those that it completed.
#[derive(Debug, Default)]
pub struct Completion {
    /// Requests in the order of the call; `None` for `MPI_REQUEST_NULL` and for requests that are not recorded.
    requests: Vec<Option<(i64, RequestEntry)>>,
    /// Positions of the completed requests.
    completed: Vec<usize>,
}

impl Completion {
    /// Clears the list for the next call.
    pub fn clear(&mut self) {
        self.requests.clear();
        self.completed.clear();
    }

    /// Adds `MPI_REQUEST_NULL`.
    pub fn add_null(&mut self) {
        self.requests.push(None);
    }

    /// Returns whether the trace needs the status of the request at a position, once it has completed.
    pub fn wants_status(&self, position: usize) -> bool {
        matches!(self.requests.get(position), Some(Some((_, entry))) if !entry.patches.is_empty())
    }

    /// Returns whether the trace may need any status: which messages are too long is in statuses alone.
    pub fn wants_statuses(&self) -> bool {
        self.requests.iter().flatten().any(|(_, entry)| entry.kind == RequestKind::Receive)
    }

    /// Returns the numbers of the requests of modelled, or of unmodelled, calls.
    fn numbers(&self, are_modelled: bool) -> Vec<u32> {
        numbers(self.requests.iter().flatten(), are_modelled)
    }

    /// Returns the numbers of those that completed.
    fn completed_numbers(&self, are_modelled: bool) -> Vec<u32> {
        numbers(self.completed.iter().filter_map(|&position| self.requests[position].as_ref()), are_modelled)
    }
}

fn numbers<'a>(requests: impl Iterator<Item = &'a (i64, RequestEntry)>, are_modelled: bool) -> Vec<u32> {
    let listed = requests.map(|(_, entry)| entry).filter(|entry| entry.is_in_trace());
    listed.filter(|entry| entry.is_modelled() == are_modelled).map(|entry| entry.number).collect()
}

impl Recorder {
    /// Registers a posted request under the handle that the program got, and the address at which it is stored.
    pub fn bind(&mut self, request: Option<RequestEntry>, handle: i64, address: usize, is_persistent: bool) {
        if let Some(entry) = request {
            self.requests_like(entry).bind(handle, address, is_persistent, entry);
        }
    }

    /// Appends a request to those of a call. One that no recorded call has made is counted.
    pub fn add(&mut self, call: &mut Completion, handle: i64, address: usize) {
        let taken = &call.requests;
        let is_same = |one: &RequestEntry, other: &RequestEntry| {
            (one.number, one.is_modelled()) == (other.number, other.is_modelled())
        };
        let is_free = |entry: &RequestEntry| !taken.iter().flatten().any(|(_, other)| is_same(entry, other));
        let entry = self.requests.find(handle, address, is_free);
        let entry = entry.or_else(|| self.unmodelled_requests.find(handle, address, is_free));
        call.requests.push(entry.map(|entry| (handle, entry)));
        if entry.is_none() {
            self.count_unknown_request();
        }
    }

    /// Fills in the size of the message of a request of the call \[B\], which was longer than its buffer.
    pub fn truncated(&mut self, call: &Completion, position: usize, bytes: u64) {
        let Some(Some((_, entry))) = call.requests.get(position) else { return };
        if let Some(amount) = entry.patches.receive {
            self.file.patch(amount, bytes);
        }
    }

    /// Records the completion of a request of the call, and fills in its deferred units.
    pub fn complete(&mut self, call: &mut Completion, position: usize, status: Option<Status>) {
        let Some(Some((handle, entry))) = call.requests.get(position).copied() else { return };
        call.completed.push(position);
        if let Some(status) = status {
            self.fill_in_deferred(entry, status);
        }
        if entry.is_persistent
            && let Some(entry) = self.requests.get_mut(handle, entry.number)
        {
            entry.patches = Patches::default();
            entry.is_started = false;
        }
    }

    fn fill_in_deferred(&mut self, entry: RequestEntry, status: Status) {
        let Patches { tag, source, cancel, .. } = entry.patches;
        if status.is_cancelled {
            // Without a message there is nothing else to fill in.
            if let Some(at) = cancel {
                self.file.patch(at + Deferred::OUTCOME, Deferred::CANCELLED);
            }
            return;
        }
        if let Some(at) = source.or(tag) {
            let rank = source.and_then(|_| self.world_source(status.source, entry.communicator));
            let tag = tag.and_then(|_| u32::try_from(status.tag).ok());
            self.file.patch(at + Deferred::OUTCOME, Deferred::receive_outcome(rank, tag));
        }
    }

    pub(super) fn requests_like(&mut self, entry: RequestEntry) -> &mut Requests {
        if entry.is_modelled() { &mut self.requests } else { &mut self.unmodelled_requests }
    }

    /// Records `wait`, `waitall`, `waitany`, `waitsome`, `test`, `testall`, `testany` or `testsome`; a call without
    /// requests is not recorded. A call on requests of unmodelled calls only is unmodelled itself; among modelled requests
    /// they are left out.
    pub fn completion(&mut self, verb: &str, call: &Completion) {
        let (numbers, others) = (call.numbers(true), call.numbers(false));
        if !numbers.is_empty() {
            self.modelled_completion(verb, &numbers, &call.completed_numbers(true));
        } else if !others.is_empty() {
            self.unmodelled_completion(verb, &others, Some(&call.completed_numbers(false)));
        }
        for &position in &call.completed {
            if let Some((handle, entry)) = call.requests[position]
                && !entry.is_persistent
            {
                self.requests_like(entry).remove(handle, entry.number);
            }
        }
    }

    fn modelled_completion(&mut self, verb: &str, numbers: &[u32], done: &[u32]) {
        if let ("wait", [number]) = (verb, numbers) {
            return self.wait_for(*number);
        }
        self.begin_call(verb);
        self.phrase.list("req", numbers);
        match verb {
            "waitall" => {}
            "testall" => self.phrase.word("done", if done.is_empty() { "-" } else { "all" }),
            _ => self.phrase.list("done", done),
        }
        self.write_call();
    }

    /// Records a wait for one request.
    pub(super) fn wait_for(&mut self, number: u32) {
        self.write_computation();
        self.write(Unit { slot: number, ..Unit::of_kind(Kind::Wait) }, false);
    }

    /// Records `MPI_Request_get_status`, which leaves the request as it is.
    pub fn request_get_status(&mut self, call: &Completion, is_complete: bool) {
        if let [number] = *call.numbers(true) {
            self.begin_call("request_get_status");
            self.phrase.named("req", number.into());
            self.phrase.word("done", if is_complete { "yes" } else { "no" });
            self.write_call();
        }
    }

    /// Records `start` or `startall`.
    pub fn start(&mut self, verb: &str, call: &Completion) {
        // Not started yet, those that are recorded at their start are not among the numbers.
        let (numbers, others) = (call.numbers(true), call.numbers(false));
        if !numbers.is_empty() {
            self.begin_call(verb);
            self.phrase.list("req", &numbers);
            self.write_call();
        } else if !others.is_empty() {
            self.unmodelled_completion(verb, &others, None);
        }
        for &(handle, entry) in call.requests.iter().flatten().filter(|(_, entry)| !entry.is_in_trace()) {
            let patches = self.start_operation(entry.number);
            if let Some(entry) = self.requests.get_mut(handle, entry.number) {
                entry.patches = patches;
                entry.is_started = true;
            }
        }
    }

    /// Records `MPI_Cancel`; its outcome is filled in when the request completes.
    pub fn cancel(&mut self, call: &Completion) {
        let [Some((handle, entry))] = *call.requests else { return };
        if !entry.is_in_trace() {
            return;
        }
        if entry.kind != RequestKind::Receive {
            let number = entry.number;
            return match entry.is_modelled() {
                true => self.unmodelled("MPI_Cancel", &[("req", Argument::Number(number.into()))]),
                false => self.unmodelled_completion("cancel", &[number], None),
            };
        }
        self.begin_call("cancel");
        self.phrase.named("req", entry.number.into());
        let place = self.write_call_deferred(true);
        if let Some(entry) = self.requests.get_mut(handle, entry.number) {
            entry.patches.cancel = place;
        }
    }

    /// Records `MPI_Request_free`.
    pub fn free_request(&mut self, call: &Completion) {
        let [Some((handle, entry))] = *call.requests else { return };
        if entry.is_recorded_at_start {
            self.templates.remove(&entry.number);
        }
        if !entry.is_in_trace() {
            // The trace knows no request between the starts.
        } else if entry.is_modelled() {
            self.begin_call("request_free");
            self.phrase.named("req", entry.number.into());
            self.write_call();
        } else {
            self.unmodelled_completion("request_free", &[entry.number], None);
        }
        self.requests_like(entry).remove(handle, entry.number);
    }
}
