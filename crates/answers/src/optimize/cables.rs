//! Numbers of cables of a fat tree or a dragonfly, within a budget.

use std::cmp::Ordering;

use netmodel::description::{ClusterDescription, PlatformDescription, Shape, TopologyDescription};
use netmodel::{DragonflyShape, FatTreeLevel, Platform};
use replay::{PlatformSource, RunError, RunSpec};

use super::search::{Named, Search};
use super::{Allowed, Freedom, OptimumError};
use crate::link_group::LinkGroup;
use crate::prices::Costs;

/// Numbers of cables by place, in the order of a plan.
pub(super) type CableCounts = Vec<u32>;

/// A machine whose cables may be added or taken away.
pub(super) struct CablePlan {
    description: PlatformDescription,
    cluster: ClusterDescription,
    costs: Costs,
    /// Cost of all cables without changes.
    own_cost: f64,
}

impl CablePlan {
    /// Returns the plan for the machine of a run, or why there is none; nothing if cables may not be changed.
    ///
    /// # Errors
    /// Returns an error if the platform cannot be read, or a cost is of cables that it does not have.
    pub(super) fn of(
        spec: &RunSpec,
        allowed: &Allowed,
    ) -> Result<Option<Result<Self, String>>, OptimumError> {
        if !allowed.freedoms.contains(&Freedom::Cables) {
            return Ok(None);
        }
        let Some(costs) = allowed.costs.clone() else {
            return Ok(Some(Err(
                "no costs of cables are known: name a file with [[cable]] by --costs".to_owned()
            )));
        };
        let description = match &spec.platform {
            PlatformSource::Inline(description, _) => (**description).clone(),
            PlatformSource::File(path) if Platform::is_xml_file(path) => {
                return Ok(Some(Err(
                    "a platform in SimGrid's XML has no numbers of cables to set: expected one in TOML"
                        .to_owned(),
                )));
            }
            PlatformSource::File(path) => {
                // An error of the file is told as that of the run.
                spec.platform().map_err(RunError::from)?;
                let text = std::fs::read_to_string(path)
                    .map_err(|source| OptimumError::Write { path: path.clone(), source })?;
                match toml::from_str(&text) {
                    Ok(description) => description,
                    Err(error) => return Ok(Some(Err(error.to_string()))),
                }
            }
        };
        let TopologyDescription::Cluster(cluster) = &description.topology else {
            return Ok(Some(Err(
                "a graph has no numbers of cables: expected a fat tree or a dragonfly".to_owned()
            )));
        };
        let cluster = (**cluster).clone();
        let plan = Self { description, cluster, costs, own_cost: 0.0 };
        if plan.own_counts().is_empty() {
            return Ok(Some(Err("the network has no numbers of cables: expected a fat tree of two levels or more, or a dragonfly".to_owned())));
        }
        let own_cost = plan.costs.of_cables(&plan.built(&plan.own_counts()), plan.cluster.bandwidth)?;
        Ok(Some(Ok(Self { own_cost, ..plan })))
    }

    /// Returns the numbers of cables without changes: of a fat tree parents, or parallel cables to a single parent, of each level above the lowest; of a
    /// dragonfly cables between groups, between chassis and inside them.
    fn own_counts(&self) -> CableCounts {
        match &self.cluster.shape {
            Shape::FatTree(levels) => {
                levels.iter().skip(1).map(|level| *number(&mut level.clone())).collect()
            }
            Shape::Dragonfly(DragonflyShape { blue, black, green, .. }) => vec![*blue, *black, *green],
            Shape::Flat | Shape::Torus(_) | Shape::Switches(_) => Vec::new(),
        }
    }

    fn shape(&self, counts: &[u32]) -> Shape {
        let mut shape = self.cluster.shape.clone();
        match &mut shape {
            Shape::FatTree(levels) => {
                levels.iter_mut().skip(1).zip(counts).for_each(|(level, count)| *number(level) = *count);
            }
            Shape::Dragonfly(shape) => {
                [shape.blue, shape.black, shape.green] = [counts[0], counts[1], counts[2]]
            }
            Shape::Flat | Shape::Torus(_) | Shape::Switches(_) => {}
        }
        shape
    }

    fn described(&self, counts: &[u32]) -> PlatformDescription {
        let cluster = ClusterDescription { shape: self.shape(counts), ..self.cluster.clone() };
        PlatformDescription {
            topology: TopologyDescription::Cluster(Box::new(cluster)),
            ..self.description.clone()
        }
    }

    fn built(&self, counts: &[u32]) -> Platform {
        Platform::from_description(self.described(counts)).expect("a network with other numbers of cables")
    }

    /// Returns the source of the platform with some numbers of cables.
    pub(super) fn platform(&self, counts: &CableCounts) -> PlatformSource {
        PlatformSource::Inline(Box::new(self.described(counts)), None)
    }

