//! Roles of the fields of calls.

use std::slice;
use std::sync::Arc;

use pdes_core::Bytes;

use super::{Call, CallOp, CommunicatorCall, FileCall, FileName, FileView, SendMode, Source, WindowCall};
use crate::action::CollectiveId;
use crate::channel::{OutIdx, Slot};
use crate::collective::Collective;
use crate::communicator::{CommId, CommIdx, Group};
use crate::structure::{RecvFrom, RequestName, SendTo};

/// The types of the fields in one form of calls.
#[expect(missing_docs, reason = "the types are those of the roles of the table")]
pub trait Form {
    type Destination: 'static;
    type Source: 'static;
    type Request: 'static;
    type Communicator: 'static;
    type NewCommunicator: 'static;
    type Operation: 'static;
}

/// The form with indices into the tables of a rank, [`Call`].
pub enum Indexed {}

/// The form in terms of the program, [`CallOp`].
pub enum Named {}

impl Form for Indexed {
    type Destination = Option<OutIdx>;
    type Source = Source;
    type Request = Slot;
    type Communicator = CommIdx;
    type NewCommunicator = Option<CommIdx>;
    type Operation = CollectiveId;
}

impl Form for Named {
    type Destination = SendTo;
    type Source = RecvFrom;
    type Request = RequestName;
    type Communicator = CommId;
    type NewCommunicator = Option<(CommId, Arc<Group>)>;
    type Operation = Collective;
}

/// Use of a request by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestUse {
    /// Posts it.
    Posted,
    /// Creates it as an inactive persistent request.
    Created,
    /// Starts a persistent one.
    Started,
    /// Frees it.
    Freed,
    /// Cancels it.
    Cancelled,
    /// Waits for it, alone or with others.
    Waited,
    /// Tests it, alone or with others.
    Tested,
    /// Completed it in the recorded run, as one of those waited for or tested.
    Done,
}

