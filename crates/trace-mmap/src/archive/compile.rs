//! Compiler from structured programs to records: channels, requests and side-table entries become indices, loops are kept.

mod call;

use pdes_core::{Bytes, Rank};

use crate::action::{Action, CollectiveId, SendRecv};
use crate::archive::layout::MAX_DEPTH;
use crate::builder::{LinkableRank, RankTraceBuilder, RequestKey};
use crate::channel::Tag;
use crate::collective::Collective;
use crate::communicator::CommIdx;
use crate::record::{MAX_BYTES, Record};
use crate::side_tables::has_legal_sizes;
use crate::structure::{Direction, Item, Op, Request, TextLine};
use crate::text::TextError;

/// Largest number of columns of a structured program, which has one per computation.
const MAX_COLUMNS: usize = 1 << 12;

/// Largest numbers of iterations and of their records that are written out if iterations differ in their request slots.
const MAX_ITERATIONS: usize = 1 << 10;
const MAX_RECORDS: usize = 1 << 16;

/// Error in a structured program.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StructureError {
    /// An amount of computation or a time to sleep is not finite, or negative.
    #[error("an amount is {found}, expected a finite number that is not negative")]
    Amount {
        /// The amount.
        found: f64,
    },
    /// A message or its buffer is too large.
    #[error("a message has {found} bytes, expected at most {limit}")]
    Size {
        /// Size found \[B\].
        found: u64,
        /// Largest size allowed \[B\].
        limit: u64,
    },
    /// A peer, root, member or neighbour is not a rank of the run or of the communicator.
    #[error("a peer, root, member or neighbour is rank {found}, expected one below {ranks}")]
    Peer {
        /// The rank found.
        found: Rank,
        /// Number of ranks of the run or of the communicator.
        ranks: u32,
    },
    /// A vector of a collective does not have one count per rank, or a count amounts to more than 2^48 bytes.
    #[error("a {name} needs one count per rank ({ranks}) in each vector, and at most 2^48 bytes per count")]
    Collective {
        /// The name of the operation.
        name: &'static str,
        /// Number of ranks of the communicator.
        ranks: u32,
    },
    /// The name of a source file is empty or contains white space.
    #[error("the source file is called {found:?}, expected a name without white space")]
    Location {
        /// The name found.
        found: String,
    },
    /// A call refers to an invalid request or communicator, or too many requests are pending.
    #[error(transparent)]
    Request(#[from] TextError),
    /// A loop posts more requests than it completes, or completes them in an order that does not repeat, so that no two
    /// iterations are equal.
    #[error(
        "a loop of {count} iterations has other requests pending after each of the first {limit}: it cannot be stored as a loop"
    )]
    LoopRequests {
        /// Number of iterations of the loop.
        count: u64,
        /// Number of iterations that were tried.
        limit: u64,
    },
    /// Loops nest too deeply.
    #[error("loops nest deeper than {limit}")]
    Depth {
        /// Deepest nesting allowed.
        limit: usize,
    },
}

/// A program as records, with its tables.
pub(crate) struct Compiled {
    pub(crate) records: Vec<Record>,
    /// Constant amount of each column [flop].
    pub(crate) column_amounts: Vec<f64>,
    pub(crate) linkable: LinkableRank,
}

/// Compiles the program of a rank.
pub(crate) fn compile(rank: Rank, ranks: u32, items: &[Item]) -> Result<Compiled, StructureError> {
    let draft = RankTraceBuilder::new(rank, ranks);
    let mut compiler =
        Compiler { rank, ranks, builder: draft, records: Vec::new(), amounts: Vec::new(), depth: 0 };
    compiler.compile_items(items)?;
    let Compiler { builder: draft, records, amounts, .. } = compiler;
    Ok(Compiled { records, column_amounts: amounts, linkable: draft.finish_tables() })
}

/// A run of iterations after which the same requests are pending in the same slots as before it.
struct Period {
    /// Index of its first record.
    begin: usize,
    /// Number of iterations before it.
    first_iteration: u64,
    /// Number of its iterations.
    len: u64,
}

struct Compiler {
    rank: Rank,
    ranks: u32,
    builder: RankTraceBuilder,
    records: Vec<Record>,
    amounts: Vec<f64>,
    depth: usize,
}

