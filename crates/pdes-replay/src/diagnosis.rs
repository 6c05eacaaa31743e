//! Diagnosis of a run: efficiencies, and problems that rules find, with the gain of mending them.

mod delays;
mod gain;
mod imbalance;
#[cfg(feature = "pictures")]
mod page;
mod pop;
mod ranks;
mod rules;
mod structure;
mod talp;
mod text;
mod tolerance;
mod variables;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use mpi_model::WaitState;
use outputs::write_json;
use pdes_core::{Cluster, Progress, Rank};
use replay::{Outcome, RunError, RunSpec, Simulation, run_all};
use serde::{Deserialize, Serialize};
use trace_mmap::{LoadOptions, Trace, TraceError, WriteError, write_with_measured_times};

use crate::config::{Config, ConfigError};
use crate::report::site_name;
use delays::{Delay, Member};
use gain::{MendedPlaces, Mending};
pub use pop::{Pop, RegionEfficiency, Scaling};
use pop::{RegionTimes, Useful};
pub use rules::{Relation, Rule, RuleError, Scope};
use structure::RankStructure;
pub use tolerance::{ClassTolerance, Sensitivity, Tolerance, ToleranceLimit};
use variables::Part;

/// A diagnosis, as written in JSON.
///
/// # Stability
/// Fields keep their names and meanings; new ones may be added.
#[derive(Debug, Serialize, Deserialize)]
pub struct Diagnosis {
    /// End time of the last rank \[s\]; of a recorded run its measured time.
    pub simulated_time_s: f64,
    /// Number of ranks.
    pub ranks: usize,
    /// Efficiencies.
    pub pop: Pop,
    /// Efficiencies of the recorded run; null if the trace has no measured times.
    pub measured_pop: Option<Pop>,
    /// Scaling from the first reference run; null without one.
    pub scaling: Option<Scaling>,
    /// Dependence of the run time on the network; null if it was not asked for.
    pub tolerance: Option<Tolerance>,
    /// Efficiencies of the regions of the program, those that take most time first.
    pub regions: Vec<RegionEfficiency>,
    /// Problems, those whose mending gains most first, then in the order of their shares.
    pub problems: Vec<Problem>,
    /// Warnings that a user should know before trusting the result.
    pub warnings: Vec<String>,
    /// Names and efficiencies of the runs with which this one is compared.
    #[serde(skip)]
    references: Vec<(String, Pop)>,
}

/// A problem that a rule has found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// Name of the rule.
    pub name: String,
    /// The problem, in a sentence.
    pub description: String,
    /// Its time \[s\], summed over ranks; of a problem of links that of the link which has most.
    pub duration_s: f64,
    /// This time as a part of the time of all ranks, the run time times their number; of links in the run time.
    pub share: f64,
    /// Simulated time that the program would take less if the hypothesis of the rule came true \[s\]; null if it was not asked for, or is
    /// not known.
    pub gain_s: Option<f64>,
    /// Reason why the gain is not known; null if it is, or was not asked for.
    #[serde(default)]
    pub no_gain: Option<String>,
    /// The hypothesis that was replayed for the gain, in a line; null if none was. Problems with the same one have the same gain.
    #[serde(default)]
    pub hypothesis: Option<String>,
    /// Advice, with the sites that have most of the problem.
    pub recommendation: String,
    /// Call sites or links, the longest time first.
    pub sites: Vec<String>,
    /// Calls at these sites, or links.
    pub places: Vec<Place>,
    /// The same time by the places of those for whom ranks wait, of problems of pairs of places; else empty.
    #[serde(default)]
    pub pairs: Vec<PlacePair>,
    /// Number of ranks that make these calls; of all for a problem of the run or of links.
    pub ranks: usize,
    /// Time of each rank in these calls, or of computation for a problem of the run \[s\]; above 1,024 ranks, the mean of as many
    /// neighbours as leave at most 1,024 values. Empty for links.
    pub rank_times_s: Vec<f64>,
    /// States in a timeline in which the problem is seen: its wait states, or else its calls.
    pub states: Vec<String>,
    #[serde(skip)]
    mending: Mending,
}