    /// Returns the money that some numbers of cables cost in addition.
    pub(super) fn cost(&self, counts: &CableCounts) -> f64 {
        let cost = self.costs.of_cables(&self.built(counts), self.cluster.bandwidth);
        cost.map_or(f64::INFINITY, |cost| cost - self.own_cost)
    }

    /// Returns the settings of the configuration that make some numbers of cables.
    pub(super) fn settings(&self, counts: &CableCounts) -> Vec<String> {
        match self.shape(counts) {
            Shape::FatTree(levels) => {
                let level = |FatTreeLevel { children, parents, cables }: &FatTreeLevel| {
                    format!("{{ children = {children}, parents = {parents}, cables = {cables} }}")
                };
                let levels: Vec<String> = levels.iter().map(level).collect();
                vec![format!("platform.topology.levels = [{}]", levels.join(", "))]
            }
            Shape::Dragonfly(DragonflyShape { blue, black, green, .. }) => {
                [("blue", blue), ("black", black), ("green", green)]
                    .map(|(key, count)| format!("platform.topology.{key} = {count}"))
                    .to_vec()
            }
            Shape::Flat | Shape::Torus(_) | Shape::Switches(_) => Vec::new(),
        }
    }

    /// Returns the places of cables as costs name them, in the order of their numbers.
    fn places(&self) -> Vec<String> {
        let Shape::FatTree(levels) = &self.cluster.shape else {
            return ["between groups", "between chassis", "inside chassis"].map(str::to_owned).to_vec();
        };
        let groups = LinkGroup::groups(&self.built(&self.own_counts())).into_iter().map(|group| group.name);
        // The lowest level is that of the hosts, whose cables stay.
        let named: Vec<String> =
            groups.filter(|name| name.contains(" to ") && !name.starts_with("host")).collect();
        match named.len() + 1 == levels.len() {
            true => named,
            false => (2..=levels.len()).map(|level| format!("below level {level}")).collect(),
        }
    }

    /// Returns numbers of cables that differ from others in one place, or in two of which one gets more and one less.
    fn neighbours(&self, counts: &CableCounts) -> Vec<(String, CableCounts)> {
        let more = |count: u32| [count.saturating_add(1), count.saturating_mul(2)];
        let less = |count: u32| [count - 1, count / 2];
        let moves = |values: fn(u32) -> [u32; 2]| {
            let of = move |(index, &count): (usize, &u32)| values(count).map(|value| (index, value));
            counts
                .iter()
                .enumerate()
                .flat_map(of)
                .filter(|&(index, value)| value > 0 && value != counts[index])
                .collect::<Vec<_>>()
        };
        let (added, removed, places) = (moves(more), moves(less), self.places());
        let named = |changes: &[(usize, u32)]| {
            let mut changed = counts.clone();
            changes.iter().for_each(|&(index, value)| changed[index] = value);
            let change = |&(index, value): &(usize, u32)| {
                format!("{} cables {} for {}", value, places[index], counts[index])
            };
            (changes.iter().map(change).collect::<Vec<_>>().join(", "), changed)
        };
        let single = added.iter().chain(&removed).map(|change| named(&[*change]));
        let pairs = added.iter().flat_map(|one| {
            let others = removed.iter().filter(move |other| other.0 != one.0);
            others.map(|other| named(&[*one, *other]))
        });
        single.chain(pairs).collect()
    }
}

/// Returns the number of a level of a fat tree that changes: its parents, or the parallel cables to a single one.
fn number(level: &mut FatTreeLevel) -> &mut u32 {
    if level.parents == 1 { &mut level.cables } else { &mut level.parents }
}

impl Search<'_> {
    /// Adds cables, takes some away, or both, within the budget, until that saves neither time nor money in the same time.
    pub(super) fn lay_cables(&mut self) -> Result<(), OptimumError> {
        while !self.is_exhausted() {
            let Some(plan) = &self.cables else { return Ok(()) };
            let counts = self.best.cables.clone().unwrap_or_else(|| plan.own_counts());
            let known_cost = plan.cost(&counts);
            let neighbours = plan.neighbours(&counts).into_iter();
            let costed =
                neighbours.map(|(name, counts)| (plan.cost(&counts), (name, self.best.with_cables(counts))));
            let budget = plan.costs.budget;
            let (costs, variants): (Vec<f64>, Vec<Named>) =
                costed.filter(|(cost, _)| *cost <= budget).unzip();
            self.replay(&variants)?;
            let order =
                |one: &(u64, f64), other: &(u64, f64)| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1));
            let times = variants
                .iter()
                .zip(costs)
                .filter_map(|(named, cost)| Some(((self.time(&named.1)?, cost), named)));
            match times.min_by(|(one, _), (other, _)| order(one, other)) {
                Some((found, named)) if order(&found, &(self.best_ps, known_cost)) == Ordering::Less => {
                    self.take(named, found.0, Some(found.1 - known_cost));
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Returns the money that the cables of the best variant cost in addition, if they change.
    pub(super) fn cost(&self) -> Option<f64> {
        Some(self.cables.as_ref()?.cost(self.best.cables.as_ref()?))
    }
}
