//! Changes of a run that are tried together.

use std::collections::BTreeMap;

use mpi_model::collective::Operation;
use netmodel::{HostId, Platform};
use replay::PlatformChange;
use toml::Table;

use super::aggregation::Aggregation;
use super::cables::CableCounts;
use crate::messages::transform;

/// Changes of a run that are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Variant {
    /// Algorithms, in the order of operations.
    pub(super) algorithms: Vec<(Operation, &'static str)>,
    /// Host of each rank; `None` if ranks stay.
    pub(super) hosts: Option<Vec<HostId>>,
    /// Messages that become one.
    pub(super) aggregations: Vec<Aggregation>,
    /// Numbers of cables; `None` if they stay.
    pub(super) cables: Option<CableCounts>,
    /// Frequencies of slower hosts, in thousandths of their own.
    pub(super) frequencies: BTreeMap<HostId, u32>,
}

impl Variant {
    pub(super) fn with_algorithm(&self, operation: Operation, algorithm: &'static str) -> Self {
        let mut variant = self.clone();
        variant.algorithms.retain(|(of, _)| *of != operation);
        variant.algorithms.push((operation, algorithm));
        variant.algorithms.sort_unstable();
        variant
    }

    pub(super) fn with_hosts(&self, hosts: Vec<HostId>) -> Self {
        Self { hosts: Some(hosts), ..self.clone() }
    }

    /// Returns the variant with an aggregation in place of that of the same messages.
    pub(super) fn with_aggregation(&self, aggregation: Aggregation) -> Self {
        let mut variant = self.clone();
        variant.aggregations.retain(|known| known.place != aggregation.place);
        variant.aggregations.push(aggregation);
        variant.aggregations.sort_unstable();
        variant
    }

    pub(super) fn with_cables(&self, cables: CableCounts) -> Self {
        Self { cables: Some(cables), ..self.clone() }
    }

    pub(super) fn with_frequency(&self, hosts: &[HostId], thousandths: u32) -> Self {
        let mut variant = self.clone();
        variant.frequencies.extend(hosts.iter().map(|host| (*host, thousandths)));
        variant
    }

    /// Returns the transformations of the program.
    pub(super) fn transforms(&self) -> Vec<Table> {
        self.aggregations.iter().map(Aggregation::transform).collect()
    }

    /// Returns the transformations that stand for slower hosts, where ranks run on `hosts`.
    pub(super) fn slow_ranks(&self, hosts: &[HostId]) -> Vec<Table> {
        let mut slow: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        for (rank, host) in (0..).zip(hosts) {
            if let Some(thousandths) = self.frequencies.get(host) {
                slow.entry(*thousandths).or_default().push(rank);
            }
        }
        let scale = |(thousandths, ranks): (u32, Vec<i64>)| {
            let factor = 1000.0 / f64::from(thousandths);
            transform("scale", [Some(("factor", factor.into())), Some(("ranks", ranks.into()))])
        };
        slow.into_iter().map(scale).collect()
    }
}

/// Hosts that compute slower.
#[derive(Debug)]
pub(super) struct SlowerHosts(pub(super) BTreeMap<HostId, u32>);

impl PlatformChange for SlowerHosts {
    fn apply(&self, platform: &mut Platform) {
        platform.change_hosts(|id, host| {
            host.speed *= self.0.get(&id).map_or(1.0, |thousandths| f64::from(*thousandths) / 1000.0);
        });
    }
}
