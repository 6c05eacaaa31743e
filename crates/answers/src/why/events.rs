//! The first event that differs between two runs, and their critical paths.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use mpi_model::{ActionKind, CriticalPath, Event, EventSink, PathParts, Segment};
use pdes_core::{Progress, Rank, SimTime};
use replay::{RunError, RunSpec, Simulation};
use serde::Serialize;
use trace_mmap::LocationId;

/// Largest number of actions of runs whose events are compared: each is kept in memory.
const MAX_ACTIONS: u64 = 2_000_000;

/// The first event that differs between two runs: that with the earliest end in one of them; at a tie, of the lowest rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstDifference {
    /// The rank.
    pub rank: u32,
    /// Number of the event on this rank, from 0.
    pub index: usize,
    /// The event in the first run; null if the rank has ended there.
    pub one: Option<SeenEvent>,
    /// The event in the second run; null if the rank has ended there.
    pub other: Option<SeenEvent>,
}

/// An event of a rank: a computation or a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeenEvent {
    /// Name of the action.
    pub action: &'static str,
    /// Call site or region; null before the first one.
    pub site: Option<String>,
    /// Beginning \[ps\].
    pub begin_ps: u64,
    /// End \[ps\].
    pub end_ps: u64,
}

/// The critical paths of two runs: the chains of causes that end with the last rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Paths {
    /// Times by part: computation, latency, and so on.
    pub parts: Vec<PathPart>,
    /// Times by kind of action.
    pub calls: Vec<PathPart>,
    /// The path of the second run from the first difference to the end: at most 129 steps, shorter stays on ranks left out.
    pub steps: Vec<Step>,
}

/// A part of the time on two critical paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathPart {
    /// Name of the part.
    pub name: &'static str,
    /// Time on the path of the first run \[ps\].
    pub one_ps: u64,
    /// Time on the path of the second run \[ps\].
    pub other_ps: u64,
}

/// A step of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The rank.
    pub rank: u32,
    /// Beginning \[ps\].
    pub from_ps: u64,
    /// End \[ps\].
    pub to_ps: u64,
}

/// The comparison of the events of two runs.
pub(super) struct ComparedEvents {
    pub(super) first: Option<FirstDifference>,
    pub(super) paths: Option<Paths>,
    /// Why events were not compared.
    pub(super) why_not: Option<String>,
}

/// Replays two runs with all of their events, and compares these.
pub(super) fn compare(specs: &[RunSpec; 2]) -> Result<ComparedEvents, RunError> {
    let not = |why: String| ComparedEvents { first: None, paths: None, why_not: Some(why) };
    if specs.iter().any(|spec| !spec.other_programs.is_empty()) {
        return Ok(not(
            "events and critical paths are compared of one program, the runs have several".to_owned()
        ));
    }
    let mut runs = Vec::new();
    for spec in specs {
        let spec = RunSpec { critical_path: true, fast_forward: false, ..spec.clone() };
        let simulation = Simulation::load(&spec)?;
        let actions = simulation.trace().actions();
        if actions > MAX_ACTIONS {
            return Ok(not(format!(
                "events and critical paths are compared of up to {MAX_ACTIONS} actions, the trace has {actions}"
            )));
        }
        let recorder = Arc::new(Recorder::default());
        let simulation = simulation.with_event_sink(recorder.clone());
        let outcome = simulation.replay(&Progress::new(spec.threads))?;
        runs.push((recorder.states(&simulation), outcome.into_program().findings.critical_path));
    }
    let [(states, path), (other_states, other_path)] = &runs[..] else { unreachable!("two runs") };
    let first = first_difference(states, other_states);
    let from = first.as_ref().map_or(SimTime::ZERO, FirstDifference::begin);
    let paths = path.as_ref().zip(other_path.as_ref()).map(|(one, other)| Paths::of(one, other, from));
    Ok(ComparedEvents { first, paths, why_not: None })
}

/// The states of each rank, in their order.
type States = BTreeMap<Rank, Vec<SeenEvent>>;