/// Calls of one kind at one call site, or a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// File and line, or path of a region, null before the first call site; name of a link.
    pub site: Option<String>,
    /// Name of the action in a trace; null for links.
    pub call: Option<String>,
    /// Time of the problem here \[s\].
    pub duration_s: f64,
}

/// Two places of a problem, such as that of a wait, and that of what the late rank did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacePair {
    /// Site of the first place, as in [`Place::site`].
    pub site: Option<String>,
    /// Name of its action.
    pub call: Option<String>,
    /// Site of the other place.
    pub other_site: Option<String>,
    /// Name of its action; null where the place is not known.
    pub other_call: Option<String>,
    /// Time of the problem of this pair \[s\].
    pub duration_s: f64,
}

/// A diagnosis is not possible.
#[derive(Debug, thiserror::Error)]
pub enum DiagnosisError {
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An expression of a rule has no value, or its hypothesis is none.
    #[error("the rule {rule:?}: {message}")]
    Rule {
        /// Name of the rule.
        rule: String,
        /// The expression, and the error in its value.
        message: String,
    },
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The trace cannot be loaded.
    #[error("the trace: {0}")]
    Trace(#[from] TraceError),
    /// The trace has no measured times, and there is no platform to replay it on.
    #[error(
        "the trace has no measured times: name a platform with --platform, or describe one under [platform] topology"
    )]
    NoTimes,
    /// A parameter cannot be changed.
    #[error(transparent)]
    Parameter(#[from] answers::MessageError),
    /// A temporary trace cannot be written.
    #[error("a temporary trace: {0}")]
    Write(String),
}

impl From<WriteError> for DiagnosisError {
    fn from(error: WriteError) -> Self {
        Self::Write(error.to_string())
    }
}

/// The run that a diagnosis is about.
#[derive(Debug)]
pub enum DiagnosedRun {
    /// A replay on a platform.
    Replay(RunSpec),
    /// The recorded run of a trace with measured times, whose computations are replayed on an ideal network.
    Recorded(RunSpec),
}

impl DiagnosedRun {
    /// Returns the run of a configuration. Without a platform it is the recorded one, and the configuration gets a host for each rank.
    ///
    /// # Errors
    /// If the configuration is invalid, or the trace cannot be opened.
    pub fn of(config: &mut Config) -> Result<Self, DiagnosisError> {
        let has_platform = config.section("platform").is_some_and(|platform| !platform.is_empty());
        // Without a trace, the configuration says what is missing.
        let path = config.text("trace", "path").filter(|_| !has_platform);
        let Some(path) = path else { return Ok(Self::Replay(config.clone().resolve()?)) };
        let ranks = trace_tools::open(path.as_ref(), &LoadOptions::default())?.ranks();
        let mut topology = toml::Table::new();
        topology.insert("hosts".to_owned(), i64::from(ranks).into());
        for (key, value) in
            [("kind", "cluster"), ("speed", "1Gf"), ("bandwidth", "1GBps"), ("latency", "1us")]
        {
            topology.insert(key.to_owned(), value.into());
        }
        config.insert("platform", "topology", topology.into());
        Ok(Self::Recorded(config.clone().resolve()?))
    }

    /// Returns the specification of the run.
    pub fn spec(&self) -> &RunSpec {
        let (Self::Replay(spec) | Self::Recorded(spec)) = self;
        spec
    }
}

