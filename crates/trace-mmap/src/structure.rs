//! Structured programs: what a rank does, with its loops.

mod call;
mod line;

pub use call::{CallOp, Peer, RecvFrom, RequestName, SendTo};
pub use line::TextLine;

use std::slice;

use pdes_core::{Bytes, Rank};

use crate::channel::Tag;
use crate::collective::Collective;

/// One thing that a rank does, by the names of the program: ranks and tags instead of indices.
///
/// A peer that is `None` is `MPI_PROC_NULL`.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Enters MPI.
    Init,
    /// Leaves MPI.
    Finalize,
    /// Makes or asks for a communicator; takes no time.
    Communicator,
    /// The operations that follow stem from this call site.
    Location {
        /// Name of the source file, without white space.
        file: String,
        /// Line in it.
        line: u32,
    },
    /// Computes.
    Compute {
        /// Amount of computation in flop, finite and not negative.
        flops: f64,
    },
    /// Sleeps.
    Sleep {
        /// Length in seconds, finite and not negative.
        seconds: f64,
    },
    /// `MPI_Send`.
    Send {
        /// The destination.
        peer: Option<Rank>,
        /// The tag.
        tag: Tag,
        /// Size of the message, at most 2^48.
        bytes: Bytes,
    },
    /// `MPI_Isend`.
    Isend {
        /// The destination.
        peer: Option<Rank>,
        /// The tag.
        tag: Tag,
        /// Size of the message, at most 2^48.
        bytes: Bytes,
    },
    /// `MPI_Recv`.
    Recv {
        /// The source.
        peer: Option<Rank>,
        /// The tag asked for; `None` takes any.
        tag: Option<Tag>,
        /// Size of the buffer, at most 2^48.
        bytes: Bytes,
    },
    /// `MPI_Irecv`.
    Irecv {
        /// The source.
        peer: Option<Rank>,
        /// The tag asked for; `None` takes any.
        tag: Option<Tag>,
        /// Size of the buffer, at most 2^48.
        bytes: Bytes,
    },
    /// `MPI_Sendrecv`, both with tag 0.
    SendRecv {
        /// The destination.
        to: Option<Rank>,
        /// Size of the message sent, at most 2^48.
        send_bytes: Bytes,
        /// The source.
        from: Option<Rank>,
        /// Size of the buffer, at most 2^48.
        recv_bytes: Bytes,
    },
    /// `MPI_Wait`: completes the oldest pending request of this name.
    Wait(Request),
    /// `MPI_Test`: asks for the oldest pending request of this name, which then ranks behind the others of the name.
    Test(Request),
    /// `MPI_Waitall` on all pending requests of the rank.
    WaitAll,
    /// A collective operation on the world communicator.
    Collective(Collective),
    /// Any other call.
    Call(CallOp),
}

/// Names pending requests. Several of one name are served in the order of their posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Whether it sends or receives.
    pub direction: Direction,
    /// The other end as it was given at the posting; `None` is `MPI_PROC_NULL`, or nothing that matters where the request
    /// receives from any source.
    pub peer: Option<Rank>,
    /// The tag as it was given at the posting; `None` is `MPI_ANY_TAG`.
    pub tag: Option<Tag>,
}

/// Whether a request sends or receives.
///
/// Traces name a request by source, destination and tag. So a rank's own messages to itself share one name in both
/// directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// A request of [`Op::Isend`].
    Send,
    /// A request of [`Op::Irecv`].
    Receive,
    /// A request of [`CallOp::Irecv`] from any source.
    ReceiveAny,
}

/// A part of a structured program.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// One operation.
    Act(Op),
    /// A sequence that is repeated.
    Loop {
        /// How often the body runs; 0 leaves it out.
        count: u64,
        /// The sequence.
        body: Vec<Item>,
    },
}

