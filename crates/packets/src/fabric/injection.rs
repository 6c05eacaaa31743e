//! Messages that a host sends, packet by packet in turn.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::control::Control;
use super::nodes::IDLE;
use crate::PacketParameters;
use crate::packet::{MessageKey, Packet};

/// The messages that send over an output port of a host, in round robin.
#[derive(Clone, Debug)]
pub(super) struct Injection {
    pub(super) node: u32,
    /// Places of the messages, the next one first.
    pub(super) queue: VecDeque<u32>,
    /// Instant at which the next packet enters the output queue \[ps\], at the rate of the port.
    pub(super) free_at: u64,
    /// Messages that wait until an instant, the first one first.
    pub(super) resumes: VecDeque<Resume>,
}

/// The known end of the wait of a message. Those of one instant are ordered by messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resume {
    /// \[ps\]
    pub(super) at: u64,
    pub(super) message: MessageKey,
    pub(super) place: u32,
}

/// A message that is being sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stream {
    pub(super) message: MessageKey,
    /// Output port of the host.
    pub(super) port: u32,
    /// Path of the packets after that port.
    pub(super) path: u32,
    pub(super) packets: u32,
    /// Packets sent so far.
    pub(super) sent: u32,
    /// Payload and header of the last packet.
    pub(super) last_bytes: u32,
    /// Most packets that may be on their way, if a message has more.
    pub(super) limit: Option<u32>,
    /// Time of an acknowledgement \[ps\].
    pub(super) back: u64,
    /// Acknowledgements, or credits, that come until the message is over.
    pub(super) answers: u32,
    /// Those that have come.
    pub(super) returned: u32,
    /// Those that are known and have not come, in their order.
    pub(super) acknowledged: VecDeque<Answer>,
    /// With `reps`: entropies of packets that came back without a mark, the next one first.
    pub(super) recycled: Option<VecDeque<u16>>,
    /// Window or rate that changes by marks.
    pub(super) control: Option<Control>,
    /// The message waits for an acknowledgement, the earliest that is known, if there is one, or for the end of a pause.
    pub(super) waits: Option<Option<u64>>,
}

/// Content of an acknowledgement or a credit. Those of one instant are ordered by marks and entropies, whichever came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// \[ps\]
    pub(super) at: u64,
    pub(super) is_marked: bool,
    /// That of the packet, with `reps`.
    pub(super) entropy: u16,
}

impl Stream {
    /// Makes a message that begins.
    pub(super) fn new(
        message: MessageKey,
        packets: u32,
        last_bytes: u32,
        (port, path): (u32, u32),
        limit: Option<u32>,
    ) -> Self {
        let limit = limit.filter(|&limit| limit < packets);
        Self {
            message,
            port,
            path,
            packets,
            sent: 0,
            last_bytes,
            limit,
            back: 0,
            answers: limit.map_or(0, |_| packets),
            returned: 0,
            acknowledged: VecDeque::new(),
            recycled: None,
            control: None,
            waits: None,
        }
    }

    /// Returns the payload and header of the next packet.
    #[inline]
    pub(super) fn next_bytes(&self, parameters: &PacketParameters) -> u32 {
        if self.sent + 1 == self.packets {
            self.last_bytes
        } else {
            parameters.packet_bytes + parameters.header_bytes
        }
    }

    /// Returns the next packet, which leaves at an instant.
    pub(super) fn next_packet(&mut self, at: u64, parameters: &PacketParameters) -> Packet {
        let (number, bytes) = (self.sent, self.next_bytes(parameters));
        self.sent += 1;
        let is_last = self.sent == self.packets;
        let mut packet = Packet::new(at, self.message, number, is_last, bytes);
        packet.path = self.path;
        if let Some(recycled) = &mut self.recycled {
            packet = packet.with_entropy(recycled.pop_front().unwrap_or(number as u16));
        }
        packet.acknowledged_if(self.limit.is_some())
    }

    /// Takes in that a packet of so many bytes has begun to leave at an instant, which takes `time` at the rate of its port.
    pub(super) fn count_sent(&mut self, at: u64, bytes: u32, time: u64) {
        self.take_acknowledgements(at);
        if let Some(control) = &mut self.control {
            control.count_sent(at, bytes, time);
        }
    }

