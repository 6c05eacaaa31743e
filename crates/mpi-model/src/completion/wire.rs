//! Wire format of completions, for transport between processes of the operating system.
//!
//! The first byte is the kind; the rest of the fixed size is the payload, padded with zeros.

use std::num::NonZeroU32;

use pdes_core::{Bytes, Rank, SimTime, Wire};

use super::{Completion, Waiters};
use crate::request::{OperationIndex, RequestId};
use crate::token::EagerMessageId;

const WORK: u8 = 0;
const DETACHED: u8 = 1;
const RENDEZVOUS: u8 = 2;
const EAGER: u8 = 3;

impl Wire for Completion {
    const SIZE: usize = u8::SIZE + 2 * Rank::SIZE + 2 * u32::SIZE + SimTime::SIZE;

    #[inline]
    fn write(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len() + Self::SIZE;
        match self.0 {
            Waiters::Work { me, operation } => {
                (WORK, me, operation.map(|OperationIndex(index)| index)).write(bytes);
            }
            Waiters::Detached { receiver, receive, bytes: size } => {
                (DETACHED, receiver, (receive.number(), size)).write(bytes);
            }
            Waiters::Rendezvous { receiver, receive, posted, sender, send } => {
                (RENDEZVOUS, receiver, receive.number()).write(bytes);
                (posted, sender, send.number()).write(bytes);
            }
            Waiters::Eager { receiver, id } => (EAGER, receiver, id.0.get()).write(bytes),
        }
        bytes.resize(end, 0);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (mut completion, rest) = bytes.split_at_checked(Self::SIZE)?;
        *bytes = rest;
        let bytes = &mut completion;
        let (kind, rank): (u8, Rank) = Wire::read(bytes)?;
        let request = |bytes: &mut &[u8]| RequestId::from_number(Wire::read(bytes)?);
        Some(Self(match kind {
            WORK => Waiters::Work { me: rank, operation: Option::<u32>::read(bytes)?.map(OperationIndex) },
            DETACHED => {
                Waiters::Detached { receiver: rank, receive: request(bytes)?, bytes: Bytes::read(bytes)? }
            }
            RENDEZVOUS => Waiters::Rendezvous {
                receiver: rank,
                receive: request(bytes)?,
                posted: Wire::read(bytes)?,
                sender: Wire::read(bytes)?,
                send: request(bytes)?,
            },
            EAGER => {
                Waiters::Eager { receiver: rank, id: EagerMessageId(NonZeroU32::new(Wire::read(bytes)?)?) }
            }
            _ => return None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Requests;

    #[test]
    fn completions_survive_a_round_trip() {
        let mut requests = Requests::new(3);
        let (of_program, of_operation) = (requests.blocking_receive(), requests.add_part(OperationIndex(2)));
        let [one, other] = [7, u32::MAX].map(Rank::new);
        let completions = [
            Completion::of_work(one, None),
            Completion::of_work(other, Some(OperationIndex(u32::MAX))),
            Completion::detached(one, of_operation, Bytes::new(u64::MAX)),
            Completion::rendezvous((one, of_program), SimTime::MAX, (other, of_operation)),
            Completion::eager(other, EagerMessageId(NonZeroU32::MAX)),
        ];
        for completion in completions {
            let mut bytes = Vec::new();
            completion.write(&mut bytes);
            assert_eq!(bytes.len(), Completion::SIZE);
            assert_eq!(Completion::read(&mut &bytes[1..]), None, "too short");
            assert_eq!(Completion::read(&mut bytes.as_slice()), Some(completion));
        }
    }

    proptest::proptest! {
        /// Any bytes are either refused, or read as a completion that survives a round trip.
        #[test]
        fn any_bytes_are_a_completion_or_refused(
            kind in 0_u8..5,
            rest in proptest::collection::vec(proptest::num::u8::ANY, Completion::SIZE - 1),
        ) {
            let bytes: Vec<u8> = [kind].into_iter().chain(rest).collect();
            if let Some(completion) = Completion::read(&mut bytes.as_slice()) {
                let mut written = Vec::new();
                completion.write(&mut written);
                proptest::prop_assert_eq!(Completion::read(&mut written.as_slice()), Some(completion));
            }
        }
    }
}
