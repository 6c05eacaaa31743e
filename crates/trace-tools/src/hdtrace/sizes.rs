//! Sizes that a call does not have, from the calls of the other ranks: of receives, and of vectors of counts.

use std::path::PathBuf;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::TraceError;
use trace_mmap::table::CollectiveKind;

use super::element::{Element, Elements};
use super::{HdtraceError, Names};
use crate::timed::{Function, Handle};

/// Sizes from the calls of all ranks.
#[derive(Debug)]
pub(super) struct Sizes {
    /// Size of the largest message to a rank: from a rank with a tag on a communicator.
    messages: FxHashMap<(Handle, Rank, Rank, i64), u64>,
    /// The largest one to a rank on a communicator.
    largest: FxHashMap<(Handle, Rank), u64>,
    /// The calls of each member with counts for each rank, by communicators and positions.
    vectors: FxHashMap<Handle, Vec<Vec<Vector>>>,
    /// True if a send has the peer -2: `MPI_PROC_NULL` of Open MPI, whose `MPI_ANY_SOURCE` is -1. In MPICH it is the other way round.
    pub(super) is_open_mpi: bool,
}

/// The part of a rank in a collective operation with counts for each rank.
#[derive(Debug)]
struct Vector {
    kind: CollectiveKind,
    /// What the rank sends to each rank, or to the root; what it receives of `MPI_Scatterv`.
    bytes: Vec<u64>,
}

/// Returns whether a collective operation has counts for each rank.
pub(super) fn has_vector(kind: CollectiveKind) -> bool {
    use CollectiveKind::{Allgatherv, Alltoallv, Gatherv, Scatterv};
    matches!(kind, Allgatherv | Alltoallv | Gatherv | Scatterv)
}

/// Returns the size of the message that a call sends \[B\].
pub(super) fn sent(call: &Element) -> Result<u64, HdtraceError> {
    call.number(if call.name == "Sendrecv_replace" { "sendSize" } else { "size" })
}

/// Returns the sizes of the elements of a vector \[B\].
pub(super) fn elements(call: &Element) -> Result<Vec<u64>, HdtraceError> {
    call.children.iter().map(|child| child.number("size")).collect()
}

impl Sizes {
    /// Reads the calls of all ranks.
    pub(super) fn read(files: &[PathBuf], names: &Names) -> Result<Self, TraceError> {
        let mut sizes = Self {
            messages: FxHashMap::default(),
            largest: FxHashMap::default(),
            vectors: FxHashMap::default(),
            is_open_mpi: false,
        };
        for (rank, file) in (0..).map(Rank::new).zip(files) {
            let mut calls = Elements::open(file)?;
            while let Some((call, number)) = calls.next_call()? {
                sizes.add(rank, &call, names).map_err(|error| error.locate(file, number))?;
            }
        }
        Ok(sizes)
    }

    fn add(&mut self, rank: Rank, call: &Element, names: &Names) -> Result<(), HdtraceError> {
        match Function::of(&format!("MPI_{}", call.name)) {
            Function::Send(_) | Function::Isend(_) | Function::SendRecv => {
                let (to, tag) = (call.signed("toRank")?, call.signed("toTag")?);
                self.is_open_mpi |= to == -2;
                let (handle, _) = communicator(call, names, rank)?;
                if let Ok(to) = u32::try_from(to).map(Rank::new) {
                    let bytes = sent(call)?;
                    let message = self.messages.entry((handle, rank, to, tag)).or_default();
                    *message = bytes.max(*message);
                    let largest = self.largest.entry((handle, to)).or_default();
                    *largest = bytes.max(*largest);
                }
            }
            Function::Collective { kind, .. } if has_vector(kind) => {
                let (handle, position) = communicator(call, names, rank)?;
                let bytes = match kind {
                    CollectiveKind::Alltoallv => elements(call)?,
                    CollectiveKind::Scatterv => vec![call.number("recvSize")?],
                    _ => vec![call.number("size")?],
                };
                let members = names.groups[handle as usize].len() as usize;
                let calls =
                    self.vectors.entry(handle).or_insert_with(|| (0..members).map(|_| Vec::new()).collect());
                calls[position as usize].push(Vector { kind, bytes });
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the size of the largest message that a receive may take \[B\]; negative sources and tags are any.
    pub(super) fn buffer(&self, handle: Handle, from: i64, to: Rank, tag: i64) -> Bytes {
        let exact = u32::try_from(from).ok().filter(|_| tag >= 0).map(Rank::new);
        Bytes::new(match exact {
            Some(from) => self.messages.get(&(handle, from, to, tag)).copied().unwrap_or(0),
            None => self.largest.get(&(handle, to)).copied().unwrap_or(0),
        })
    }

    /// Returns what each member has for a rank of a communicator in a call with counts; `position` is `None` where each has one count.
    pub(super) fn of_members(
        &self,
        call: &Element,
        kind: CollectiveKind,
        handle: Handle,
        round: usize,
        position: Option<u32>,
        names: &Names,
    ) -> Result<Box<[u64]>, HdtraceError> {
        let members = names.groups[handle as usize].members();
        let calls = self.vectors.get(&handle).into_iter().flatten();
        let place = position.map_or(0, |position| position as usize);
        members
            .zip(calls)
            .map(|(rank, calls)| {
                let vector = calls.get(round).filter(|vector| vector.kind == kind);
                let bytes = vector.and_then(|vector| vector.bytes.get(place).copied());
                let call = call.name.clone();
                bytes.ok_or(HdtraceError::Differ { call, round: round + 1, rank })
            })
            .collect()
    }
}

/// Finds the communicator of a call, and the rank in it.
pub(super) fn communicator(call: &Element, names: &Names, rank: Rank) -> Result<(Handle, u32), HdtraceError> {
    let number = call.number("cid")?;
    let unknown = || HdtraceError::UnknownCommunicator { call: call.name.clone(), number };
    names.find(rank, number).ok_or_else(unknown)
}
