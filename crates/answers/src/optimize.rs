//! Search for changes of a program, of its library, its placement and its machine with which a run takes less time, or less energy in the
//! same time.

mod aggregation;
mod algorithms;
mod cables;
mod exchanges;
mod frequency;
mod search;
mod text;
mod variant;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use replay::{RunError, RunSpec};
use serde::Serialize;

use crate::caveat::Caveat;
use crate::messages::{MessageError, hypothesis};
use crate::placement::PlaceError;
use crate::prices::{Costs, CostsError};
use search::Search;

/// A part of a run that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freedom {
    /// Algorithms of collective operations.
    Algorithms,
    /// Hosts of ranks.
    Placement,
    /// Messages that become one.
    Aggregation,
    /// Numbers of cables of a fat tree or a dragonfly, within a budget.
    Cables,
    /// Frequencies of hosts whose ranks have slack.
    Frequency,
}

impl Freedom {
    /// All that may be changed.
    pub const ALL: [Self; 5] =
        [Self::Algorithms, Self::Placement, Self::Aggregation, Self::Cables, Self::Frequency];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Algorithms => "algorithms",
            Self::Placement => "placement",
            Self::Aggregation => "aggregation",
            Self::Cables => "cables",
            Self::Frequency => "frequency",
        }
    }
}

/// Changes that a search may make, and their costs.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// Parts that may be changed.
    pub freedoms: Vec<Freedom>,
    /// Largest number of replays.
    pub replays: usize,
    /// Costs of cables, and money to spend; without them, cables stay.
    pub costs: Option<Costs>,
    /// Frequencies that hosts may have, as parts of their own.
    pub frequencies: Vec<f64>,
}

impl Allowed {
    /// Frequencies that hosts may have if nothing else is known.
    pub const FREQUENCIES: [f64; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];
}

/// Collective algorithms and hosts of ranks, up to 1,000 replays.
impl Default for Allowed {
    fn default() -> Self {
        Self {
            freedoms: vec![Freedom::Algorithms, Freedom::Placement],
            replays: 1000,
            costs: None,
            frequencies: Self::FREQUENCIES.to_vec(),
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
    /// Settings of the configuration that make the changes of algorithms and cables, such as `mpi.bcast = "binomial_tree"`.
    pub settings: Vec<String>,
    /// Host of each rank; null if ranks stay.
    pub hosts: Option<Vec<String>>,
    /// Hosts that may compute slower without a longer run; null if none may, or it was not asked for.
    pub slack: Option<Slack>,
    /// Money that the cables cost in addition; null if they stay.
    pub cost: Option<f64>,
    /// Unit of money; null without costs.
    pub currency: Option<String>,
    /// All changes as a hypothesis, in TOML, for `what-if`; empty if there are none.
    pub patch: String,
    /// Number of replays.
    pub replays: usize,
    /// True if no single change of what is allowed saves more; false if replays ran out.
    pub is_local_optimum: bool,
    /// Changes that do not suit the program or the machine, each with the reason.
    pub refused: BTreeMap<String, String>,
    /// Warnings that a user should know before trusting the run.
    pub warnings: Vec<String>,
    /// Known difference between the model and the machine.
    pub caveat: Caveat,
}

/// A change that saves time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Part that is changed.
    pub name: String,
    /// Run time with this change and those before \[ps\].
    pub time_ps: u64,
    /// Time that the change saves in addition to those before \[ps\]; zero if it saves money or energy.
    pub saved_ps: u64,
    /// Money that the change costs; negative if it saves some, null if it is not about cables.
    pub cost: Option<f64>,
}

/// Hosts that compute slower in an equally long run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slack {
    /// Frequencies of the hosts that are slower, as parts of their own.
    pub hosts: BTreeMap<String, f64>,
    /// Dynamic energy of all computations that is saved, as a part of it: it goes with the square of the frequency, since power goes with the cube.
    pub saved_share: f64,
    /// The same \[J\]; null unless the power of all hosts with ranks is known.
    pub saved_j: Option<f64>,
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
    /// A trace cannot be changed.
    #[error(transparent)]
    Messages(#[from] MessageError),
    /// Costs are of cables that the machine does not have.
    #[error(transparent)]
    Costs(#[from] CostsError),
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
    /// Seeks changes that are allowed, with `at_once` replays at a time. `done` counts those that are done.
    ///
    /// Each collective operation of the program gets the algorithm with which the run is shortest, one operation after the other, until
    /// none helps. Ranks are mapped greedily and by bisection, and then exchanged in pairs. Messages of each place become one, by exchange or 2, 4 or 8
    /// at a time. Cables are added, taken away, or moved from one place of the network to another within the budget; of equally long runs the cheaper
    /// one is taken. All that goes on as long as it helps. At last hosts get the lowest frequencies with which the run is no longer.
    ///
    /// # Errors
    /// Returns an error if the run cannot be replayed, a cost is of nothing that the machine has, or a temporary file cannot be written.
    pub fn of(
        spec: &RunSpec,
        allowed: &Allowed,
        caveat: Caveat,
        at_once: usize,
        done: &AtomicU64,
    ) -> Result<Self, OptimumError> {
        let spec = spec.without_analyses();
        let mut search = Search::new(&spec, allowed, (at_once, done))?;
        let before_ps = search.best_ps;
        loop {
            let known = search.best.clone();
            for freedom in &allowed.freedoms {
                if !search.is_exhausted() {
                    freedom.improve(&mut search)?;
                }
            }
            if search.best == known || search.is_exhausted() {
                break;
            }
        }
        let is_slowed = allowed.freedoms.contains(&Freedom::Frequency) && !search.is_exhausted();
        let slack = if is_slowed { search.lower_frequencies()? } else { None };
        let settings = search.settings();
        let transforms = search.transforms();
        let has_changes = !(settings.is_empty() && transforms.is_empty());
        Ok(Self {
            format: "pdes-replay optimum",
            version: 1,
            trace: spec.trace.to_string(),
            platform: spec.platform.to_string(),
            model: spec.model.key,
            before_ps,
            after_ps: search.best_ps,
            patch: if has_changes { hypothesis("optimum", &settings, &transforms) } else { String::new() },
            settings,
            hosts: search.host_names(),
            slack,
            cost: search.cost(),
            currency: allowed.costs.as_ref().map(|costs| costs.currency.clone()),
            replays: search.known.len(),
            is_local_optimum: !search.is_exhausted(),
            changes: search.changes,
            refused: search.refused,
            warnings: search.warnings,
            caveat,
        })
    }
}

impl Freedom {
    /// Takes changes of this kind as long as one of them helps.
    fn improve(self, search: &mut Search<'_>) -> Result<(), OptimumError> {
        match self {
            Self::Algorithms => search.choose_algorithms(),
            Self::Placement => search.move_ranks(),
            Self::Aggregation => search.aggregate(),
            Self::Cables => search.lay_cables(),
            // Slack is used when nothing else changes any more.
            Self::Frequency => Ok(()),
        }
    }
}
