//! Energy of a run, for the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use machine::{EnergyPart, EnergySection, EnergyShares};
use mpi_model::ActionKind;
use netmodel::{HostId, LinkId, LinkLoads, Resource, Sharing};
use replay::{Outcome, Simulation};
use serde::{Deserialize, Serialize};

use super::section::{CsvTable, Section};

/// Largest number of rows of each printed table.
const MAX_PRINTED: usize = 10;

/// Energy that the hosts and links of the platform took; `docs/energy.md` says how it is determined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Energy of all hosts of the platform \[J\].
    pub hosts_j: f64,
    /// Energy of all links of the platform \[J\].
    pub links_j: f64,
    /// Energy of messages in adapters \[J\].
    #[serde(default)]
    pub messages_j: f64,
    /// Energy of bytes that cross links \[J\].
    #[serde(default)]
    pub traffic_j: f64,
    /// Energy of all of these \[J\].
    pub total_j: f64,
    /// Mean power of all of these \[W\].
    pub mean_w: f64,
    /// Product of energy and time \[J s\].
    pub energy_delay_js: f64,
    /// Mass of carbon dioxide \[g\]; null unless `energy.carbon_intensity` is set.
    pub carbon_g: Option<f64>,
    /// Length of the time bins of `power_w` \[ps\].
    pub bin_ps: u64,
    /// Mean power of hosts and links in each bin \[W\].
    pub power_w: Vec<f64>,
    /// Energy of each host, in the order of the platform; null unless `energy.by` asks for it.
    pub hosts: Option<Vec<PartEnergy>>,
    /// Energy of each link, in the order of the platform; null unless `energy.by` asks for it.
    pub links: Option<Vec<PartEnergy>>,
    /// Energy of the hosts while the ranks of each job run there; null unless `energy.by` asks for it, as the following ones.
    #[serde(default)]
    pub jobs: Option<Vec<PartEnergy>>,
    /// Energy of each rank, job by job \[J\].
    #[serde(default)]
    pub ranks_j: Option<Vec<Vec<f64>>>,
    /// Energy by region of the programs; `""` is what precedes all of them.
    #[serde(default)]
    pub regions: Option<Vec<PartEnergy>>,
    /// Energy by kind of action.
    #[serde(default)]
    pub calls: Option<Vec<PartEnergy>>,
    /// Energy of hosts while no rank runs there \[J\]; null unless jobs, ranks, regions or calls are asked for.
    #[serde(default)]
    pub unassigned_j: Option<f64>,
    /// What is not counted, and why.
    pub left_out: Vec<String>,
}

/// Energy of a host or a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartEnergy {
    /// Name of the host or the link.
    pub name: String,
    /// Its energy \[J\].
    pub energy_j: f64,
}

impl Section for Energy {
    fn new(simulation: &Simulation, outcome: &Outcome) -> Option<Self> {
        let section = simulation.spec().extensions.get(EnergySection::NAME)?.clone();
        let section: EnergySection = section.try_into().expect("the section was checked");
        let (hosts, platform) = (outcome.hosts.as_ref()?, simulation.platform());
        let idle = LinkLoads { bin: hosts.bin, links: Vec::new(), fat_pipes: Vec::new() };
        let links = outcome.links.as_ref().unwrap_or(&idle);
        let (energy, power) =
            (machine::Energy::new(platform, hosts, links, outcome.simulated_time()), section.power());
        let messages_j = power.messages_j(platform, &sent_by_host(simulation, outcome));
        let energy = energy.with_messages(messages_j, power.traffic_j(platform, links));
        let energy = match section.frequency.is_empty() {
            true => energy,
            false => energy.at_frequencies(simulation, outcome, &section.frequency),
        };
        let listed = |part, names: Vec<&String>, joules: &[f64]| {
            let of = |(name, &energy_j): (&String, &f64)| PartEnergy { name: name.clone(), energy_j };
            section.by.contains(&part).then(|| names.into_iter().zip(joules).map(of).collect())
        };
        let host_names = platform.hosts().iter().map(|host| &host.name).collect();
        let link_names = platform.links().iter().map(|link| &link.name).collect();
        let time_s = energy.time.as_secs_f64();
        let of_ranks = [EnergyPart::Job, EnergyPart::Rank, EnergyPart::Region, EnergyPart::Call];
        let is_divided = of_ranks.iter().any(|part| section.by.contains(part));
        let shares = is_divided.then(|| EnergyShares::new(simulation, outcome, &energy, &section.frequency));
        let wanted = |part| shares.as_ref().filter(|_| section.by.contains(&part));
        let jobs = wanted(EnergyPart::Job).map(|shares| {
            let labels = simulation.loaded_programs().map(|(spec, ..)| spec.label());
            labels.zip(&shares.jobs_j).map(|(name, &energy_j)| PartEnergy { name, energy_j }).collect()
        });
        let regions = wanted(EnergyPart::Region).map(|shares| {
            shares
                .regions_j
                .iter()
                .map(|(name, &energy_j)| PartEnergy { name: name.clone(), energy_j })
                .collect()
        });
        let calls = wanted(EnergyPart::Call).map(|shares| {
            let part = |(kind, &energy_j): (&ActionKind, &f64)| PartEnergy {
                name: kind.name().to_owned(),
                energy_j,
            };
            shares.kinds_j.iter().map(part).collect()
        });
        Some(Self {
            jobs,
            ranks_j: wanted(EnergyPart::Rank).map(|shares| shares.ranks_j.clone()),
            regions,
            calls,
            unassigned_j: shares.as_ref().map(|shares| shares.unassigned_j),
            hosts_j: energy.hosts_j.iter().sum(),
            links_j: energy.links_j.iter().sum(),
            messages_j: energy.messages_j,
            traffic_j: energy.traffic_j,
            total_j: energy.total_j(),
            mean_w: if time_s > 0.0 { energy.total_j() / time_s } else { 0.0 },
            energy_delay_js: energy.energy_delay_js(),
            carbon_g: section.carbon_intensity().map(|intensity| energy.carbon_g(&intensity)),
            bin_ps: energy.bin.as_picos(),
            hosts: listed(EnergyPart::Host, host_names, &energy.hosts_j),
            links: listed(EnergyPart::Link, link_names, &energy.links_j),
            left_out: [
                left_out(simulation, !section.traffic.is_empty()),
                unknown_regions(simulation, &section),
            ]
            .concat(),
            power_w: energy.power_w,
        })
    }