impl Compiler {
    fn compile_items(&mut self, items: &[Item]) -> Result<(), StructureError> {
        items.iter().try_for_each(|item| match item {
            Item::Op(op) => self.compile_op(op),
            Item::Loop { count: 0, .. } => Ok(()),
            Item::Loop { count: 1, body } => self.compile_items(body),
            Item::Loop { count, body } => self.compile_loop(*count, body),
        })
    }

    /// Compiles a loop. The body of the compiled loop is one [`Period`]; the iterations before it, and the remainder after the
    /// last whole period, are written out around the loop.
    fn compile_loop(&mut self, count: u64, body: &[Item]) -> Result<(), StructureError> {
        if self.depth == MAX_DEPTH {
            return Err(StructureError::Depth { limit: MAX_DEPTH });
        }
        self.depth += 1;
        let period = self.find_period(count, body)?;
        self.depth -= 1;
        let Some(Period { begin, first_iteration: first, len }) = period else { return Ok(()) };
        let (iterations, rest) = ((count - first) / len, (count - first) % len);
        if iterations > 1 && begin < self.records.len() {
            self.records.insert(begin, Record::loop_begin(iterations));
            self.records.push(Record::loop_end());
        }
        (0..rest).try_for_each(|_| self.compile_items(body))
    }

    /// Compiles iterations until one leaves the requests as an earlier one found them; returns `None` if the loop ends before.
    fn find_period(&mut self, count: u64, body: &[Item]) -> Result<Option<Period>, StructureError> {
        let begin = self.records.len();
        let mut before = vec![(self.builder.state(), begin)];
        for iteration in 1..=count {
            self.compile_items(body)?;
            let (state, end) = (self.builder.state(), self.records.len());
            if let Some(first) = before.iter().position(|(earlier, _)| *earlier == state) {
                let (begin, first) = (before[first].1, first as u64);
                return Ok(Some(Period { begin, first_iteration: first, len: iteration - first }));
            }
            if before.len() == MAX_ITERATIONS || end - begin > MAX_RECORDS {
                return Err(StructureError::LoopRequests { count, limit: iteration });
            }
            before.push((state, end));
        }
        Ok(None)
    }

    fn compile_op(&mut self, op: &Op) -> Result<(), StructureError> {
        let action = match op {
            Op::Init => Action::Init,
            Op::Finalize => Action::Finalize,
            Op::Communicator => Action::Communicator,
            Op::Location { file, line } => self.location(file, *line)?,
            Op::Compute { flops } => return self.compute(*flops),
            Op::Sleep { seconds } => Action::Sleep { seconds: check_amount(*seconds)? },
            Op::Send { peer, tag, bytes } => self.send(*peer, *tag, *bytes)?,
            Op::Isend { peer, tag, bytes } => self.isend(*peer, *tag, *bytes)?,
            Op::Recv { peer, tag, bytes } => self.recv(*peer, *tag, *bytes)?,
            Op::Irecv { peer, tag, bytes } => self.irecv(*peer, *tag, *bytes)?,
            Op::SendRecv { to, send_bytes, from, recv_bytes } => {
                self.send_recv(*to, *send_bytes, *from, *recv_bytes)?
            }
            Op::Wait(request) => {
                let key = self.request_key(*request);
                let slot = self.builder.requests.complete(key);
                Action::Wait {
                    slot: slot.ok_or_else(|| self.builder.requests.not_pending_error("wait", key))?,
                }
            }
            Op::Test(request) => {
                let key = self.request_key(*request);
                let slot = self.builder.requests.rotate(key);
                Action::Test {
                    slot: slot.ok_or_else(|| self.builder.requests.not_pending_error("test", key))?,
                }
            }
            Op::WaitAll => {
                self.builder.requests.complete_all();
                Action::WaitAll
            }
            Op::Collective(collective) => self.collective(op, collective)?,
            Op::Call(call) => self.call(call)?,
        };
        self.records.push(Record::encode(action));
        Ok(())
    }

    /// Compiles a computation. It gets a column of its own, so that ranks that differ only in amounts share a program.
    fn compute(&mut self, flops: f64) -> Result<(), StructureError> {
        let flops = check_amount(flops)?;
        if self.amounts.len() < MAX_COLUMNS {
            self.records.push(Record::column(self.amounts.len() as u32));
            self.amounts.push(flops);
        } else {
            self.records.push(Record::encode(Action::Compute { flops }));
        }
        Ok(())
    }

    fn location(&mut self, file: &str, line: u32) -> Result<Action, StructureError> {
        if file.is_empty() || file.contains(char::is_whitespace) || line > i32::MAX as u32 {
            return Err(StructureError::Location { found: format!("{file}:{line}") });
        }
        Ok(Action::Location(self.builder.insert_location(file, line.into())))
    }

