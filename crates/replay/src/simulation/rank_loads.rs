//! Loads of hosts where ranks compute apart from each other: without contention.

use std::collections::BTreeMap;

use mpi_model::ActionKind;
use netmodel::{HostId, HostLoad, HostLoads};
use pdes_core::SimDuration;

use super::{Outcome, Simulation};

impl Simulation {
    /// Adds the loads of hosts to the outcome of a run without contention, by the times in which their ranks compute, which count apart from
    /// each other. There is one bin.
    pub(super) fn with_rank_loads(&self, outcome: Outcome) -> Outcome {
        let end = outcome.simulated_time().as_picos();
        let bin = SimDuration::from_picos(end.checked_next_power_of_two().unwrap_or(end));
        let mut busy = BTreeMap::<HostId, u64>::new();
        for (program, ended) in self.programs.iter().zip(&outcome.programs) {
            for (&host, statistics) in program.placement.hosts().iter().zip(&ended.statistics) {
                *busy.entry(host).or_default() += statistics.time(ActionKind::Compute).as_picos();
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