/// A state of a rank as it is recorded.
#[derive(Clone, Copy, Debug)]
struct State {
    kind: ActionKind,
    site: Option<LocationId>,
    begin: SimTime,
    end: SimTime,
}

/// Records the states of all ranks.
#[derive(Debug, Default)]
struct Recorder {
    states: Mutex<BTreeMap<Rank, Vec<State>>>,
}

impl EventSink for Recorder {
    fn record(&self, events: &[Event]) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            let Event::State { rank, kind, site, begin, end } = *event else { continue };
            states.entry(rank).or_default().push(State { kind, site, begin, end });
        }
    }

    fn begin_anew(&self) {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Recorder {
    fn states(&self, simulation: &Simulation) -> States {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = |rank: Rank, &State { kind, site, begin, end }: &State| SeenEvent {
            action: kind.name(),
            site: site.map(|site| simulation.trace().rank(rank).location(site).to_owned()),
            begin_ps: begin.as_picos(),
            end_ps: end.as_picos(),
        };
        let of_rank = |(rank, states): (&Rank, &Vec<State>)| {
            (*rank, states.iter().map(|state| seen(*rank, state)).collect())
        };
        states.iter().map(of_rank).collect()
    }
}

fn first_difference(one: &States, other: &States) -> Option<FirstDifference> {
    let ranks = one.keys().chain(other.keys().filter(|rank| !one.contains_key(rank)));
    let differences = ranks.filter_map(|rank| {
        let states = |states: &States| states.get(rank).cloned().unwrap_or_default();
        let (one, other) = (states(one), states(other));
        let index = (0..one.len().max(other.len())).find(|&index| one.get(index) != other.get(index))?;
        let (one, other) = (one.get(index).cloned(), other.get(index).cloned());
        Some(FirstDifference { rank: rank.get(), index, one, other })
    });
    let end = |difference: &FirstDifference| {
        difference.events().map(|event| event.end_ps).min().unwrap_or_default()
    };
    differences.min_by_key(|difference| (end(difference), difference.rank))
}

impl FirstDifference {
    fn events(&self) -> impl Iterator<Item = &SeenEvent> {
        self.one.iter().chain(&self.other)
    }

    fn begin(&self) -> SimTime {
        SimTime::from_picos(self.events().map(|event| event.begin_ps).min().unwrap_or_default())
    }
}

impl Paths {
    fn of(one: &CriticalPath, other: &CriticalPath, from: SimTime) -> Self {
        let parts = |path: &CriticalPath| {
            let PathParts { compute, sleep, library, latency, bandwidth, waiting } = path.parts();
            [
                ("computation", compute),
                ("sleep", sleep),
                ("library", library),
                ("latency", latency),
                ("bandwidth", bandwidth),
                ("contention", waiting),
            ]
        };
        let part = |(name, one_ps, other_ps)| PathPart { name, one_ps, other_ps };
        let pairs = parts(one).into_iter().zip(parts(other));
        let pairs = pairs.map(|((name, one), (_, other))| (name, one.as_picos(), other.as_picos()));
        let mut calls: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
        one.calls().for_each(|(kind, time)| calls.entry(kind.name()).or_default().0 = time.as_picos());
        other.calls().for_each(|(kind, time)| calls.entry(kind.name()).or_default().1 = time.as_picos());
        let calls = calls.into_iter().map(|(name, (one, other))| (name, one, other));
        let step = |segment: Segment| Step {
            rank: segment.rank.get(),
            from_ps: segment.from.as_picos(),
            to_ps: segment.to.as_picos(),
        };
        let is_any = |part: &PathPart| part.one_ps + part.other_ps > 0;
        let mut calls: Vec<PathPart> = calls.map(part).filter(is_any).collect();
        // The sort is stable: equal changes keep the order of their names.
        calls.sort_by_key(|call| std::cmp::Reverse(call.other_ps.abs_diff(call.one_ps)));
        Self {
            parts: pairs.map(part).filter(is_any).collect(),
            calls,
            steps: other.segments().into_iter().filter(|segment| segment.to > from).map(step).collect(),
        }
    }
}