    fn write_tables(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "\n{}", self.sentence())?;
        for (what, parts) in self.parts() {
            let mut parts: Vec<&PartEnergy> = parts.iter().collect();
            parts.sort_by(|one, other| other.energy_j.total_cmp(&one.energy_j));
            writeln!(text, "\n{what:<32} {:>16}", "energy")?;
            for PartEnergy { name, energy_j } in parts.iter().take(MAX_PRINTED) {
                writeln!(text, "{name:<32} {energy_j:>14.6} J")?;
            }
            if parts.len() > MAX_PRINTED {
                writeln!(text, "and {} more", parts.len() - MAX_PRINTED)?;
            }
        }
        Ok(())
    }

    fn csv(&self) -> Vec<CsvTable> {
        let table = |name, header: [&str; 2], rows: Vec<Vec<String>>| CsvTable {
            name,
            header: header.map(str::to_owned).to_vec(),
            rows,
        };
        let begin_s = |bin: usize| bin as f64 * self.bin_ps as f64 / 1e12;
        let bins = self.power_w.iter().enumerate();
        let power = bins.map(|(bin, watts)| vec![begin_s(bin).to_string(), watts.to_string()]).collect();
        let parts = self.parts().map(|(what, parts)| {
            let row = |part: &PartEnergy| vec![part.name.clone(), part.energy_j.to_string()];
            let name = match what {
                "host" => "host_energy",
                "link" => "link_energy",
                "job" => "job_energy",
                "region" => "region_energy",
                _ => "call_energy",
            };
            table(name, [what, "energy_j"], parts.iter().map(row).collect())
        });
        let of_rank = |(rank, energy_j): (usize, &f64)| vec![rank.to_string(), energy_j.to_string()];
        let ranks = self.ranks_j.iter().map(|jobs| {
            let ranks = jobs.iter().flatten().enumerate();
            table("rank_energy", ["rank", "energy_j"], ranks.map(of_rank).collect())
        });
        let power = table("power", ["begin_s", "power_w"], power);
        [power].into_iter().chain(parts).chain(ranks).collect()
    }

    fn warnings(&self) -> &[String] {
        &self.left_out
    }
}

impl Energy {
    /// Returns the parts that are listed one by one, by their kind.
    fn parts(&self) -> impl Iterator<Item = (&'static str, &Vec<PartEnergy>)> {
        let Self { hosts, links, jobs, regions, calls, .. } = self;
        let parts = [("host", hosts), ("link", links), ("job", jobs), ("region", regions), ("call", calls)];
        parts.into_iter().filter_map(|(what, parts)| Some((what, parts.as_ref()?)))
    }

