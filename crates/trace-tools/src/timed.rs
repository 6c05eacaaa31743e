//! Sources of timed calls: formats that record when each rank entered and left each call.
//!
//! The operations of a call share its time: the last one has all of it. Between calls a rank computes, 1 flop per nanosecond, or sleeps
//! where the format knows that it did not compute. So the times of a rank add up to the time from its first event to its last one.

mod calls;
mod communicators;
mod function;

pub use calls::CallsError;
pub(crate) use calls::{Calls, CommPeer, Done, Envelope};
pub use communicators::CommunicatorError;
#[cfg(feature = "otf2")]
pub(crate) use communicators::Resolved;
pub(crate) use communicators::{Communicators, Creation, Given, GroupOf, Handle, Made, Split};
pub(crate) use function::{Function, Requests};

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::Path;

use pdes_core::Rank;
use trace_mmap::{Location, MAX_NANOS, Op, RankBuilders, TraceError, TraceSource, Warning, WorkMetric};

use crate::files::fingerprint;

/// Nanoseconds per second, and flops of a second of computation.
pub(crate) const NANOS: f64 = 1e9;

/// Number of steps that wait at most for one that may be taken as it is.
const MAX_WAITING: usize = 1 << 16;

/// A format of timed calls. [`source`] makes a [`TraceSource`] of it.
pub(crate) trait TimedCalls: fmt::Debug + Send + Sync + 'static {
    /// What all ranks share.
    type Shared;

    /// Returns the file or directory, for errors.
    fn path(&self) -> &Path;

    /// Returns all files.
    fn files(&self) -> Vec<&Path>;

    /// Returns the file of a rank.
    fn file(&self, rank: Rank) -> &Path;

    /// Returns the number of ranks.
    fn ranks(&self) -> Result<u32, TraceError>;

    /// Returns whether all ranks are in one file, so that all are read at once.
    fn is_interleaved(&self) -> bool {
        false
    }

    /// Returns what computations count.
    fn work_metric(&self) -> Option<WorkMetric> {
        Some(WorkMetric::Time { rate: NANOS })
    }

    /// Reads what all ranks share.
    fn shared(&self) -> Result<Self::Shared, TraceError>;

    /// Writes the program of a rank.
    fn write(&self, shared: &Self::Shared, program: &mut TimedProgram<'_>) -> Result<(), TraceError>;
}

/// Returns the part of an amount for one of some peers: all have the same, but the first ones a byte more if some are left over.
pub(crate) fn share(amount: u64, peers: u64, peer: u64) -> u64 {
    amount / peers + u64::from(peer < amount % peers)
}

/// Makes the source of a trace.
pub(crate) fn source(trace: impl TimedCalls) -> Box<dyn TraceSource> {
    Box::new(Source(trace))
}

/// The time between calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Between {
    Computation,
    Idleness,
    /// Computation of so many flops.
    #[cfg(feature = "otf2")]
    Counted(f64),
}

/// An operation of a rank, with its measured time \[ns\] and the number of its line or record.
struct Step {
    op: Op,
    nanos: u64,
    line: u64,
}

/// The program of a rank, which is written in the order of time.
pub(crate) struct TimedProgram<'a> {
    rank: Rank,
    file: &'a Path,
    take: &'a mut dyn FnMut(Step) -> Result<(), TraceError>,
    /// End of the last step \[ns\].
    now: u64,
    /// The operations of the current call.
    call: Vec<Op>,
    /// Number of steps that are taken, and those after the first one that is not complete.
    taken: u64,
    waiting: VecDeque<Step>,
    /// The steps that are not complete, each with whether it may be taken as it is.
    held: BTreeMap<StepNumber, bool>,
    warnings: Vec<Warning>,
}

/// Number of a step of a rank, from 0.
pub(crate) type StepNumber = u64;

