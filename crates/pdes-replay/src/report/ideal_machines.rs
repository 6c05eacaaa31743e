//! Run times on machines that have one cost after the other: parts of the run time.

use std::fmt::{self, Write as _};

use figures::quantity::{percent, seconds};
use mpi_model::ActionKind;
use pdes_core::Progress;
use replay::{LinkScale, Outcome, RunError, RunSpec, Simulation};
use serde::{Deserialize, Serialize};

use super::section::Section;

/// Largest number of replayed actions of an archive for which a report has the section without being asked: the replays take a second or two.
const SHORT: u64 = 2_000_000;
/// The same of text, which each replay reads anew.
const SHORT_TEXT: u64 = 200_000;

/// Factor of bandwidths in whose place data take no time.
const WIDE: f64 = 1e9;

/// Ends of the last rank on machines that have one cost more each, down to the machine of the run \[ps\].
///
/// The order decides how much a cost that hides another one gets: each part is what its cost adds to those before it, so that the parts sum to
/// the run time. A part can be negative, as a run can end earlier where something takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdealMachines {
    /// Time that a rank computes and sleeps, on average.
    pub mean_compute_ps: u64,
    /// The same of the rank that does so longest.
    pub max_compute_ps: u64,
    /// End if messages and calls took no time: ranks wait for each other's computations.
    pub no_communication_ps: u64,
    /// End with the overheads of calls, too.
    pub library_ps: u64,
    /// End with the latency of messages, too.
    pub latency_ps: u64,
    /// End with the bandwidth of links, too, which messages do not share.
    pub bandwidth_ps: u64,
    /// End of the run.
    pub run_ps: u64,
}

/// Part of the run time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunTimePart {
    /// Name.
    pub name: &'static str,
    /// Length \[s\].
    pub time_s: f64,
    /// What makes it shorter.
    pub advice: &'static str,
}

impl IdealMachines {
    /// Returns whether the report of a run has this section: as asked for, or if its replays are short.
    pub(super) fn are_wanted(simulation: &Simulation, outcome: &Outcome) -> bool {
        let spec = simulation.spec();
        let skipped = outcome.fast_forward.map_or(0, |found| found.skipped_actions);
        let limit = if simulation.trace().is_in_memory() { SHORT_TEXT } else { SHORT };
        let is_short = spec.code.is_none() && simulation.actions(outcome) - skipped <= limit;
        spec.other_programs.is_empty() && spec.ideal_machines.unwrap_or(is_short)
    }

    /// Replays a run on each of the machines: four replays without contention.
    ///
    /// # Errors
    /// As [`Simulation::replay`].
    pub(super) fn of(spec: &RunSpec, outcome: &Outcome) -> Result<Self, RunError> {
        let no_communication = spec.on_ideal_network();
        let library = RunSpec { mpi: spec.mpi.clone(), polling: spec.polling, ..no_communication.clone() };
        let wide = LinkScale { bandwidth: spec.link_scale.bandwidth * WIDE, ..spec.link_scale };
        let latency = RunSpec {
            network: spec.network.clone(),
            changes: spec.changes.clone(),
            profiles: spec.profiles.clone(),
            platform_changes: spec.platform_changes.clone(),
            link_scale: wide,
            ..library.clone()
        };
        let bandwidth = RunSpec { link_scale: spec.link_scale, ..latency.clone() };
        let replay = |spec: &RunSpec| Simulation::load(spec)?.replay(&Progress::new(spec.threads));
        let end = |spec: &RunSpec| Ok::<_, RunError>(replay(spec)?.simulated_time().as_picos());
        let ideal = replay(&no_communication)?;
        let computed = ideal.program().statistics.iter().map(|rank| {
            let [compute, sleep] =
                [ActionKind::Compute, ActionKind::Sleep].map(|kind| rank.time(kind).as_picos());
            compute + sleep
        });
        let ranks = computed.len().max(1) as u128;
        Ok(Self {
            mean_compute_ps: (computed.clone().map(u128::from).sum::<u128>() / ranks) as u64,
            max_compute_ps: computed.max().unwrap_or_default(),
            no_communication_ps: ideal.simulated_time().as_picos(),
            library_ps: end(&library)?,
            latency_ps: end(&latency)?,
            bandwidth_ps: end(&bandwidth)?,
            run_ps: outcome.simulated_time().as_picos(),
        })
    }

    /// Returns the parts of the run time, which sum to it.
    pub fn parts(&self) -> [RunTimePart; 7] {
        let &Self {
            mean_compute_ps,
            max_compute_ps,
            no_communication_ps,
            library_ps,
            latency_ps,
            bandwidth_ps,
            run_ps,
        } = self;
        let part = |name, before: u64, after: u64, advice| RunTimePart {
            name,
            time_s: (after as f64 - before as f64) / 1e12,
            advice,
        };
        [
            part("computation", 0, mean_compute_ps, "faster hosts, or less work"),
            part("imbalance", mean_compute_ps, max_compute_ps, "work that is spread better"),
            part(
                "serialization",
                max_compute_ps,
                no_communication_ps,
                "ranks that do not wait for each other's computations in turn",
            ),
            part("the MPI library", no_communication_ps, library_ps, "fewer calls, or less overhead of each"),
            part(
                "latency",
                library_ps,
                latency_ps,
                "fewer messages after each other, or a network of less latency",
            ),
            part("bandwidth", latency_ps, bandwidth_ps, "less data, or wider links"),
            part(
                "contention",
                bandwidth_ps,
                run_ps,
                "other routes or another placement of ranks, more links, or less data at the same time",
            ),
        ]
    }
}

impl Section for IdealMachines {
    /// Takes replays of its own: [`Report::add_ideal_machines`](super::Report::add_ideal_machines).
    fn new(_: &Simulation, _: &Outcome) -> Option<Self> {
        None
    }

    fn write_tables(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "\n{:<20} {:>12} {:>8} {:>14}", "part of the run time", "adds", "share", "up to")?;
        let mut sum = 0.0;
        for RunTimePart { name, time_s, .. } in self.parts() {
            sum += time_s;
            let share = percent(time_s, self.run_ps as f64 / 1e12);
            writeln!(text, "{name:<20} {:>12} {share:>8} {:>14}", seconds(time_s), seconds(sum))?;
        }
        Ok(())
    }
}
