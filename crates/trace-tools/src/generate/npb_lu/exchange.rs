//! Messages between neighbours of the process grid.

use pdes_core::{Bytes, Rank};

use crate::generate::program::ProgramBuilder;
use trace_mmap::Tag;

/// Size of a value \[B\].
const DOUBLE: u64 = 8;

/// Tags: the side from which a message arrives.
pub(super) const FROM_SOUTH: Tag = Tag::new(1);
pub(super) const FROM_NORTH: Tag = Tag::new(2);
pub(super) const FROM_EAST: Tag = Tag::new(3);
pub(super) const FROM_WEST: Tag = Tag::new(4);

/// A shift along one dimension (as of `MPI_Cart_shift`): every rank sends to the neighbour on one side and receives from the one on
/// the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shift {
    /// The neighbour from which the rank receives.
    pub(super) from: Option<Rank>,
    /// The neighbour to which the rank sends.
    pub(super) to: Option<Rank>,
    /// The tag.
    pub(super) tag: Tag,
    /// Number of doubles in the message.
    pub(super) values: u64,
}

impl Shift {
    /// Returns the size of the message.
    fn bytes(&self) -> Bytes {
        Bytes::new(DOUBLE * self.values)
    }

    /// Writes a blocking receive.
    pub(super) fn receive(&self, program: &mut ProgramBuilder) {
        if let Some(from) = self.from {
            program.recv(from, self.tag, self.bytes());
        }
    }

    /// Writes a blocking send.
    pub(super) fn send(&self, program: &mut ProgramBuilder) {
        if let Some(to) = self.to {
            program.send(to, self.tag, self.bytes());
        }
    }

    /// Writes a nonblocking receive, a send and a wait; copying into and out of the buffers costs `flops_per_value`.
    pub(super) fn exchange(&self, program: &mut ProgramBuilder, flops_per_value: f64) {
        let copy = flops_per_value * self.values as f64;
        if let Some(from) = self.from {
            program.irecv(from, self.tag, self.bytes());
        }
        if self.to.is_some() {
            program.compute(copy);
        }
        self.send(program);
        if let Some(from) = self.from {
            program.wait(from, self.tag);
            program.compute(copy);
        }
    }

    /// Writes a receive followed by a send: messages form a chain from the far end.
    pub(super) fn relay(&self, program: &mut ProgramBuilder) {
        if let Some(from) = self.from {
            program.irecv(from, self.tag, self.bytes());
            program.wait(from, self.tag);
        }
        self.send(program);
    }
}
