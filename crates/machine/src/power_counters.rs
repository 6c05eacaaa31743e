//! Power over time, as counters of a timeline.

use netmodel::{HostId, LinkLoads};
use pdes_core::{SimDuration, SimTime};
use replay::{Counter, Outcome, Simulation, TimelineCounters};

use crate::{Energy, PowerByName};

/// Part of the machine that the counters are of.
const PART: &str = "power";

/// Counters of the mean power of all hosts, of the hosts under each name if there are several, and of all links, in bins of time.
#[derive(Clone, Debug)]
pub(crate) struct PowerCounters(pub(crate) PowerByName);

impl TimelineCounters for PowerCounters {
    fn counters(&self, simulation: &Simulation, outcome: &Outcome) -> Vec<Counter> {
        let Some(loads) = &outcome.hosts else { return Vec::new() };
        let (platform, end) = (simulation.platform(), outcome.simulated_time());
        let no_links = LinkLoads { bin: loads.bin, links: Vec::new(), fat_pipes: Vec::new() };
        let links = outcome.links.as_ref().unwrap_or(&no_links);
        let of_hosts = |is_one: &dyn Fn(HostId) -> bool| {
            (loads.bin, Energy::power_of_hosts_w(platform, loads, end, is_one))
        };
        let name_of = |host: HostId| self.0.host_pattern(&platform.host(host).name);
        let groups = self.0.hosts.keys().filter(|_| self.0.hosts.len() > 1);
        let of_groups = groups.map(|name| {
            (format!("hosts {name} [W]"), of_hosts(&|host| name_of(host) == Some(name.as_str())))
        });
        let of_links = (links.bin, Energy::power_of_links_w(platform, links, end));
        let whole = [("hosts [W]".to_owned(), of_hosts(&|_| true)), ("links [W]".to_owned(), of_links)];
        whole.into_iter().chain(of_groups).map(|(name, power)| counter(name, power, end)).collect()
    }
}

/// Returns the counter of power in bins until the end of the run.
fn counter(name: String, (bin, power_w): (SimDuration, Vec<f64>), end: SimTime) -> Counter {
    let begins = (0..).map(|number| SimTime::from_picos(bin.as_picos().saturating_mul(number)));
    let mut values: Vec<(SimTime, f64)> = begins.zip(power_w).chain([(end, 0.0)]).collect();
    values.dedup_by_key(|(_, watts)| *watts);
    Counter { part: PART.to_owned(), name: name.into(), values }
}
