//! Structured programs: the operations of a rank, with loops.

mod call;

pub use call::{Peer, RecvFrom, RequestName, SendTo};

use std::slice;

use pdes_core::{Bytes, Rank};

use crate::call::CallOp;
use crate::channel::Tag;
use crate::collective::Collective;

/// One operation of a rank, with ranks and tags instead of the indices of an [`Action`](crate::Action).
///
/// A peer `None` is `MPI_PROC_NULL`.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Enters MPI.
    Init,
    /// Leaves MPI.
    Finalize,
    /// Creates or queries a communicator; takes no time.
    Communicator,
    /// Call site of the operations that follow.
    Location {
        /// Name of the source file, without white space.
        file: String,
        /// Line number.
        line: u32,
    },
    /// Computes.
    Compute {
        /// Amount of computation \[flop\], finite and not negative.
        flops: f64,
    },
    /// Sleeps.
    Sleep {
        /// Duration \[s\], finite and not negative.
        seconds: f64,
    },
    /// `MPI_Send`.
    Send {
        /// The destination.
        peer: Option<Rank>,
        /// The tag.
        tag: Tag,
        /// Size of the message \[B\], at most 2^48.
        bytes: Bytes,
    },
    /// `MPI_Isend`.
    Isend {
        /// The destination.
        peer: Option<Rank>,
        /// The tag.
        tag: Tag,
        /// Size of the message \[B\], at most 2^48.
        bytes: Bytes,
    },
    /// `MPI_Recv`.
    Recv {
        /// The source.
        peer: Option<Rank>,
        /// The tag; `None` for `MPI_ANY_TAG`.
        tag: Option<Tag>,
        /// Size of the buffer \[B\], at most 2^48.
        bytes: Bytes,
    },
    /// `MPI_Irecv`.
    Irecv {
        /// The source.
        peer: Option<Rank>,
        /// The tag; `None` for `MPI_ANY_TAG`.
        tag: Option<Tag>,
        /// Size of the buffer \[B\], at most 2^48.
        bytes: Bytes,
    },
    /// `MPI_Sendrecv`, both with tag 0.
    SendRecv {
        /// The destination.
        to: Option<Rank>,
        /// Size of the message sent \[B\], at most 2^48.
        send_bytes: Bytes,
        /// The source.
        from: Option<Rank>,
        /// Size of the buffer \[B\], at most 2^48.
        recv_bytes: Bytes,
    },
    /// `MPI_Wait`: completes the oldest pending request with this key.
    Wait(Request),
    /// `MPI_Test`: tests the oldest pending request with this key, which then moves behind the others with the key.
    Test(Request),
    /// `MPI_Waitall` on all pending requests of the rank.
    WaitAll,
    /// A collective operation on the world communicator.
    Collective(Collective),
    /// Any other call.
    Call(CallOp),
}

/// Key by which SimGrid's format refers to pending requests. Requests with the same key complete in posting order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The direction of the message.
    pub direction: Direction,
    /// The peer given when the request was posted; `None` is `MPI_PROC_NULL`. Ignored for a wildcard receive.
    pub peer: Option<Rank>,
    /// The tag given when the request was posted; `None` is `MPI_ANY_TAG`.
    pub tag: Option<Tag>,
}

/// Direction of a request.
///
/// In a trace, the key of a request is source, destination and tag. For messages of a rank to itself, the keys of both directions are
/// therefore the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// A request of [`Op::Isend`].
    Send,
    /// A request of [`Op::Irecv`].
    Receive,
    /// A wildcard request of [`CallOp::Irecv`].
    ReceiveFromAny,
}

/// A part of a structured program.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// One operation.
    Op(Op),
    /// A loop.
    Loop {
        /// Number of iterations, possibly 0.
        count: u64,
        /// The body of the loop.
        body: Vec<Item>,
    },
}

impl Item {
    /// Returns the number of operations that a program runs, or `None` if it exceeds 64 bits.
    ///
    /// Cost: O(length of the program as written), independent of the numbers of iterations.
    ///
    /// ```
    /// use trace_mmap::{Item, Op};
    /// let plane = vec![Item::Op(Op::Compute { flops: 1e3 }), Item::Op(Op::WaitAll)];
    /// let step = vec![Item::Loop { count: 1018, body: plane }, Item::Op(Op::Init)];
    /// assert_eq!(Item::count_all(&[Item::Loop { count: 300, body: step }]), Some(300 * (2 * 1018 + 1)));
    /// ```
    pub fn count_all(items: &[Self]) -> Option<u64> {
        items.iter().try_fold(0_u64, |sum, item| sum.checked_add(item.count()?))
    }

    fn count(&self) -> Option<u64> {
        match self {
            Self::Op(_) => Some(1),
            Self::Loop { count: 0, .. } => Some(0),
            Self::Loop { count, body } => Self::count_all(body)?.checked_mul(*count),
        }
    }
}

/// Yields the operations of a program in execution order, with loops unrolled.
///
/// ```
/// use trace_mmap::{Item, Op, flatten};
/// let program = [Item::Op(Op::Init), Item::Loop { count: 2, body: vec![Item::Op(Op::WaitAll)] }];
/// let ops: Vec<&Op> = flatten(&program).collect();
/// assert_eq!(ops, [&Op::Init, &Op::WaitAll, &Op::WaitAll]);
/// ```
pub fn flatten(items: &[Item]) -> impl Iterator<Item = &Op> {
    Flatten { stack: vec![LoopLevel { body: items, rest: items.iter(), left: 0 }] }
}

struct Flatten<'a> {
    stack: Vec<LoopLevel<'a>>,
}

/// A loop in progress; the lowest one is the program itself.
struct LoopLevel<'a> {
    body: &'a [Item],
    rest: slice::Iter<'a, Item>,
    /// Number of iterations after the current one.
    left: u64,
}

impl<'a> Iterator for Flatten<'a> {
    type Item = &'a Op;

    fn next(&mut self) -> Option<&'a Op> {
        loop {
            let level = self.stack.last_mut()?;
            match level.rest.next() {
                Some(Item::Op(op)) => return Some(op),
                Some(Item::Loop { count, body }) if *count > 0 && !body.is_empty() => {
                    self.stack.push(LoopLevel { body, rest: body.iter(), left: count - 1 });
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
        Item::Op(Op::Compute { flops })
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
    fn counts_beyond_64_bits_are_none() {
        let square = Item::Loop { count: 1 << 32, body: vec![compute(1.0)] };
        assert_eq!(Item::count_all(&[Item::Loop { count: 1 << 32, body: vec![square] }]), None);
    }
}
