//! Search for changes: collective algorithms and hosts of ranks with which a run takes less time.

mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use mpi_model::ActionKind;
use mpi_model::collective::{Operation, Selector};
use netmodel::HostId;
use pdes_core::Rank;
use replay::{RunError, RunSpec, Simulation, run_all};
use serde::Serialize;
use tempfile::TempDir;
use trace_tools::transform::{CountedTraffic, Placement};

use crate::caveat::Caveat;
use crate::placement::{PlaceError, place};
use crate::replayed::{Base, Replayed, plain, replay};

/// Number of exchanges of two ranks that are tried before the best of them is taken.
const EXCHANGES: usize = 64;

/// A part of a run that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freedom {
    /// Algorithms of collective operations.
    Algorithms,
    /// Hosts of ranks.
    Placement,
}

impl Freedom {
    /// All that may be changed.
    pub const ALL: [Self; 2] = [Self::Algorithms, Self::Placement];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Algorithms => "algorithms",
            Self::Placement => "placement",
        }
    }
}

/// Changes of a run, each of which makes it shorter.
#[derive(Clone, Debug, Serialize)]
pub struct Optimum {
    /// `"pdes-replay optimum"`.
    pub format: &'static str,
    /// Version of the format.
    pub version: u32,
    /// Path of the trace.
    pub trace: String,
    /// Path of the platform, or `"inline"`.
    pub platform: String,
    /// Network model.
    pub model: &'static str,
    /// Run time without changes \[ps\].
    pub before_ps: u64,
    /// Run time with all changes \[ps\].
    pub after_ps: u64,
    /// Changes in the order in which they were found, each in addition to those before.
    pub changes: Vec<Change>,
    /// Settings of the configuration that make the changes of algorithms, such as `mpi.bcast = "binomial_tree"`.
    pub settings: Vec<String>,
    /// Host of each rank; null if ranks stay.
    pub hosts: Option<Vec<String>>,
    /// Number of replays.
    pub replays: usize,
    /// True if no change of one algorithm and no exchange of two ranks saves more; false if replays ran out.
    pub is_local_optimum: bool,
    /// Algorithms that cannot be replayed with the program, each with the reason.
    pub refused: BTreeMap<String, String>,
    /// Warnings that a user should know before trusting the run.
    pub warnings: Vec<String>,
    /// Known difference between the model and the machine.
    pub caveat: Caveat,
}

/// A change that saves time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Part that is changed.
    pub name: String,
    /// Run time with this change and those before \[ps\].
    pub time_ps: u64,
    /// Time that the change saves in addition to those before \[ps\].
    pub saved_ps: u64,
}