    fn send(&mut self, peer: Option<Rank>, tag: Tag, bytes: Bytes) -> Result<Action, StructureError> {
        let (peer, bytes) = (self.check_peer(peer)?, check_size(bytes)?);
        Ok(match peer {
            None => Action::ProcNull { slot: None },
            Some(peer) => Action::Send { to: self.builder.send_to(peer, tag), bytes },
        })
    }

    fn isend(&mut self, peer: Option<Rank>, tag: Tag, bytes: Bytes) -> Result<Action, StructureError> {
        let (peer, bytes) = (self.check_peer(peer)?, check_size(bytes)?);
        let slot = self.builder.requests.post(RequestKey::send(self.rank, peer, Some(tag)))?;
        Ok(match peer {
            None => Action::ProcNull { slot: Some(slot) },
            Some(peer) => Action::Isend { to: self.builder.send_to(peer, tag), bytes, slot },
        })
    }

    fn recv(&mut self, peer: Option<Rank>, tag: Option<Tag>, bytes: Bytes) -> Result<Action, StructureError> {
        let (peer, bytes) = (self.check_peer(peer)?, check_size(bytes)?);
        Ok(match peer {
            None => Action::ProcNull { slot: None },
            Some(peer) => Action::Recv { from: self.builder.receive_from(peer, tag), bytes },
        })
    }

    fn irecv(
        &mut self,
        peer: Option<Rank>,
        tag: Option<Tag>,
        bytes: Bytes,
    ) -> Result<Action, StructureError> {
        let (peer, bytes) = (self.check_peer(peer)?, check_size(bytes)?);
        let slot = self.builder.requests.post(RequestKey::receive(self.rank, peer, tag))?;
        Ok(match peer {
            None => Action::ProcNull { slot: Some(slot) },
            Some(peer) => Action::Irecv { from: self.builder.receive_from(peer, tag), bytes, slot },
        })
    }

    fn send_recv(
        &mut self,
        to: Option<Rank>,
        send_bytes: Bytes,
        from: Option<Rank>,
        recv_bytes: Bytes,
    ) -> Result<Action, StructureError> {
        let tag = Tag::new(0);
        let (to, from) = (self.check_peer(to)?, self.check_peer(from)?);
        let (send_bytes, recv_bytes) = (check_size(send_bytes)?, check_size(recv_bytes)?);
        let to = to.map(|peer| self.builder.send_to(peer, tag));
        let from = from.map(|peer| self.builder.receive_from(peer, Some(tag)));
        Ok(Action::SendRecv(self.builder.insert_send_recv(SendRecv { to, send_bytes, from, recv_bytes })))
    }

    fn collective(&mut self, op: &Op, collective: &Collective) -> Result<Action, StructureError> {
        Ok(Action::Collective(self.intern_collective(op, collective, CommIdx::WORLD)?))
    }

    /// Stores an operation on a communicator; operations with equal text are stored once.
    fn intern_collective(
        &mut self,
        op: &Op,
        operation: &Collective,
        communicator: CommIdx,
    ) -> Result<CollectiveId, StructureError> {
        let (name, ranks) = (operation.name(), self.builder.communicators.get(communicator).group.len());
        if !operation.vectors().iter().all(|vector| vector.len() == ranks as usize)
            || !has_legal_sizes(operation)
        {
            return Err(StructureError::Collective { name, ranks });
        }
        if let Some(found) = operation.root().filter(|root| root.get() >= ranks) {
            return Err(StructureError::Peer { found, ranks });
        }
        operation.flops().map_or(Ok(0.0), check_amount)?;
        let text = TextLine { rank: self.rank, op }.to_string();
        let known = self.builder.find_collective(text.as_bytes()).map(|(id, _)| id);
        let new = || self.builder.insert_collective(text.as_bytes(), operation.clone(), communicator, false);
        Ok(known.unwrap_or_else(new))
    }

    fn check_peer(&self, peer: Option<Rank>) -> Result<Option<Rank>, StructureError> {
        match peer {
            Some(found) if found.get() >= self.ranks => {
                Err(StructureError::Peer { found, ranks: self.ranks })
            }
            peer => Ok(peer),
        }
    }

