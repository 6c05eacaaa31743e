//! Causes of the difference of two runs: the part of it that each part of their configurations has.

mod events;
mod factor;
mod machines;
mod text;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use replay::{Epoch, Model, Parallelism, RunError, RunSpec, run_all};
use serde::Serialize;

use crate::caveat::Caveat;
use crate::replayed::{Base, Replayed, replay};
use crate::shapley::{Changes, Plan};
pub use events::{FirstDifference, PathLink, PathPart, Paths, Step};
pub use factor::Factor;
use machines::{Machines, Side};

/// Causes for which the second of two runs takes longer, or less, than the first.
///
/// ```
/// use std::sync::atomic::AtomicU64;
///
/// use answers::{Caveat, Why};
/// # fn why(one: &replay::RunSpec, other: &replay::RunSpec) -> Result<(), Box<dyn std::error::Error>> {
/// let why = Why::of([one, other], &[], Caveat::default(), 2, &AtomicU64::new(0))?;
/// let parts: i64 = why.causes.iter().map(|cause| cause.time_ps).sum();
/// assert_eq!(parts, why.difference_ps);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// `"pdes-replay why"`.
    pub format: &'static str,
    /// Version of the format.
    pub version: u32,
    /// The two runs.
    pub runs: [ComparedRun; 2],
    /// Run time of the second run less that of the first \[ps\]: the sum of the parts of all causes.
    pub difference_ps: i64,
    /// The part of it that is there with contention only \[ps\]; null unless both runs have contention.
    pub contention_ps: Option<i64>,
    /// Causes, those with the largest parts first.
    pub causes: Vec<Cause>,
    /// Number of orders of the changes that were sampled; null if all were taken.
    pub sampled_orders: Option<usize>,
    /// Number of replays.
    pub replays: u64,
    /// The first event that differs; null if none does, or events were not compared.
    pub first_difference: Option<FirstDifference>,
    /// Critical paths of both runs; null if they were not compared.
    pub paths: Option<Paths>,
    /// Why events and critical paths were not compared; null if they were.
    pub not_compared: Option<String>,
    /// Warnings that a user should know before trusting the two runs.
    pub warnings: Vec<String>,
    /// Known difference between the model and the machine.
    pub caveat: Caveat,
}

/// A run that is compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// Path of the trace.
    pub trace: String,
    /// Path of the platform, or `"inline"`.
    pub platform: String,
    /// Network model.
    pub model: &'static str,
    /// Run time \[ps\], exact.
    pub simulated_time_ps: u64,
}

/// A part of the difference of two run times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// Name of what differs: one factor, or several that are changed together.
    pub name: String,
    /// Its part of the difference \[ps\]: the mean, over all orders of the changes, of what this change adds.
    pub time_ps: i64,
    /// Standard error of the part \[ps\]; null if it is exact.
    pub error_ps: Option<f64>,
    /// The part of it that is there with contention only \[ps\]; null unless both runs have contention.
    pub contention_ps: Option<i64>,
    /// Time that the change alone adds to the first run \[ps\].
    pub alone_ps: i64,
    /// Time that the change adds as the last one, which makes the second run \[ps\].
    pub last_ps: i64,
}

/// The reason why runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// One of the two runs cannot be replayed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run with some factors of each cannot be replayed.
    #[error(
        "a run with the {second} of the second run and all else of the first: {source}; factors that fit only each other are changed together by --together"
    )]
    Between {
        /// Factors of the second run.
        second: String,
        /// Cause.
        source: Box<RunError>,
    },
}

/// Factors that are changed together.
type Player = Vec<Factor>;

