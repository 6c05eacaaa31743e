//! The jobs of a run, for the report.

use std::fmt::Write as _;

use machine::failure::HostFailure;
use mpi_model::Statistics;
use netmodel::{LinkId, Platform};
use pdes_core::SimDuration;
use replay::{Delay, Digest, Outcome, Placement, ProgramDeath, ProgramSpec, Simulation, Start};
use serde::{Deserialize, Serialize};
use trace_mmap::Trace;

use super::failures::JobEnd;
use super::section::{CsvTable, Section};
use super::tables::seconds;

/// The jobs of a run, in the order of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Jobs(pub Vec<Job>);

/// A job of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Path of its trace, as given.
    pub trace: String,
    /// Hosts file, or placement.
    pub placement: String,
    /// Number of its ranks.
    pub ranks: u32,
    /// Number of hosts with its ranks.
    pub hosts: usize,
    /// Start \[s\].
    pub start_s: f64,
    /// End of its last rank \[s\].
    pub end_s: f64,
    /// Time from its start to its end \[s\].
    pub simulated_time_s: f64,
    /// A hash over the results of its ranks, as that of a run.
    pub digest: String,
    /// Number of its actions.
    pub actions: u64,
    /// Number of messages sent, point-to-point and inside collectives.
    pub messages: u64,
    /// Payload of these messages \[B\].
    pub message_bytes: u64,
    /// Time from its start to its end if it is alone on its hosts \[s\]; null unless slowdowns were asked for.
    pub alone_s: Option<f64>,
    /// Quotient of `simulated_time_s` and `alone_s`; null unless slowdowns were asked for.
    pub slowdown: Option<f64>,
    /// Time lost to each other job; null unless slowdowns were asked for.
    pub delayed_by: Option<Vec<LostTime>>,
    /// The failure of a host that has ended the job before its work was done; null if there is none. The other results of one job are those
    /// of the whole work; of several jobs, those of its last start until then.
    #[serde(default)]
    pub failed: Option<JobEnd>,
    /// Failures of its hosts in a run of several jobs, in the order of time.
    #[serde(default)]
    pub failures: Vec<HostFailure>,
}

/// Time that a job loses to another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LostTime {
    /// Name of the other job.
    pub job: String,
    /// Time by which the job ends later \[s\]; negative if it ends earlier.
    pub lost_s: f64,
    /// Its parts by link, as messages of the job wait there for those of the other one; the largest ones first. Empty where no messages do, as
    /// with other models than exact `flow`.
    #[serde(default)]
    pub links: Vec<LostOnLink>,
}

/// Time that a job loses to another one on a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LostOnLink {
    /// Name of the link.
    pub link: String,
    /// Part of the lost time \[s\].
    pub lost_s: f64,
}

/// A program of a run, its trace, and the placement of its ranks.
type LoadedProgram<'a> = (&'a ProgramSpec, &'a Trace, &'a Placement);

impl Jobs {
    /// Writes the jobs and, where they were asked for, their delays as tables.
    pub fn write(&self, text: &mut String) -> std::fmt::Result {
        let width = self.0.iter().map(|job| job.name.chars().count()).max().unwrap_or_default().max(10);
        writeln!(
            text,
            "\n{:<width$} {:>7} {:>6} {:>16} {:>16} {:>16} {:>9}",
            "job", "ranks", "hosts", "start", "end", "time", "slowdown"
        )?;
        for Job { name, ranks, hosts, start_s, end_s, simulated_time_s, slowdown, .. } in &self.0 {
            let slowdown = slowdown.map_or("-".to_owned(), |slowdown| format!("{slowdown:.4}"));
            writeln!(
                text,
                "{name:<width$} {ranks:>7} {hosts:>6} {start_s:>14.9} s {end_s:>14.9} s {simulated_time_s:>14.9} s {slowdown:>9}"
            )?;
        }
        for Job { name, failures, failed, .. } in self.0.iter().filter(|job| !job.failures.is_empty()) {
            let lost_s: f64 = failures.iter().map(|failure| failure.lost_s).sum();
            let end = failed.as_ref().map_or(String::new(), |JobEnd { host, at_s }| {
                format!(", the last one of {host} at {at_s:.9} s, which ends the job")
            });
            writeln!(text, "{name}: {} failures of hosts, {lost_s:.9} s lost{end}", failures.len())?;
        }
        if self.0.iter().all(|job| job.delayed_by.is_none()) || self.0.len() < 2 {
            return Ok(());
        }
        writeln!(text, "\n{:<width$} {:<width$} {:>16} {:>9}", "delayed", "by", "lost", "of alone")?;
        for Job { name, delayed_by, alone_s, .. } in &self.0 {
            for LostTime { job, lost_s, links } in delayed_by.iter().flatten() {
                let share = 100.0 * lost_s / alone_s.unwrap_or_default().max(f64::MIN_POSITIVE);
                let most = links
                    .first()
                    .map_or(String::new(), |most| format!("  most on {} ({:.9} s)", most.link, most.lost_s));
                writeln!(text, "{name:<width$} {job:<width$} {lost_s:>14.9} s {share:>7.2} %{most}")?;
            }
        }
        Ok(())
    }
}

