//! Wire format of tokens, for transport between processes of the operating system.
//!
//! The first byte is the kind, for messages together with the destination queue; the rest of the fixed size is the payload,
//! padded with zeros. Absent numbers that are never zero are written as zero.

use std::num::NonZeroU32;

use pdes_core::Wire;
use trace_mmap::{CommId, PortId};

use super::{Flight, Lane, Message, Party, Token};
use crate::request::{OperationIndex, RequestId};

const TO_PORT: u8 = 0;
const TO_COLLECTIVE: u8 = 1;
const TO_MAILBOX: u8 = 2;
const TO_TIME: u8 = 3;
const CLASH: u8 = 4;
const ARRIVED: u8 = 5;
const LANDED: u8 = 6;
const RESUME: u8 = 7;
const LOOKS: u8 = 8;
const ARRIVED_AT_LAST: u8 = 9;
const PIECE: u8 = 10;

impl Wire for Token {
    const SIZE: usize = u8::SIZE + u32::SIZE + Message::SIZE;

    #[inline]
    fn write(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len() + Self::SIZE;
        match *self {
            Self::Message { lane, message } => {
                match lane {
                    Lane::Port(port) => (TO_PORT, port.get()),
                    Lane::Collective(from) => (TO_COLLECTIVE, from),
                    Lane::Mailbox(from) => (TO_MAILBOX, from),
                    Lane::Time(from) => (TO_TIME, from),
                }
                .write(bytes);
                message.write(bytes);
            }
            Self::Clash => CLASH.write(bytes),
            Self::Arrived { request, at, party } => match party {
                Party::Sender { received } => {
                    (ARRIVED_AT_LAST, request.number(), (at, received)).write(bytes)
                }
                Party::Receiver { detached } => (ARRIVED, request.number(), (at, detached)).write(bytes),
            },
            Self::Landed { flight, at } => (LANDED, flight.0.get(), at).write(bytes),
            Self::Resume { at, operation } => {
                (RESUME, at, operation.map(|OperationIndex(index)| index)).write(bytes);
            }
            Self::Looks { tests, probes } => (LOOKS, tests, probes).write(bytes),
            Self::Piece { from, piece } => {
                (PIECE, from).write(bytes);
                bytes.extend_from_slice(&piece);
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
                let place = u32::read(bytes)?;
                let lane = match kind {
                    TO_PORT => Lane::Port(PortId::new(place)),
                    TO_COLLECTIVE => Lane::Collective(place),
                    TO_MAILBOX => Lane::Mailbox(place),
                    _ => Lane::Time(place),
                };
                Self::Message { lane, message: Wire::read(bytes)? }
            }
            CLASH => Self::Clash,
            ARRIVED | ARRIVED_AT_LAST => {
                let request = RequestId::from_number(Wire::read(bytes)?)?;
                let at = Wire::read(bytes)?;
                let party = match kind {
                    ARRIVED => Party::Receiver { detached: Wire::read(bytes)? },
                    _ => Party::Sender { received: Wire::read(bytes)? },
                };
                Self::Arrived { request, at, party }
            }
            LANDED => {
                Self::Landed { flight: Flight(NonZeroU32::new(Wire::read(bytes)?)?), at: Wire::read(bytes)? }
            }
            RESUME => Self::Resume {
                at: Wire::read(bytes)?,
                operation: Option::<u32>::read(bytes)?.map(OperationIndex),
            },
            LOOKS => Self::Looks { tests: Wire::read(bytes)?, probes: Wire::read(bytes)? },
            PIECE => {
                let from = Wire::read(bytes)?;
                Self::Piece { from, piece: *bytes.first_chunk()? }
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

    fn message(lane: Lane, reply: Option<RequestId>) -> Token {
        let message = Message {
            posted: SimTime::from_picos(u64::MAX - 1),
            bytes: Bytes::new(1 << 48),
            tag: u32::MAX,
            communicator: CommId::new(7),
            reply,
            round: 3,
        };
        Token::Message { lane, message }
    }

    #[test]
    fn tokens_come_back() {
        let mut requests = Requests::new(3);
        let (of_program, of_operation) = (requests.receive(), requests.add_part(OperationIndex(2)));
        let at = SimTime::from_picos(12);
        let tokens = [
            message(Lane::Port(PortId::new(5)), Some(of_program)),
            message(Lane::Collective(6), Some(of_operation)),
            message(Lane::Mailbox(7), None),
            message(Lane::Time(8), None),
            Token::Clash,
            Token::Arrived {
                request: of_operation,
                at,
                party: Party::Receiver { detached: Some(Bytes::new(9)) },
            },
            Token::Arrived { request: of_program, at, party: Party::Receiver { detached: None } },
            Token::Arrived { request: of_program, at, party: Party::Sender { received: SimTime::MAX } },
            Token::Landed { flight: Flight(NonZeroU32::MAX), at },
            Token::Resume { at, operation: Some(OperationIndex(0)) },
            Token::Resume { at, operation: None },
            Token::Looks { tests: 10, probes: u64::MAX },
            Token::Piece { from: Rank::new(9), piece: [7; 32] },
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
