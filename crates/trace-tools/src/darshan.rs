//! Logs of Darshan with its extended tracing (DXT), as programs of I/O.
//!
//! The actions of a rank are its accesses in the order in which they began, each with its measured time \[ns\], and sleeps between them, as
//! long as nothing was under way in the recorded run: computations, messages and waiting, of which a log knows nothing. Accesses that
//! overlapped, as those of several threads, come one after the other. Files are opened before their first access and closed after the
//! last one, in no measured time, on a communicator of the rank alone.
//!
//! Accesses are those that the file system saw, by POSIX; those of MPI-IO are taken of files that have no others.

mod log;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{
    CallOp, CommId, CommunicatorCall, FileCall, FileDirection, FileHints, FileName, Group, Location, Op,
    RankBuilders, TraceError, TraceSource, Warning,
};

use crate::error::InputError;
use crate::files::fingerprint;
pub use log::DarshanError;
use log::{Log, Segment};

/// Bytes 8 to 12 of a log, in either order of bytes.
const MAGIC: [&[u8]; 2] = [b"75d\0\0\0\0\0", b"\0\0\0\0\0d57"];

/// Returns whether a file is a log, by its first bytes.
pub(crate) fn knows(head: &[u8]) -> bool {
    head.get(8..16).is_some_and(|magic| MAGIC.contains(&magic))
}

/// Opens a log, and reads all of it.
pub(crate) fn open(path: &Path) -> Result<Box<dyn TraceSource>, TraceError> {
    let bytes = std::fs::read(path).map_err(InputError::io(path))?;
    let problem = |problem| InputError::Darshan { file: path.to_path_buf(), problem };
    let log = Log::read(&bytes).map_err(problem)?;
    Ok(Box::new(DarshanSource { path: path.to_path_buf(), log }))
}

/// A log.
#[derive(Debug)]
struct DarshanSource {
    path: PathBuf,
    log: Log,
}

/// An operation with its measured time \[ns\].
type Step = (Op, u64);

impl DarshanSource {
    fn steps(&self, rank: u32) -> Vec<Step> {
        let segments = self.log.segments(rank);
        let mut steps = Steps { own: CommId::new(rank + 1), names: &self.log.names, steps: Vec::new() };
        if segments.is_empty() {
            return steps.steps;
        }
        let group = Arc::new(Group::new([Rank::new(rank)]).expect("one rank is there once"));
        let new = Some((steps.own, group));
        let kind = CommunicatorCall::CreateGroup;
        steps.push(CallOp::NewCommunicator { kind, parent: CommId::WORLD, new }, 0);
        let mut left: FxHashMap<u64, u64> = FxHashMap::default();
        segments.iter().for_each(|segment| *left.entry(segment.file).or_default() += 1);
        let all = left.clone();
        let mut until = 0;
        for segment in &segments {
            let (begin, end) = (nanos(segment.begin), nanos(segment.end));
            if begin > until {
                steps.steps.push((Op::Sleep { seconds: (begin - until) as f64 * 1e-9 }, begin - until));
            }
            until = until.max(end);
            let left = left.get_mut(&segment.file).expect("the file is counted");
            if *left == all[&segment.file] {
                steps.file(segment.file, FileCall::Open { mode: 0, hints: FileHints::default() }, 0);
            }
            *left -= 1;
            steps.access(segment, end.saturating_sub(begin));
            if *left == 0 {
                steps.file(segment.file, FileCall::Close, 0);
            }
        }
        steps.steps
    }
}

struct Steps<'a> {
    own: CommId,
    names: &'a FxHashMap<u64, FileName>,
    steps: Vec<Step>,
}

impl Steps<'_> {
    fn push(&mut self, call: CallOp, nanos: u64) {
        self.steps.push((Op::Call(call), nanos));
    }

    fn file(&mut self, file: u64, call: FileCall, nanos: u64) {
        let file = match self.names.get(&file) {
            Some(name) => name.clone(),
            None => FileName::new(&format!("darshan-{file:016x}")).expect("the name has no blanks"),
        };
        self.push(CallOp::File { communicator: self.own, file, request: None, call }, nanos);
    }

    fn access(&mut self, segment: &Segment, nanos: u64) {
        let direction = if segment.is_write { FileDirection::Write } else { FileDirection::Read };
        let (offset, bytes) = (Some(segment.offset), Bytes::new(segment.bytes));
        self.file(segment.file, FileCall::Access { is_collective: false, direction, offset, bytes }, nanos);
    }
}

/// Returns a time of a log, in seconds from the begin of the job, in nanoseconds.
fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl TraceSource for DarshanSource {
    fn path(&self) -> &Path {
        &self.path
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        Ok(self.log.ranks.into())
    }

    fn read(&self, ranks: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        if !self.log.incomplete.is_empty() {
            let (file, modules) = (self.path.clone(), self.log.incomplete.clone());
            ranks.warn(Warning::Incomplete { file, modules });
        }
        for rank in ranks.wanted() {
            let Some(builder) = ranks.get(rank.into()) else { continue };
            for (op, nanos) in self.steps(rank) {
                let problem = |error| InputError::Darshan {
                    file: self.path.clone(),
                    problem: DarshanError::Access { rank, error },
                };
                let action = builder.resolve(&op).map_err(problem)?;
                builder.push(action, Some(nanos))?;
            }
        }
        Ok(())
    }

    fn locate(&self, _: Rank, _: u64) -> Result<Location, TraceError> {
        Err(TraceError::NoLines { file: self.path.clone() })
    }

    fn fingerprint(&self) -> Result<u64, TraceError> {
        fingerprint(&[&self.path])
    }
}