impl Diagnosis {
    /// Diagnoses a run, as [`new`](Self::new) or, on the first process, as [`of_recorded_run`](Self::of_recorded_run).
    ///
    /// # Errors
    /// As these.
    pub fn of(
        cluster: &mut Cluster,
        run: &DiagnosedRun,
        rules: &[Rule],
    ) -> Result<Option<Self>, DiagnosisError> {
        match run {
            DiagnosedRun::Replay(spec) => Self::new(cluster, spec, rules),
            DiagnosedRun::Recorded(spec) if cluster.member() == 0 => Self::of_recorded_run(spec).map(Some),
            DiagnosedRun::Recorded(_) => Ok(None),
        }
    }

    /// Replays the trace of a run on the processes of a cluster, and once more on an ideal network, and applies rules. The first process
    /// gets the diagnosis. Takes the time of two replays, of which the second is without contention, and a walk through the trace; on one
    /// process both replays run at the same time.
    ///
    /// # Errors
    /// If a replay fails, or an expression of a rule has no value.
    pub fn new(
        cluster: &mut Cluster,
        spec: &RunSpec,
        rules: &[Rule],
    ) -> Result<Option<Self>, DiagnosisError> {
        let spec = RunSpec { waits: Some(true), causes: true, ..spec.without_outputs() };
        let ideal = spec.on_ideal_network();
        let [run, ideal] = if cluster.members() == 1 {
            at_once(&spec, &ideal)?
        } else {
            [replay_on(cluster, &spec)?, replay_on(cluster, &ideal)?]
        };
        let ((simulation, Some(outcome)), (_, Some(ideal))) = (run, ideal) else { return Ok(None) };
        if cluster.members() == 1 {
            return Self::assemble(&simulation, simulation.trace(), [&outcome, &ideal], rules).map(Some);
        }
        // The processes of a cluster have loaded their own ranks only.
        let trace = trace_tools::load(&spec.trace, &spec.load_options())?;
        Self::assemble(&simulation, &trace, [&outcome, &ideal], rules).map(Some)
    }

    fn assemble(
        simulation: &Simulation,
        trace: &Trace,
        [outcome, ideal]: [&Outcome; 2],
        rules: &[Rule],
    ) -> Result<Self, DiagnosisError> {
        let spec = simulation.spec();
        let ranks: Vec<Rank> = (0..trace.ranks()).map(Rank::new).collect();
        let walk =
            |rank: &Rank| Ok::<_, DiagnosisError>(structure::of_rank(trace, *rank, spec.mpi.detached_below));
        let structure = run_all(&ranks, spec.threads, &AtomicU64::new(0), walk)?;
        trace.integrity().map_err(TraceError::from)?;
        let nodes: Vec<u32> = ranks.iter().map(|&rank| simulation.placement().host(rank).get()).collect();
        let flops = structure.iter().map(RankStructure::all_flops).sum();
        let ideally = Useful::of_outcome(ideal);
        let pop = Pop::new(&Useful::of_outcome(outcome), &ideally, &nodes, flops);
        let measured = Useful::measured(trace);
        let run = variables::of_run(outcome, &pop, pop.nodes);
        let places = variables::places(trace, [outcome, ideal], &structure, &run);
        let delays = delays::delays(trace, outcome, &places);
        let work = variables::unequal_work(&places);
        let links = variables::links(simulation, outcome, &run);
        let whole = [Part { site: None, call: None, variables: run }];
        let all = pop.time_s * ranks.len() as f64;
        let mut problems = Vec::new();
        for rule in rules {
            let (parts, time) = match rule.scope {
                Scope::Place => (&places[..], all),
                Scope::Link => (&links[..], pop.time_s),
                Scope::Run => (&whole[..], all),
            };
            let found = Problem::find(rule, (parts, &work), &delays, time);
            problems
                .extend(found.map_err(|message| DiagnosisError::Rule { rule: rule.name.clone(), message })?);
        }
        ranks::add_times(&mut problems, trace, outcome);
        problems.sort_by(|one, other| other.share.total_cmp(&one.share));
        Ok(Self {
            simulated_time_s: pop.time_s,
            ranks: ranks.len(),
            measured_pop: measured.map(|times| Pop::new(&times, &ideally, &nodes, flops)),
            pop,
            scaling: None,
            tolerance: None,
            references: Vec::new(),
            regions: {
                let [run, ideal] =
                    [outcome, ideal].map(|outcome| RegionTimes::of_outcome(trace, outcome, &nodes));
                pop::regions(run, &ideal, &flops_of_sites(trace, &structure))
            },
            problems,
            warnings: [simulation.warnings(), simulation.outcome_warnings(outcome)].concat(),
        })
    }

