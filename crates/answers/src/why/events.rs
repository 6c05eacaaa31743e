//! The first event that differs between two runs, and the chains of causes from there to their ends.

mod recorder;

use std::collections::BTreeMap;
use std::sync::Arc;

use mpi_model::{CriticalPath, Excerpt, PathParts};
use pdes_core::{Progress, SimTime};
use replay::{RunError, RunSpec, Simulation};
use serde::Serialize;

use recorder::{RecordedRun, Recorder, States};

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
    /// Times by call site or region from the first difference to the end; from a sample, as the steps.
    pub sites: Vec<PathPart>,
    /// Links by which the chains pass from rank to rank.
    pub links: Vec<PathLink>,
    /// The path of the second run from the first difference to the end: at most 129 steps, shorter stays on ranks left out.
    pub steps: Vec<Step>,
}

/// A part of the time on two critical paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathPart {
    /// Name of the part; empty before the first call site.
    pub name: String,
    /// Time on the path of the first run \[ps\].
    pub one_ps: u64,
    /// Time on the path of the second run \[ps\].
    pub other_ps: u64,
}

/// A link by which critical paths pass from rank to rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathLink {
    /// Name of the link.
    pub name: String,
    /// Number of steps of the first run over it.
    pub one: u64,
    /// Number of steps of the second run over it.
    pub other: u64,
}

/// A step of a critical path: a stay on one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The rank.
    pub rank: u32,
    /// Beginning \[ps\].
    pub from_ps: u64,
    /// End \[ps\].
    pub to_ps: u64,
    /// Action in which the rank is longest; null if none is known.
    pub action: Option<&'static str>,
    /// Call site or region of this action; null before the first one.
    pub site: Option<String>,
    /// The link with the least bandwidth, the first of equal ones, on the route of the message by which the path comes to the rank; null where it
    /// comes by none that was seen.
    pub link: Option<String>,
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
        let simulation =
            simulation.with_event_sink(Excerpt { operations: true, ..Excerpt::default() }, recorder.clone());
        let outcome = simulation.replay(&Progress::new(spec.threads))?;
        let path = outcome.into_program().findings.critical_path;
        runs.push((RecordedRun::new(&recorder, simulation), path));
    }
    let [(one, path), (other, other_path)] = &runs[..] else { unreachable!("two runs") };
    let first = first_difference(&one.states, &other.states);
    let from = first.as_ref().map_or(SimTime::ZERO, FirstDifference::begin);
    let paths = path.as_ref().zip(other_path.as_ref());
    let paths = paths.map(|(path, other_path)| Paths::of([(one, path), (other, other_path)], from));
    Ok(ComparedEvents { first, paths, why_not: None })
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
    fn of(runs: [(&RecordedRun, &CriticalPath); 2], from: SimTime) -> Self {
        let [(_, one), (_, other)] = runs;
        let [chain, steps] = runs.map(|(run, path)| run.chain(path, from));
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
        let part =
            |(name, one_ps, other_ps): (&str, u64, u64)| PathPart { name: name.to_owned(), one_ps, other_ps };
        let pairs = parts(one).into_iter().zip(parts(other));
        let pairs = pairs.map(|((name, one), (_, other))| part((name, one.as_picos(), other.as_picos())));
        let calls = |path: &CriticalPath| {
            path.calls().map(|(kind, time)| (kind.name().to_owned(), time.as_picos())).collect::<Vec<_>>()
        };
        let sites = |chain: &recorder::Chain| chain.sites.clone().into_iter().collect();
        let links = |chain: &recorder::Chain| chain.links.clone().into_iter().collect();
        let named = |(name, [one_ps, other_ps]): (String, [u64; 2])| PathPart { name, one_ps, other_ps };
        Self {
            parts: pairs.filter(|part| part.one_ps + part.other_ps > 0).collect(),
            calls: paired([calls(one), calls(other)]).map(named).collect(),
            sites: paired([sites(&chain), sites(&steps)]).map(named).collect(),
            links: paired([links(&chain), links(&steps)])
                .map(|(name, [one, other])| PathLink { name, one, other })
                .collect(),
            steps: steps.steps,
        }
    }
}

/// Returns the amounts of two runs by name, those that differ most first; those that are zero in both are left out.
fn paired(amounts: [Vec<(String, u64)>; 2]) -> impl Iterator<Item = (String, [u64; 2])> {
    let mut by_name: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (side, amounts) in amounts.into_iter().enumerate() {
        amounts.into_iter().for_each(|(name, amount)| by_name.entry(name).or_default()[side] += amount);
    }
    let mut pairs: Vec<(String, [u64; 2])> =
        by_name.into_iter().filter(|(_, pair)| *pair != [0, 0]).collect();
    // The sort is stable: equal differences keep the order of their names.
    pairs.sort_by_key(|(_, [one, other])| std::cmp::Reverse(one.abs_diff(*other)));
    pairs.into_iter()
}
