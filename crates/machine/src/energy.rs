//! The energy of a run.

use std::ops::Range;

use netmodel::{HostId, HostLoads, HostPower, LinkId, LinkLoad, LinkLoads, Platform};
use pdes_core::{SimDuration, SimTime};

use crate::CarbonIntensity;

/// The energy that the hosts and links of a platform take in a run, by SimGrid's equations (host_energy.cpp and link_energy.cpp of 3.32),
/// integrated exactly.
///
/// A host with `u` of the rate of all its cores at full speed in use draws `idle` at `u = 0`, `epsilon + u (all_cores - epsilon)` above,
/// and `off` while it has no speed. A link that flows use at a rate `x`, before the factor of the bandwidth and with
/// cross traffic, draws `idle + (busy - idle) x / B`; of a fat pipe the most demanding flow counts. Where no power is known, it is 0.
///
/// ```
/// use machine::Energy;
/// use netmodel::{HostLoad, HostLoads, HostId, HostPower, LinkLoads, Platform};
/// use pdes_core::{SimDuration, SimTime};
///
/// let text = "topology = { kind = \"graph\" }\nhost = [{ name = \"a\", speed = \"1Gf\", cores = 2 }]\n";
/// let mut platform = Platform::from_toml(text, "a.toml").unwrap();
/// let host = HostId::new(0);
/// let power: HostPower = toml::from_str("idle = 95\nepsilon = 110\nall_cores = 190").unwrap();
/// platform.power_mut().hosts.insert(host, power);
/// // One of the cores computes in the first of two seconds.
/// let second = SimDuration::from_picos(1_000_000_000_000);
/// let load = HostLoad { host, busy: vec![1e12, 0.0], work: vec![1e9, 0.0] };
/// let hosts = HostLoads { bin: second, hosts: vec![load] };
/// let links = LinkLoads { bin: second, links: Vec::new(), fat_pipes: Vec::new() };
/// let energy = Energy::new(&platform, &hosts, &links, SimTime::from_picos(2_000_000_000_000));
/// assert_eq!((energy.total_j(), energy.power_w), (150.0 + 95.0, vec![150.0, 95.0]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Energy {
    /// Length of the run.
    pub time: SimDuration,
    /// Energy of each host of the platform, in their order \[J\].
    pub hosts_j: Vec<f64>,
    /// Energy of each link of the platform, in their order \[J\].
    pub links_j: Vec<f64>,
    /// Energy of messages in adapters \[J\].
    pub messages_j: f64,
    /// Energy of bytes that cross links \[J\].
    pub traffic_j: f64,
    /// Length of a bin.
    pub bin: SimDuration,
    /// Mean power in each bin, the last of which may be incomplete \[W\].
    pub power_w: Vec<f64>,
}

impl Energy {
    /// Computes the energy of a run by the loads of the hosts and links of a platform until the end. `O(hosts + links)` times the number
    /// of bins, 128 at most.
    pub fn new(platform: &Platform, hosts: &HostLoads, links: &LinkLoads, end: SimTime) -> Self {
        let bins = Bins { length: hosts.bin.max(links.bin), end };
        let ((hosts_j, links_j), power_w) = bins.mean_power_w(|joules| {
            let hosts_j = of_hosts(platform, hosts, &|_| true, &bins, joules);
            (hosts_j, of_links(platform, links, &bins, joules))
        });
        let (time, bin) = (end - SimTime::ZERO, bins.length);
        Self { time, hosts_j, links_j, messages_j: 0.0, traffic_j: 0.0, bin, power_w }
    }

    /// Returns the mean power of some hosts in each bin of their loads until the end of a run \[W\].
    pub fn power_of_hosts_w(
        platform: &Platform,
        hosts: &HostLoads,
        end: SimTime,
        is_one: &dyn Fn(HostId) -> bool,
    ) -> Vec<f64> {
        let bins = Bins { length: hosts.bin, end };
        bins.mean_power_w(|joules| of_hosts(platform, hosts, is_one, &bins, joules)).1
    }

    /// Returns the mean power of all links in each bin of their loads until the end of a run \[W\].
    pub fn power_of_links_w(platform: &Platform, links: &LinkLoads, end: SimTime) -> Vec<f64> {
        let bins = Bins { length: links.bin, end };
        bins.mean_power_w(|joules| of_links(platform, links, &bins, joules)).1
    }

    /// Adds energy of messages in adapters, and of bytes that cross links \[J\]; in power over time they count evenly.
    pub fn with_messages(mut self, messages_j: f64, traffic_j: f64) -> Self {
        let time_s = self.time.as_secs_f64();
        if time_s > 0.0 {
            self.power_w.iter_mut().for_each(|power_w| *power_w += (messages_j + traffic_j) / time_s);
        }
        Self { messages_j, traffic_j, ..self }
    }

    /// Returns the energy of hosts, links and messages \[J\].
    pub fn total_j(&self) -> f64 {
        let Self { hosts_j, links_j, messages_j, traffic_j, .. } = self;
        hosts_j.iter().sum::<f64>() + links_j.iter().sum::<f64>() + messages_j + traffic_j
    }

    /// Returns the product of energy and time \[J s\].
    pub fn energy_delay_js(&self) -> f64 {
        self.total_j() * self.time.as_secs_f64()
    }