/// Receives the fields of a call by their roles: `names`, then `requests`, then `values`, in the order of the row.
#[expect(missing_docs, reason = "the functions are the roles of the table")]
pub trait Visit<'a, F: Form> {
    fn destination(&mut self, _: &'a F::Destination) {}
    fn source(&mut self, _: &'a F::Source) {}
    fn communicator(&mut self, _: &'a F::Communicator) {}
    fn freed_communicator(&mut self, communicator: &'a F::Communicator) {
        self.communicator(communicator);
    }
    fn new_communicator(&mut self, _: &'a F::NewCommunicator) {}
    fn operation(&mut self, _: &'a F::Operation) {}
    fn neighbors(&mut self, _: &'a [(u32, Bytes)]) {}
    fn requests(&mut self, _: RequestUse, _: &'a [F::Request]) {}
    fn bytes(&mut self, _: Bytes) {}
    fn buffer(&mut self, bytes: Bytes) {
        self.bytes(bytes);
    }
    fn mode(&mut self, _: SendMode) {}
    fn kind(&mut self, _: CommunicatorCall) {}
    fn file(&mut self, _: &'a FileName) {}
    fn file_call(&mut self, _: FileCall) {}
    fn file_view(&mut self, _: &'a FileView) {}
    fn window_call(&mut self, _: WindowCall) {}
    /// The request of an access to a window that has none in the program.
    fn access(&mut self, slot: &'a Option<F::Request>) {
        if slot.is_some() {
            self.requests(RequestUse::Posted, slot.as_slice());
        }
    }
    /// The requests of accesses to a window that the call completes.
    fn completed(&mut self, slots: &'a [F::Request]) {
        if !slots.is_empty() {
            self.requests(RequestUse::Waited, slots);
        }
    }
    /// The outcome of a call that completes no request.
    fn outcome(&mut self, _: bool) {}
    /// True if all tested requests completed.
    fn have_completed(&mut self, _: bool) {}
    /// True if the tested request completed; `None` if not recorded.
    fn has_completed(&mut self, done: &'a (impl Copy + Into<Option<bool>>)) {
        (*done).into().into_iter().for_each(|done| self.have_completed(done));
    }
}

/// Receives the indices of a call by their roles, and may change them.
pub(crate) trait VisitMut {
    fn destination(&mut self, _: &mut Option<OutIdx>) {}
    fn source(&mut self, _: &mut Source) {}
    fn communicator(&mut self, _: &mut CommIdx) {}
    fn freed_communicator(&mut self, _: &mut CommIdx) {}
    fn new_communicator(&mut self, _: &mut Option<CommIdx>) {}
    fn operation(&mut self, _: &mut CollectiveId) {}
    fn neighbors(&mut self, _: &mut Box<[(u32, Bytes)]>) {}
    fn requests(&mut self, _: &mut [Slot]) {}
    fn file(&mut self, _: &mut FileName) {}
    fn file_view(&mut self, _: &mut FileView) {}
    fn access(&mut self, slot: &mut Option<Slot>) {
        self.requests(slot.as_mut_slice());
    }
    fn completed(&mut self, slots: &mut Box<[Slot]>) {
        self.requests(slots);
    }
    fn has_completed(&mut self, _: &mut bool) {}
}

/// The requests of a field: one, at most one, or several.
pub(crate) trait List<T> {
    fn as_list(&self) -> &[T];
    fn as_list_mut(&mut self) -> &mut [T];
}

impl<T> List<T> for T {
    fn as_list(&self) -> &[T] {
        slice::from_ref(self)
    }

    fn as_list_mut(&mut self) -> &mut [T] {
        slice::from_mut(self)
    }
}

impl<T> List<T> for Option<T> {
    fn as_list(&self) -> &[T] {
        self.as_slice()
    }

    fn as_list_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}

impl<T> List<T> for Box<[T]> {
    fn as_list(&self) -> &[T] {
        self
    }

    fn as_list_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T> List<T> for Vec<T> {
    fn as_list(&self) -> &[T] {
        self
    }

    fn as_list_mut(&mut self) -> &mut [T] {
        self
    }
}

/// Number of the name of a call among those of its row.
pub(crate) trait Number {
    fn number(&self) -> usize;
}

impl Number for SendMode {
    fn number(&self) -> usize {
        *self as usize
    }
}

impl Number for CommunicatorCall {
    fn number(&self) -> usize {
        *self as usize
    }
}

/// A collective operation with a request is nonblocking.
impl<T> Number for Option<T> {
    fn number(&self) -> usize {
        self.is_some().into()
    }
}

/// The requests of a wait or a test, with its recorded outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion<'a, R> {
    /// The requests of the call.
    pub requests: &'a [R],
    /// The requests that completed; `None` for all, the inactive ones included.
    pub done: Option<&'a [R]>,
    /// True for a wait: unless some request completed, none was active.
    pub waits: bool,
}

impl<'a, R> Completion<'a, R> {
    /// Returns the requests that completed.
    pub fn done(&self) -> &'a [R] {
        self.done.unwrap_or(self.requests)
    }
}

/// Collects the requests of a call.
struct Requests<'a, R> {
    posted: Option<&'a R>,
    refers_to_others: bool,
    completing: Option<(&'a [R], bool)>,
    completes_all: bool,
    done: Option<&'a [R]>,
}

impl<'a, R> Requests<'a, R> {
    fn of(visit: impl FnOnce(&mut Self)) -> Self {
        let mut requests = Self {
            posted: None,
            refers_to_others: false,
            completing: None,
            completes_all: false,
            done: None,
        };
        visit(&mut requests);
        requests
    }

    fn completion(self) -> Option<Completion<'a, R>> {
        let (requests, waits) = self.completing?;
        // Where the call does not say which requests completed, a wait completes all, and a test none.
        let completes_all = self.completes_all || (waits && self.done.is_none());
        let done = if completes_all { None } else { Some(self.done.unwrap_or_default()) };
        Some(Completion { requests, done, waits })
    }
}

impl<'a, F: Form> Visit<'a, F> for Requests<'a, F::Request> {
    fn requests(&mut self, used: RequestUse, requests: &'a [F::Request]) {
        match used {
            RequestUse::Posted => self.posted = requests.first(),
            RequestUse::Waited | RequestUse::Tested => {
                self.completing = Some((requests, used == RequestUse::Waited));
            }
            RequestUse::Done => self.done = Some(requests),
            RequestUse::Created | RequestUse::Started | RequestUse::Freed | RequestUse::Cancelled => {}
        }
        self.refers_to_others |= used != RequestUse::Posted;
    }

    fn have_completed(&mut self, done: bool) {
        self.completes_all = done;
    }
}

impl Call {
    /// Returns the slot of the request that the call posts, if any; not that of a persistent one that it creates.
    pub fn posted_slot(&self) -> Option<Slot> {
        Requests::of(|requests| self.visit(requests)).posted.copied()
    }

    /// Returns whether the call refers to earlier requests, or creates one to which later calls refer.
    pub(crate) fn refers_to_requests(&self) -> bool {
        Requests::of(|requests| self.visit(requests)).refers_to_others
    }

    /// Returns the requests of a wait or a test; `None` for other calls.
    pub fn completion(&self) -> Option<Completion<'_, Slot>> {
        Requests::of(|requests| self.visit(requests)).completion()
    }
}

impl CallOp {
    /// Returns the request that the call posts, if any.
    pub fn posted(&self) -> Option<RequestName> {
        Requests::of(|requests| self.visit(requests)).posted.copied()
    }

    /// Returns the requests of a wait or a test; `None` for other calls.
    pub fn completion(&self) -> Option<Completion<'_, RequestName>> {
        Requests::of(|requests| self.visit(requests)).completion()
    }
}
