//! Programs that are left once their calls repeat: the loop that they have executed stands for its further iterations.
//!
//! Each rank is watched by itself: at certain numbers of calls, it is found out whether the last ones are equal iterations. Once all ranks
//! have executed as many as were asked for, their calls until then, and the loop so many times, become an archive. It is only taken if all
//! messages of it are received, and all members take part in its collective operations: then the loops of the ranks belong together.
//! Else the ranks go on, until they have executed twice as many iterations.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pdes_core::Rank;
use rustc_hash::{FxHashMap, FxHasher};
use trace_mmap::{
    ConvertOptions, Item, Op, Provenance, Trace, TraceError, WorkMetric, WriteError, check_collectives,
    write_programs,
};

/// When a program is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtrapolationRule {
    /// Number of iterations of the run.
    pub iterations: u64,
    /// Number of equal iterations that each rank executes at least.
    pub executed: u64,
}

impl ExtrapolationRule {
    /// Number of equal iterations that each rank executes by default.
    pub const EXECUTED: u64 = 10;
}

/// Search for the loops of a program, which is left once they are known.
#[derive(Clone, Debug)]
pub struct Extrapolation(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    rule: ExtrapolationRule,
    ranks: u32,
    /// The archive that is written.
    output: PathBuf,
    work_metric: Option<WorkMetric>,
    found: Mutex<Found>,
}

/// Loops that have been found: of ranks that have executed the least number of iterations, twice as many, and so on.
#[derive(Debug, Default)]
struct Found {
    stages: Vec<BTreeMap<Rank, Loop>>,
    /// Number of iterations after which the program was left.
    executed: Option<u64>,
}

/// The calls of a rank: those before its loop, and those of an iteration.
#[derive(Clone, Debug)]
struct Loop {
    before: Vec<Op>,
    body: Vec<Op>,
    /// Number of iterations that the rank has executed.
    executed: u64,
}

impl Extrapolation {
    pub(crate) fn new(
        rule: ExtrapolationRule,
        ranks: u32,
        work_metric: Option<WorkMetric>,
        output: &Path,
    ) -> Self {
        let (output, found) = (output.to_path_buf(), Mutex::default());
        Self(Arc::new(Shared { rule, ranks, output, work_metric, found }))
    }

    /// Returns the rule by which the program is left.
    pub fn rule(&self) -> ExtrapolationRule {
        self.0.rule
    }

    /// Returns the number of iterations after which the program was left; `None` as long as it goes on.
    pub fn executed(&self) -> Option<u64> {
        self.0.found.lock().unwrap_or_else(PoisonError::into_inner).executed
    }

    /// Returns the search in the calls of a rank.
    pub(crate) fn of_rank(&self, rank: Rank) -> LoopSearch {
        let has_means = match self.0.work_metric {
            Some(WorkMetric::CpuTime { .. } | WorkMetric::Instructions) => true,
            Some(WorkMetric::Time { .. }) | None => false,
        };
        LoopSearch {
            of_all: self.clone(),
            rank,
            has_means,
            read: 0,
            ends: Vec::new(),
            tokens: Vec::new(),
            known: FxHashMap::default(),
            next: 0,
            stage: 0,
        }
    }

    /// Takes the loop of a rank at a stage; returns whether the program is to be left.
    fn add(&self, stage: usize, rank: Rank, found: Loop) -> Result<bool, WriteError> {
        let mut all = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
        if all.executed.is_some() {
            return Ok(true);
        }
        if all.stages.len() <= stage {
            all.stages.resize_with(stage + 1, BTreeMap::new);
        }
        all.stages[stage].insert(rank, found);
        if all.stages[stage].len() < self.0.ranks as usize {
            return Ok(false);
        }
        let loops = std::mem::take(&mut all.stages[stage]);
        if self.write(&loops)? {
            all.executed = loops.values().map(|found| found.executed).min();
        }
        Ok(all.executed.is_some())
    }

