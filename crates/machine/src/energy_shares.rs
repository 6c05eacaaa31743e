//! The parts of jobs, ranks, regions and kinds of calls in the energy of hosts.

use std::collections::BTreeMap;

use mpi_model::{ActionKind, region_name};
use netmodel::HostId;
use pdes_core::{Rank, SimDuration, SimTime};
use replay::{Outcome, Placement, ProgramOutcome, Simulation};
use trace_mmap::{LocationId, Trace};

use crate::Energy;

/// The energy of hosts, divided among the ranks that run there.
///
/// The power of an idle host belongs to its ranks in equal parts while they run, and is divided in the proportion of time over what they do
/// meanwhile; what a host takes in addition while cores compute belongs to the computations of its ranks, in the proportion of their time. The
/// rest, of hosts that wait or have no ranks, is nobody's: with it the parts add up to the energy of all hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergyShares {
    /// Energy of each job \[J\].
    pub jobs_j: Vec<f64>,
    /// Energy of each rank, job by job \[J\].
    pub ranks_j: Vec<Vec<f64>>,
    /// Energy by kind of action \[J\]; kinds that take none are left out.
    pub kinds_j: BTreeMap<ActionKind, f64>,
    /// Energy by region of the programs \[J\], where times by region are [recorded](replay::RunSpec::region_times); `""` is what precedes all of
    /// them.
    pub regions_j: BTreeMap<String, f64>,
    /// Energy of hosts while no rank runs there \[J\].
    pub unassigned_j: f64,
}

/// The energy of a host, and the ranks that share it.
#[derive(Clone, Copy, Debug, Default)]
struct HostPart {
    /// Energy without computations \[J\].
    idle_j: f64,
    /// Energy of computations \[J\].
    busy_j: f64,
    ranks: u32,
    /// Time of computations, and time of runs, summed over its ranks \[s\].
    compute_s: f64,
    run_s: f64,
}

/// Factors of the frequency of cores by regions of the programs.
type Frequencies = BTreeMap<String, f64>;

/// A job: its results, its trace, and the placement of its ranks.
type Job<'a> = (&'a ProgramOutcome, &'a Trace, &'a Placement);

impl EnergyShares {
    /// Divides the energy of the hosts in a run with some frequencies, by which computations of regions [count](Energy::at_frequencies).
    /// `O(hosts + ranks)`, and the number of regions of each rank.
    pub fn new(
        simulation: &Simulation,
        outcome: &Outcome,
        energy: &Energy,
        frequencies: &BTreeMap<String, f64>,
    ) -> Self {
        let jobs = jobs_of(simulation, outcome);
        let hosts = host_parts(simulation, (&jobs, frequencies), energy);
        let mut shares = Self {
            jobs_j: Vec::new(),
            ranks_j: Vec::new(),
            kinds_j: BTreeMap::new(),
            regions_j: BTreeMap::new(),
            unassigned_j: 0.0,
        };
        for job in jobs {
            let of_rank = |rank| shares.add_rank(simulation, (job, frequencies), rank, &hosts, energy.time);
            let ranks_j: Vec<f64> = (0..job.1.ranks()).map(Rank::new).map(of_rank).collect();
            shares.jobs_j.push(ranks_j.iter().sum());
            shares.ranks_j.push(ranks_j);
        }
        shares.unassigned_j = energy.hosts_j.iter().sum::<f64>() - shares.jobs_j.iter().sum::<f64>();
        shares
    }

