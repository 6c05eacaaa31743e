//! Diagnosis of a run: efficiencies, and problems that rules find, with the gain of mending them.

mod gain;
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
use pdes_core::{Cluster, Progress, Rank};
use serde::{Deserialize, Serialize};
use trace_mmap::{Trace, TraceError, WriteError, write_with_measured_times};

use crate::concurrent::run_all;
use crate::job::Job;
use crate::report::{site_name, write_json};
use crate::simulation::{Outcome, RunError, Simulation};
use pop::Useful;
pub use pop::{Pop, RegionEfficiency, Scaling};
pub use rules::{Rule, RuleError, Scope};
use structure::RankStructure;
pub use tolerance::{ClassTolerance, Sensitivity, Tolerance, ToleranceLimit};
use variables::{Part, Variables};

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
    /// Simulated time that the program would take less if the hypothesis of the rule came true \[s\]; null if it was not asked for, the
    /// rule has none, or it does not fit the program.
    pub gain_s: Option<f64>,
    /// Advice, with the sites that have most of the problem.
    pub recommendation: String,
    /// Call sites or links, the longest time first.
    pub sites: Vec<String>,
    /// Calls at these sites, or links.
    pub places: Vec<Place>,
    /// Number of ranks that make these calls; of all for a problem of the run or of links.
    pub ranks: usize,
    /// Time of each rank in these calls, or of computation for a problem of the run \[s\]; above 1,024 ranks, the mean of as many
    /// neighbours as leave at most 1,024 values. Empty for links.
    pub rank_times_s: Vec<f64>,
    /// States in a timeline in which the problem is seen: its wait states, or else its calls.
    pub states: Vec<String>,
    #[serde(skip)]
    hypothesis: Option<String>,
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
    /// The trace cannot be loaded.
    #[error("the trace: {0}")]
    Trace(#[from] TraceError),
    /// The trace has no measured times, and there is no platform to replay it on.
    #[error(
        "the trace has no measured times: name a platform with --platform, or describe one under [platform] topology"
    )]
    NoTimes,
    /// A temporary trace cannot be written.
    #[error("a temporary trace: {0}")]
    Write(String),
}

impl From<WriteError> for DiagnosisError {
    fn from(error: WriteError) -> Self {
        Self::Write(error.to_string())
    }
}

impl Diagnosis {
    /// Replays the trace of a job on the processes of a cluster, and once more on an ideal network, and applies rules. The first process
    /// gets the diagnosis. Takes the time of two replays, of which the second is without contention, and a walk through the trace; on one
    /// process both replays run at the same time.
    ///
    /// # Errors
    /// If a replay fails, or an expression of a rule has no value.
    pub fn new(cluster: &mut Cluster, job: &Job, rules: &[Rule]) -> Result<Option<Self>, DiagnosisError> {
        let job = Job { waits: Some(true), ..job.without_outputs() };
        let ideal = job.on_ideal_network();
        let [run, ideal] = if cluster.members() == 1 {
            at_once(&job, &ideal)?
        } else {
            [replay_on(cluster, &job)?, replay_on(cluster, &ideal)?]
        };
        let ((simulation, Some(outcome)), (_, Some(ideal))) = (run, ideal) else { return Ok(None) };
        if cluster.members() == 1 {
            return Self::assemble(&simulation, simulation.trace(), [&outcome, &ideal], rules).map(Some);
        }
        // The processes of a cluster have loaded their own ranks only.
        let trace = trace_tools::load(&job.trace, &job.load_options())?;
        Self::assemble(&simulation, &trace, [&outcome, &ideal], rules).map(Some)
    }

