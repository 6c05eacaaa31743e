//! A search for a shorter run, one change after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use mpi_model::ActionKind;
use mpi_model::collective::Operation;
use netmodel::HostId;
use pdes_core::Rank;
use replay::{RunError, RunSpec, Simulation, run_all};
use tempfile::{TempDir, TempPath};
use toml::Table;

use super::cables::CablePlan;
use super::variant::{SlowerHosts, Variant};
use super::{Allowed, Change, OptimumError};
use crate::messages::{MessageError, transform, transformed};
use crate::replayed::{Base, Replayed, replay};

/// A search for a shorter run.
pub(super) struct Search<'a> {
    pub(super) spec: &'a RunSpec,
    pub(super) allowed: &'a Allowed,
    /// The run without changes.
    pub(super) base: Base,
    /// Operations of the program whose algorithms can be chosen.
    pub(super) operations: Vec<Operation>,
    /// Cables that may be added or taken away.
    pub(super) cables: Option<CablePlan>,
    at_once: usize,
    done: &'a AtomicU64,
    /// Run times \[ps\]; `None` if the variant cannot be replayed.
    pub(super) known: BTreeMap<Variant, Option<u64>>,
    pub(super) best: Variant,
    pub(super) best_ps: u64,
    pub(super) changes: Vec<Change>,
    pub(super) refused: BTreeMap<String, String>,
    pub(super) warnings: Vec<String>,
    /// Hosts files of variants.
    directory: TempDir,
}

/// A run with the changes of a variant.
pub(super) struct ChangedRun {
    pub(super) spec: RunSpec,
    /// Keeps the changed trace as long as the run.
    _trace: Option<TempPath>,
}

/// A variant with the name of the change that made it of the best one.
pub(super) type Named = (String, Variant);

