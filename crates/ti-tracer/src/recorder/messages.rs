//! Messages and probes.

use super::{ANY_SOURCE, ANY_TAG, Argument, Recorder};
use crate::requests::{Entry, Patches, RequestKind};

/// The datatype of sizes in bytes; where it must not be left out.
const BYTE: u32 = 6;

/// Room for the largest tag.
const TAG_ROOM: usize = 10;

/// Room for ` source=` and the largest rank.
const SOURCE_ROOM: usize = 18;

impl Recorder {
    /// Records `send`, `ssend`, `bsend` or `rsend`.
    pub fn send(&mut self, verb: &str, to: i32, tag: i32, bytes: i64, communicator: i64) {
        if self.message(verb, to, tag, bytes, communicator) {
            self.end();
        }
    }

    /// Records a send that does not block, or a persistent one; returns the request, to be [bound](Self::bind).
    pub fn isend(&mut self, verb: &str, to: i32, tag: i32, bytes: i64, communicator: i64) -> Option<Entry> {
        let number = match self.communicator_of_request(verb, communicator, &arguments("dst", to, tag, bytes))
        {
            Ok(number) => number,
            Err(entry) => return Some(entry),
        };
        let to = self.peer(to, communicator)?;
        self.begin_message(verb, to, tag, bytes, number);
        let number = self.requests.take_number();
        self.named_field(" req=", number);
        self.end();
        Some(Entry::new(number, RequestKind::Send, Patches::default(), communicator))
    }

    /// Records a receive, with the rank and the tag of the message that came.
    pub fn recv(
        &mut self,
        from: i32,
        tag: i32,
        bytes: i64,
        communicator: i64,
        (actual_source, actual_tag): (i32, i32),
    ) {
        let tag = actual(from, tag, actual_tag);
        if self.message("recv", from, tag, bytes, communicator) {
            self.actual_source(from, actual_source, communicator);
            self.end();
        }
    }

    /// Records `irecv` or `recv_init`; returns the request, to be [bound](Self::bind). What any source and any tag stood for in
    /// an `irecv` is filled in when it completes.
    pub fn irecv(&mut self, verb: &str, from: i32, tag: i32, bytes: i64, communicator: i64) -> Option<Entry> {
        let number =
            match self.communicator_of_request(verb, communicator, &arguments("src", from, tag, bytes)) {
                Ok(number) => number,
                Err(entry) => return Some(entry),
            };
        let from_world = self.peer(from, communicator)?;
        let is_once = verb == "irecv";
        let is_any_tag = is_once && tag == ANY_TAG && from >= 0;
        let is_any_source = is_once && from == ANY_SOURCE;
        self.begin(verb);
        self.field(from_world);
        let tag_at = is_any_tag.then_some(self.line.len() + 1);
        match is_any_tag {
            true => self.push(format_args!(" {tag:<TAG_ROOM$}")),
            false => self.field(tag.into()),
        }
        self.field(bytes);
        self.named_communicator(number);
        let request = self.requests.take_number();
        self.named_field(" req=", request);
        let source_at = is_any_source.then_some(self.line.len());
        if is_any_source {
            self.push(format_args!("{:SOURCE_ROOM$}", ""));
        }
        let start = self.end();
        let offset = |at: Option<usize>| Some(start? + at? as u64);
        let patches = Patches { tag: offset(tag_at), source: offset(source_at), cancel: None };
        Some(Entry::new(request, RequestKind::Receive, patches, communicator))
    }

