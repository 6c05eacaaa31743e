//! The transport of frames between members: it packs them into messages, controls their flow by credits, and sorts them by
//! the run to which they belong.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::backend::{Backend, Messages};
use super::encoding;
use crate::SimTime;

/// Maximum size of a message \[B\], unless a single frame is longer. MPI libraries send messages up to this size eagerly.
const MESSAGE_BYTES: usize = 4000;
/// Maximum number of unacknowledged messages to one member.
const CREDITS: u32 = 64;

/// The header of a message.
#[derive(Serialize, Deserialize)]
struct Header {
    /// Cause for which the sender leaves the cluster, if it does; no frames follow then.
    departure: Option<DepartureCause>,
    /// Run to which the frames belong; in a departure, the last one that the sender completed.
    run: u32,
    /// Number of messages with frames that the sender has received from the receiver (the acknowledgement).
    received: u32,
    /// Least clock of the sender.
    lower_bound: SimTime,
}

/// The transport of frames to and from other members.
pub(crate) struct Transport {
    backend: Backend,
    peers: Vec<Peer>,
    run: u32,
    outgoing: Messages,
    arrived: Messages,
    /// Unread messages of this run.
    incoming: VecDeque<ReceivedMessage>,
    /// Messages of later runs, which other members have begun already, with the numbers of their runs.
    early: VecDeque<(u32, ReceivedMessage)>,
}

/// The state of the connection to another member. The counters may wrap: only their differences are used.
#[derive(Default)]
struct Peer {
    /// Messages that wait for credit, without their headers.
    backlog: VecDeque<Vec<u8>>,
    /// Number of messages with frames sent to the peer.
    sent: u32,
    /// Number of sent messages that the peer has acknowledged.
    acknowledged: u32,
    /// Number of messages with frames received from the peer.
    received: u32,
    /// Number of received messages that were acknowledged to the peer.
    acknowledged_to_peer: u32,
    /// True if a message is due even if there is no frame for the peer.
    is_header_due: bool,
    departure: Option<Departure>,
}

struct Departure {
    completed: u32,
    cause: DepartureCause,
}

/// The cause of a departure: the member that left first, and its panic message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DepartureCause {
    /// First member to leave; a member that leaves because another one has left names that one.
    pub(super) member: usize,
    /// Message of its panic.
    pub(super) message: Option<String>,
}

/// A received message and the position up to which its frames are read.
pub(crate) struct ReceivedMessage {
    pub(crate) from: usize,
    /// Least clock of the sender when it sent the message.
    pub(crate) lower_bound: SimTime,
    bytes: Vec<u8>,
    position: usize,
}

impl ReceivedMessage {
    /// Returns the next frame.
    pub(crate) fn next_frame(&mut self) -> Option<&[u8]> {
        let mut rest = &self.bytes[self.position..];
        let frame = encoding::take(&mut rest)?;
        self.position = self.bytes.len() - rest.len();
        Some(frame)
    }
}

impl Transport {
    pub(super) fn new(link: Backend) -> Self {
        let peers = (0..link.members()).map(|_| Peer::default()).collect();
        let (outgoing, arrived) = Default::default();
        Self {
            backend: link,
            peers,
            run: 0,
            outgoing,
            arrived,
            incoming: VecDeque::new(),
            early: VecDeque::new(),
        }
    }

    pub(super) fn backend(&self) -> &Backend {
        &self.backend
    }

    pub(crate) fn me(&self) -> usize {
        self.backend.me()
    }

    pub(crate) fn members(&self) -> usize {
        self.peers.len()
    }