    fn assemble(
        simulation: &Simulation,
        trace: &Trace,
        [outcome, ideal]: [&Outcome; 2],
        rules: &[Rule],
    ) -> Result<Self, DiagnosisError> {
        let job = simulation.job();
        let ranks: Vec<Rank> = (0..trace.ranks()).map(Rank::new).collect();
        let walk =
            |rank: &Rank| Ok::<_, DiagnosisError>(structure::of_rank(trace, *rank, job.mpi.detached_below));
        let structure = run_all(&ranks, job.threads, &AtomicU64::new(0), walk)?;
        trace.integrity().map_err(TraceError::from)?;
        let nodes: Vec<u32> = ranks.iter().map(|&rank| simulation.placement().host(rank).get()).collect();
        let flops = structure.iter().map(RankStructure::all_flops).sum();
        let ideally = Useful::of_outcome(ideal);
        let pop = Pop::new(&Useful::of_outcome(outcome), &ideally, &nodes, flops);
        let measured = Useful::measured(trace);
        let run = variables::of_run(outcome, &pop, pop.nodes);
        let places = variables::places(trace, outcome, &structure, &run);
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
            let found = Problem::find(rule, parts, time);
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
            regions: pop::regions(trace, [outcome, ideal], &nodes, &flops_of_sites(trace, &structure)),
            problems,
            warnings: simulation.warnings(),
        })
    }

    /// Computes the efficiencies of the recorded run of a trace with measured times, whose computations are replayed on an ideal network.
    /// No problems are looked for: wait states are those of a replay on a platform.
    ///
    /// # Errors
    /// If the trace has no measured times, or the replay fails.
    pub fn of_recorded_run(job: &Job) -> Result<Self, DiagnosisError> {
        let trace = trace_tools::load(&job.trace, &job.load_options())?;
        let measured = Useful::measured(&trace).ok_or(DiagnosisError::NoTimes)?;
        let directory = tempfile::tempdir().map_err(|why| DiagnosisError::Write(why.to_string()))?;
        let path = directory.path().join("measured.pdt");
        write_with_measured_times(&trace, &path, &Default::default())?;
        let simulation = Simulation::load(&Job { trace: path, ..job.on_ideal_network() })?;
        let ideal = Useful::of_outcome(&simulation.replay(&Progress::new(job.threads))?);
        let ranks: Vec<Rank> = (0..trace.ranks()).map(Rank::new).collect();
        let nodes: Vec<u32> = ranks.iter().map(|rank| rank.get()).collect();
        let walk = |rank: &Rank| structure::of_rank(&trace, *rank, job.mpi.detached_below).all_flops();
        let pop = Pop::new(&measured, &ideal, &nodes, ranks.iter().map(walk).sum());
        Ok(Self {
            simulated_time_s: pop.time_s,
            ranks: ranks.len(),
            measured_pop: Some(pop.clone()),
            pop,
            scaling: None,
            tolerance: None,
            references: Vec::new(),
            regions: Vec::new(),
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

fn replay_on(cluster: &mut Cluster, job: &Job) -> Result<Replayed, RunError> {
    let simulation = Simulation::load_on(cluster, job, &AtomicU64::new(0))?;
    let outcome = simulation.run(cluster, &Progress::new(job.threads))?;
    Ok((simulation, outcome))
}

/// Replays two jobs on this process at the same time; of two errors, that of the first one counts.
fn at_once(one: &Job, other: &Job) -> Result<[Replayed; 2], RunError> {
    let replay = |job: &Job| replay_on(&mut Cluster::alone(), job);
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
    fn find(rule: &Rule, parts: &[Part], time: f64) -> Result<Option<Self>, String> {
        let mut found: Vec<(Place, Variables)> = Vec::new();
        for Part { site, call, variables } in parts {
            let mut variables = variables.clone();
            if let Some(duration_s) =
                rule.examine(*call, &mut variables)?.filter(|duration_s| *duration_s > 0.0)
            {
                let place = Place { site: site.clone(), call: call.map(str::to_owned), duration_s };
                found.push((place, variables));
            }
        }
        // The sort is stable: places with equal times keep their order.
        found.sort_by(|(one, _), (other, _)| other.duration_s.total_cmp(&one.duration_s));
        let durations = found.iter().map(|(place, _)| place.duration_s);
        let duration_s = match rule.scope {
            // Links are full at the same time.
            Scope::Link => durations.fold(0.0, f64::max),
            Scope::Place | Scope::Run => durations.sum(),
        };
        let share = if time > 0.0 { duration_s / time } else { 0.0 };
        if found.is_empty() || share < rule.least_share {
            return Ok(None);
        }
        let (mut places, variables): (Vec<Place>, Vec<Variables>) = found.into_iter().unzip();
        let hypothesis = gain::hypothesis(rule, &places)?;
        if rule.scope == Scope::Run {
            places.clear();
        }
        let mut sites: Vec<String> = Vec::new();
        for site in places.iter().filter_map(|place| place.site.as_ref()) {
            if !sites.contains(site) {
                sites.push(site.clone());
            }
        }
        let mut states: Vec<String> = rule.duration_variables().to_vec();
        states.retain(|name| WaitState::ALL.iter().any(|state| state.name() == name));
        if states.is_empty() {
            states.extend(places.iter().filter_map(|place| place.call.clone()));
            states.sort();
            states.dedup();
        }
        let recommendation = text::advice(&rule.recommendation, &sites, &places, &variables[0]);
        Ok(Some(Self {
            name: rule.name.clone(),
            description: rule.description.clone(),
            duration_s,
            share,
            gain_s: None,
            recommendation,
            sites,
            places,
            ranks: 0,
            rank_times_s: Vec::new(),
            states,
            hypothesis,
        }))
    }
}