    /// Returns the mass of carbon dioxide for a carbon intensity of the electricity over time \[g\]; power counts as its mean in each bin.
    pub fn carbon_g(&self, intensity: &CarbonIntensity) -> f64 {
        let bins = Bins { length: self.bin, end: SimTime::ZERO + self.time };
        let grams = |(bin, watts): (usize, &f64)| watts * intensity.integral(bins.time(bin));
        self.power_w.iter().enumerate().map(grams).sum()
    }
}

/// Bins of time from 0 to the end of a run.
struct Bins {
    length: SimDuration,
    end: SimTime,
}

impl Bins {
    fn count(&self) -> usize {
        self.end.as_picos().div_ceil(self.length.as_picos()) as usize
    }

    fn time(&self, bin: usize) -> Range<SimTime> {
        let (length, end) = (self.length.as_picos(), self.end.as_picos());
        let at = |bin: usize| SimTime::from_picos((bin as u64).saturating_mul(length).min(end));
        at(bin)..at(bin + 1)
    }

    fn seconds(&self, bin: usize) -> f64 {
        let Range { start, end } = self.time(bin);
        (end - start).as_secs_f64()
    }

    /// Returns the mean power in each bin \[W\], in which `add` adds joules, and what that returns.
    fn mean_power_w<R>(&self, add: impl FnOnce(&mut [f64]) -> R) -> (R, Vec<f64>) {
        let mut power_w = vec![0.0; self.count()];
        let added = add(&mut power_w);
        power_w.iter_mut().enumerate().for_each(|(bin, power_w)| *power_w /= self.seconds(bin));
        (added, power_w)
    }

    /// Returns the amounts in bins of a length that divides that of these.
    fn gather(&self, amounts: &[f64], length: SimDuration) -> Vec<f64> {
        let each = (self.length.as_picos() / length.as_picos()) as usize;
        amounts.chunks(each).map(|amounts| amounts.iter().sum()).collect()
    }
}

fn of_hosts(
    platform: &Platform,
    loads: &HostLoads,
    is_one: &dyn Fn(HostId) -> bool,
    bins: &Bins,
    joules: &mut [f64],
) -> Vec<f64> {
    let mut loads_left = loads.hosts.iter().peekable();
    let of_host = |host: HostId| {
        let load = loads_left.next_if(|load| load.host == host);
        let Some(power) = platform.power().hosts.get(&host).filter(|_| is_one(host)) else { return 0.0 };
        let of = |amounts: &[f64]| bins.gather(amounts, loads.bin);
        let (busy, work) = load.map_or_else(Default::default, |load| (of(&load.busy), of(&load.work)));
        let in_bin = |(bin, joules): (usize, &mut f64)| {
            let amount = |amounts: &[f64]| amounts.get(bin).copied().unwrap_or_default();
            let own =
                host_energy(platform, (host, power), bins.time(bin), amount(&busy) / 1e12, amount(&work));
            *joules += own;
            own
        };
        joules.iter_mut().enumerate().map(in_bin).sum()
    };
    (0..platform.hosts().len() as u32).map(HostId::new).map(of_host).collect()
}

/// Returns the energy of a host in an interval \[J\], in which it was busy for some seconds and did some work [flop].
fn host_energy(
    platform: &Platform,
    (host, power): (HostId, &HostPower),
    time: Range<SimTime>,
    busy_s: f64,
    work: f64,
) -> f64 {
    let description = platform.host(host);
    let off_s = platform.time_off(host, time.clone()).as_secs_f64();
    let idle_s = (time.end - time.start).as_secs_f64() - off_s - busy_s;
    let full_s = work / (description.speed * f64::from(description.cores));
    power.idle * idle_s
        + power.off * off_s
        + power.epsilon() * busy_s
        + (power.all_cores - power.epsilon()) * full_s
}

fn of_links(platform: &Platform, loads: &LinkLoads, bins: &Bins, joules: &mut [f64]) -> Vec<f64> {
    let mut by_link: Vec<Option<&LinkLoad>> = vec![None; platform.links().len()];
    loads.links.iter().chain(&loads.fat_pipes).for_each(|load| by_link[load.link.index()] = Some(load));
    let of_link = |link: LinkId| {
        let Some(power) = platform.power().links.get(&link) else { return 0.0 };
        let load = by_link[link.index()];
        // The last bin of a series may be incomplete, as that of this one: loads in it are means, too.
        let parts = load.map_or_else(Vec::new, |load| {
            let own = Bins { length: loads.bin, ..*bins };
            let full = load.series.iter().enumerate().map(|(bin, load)| load * own.seconds(bin));
            bins.gather(&full.collect::<Vec<f64>>(), loads.bin)
        });
        for (bin, joules) in joules.iter_mut().enumerate() {
            let full_s = parts.get(bin).copied().unwrap_or_default();
            *joules += power.idle * bins.seconds(bin) + (power.busy - power.idle) * full_s;
        }
        let full_time_s = load.map_or(0.0, |load| load.full_time_s);
        power.idle * (bins.end - SimTime::ZERO).as_secs_f64() + (power.busy - power.idle) * full_time_s
    };
    (0..platform.links().len() as u32).map(LinkId::new).map(of_link).collect()
}