    /// Computes the efficiencies of the recorded run of a trace with measured times, whose computations are replayed on an ideal network.
    /// No problems are looked for: wait states are those of a replay on a platform.
    ///
    /// # Errors
    /// If the trace has no measured times, or the replay fails.
    pub fn of_recorded_run(spec: &RunSpec) -> Result<Self, DiagnosisError> {
        let trace = trace_tools::load(&spec.trace, &spec.load_options())?;
        let measured = Useful::measured(&trace).ok_or(DiagnosisError::NoTimes)?;
        let directory = tempfile::tempdir().map_err(|why| DiagnosisError::Write(why.to_string()))?;
        let path = directory.path().join("measured.pdt");
        write_with_measured_times(&trace, &path, &Default::default())?;
        let simulation = Simulation::load(&RunSpec { trace: path.into(), ..spec.on_ideal_network() })?;
        let ideal = simulation.replay(&Progress::new(spec.threads))?;
        let nodes: Vec<u32> = (0..trace.ranks()).collect();
        let walk = |&rank: &u32| structure::of_rank(&trace, Rank::new(rank), spec.mpi.detached_below);
        let structure: Vec<RankStructure> = nodes.iter().map(walk).collect();
        let flops = structure.iter().map(RankStructure::all_flops).sum();
        let pop = Pop::new(&measured, &Useful::of_outcome(&ideal), &nodes, flops);
        let regions = RegionTimes::measured(&trace, &nodes).ok_or(DiagnosisError::NoTimes)?;
        let ideal = RegionTimes::of_outcome(&trace, &ideal, &nodes);
        Ok(Self {
            simulated_time_s: pop.time_s,
            ranks: nodes.len(),
            measured_pop: Some(pop.clone()),
            pop,
            scaling: None,
            tolerance: None,
            references: Vec::new(),
            regions: pop::regions(regions, &ideal, &flops_of_sites(&trace, &structure)),
            problems: Vec::new(),
            warnings: simulation.warnings(),
        })
    }

    /// Compares the run with named runs whose efficiencies are known; scaling is that from the first one.
    pub fn compare_with(&mut self, references: Vec<(String, Pop)>) {
        self.scaling = references.first().map(|(_, first)| self.pop.scaling_from(first));
        self.references = references;
    }

    /// Reads a diagnosis that was written as JSON.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a diagnosis.
    pub fn from_path(path: &Path) -> std::io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    /// Writes the diagnosis as JSON.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_json(&self, path: &Path) -> std::io::Result<()> {
        write_json(self, path)
    }
}

/// A simulation, and its outcome on the first process of a cluster.
type Replayed = (Simulation, Option<Outcome>);

fn replay_on(cluster: &mut Cluster, spec: &RunSpec) -> Result<Replayed, RunError> {
    let simulation = Simulation::load_on(cluster, spec, &AtomicU64::new(0))?;
    let outcome = simulation.run(cluster, &Progress::new(spec.threads))?;
    Ok((simulation, outcome))
}

/// Replays two runs on this process at the same time; of two errors, that of the first one counts.
fn at_once(one: &RunSpec, other: &RunSpec) -> Result<[Replayed; 2], RunError> {
    let replay = |spec: &RunSpec| replay_on(&mut Cluster::alone(), spec);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| replay(other));
        let one = replay(one);
        let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok([one?, other?])
    })
}

