//! Recording of collective operations.

use super::{Argument, Recorder};
use crate::requests::{Patches, RequestEntry, RequestKind};

impl Recorder {
    /// Records a collective operation with its fields in the trace; returns the request of a non-blocking one.
    pub fn collective(
        &mut self,
        verb: &str,
        communicator: i64,
        fields: &[i64],
        posts: bool,
    ) -> Option<RequestEntry> {
        let arguments = [("bytes", Argument::Number(fields.first().copied().unwrap_or(0)))];
        let arguments = if fields.is_empty() { &[] } else { &arguments[..] };
        let number = match self.collective_communicator(verb, communicator, arguments, posts) {
            Ok(number) => number,
            Err(entry) => return entry,
        };
        self.begin_call(verb);
        fields.iter().for_each(|field| self.phrase.number(*field));
        self.end_collective(number, communicator, posts)
    }

    /// Records a neighbourhood exchange, with the size for each neighbour \[B\]; returns the request of a non-blocking one.
    pub fn neighbors(
        &mut self,
        communicator: i64,
        (to, send_bytes): (&[i64], &[i64]),
        (from, recv_bytes): (&[i64], &[i64]),
        posts: bool,
    ) -> Option<RequestEntry> {
        let verb = if posts { "ineighbor_alltoallv" } else { "neighbor_alltoallv" };
        let bytes = [("bytes", Argument::Number(send_bytes.iter().sum()))];
        let number = match self.collective_communicator(verb, communicator, &bytes, posts) {
            Ok(number) => number,
            Err(entry) => return entry,
        };
        self.begin_call(verb);
        let lists = [("to", to), ("scounts", send_bytes), ("from", from), ("rcounts", recv_bytes)];
        lists.into_iter().for_each(|(key, list)| self.phrase.list(key, list));
        self.end_collective(number, communicator, posts)
    }

    fn collective_communicator(
        &mut self,
        verb: &str,
        communicator: i64,
        arguments: &[(&str, Argument<'_>)],
        posts: bool,
    ) -> Result<u32, Option<RequestEntry>> {
        match posts {
            true => self.communicator_of_request(verb, communicator, arguments).map_err(Some),
            false => self.communicator_of(verb, communicator, arguments).ok_or(None),
        }
    }

    fn end_collective(&mut self, number: u32, communicator: i64, posts: bool) -> Option<RequestEntry> {
        self.named_communicator(number);
        if !posts {
            self.write_call();
            return None;
        }
        let request = self.requests.take_number();
        self.phrase.named("req", request.into());
        self.write_call();
        Some(RequestEntry::new(request, RequestKind::Collective, Patches::default(), communicator))
    }
}