/// The reason why no changes can be sought.
#[derive(Debug, thiserror::Error)]
pub enum OptimumError {
    /// The run cannot be replayed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Ranks cannot be placed otherwise.
    #[error(transparent)]
    Place(#[from] Box<PlaceError>),
    /// A hosts file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

impl Optimum {
    /// Seeks changes that `freedoms` allow, with up to `budget` replays, `at_once` at a time. `done` counts those that are done.
    ///
    /// Each collective operation of the program gets the algorithm with which the run is shortest, one operation after the other, until
    /// none helps. Ranks are mapped greedily and by bisection, and then exchanged in pairs, as long as that helps.
    ///
    /// # Errors
    /// Returns an error if the run cannot be replayed, or a temporary file not be written.
    pub fn of(
        spec: &RunSpec,
        freedoms: &[Freedom],
        budget: usize,
        caveat: Caveat,
        at_once: usize,
        done: &AtomicU64,
    ) -> Result<Self, OptimumError> {
        let spec = plain(spec);
        let mut search = Search::new(&spec, budget, (at_once, done))?;
        let before_ps = search.best_ps;
        loop {
            let known = search.best_ps;
            if freedoms.contains(&Freedom::Algorithms) {
                search.choose_algorithms()?;
            }
            if freedoms.contains(&Freedom::Placement) && !search.is_exhausted() {
                search.move_ranks()?;
            }
            if search.best_ps == known || search.is_exhausted() {
                break;
            }
        }
        let setting =
            |(operation, algorithm): &(Operation, &str)| format!("mpi.{} = {algorithm:?}", operation.name());
        let host = |host: &HostId| search.simulation.platform().host(*host).name.clone();
        Ok(Self {
            format: "pdes-replay optimum",
            version: 1,
            trace: spec.trace.display().to_string(),
            platform: spec.platform.to_string(),
            model: spec.model.key,
            before_ps,
            after_ps: search.best_ps,
            settings: search.best.algorithms.iter().map(setting).collect(),
            hosts: search.best.hosts.as_ref().map(|hosts| hosts.iter().map(host).collect()),
            replays: search.known.len(),
            is_local_optimum: !search.is_exhausted(),
            changes: search.changes,
            refused: search.refused,
            warnings: search.warnings,
            caveat,
        })
    }
}

/// Changes of a run that are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Variant {
    /// Algorithms, in the order of operations.
    algorithms: Vec<(Operation, &'static str)>,
    /// Host of each rank; `None` if ranks stay.
    hosts: Option<Vec<HostId>>,
}

impl Variant {
    fn with_algorithm(&self, operation: Operation, algorithm: &'static str) -> Self {
        let mut algorithms = self.algorithms.clone();
        algorithms.retain(|(of, _)| *of != operation);
        algorithms.push((operation, algorithm));
        algorithms.sort_unstable();
        Self { algorithms, hosts: self.hosts.clone() }
    }

    fn with_hosts(&self, hosts: Vec<HostId>) -> Self {
        Self { algorithms: self.algorithms.clone(), hosts: Some(hosts) }
    }
}

/// A search for a shorter run.
struct Search<'a> {
    spec: &'a RunSpec,
    simulation: Simulation,
    /// Operations of the program whose algorithms can be chosen.
    operations: Vec<Operation>,
    budget: usize,
    at_once: usize,
    done: &'a AtomicU64,
    /// Run times \[ps\]; `None` if the variant cannot be replayed.
    known: BTreeMap<Variant, Option<u64>>,
    best: Variant,
    best_ps: u64,
    changes: Vec<Change>,
    refused: BTreeMap<String, String>,
    warnings: Vec<String>,
    /// Hosts files of variants.
    directory: TempDir,
}

impl<'a> Search<'a> {
    fn new(
        spec: &'a RunSpec,
        budget: usize,
        (at_once, done): (usize, &'a AtomicU64),
    ) -> Result<Self, OptimumError> {
        let Base { simulation, outcome, replayed: Replayed { time_ps: best_ps, .. }, warnings } =
            Base::of(spec)?;
        let has = |kind: ActionKind| outcome.program().statistics.iter().any(|rank| rank.count(kind) > 0);
        // The calls of non-blocking operations are of one kind.
        let has_any = has(ActionKind::NonBlocking);
        let is_used = |operation: &Operation| {
            let name = operation.name().replace('_', "");
            has_any || ActionKind::ALL.into_iter().any(|kind| kind.name() == name && has(kind))
        };
        let directory = tempfile::tempdir();
        let directory =
            directory.map_err(|source| OptimumError::Write { path: std::env::temp_dir(), source })?;
        Ok(Self {
            spec,
            operations: Operation::ALL.into_iter().filter(is_used).collect(),
            simulation,
            budget,
            at_once,
            done,
            known: BTreeMap::from([(Variant::default(), Some(best_ps))]),
            best: Variant::default(),
            best_ps,
            changes: Vec::new(),
            refused: BTreeMap::new(),
            warnings,
            directory,
        })
    }

    fn is_exhausted(&self) -> bool {
        self.known.len() >= self.budget
    }

    /// Returns the run with a variant's changes; its hosts file has a number.
    fn spec_of(&self, variant: &Variant, number: usize) -> Result<RunSpec, OptimumError> {
        let mut spec = self.spec.clone();
        for (operation, algorithm) in &variant.algorithms {
            spec.mpi.collectives.choose(*operation, algorithm).map_err(RunError::from)?;
        }
        if let Some(hosts) = &variant.hosts {
            let path = self.directory.path().join(format!("{number}.txt"));
            let platform = self.simulation.platform();
            let names: String = hosts.iter().map(|host| platform.host(*host).name.clone() + "\n").collect();
            std::fs::write(&path, names)
                .map_err(|source| OptimumError::Write { path: path.clone(), source })?;
            spec.hosts = Some(path);
        }
        Ok(spec)
    }

    /// Replays variants that are not known, the first ones if not all are within the budget.
    fn replay(&mut self, variants: &[(String, Variant)]) -> Result<(), OptimumError> {
        let mut unknown: Vec<&(String, Variant)> = Vec::new();
        for named in variants {
            if !self.known.contains_key(&named.1) && !unknown.iter().any(|(_, variant)| *variant == named.1) {
                unknown.push(named);
            }
        }
        unknown.truncate(self.budget.saturating_sub(self.known.len()));
        let numbered: Vec<(usize, &(String, Variant))> = unknown.into_iter().enumerate().collect();
        let times = run_all(&numbered, self.at_once, self.done, |(number, (_, variant))| {
            let spec = self.spec_of(variant, *number)?;
            Ok::<_, OptimumError>(replay(&spec).map(|found| found.time_ps).map_err(|error| error.to_string()))
        })?;
        for ((_, (name, variant)), time) in numbered.into_iter().zip(times) {
            if let Err(why) = &time {
                self.refused.insert(name.clone(), why.clone());
            }
            self.known.insert(variant.clone(), time.ok());
        }
        Ok(())
    }

    /// Replays variants, and takes the shortest if it is shorter than the best so far: the first of equal ones. Returns whether it is.
    fn take_best(&mut self, variants: &[(String, Variant)]) -> Result<bool, OptimumError> {
        self.replay(variants)?;
        let times = variants.iter().filter_map(|named| Some((self.known.get(&named.1).copied()??, named)));
        match times.min_by_key(|(time, _)| *time) {
            Some((time_ps, (name, variant))) if time_ps < self.best_ps => {
                let saved_ps = self.best_ps - time_ps;
                self.changes.push(Change { name: name.clone(), time_ps, saved_ps });
                (self.best, self.best_ps) = (variant.clone(), time_ps);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Chooses the best algorithm of each operation, until none helps.
    fn choose_algorithms(&mut self) -> Result<(), OptimumError> {
        // Closed forms, and trials of all algorithms in one run, are none of a library.
        let is_real = |name: &&str| {
            ![Selector::Automatic, Selector::Analytic].iter().any(|selector| selector.name() == *name)
        };
        loop {
            let known = self.best_ps;
            for operation in self.operations.clone() {
                let named = |algorithm: &'static str| {
                    (
                        format!("{} by {algorithm}", operation.name()),
                        self.best.with_algorithm(operation, algorithm),
                    )
                };
                let variants: Vec<_> = operation.algorithms().filter(is_real).map(named).collect();
                self.take_best(&variants)?;
            }
            if self.best_ps == known || self.is_exhausted() {
                return Ok(());
            }
        }
    }

    /// Returns the host of each rank in the best variant.
    fn hosts(&self) -> Vec<HostId> {
        let own = |rank| self.simulation.placement().host(Rank::new(rank));
        let ranks = self.simulation.trace().ranks();
        self.best.hosts.clone().unwrap_or_else(|| (0..ranks).map(own).collect())
    }

    /// Maps ranks anew, and exchanges two at a time until none of these exchanges helps.
    fn move_ranks(&mut self) -> Result<(), OptimumError> {
        let mut mapped = Vec::new();
        for (name, mapping) in [
            ("greedy mapping of ranks", Placement::Greedy(CountedTraffic::All)),
            ("mapping of ranks by bisection", Placement::Bisection(CountedTraffic::All)),
        ] {
            match place(&self.spec_of(&self.best, 0)?, &[&mapping]) {
                Ok((names, _)) => {
                    let platform = self.simulation.platform();
                    let host = |name: &String| platform.host_by_name(name).expect("hosts of the platform");
                    mapped.push((name.to_owned(), self.best.with_hosts(names.iter().map(host).collect())));
                }
                Err(error) if error.is_misuse() => {
                    self.refused.insert(name.to_owned(), error.to_string());
                }
                Err(error) => return Err(Box::new(error).into()),
            }
        }
        self.take_best(&mapped)?;
        let ranks = self.simulation.trace().ranks() as usize;
        let pairs: Vec<(usize, usize)> =
            (0..ranks).flat_map(|one| (one + 1..ranks).map(move |other| (one, other))).collect();
        // Goes round the pairs, a number of them at a time, until a whole round has not helped.
        let (mut next, mut failed) = (0, 0);
        while failed < pairs.len() && !self.is_exhausted() {
            let hosts = self.hosts();
            let count = EXCHANGES.min(pairs.len() - failed);
            let tried = (0..count).map(|index| pairs[(next + index) % pairs.len()]);
            let moved = tried.filter(|&(one, other)| hosts[one] != hosts[other]).map(|(one, other)| {
                let mut hosts = hosts.clone();
                hosts.swap(one, other);
                (format!("ranks {one} and {other} change places"), self.best.with_hosts(hosts))
            });
            let moved: Vec<_> = moved.collect();
            failed = if self.take_best(&moved)? { 0 } else { failed + count };
            next = (next + count) % pairs.len();
        }
        Ok(())
    }
}
