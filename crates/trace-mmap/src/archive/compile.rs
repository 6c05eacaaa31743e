//! Compiler from structured programs to records: channels, requests and side-table entries become indices, loops are kept.

use pdes_core::Rank;

use crate::action::Action;
use crate::archive::layout::MAX_DEPTH;
use crate::builder::{LinkableRank, OpError, RankBuilder, check_amount};
use crate::record::Record;
use crate::store::Store;
use crate::structure::{Item, Op};

/// Largest number of columns of a structured program, which has one per computation.
const MAX_COLUMNS: usize = 1 << 12;

/// Largest numbers of iterations and of their records that are written out if iterations differ in their request slots.
const MAX_ITERATIONS: usize = 1 << 10;
const MAX_RECORDS: usize = 1 << 16;

/// Error in a structured program.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StructureError {
    /// An operation is invalid.
    #[error(transparent)]
    Op(#[from] OpError),
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
    // The records are kept apart: nothing is pushed into the builder.
    let store = Store::new(0, None, None);
    let builder = RankBuilder::new(rank, ranks, &store);
    let mut compiler = Compiler { builder, records: Vec::new(), amounts: Vec::new(), depth: 0 };
    compiler.compile_items(items)?;
    let Compiler { builder, records, amounts, .. } = compiler;
    Ok(Compiled { records, column_amounts: amounts, linkable: builder.finish_tables() })
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

struct Compiler<'s> {
    builder: RankBuilder<'s>,
    records: Vec<Record>,
    amounts: Vec<f64>,
    depth: usize,
}

impl Compiler<'_> {
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
        let Some(Period { begin, first_iteration, len }) = period else { return Ok(()) };
        let (iterations, rest) = ((count - first_iteration) / len, (count - first_iteration) % len);
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
        match op {
            Op::Compute { flops } => self.compute(*flops),
            _ => {
                self.records.push(Record::encode(self.builder.resolve(op)?));
                Ok(())
            }
        }
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
}

#[cfg(test)]
mod tests {
    use pdes_core::Bytes;

    use super::*;
    use crate::channel::Tag;
    use crate::record::{ISEND, LOOP_BEGIN, LOOP_END, WAIT};
    use crate::structure::{Direction, Request};

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
        assert_eq!(kinds(&[Item::Op(op)]), Err(StructureError::Op(OpError::Peer { found, ranks })));
        assert!(matches!(kinds(&[wait()]), Err(StructureError::Op(OpError::NoPendingRequest { .. }))));
        let barrier = |body| Item::Loop { count: 2, body: vec![body] };
        let deep = (0..=MAX_DEPTH).fold(Item::Op(Op::Init), |body, _| barrier(body));
        assert_eq!(kinds(&[deep]), Err(StructureError::Depth { limit: MAX_DEPTH }));
        let found = kinds(&[Item::Op(Op::Compute { flops: -1.0 })]);
        assert_eq!(found, Err(StructureError::Op(OpError::Amount { found: -1.0 })));
    }
}
