//! The transport of frames between members: it packs them into messages, controls their flow by credits, and sorts them by
//! the run to which they belong.

use std::collections::VecDeque;

use super::link::{Link, Messages};
use crate::{SimTime, Wire};

/// Maximum size of a message \[B\], unless a single frame is longer. MPI libraries send messages up to this size eagerly.
const MESSAGE_BYTES: usize = 4000;
/// Maximum number of unacknowledged messages to one member.
const CREDIT: u32 = 64;

/// The header of a message.
struct Header {
    /// True if the sender leaves the cluster; a [`DepartureCause`] follows then, and no frames.
    farewell: bool,
    /// Run to which the frames belong; in a departure, the last one that the sender completed.
    run: u32,
    /// Number of messages with frames that the sender has received from the receiver (the acknowledgement).
    received: u32,
    /// Least clock of the sender.
    floor: SimTime,
}

impl Header {
    const SIZE: usize = u8::SIZE + 2 * u32::SIZE + SimTime::SIZE;

    fn write(&self, bytes: &mut Vec<u8>) {
        u8::from(self.farewell).write(bytes);
        self.run.write(bytes);
        self.received.write(bytes);
        self.floor.write(bytes);
    }

    fn read(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let farewell = u8::read(bytes)? != 0;
        Some(Self {
            farewell,
            run: Wire::read(bytes)?,
            received: Wire::read(bytes)?,
            floor: Wire::read(bytes)?,
        })
    }
}

/// The transport of frames to and from other members.
pub(crate) struct Mail {
    link: Link,
    peers: Vec<Peer>,
    run: u32,
    outgoing: Messages,
    arrived: Messages,
    /// Unread messages of this run.
    incoming: VecDeque<Delivery>,
    /// Messages of later runs, which other members have begun already, with the numbers of their runs.
    ahead: VecDeque<(u32, Delivery)>,
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
    told: u32,
    /// True if a message is due even if there is no frame for the peer.
    nudged: bool,
    farewell: Option<Farewell>,
}

struct Farewell {
    completed: u32,
    cause: Cause,
}

/// The cause of a departure: the member that left first, and its panic message.
#[derive(Clone, Debug)]
pub(super) struct Cause {
    /// First member to leave; a member that leaves because another one has left names that one.
    pub(super) member: usize,
    /// Message of its panic.
    pub(super) message: Option<String>,
}

impl Cause {
    fn write(&self, bytes: &mut Vec<u8>) {
        (self.member as u32).write(bytes);
        bytes.extend_from_slice(self.message.as_deref().unwrap_or_default().as_bytes());
    }

    fn read(mut bytes: &[u8]) -> Option<Self> {
        let member = u32::read(&mut bytes)? as usize;
        let message = (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned());
        Some(Self { member, message })
    }
}

/// A received message and the position up to which its frames are read.
pub(crate) struct Delivery {
    pub(crate) from: usize,
    /// Least clock of the sender when it sent the message.
    pub(crate) floor: SimTime,
    bytes: Vec<u8>,
    read: usize,
}

impl Delivery {
    /// Returns the next frame.
    pub(crate) fn next_frame(&mut self) -> Option<&[u8]> {
        let mut rest = &self.bytes[self.read..];
        let length = u32::read(&mut rest)? as usize;
        self.read += u32::SIZE + length;
        rest.get(..length)
    }
}

impl Mail {
    pub(super) fn new(link: Link) -> Self {
        let peers = (0..link.members()).map(|_| Peer::default()).collect();
        let (outgoing, arrived) = Default::default();
        Self { link, peers, run: 0, outgoing, arrived, incoming: VecDeque::new(), ahead: VecDeque::new() }
    }

    pub(crate) fn me(&self) -> usize {
        self.link.me()
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
        let (present, ahead) = std::mem::take(&mut self.ahead).into_iter().partition(|&(of, _)| of == run);
        self.ahead = ahead;
        let present: VecDeque<(u32, Delivery)> = present;
        self.incoming.extend(present.into_iter().map(|(_, delivery)| delivery));
    }

    /// Queues a frame, in the last message if it fits there.
    pub(crate) fn post(&mut self, to: usize, frame: &[u8]) {
        let backlog = &mut self.peers[to].backlog;
        let bytes = u32::SIZE + frame.len();
        if backlog.back().is_none_or(|message| message.len() + bytes > MESSAGE_BYTES) {
            backlog.push_back(Vec::with_capacity(bytes.max(256)));
        }
        let message = backlog.back_mut().expect("a message has just been begun");
        (frame.len() as u32).write(message);
        message.extend_from_slice(frame);
    }

    /// Makes the next [`exchange`](Transport::exchange) send a message, with a header only if there are no frames.
    pub(crate) fn nudge(&mut self, to: usize) {
        self.peers[to].nudged = true;
    }