    /// Returns the energy in one line.
    pub fn sentence(&self) -> String {
        let Self {
            hosts_j, links_j, messages_j, traffic_j, total_j, mean_w, energy_delay_js, carbon_g, ..
        } = self;
        let messages = match messages_j + traffic_j {
            0.0 => String::new(),
            _ => format!(", messages {messages_j:.6}, their traffic {traffic_j:.6}"),
        };
        let carbon = carbon_g.map_or_else(String::new, |grams| format!(", carbon dioxide {grams:.6} g"));
        format!(
            "energy: {total_j:.6} J (hosts {hosts_j:.6}, links {links_j:.6}{messages}), {mean_w:.3} W on average, {energy_delay_js:.6} J s{carbon}"
        )
    }
}

/// Returns the number and the payload \[B\] of the messages that the ranks on each host have sent.
fn sent_by_host(simulation: &Simulation, outcome: &Outcome) -> BTreeMap<HostId, (u64, u64)> {
    let mut sent = BTreeMap::<HostId, (u64, u64)>::new();
    for (program, (_, _, placement)) in outcome.programs.iter().zip(simulation.loaded_programs()) {
        let placement = program.placement.as_ref().unwrap_or(placement);
        for (host, statistics) in placement.hosts().iter().zip(&program.statistics) {
            let (messages, bytes) = sent.entry(*host).or_default();
            *messages += statistics.messages;
            *bytes += statistics.bytes.get();
        }
    }
    sent
}

/// Returns warnings of regions with a frequency that no rank enters.
fn unknown_regions(simulation: &Simulation, section: &EnergySection) -> Vec<String> {
    let is_known = |name: &str| simulation.has_region(|region| region == name);
    let names = section.frequency.keys().filter(|name| !name.is_empty() && !is_known(name));
    names.map(|name| format!("energy: no rank enters the region {name:?} of energy.frequency")).collect()
}

/// Returns what is not counted: traffic without loads of links, hosts and links without known power, fat pipes with epochs, and what is not known without contention.
fn left_out(simulation: &Simulation, has_traffic: bool) -> Vec<String> {
    let (platform, has_epochs) = (simulation.platform(), simulation.epochs().is_some());
    let able = simulation.spec().model.network.map(|network| network.capabilities).unwrap_or_default();
    let power = platform.power();
    let hosts = || (0..).map(HostId::new).zip(platform.hosts());
    let named = |is_it: &dyn Fn(HostId) -> bool| -> Vec<&String> {
        hosts().filter(|(id, _)| is_it(*id)).map(|(_, host)| &host.name).collect()
    };
    let unknown = named(&|id| !power.hosts.contains_key(&id));
    let shared = named(&|id| {
        let jumps = power.hosts.get(&id).is_some_and(|power| power.idle != power.epsilon());
        !able.cores && jumps && simulation.placement().residents(id) > 1
    });
    let changing = named(&|id| !able.cores && platform.changes().includes(Resource::Speed(id)));
    // The built-in loopback link is memory of its host.
    let links = || {
        let links = (0..).map(LinkId::new).zip(platform.links());
        links.filter(|(_, link)| !link.name.starts_with("__"))
    };
    let without: Vec<&String> =
        links().filter(|(id, _)| !power.links.contains_key(id)).map(|(_, link)| &link.name).collect();
    let pipes = links().filter(|(id, link)| {
        let varies = power.links.get(id).is_some_and(|power| power.idle != power.busy);
        has_epochs && varies && link.sharing == Sharing::FatPipe
    });
    let unloaded = links().filter(|(id, _)| !able.links && power.links.contains_key(id));
    let unloaded: Vec<&String> = unloaded.map(|(_, link)| &link.name).collect();
    let untold: Vec<&String> =
        links().filter(|_| has_traffic && !able.links).map(|(_, link)| &link.name).collect();
    let pipes: Vec<&String> = pipes.map(|(_, link)| &link.name).collect();
    let warning = |names: Vec<&String>, what: &str, why: &str| {
        let first = names.first()?;
        let number = names.len();
        Some(format!("energy: {number} {what}(s), the first {first:?}, {why}"))
    };
    [
        warning(unknown, "host", "count 0 W: give their power in [energy.hosts]"),
        warning(without, "link", "count 0 W: give their power in [energy.links]"),
        warning(
            shared,
            "host",
            "count the busy times of their ranks apart, which overlap: take network.model = \"flow\"",
        ),
        warning(changing, "host", "compute as if their speed did not change: take network.model = \"flow\""),
        warning(
            unloaded,
            "link",
            "count as idle: the model knows no loads of links, network.model = \"flow\" does",
        ),
        warning(
            untold,
            "link",
            "count no traffic: the model knows no loads of links, network.model = \"flow\" does",
        ),
        warning(pipes, "fat pipe", "count as idle with epochs (network.epoch_s = 0 counts their load)"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