impl TimedProgram<'_> {
    /// Returns the rank.
    pub(crate) fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the end of the last call or of the time after it \[ns\].
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Starts at an instant \[ns\]: no time passes before it.
    pub(crate) fn start_at(&mut self, at: u64) {
        self.now = at;
    }

    /// Passes the time until an instant \[ns\], if that is later than [now](Self::now).
    pub(crate) fn pass(&mut self, until: u64, between: Between, line: u64) -> Result<(), TraceError> {
        let nanos = until.saturating_sub(self.now);
        self.now += nanos;
        let is_nothing = match between {
            #[cfg(feature = "otf2")]
            Between::Counted(flops) => nanos == 0 && flops == 0.0,
            _ => nanos == 0,
        };
        if is_nothing {
            return Ok(());
        }
        let op = match between {
            #[cfg(feature = "otf2")]
            Between::Counted(flops) => Op::Compute { flops },
            Between::Computation => Op::Compute { flops: nanos as f64 },
            Between::Idleness => Op::Sleep { seconds: nanos as f64 / NANOS },
        };
        self.add(Step { op, nanos, line })
    }

    /// Adds an operation to the current call.
    pub(crate) fn push(&mut self, op: Op) {
        self.call.push(op);
    }

    /// Adds an operation that may become another one by [`complete`](Self::complete): later ones wait for that, but not too many if it
    /// may be taken as it is.
    pub(crate) fn hold(&mut self, op: Op, may_be_taken: bool) -> StepNumber {
        let number = self.taken + (self.waiting.len() + self.call.len()) as u64;
        self.held.insert(number, may_be_taken);
        self.push(op);
        number
    }

    /// Completes an operation that was held, in place of which there may be another one.
    pub(crate) fn complete(&mut self, number: StepNumber, op: Option<Op>) -> Result<(), TraceError> {
        if self.held.remove(&number).is_none() {
            return Ok(());
        }
        let index = (number - self.taken) as usize;
        let waiting = self.waiting.len();
        let place = match self.waiting.get_mut(index) {
            Some(step) => &mut step.op,
            None => &mut self.call[index - waiting],
        };
        if let Some(op) = op {
            *place = op;
        }
        self.take_complete()
    }

    fn add(&mut self, step: Step) -> Result<(), TraceError> {
        if step.nanos > MAX_NANOS {
            return Err(self.error(step.line, CallsError::Time { found: step.nanos, limit: MAX_NANOS }));
        }
        self.waiting.push_back(step);
        if self.waiting.len() > MAX_WAITING
            && self.held.first_key_value().is_some_and(|(_, may_be_taken)| *may_be_taken)
        {
            self.held.pop_first();
        }
        self.take_complete()
    }

    fn take_complete(&mut self) -> Result<(), TraceError> {
        while self.held.first_key_value().is_none_or(|(held, _)| *held != self.taken) {
            let Some(step) = self.waiting.pop_front() else { break };
            self.taken += 1;
            (self.take)(step)?;
        }
        Ok(())
    }

    /// Completes all operations that are still held.
    fn finish(mut self) -> Result<Vec<Warning>, TraceError> {
        self.held.clear();
        self.take_complete()?;
        Ok(self.warnings)
    }

    /// Ends the current call, which took the time from [now](Self::now).
    pub(crate) fn leave(&mut self, at: u64, line: u64) -> Result<(), TraceError> {
        let last = self.call.len().saturating_sub(1);
        let time = at.saturating_sub(self.now);
        for (index, op) in std::mem::take(&mut self.call).into_iter().enumerate() {
            self.add(Step { op, nanos: if index == last { time } else { 0 }, line })?;
        }
        self.now = self.now.max(at);
        Ok(())
    }

    /// Notes that something is not in the program, so many times from a line or record on.
    pub(crate) fn leave_out(&mut self, line: u64, count: u64, what: &str) {
        let known = self.warnings.iter_mut().find_map(|known| match known {
            Warning::LeftOut { what: of_known, records, .. } if of_known == what => Some(records),
            _ => None,
        });
        match known {
            Some(records) => *records += count,
            None => {
                let first = Location { file: self.file.to_path_buf(), line };
                self.warnings.push(Warning::LeftOut { what: what.to_owned(), records: count, first });
            }
        }
    }

    /// Makes an error of a line or record.
    pub(crate) fn error(
        &self,
        line: u64,
        kind: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> TraceError {
        let location = Location { file: self.file.to_path_buf(), line };
        TraceError::Action { location, kind: kind.into() }
    }
}

#[derive(Debug)]
struct Source<T>(T);

impl<T: TimedCalls> Source<T> {
    fn write(
        &self,
        shared: &T::Shared,
        rank: Rank,
        take: &mut dyn FnMut(Step) -> Result<(), TraceError>,
    ) -> Result<Vec<Warning>, TraceError> {
        let mut program = TimedProgram {
            rank,
            file: self.0.file(rank),
            take,
            now: 0,
            call: Vec::new(),
            taken: 0,
            waiting: VecDeque::new(),
            held: BTreeMap::new(),
            warnings: Vec::new(),
        };
        self.0.write(shared, &mut program)?;
        program.finish()
    }
}

impl<T: TimedCalls> TraceSource for Source<T> {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        self.0.ranks().map(u64::from)
    }

    fn is_interleaved(&self) -> bool {
        self.0.is_interleaved()
    }

    fn work_metric(&self) -> Option<WorkMetric> {
        self.0.work_metric()
    }

    fn read(&self, ranks: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        let (asked, found) = (ranks.ranks(), self.0.ranks()?);
        if asked < found {
            return Err(TraceError::TooFewRanks { path: self.path().to_path_buf(), asked, found });
        }
        let shared = self.0.shared()?;
        let wanted = ranks.wanted();
        for rank in wanted.start..wanted.end.min(found) {
            let builder = ranks.get(rank.into()).expect("the rank is wanted");
            let rank = Rank::new(rank);
            let warnings = self.write(&shared, rank, &mut |Step { op, nanos, line }| {
                let action = builder.resolve(&op).map_err(|kind| {
                    let location = Location { file: self.0.file(rank).to_path_buf(), line };
                    TraceError::Action { location, kind: Box::new(kind) }
                })?;
                builder.push(action, Some(nanos))
            })?;
            warnings.into_iter().for_each(|warning| ranks.warn(warning));
        }
        Ok(())
    }

    fn locate(&self, rank: Rank, index: u64) -> Result<Location, TraceError> {
        let (mut steps, mut found) = (0, None);
        if rank.get() < self.0.ranks()? {
            self.write(&self.0.shared()?, rank, &mut |step| {
                if steps == index {
                    found = Some(step.line);
                }
                steps += 1;
                Ok(())
            })?;
        }
        let line = found.ok_or(TraceError::NoSuchAction { rank, action: index })?;
        Ok(Location { file: self.0.file(rank).to_path_buf(), line })
    }

    fn fingerprint(&self) -> Result<u64, TraceError> {
        fingerprint(&self.0.files())
    }
}
