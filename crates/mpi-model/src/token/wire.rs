//! Wire format of tokens, for transport between processes of the operating system.
//!
//! The first byte is the kind, for messages together with the destination queue; the rest of the fixed size is the payload,
//! padded with zeros. Absent numbers that are never zero are written as zero.

use std::num::NonZeroU32;

use pdes_core::Wire;
use trace_mmap::{CommId, PortId};

use super::{EagerMessageId, Message, ReceiveQueue, Side, Token};
use crate::request::{OperationIndex, RequestId};

const TO_PORT: u8 = 0;
const TO_COLLECTIVE: u8 = 1;
const TO_MAILBOX: u8 = 2;
const TO_TIME: u8 = 3;
const MATCH_ERROR: u8 = 4;
const ARRIVED: u8 = 5;
const EAGER_ARRIVED: u8 = 6;
const WORK_DONE: u8 = 7;
const FAILED_POLLS: u8 = 8;
const ARRIVED_AT_SENDER: u8 = 9;
const PATH_FRAGMENT: u8 = 10;

impl Wire for Token {
    const SIZE: usize = u8::SIZE + u32::SIZE + Message::SIZE;

    #[inline]
    fn write(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len() + Self::SIZE;
        match *self {
            Self::Message { queue, message } => {
                match queue {
                    ReceiveQueue::Port(port) => (TO_PORT, port.get()),
                    ReceiveQueue::Collective(from) => (TO_COLLECTIVE, from),
                    ReceiveQueue::Mailbox(from) => (TO_MAILBOX, from),
                    ReceiveQueue::Time(from) => (TO_TIME, from),
                }
                .write(bytes);
                message.write(bytes);
            }
            Self::MatchError => MATCH_ERROR.write(bytes),
            Self::Arrived { request, at, side } => match side {
                Side::Sender { received } => {
                    (ARRIVED_AT_SENDER, request.number(), (at, received)).write(bytes)
                }
                Side::Receiver { detached } => (ARRIVED, request.number(), (at, detached)).write(bytes),
            },
            Self::EagerArrived { id, at } => (EAGER_ARRIVED, id.0.get(), at).write(bytes),
            Self::WorkDone { at, operation } => {
                (WORK_DONE, at, operation.map(|OperationIndex(index)| index)).write(bytes);
            }
            Self::FailedPolls { tests, probes } => (FAILED_POLLS, tests, probes).write(bytes),
            Self::PathFragment { from, fragment } => {
                (PATH_FRAGMENT, from).write(bytes);
                bytes.extend_from_slice(&fragment);
            }
        }
        bytes.resize(end, 0);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (mut token, rest) = bytes.split_at_checked(Self::SIZE)?;
        *bytes = rest;
        let bytes = &mut token;
        let kind = u8::read(bytes)?;
        Some(match kind {
            TO_PORT..=TO_TIME => {
                let number = u32::read(bytes)?;
                let queue = match kind {
                    TO_PORT => ReceiveQueue::Port(PortId::new(number)),
                    TO_COLLECTIVE => ReceiveQueue::Collective(number),
                    TO_MAILBOX => ReceiveQueue::Mailbox(number),
                    _ => ReceiveQueue::Time(number),
                };
                Self::Message { queue, message: Wire::read(bytes)? }
            }
            MATCH_ERROR => Self::MatchError,
            ARRIVED | ARRIVED_AT_SENDER => {
                let request = RequestId::from_number(Wire::read(bytes)?)?;
                let at = Wire::read(bytes)?;
                let side = match kind {
                    ARRIVED => Side::Receiver { detached: Wire::read(bytes)? },
                    _ => Side::Sender { received: Wire::read(bytes)? },
                };
                Self::Arrived { request, at, side }
            }
            EAGER_ARRIVED => Self::EagerArrived {
                id: EagerMessageId(NonZeroU32::new(Wire::read(bytes)?)?),
                at: Wire::read(bytes)?,
            },
            WORK_DONE => Self::WorkDone {
                at: Wire::read(bytes)?,
                operation: Option::<u32>::read(bytes)?.map(OperationIndex),
            },
            FAILED_POLLS => Self::FailedPolls { tests: Wire::read(bytes)?, probes: Wire::read(bytes)? },
            PATH_FRAGMENT => {
                let from = Wire::read(bytes)?;
                Self::PathFragment { from, fragment: *bytes.first_chunk()? }
            }
            _ => return None,
        })
    }
}