    /// Returns all members but this one.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.me();
        (0..self.members()).filter(move |&member| member != me)
    }

    /// Switches to another run: drops messages of the last one, and makes early messages of this one readable.
    pub(super) fn begin(&mut self, run: u32) {
        self.run = run;
        self.incoming.clear();
        let (present, ahead) = std::mem::take(&mut self.early).into_iter().partition(|&(of, _)| of == run);
        self.early = ahead;
        let present: VecDeque<(u32, ReceivedMessage)> = present;
        self.incoming.extend(present.into_iter().map(|(_, delivery)| delivery));
    }

    /// Queues a frame, in the last message if it fits there.
    pub(crate) fn enqueue(&mut self, to: usize, frame: &[u8]) {
        let backlog = &mut self.peers[to].backlog;
        let bytes = size_of::<u32>() + frame.len();
        if backlog.back().is_none_or(|message| message.len() + bytes > MESSAGE_BYTES) {
            backlog.push_back(Vec::with_capacity(bytes.max(256)));
        }
        let message = backlog.back_mut().expect("a message has just been begun");
        // The encoding of a slice.
        encoding::append(&frame.len(), message);
        message.extend_from_slice(frame);
    }

    /// Makes the next [`exchange`](Transport::exchange) send a message, with a header only if there are no frames.
    pub(crate) fn force_header(&mut self, to: usize) {
        self.peers[to].is_header_due = true;
    }

    /// Sends the messages for which there is credit, and receives those that have arrived. It never blocks.
    ///
    /// A message without frames needs no credit and is not acknowledged, so acknowledgements always get through.
    pub(crate) fn exchange(&mut self, floor: SimTime) {
        let run = self.run;
        for (to, peer) in self.peers.iter_mut().enumerate() {
            if peer.departure.is_some() {
                // It reads no frames any more.
                peer.backlog.clear();
                continue;
            }
            let header = Header { departure: None, run, received: peer.received, lower_bound: floor };
            peer.send_ready(&header, |message| self.outgoing.push_back((to, message)));
        }
        self.backend.exchange(&mut self.outgoing, &mut self.arrived);
        while let Some((from, message)) = self.arrived.pop_front() {
            self.accept(from, message);
        }
    }

    fn accept(&mut self, from: usize, message: Vec<u8>) {
        let mut rest = message.as_slice();
        let Some(header) = encoding::take::<Header>(&mut rest) else {
            panic!("member {from} sends a message of {} bytes, which is no header", message.len());
        };
        let position = message.len() - rest.len();
        let peer = &mut self.peers[from];
        peer.acknowledged = header.received;
        if let Some(cause) = header.departure {
            peer.departure = Some(Departure { completed: header.run, cause });
            return;
        }
        peer.received = peer.received.wrapping_add(u32::from(position < message.len()));
        let delivery = ReceivedMessage { from, lower_bound: header.lower_bound, bytes: message, position };
        if header.run == self.run {
            self.incoming.push_back(delivery);
        } else if header.run > self.run {
            self.early.push_back((header.run, delivery));
        }
    }

    /// Returns the next message of this run.
    pub(crate) fn next_message(&mut self) -> Option<ReceivedMessage> {
        self.incoming.pop_front()
    }

    pub(crate) fn has_incoming(&self) -> bool {
        !self.incoming.is_empty()
    }

    pub(super) fn discard_incoming(&mut self) {
        self.incoming.clear();
        self.early.clear();
    }

    /// Returns the number of bytes that wait for credit \[B\].
    pub(crate) fn backlog(&self) -> usize {
        self.peers.iter().flat_map(|peer| &peer.backlog).map(Vec::len).sum()
    }

    /// Returns true if a message waits for credit or is being sent.
    pub(crate) fn has_outgoing(&mut self) -> bool {
        let waits = |peer: &Peer| !peer.backlog.is_empty() && peer.departure.is_none();
        self.peers.iter().any(waits) || self.backend.is_sending()
    }

    pub(super) fn discard_outgoing(&mut self) {
        self.peers.iter_mut().for_each(|peer| peer.backlog.clear());
    }

    /// Announces to all other members that this one leaves, after the messages that were sent already. It needs no credit.
    pub(super) fn announce_departure(&mut self, completed: u32, cause: &DepartureCause) {
        for to in self.others() {
            let header = Header {
                departure: Some(cause.clone()),
                run: completed,
                received: self.peers[to].received,
                lower_bound: SimTime::MAX,
            };
            let mut bytes = Vec::new();
            encoding::append(&header, &mut bytes);
            self.outgoing.push_back((to, bytes));
        }
        self.backend.exchange(&mut self.outgoing, &mut self.arrived);
    }

    /// Returns the cause of the departure of a member that left before it completed a run, if there is one.
    pub(super) fn early_departure(&self, run: u32) -> Option<&DepartureCause> {
        let farewells = self.peers.iter().filter_map(|peer| peer.departure.as_ref());
        let mut early = farewells.filter(|farewell| farewell.completed < run);
        early.next().map(|farewell| &farewell.cause)
    }

    pub(super) fn all_departed(&self) -> bool {
        self.others().all(|member| self.peers[member].departure.is_some())
    }
}

impl Peer {
    /// Hands over the messages for which there is credit, or a header only if a message or an acknowledgement is due.
    fn send_ready(&mut self, header: &Header, mut hand_over: impl FnMut(Vec<u8>)) {
        let owed = self.received.wrapping_sub(self.acknowledged_to_peer);
        let mut due = self.is_header_due || owed >= CREDITS / 2;
        while let Some(frames) = self.backlog.front() {
            if self.sent.wrapping_sub(self.acknowledged) >= CREDITS {
                break;
            }
            let mut message = Vec::with_capacity(size_of::<Header>() + frames.len());
            encoding::append(header, &mut message);
            message.extend_from_slice(frames);
            self.backlog.pop_front();
            self.sent = self.sent.wrapping_add(1);
            due = false;
            self.acknowledged_to_peer = self.received;
            hand_over(message);
        }
        if due {
            let mut message = Vec::new();
            encoding::append(header, &mut message);
            hand_over(message);
            self.acknowledged_to_peer = self.received;
        }
        self.is_header_due = false;
    }
}
