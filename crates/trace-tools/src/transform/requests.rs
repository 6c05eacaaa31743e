//! Requests of removed operations, which disappear from the calls that refer to them, and of added ones.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

use rustc_hash::FxHashSet;
use trace_mmap::folded::State;
use trace_mmap::table::{Named, RequestUse, Visit};
use trace_mmap::{CallOp, Op, RequestName, Slot};

use super::Step;
use super::state::Stateful;

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

/// Names for the requests that transformations add to a rank: always the lowest one that no request has which is not complete. So equal
/// iterations have equal names.
#[derive(Clone, Debug, Default)]
pub(super) struct NewRequests(Rc<RefCell<Names>>);

#[derive(Debug, Default)]
struct Names {
    /// The names in use: true for those of requests that the transformed program has posted.
    in_use: BTreeMap<u32, bool>,
    free: BinaryHeap<Reverse<u32>>,
    /// Number of names that have been in use.
    count: u32,
}

impl NewRequests {
    /// The first name, more than a rank can have requests. Those of the trace are below.
    const FIRST: u32 = 1 << 24;

    /// Returns a name.
    pub(super) fn next(&mut self) -> RequestName {
        let Names { in_use, free, count } = &mut *self.0.borrow_mut();
        let name = free.pop().map_or_else(
            || {
                *count += 1;
                Self::FIRST.wrapping_add(*count - 1)
            },
            |Reverse(name)| name,
        );
        in_use.insert(name, false);
        RequestName::new(name)
    }

    /// Follows the operations after all transformations: requests that are complete leave their names to others.
    pub(super) fn follow(&self, step: &Step) {
        let Names { in_use, free, .. } = &mut *self.0.borrow_mut();
        if in_use.is_empty() {
            return;
        }
        if let Some(is_posted) = step.posted.and_then(|slot| in_use.get_mut(&slot.get())) {
            *is_posted = true;
        }
        match &step.op {
            Op::WaitAll => in_use.retain(|name, is_posted| {
                free.extend(is_posted.then_some(Reverse(*name)));
                !*is_posted
            }),
            Op::Call(call) => {
                let done = call.completion().map_or(&[][..], |completion| completion.done());
                free.extend(
                    done.iter()
                        .filter(|name| in_use.remove(&name.get()).is_some())
                        .map(|name| Reverse(name.get())),
                );
            }
            _ => {}
        }
    }
}

impl Stateful for NewRequests {
    fn state(&mut self, state: &mut State<'_>) {
        self.0.borrow_mut().in_use.state(state);
    }
}

impl<T: Stateful> Stateful for PerRequest<T> {
    fn state(&mut self, state: &mut State<'_>) {
        self.0.state(state);
    }
}

impl Stateful for RemovedRequests {
    fn state(&mut self, state: &mut State<'_>) {
        self.slots.state(state);
        self.inactive.state(state);
    }
}