    /// Writes the archive; returns whether the loops of the ranks belong together.
    fn write(&self, loops: &BTreeMap<Rank, Loop>) -> Result<bool, WriteError> {
        let Shared { rule, ranks, output, work_metric, .. } = &*self.0;
        let program = |rank: Rank| {
            let Loop { before, body, .. } = loops.get(&rank)?;
            let items = |ops: &[Op]| -> Vec<Item> { ops.iter().cloned().map(Item::Op).collect() };
            let mut all = items(before);
            all.push(Item::Loop { count: rule.iterations, body: items(body) });
            all.push(Item::Op(Op::Finalize));
            Some(all)
        };
        let provenance = Provenance { work_metric: *work_metric, ..Provenance::default() };
        let options = ConvertOptions { provenance: Some(provenance), ..ConvertOptions::default() };
        match write_programs(*ranks, program, output, &options) {
            Ok(Some(_)) => {}
            Ok(None) | Err(WriteError::ReceiveWithoutSend { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        let trace = Trace::open(output).map_err(TraceError::from)?;
        let is_collective = check_collectives(&trace).map_err(TraceError::from)?.is_none();
        Ok(is_collective && trace.warnings().is_empty())
    }
}

/// Search for the loop of a rank in its calls.
#[derive(Debug)]
pub(crate) struct LoopSearch {
    of_all: Extrapolation,
    rank: Rank,
    /// Amounts of computation differ from iteration to iteration, and are replaced by their means.
    has_means: bool,
    /// Number of operations that have been read.
    read: usize,
    /// End of each step in the operations. A step is an operation, with the computations before it where their amounts do not matter.
    ends: Vec<usize>,
    /// Number of each step, which equal ones share.
    tokens: Vec<u32>,
    /// First step with each hash.
    known: FxHashMap<u64, usize>,
    /// Number of steps at which is looked for a loop next.
    next: usize,
    stage: usize,
}

/// Number of steps between two looks for a loop at least; they are a quarter of all so far.
const STEPS_BETWEEN: usize = 16;

impl LoopSearch {
    /// Takes the operations of the rank so far; returns whether the program is to be left.
    pub(crate) fn follow(&mut self, ops: &[Op]) -> Result<bool, WriteError> {
        while let Some(op) = ops.get(self.read) {
            self.read += 1;
            if !(self.has_means && matches!(op, Op::Compute { .. })) {
                self.push(ops, op);
            }
        }
        if self.tokens.len() < self.next {
            return Ok(false);
        }
        self.next = self.tokens.len() + STEPS_BETWEEN.max(self.tokens.len() / 4);
        let Some((begin, period)) = last_loop(&self.tokens, self.needed()) else { return Ok(false) };
        let executed = ((self.tokens.len() - begin) / period) as u64;
        let found = self.describe(ops, begin, period, executed);
        while executed >= self.needed() {
            let stage = self.stage;
            self.stage += 1;
            if self.of_all.add(stage, self.rank, found.clone())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the number of iterations that are needed at the present stage.
    fn needed(&self) -> u64 {
        self.of_all.0.rule.executed.saturating_mul(1 << self.stage.min(63))
    }

    /// Takes a step that ends with this operation.
    fn push(&mut self, ops: &[Op], op: &Op) {
        let step = self.tokens.len();
        self.ends.push(self.read);
        let first = *self.known.entry(hash(op)).or_insert(step);
        let is_known = ops[self.ends[first] - 1] == *op;
        let token = if is_known { self.tokens.get(first).copied() } else { None };
        self.tokens.push(token.unwrap_or(step as u32));
    }

    /// Returns the operations of some steps.
    fn operations<'o>(&self, ops: &'o [Op], steps: std::ops::Range<usize>) -> &'o [Op] {
        let begin = |step: usize| step.checked_sub(1).map_or(0, |before| self.ends[before]);
        &ops[begin(steps.start)..begin(steps.end)]
    }

    /// Describes a loop that begins at a step.
    fn describe(&self, ops: &[Op], begin: usize, period: usize, executed: u64) -> Loop {
        let before = self.operations(ops, 0..begin).to_vec();
        if !self.has_means {
            let body = self.operations(ops, begin..begin + period).to_vec();
            return Loop { before, body, executed };
        }
        let mut body = Vec::new();
        for step in begin..begin + period {
            let all =
                (step..self.tokens.len()).step_by(period).map(|step| self.operations(ops, step..step + 1));
            let (sum, number) = all.fold((0.0, 0.0), |(sum, number), ops| (sum + flops(ops), number + 1.0));
            body.extend((sum > 0.0).then_some(Op::Compute { flops: sum / number }));
            body.extend(self.operations(ops, step..step + 1).last().cloned());
        }
        Loop { before, body, executed }
    }
}

/// Returns the amount of computation of operations [flop].
fn flops(ops: &[Op]) -> f64 {
    let flops = |op: &Op| if let Op::Compute { flops } = op { *flops } else { 0.0 };
    ops.iter().map(flops).sum()
}

/// Returns the begin and the length of the iterations that are equal until the end, the most steps with at least so many of them.
fn last_loop(tokens: &[u32], iterations: u64) -> Option<(usize, usize)> {
    // The borders of all prefixes of the steps in reverse order (Knuth, Morris and Pratt): a sequence repeats itself after its length
    // without its longest border.
    let at = |index: usize| tokens[tokens.len() - 1 - index];
    let mut borders = vec![0; tokens.len()];
    for index in 1..tokens.len() {
        let mut border: usize = borders[index - 1];
        while border > 0 && at(border) != at(index) {
            border = borders[border - 1];
        }
        borders[index] = border + usize::from(at(border) == at(index));
    }
    (1..=tokens.len()).rev().find_map(|length| {
        let period = length - borders[length - 1];
        ((length / period) as u64 >= iterations).then_some((tokens.len() - length, period))
    })
}

/// Hashes what is written.
struct Hashing(FxHasher);

impl fmt::Write for Hashing {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

fn hash(op: &Op) -> u64 {
    let mut hashing = Hashing(FxHasher::default());
    let _ = write!(hashing, "{op:?}");
    hashing.0.finish()
}

#[cfg(test)]
mod tests {
    use super::last_loop;

    #[test]
    fn the_loop_with_the_most_steps_is_found() {
        assert_eq!(last_loop(&[9, 1, 2, 1, 2, 1, 2], 3), Some((1, 2)));
        assert_eq!(last_loop(&[9, 1, 2, 1, 2, 1, 2], 4), None);
        // It begins where the steps begin to be equal, and includes inner ones.
        assert_eq!(last_loop(&[9, 2, 1, 2, 1, 2, 1, 2], 3), Some((1, 2)));
        assert_eq!(last_loop(&[7, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1], 2), Some((1, 4)));
        assert_eq!(last_loop(&[7, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1], 3), Some((9, 1)));
        assert_eq!(last_loop(&[], 1), None);
    }
}
