//! Recording of collective operations.

use ti_shard::Phrase;

use super::{Argument, Recorder};
use crate::requests::{Patches, RequestEntry, RequestKind};

/// Operation of a persistent request, which is recorded at each start: a receive from any source, so that the source of each
/// message is recorded, or a collective operation.
#[derive(Clone, Debug)]
pub(super) enum Template {
    /// Source, tag, size of the buffer, and handle of the communicator.
    Receive(i32, i32, i64, i64),
    /// Its phrase.
    Collective(Phrase),
}

/// How a call makes a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveForm {
    /// The call returns when the process has done its part.
    Blocking,
    /// The call posts a request.
    Nonblocking,
    /// The call makes a persistent request.
    Persistent,
}

impl From<bool> for CollectiveForm {
    fn from(posts: bool) -> Self {
        if posts { Self::Nonblocking } else { Self::Blocking }
    }
}

impl Recorder {
    /// Records a collective operation with its fields in the trace, none of which is negative; returns the request of a
    /// non-blocking or persistent one. A persistent one is recorded at each start.
    pub fn collective(
        &mut self,
        verb: &str,
        communicator: i64,
        fields: &[i64],
        form: impl Into<CollectiveForm>,
    ) -> Option<RequestEntry> {
        let form = form.into();
        let arguments = [("bytes", Argument::Number(fields.first().copied().unwrap_or(0)))];
        let arguments = if fields.is_empty() { &[] } else { &arguments[..] };
        let number = match self.collective_communicator(verb, communicator, arguments, form) {
            Ok(number) => number,
            Err(entry) => return entry,
        };
        if fields.iter().any(|field| *field < 0) {
            self.count_failed();
            return None;
        }
        self.begin_collective(verb, form);
        fields.iter().for_each(|field| self.phrase.number(*field));
        self.end_collective(number, communicator, form)
    }

    /// Records a neighbourhood exchange, with the size for each neighbour \[B\]; returns the request of a non-blocking one.
    pub fn neighbors(
        &mut self,
        communicator: i64,
        (to, send_bytes): (&[i64], &[i64]),
        (from, recv_bytes): (&[i64], &[i64]),
        form: impl Into<CollectiveForm>,
    ) -> Option<RequestEntry> {
        let form = form.into();
        let verb =
            if form == CollectiveForm::Blocking { "neighbor_alltoallv" } else { "ineighbor_alltoallv" };
        let bytes = [("bytes", Argument::Number(send_bytes.iter().sum()))];
        let number = match self.collective_communicator(verb, communicator, &bytes, form) {
            Ok(number) => number,
            Err(entry) => return entry,
        };
        if send_bytes.iter().chain(recv_bytes).any(|bytes| *bytes < 0) {
            self.count_failed();
            return None;
        }
        self.begin_collective(verb, form);
        let lists = [("to", to), ("scounts", send_bytes), ("from", from), ("rcounts", recv_bytes)];
        lists.into_iter().for_each(|(key, list)| self.phrase.list(key, list));
        self.end_collective(number, communicator, form)
    }

    fn collective_communicator(
        &mut self,
        verb: &str,
        communicator: i64,
        arguments: &[(&str, Argument<'_>)],
        form: CollectiveForm,
    ) -> Result<u32, Option<RequestEntry>> {
        match form {
            CollectiveForm::Blocking => self.communicator_of(verb, communicator, arguments).ok_or(None),
            _ => self.communicator_of_request(verb, communicator, arguments).map_err(Some),
        }
    }

    fn begin_collective(&mut self, verb: &str, form: CollectiveForm) {
        match form {
            // The computation before belongs to the next call.
            CollectiveForm::Persistent => self.phrase.begin(verb),
            _ => self.begin_call(verb),
        }
    }

    fn end_collective(
        &mut self,
        number: u32,
        communicator: i64,
        form: CollectiveForm,
    ) -> Option<RequestEntry> {
        self.named_communicator(number);
        if form == CollectiveForm::Blocking {
            self.write_call();
            return None;
        }
        let request = self.requests.take_number();
        self.phrase.named("req", request.into());
        if form == CollectiveForm::Persistent {
            self.templates.insert(request, Template::Collective(self.phrase.clone()));
            return Some(RequestEntry::recorded_at_start(request, RequestKind::Collective, communicator));
        }
        self.write_call();
        Some(RequestEntry::new(request, RequestKind::Collective, Patches::default(), communicator))
    }

    /// Records the operation that the start of a persistent request performs; returns what is filled in later.
    pub(super) fn start_operation(&mut self, number: u32) -> Patches {
        match self.templates.get(&number) {
            Some(&Template::Receive(from, tag, bytes, communicator)) => {
                self.post_receive("irecv", (from, tag, bytes), communicator, number)
            }
            Some(Template::Collective(phrase)) => {
                let phrase = phrase.clone();
                self.write_computation();
                self.phrase = phrase;
                self.write_call();
                Patches::default()
            }
            None => Patches::default(),
        }
    }
}