/// Divides the time that a job loses to another one among links, in the proportion of the times for which its messages wait there for those of
/// the other one.
fn lost_on_links(
    platform: &Platform,
    outcome: &Outcome,
    jobs: (usize, usize),
    lost_s: f64,
) -> Vec<LostOnLink> {
    let waits_s = outcome.link_blame.as_ref().and_then(|blame| blame.waits_s.get(&jobs));
    let Some(waits_s) = waits_s.filter(|_| lost_s != 0.0) else { return Vec::new() };
    let all_s: f64 = waits_s.values().sum();
    let of_link = |(&link, wait_s): (&LinkId, &f64)| LostOnLink {
        link: platform.link(link).name.clone(),
        lost_s: lost_s * wait_s / all_s,
    };
    let mut links: Vec<LostOnLink> = waits_s.iter().map(of_link).collect();
    links.sort_by(|one, other| other.lost_s.abs().total_cmp(&one.lost_s.abs()));
    links
}

fn host_failure(death: &ProgramDeath) -> HostFailure {
    let ProgramDeath { component, start: _, at, lost, restart, replaced } = death;
    HostFailure {
        component: component.clone(),
        at_s: at.as_secs_f64(),
        lost_s: lost.as_secs_f64(),
        resumed_s: restart.map(|restart| restart.as_secs_f64()),
        replaced: replaced.clone(),
    }
}

impl Section for Jobs {
    fn new(simulation: &Simulation, outcome: &Outcome) -> Option<Self> {
        simulation.spec().name.as_ref()?;
        let names: Vec<String> = simulation.loaded_programs().map(|(spec, ..)| spec.label()).collect();
        let actions = simulation.actions_of_programs(outcome);
        let job = |(index, (spec, trace, placement)): (usize, LoadedProgram<'_>)| {
            let program = &outcome.programs[index];
            let start = program.first_start();
            let time = program.end() - start;
            let placement = program.placement.as_ref().unwrap_or(placement);
            let sum = |of: fn(&Statistics) -> u64| program.statistics.iter().map(of).sum();
            let delay = outcome.delays.as_ref().map(|delays| &delays[index]);
            let alone = delay.map(|delay| delay.alone - start);
            let lost = |Delay { lost_ps, .. }: &Delay| {
                let others = names.iter().zip(lost_ps).enumerate().filter(|(other, _)| *other != index);
                others
                    .map(|(other, (job, &lost))| {
                        let (job, lost_s) = (job.clone(), lost as f64 / 1e12);
                        let links = lost_on_links(simulation.platform(), outcome, (index, other), lost_s);
                        LostTime { job, lost_s, links }
                    })
                    .collect()
            };
            Job {
                name: names[index].clone(),
                trace: spec.trace.to_string(),
                placement: match (&spec.hosts, spec.start) {
                    (_, Start::Submitted(_)) => "scheduled".to_owned(),
                    (Some(hosts), _) => hosts.display().to_string(),
                    (None, _) => spec.placement.name().to_owned(),
                },
                ranks: trace.ranks(),
                hosts: placement.used_hosts(),
                start_s: start.as_secs_f64(),
                end_s: program.end().as_secs_f64(),
                simulated_time_s: seconds(time.as_picos()),
                digest: Digest::of(program.ends.iter().copied().zip(&program.statistics)).to_string(),
                actions: actions[index],
                messages: sum(|rank| rank.messages),
                message_bytes: sum(|rank| rank.bytes.get()),
                alone_s: alone.map(|alone| seconds(alone.as_picos())),
                slowdown: alone
                    .filter(|alone| *alone > SimDuration::ZERO)
                    .map(|alone| time.as_picos() as f64 / alone.as_picos() as f64),
                delayed_by: delay.map(lost),
                failed: program
                    .fatal_death()
                    .map(|death| JobEnd { host: death.component.clone(), at_s: death.at.as_secs_f64() }),
                failures: program.deaths.iter().map(host_failure).collect(),
            }
        };
        Some(Self(simulation.loaded_programs().enumerate().map(job).collect()))
    }

    fn write_tables(&self, text: &mut String) -> std::fmt::Result {
        self.write(text)
    }

    fn csv(&self) -> Vec<CsvTable> {
        let header = ["job", "start_s", "end_s", "simulated_time_s", "alone_s", "digest"];
        let optional = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
        let row = |job: &Job| {
            vec![
                job.name.clone(),
                job.start_s.to_string(),
                job.end_s.to_string(),
                job.simulated_time_s.to_string(),
                optional(job.alone_s),
                job.digest.clone(),
            ]
        };
        let lost = self.0.iter().flat_map(|job| {
            let rows = job.delayed_by.iter().flatten();
            rows.map(|lost| vec![job.name.clone(), lost.job.clone(), lost.lost_s.to_string()])
        });
        let table = |name, header: &[&str], rows| CsvTable {
            name,
            header: header.iter().map(|name| (*name).to_owned()).collect(),
            rows,
        };
        let mut tables = vec![table("jobs", &header, self.0.iter().map(row).collect())];
        let lost: Vec<_> = lost.collect();
        let on_links = self.0.iter().flat_map(|job| {
            let losses = job.delayed_by.iter().flatten();
            losses.flat_map(|lost| {
                let row = |on: &LostOnLink| {
                    vec![job.name.clone(), lost.job.clone(), on.link.clone(), on.lost_s.to_string()]
                };
                lost.links.iter().map(row).collect::<Vec<_>>()
            })
        });
        let on_links: Vec<_> = on_links.collect();
        if !lost.is_empty() {
            tables.push(table("delays", &["job", "delayed_by", "lost_s"], lost));
        }
        if !on_links.is_empty() {
            tables.push(table("delays_on_links", &["job", "delayed_by", "link", "lost_s"], on_links));
        }
        tables
    }
}
