//! Recording of messages and probes.

use super::collectives::Template;
use super::{ANY_SOURCE, ANY_TAG, Argument, PROC_NULL, Recorder};
use crate::requests::{Patches, RequestEntry, RequestKind};
use ti_shard::{Kind, Unit};

/// Id of the byte datatype, for actions whose datatype must not be left out.
const BYTE: i64 = 6;

impl Recorder {
    /// Records `send`, `ssend`, `bsend` or `rsend`. Arguments that MPI refuses are counted as a failed call, here and below.
    pub fn send(&mut self, verb: &str, to: i32, tag: i32, bytes: i64, communicator: i64) {
        if let Some(number) = self.communicator_of(verb, communicator, &arguments("dst", to, tag, bytes))
            && self.accepts_send((to, tag, bytes), communicator)
        {
            self.message(verb, (to, tag, bytes), (communicator, number), None, None);
        }
    }

    /// Records a non-blocking or persistent send; returns the request, to be [bound](Self::bind).
    pub fn isend(
        &mut self,
        verb: &str,
        to: i32,
        tag: i32,
        bytes: i64,
        communicator: i64,
    ) -> Option<RequestEntry> {
        let number = match self.communicator_of_request(verb, communicator, &arguments("dst", to, tag, bytes))
        {
            Ok(number) => number,
            Err(entry) => return Some(entry),
        };
        if !self.accepts_send((to, tag, bytes), communicator) {
            return None;
        }
        let request = self.requests.take_number();
        self.message(verb, (to, tag, bytes), (communicator, number), Some(request), None);
        Some(RequestEntry::new(request, RequestKind::Send, Patches::default(), communicator))
    }

    /// Records a blocking receive, with source and tag of its message.
    pub fn recv(
        &mut self,
        from: i32,
        tag: i32,
        bytes: i64,
        communicator: i64,
        (actual_source, actual_tag): (i32, i32),
    ) {
        let tag = resolve_tag(from, tag, actual_tag);
        if let Some(number) = self.communicator_of("recv", communicator, &arguments("src", from, tag, bytes))
            && self.accepts_receive((from, tag, bytes), communicator)
        {
            let source = self.actual_source(from, actual_source, communicator);
            self.message("recv", (from, tag, bytes), (communicator, number), None, source);
        }
    }

    /// Records `irecv` or `recv_init`; returns the request, to be [bound](Self::bind). Actual source and tag of an `irecv`
    /// with wildcards are filled in when it completes. A `recv_init` from any source is recorded as an `irecv` at each start.
    pub fn irecv(
        &mut self,
        verb: &str,
        from: i32,
        tag: i32,
        bytes: i64,
        communicator: i64,
    ) -> Option<RequestEntry> {
        if let Err(entry) =
            self.communicator_of_request(verb, communicator, &arguments("src", from, tag, bytes))
        {
            return Some(entry);
        }
        if !self.accepts_receive((from, tag, bytes), communicator) {
            return None;
        }
        let request = self.requests.take_number();
        if verb == "recv_init" && from == ANY_SOURCE {
            self.templates.insert(request, Template::Receive(from, tag, bytes, communicator));
            return Some(RequestEntry::recorded_at_start(request, RequestKind::Receive, communicator));
        }
        let patches = self.post_receive(verb, (from, tag, bytes), communicator, request);
        Some(RequestEntry::new(request, RequestKind::Receive, patches, communicator))
    }

    /// Records the receive of a request on a registered communicator; returns what is filled in later.
    pub(super) fn post_receive(
        &mut self,
        verb: &str,
        (from, tag, bytes): (i32, i32, i64),
        communicator: i64,
        request: u32,
    ) -> Patches {
        let Some(number) = self.communicators.number(communicator) else { return Patches::default() };
        let place = self.message(verb, (from, tag, bytes), (communicator, number), Some(request), None);
        let is_any_source = from == ANY_SOURCE;
        Patches {
            tag: place.filter(|_| !is_any_source),
            source: place.filter(|_| is_any_source),
            cancel: None,
            // The size of a `recv_init` is in its phrase.
            receive: self.call_record.filter(|_| verb == "irecv").map(|record| record.amount()),
        }
    }

