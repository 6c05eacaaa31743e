//! Wire format of completions, for transport between processes of the operating system.
//!
//! The first byte is the kind; the rest of the fixed size is the payload, padded with zeros.

use std::num::NonZeroU32;

use pdes_core::{Bytes, Rank, SimTime, Wire};

use super::{Notice, Wait};
use crate::request::{OperationIndex, RequestId};
use crate::token::Flight;

const RANK: u8 = 0;
const DETACHED: u8 = 1;
const RENDEZVOUS: u8 = 2;
const EAGER: u8 = 3;

impl Wire for Notice {
    const SIZE: usize = u8::SIZE + 2 * Rank::SIZE + 2 * u32::SIZE + SimTime::SIZE;

    #[inline]
    fn write(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len() + Self::SIZE;
        match self.0 {
            Wait::Rank { me, operation } => {
                (RANK, me, operation.map(|OperationIndex(index)| index)).write(bytes);
            }
            Wait::Detached { receiver, receive, bytes: size } => {
                (DETACHED, receiver, (receive.number(), size)).write(bytes);
            }
            Wait::Rendezvous { receiver, receive, posted, sender, send } => {
                (RENDEZVOUS, receiver, receive.number()).write(bytes);
                (posted, sender, send.number()).write(bytes);
            }
            Wait::Eager { receiver, flight } => (EAGER, receiver, flight.0.get()).write(bytes),
        }
        bytes.resize(end, 0);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (mut notice, rest) = bytes.split_at_checked(Self::SIZE)?;
        *bytes = rest;
        let bytes = &mut notice;
        let (kind, rank): (u8, Rank) = Wire::read(bytes)?;
        let request = |bytes: &mut &[u8]| RequestId::from_number(Wire::read(bytes)?);
        Some(Self(match kind {
            RANK => Wait::Rank { me: rank, operation: Option::<u32>::read(bytes)?.map(OperationIndex) },
            DETACHED => {
                Wait::Detached { receiver: rank, receive: request(bytes)?, bytes: Bytes::read(bytes)? }
            }
            RENDEZVOUS => Wait::Rendezvous {
                receiver: rank,
                receive: request(bytes)?,
                posted: Wire::read(bytes)?,
                sender: Wire::read(bytes)?,
                send: request(bytes)?,
            },
            EAGER => Wait::Eager { receiver: rank, flight: Flight(NonZeroU32::new(Wire::read(bytes)?)?) },
            _ => return None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Requests;

    #[test]
    fn notices_come_back() {
        let mut requests = Requests::new(3);
        let (of_program, of_operation) = (requests.receive(), requests.add_part(OperationIndex(2)));
        let [one, other] = [7, u32::MAX].map(Rank::new);
        let notices = [
            Notice::rank(one, None),
            Notice::rank(other, Some(OperationIndex(u32::MAX))),
            Notice::detached(one, of_operation, Bytes::new(u64::MAX)),
            Notice::rendezvous((one, of_program), SimTime::MAX, (other, of_operation)),
            Notice::eager(other, Flight(NonZeroU32::MAX)),
        ];
        for notice in notices {
            let mut bytes = Vec::new();
            notice.write(&mut bytes);
            assert_eq!(bytes.len(), Notice::SIZE);
            assert_eq!(Notice::read(&mut &bytes[1..]), None, "too short");
            assert_eq!(Notice::read(&mut bytes.as_slice()), Some(notice));
        }
    }

    proptest::proptest! {
        /// Any bytes are either refused, or read as a completion that survives a round trip.
        #[test]
        fn any_bytes_are_a_notice_or_refused(
            kind in 0_u8..5,
            rest in proptest::collection::vec(proptest::num::u8::ANY, Notice::SIZE - 1),
        ) {
            let bytes: Vec<u8> = [kind].into_iter().chain(rest).collect();
            if let Some(notice) = Notice::read(&mut bytes.as_slice()) {
                let mut written = Vec::new();
                notice.write(&mut written);
                proptest::prop_assert_eq!(Notice::read(&mut written.as_slice()), Some(notice));
            }
        }
    }
}
