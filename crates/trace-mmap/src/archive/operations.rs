//! The collective operations of a rank, with what all ranks of the communicator must agree on.

use pdes_core::{Bytes, Rank};
use xxhash_rust::xxh3::xxh3_64;

use crate::action::{Action, CollectiveId};
use crate::call::{Call, FileName};
use crate::collective::Collective;
use crate::communicator::CommIdx;
use crate::datatype::Datatype;
use crate::record::{CALL, COLLECTIVE, Record};
use crate::side_tables::SideTables;
use crate::trace::RankTrace;

/// A collective operation of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation<'a> {
    pub(super) on: CommIdx,
    pub(super) name: &'static str,
    arguments: Arguments<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Arguments<'a> {
    None,
    Collective(CollectiveId, &'a Collective),
    Neighbors { to: &'a [(u32, Bytes)], from: &'a [(u32, Bytes)] },
    File(&'a FileName),
}

/// The amount \[B\] on which all ranks must agree.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Amount {
    None,
    Bytes(u64),
    /// One for each rank of the communicator.
    Vector(Vec<u64>),
}

/// A part of an operation that goes from one rank of the communicator to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// A part of an operation, as one of both sides has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) part: Part,
    pub(super) is_send: bool,
    pub(super) bytes: u64,
}

impl<'a> Operation<'a> {
    /// Finds the operation of a record.
    pub(super) fn of_record(record: Record, side: &'a SideTables) -> Option<Self> {
        match record.kind() {
            COLLECTIVE => {
                let operation = side.collectives.get(record.index() as usize)?;
                Some(Self::on_world(CollectiveId::new(record.index()), operation))
            }
            CALL => Self::of_call(side.calls.get(record.index() as usize)?, side),
            _ => None,
        }
    }

    fn on_world(id: CollectiveId, operation: &'a Collective) -> Self {
        let arguments = Arguments::Collective(id, operation);
        Self { on: CommIdx::WORLD, name: operation.name(), arguments }
    }

    fn of_call(call: &'a Call, side: &'a SideTables) -> Option<Self> {
        let named = |on, arguments| Some(Self { on, name: call.name(), arguments });
        match call {
            Call::Collective { operation: id, communicator, slot } => {
                let operation = side.collective(*id)?;
                let name = slot.map_or(operation.name(), |_| operation.nonblocking_name());
                Some(Self { on: *communicator, name, arguments: Arguments::Collective(*id, operation) })
            }
            Call::NeighborAlltoall { communicator, to, from, .. } => {
                named(*communicator, Arguments::Neighbors { to, from })
            }
            Call::NewCommunicator { kind, parent, new } => {
                named(kind.collective_on(*parent, *new)?, Arguments::None)
            }
            Call::File { communicator, file, call, .. } if call.is_collective() => {
                named(*communicator, Arguments::File(file))
            }
            Call::SetView { communicator, file, .. } => named(*communicator, Arguments::File(file)),
            Call::Window { communicator, call, .. } if call.is_collective() => {
                named(*communicator, Arguments::None)
            }
            _ => None,
        }
    }

    /// Returns the arguments of an operation other than on files or neighbours.
    pub(super) fn collective(&self) -> Option<(CollectiveId, &'a Collective)> {
        if let Arguments::Collective(id, operation) = self.arguments { Some((id, operation)) } else { None }
    }

    fn root(&self) -> Option<Rank> {
        self.collective().and_then(|(_, operation)| operation.root())
    }