    /// Returns whether MPI accepts the arguments of a send; counts the call as failed otherwise.
    fn accepts_send(&mut self, (to, tag, bytes): (i32, i32, i64), communicator: i64) -> bool {
        self.accepts(self.is_peer(to, communicator) && tag >= 0 && bytes >= 0)
    }

    /// Returns the same for a receive or, without a size, a probe.
    fn accepts_receive(&mut self, (from, tag, bytes): (i32, i32, i64), communicator: i64) -> bool {
        let is_source = from == ANY_SOURCE || self.is_peer(from, communicator);
        self.accepts(is_source && (tag >= 0 || tag == ANY_TAG) && bytes >= 0)
    }

    fn accepts(&mut self, is_accepted: bool) -> bool {
        if !is_accepted {
            self.count_failed();
        }
        is_accepted
    }

    fn is_peer(&self, peer: i32, communicator: i64) -> bool {
        let world_rank = || self.communicators.world_rank(communicator, u32::try_from(peer).ok()?);
        peer == PROC_NULL || world_rank().is_some_and(|rank| rank < self.world)
    }

    /// Records `sendRecv` or `sendRecv_replace`; each side has peer, tag and size.
    pub fn send_recv(
        &mut self,
        verb: &str,
        (to, send_tag, send_bytes): (i32, i32, i64),
        (from, recv_tag, recv_bytes): (i32, i32, i64),
        communicator: i64,
        (actual_source, actual_tag): (i32, i32),
    ) {
        let sent = arguments("dst", to, send_tag, send_bytes);
        let received = [
            ("src", Argument::Number(from.into())),
            ("rtag", Argument::Number(recv_tag.into())),
            ("room", Argument::Number(recv_bytes)),
        ];
        let both = [&sent[..], &received].concat();
        let Some(number) = self.communicator_of(verb, communicator, &both) else { return };
        if !(self.accepts_send((to, send_tag, send_bytes), communicator)
            && self.accepts_receive((from, recv_tag, recv_bytes), communicator))
        {
            return;
        }
        let peers = (self.peer(to, communicator), self.peer(from, communicator));
        let (Some(to), Some(from_world)) = peers else { return };
        let (to, from_world) = (i64::from(to), i64::from(from_world));
        self.begin_call(verb);
        let plain = [send_bytes, to, recv_bytes, from_world, BYTE, BYTE];
        let replacing = [send_bytes, to, from_world, BYTE];
        let fields = if verb == "sendRecv" { &plain[..] } else { &replacing };
        fields.iter().for_each(|field| self.phrase.number(*field));
        self.phrase.named("stag", send_tag.into());
        self.phrase.named("rtag", resolve_tag(from, recv_tag, actual_tag).into());
        self.named_communicator(number);
        self.push_source(from, actual_source, communicator);
        self.write_call();
    }

    /// Records `probe`, or `iprobe` and whether it found a message, with source and tag of the message.
    pub fn probe(
        &mut self,
        (from, tag): (i32, i32),
        communicator: i64,
        found: Option<bool>,
        (actual_source, actual_tag): (i32, i32),
    ) {
        let verb = if found.is_some() { "iprobe" } else { "probe" };
        let source = [("src", Argument::Number(from.into())), ("tag", Argument::Number(tag.into()))];
        let Some(number) = self.communicator_of(verb, communicator, &source) else { return };
        if !self.accepts_receive((from, tag, 0), communicator) {
            return;
        }
        let Some(from_world) = self.peer(from, communicator).map(i64::from) else { return };
        let is_there = found != Some(false);
        let tag = if is_there { resolve_tag(from, tag, actual_tag) } else { tag };
        self.begin_call(verb);
        [from_world, tag.into()].into_iter().for_each(|field| self.phrase.number(field));
        self.named_communicator(number);
        if let Some(found) = found {
            self.phrase.word("done", if found { "yes" } else { "no" });
        }
        if is_there {
            self.push_source(from, actual_source, communicator);
        }
        self.write_call();
    }

    /// Registers a message that `MPI_Mprobe` or `MPI_Improbe` has matched, with its size \[B\].
    pub fn match_message(&mut self, message: i64, from: i32, tag: i32, bytes: i64, communicator: i64) {
        self.matched.insert(message, (from, tag, bytes, communicator));
    }