/// Returns the computation of a program by call site \[flop\].
fn flops_of_sites(trace: &Trace, structure: &[RankStructure]) -> BTreeMap<Option<String>, f64> {
    let mut found = BTreeMap::new();
    for (rank, structure) in (0..).map(Rank::new).zip(structure) {
        for (site, flops) in &structure.flops {
            *found.entry(site.map(|site| site_name(trace, rank, site))).or_default() += flops;
        }
    }
    found
}

impl Problem {
    /// Applies a rule to parts of a run, whose time is given \[s\]; returns `None` if the problem is not there, or too short.
    fn find(
        rule: &Rule,
        (parts, work): (&[Part], &[Option<String>]),
        delays: &[Delay],
        time: f64,
    ) -> Result<Option<Self>, String> {
        let found = delays::members(rule, parts, delays)?;
        let durations = found.iter().map(|member| member.duration_s);
        let duration_s = match rule.scope {
            // Links are full at the same time.
            Scope::Link => durations.fold(0.0, f64::max),
            Scope::Place | Scope::Run => durations.sum(),
        };
        let share = if time > 0.0 { duration_s / time } else { 0.0 };
        if found.is_empty() || share < rule.least_share {
            return Ok(None);
        }
        let mut places = places_of(&found);
        let pairs: Vec<PlacePair> =
            if rule.join().is_some() { found.iter().map(PlacePair::of).collect() } else { Vec::new() };
        let mending = gain::mending(rule, MendedPlaces { own: &places, pairs: &pairs, work })?;
        if rule.scope == Scope::Run {
            places.clear();
        }
        let sites = unique(places.iter().filter_map(|place| place.site.as_ref()));
        let is_state = |name: &&&String| WaitState::ALL.iter().any(|state| state.name() == name.as_str());
        let states = rule.variables().map(|names| unique(names.iter().filter(is_state).copied()));
        let mut states = states.into_iter().find(|states| !states.is_empty()).unwrap_or_default();
        if states.is_empty() {
            states.extend(places.iter().filter_map(|place| place.call.clone()));
            states.sort();
            states.dedup();
        }
        let names = [text::names(&sites, &places), text::other_names(&pairs)];
        let recommendation = text::advice(&rule.recommendation, &names, &found[0].variables);
        Ok(Some(Self {
            name: rule.name.clone(),
            description: rule.description.clone(),
            duration_s,
            share,
            gain_s: None,
            no_gain: None,
            hypothesis: None,
            recommendation,
            sites,
            places,
            pairs,
            ranks: 0,
            rank_times_s: Vec::new(),
            states,
            mending,
        }))
    }
}

impl PlacePair {
    fn of(member: &Member) -> Self {
        let other = member.other;
        Self {
            site: member.part.site.clone(),
            call: member.part.call.map(str::to_owned),
            other_site: other.and_then(|other| other.site.clone()),
            other_call: other.and_then(|other| other.call).map(str::to_owned),
            duration_s: member.duration_s,
        }
    }
}

/// Returns the places of the members of a problem, the first ones of pairs, with the sums of their durations, the longest first.
fn places_of(members: &[Member]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let mut numbers = BTreeMap::new();
    for Member { part, duration_s, .. } in members {
        let number = *numbers.entry((&part.site, part.call)).or_insert(places.len());
        match places.get_mut(number) {
            Some(place) => place.duration_s += duration_s,
            None => places.push(Place {
                site: part.site.clone(),
                call: part.call.map(str::to_owned),
                duration_s: *duration_s,
            }),
        }
    }
    places.sort_by(|one, other| other.duration_s.total_cmp(&one.duration_s));
    places
}

/// Returns different names, in the order of their first occurrence.
fn unique<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut different: Vec<String> = Vec::new();
    for name in names {
        if !different.contains(name) {
            different.push(name.clone());
        }
    }
    different
}