    fn request_key(&self, request: Request) -> RequestKey {
        match request.direction {
            Direction::Send => RequestKey::send(self.rank, request.peer, request.tag),
            Direction::Receive => RequestKey::receive(self.rank, request.peer, request.tag),
            Direction::ReceiveFromAny => RequestKey::receive_from_any(self.rank, request.tag),
        }
    }
}

fn check_amount(found: f64) -> Result<f64, StructureError> {
    // Adding zero turns -0 into 0.
    if found.is_finite() && found >= 0.0 { Ok(found + 0.0) } else { Err(StructureError::Amount { found }) }
}

fn check_size(bytes: Bytes) -> Result<Bytes, StructureError> {
    if bytes.get() <= MAX_BYTES {
        Ok(bytes)
    } else {
        Err(StructureError::Size { found: bytes.get(), limit: MAX_BYTES })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ISEND, LOOP_BEGIN, LOOP_END, WAIT};

    fn isend() -> Item {
        Item::Op(Op::Isend { peer: Some(Rank::new(0)), tag: Tag::new(3), bytes: Bytes::new(8) })
    }

    fn wait() -> Item {
        let (peer, tag) = (Some(Rank::new(0)), Some(Tag::new(3)));
        Item::Op(Op::Wait(Request { direction: Direction::Send, peer, tag }))
    }

    fn kinds(items: &[Item]) -> Result<Vec<(u8, u32)>, StructureError> {
        let compiled = compile(Rank::new(0), 1, items)?;
        Ok(compiled.records.iter().map(|record| (record.kind(), record.slot().get())).collect())
    }

    #[test]
    fn a_loop_that_completes_its_requests_stays_whole() {
        let body = vec![isend(), wait()];
        let found = kinds(&[Item::Loop { count: 9, body }]).expect("a loop");
        assert_eq!(found, [(LOOP_BEGIN, 0), (ISEND, 0), (WAIT, 0), (LOOP_END, 0)]);
    }

    /// Double buffering: posts one request ahead and waits for the one before. In the first iteration the request
    /// before has slot 0 and the new one slot 1; then they swap: nine iterations are four times two, and one.
    #[test]
    fn a_loop_whose_slots_alternate_is_unrolled() {
        let body = vec![isend(), wait()];
        let found = kinds(&[isend(), Item::Loop { count: 9, body }]).expect("a loop");
        let two = [(ISEND, 1), (WAIT, 0), (ISEND, 0), (WAIT, 1)];
        let expected = [&[(ISEND, 0), (LOOP_BEGIN, 0)], &two[..], &[(LOOP_END, 0)], &two[..2]].concat();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_loop_that_piles_up_requests_is_written_out_or_refused() {
        let pile = |count| kinds(&[Item::Loop { count, body: vec![isend()] }]);
        assert_eq!(pile(3), Ok(vec![(ISEND, 0), (ISEND, 1), (ISEND, 2)]));
        let limit = MAX_ITERATIONS as u64;
        assert_eq!(pile(1 << 40), Err(StructureError::LoopRequests { count: 1 << 40, limit }));
    }

    #[test]
    fn a_first_iteration_that_differs_stands_before_the_loop() {
        // The first iteration leaves a request pending; all later ones complete all they find.
        let body = vec![Item::Op(Op::WaitAll), isend()];
        let found = kinds(&[Item::Loop { count: 9, body }]).expect("a loop");
        let kinds: Vec<u8> = found.iter().map(|(kind, _)| *kind).collect();
        let wait_all = crate::record::WAIT_ALL;
        assert_eq!(kinds, [wait_all, ISEND, LOOP_BEGIN, wait_all, ISEND, LOOP_END]);
    }

    #[test]
    fn invalid_programs_are_refused() {
        let ranks = 1;
        let found = Rank::new(1);
        let op = Op::Send { peer: Some(found), tag: Tag::new(0), bytes: Bytes::ZERO };
        assert_eq!(kinds(&[Item::Op(op)]), Err(StructureError::Peer { found, ranks }));
        assert!(matches!(kinds(&[wait()]), Err(StructureError::Request(_))));
        let barrier = |body| Item::Loop { count: 2, body: vec![body] };
        let deep = (0..=MAX_DEPTH).fold(Item::Op(Op::Init), |body, _| barrier(body));
        assert_eq!(kinds(&[deep]), Err(StructureError::Depth { limit: MAX_DEPTH }));
        let found = kinds(&[Item::Op(Op::Compute { flops: -1.0 })]);
        assert_eq!(found, Err(StructureError::Amount { found: -1.0 }));
    }
}