impl Item {
    /// Counts the operations of a program, loops multiplied out, or returns `None` where they exceed 64 bits.
    ///
    /// Costs as much as the program is long to write down, not to run.
    ///
    /// ```
    /// use trace_mmap::{Item, Op};
    /// let plane = vec![Item::Act(Op::Compute { flops: 1e3 }), Item::Act(Op::WaitAll)];
    /// let step = vec![Item::Loop { count: 1018, body: plane }, Item::Act(Op::Init)];
    /// assert_eq!(Item::count_all(&[Item::Loop { count: 300, body: step }]), Some(300 * (2 * 1018 + 1)));
    /// ```
    pub fn count_all(items: &[Self]) -> Option<u64> {
        items.iter().try_fold(0_u64, |sum, item| sum.checked_add(item.count()?))
    }

    fn count(&self) -> Option<u64> {
        match self {
            Self::Act(_) => Some(1),
            Self::Loop { count: 0, .. } => Some(0),
            Self::Loop { count, body } => Self::count_all(body)?.checked_mul(*count),
        }
    }
}

/// Yields the operations of a program in their order, loops repeated.
///
/// ```
/// use trace_mmap::{Item, Op, flatten};
/// let program = [Item::Act(Op::Init), Item::Loop { count: 2, body: vec![Item::Act(Op::WaitAll)] }];
/// let ops: Vec<&Op> = flatten(&program).collect();
/// assert_eq!(ops, [&Op::Init, &Op::WaitAll, &Op::WaitAll]);
/// ```
pub fn flatten(items: &[Item]) -> impl Iterator<Item = &Op> {
    Flatten { stack: vec![Level { body: items, rest: items.iter(), left: 0 }] }
}

struct Flatten<'a> {
    stack: Vec<Level<'a>>,
}

/// A loop in progress.
struct Level<'a> {
    body: &'a [Item],
    rest: slice::Iter<'a, Item>,
    /// Iterations after this one.
    left: u64,
}

impl<'a> Iterator for Flatten<'a> {
    type Item = &'a Op;

    fn next(&mut self) -> Option<&'a Op> {
        loop {
            let level = self.stack.last_mut()?;
            match level.rest.next() {
                Some(Item::Act(op)) => return Some(op),
                Some(Item::Loop { count, body }) if *count > 0 && !body.is_empty() => {
                    self.stack.push(Level { body, rest: body.iter(), left: count - 1 });
                }
                Some(Item::Loop { .. }) => {}
                None if level.left > 0 => {
                    level.left -= 1;
                    level.rest = level.body.iter();
                }
                None => {
                    self.stack.pop();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(flops: f64) -> Item {
        Item::Act(Op::Compute { flops })
    }

    fn amounts(items: &[Item]) -> Vec<f64> {
        let amount = |op: &Op| match op {
            Op::Compute { flops } => *flops,
            other => panic!("{other:?} was never written"),
        };
        flatten(items).map(amount).collect()
    }

    #[test]
    fn nested_loops_unroll_inside_out() {
        let inner = Item::Loop { count: 2, body: vec![compute(2.0)] };
        let outer = Item::Loop { count: 3, body: vec![compute(1.0), inner] };
        let program = [outer, compute(9.0)];
        assert_eq!(amounts(&program), [1.0, 2.0, 2.0, 1.0, 2.0, 2.0, 1.0, 2.0, 2.0, 9.0]);
        assert_eq!(Item::count_all(&program), Some(10));
    }

    #[test]
    fn loops_of_nothing_are_nothing() {
        let nothing =
            Item::Loop { count: u64::MAX, body: vec![Item::Loop { count: 0, body: vec![compute(1.0)] }] };
        assert_eq!(amounts(&[Item::Loop { count: 0, body: vec![compute(1.0)] }, compute(2.0)]), [2.0]);
        assert_eq!(Item::count_all(&[nothing]), Some(0));
    }

    #[test]
    fn counts_beyond_64_bits_are_told() {
        let square = Item::Loop { count: 1 << 32, body: vec![compute(1.0)] };
        assert_eq!(Item::count_all(&[Item::Loop { count: 1 << 32, body: vec![square] }]), None);
    }
}