    /// Records `MPI_Mrecv`, or the non-blocking `MPI_Imrecv`, as the receive of a message with known source and tag.
    pub fn receive_matched(&mut self, message: i64, bytes: i64, posts: bool) -> Option<RequestEntry> {
        let Some((from, tag, size, communicator)) = self.matched.remove(&message) else {
            let bytes = [("bytes", Argument::Number(bytes))];
            return match posts {
                true => Some(self.unmodelled_request("MPI_Imrecv", &bytes)),
                false => {
                    self.unmodelled("MPI_Mrecv", &bytes);
                    None
                }
            };
        };
        // A receive takes a message that is longer than its buffer, too.
        let bytes = if bytes < 0 { bytes } else { bytes.max(size) };
        if posts {
            return self.irecv("irecv", from, tag, bytes, communicator);
        }
        self.recv(from, tag, bytes, communicator, (from, tag));
        None
    }

    /// Records a message that is sent or received, on a communicator with this handle and number; returns the offset of the
    /// deferred unit of an `irecv` with a wildcard.
    fn message(
        &mut self,
        verb: &str,
        (peer, tag, bytes): (i32, i32, i64),
        (communicator, number): (i64, u32),
        request: Option<u32>,
        source: Option<u32>,
    ) -> Option<u64> {
        let is_any = verb == "irecv" && (peer == ANY_SOURCE || peer >= 0 && tag == ANY_TAG);
        let peer = self.peer(peer, communicator)?;
        self.write_computation();
        let kind = match (verb, source) {
            ("send", _) => Kind::Send,
            ("isend", _) => Kind::Isend,
            ("recv", None) => Kind::Recv,
            ("irecv", _) => Kind::Irecv,
            _ => {
                self.phrase.begin(verb);
                [peer.into(), tag.into(), bytes].into_iter().for_each(|field| self.phrase.number(field));
                self.named_communicator(number);
                if let Some(request) = request {
                    self.phrase.named("req", request.into());
                }
                if let Some(source) = source {
                    self.phrase.named("source", source.into());
                }
                return self.write_call_deferred(is_any);
            }
        };
        let index = self.channel_number((peer, tag, number));
        let unit = Unit { kind, slot: request.unwrap_or(0), index, amount: bytes as u64 };
        self.write(unit, is_any).filter(|_| is_any)
    }

    fn push_source(&mut self, from: i32, actual: i32, communicator: i64) {
        if let Some(source) = self.actual_source(from, actual, communicator) {
            self.phrase.named("source", source.into());
        }
    }

    /// Returns the world rank of the source of a receive with `MPI_ANY_SOURCE`.
    fn actual_source(&self, from: i32, actual: i32, communicator: i64) -> Option<u32> {
        if from == ANY_SOURCE { self.world_source(actual, communicator) } else { None }
    }

    /// Returns the world rank of the sender of a message.
    pub(super) fn world_source(&self, rank: i32, communicator: i64) -> Option<u32> {
        self.communicators.world_rank(communicator, u32::try_from(rank).ok()?)
    }

    /// Returns a peer as named in the trace: a world rank, or a constant.
    fn peer(&self, peer: i32, communicator: i64) -> Option<i32> {
        match u32::try_from(peer) {
            Ok(rank) => self.communicators.world_rank(communicator, rank).map(|rank| rank as i32),
            Err(_) => Some(peer),
        }
    }
}

/// Returns the arguments of an unmodelled message, on an unregistered communicator: the peer is a rank of its remote group.
fn arguments(key: &'static str, peer: i32, tag: i32, bytes: i64) -> [(&'static str, Argument<'static>); 3] {
    let number = |number: i32| Argument::Number(number.into());
    [(key, number(peer)), ("tag", number(tag)), ("bytes", Argument::Number(bytes))]
}

/// Returns the tag of a receive in the trace: the message's tag in place of `MPI_ANY_TAG` if the source is named, where
/// both match the same message. With `MPI_ANY_SOURCE` they would not, as other messages may arrive first in a replay.
fn resolve_tag(from: i32, tag: i32, of_message: i32) -> i32 {
    if tag == ANY_TAG && from >= 0 { of_message } else { tag }
}
