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
                let own = busy.entry(program.placement.host(rank)).or_default();
                *own += statistics.time(ActionKind::Compute).as_picos();
                for region in statistics.breakdown().into_iter().flat_map(Breakdown::regions) {
                    let name =
                        region.site().map_or("", |site| region_name(program.trace.rank(rank).location(site)));
                    let computing = region.shares().filter(|(kind, _)| *kind == ActionKind::Compute);
                    let picos: u64 = computing.map(|(_, share)| share.time.as_picos()).sum();
                    *busy.entry(program.placement.host(rank)).or_default() -= picos;
                    *busy.entry(self.computing_host(&program.placement, rank, name)).or_default() += picos;
                }
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