    /// Adds what a rank does, and returns its energy \[J\].
    fn add_rank(
        &mut self,
        simulation: &Simulation,
        (job, frequencies): (Job<'_>, &Frequencies),
        rank: Rank,
        hosts: &[HostPart],
        time: SimDuration,
    ) -> f64 {
        let (program, trace, placement) = job;
        let statistics = &program.statistics[rank.index()];
        let (run_s, time_s) = (run_time_s(program, rank), time.as_secs_f64());
        let (mut idle_j, mut busy_j) = (0.0, 0.0);
        for (host, compute_s) in weighted_times_s(simulation, job, rank, frequencies) {
            let host = hosts[host.index()];
            idle_j += if time_s > 0.0 { host.idle_j * run_s / (time_s * f64::from(host.ranks)) } else { 0.0 };
            busy_j += host.busy_j
                * if host.compute_s > 0.0 { compute_s / host.compute_s } else { part(run_s, host.run_s) };
        }
        let all_s: f64 = statistics.kinds().map(|kind| statistics.time(kind).as_secs_f64()).sum();
        for kind in statistics.kinds() {
            let kind_s = statistics.time(kind).as_secs_f64();
            let busy_j = if kind == ActionKind::Compute && kind_s > 0.0 { busy_j } else { 0.0 };
            let kind_j = idle_j * part(kind_s, all_s) + busy_j;
            if kind_j > 0.0 {
                *self.kinds_j.entry(kind).or_default() += kind_j;
            }
        }
        for region in statistics.breakdown().into_iter().flat_map(mpi_model::Breakdown::regions) {
            let region_s: f64 = region.shares().map(|(_, share)| share.time.as_secs_f64()).sum();
            let computing_s = region.time(ActionKind::Compute).as_secs_f64();
            let name = region.site().map_or("", |site| region_of(trace, rank, site));
            let weighted_s = computing_s * power_of(frequencies, name);
            let host = hosts[simulation.computing_host(placement, rank, name).index()];
            let region_j = idle_j * part(region_s, all_s) + host.busy_j * part(weighted_s, host.compute_s);
            if region_j > 0.0 {
                *self.regions_j.entry(name.to_owned()).or_default() += region_j;
            }
        }
        idle_j + busy_j
    }
}

/// Returns the energy of each host with and without computations, and what its ranks do there.
fn host_parts(
    simulation: &Simulation,
    (jobs, frequencies): (&[Job<'_>], &Frequencies),
    energy: &Energy,
) -> Vec<HostPart> {
    let platform = simulation.platform();
    let end = SimTime::ZERO + energy.time;
    let part = |(host, &all_j): (HostId, &f64)| {
        let Some(power) = platform.power().hosts.get(&host) else { return HostPart::default() };
        let off_s = platform.time_off(host, SimTime::ZERO..end).as_secs_f64();
        let idle_j = power.idle * (energy.time.as_secs_f64() - off_s) + power.off * off_s;
        HostPart { idle_j, busy_j: all_j - idle_j, ..HostPart::default() }
    };
    let mut hosts: Vec<HostPart> = (0..).map(HostId::new).zip(&energy.hosts_j).map(part).collect();
    for &job in jobs {
        let (program, trace, _) = job;
        for rank in (0..trace.ranks()).map(Rank::new) {
            for (host, compute_s) in weighted_times_s(simulation, job, rank, frequencies) {
                let host = &mut hosts[host.index()];
                host.ranks += 1;
                host.compute_s += compute_s;
                host.run_s += run_time_s(program, rank);
            }
        }
    }
    hosts
}

fn jobs_of<'a>(simulation: &'a Simulation, outcome: &'a Outcome) -> Vec<Job<'a>> {
    let programs = outcome.programs.iter().zip(simulation.loaded_programs());
    let job = |(program, (_, trace, placement)): (&'a ProgramOutcome, (_, &'a Trace, &'a Placement))| {
        (program, trace, program.placement.as_ref().unwrap_or(placement))
    };
    programs.map(job).collect()
}

/// Returns the name of a region of the program of a rank.
fn region_of(trace: &Trace, rank: Rank, site: LocationId) -> &str {
    region_name(trace.rank(rank).location(site))
}

/// Returns the power above that of an idle host in a region, as a factor.
fn power_of(frequencies: &Frequencies, region: &str) -> f64 {
    frequencies.get(region).map_or(1.0, |frequency| frequency.powi(3))
}

/// Returns the hosts on which a rank computes, its own first, and the time of its computations there, each weighted by its power \[s\].
fn weighted_times_s(
    simulation: &Simulation,
    (program, trace, placement): Job<'_>,
    rank: Rank,
    frequencies: &Frequencies,
) -> Vec<(HostId, f64)> {
    let statistics = &program.statistics[rank.index()];
    let own = placement.host(rank);
    let mut times_s = vec![(own, statistics.time(ActionKind::Compute).as_secs_f64())];
    if frequencies.is_empty() && simulation.spec().offloads.is_empty() {
        return times_s;
    }
    for region in statistics.breakdown().into_iter().flat_map(mpi_model::Breakdown::regions) {
        let computing_s = region.time(ActionKind::Compute).as_secs_f64();
        let name = region.site().map_or("", |site| region_of(trace, rank, site));
        let weighted_s = computing_s * power_of(frequencies, name);
        let host = simulation.computing_host(placement, rank, name);
        if host == own {
            times_s[0].1 += weighted_s - computing_s;
            continue;
        }
        times_s[0].1 -= computing_s;
        match times_s.iter_mut().find(|(known, _)| *known == host) {
            Some((_, time_s)) => *time_s += weighted_s,
            None => times_s.push((host, weighted_s)),
        }
    }
    times_s
}

impl Energy {
    /// Returns the energy with other frequencies of cores in regions of the programs, at which the run has computed: what a host takes above its idle
    /// power goes with their cube, by the time that its ranks compute there. In power over time the difference counts evenly.
    pub fn at_frequencies(
        mut self,
        simulation: &Simulation,
        outcome: &Outcome,
        frequencies: &BTreeMap<String, f64>,
    ) -> Self {
        let jobs = jobs_of(simulation, outcome);
        let full = host_parts(simulation, (&jobs, &Frequencies::new()), &self);
        let weighted = host_parts(simulation, (&jobs, frequencies), &self);
        let mut saved_j = 0.0;
        for ((joules, full), weighted) in self.hosts_j.iter_mut().zip(full).zip(weighted) {
            let saved = full.busy_j * (1.0 - part(weighted.compute_s, full.compute_s));
            if full.compute_s > 0.0 {
                *joules -= saved;
                saved_j += saved;
            }
        }
        let time_s = self.time.as_secs_f64();
        if time_s > 0.0 {
            self.power_w.iter_mut().for_each(|power_w| *power_w -= saved_j / time_s);
        }
        self
    }
}

/// Returns the time from the start of a job to the end of a rank \[s\].
fn run_time_s(program: &ProgramOutcome, rank: Rank) -> f64 {
    (program.ends[rank.index()] - program.start).as_secs_f64()
}

/// Returns a part of a whole as a fraction; 0 of nothing.
fn part(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