    /// Sends the messages for which there is credit, and receives those that have arrived. It never blocks.
    ///
    /// A message without frames needs no credit and is not acknowledged, so acknowledgements always get through.
    pub(crate) fn exchange(&mut self, floor: SimTime) {
        let run = self.run;
        for (to, peer) in self.peers.iter_mut().enumerate() {
            if peer.farewell.is_some() {
                // It reads no frames any more.
                peer.backlog.clear();
                continue;
            }
            let header = Header { farewell: false, run, received: peer.received, floor };
            peer.depart(&header, |message| self.outgoing.push_back((to, message)));
        }
        self.link.exchange(&mut self.outgoing, &mut self.arrived);
        while let Some((from, message)) = self.arrived.pop_front() {
            self.sort(from, message);
        }
    }

    fn sort(&mut self, from: usize, message: Vec<u8>) {
        let Some(header) = Header::read(&message) else {
            panic!("member {from} sends a message of {} bytes, which is no header", message.len());
        };
        let peer = &mut self.peers[from];
        peer.acknowledged = header.received;
        if header.farewell {
            let cause =
                Cause::read(&message[Header::SIZE..]).unwrap_or(Cause { member: from, message: None });
            peer.farewell = Some(Farewell { completed: header.run, cause });
            return;
        }
        peer.received = peer.received.wrapping_add(u32::from(message.len() > Header::SIZE));
        let delivery = Delivery { from, floor: header.floor, bytes: message, read: Header::SIZE };
        if header.run == self.run {
            self.incoming.push_back(delivery);
        } else if header.run > self.run {
            self.ahead.push_back((header.run, delivery));
        }
    }

    /// Returns the next message of this run.
    pub(crate) fn next(&mut self) -> Option<Delivery> {
        self.incoming.pop_front()
    }

    pub(crate) fn has_incoming(&self) -> bool {
        !self.incoming.is_empty()
    }

    pub(super) fn forget_incoming(&mut self) {
        self.incoming.clear();
        self.ahead.clear();
    }

    /// Returns the number of bytes that wait for credit \[B\].
    pub(crate) fn backlog(&self) -> usize {
        self.peers.iter().flat_map(|peer| &peer.backlog).map(Vec::len).sum()
    }

    /// Returns true if a message waits for credit or is being sent.
    pub(crate) fn has_outgoing(&mut self) -> bool {
        let waits = |peer: &Peer| !peer.backlog.is_empty() && peer.farewell.is_none();
        self.peers.iter().any(waits) || self.link.is_sending()
    }

    pub(super) fn discard_outgoing(&mut self) {
        self.peers.iter_mut().for_each(|peer| peer.backlog.clear());
    }

    /// Announces to all other members that this one leaves, after the messages that were sent already. It needs no credit.
    pub(super) fn say_farewell(&mut self, completed: u32, cause: &Cause) {
        for to in self.others() {
            let header = Header {
                farewell: true,
                run: completed,
                received: self.peers[to].received,
                floor: SimTime::MAX,
            };
            let mut bytes = Vec::new();
            header.write(&mut bytes);
            cause.write(&mut bytes);
            self.outgoing.push_back((to, bytes));
        }
        self.link.exchange(&mut self.outgoing, &mut self.arrived);
    }

    /// Returns the cause of the departure of a member that left before it completed a run, if there is one.
    pub(super) fn departure(&self, run: u32) -> Option<&Cause> {
        let farewells = self.peers.iter().filter_map(|peer| peer.farewell.as_ref());
        let mut early = farewells.filter(|farewell| farewell.completed < run);
        early.next().map(|farewell| &farewell.cause)
    }

    pub(super) fn all_departed(&self) -> bool {
        self.others().all(|member| self.peers[member].farewell.is_some())
    }
}

impl Peer {
    /// Hands over the messages for which there is credit, or a header only if a message or an acknowledgement is due.
    fn depart(&mut self, header: &Header, mut hand_over: impl FnMut(Vec<u8>)) {
        let owed = self.received.wrapping_sub(self.told);
        let mut due = self.nudged || owed >= CREDIT / 2;
        while let Some(frames) = self.backlog.front() {
            if self.sent.wrapping_sub(self.acknowledged) >= CREDIT {
                break;
            }
            let mut message = Vec::with_capacity(Header::SIZE + frames.len());
            header.write(&mut message);
            message.extend_from_slice(frames);
            self.backlog.pop_front();
            self.sent = self.sent.wrapping_add(1);
            due = false;
            self.told = self.received;
            hand_over(message);
        }
        if due {
            let mut message = Vec::with_capacity(Header::SIZE);
            header.write(&mut message);
            hand_over(message);
            self.told = self.received;
        }
        self.nudged = false;
    }
}