    /// Records `sendRecv` or `sendRecv_replace`; ends are peer, tag and bytes.
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
        let peers = (self.peer(to, communicator), self.peer(from, communicator));
        let (Some(to), Some(from_world)) = peers else { return };
        self.begin(verb);
        match verb {
            "sendRecv" => {
                self.push(format_args!(" {send_bytes} {to} {recv_bytes} {from_world} {BYTE} {BYTE}"))
            }
            _ => self.push(format_args!(" {send_bytes} {to} {from_world} {BYTE}")),
        }
        self.push(format_args!(" stag={send_tag} rtag={}", actual(from, recv_tag, actual_tag)));
        self.named_communicator(number);
        self.actual_source(from, actual_source, communicator);
        self.end();
    }

    /// Records `probe`, or `iprobe` and whether there was a message, with the rank and the tag of the message.
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
        let Some(from_world) = self.peer(from, communicator) else { return };
        let is_there = found != Some(false);
        let tag = if is_there { actual(from, tag, actual_tag) } else { tag };
        self.begin(verb);
        self.push(format_args!(" {from_world} {tag}"));
        self.named_communicator(number);
        if let Some(found) = found {
            self.push(format_args!(" done={}", if found { "yes" } else { "no" }));
        }
        if is_there {
            self.actual_source(from, actual_source, communicator);
        }
        self.end();
    }

    /// Notes a message that `MPI_Mprobe` or `MPI_Improbe` has matched.
    pub fn match_message(&mut self, message: i64, from: i32, tag: i32, communicator: i64) {
        self.matched.insert(message, (from, tag, communicator));
    }

    /// Records `MPI_Mrecv`, or `MPI_Imrecv` which posts a request, as the receive of a message that is known.
    pub fn receive_matched(&mut self, message: i64, bytes: i64, posts: bool) -> Option<Entry> {
        let Some((from, tag, communicator)) = self.matched.remove(&message) else {
            let bytes = [("bytes", Argument::Number(bytes))];
            return match posts {
                true => Some(self.unmodelled_request("MPI_Imrecv", &bytes)),
                false => {
                    self.unmodelled("MPI_Mrecv", &bytes);
                    None
                }
            };
        };
        if posts {
            return self.irecv("irecv", from, tag, bytes, communicator);
        }
        self.recv(from, tag, bytes, communicator, (from, tag));
        None
    }

    /// Begins the line of a message that is sent or was received; false where its communicator is not recorded.
    fn message(&mut self, verb: &str, peer: i32, tag: i32, bytes: i64, communicator: i64) -> bool {
        let key = if verb == "recv" { "src" } else { "dst" };
        let arguments = arguments(key, peer, tag, bytes);
        let Some(number) = self.communicator_of(verb, communicator, &arguments) else { return false };
        let Some(peer) = self.peer(peer, communicator) else { return false };
        self.begin_message(verb, peer, tag, bytes, number);
        true
    }

    fn begin_message(&mut self, verb: &str, peer: i64, tag: i32, bytes: i64, communicator: u32) {
        self.begin(verb);
        [peer, tag.into(), bytes].into_iter().for_each(|field| self.field(field));
        self.named_communicator(communicator);
    }

    fn actual_source(&mut self, from: i32, actual: i32, communicator: i64) {
        if from == ANY_SOURCE
            && let Some(actual) = self.source(actual, communicator)
        {
            self.push(format_args!(" source={actual}"));
        }
    }

    /// Returns the rank of the world that sent a message.
    pub(super) fn source(&self, rank: i32, communicator: i64) -> Option<u32> {
        self.communicators.world_rank(communicator, u32::try_from(rank).ok()?)
    }

    /// Returns a peer as the trace names it.
    fn peer(&self, peer: i32, communicator: i64) -> Option<i64> {
        match u32::try_from(peer) {
            Ok(rank) => self.communicators.world_rank(communicator, rank).map(i64::from),
            Err(_) => Some(peer.into()),
        }
    }
}

/// Returns the arguments of a message on a communicator that no line has made: the peer is a rank of its other group.
fn arguments(key: &'static str, peer: i32, tag: i32, bytes: i64) -> [(&'static str, Argument<'static>); 3] {
    let number = |number: i32| Argument::Number(number.into());
    [(key, number(peer)), ("tag", number(tag)), ("bytes", Argument::Number(bytes))]
}

/// Returns the tag of a receive: that of the message in place of any, where the source is named. Then it says the same; from any
/// source it would not, as other messages may come first in a replay.
fn actual(from: i32, tag: i32, of_message: i32) -> i32 {
    if tag == ANY_TAG && from >= 0 { of_message } else { tag }
}
