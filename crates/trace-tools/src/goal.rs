//! GOAL schedules as programs: the graph of each rank.
//!
//! Messages of one sender, receiver and tag match in the order in which the operations are defined, whatever the graph says, but for
//! those to a rank that receives from any source or with any tag: there time decides. A
//! computation of a nanosecond is a flop, so that it takes as long as in the schedule on a host of 1 Gflop/s.

use std::path::{Path, PathBuf};

use ::goal::{After, Kind, Operation, Schedule};
use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{
    Dependent, GraphFilter, GraphMessage, GraphOperation, Location, OperationGraph, RankBuilders, TraceError,
    TraceSource, WorkMetric,
};

use crate::error::InputError;
use crate::files::fingerprint;

/// A schedule.
#[derive(Debug)]
struct GoalSource {
    path: PathBuf,
    schedule: Schedule,
    /// True for each rank that has receives from any source or with any tag.
    has_wildcards: Box<[bool]>,
}

/// Opens a schedule: text, LogGOPSim's binary form, or an archive.
pub(crate) fn open(path: &Path) -> Result<Box<dyn TraceSource>, TraceError> {
    let schedule = Schedule::load(path, 1).map_err(|error| TraceError::Source(error.into()))?;
    let has_wildcards =
        (0..schedule.extent().ranks).map(|rank| schedule.operations(rank).any(is_wildcard)).collect();
    Ok(Box::new(GoalSource { path: path.to_path_buf(), schedule, has_wildcards }))
}

impl TraceSource for GoalSource {
    fn path(&self) -> &Path {
        &self.path
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        Ok(self.schedule.extent().ranks.into())
    }

    fn work_metric(&self) -> Option<WorkMetric> {
        Some(WorkMetric::Time { rate: 1e9 })
    }

    fn read(&self, ranks: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        for rank in ranks.wanted() {
            let graph = self.graph(rank)?;
            if let Some(builder) = ranks.get(rank.into()) {
                builder.set_graph(graph);
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

impl GoalSource {
    /// Returns the graph of a rank.
    fn graph(&self, rank: u32) -> Result<OperationGraph, TraceError> {
        let mut dependencies = self.schedule.dependencies(rank).peekable();
        let mut dependents = |operation| {
            let mut of_operation = Vec::new();
            while let Some((_, dependent, after)) =
                dependencies.next_if(|(earlier, ..)| *earlier == operation)
            {
                of_operation.push(Dependent { operation: dependent, after_start: after == After::Start });
            }
            of_operation
        };
        let mut numbers = FxHashMap::default();
        let mut operations = Vec::new();
        for (index, operation) in (0..).zip(self.schedule.operations(rank)) {
            let Some(operation) = self.resolve(rank, &operation, &mut numbers) else {
                let (file, kind) = (self.path.clone(), "a send with any tag");
                return Err(InputError::GraphOperation { file, rank, operation: index, kind }.into());
            };
            operations.push((operation, dependents(index)));
        }
        Ok(OperationGraph::new(operations))
    }

    /// Returns an operation of a graph; `None` if no receive can tell its message from others.
    fn resolve(&self, rank: u32, operation: &Operation, numbers: &mut Numbers) -> Option<GraphOperation> {
        let &Operation { kind, size, peer, tag, .. } = operation;
        let bytes = Bytes::new(size);
        let receiver = match kind {
            Kind::Calculate => return Some(GraphOperation::Compute { flops: size as f64 }),
            Kind::Receive => rank,
            Kind::Send => peer?,
        };
        let is_in_order = self.has_wildcards[receiver as usize];
        if kind == Kind::Receive && is_in_order {
            let source = peer.map(Rank::new);
            return Some(GraphOperation::ReceiveFirst(GraphFilter { source, tag, bytes }));
        }
        let (peer, tag) = (peer?, tag?);
        let next = numbers.entry((kind, peer, tag)).or_default();
        let number = (!is_in_order).then_some(*next);
        *next = next.wrapping_add(1);
        let message = GraphMessage { peer: Rank::new(peer), tag, number, bytes };
        Some(match kind {
            Kind::Receive => GraphOperation::Receive(message),
            _ => GraphOperation::Send(message),
        })
    }
}

fn is_wildcard(operation: Operation) -> bool {
    operation.kind == Kind::Receive && (operation.peer.is_none() || operation.tag.is_none())
}

/// Numbers of messages so far, by kind, peer and tag.
type Numbers = FxHashMap<(Kind, u32, u32), u32>;
