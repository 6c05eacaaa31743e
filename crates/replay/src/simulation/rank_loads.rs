//! Loads of hosts where ranks compute apart from each other: without contention.

use std::collections::BTreeMap;

use mpi_model::{ActionKind, Breakdown, region_name};
use netmodel::{HostId, HostLoad, HostLoads};
use pdes_core::{Rank, SimDuration};

use super::{Outcome, Simulation};

impl Simulation {
    /// Adds the loads of hosts to the outcome of a run without contention, by the times in which their ranks compute, which count apart from
    /// each other. There is one bin.
    pub(super) fn with_rank_loads(&self, outcome: Outcome) -> Outcome {
        let end = outcome.simulated_time().as_picos();
        let bin = SimDuration::from_picos(end.checked_next_power_of_two().unwrap_or(end));
        let mut busy = BTreeMap::<HostId, u64>::new();
        for (program, ended) in self.programs.iter().zip(&outcome.programs) {
            for (rank, statistics) in (0..).map(Rank::new).zip(&ended.statistics) {
                let (own, mut computing) =
                    (program.placement.host(rank), statistics.time(ActionKind::Compute).as_picos());
                let breakdown = statistics.breakdown().filter(|_| self.accelerators.is_some());
                for region in breakdown.into_iter().flat_map(Breakdown::regions) {
                    let name =
                        region.site().map_or("", |site| region_name(program.trace.rank(rank).location(site)));
                    let there = region.time(ActionKind::Compute).as_picos();
                    computing -= there;
                    let host = self.computing_host(&program.placement, rank, name);
                    *busy.entry(host).or_default() += there;
                }
                *busy.entry(own).or_default() += computing;
            }
        }
        let load = |(host, picos): (HostId, u64)| {
            let work = picos as f64 * self.platform.host(host).speed / 1e12;
            HostLoad { host, busy: vec![picos.min(end) as f64], work: vec![work] }
        };
        let hosts = busy.into_iter().filter(|(_, picos)| *picos > 0).map(load).collect();
        Outcome { hosts: Some(HostLoads { bin, hosts }), ..outcome }
    }
}
