//! Messages that a host sends, packet by packet in turn.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::control::Control;
use super::nodes::IDLE;
use crate::PacketParameters;
use crate::packet::{MessageKey, Packet};

/// The messages that send over an output port of a host, in round robin.
#[derive(Clone, Debug, Default)]
pub(super) struct Injection {
    /// Places of the messages, the next one first.
    pub(super) queue: VecDeque<u32>,
    /// Instant at which the next packet enters the output queue \[ps\], at the rate of the port.
    pub(super) free_at: u64,
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

    /// Returns the number of packets that are left, if the message never waits.
    fn packets_if_unlimited(&self) -> Option<u32> {
        (self.limit.is_none() && self.control.is_none()).then_some(self.packets - self.sent)
    }

    /// Returns the number of packets after which the message waits, if the last of them is sent at an instant.
    fn packets_until_wait(&self, at: u64) -> u32 {
        if self.control.is_some() {
            // Its window may shrink with each acknowledgement, or it may pause after each packet.
            return 1;
        }
        self.limit.map_or(u32::MAX, |limit| {
            let returned = self.acknowledged.partition_point(|answer| answer.at <= at) as u32;
            limit + self.returned + returned - self.sent
        })
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
    /// Returns the `latest` instant, or an earlier one before which no message sends its last packet or has to wait, if packets of `time`
    /// leave from the `first` instant on, as soon as they can or later.
    pub(super) fn deadline_from(&self, streams: &[Stream], (first, time): (u64, u64), latest: u64) -> u64 {
        let mut at = first;
        for &place in &self.queue {
            if at >= latest {
                break;
            }
            let stream = &streams[place as usize];
            let more = (stream.packets - stream.sent).min(stream.packets_until_wait(first));
            let end = at.saturating_add(u64::from(more - 1).saturating_mul(time)).saturating_add(1);
            if end < latest {
                return end;
            }
            at = at.saturating_add(time);
        }
        latest
    }

    /// Returns the instant at which the host has to be caught up with: just after a message sends its last packet or has to wait, as what
    /// follows depends on that, and at the `latest` instant otherwise. A packet takes `time`.
    pub(super) fn deadline(&self, streams: &[Stream], time: u64, latest: u64) -> u64 {
        if self.queue.is_empty() {
            return IDLE;
        }
        let mut at = self.free_at;
        if let ([place], []) = self.queue.as_slices()
            && let Some(more) = streams[*place as usize].packets_if_unlimited()
        {
            let last = at.saturating_add(u64::from(more - 1).saturating_mul(time));
            return latest.min(last.saturating_add(1));
        }
        for round in 1.. {
            for &place in &self.queue {
                let stream = &streams[place as usize];
                if stream.sent + round == stream.packets || round >= stream.packets_until_wait(at) {
                    return latest.min(at.saturating_add(1));
                }
                at = at.saturating_add(time);
                if at >= latest {
                    return latest;
                }
            }
        }
        unreachable!("a packet takes time")
    }
}