impl Wire for Message {
    const SIZE: usize = 2 * u64::SIZE + 4 * u32::SIZE;

    #[inline]
    fn write(&self, bytes: &mut Vec<u8>) {
        let Self { posted, bytes: size, tag, communicator, reply, round } = *self;
        (posted, size).write(bytes);
        (tag, communicator.get()).write(bytes);
        (reply.map_or(0, RequestId::number), round).write(bytes);
    }

    #[inline]
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            posted: Wire::read(bytes)?,
            bytes: Wire::read(bytes)?,
            tag: Wire::read(bytes)?,
            communicator: CommId::new(Wire::read(bytes)?),
            reply: match Wire::read(bytes)? {
                0 => None,
                number => Some(RequestId::from_number(number)?),
            },
            round: Wire::read(bytes)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use pdes_core::{Bytes, Rank, SimTime};

    use super::*;
    use crate::request::Requests;

    fn message(queue: ReceiveQueue, reply: Option<RequestId>) -> Token {
        let message = Message {
            posted: SimTime::from_picos(u64::MAX - 1),
            bytes: Bytes::new(1 << 48),
            tag: u32::MAX,
            communicator: CommId::new(7),
            reply,
            round: 3,
        };
        Token::Message { queue, message }
    }

    #[test]
    fn tokens_survive_a_round_trip() {
        let mut requests = Requests::new(3);
        let (of_program, of_operation) = (requests.blocking_receive(), requests.add_part(OperationIndex(2)));
        let at = SimTime::from_picos(12);
        let tokens = [
            message(ReceiveQueue::Port(PortId::new(5)), Some(of_program)),
            message(ReceiveQueue::Collective(6), Some(of_operation)),
            message(ReceiveQueue::Mailbox(7), None),
            message(ReceiveQueue::Time(8), None),
            Token::MatchError,
            Token::Arrived {
                request: of_operation,
                at,
                side: Side::Receiver { detached: Some(Bytes::new(9)) },
            },
            Token::Arrived { request: of_program, at, side: Side::Receiver { detached: None } },
            Token::Arrived { request: of_program, at, side: Side::Sender { received: SimTime::MAX } },
            Token::EagerArrived { id: EagerMessageId(NonZeroU32::MAX), at },
            Token::WorkDone { at, operation: Some(OperationIndex(0)) },
            Token::WorkDone { at, operation: None },
            Token::FailedPolls { tests: 10, probes: u64::MAX },
            Token::PathFragment { from: Rank::new(9), fragment: [7; 32] },
        ];
        for token in tokens {
            let mut bytes = Vec::new();
            token.write(&mut bytes);
            assert_eq!(bytes.len(), Token::SIZE);
            assert_eq!(Token::read(&mut &bytes[1..]), None, "too short");
            bytes.push(77);
            let rest = &mut bytes.as_slice();
            assert_eq!(Token::read(rest), Some(token));
            assert_eq!(*rest, [77]);
        }
    }

    proptest::proptest! {
        /// Any bytes are either refused, or read as a token that survives a round trip.
        #[test]
        fn any_bytes_are_a_token_or_refused(
            kind in 0_u8..12,
            rest in proptest::collection::vec(proptest::num::u8::ANY, Token::SIZE - 1),
        ) {
            let bytes: Vec<u8> = [kind].into_iter().chain(rest).collect();
            if let Some(token) = Token::read(&mut bytes.as_slice()) {
                let mut written = Vec::new();
                token.write(&mut written);
                proptest::prop_assert_eq!(Token::read(&mut written.as_slice()), Some(token));
            }
        }
    }
}