impl<'a> Search<'a> {
    pub(super) fn new(
        spec: &'a RunSpec,
        allowed: &'a Allowed,
        (at_once, done): (usize, &'a AtomicU64),
    ) -> Result<Self, OptimumError> {
        let base = Base::of(&RunSpec { region_times: true, ..spec.clone() })?;
        let Replayed { time_ps, .. } = base.replayed;
        let statistics = &base.outcome.program().statistics;
        let has = |kind: ActionKind| statistics.iter().any(|rank| rank.count(kind) > 0);
        // The calls of non-blocking operations are of one kind.
        let has_any = has(ActionKind::NonBlocking);
        let is_used = |operation: &Operation| {
            let name = operation.name().replace('_', "");
            has_any || ActionKind::ALL.into_iter().any(|kind| kind.name() == name && has(kind))
        };
        let directory = tempfile::tempdir();
        let directory =
            directory.map_err(|source| OptimumError::Write { path: std::env::temp_dir(), source })?;
        let mut refused = BTreeMap::new();
        let cables = match CablePlan::of(spec, allowed)? {
            Some(Err(why)) => {
                refused.insert("cables".to_owned(), why);
                None
            }
            Some(Ok(plan)) => Some(plan),
            None => None,
        };
        Ok(Self {
            spec,
            allowed,
            operations: Operation::ALL.into_iter().filter(is_used).collect(),
            cables,
            at_once,
            done,
            known: BTreeMap::from([(Variant::default(), Some(time_ps))]),
            best: Variant::default(),
            best_ps: time_ps,
            changes: Vec::new(),
            refused,
            warnings: base.warnings.clone(),
            base,
            directory,
        })
    }

    pub(super) fn simulation(&self) -> &Simulation {
        &self.base.simulation
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.known.len() >= self.allowed.replays
    }

    /// Returns the run with a variant's changes; its hosts file has a number.
    pub(super) fn changed_run(&self, variant: &Variant, number: usize) -> Result<ChangedRun, OptimumError> {
        let mut spec = self.spec.clone();
        for (operation, algorithm) in &variant.algorithms {
            spec.mpi.collectives.choose(*operation, algorithm).map_err(RunError::from)?;
        }
        if let Some(hosts) = &variant.hosts {
            let path = self.directory.path().join(format!("{number}.txt"));
            let names: String = self.names(hosts).into_iter().map(|name| name + "\n").collect();
            std::fs::write(&path, names)
                .map_err(|source| OptimumError::Write { path: path.clone(), source })?;
            spec.hosts = Some(path);
        }
        if let Some((counts, plan)) = variant.cables.as_ref().zip(self.cables.as_ref()) {
            spec.platform = plan.platform(counts);
        }
        if !variant.frequencies.is_empty() {
            spec.platform_changes.push(Arc::new(SlowerHosts(variant.frequencies.clone())));
        }
        let transforms = variant.transforms();
        let trace = match transforms.is_empty() {
            true => None,
            false => Some(transformed(self.spec, &transforms)?),
        };
        trace.iter().for_each(|trace| spec.trace = trace.to_path_buf().into());
        Ok(ChangedRun { spec, _trace: trace })
    }

    /// Replays variants that are not known, the first ones if not all are within the budget.
    pub(super) fn replay(&mut self, variants: &[Named]) -> Result<(), OptimumError> {
        let mut unknown: Vec<&Named> = Vec::new();
        for named in variants {
            if !self.known.contains_key(&named.1) && !unknown.iter().any(|(_, variant)| *variant == named.1) {
                unknown.push(named);
            }
        }
        unknown.truncate(self.allowed.replays.saturating_sub(self.known.len()));
        let numbered: Vec<(usize, &Named)> = unknown.into_iter().enumerate().collect();
        let times = run_all(&numbered, self.at_once, self.done, |(number, (_, variant))| {
            match self.changed_run(variant, *number) {
                Ok(run) => {
                    Ok(replay(&run.spec).map(|found| found.time_ps).map_err(|error| first_line(&error)))
                }
                Err(OptimumError::Messages(error)) if error.is_misuse() => Ok(Err(reason(&error))),
                Err(error) => Err(error),
            }
        })?;
        for ((_, (name, variant)), time) in numbered.into_iter().zip(times) {
            if let Err(why) = &time {
                self.refused.insert(name.clone(), why.clone());
            }
            self.known.insert(variant.clone(), time.ok());
        }
        Ok(())
    }

    /// Returns the run time of a variant \[ps\] that has been replayed.
    pub(super) fn time(&self, variant: &Variant) -> Option<u64> {
        self.known.get(variant).copied().flatten()
    }

    /// Replays variants, and takes the shortest if it is shorter than the best so far: the first of equal ones. Returns whether it is.
    pub(super) fn take_best(&mut self, variants: &[Named]) -> Result<bool, OptimumError> {
        self.replay(variants)?;
        let times = variants.iter().filter_map(|named| Some((self.time(&named.1)?, named)));
        match times.min_by_key(|(time, _)| *time) {
            Some((time_ps, named)) if time_ps < self.best_ps => {
                self.take(named, time_ps, None);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Takes a variant that is no longer than the best so far.
    pub(super) fn take(&mut self, (name, variant): &Named, time_ps: u64, cost: Option<f64>) {
        let saved_ps = self.best_ps - time_ps;
        self.changes.push(Change { name: name.clone(), time_ps, saved_ps, cost });
        (self.best, self.best_ps) = (variant.clone(), time_ps);
    }

    /// Returns the host of each rank in the best variant.
    pub(super) fn hosts(&self) -> Vec<HostId> {
        self.best.hosts.clone().unwrap_or_else(|| self.own_hosts())
    }

    /// Returns the host of each rank without changes.
    fn own_hosts(&self) -> Vec<HostId> {
        let own = |rank| self.simulation().placement().host(Rank::new(rank));
        (0..self.simulation().trace().ranks()).map(own).collect()
    }

    fn names(&self, hosts: &[HostId]) -> Vec<String> {
        hosts.iter().map(|host| self.simulation().platform().host(*host).name.clone()).collect()
    }

    /// Returns the name of the host of each rank in the best variant, if ranks have moved.
    pub(super) fn host_names(&self) -> Option<Vec<String>> {
        self.best.hosts.as_ref().map(|hosts| self.names(hosts))
    }

    /// Returns the settings of the configuration that make the changes of the best variant.
    pub(super) fn settings(&self) -> Vec<String> {
        let algorithm =
            |(operation, name): &(Operation, &str)| format!("mpi.{} = {name:?}", operation.name());
        let cables = self.cables.as_ref().zip(self.best.cables.as_ref());
        let cables = cables.into_iter().flat_map(|(plan, counts)| plan.settings(counts));
        self.best.algorithms.iter().map(algorithm).chain(cables).collect()
    }

    /// Returns the transformations that make the other changes of the best variant.
    pub(super) fn transforms(&self) -> Vec<Table> {
        let slow = self.best.slow_ranks(&self.hosts());
        let order = self.best.hosts.as_ref().map(|hosts| {
            let mut free: BTreeMap<HostId, Vec<i64>> = BTreeMap::new();
            (0..).zip(self.own_hosts()).for_each(|(rank, host)| free.entry(host).or_default().push(rank));
            // Each host has as many ranks as before.
            let place = |host: &HostId| free.get_mut(host).and_then(Vec::pop).expect("ranks change places");
            let order: Vec<i64> = hosts.iter().map(place).collect();
            transform("place", [Some(("order", order.into()))])
        });
        self.best.transforms().into_iter().chain(slow).chain(order).collect()
    }
}

/// Returns the first line of an error; of a deadlock, further ones list the ranks.
fn first_line(error: &RunError) -> String {
    let text = error.to_string();
    text.lines().next().map_or(text.clone(), |line| line.trim_end_matches(':').to_owned())
}

/// Returns why a change does not suit a program, without the name of the hypothesis that stands for it.
fn reason(error: &MessageError) -> String {
    let text = error.to_string();
    text.split_once("): ").map_or(text.clone(), |(_, reason)| reason.to_owned())
}