    fn file(&self) -> Option<&'a FileName> {
        if let Arguments::File(name) = self.arguments { Some(name) } else { None }
    }

    /// Returns the amount on which the rank `me` of the communicator agrees with all others.
    fn amount(&self, me: u32) -> Amount {
        let bytes =
            |count: u64, datatype: &Datatype| Amount::Bytes(count.saturating_mul(datatype.size().get()));
        let vector = |counts: &[u64], datatype: &Datatype| {
            let size = datatype.size().get();
            Amount::Vector(counts.iter().map(|count| count.saturating_mul(size)).collect())
        };
        let Some((_, operation)) = self.collective() else { return Amount::None };
        match operation {
            Collective::Bcast { count, datatype, .. }
            | Collective::Reduce { count, datatype, .. }
            | Collective::Allreduce { count, datatype, .. }
            | Collective::Scan { count, datatype, .. }
            | Collective::Exscan { count, datatype, .. } => bytes(*count, datatype),
            Collective::Gather { recv_count, recv_type, root, .. } if root.get() == me => {
                bytes(*recv_count, recv_type)
            }
            Collective::Scatter { recv_count, recv_type, root, .. } if root.get() != me => {
                bytes(*recv_count, recv_type)
            }
            Collective::Gather { send_count, send_type, .. }
            | Collective::Scatter { send_count, send_type, .. }
            | Collective::Alltoall { send_count, send_type, .. }
            | Collective::Allgather { send_count, send_type, .. } => bytes(*send_count, send_type),
            Collective::ReduceScatter { recv_counts, datatype, .. } => vector(recv_counts, datatype),
            Collective::Allgatherv { recv_counts, recv_type, .. } => vector(recv_counts, recv_type),
            Collective::Barrier
            | Collective::Gatherv { .. }
            | Collective::Scatterv { .. }
            | Collective::Alltoallv { .. } => Amount::None,
        }
    }

    /// Calls a function with the parts of the operation about which two ranks, or the two buffers of one, must agree beyond its
    /// [signature](Self::signature), as rank `me` of the communicator has them.
    ///
    /// A root that sends nothing to itself does so in place.
    pub(super) fn sides(&self, me: u32, mut f: impl FnMut(Side)) {
        let mut side = |from, to, is_send, bytes| f(Side { part: Part { from, to }, is_send, bytes });
        if let Arguments::Neighbors { to, from } = self.arguments {
            to.iter().for_each(|(peer, bytes)| side(me, *peer, true, bytes.get()));
            from.iter().for_each(|(peer, bytes)| side(*peer, me, false, bytes.get()));
            return;
        }
        let size = |datatype: &Datatype| datatype.size().get();
        match self.collective().map(|(_, operation)| operation) {
            Some(
                Collective::Alltoall { send_count, recv_count, send_type, recv_type }
                | Collective::Allgather { send_count, recv_count, send_type, recv_type },
            ) => {
                side(me, me, true, send_count * size(send_type));
                side(me, me, false, recv_count * size(recv_type));
            }
            Some(
                Collective::Gather { send_count, recv_count, root, send_type, recv_type }
                | Collective::Scatter { send_count, recv_count, root, send_type, recv_type },
            ) if root.get() == me && *send_count > 0 && *recv_count > 0 => {
                side(me, me, true, send_count * size(send_type));
                side(me, me, false, recv_count * size(recv_type));
            }
            Some(Collective::Allgatherv { send_count, recv_counts, send_type, recv_type }) => {
                side(me, me, true, send_count * size(send_type));
                side(me, me, false, recv_counts.get(me as usize).unwrap_or(&0) * size(recv_type));
            }
            Some(Collective::Gatherv { send_count, recv_counts, root, send_type, recv_type }) => {
                let (root, is_in_place) = (root.get(), root.get() == me && *send_count == 0);
                side(me, root, true, send_count * size(send_type));
                let counts =
                    (0..).zip(recv_counts).filter(|(from, _)| root == me && !(is_in_place && *from == me));
                counts.for_each(|(from, count)| side(from, me, false, count * size(recv_type)));
            }
            Some(Collective::Scatterv { send_counts, recv_count, root, send_type, recv_type }) => {
                let (root, is_in_place) = (root.get(), root.get() == me && *recv_count == 0);
                side(root, me, false, recv_count * size(recv_type));
                let counts =
                    (0..).zip(send_counts).filter(|(to, _)| root == me && !(is_in_place && *to == me));
                counts.for_each(|(to, count)| side(me, to, true, count * size(send_type)));
            }
            Some(Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type }) => {
                (0..).zip(send_counts).for_each(|(to, count)| side(me, to, true, count * size(send_type)));
                (0..)
                    .zip(recv_counts)
                    .for_each(|(from, count)| side(from, me, false, count * size(recv_type)));
            }
            _ => {}
        }
    }

    /// Returns a hash of what all ranks of the communicator must have in common, as its rank `me` has it.
    pub(super) fn signature(&self, me: u32) -> u64 {
        let mut bytes = self.name.as_bytes().to_vec();
        let mut push = |word: u64| bytes.extend(word.to_le_bytes());
        push(self.root().map_or(u64::MAX, |root| root.get().into()));
        match self.amount(me) {
            Amount::None => {}
            Amount::Bytes(amount) => push(amount),
            Amount::Vector(amounts) => amounts.into_iter().for_each(push),
        }
        bytes.extend(self.file().map_or("", FileName::as_str).as_bytes());
        xxh3_64(&bytes)
    }

    /// Describes two operations on one communicator by what differs, each with its rank there; `None` if they agree.
    pub(super) fn difference((one, me): (&Self, u32), (other, you): (&Self, u32)) -> Option<[String; 2]> {
        if one.name != other.name {
            return Some([one.name.to_owned(), other.name.to_owned()]);
        }
        let mut texts = [one.name.to_owned(), other.name.to_owned()];
        let mut add =
            |parts: [String; 2]| texts.iter_mut().zip(parts).for_each(|(text, part)| *text += &part);
        if one.root() != other.root() {
            add([one, other].map(|operation| {
                operation.root().map_or(String::new(), |root| format!(" with root {root}"))
            }));
        }
        match (one.amount(me), other.amount(you)) {
            (Amount::Bytes(left), Amount::Bytes(right)) if left != right => {
                add([left, right].map(|bytes| format!(" of {bytes} B")));
            }
            (Amount::Vector(left), Amount::Vector(right)) => {
                let mut pairs = left.iter().zip(&right).enumerate();
                if let Some((rank, (left, right))) = pairs.find(|(_, (left, right))| left != right) {
                    add([left, right]
                        .map(|bytes| format!(" of {bytes} B for rank {rank} of the communicator")));
                }
            }
            _ => {}
        }
        if one.file() != other.file() {
            add([one, other]
                .map(|operation| format!(" of {}", operation.file().map_or("", FileName::as_str))));
        }
        (texts[0] != texts[1]).then_some(texts)
    }
}

/// Returns the operations of a rank on a communicator, each with the index of its action.
pub(super) fn operations(rank: &RankTrace, on: CommIdx) -> impl Iterator<Item = (u64, Operation<'_>)> {
    let operation = |action| match action {
        Action::Collective(id) => Some(Operation::on_world(id, rank.collective(id))),
        Action::Call(id) => Operation::of_call(rank.call(id), &rank.side_tables),
        _ => None,
    };
    let all = (0..).zip(rank.cursor()).filter_map(move |(index, action)| Some((index, operation(action)?)));
    all.filter(move |(_, operation)| operation.on == on)
}