impl Why {
    /// Compares two runs. Each list of `together` has factors that are changed at a time; others are so if one cannot be had without the
    /// other. `at_once` replays run at a time; `done` counts those that are done.
    ///
    /// All combinations of up to seven changes are replayed, those that are equal once; of more changes, orders are sampled. Where both
    /// runs have contention, they are replayed without it, too.
    ///
    /// # Errors
    /// Returns an error if a replay fails.
    pub fn of(
        specs: [&RunSpec; 2],
        together: &[Vec<Factor>],
        caveat: Caveat,
        at_once: usize,
        done: &AtomicU64,
    ) -> Result<Self, WhyError> {
        let [one, other] = specs.map(RunSpec::without_analyses);
        let platforms = [one.platform().map_err(RunError::from)?, other.platform().map_err(RunError::from)?];
        let mut comparison =
            Comparison { machines: Machines::new(platforms), specs: [one, other], players: Vec::new() };
        comparison.players = comparison.players(together, false);
        let mut replays = Replays { at_once, done, known: BTreeMap::new() };
        let warnings = replays.add_bases(&comparison.specs)?;
        if comparison.hides_a_topology(&mut replays)? {
            comparison.players = comparison.players(together, true);
        }
        let plan = Plan::new(comparison.players.len());
        let times = comparison.times(&plan, &mut replays, Clone::clone)?;
        let (parts, errors) = plan.parts(&times);
        let have_contention =
            comparison.specs.iter().all(|spec| spec.model.parallelism != Parallelism::Uncontended);
        let free = match have_contention {
            true => Some(plan.parts(&comparison.times(&plan, &mut replays, without_contention)?).0),
            false => None,
        };
        let all = (1 << comparison.players.len()) - 1;
        let cause = |(index, player): (usize, &Player)| {
            let change = 1 << index;
            Cause {
                name: names(player),
                time_ps: parts[index] as i64,
                error_ps: errors.as_ref().map(|errors| errors[index]),
                contention_ps: free.as_ref().map(|free| (parts[index] - free[index]) as i64),
                alone_ps: (times[&change] - times[&0]) as i64,
                last_ps: (times[&all] - times[&(all & !change)]) as i64,
            }
        };
        let mut causes: Vec<Cause> = comparison.players.iter().enumerate().map(cause).collect();
        // The sort is stable: equal parts keep the order of their factors.
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.time_ps.unsigned_abs()));
        let run = |side: usize, set: &Changes| ComparedRun {
            trace: comparison.specs[side].trace.to_string(),
            platform: comparison.specs[side].platform.to_string(),
            model: comparison.specs[side].model.key,
            simulated_time_ps: times[set] as u64,
        };
        let compared = events::compare(&comparison.specs)?;
        Ok(Self {
            format: "pdes-replay why",
            version: 1,
            runs: [run(0, &0), run(1, &all)],
            difference_ps: (times[&all] - times[&0]) as i64,
            contention_ps: free.map(|free| (parts.iter().sum::<i128>() - free.iter().sum::<i128>()) as i64),
            causes,
            sampled_orders: plan.orders(),
            replays: replays.known.len() as u64,
            first_difference: compared.first,
            paths: compared.paths,
            not_compared: compared.why_not,
            warnings,
            caveat,
        })
    }
}

/// Returns the names of factors that are changed together.
fn names(player: &[Factor]) -> String {
    player.iter().map(|factor| factor.name()).collect::<Vec<_>>().join(" and ")
}

/// Returns a run in which messages and computations share nothing.
fn without_contention(spec: &RunSpec) -> RunSpec {
    RunSpec { model: Model::uncontended(), epoch: Epoch::Exact, ..spec.clone() }
}

/// Times of runs, each replayed once.
struct Replays<'a> {
    at_once: usize,
    done: &'a AtomicU64,
    /// Times \[ps\] by the text of the run.
    known: BTreeMap<String, u64>,
}

impl Replays<'_> {
    /// Replays the runs that are compared; returns the warnings of both.
    fn add_bases(&mut self, specs: &[RunSpec]) -> Result<Vec<String>, WhyError> {
        let mut warnings = Vec::new();
        for spec in specs {
            let base = Base::of(spec)?;
            self.known.insert(format!("{spec:?}"), base.replayed.time_ps);
            warnings.extend(
                base.warnings.into_iter().filter(|warning| !warnings.contains(warning)).collect::<Vec<_>>(),
            );
        }
        Ok(warnings)
    }

    /// Replays runs that are not known yet.
    fn add(&mut self, specs: &[(String, RunSpec)]) -> Result<(), WhyError> {
        let mut unknown: BTreeMap<String, &(String, RunSpec)> = BTreeMap::new();
        for named in specs {
            let key = format!("{:?}", named.1);
            if !self.known.contains_key(&key) {
                unknown.entry(key).or_insert(named);
            }
        }
        let unknown: Vec<(String, &(String, RunSpec))> = unknown.into_iter().collect();
        let times = run_all(&unknown, self.at_once, self.done, |(_, (second, spec))| match replay(spec) {
            Ok(Replayed { time_ps, .. }) => Ok(time_ps),
            Err(source) if second.is_empty() => Err(WhyError::Run(source)),
            Err(source) => Err(WhyError::Between { second: second.clone(), source: Box::new(source) }),
        })?;
        self.known.extend(unknown.into_iter().map(|(key, _)| key).zip(times));
        Ok(())
    }

    fn time(&self, spec: &RunSpec) -> i128 {
        i128::from(self.known[&format!("{spec:?}")])
    }
}

