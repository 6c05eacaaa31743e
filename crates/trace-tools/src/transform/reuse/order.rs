//! Checks that operations on several communicators do the same on one.

use std::hash::BuildHasher;

use pdes_core::Rank;
use rustc_hash::{FxBuildHasher, FxHashMap};
use trace_mmap::{CallOp, CommId, Op, Tag};

use super::creations::Equal;
use crate::transform::communicators::joint;
use crate::transform::messages::{Endpoints, Event, Received, received_from};
use crate::transform::{Program, Refusal};

/// A hash of communicators in the order of their operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sequence(u64);

impl Sequence {
    fn push(&mut self, id: CommId) {
        self.0 = FxBuildHasher.hash_one((self.0, id.get()));
    }
}

/// A stream of messages: source, destination, tag and the communicator that is used for all.
type Channel = (Rank, Rank, Tag, CommId);

/// Checks that messages and collective operations on equal communicators match as before if they are all on the first one.
///
/// # Errors
/// Fails at receives that could take messages of other communicators, and at different orders on two ranks.
pub(super) fn check_order(program: &Program<'_>, equal: &Equal) -> Result<(), Refusal> {
    let mut sent: FxHashMap<Channel, Sequence> = FxHashMap::default();
    let mut received: FxHashMap<Channel, Sequence> = FxHashMap::default();
    let mut together: FxHashMap<CommId, (Rank, Sequence)> = FxHashMap::default();
    let is_shared = |id: CommId| equal.count(equal.first(id)) > 1;
    for rank in program.ranks() {
        let mut endpoints = Endpoints::default();
        let mut own: FxHashMap<CommId, Sequence> = FxHashMap::default();
        for step in program.steps(rank) {
            let of_all = joint(&step.op).filter(|id| is_shared(*id));
            of_all.into_iter().for_each(|id| own.entry(equal.first(id)).or_default().push(id));
            let mut is_open = false;
            let is_any = |one: &Received| is_shared(one.communicator) && one.named().is_none();
            if let Op::Call(CallOp::Iprobe { from, found: false }) = &step.op {
                is_open |= received_from(from).as_ref().is_some_and(is_any);
            }
            endpoints.events(&step.op, |event| match event {
                Event::Send(message, _) if is_shared(message.communicator) => {
                    let first = equal.first(message.communicator);
                    let channel = (rank, message.to, message.tag, first);
                    sent.entry(channel).or_default().push(message.communicator);
                }
                Event::Receive(one, _) => match one.named() {
                    Some((from, tag, id)) if is_shared(id) => {
                        received.entry((from, rank, tag, equal.first(id))).or_default().push(id);
                    }
                    _ => is_open |= is_any(&one),
                },
                Event::Probe(one) => is_open |= is_any(&one),
                Event::Send(..) | Event::Cancel => {}
            });
            if is_open {
                let reason = "a receive or a probe of any tag or source: on one communicator it could find messages of another one; select creations of others";
                return Err(Refusal::at(rank, step.action, reason));
            }
        }
        for (id, sequence) in own {
            let (first, expected) = *together.entry(id).or_insert((rank, sequence));
            if sequence != expected {
                let reason = format!(
                    "its collective operations on communicators equal to number {id} are in another order than those of rank {first}: on one communicator they would not match"
                );
                return Err(Refusal::Place { rank, action: None, reason });
            }
        }
    }
    let differs = |channel: &&Channel| sent.get(*channel) != received.get(*channel);
    match sent.keys().chain(received.keys()).filter(differs).min() {
        None => Ok(()),
        Some((from, to, tag, id)) => {
            let reason = format!(
                "it receives messages of rank {from} with tag {tag} in another order of communicators than they are sent: on communicator {id} alone they would not match"
            );
            Err(Refusal::Place { rank: *to, action: None, reason })
        }
    }
}
