//! Requests of removed operations, which disappear from the calls that refer to them, and of added ones.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use trace_mmap::table::{Named, RequestUse, Visit};
use trace_mmap::{CallOp, Op, RequestName, Slot};

use super::Step;

/// The pending requests of a rank whose operations are removed, by their slots.
#[derive(Debug, Default)]
pub(super) struct RemovedRequests {
    slots: FxHashSet<u32>,
    /// Those of them that are persistent: they are made and freed all the same.
    inactive: FxHashSet<u32>,
}

impl RemovedRequests {
    /// Takes note of an operation that is removed.
    pub(super) fn add(&mut self, removed: &Step) {
        self.slots.extend(removed.posted.map(Slot::get));
    }

    /// Takes note of a persistent request that is started, or of one whose start is removed.
    pub(super) fn start(&mut self, request: RequestName, is_removed: bool) {
        for requests in [&mut self.slots, &mut self.inactive] {
            if is_removed {
                requests.insert(request.get())
            } else {
                requests.remove(&request.get())
            };
        }
    }

    /// Returns an operation that is kept, without the removed requests; `None` for a wait or a test of no others, and for one whose
    /// recorded outcome is the completion of removed requests only.
    pub(super) fn keep(&mut self, mut step: Step) -> Option<Step> {
        if self.slots.is_empty() {
            return Some(step);
        }
        if let Some(posted) = step.posted {
            self.slots.remove(&posted.get());
        }
        let is_kept = match &mut step.op {
            Op::Call(CallOp::Free { request }) if self.inactive.remove(&request.get()) => {
                self.slots.remove(&request.get());
                true
            }
            Op::Wait(_) | Op::Test(_) => !step.awaited.is_some_and(|slot| self.slots.contains(&slot.get())),
            Op::Call(call) => {
                let mut created = Created(Vec::new());
                call.visit(&mut created);
                for name in created.0 {
                    self.slots.remove(&name.get());
                }
                self.keep_call(call)
            }
            _ => true,
        };
        is_kept.then_some(step)
    }

    fn keep_call(&self, call: &mut CallOp) -> bool {
        let is_removed = |name: &RequestName| self.slots.contains(&name.get());
        let done = call.completion().and_then(|completion| completion.done);
        let has_lost_outcome = done.is_some_and(|done| !done.is_empty() && done.iter().all(is_removed));
        !has_lost_outcome && call.retain_requests(|name| !self.slots.contains(&name.get()))
    }
}

/// Collects the persistent requests that a call creates, whose slots are in use again.
struct Created(Vec<RequestName>);

impl<'a> Visit<'a, Named> for Created {
    fn requests(&mut self, used: RequestUse, requests: &'a [RequestName]) {
        if used == RequestUse::Created {
            self.0.extend(requests);
        }
    }
}

/// Values that belong to pending requests of a rank, by their slots.
#[derive(Debug)]
pub(super) struct PerRequest<T>(BTreeMap<u32, T>);

impl<T> Default for PerRequest<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> PerRequest<T> {
    /// Adds the value of the request that an operation posts, if it posts one.
    pub(super) fn add(&mut self, step: &Step, value: T) {
        self.0.extend(step.posted.map(|slot| (slot.get(), value)));
    }

    /// Adds the value of a request with a name.
    pub(super) fn add_named(&mut self, name: RequestName, value: T) {
        self.0.insert(name.get(), value);
    }

    /// Returns the value of the request without a name that an operation waits for or tests.
    pub(super) fn awaited(&self, step: &Step) -> Option<&T> {
        self.0.get(&step.awaited?.get())
    }

    /// Removes the values of the requests that an operation completes, and returns them in the order of the call, or of slots.
    pub(super) fn completed(&mut self, step: &Step) -> Vec<T> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut take = |slot: u32| self.0.remove(&slot);
        match &step.op {
            Op::Wait(_) => step.awaited.and_then(|slot| take(slot.get())).into_iter().collect(),
            Op::WaitAll => std::mem::take(&mut self.0).into_values().collect(),
            Op::Call(call) => {
                let done = call.completion().map_or(&[][..], |completion| completion.done());
                done.iter().filter_map(|name| take(name.get())).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl PerRequest<Vec<RequestName>> {
    /// Returns a wait for the requests that belong to those that an operation completes; `None` if there are none, or if it waits for
    /// them, too.
    pub(super) fn wait_after(&mut self, step: &Step) -> Option<Step> {
        let requests = self.completed(step).concat();
        if step.op == Op::WaitAll { None } else { wait_for(step, requests) }
    }
}

/// Returns a wait for requests in place of an operation, or after it; `None` if there are none.
pub(super) fn wait_for(step: &Step, requests: Vec<RequestName>) -> Option<Step> {
    (!requests.is_empty()).then(|| {
        let op = Op::Call(CallOp::Waitall { requests });
        Step { op, posted: None, awaited: None, nanos: None, ..step.clone() }
    })
}

/// Names for the requests that a transformation adds to a rank.
#[derive(Debug)]
pub(super) struct NewRequests {
    first: u32,
    count: u32,
}

impl NewRequests {
    /// Number of names of a transformation, more than a rank can have pending requests. Those of the trace are below.
    const NAMES: u32 = 1 << 24;

    /// Makes the names of a transformation after `earlier` others.
    pub(super) fn after(earlier: usize) -> Self {
        Self { first: (earlier as u32 + 1).wrapping_mul(Self::NAMES), count: 0 }
    }

    /// Returns the next name.
    pub(super) fn next(&mut self) -> RequestName {
        self.count += 1;
        RequestName::new(self.first + (self.count - 1) % Self::NAMES)
    }
}