/// Two runs, and the factors in which they differ.
struct Comparison {
    specs: [RunSpec; 2],
    machines: Machines,
    players: Vec<Player>,
}

impl Comparison {
    /// Returns the factors in which the runs differ, those together that cannot be had without each other. `has_topology` is set where
    /// routes differ although all names are equal.
    fn players(&self, together: &[Vec<Factor>], has_topology: bool) -> Vec<Player> {
        let [one, other] = &self.specs;
        let has_other_shape =
            has_topology || self.machines.have_other_shapes() || one.routing != other.routing;
        let mut bound: Vec<Vec<Factor>> = together.to_vec();
        let differs = |factor: Factor| match factor {
            Factor::Topology => has_other_shape,
            Factor::Latency | Factor::Bandwidth => self.machines.differs(factor).unwrap_or(true),
            Factor::Computation => {
                factor.differs(one, other) || self.machines.differs(factor).unwrap_or(true)
            }
            _ => factor.differs(one, other),
        };
        for factor in [Factor::Latency, Factor::Bandwidth, Factor::Computation] {
            if self.machines.differs(factor).is_none() {
                bound.push(vec![factor, Factor::Topology]);
            }
        }
        let has_files = one.hosts.is_some() || other.hosts.is_some();
        if has_files && self.machines.have_other_hosts() {
            bound.push(vec![Factor::Topology, Factor::Placement]);
        }
        let mut players: Vec<Player> =
            Factor::ALL.into_iter().filter(|factor| differs(*factor)).map(|factor| vec![factor]).collect();
        for factors in bound {
            let is_bound = |player: &Player| player.iter().any(|factor| factors.contains(factor));
            let (joined, rest): (Vec<Player>, Vec<Player>) = players.into_iter().partition(is_bound);
            players = rest;
            let mut joined: Player = joined.into_iter().flatten().collect();
            joined.sort_unstable();
            players.extend((!joined.is_empty()).then_some(joined));
        }
        players.sort_unstable();
        players
    }

    /// Returns the run with some changes: with none the first one, with all the second one.
    fn spec(&self, set: Changes) -> RunSpec {
        let [one, other] = &self.specs;
        let all = (1 << self.players.len()) - 1;
        if set == 0 || set == all {
            return if set == 0 { one.clone() } else { other.clone() };
        }
        self.mixed(set)
    }

    fn mixed(&self, set: Changes) -> RunSpec {
        let changed: Vec<Factor> = self.changed(set).into_iter().flatten().copied().collect();
        let side = |factor: Factor| if changed.contains(&factor) { Side::Other } else { Side::One };
        let mut spec = self.specs[0].clone();
        changed.iter().for_each(|factor| factor.take(&mut spec, &self.specs[1]));
        self.machines.mix(&mut spec, side);
        spec
    }

    fn changed(&self, set: Changes) -> Vec<&Player> {
        let players = self.players.iter().enumerate();
        players.filter(|(index, _)| set & (1 << index) != 0).map(|(_, player)| player).collect()
    }

    /// Returns whether the second run differs from the first one with all changes, which is so where routes differ but no names.
    fn hides_a_topology(&self, replays: &mut Replays<'_>) -> Result<bool, WhyError> {
        if self.players.iter().flatten().any(|factor| *factor == Factor::Topology) {
            return Ok(false);
        }
        let mixed = self.mixed((1 << self.players.len()) - 1);
        replays.add(&[(String::new(), self.specs[1].clone()), (self.describe(!0), mixed.clone())])?;
        Ok(replays.time(&mixed) != replays.time(&self.specs[1]))
    }

    fn describe(&self, set: Changes) -> String {
        self.changed(set).into_iter().map(|player| names(player)).collect::<Vec<_>>().join(", ")
    }

    /// Replays all combinations of changes that a plan needs; returns their times \[ps\].
    fn times(
        &self,
        plan: &Plan,
        replays: &mut Replays<'_>,
        variant: impl Fn(&RunSpec) -> RunSpec,
    ) -> Result<BTreeMap<Changes, i128>, WhyError> {
        let all = (1 << self.players.len()) - 1;
        let spec = |set: &Changes| {
            let second = if *set == all { String::new() } else { self.describe(*set) };
            (second, variant(&self.spec(*set)))
        };
        let combinations = plan.combinations();
        let specs: Vec<(String, RunSpec)> = combinations.iter().map(spec).collect();
        replays.add(&specs)?;
        Ok(combinations.into_iter().zip(specs.iter().map(|(_, spec)| replays.time(spec))).collect())
    }
}
