//! Formatting of operations as time-independent text.

mod call;

use std::fmt::{self, Formatter};

use pdes_core::{Bytes, Rank};
use trace_mmap::table::Amount;
use trace_mmap::{Datatype, Direction, Op, Request, Tag};

/// Identifier of `MPI_BYTE`. Sizes of messages are written in bytes, so that no line depends on the default type of its rank.
const BYTE: i32 = Datatype::BYTE.id();
const ANY_TAG: i64 = -444;
const ANY_SOURCE: i64 = -555;
const PROC_NULL: i64 = -666;

/// A line of a trace, without the newline; its `Display` text parses to the same operation.
///
/// ```
/// use pdes_core::{Bytes, Rank};
/// use trace_mmap::{Op, Tag};
/// use trace_tools::TextLine;
/// let op = Op::Send { peer: Some(Rank::new(3)), tag: Tag::new(7), bytes: Bytes::new(4096) };
/// assert_eq!(TextLine { rank: Rank::new(1), op: &op }.to_string(), "1 send 3 7 4096 6");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TextLine<'a> {
    /// The rank.
    pub rank: Rank,
    /// The operation.
    pub op: &'a Op,
}

impl fmt::Display for TextLine<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.rank)?;
        match self.op {
            Op::Init => f.write_str("init"),
            Op::Finalize => f.write_str("finalize"),
            Op::Communicator => f.write_str("comm_size"),
            Op::Location { file, line } => write!(f, "location {file} {line}"),
            Op::Compute { flops } => write!(f, "compute {}", Amount(*flops)),
            Op::Sleep { seconds } => write!(f, "sleep {}", Amount(*seconds)),
            Op::Send { peer, tag, bytes } => write_message(f, "send", peer_number(*peer), Some(*tag), *bytes),
            Op::Isend { peer, tag, bytes } => {
                write_message(f, "isend", peer_number(*peer), Some(*tag), *bytes)
            }
            Op::Recv { peer, tag, bytes } => write_message(f, "recv", peer_number(*peer), *tag, *bytes),
            Op::Irecv { peer, tag, bytes } => write_message(f, "irecv", peer_number(*peer), *tag, *bytes),
            Op::SendRecv { to, send_bytes, from, recv_bytes } => {
                let (send, recv) = (send_bytes.get(), recv_bytes.get());
                write!(f, "sendRecv {send} {} {recv} {} {BYTE} {BYTE}", peer_number(*to), peer_number(*from))
            }
            Op::Wait(request) => self.write_completion(f, "wait", *request),
            Op::Test(request) => self.write_completion(f, "test", *request),
            Op::WaitAll => f.write_str("waitall"),
            Op::Collective(collective) => {
                f.write_str(collective.name())?;
                collective.write(f)
            }
            Op::Call(op) => call::write(f, op),
        }
    }
}

impl TextLine<'_> {
    fn write_completion(&self, f: &mut Formatter<'_>, name: &str, request: Request) -> fmt::Result {
        let (peer, tag) = (peer_number(request.peer), tag_number(request.tag));
        match request.direction {
            Direction::Send => write!(f, "{name} {} {peer} {tag}", self.rank),
            Direction::Receive => write!(f, "{name} {peer} {} {tag}", self.rank),
            Direction::ReceiveFromAny => write!(f, "{name} {ANY_SOURCE} {} {tag}", self.rank),
        }
    }
}

fn write_message(
    f: &mut Formatter<'_>,
    name: &str,
    peer: i64,
    tag: Option<Tag>,
    bytes: Bytes,
) -> fmt::Result {
    write!(f, "{name} {peer} {} {} {BYTE}", tag_number(tag), bytes.get())
}

fn peer_number(peer: Option<Rank>) -> i64 {
    peer.map_or(PROC_NULL, |rank| i64::from(rank.get()))
}

fn tag_number(tag: Option<Tag>) -> i64 {
    tag.map_or(ANY_TAG, |tag| i64::from(tag.get()))
}
