//! Builder of the program of a rank.

use std::sync::Arc;

use pdes_core::{Bytes, Rank};

use trace_mmap::{
    CallOp, Collective, CommId, CommunicatorCall, Datatype, Direction, FileCall, FileName, Group, Item, Op,
    Peer, RecvFrom, Request, Tag,
};

/// A file with the communicator that opens it.
#[derive(Clone, Debug)]
pub(super) struct File {
    name: FileName,
    communicator: CommId,
}

impl File {
    /// Returns a file of all ranks.
    pub(super) fn shared(name: &FileName) -> Self {
        Self { name: name.clone(), communicator: CommId::WORLD }
    }

    /// Returns the file of a rank, opened by a rank whose program has its [own communicator](ProgramBuilder::own_communicator).
    pub(super) fn of_rank(prefix: &FileName, of: Rank, by: Rank) -> Self {
        Self::opened_by(by, &format!("{}.{of}", prefix.as_str()))
    }

    /// Returns one of many files of a rank.
    pub(super) fn numbered(prefix: &FileName, rank: Rank, number: u32) -> Self {
        Self::opened_by(rank, &format!("{}.{rank}.{number}", prefix.as_str()))
    }

    fn opened_by(rank: Rank, name: &str) -> Self {
        let name = FileName::new(name).expect("a name stays one with numbers and dots");
        Self { name, communicator: own_communicator(rank) }
    }
}

/// Returns the communicator of a rank alone: those of different ranks have different numbers.
fn own_communicator(rank: Rank) -> CommId {
    CommId::new(rank.get() + 1)
}

/// Builder of a program.
///
/// Consecutive computation is merged into one action before the next operation, as a tracer records it: between two MPI calls there
/// is at most one computation.
#[derive(Debug, Default)]
pub struct ProgramBuilder {
    items: Vec<Item>,
    pending: f64,
}

impl ProgramBuilder {
    /// Builds a complete program: `MPI_Init`, its body, `MPI_Finalize`.
    pub fn build(body: impl FnOnce(&mut Self)) -> Vec<Item> {
        let mut program = Self::default();
        program.op(Op::Init);
        body(&mut program);
        program.op(Op::Finalize);
        program.finish()
    }

    /// Adds computation \[flop\].
    pub fn compute(&mut self, flops: f64) {
        self.pending += flops;
    }

    /// Adds any operation other than a computation.
    pub fn op(&mut self, op: Op) {
        self.flush();
        self.items.push(Item::Op(op));
    }

    /// Adds `MPI_Send`.
    pub(super) fn send(&mut self, peer: Rank, tag: Tag, bytes: Bytes) {
        self.op(Op::Send { peer: Some(peer), tag, bytes });
    }

    /// Adds `MPI_Isend`.
    pub(super) fn isend(&mut self, peer: Rank, tag: Tag, bytes: Bytes) {
        self.op(Op::Isend { peer: Some(peer), tag, bytes });
    }

    /// Adds `MPI_Recv`.
    pub(super) fn recv(&mut self, peer: Rank, tag: Tag, bytes: Bytes) {
        self.op(Op::Recv { peer: Some(peer), tag: Some(tag), bytes });
    }

    /// Adds `MPI_Recv` from any source.
    pub(super) fn recv_any(&mut self, tag: Tag, bytes: Bytes) {
        let from = RecvFrom::on_world(Peer::Any { recorded: None }, Some(tag));
        self.op(Op::Call(CallOp::Recv { from, bytes }));
    }

    /// Adds `MPI_Irecv`.
    pub(super) fn irecv(&mut self, peer: Rank, tag: Tag, bytes: Bytes) {
        self.op(Op::Irecv { peer: Some(peer), tag: Some(tag), bytes });
    }

    /// Adds `MPI_Wait` for a receive.
    pub(super) fn wait(&mut self, peer: Rank, tag: Tag) {
        self.op(Op::Wait(Request { direction: Direction::Receive, peer: Some(peer), tag: Some(tag) }));
    }

    /// Adds a call on a file.
    pub(super) fn file(&mut self, file: &File, call: FileCall) {
        let File { name, communicator } = file.clone();
        self.op(Op::Call(CallOp::File { communicator, file: name, request: None, call }));
    }

    /// Adds the communicator of the rank alone, for files of its own.
    pub(super) fn own_communicator(&mut self, rank: Rank) {
        let group = Arc::new(Group::new([rank]).expect("one rank is there once"));
        let (kind, parent) = (CommunicatorCall::CreateGroup, CommId::WORLD);
        self.op(Op::Call(CallOp::NewCommunicator {
            kind,
            parent,
            new: Some((own_communicator(rank), group)),
        }));
    }

    /// Adds a barrier.
    pub(super) fn barrier(&mut self) {
        self.op(Op::Collective(Collective::Barrier));
    }

    /// Adds a broadcast from rank 0.
    pub(super) fn bcast(&mut self, count: u64, datatype: Datatype) {
        self.op(Op::Collective(Collective::Bcast { count, root: Rank::new(0), datatype }));
    }

    /// Adds an allreduce of doubles with a computation of `flops` on each rank.
    pub(super) fn allreduce(&mut self, count: u64, flops: f64) {
        self.op(Op::Collective(Collective::Allreduce { count, flops, datatype: Datatype::DOUBLE }));
    }

    /// Adds a loop. A body without calls becomes a single computation; otherwise computation at the end of the body stays in the
    /// body.
    pub fn repeat(&mut self, count: u64, write: impl FnOnce(&mut Self)) {
        let mut body = Self::default();
        write(&mut body);
        if body.items.is_empty() {
            self.compute(count as f64 * body.pending);
        } else if count > 0 {
            self.flush();
            body.flush();
            self.items.push(Item::Loop { count, body: body.items });
        }
    }

    /// Returns the program.
    pub(super) fn finish(mut self) -> Vec<Item> {
        self.flush();
        self.items
    }

    /// Adds the merged computation, rounded to whole flops: amounts are short in text and exact in sums.
    fn flush(&mut self) {
        if self.pending > 0.0 {
            self.items.push(Item::Op(Op::Compute { flops: self.pending.round() }));
        }
        self.pending = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computation_merges_up_to_the_next_call() {
        let mut program = ProgramBuilder::default();
        program.compute(1.0);
        program.repeat(3, |body| body.compute(2.0));
        program.op(Op::Init);
        program.repeat(2, |body| {
            body.op(Op::WaitAll);
            body.compute(5.0);
        });
        program.repeat(0, |body| body.op(Op::WaitAll));
        let compute = |flops| Item::Op(Op::Compute { flops });
        let body = vec![Item::Op(Op::WaitAll), compute(5.0)];
        assert_eq!(program.finish(), [compute(7.0), Item::Op(Op::Init), Item::Loop { count: 2, body }]);
    }
}
