//! Warnings about an outcome: a modelled overhead that dominates the run, speeds of hosts that do not fit the trace, receives whose order is that of the recorded run, a timeline
//! without contents.

use mpi_model::{ActionKind, Parameters, Statistics};
use pdes_core::{SimDuration, SimTime};

use super::{Outcome, Simulation};
use crate::recorded_speed::RecordedSpeed;

/// Share of the time of all ranks above which the cost of one kind of call is doubtful.
const DOUBTFUL_SHARE: f64 = 0.5;

/// A kind of overhead: the key of its cost, the actions that have it, and whether it costs anything.
struct Overhead {
    name: &'static str,
    key: &'static str,
    kinds: &'static [ActionKind],
    is_charged: fn(&Parameters) -> bool,
}

const OVERHEADS: [Overhead; 6] = [
    Overhead {
        name: "tests",
        key: "mpi.test_s",
        kinds: &[ActionKind::Test],
        is_charged: |parameters| parameters.test > SimDuration::ZERO,
    },
    Overhead {
        name: "nonblocking probes",
        key: "mpi.iprobe_s",
        kinds: &[ActionKind::Iprobe],
        is_charged: |parameters| parameters.iprobe > SimDuration::ZERO,
    },
    Overhead {
        name: "blocking sends",
        key: "mpi.send_overhead",
        kinds: &[ActionKind::Send],
        is_charged: |parameters| !parameters.send.is_zero(),
    },
    Overhead {
        name: "nonblocking sends",
        key: "mpi.isend_overhead",
        kinds: &[ActionKind::Isend, ActionKind::SendRecv],
        is_charged: |parameters| !parameters.isend.is_zero(),
    },
    Overhead {
        name: "nonblocking receives",
        key: "mpi.irecv_s",
        kinds: &[ActionKind::Irecv],
        is_charged: |parameters| parameters.irecv > SimDuration::ZERO,
    },
    Overhead {
        name: "completed receives",
        key: "mpi.receive_overhead",
        kinds: &[ActionKind::Recv, ActionKind::Wait, ActionKind::Waitall],
        is_charged: |parameters| !parameters.receive.is_zero(),
    },
];

impl Simulation {
    /// Returns warnings about an outcome, which a user should know before trusting it, one sentence each.
    pub fn outcome_warnings(&self, outcome: &Outcome) -> Vec<String> {
        let all: f64 = ActionKind::ALL.into_iter().map(|kind| time(outcome, kind, |_, _| 0.0)).sum();
        let charged = OVERHEADS.iter().filter(|overhead| (overhead.is_charged)(&self.spec.mpi));
        let doubtful = charged.filter_map(|overhead| {
            let cost: f64 = overhead.kinds.iter().map(|&kind| time(outcome, kind, waiting)).sum();
            (cost > DOUBTFUL_SHARE * all).then(|| self.describe_overhead(overhead, cost / all))
        });
        doubtful
            .chain(self.speed_warning(outcome))
            .chain(kept_sources_warning(outcome))
            .chain(self.window_warning(outcome))
            .collect()
    }

    /// Returns a warning about the speed of the hosts, if the program computes.
    fn speed_warning(&self, outcome: &Outcome) -> Option<String> {
        let computes = outcome.program().statistics.iter().any(|rank| rank.count(ActionKind::Compute) > 0);
        RecordedSpeed::of(self).filter(|_| computes).and_then(RecordedSpeed::warning)
    }

    /// Returns a warning about a timeline of a time in which nothing ran.
    fn window_warning(&self, outcome: &Outcome) -> Option<String> {
        let plan = self.spec.timeline.as_ref()?;
        let (window, end) = (&plan.excerpt.window, outcome.simulated_time());
        let first = plan.excerpt.ranks.start;
        if window.start >= end && end > SimTime::ZERO {
            return Some(format!(
                "the timeline {} is empty: its window begins at {} s, and the run ends at {} s",
                plan.path.display(),
                window.start.as_secs_f64(),
                end.as_secs_f64()
            ));
        }
        let ranks = outcome.program().statistics.len();
        (first as usize >= ranks).then(|| {
            format!(
                "the timeline {} is empty: its ranks begin with {first}, and the run has {ranks}",
                plan.path.display()
            )
        })
    }

    fn describe_overhead(&self, Overhead { name, key, kinds, .. }: &Overhead, share: f64) -> String {
        let is_poll = kinds.iter().any(|kind| [ActionKind::Test, ActionKind::Iprobe].contains(kind));
        let growth = if is_poll && self.spec.mpi.test_grows {
            "; it grows with each failed poll, as in SimGrid: mpi.test_grows = false keeps it constant"
        } else {
            ""
        };
        format!(
            "{:.0} % of the time of all ranks is the modelled cost of {name}, by {key}{growth}; {key} = 0 leaves it out",
            100.0 * share
        )
    }
}

/// Returns a warning about receives and probes from any source that kept their recorded source, if there are any.
fn kept_sources_warning(outcome: &Outcome) -> Option<String> {
    let kept = (0..)
        .zip(&outcome.program().statistics)
        .map(|(rank, statistics)| (rank, statistics.outcomes().kept_sources));
    let kept: Vec<(u32, u64)> = kept.filter(|&(_, count)| count > 0).collect();
    let (&(first, _), calls) = (kept.first()?, kept.iter().map(|(_, count)| count).sum::<u64>());
    let whose = match kept.len() {
        1 => format!("of rank {first}"),
        ranks => format!("of {ranks} ranks, the first of rank {first},"),
    };
    Some(format!(
        "{calls} receive(s) or probe(s) from any source (MPI_ANY_SOURCE) {whose} took the messages of their recorded sources, because the \
         program then answers the sender: their order is that of the recorded run, as with mpi.outcomes = \"recorded\""
    ))
}

/// Returns the time of all ranks in actions of a kind, without a part of it \[s\].
fn time(outcome: &Outcome, kind: ActionKind, part: fn(&Statistics, ActionKind) -> f64) -> f64 {
    outcome.program().statistics.iter().map(|rank| rank.time(kind).as_secs_f64() - part(rank, kind)).sum()
}

/// Returns the time of a rank in which actions of a kind waited, for ranks or data \[s\]; 0 if that is not recorded.
fn waiting(rank: &Statistics, kind: ActionKind) -> f64 {
    let share = rank.breakdown().map(|breakdown| breakdown.total(kind)).unwrap_or_default();
    let waiting: f64 = share.waiting.iter().map(|time| time.as_secs_f64()).sum();
    waiting + share.transfer.as_secs_f64()
}