    /// Returns whether the message must wait at an instant before it sends another packet, and until when if that is known.
    pub(super) fn check_limit(&mut self, at: u64) -> bool {
        self.take_acknowledgements(at);
        self.waits = if self.is_full() {
            Some(self.acknowledged.front().map(|answer| answer.at))
        } else {
            self.control.as_ref().and_then(|control| control.pause(at)).map(Some)
        };
        self.waits.is_some()
    }

    /// Returns whether no more packets may be on their way.
    fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.sent - self.returned >= limit)
    }

    /// Takes in the acknowledgements that have come by an instant.
    fn take_acknowledgements(&mut self, at: u64) {
        let Some(mut limit) = self.limit else { return };
        while let Some(&Answer { at, is_marked, entropy }) =
            self.acknowledged.front().filter(|answer| answer.at <= at)
        {
            self.acknowledged.pop_front();
            self.returned += 1;
            if let Some(recycled) = self.recycled.as_mut().filter(|_| !is_marked) {
                recycled.push_back(entropy);
            }
            if let Some(control) = &mut self.control {
                limit = control.acknowledge(at, is_marked, limit);
            }
        }
        self.limit = Some(limit);
    }

    /// Returns an instant before which the message does not send its last packet, if its packets of `time` leave from an instant on.
    pub(super) fn earliest_end(&self, at: u64, time: u64) -> u64 {
        let more = u64::from(self.packets - self.sent - 1);
        at.saturating_add(more.saturating_mul(time)).saturating_add(1)
    }

    /// Adds an acknowledgement that comes; returns whether the message waits for it.
    pub(super) fn add_acknowledgement(&mut self, answer: Answer) -> bool {
        let place = self.acknowledged.partition_point(|&known| known <= answer);
        self.acknowledged.insert(place, answer);
        let is_full = self.is_full();
        match &mut self.waits {
            Some(until) if is_full && until.is_none_or(|until| answer.at < until) => {
                *until = Some(answer.at);
                true
            }
            _ => false,
        }
    }

    /// Returns whether no acknowledgement is left to come, and no packet to send.
    pub(super) fn is_over(&self) -> bool {
        self.sent == self.packets && self.returned + self.acknowledged.len() as u32 == self.answers
    }
}

impl Injection {
    pub(super) fn new(node: u32) -> Self {
        Self { node, queue: VecDeque::new(), free_at: 0, resumes: VecDeque::new() }
    }

    /// Adds the end of a wait.
    pub(super) fn add_resume(&mut self, resume: Resume) {
        let place = self.resumes.partition_point(|&known| known <= resume);
        self.resumes.insert(place, resume);
    }

    /// Removes the end of a wait, as an earlier one is known.
    pub(super) fn remove_resume(&mut self, resume: Resume) {
        let place = self.resumes.binary_search(&resume).expect("its message waits");
        self.resumes.remove(place);
    }

    /// Returns the instant at which a message sends or resumes next.
    pub(super) fn next(&self) -> u64 {
        let sends = if self.queue.is_empty() { IDLE } else { self.free_at };
        sends.min(self.next_resume())
    }

    /// Returns the instant at which a message resumes next.
    pub(super) fn next_resume(&self) -> u64 {
        self.resumes.front().map_or(IDLE, |resume| resume.at)
    }

    /// Returns the `latest` instant, or an earlier one before which no message sends its last packet, if packets of `time` leave from the
    /// `first` instant on, as soon as they can or later: what follows depends on the last packet.
    pub(super) fn deadline(&self, streams: &[Stream], (first, time): (u64, u64), latest: u64) -> u64 {
        let end = |place: u32, at: u64| streams[place as usize].earliest_end(at, time);
        let (mut at, mut deadline) = (first, latest);
        for &place in &self.queue {
            if at >= deadline {
                break;
            }
            deadline = deadline.min(end(place, at));
            at = at.saturating_add(time);
        }
        for &Resume { at, place, .. } in &self.resumes {
            if at >= deadline {
                break;
            }
            deadline = deadline.min(end(place, at.max(self.free_at)));
        }
        deadline
    }
}
