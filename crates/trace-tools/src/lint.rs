//! Lints: what is suspicious in a trace, though a replay takes it, and may make its answer wrong.

mod schedule;

use std::collections::BTreeMap;

pub use schedule::{SCHEDULE_LINTS, ScheduleFacts, lint_schedule};

use pdes_core::Rank;
use trace_mmap::{CallOp, CheckReport, Op, Peer, Trace, check, nanos};

/// A row of a registry of lints, which look at facts of a trace, or of a schedule.
#[derive(Clone, Copy, Debug)]
pub struct Lint<Facts = TraceFacts> {
    /// Name, for the output and documentation.
    pub name: &'static str,
    /// Describes what is suspicious; empty if nothing is.
    pub find: fn(&Facts) -> Vec<String>,
}

/// All lints of traces, in the order of their output.
pub static LINTS: [Lint; 11] = [
    Lint { name: "violation", find: |facts| texts(&facts.report.findings) },
    Lint { name: "import", find: |facts| facts.warnings.clone() },
    Lint {
        name: "unreceived",
        find: |facts| facts.report.unreceived.iter().map(ToString::to_string).collect(),
    },
    Lint { name: "pending", find: pending },
    Lint { name: "unit", find: unit },
    Lint { name: "idle-rank", find: idle_ranks },
    Lint { name: "short-rank", find: short_ranks },
    Lint { name: "gap", find: gaps },
    Lint { name: "sleep", find: sleeps },
    Lint { name: "unmodelled", find: unmodelled },
    Lint { name: "any-source", find: any_source },
];

/// Something suspicious.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// The name of the lint.
    pub lint: &'static str,
    /// What is suspicious, and what follows from it.
    pub text: String,
}

/// Facts of a trace for its lints.
#[derive(Debug)]
pub struct TraceFacts {
    report: CheckReport,
    warnings: Vec<String>,
    has_unit: bool,
    ranks: Vec<RankFacts>,
    /// Number of calls that no replay models, and their measured time \[ns\], by name.
    unmodelled: BTreeMap<String, (u64, u64)>,
}

/// Facts of a rank for the lints.
#[derive(Debug, Default)]
struct RankFacts {
    actions: u64,
    computations: u64,
    /// Sum and greatest amount of computation \[flop\], and the index of that action.
    amount: f64,
    greatest: (f64, u64),
    /// Measured time of all actions, and of sleeps \[ns\].
    time: u64,
    sleep: u64,
    /// Number of receives from any source whose sender is not recorded.
    unknown_sources: u64,
    /// The last action is the end of the program.
    is_whole: bool,
}

/// Finds what is suspicious in a trace. Cost: O(actions).
///
/// ```
/// let trace = trace_tools::from_text("0 init\n0 compute 5\n0 finalize\n1 init\n1 finalize\n")?;
/// let found = trace_tools::lint(&trace);
/// let names: Vec<&str> = found.iter().map(|suspicion| suspicion.lint).collect();
/// assert_eq!(names, ["unit", "idle-rank"]);
/// # Ok::<(), trace_mmap::TraceError>(())
/// ```
pub fn lint(trace: &Trace) -> Vec<Suspicion> {
    suspicions(&LINTS, &TraceFacts::of(trace))
}

/// Returns what the lints of a registry find in facts.
fn suspicions<Facts>(lints: &[Lint<Facts>], facts: &Facts) -> Vec<Suspicion> {
    let of_lint = |lint: &Lint<Facts>| {
        let name = lint.name;
        (lint.find)(facts).into_iter().map(move |text| Suspicion { lint: name, text })
    };
    lints.iter().flat_map(of_lint).collect()
}

impl TraceFacts {
    /// Collects the facts of a trace.
    fn of(trace: &Trace) -> Self {
        let mut unmodelled = BTreeMap::new();
        let ranks = (0..trace.ranks()).map(|rank| RankFacts::of(trace, Rank::new(rank), &mut unmodelled));
        let ranks = ranks.collect();
        let has_unit = trace.provenance().work_metric.is_some();
        Self { report: check(trace, None), warnings: texts(trace.warnings()), has_unit, ranks, unmodelled }
    }

    /// Describes the ranks of which something is true.
    fn ranks_with(&self, is_true: impl Fn(&RankFacts) -> bool) -> Option<String> {
        describe_ranks(self.ranks.iter().map(is_true))
    }
}

/// Describes the ranks of which something is true.
fn describe_ranks(is_true: impl Iterator<Item = bool>) -> Option<String> {
    let mut ranks = is_true.enumerate().filter(|(_, is_true)| *is_true);
    let (first, _) = ranks.next()?;
    Some(match ranks.count() {
        0 => format!("rank {first}"),
        more => format!("{} ranks, the first is rank {first},", more + 1),
    })
}

impl RankFacts {
    fn of(trace: &Trace, rank: Rank, unmodelled: &mut BTreeMap<String, (u64, u64)>) -> Self {
        let mut facts = Self::default();
        let mut times = trace.rank(rank).measured();
        for op in trace.ops(rank) {
            let time = times.as_mut().and_then(|times| times.next()?.1).map_or(0, nanos);
            facts.time += time;
            facts.is_whole = matches!(op, Op::Finalize);
            match &op {
                Op::Compute { flops } => {
                    facts.computations += 1;
                    facts.amount += flops;
                    if *flops > facts.greatest.0 {
                        facts.greatest = (*flops, facts.actions);
                    }
                }
                Op::Sleep { .. } => facts.sleep += time,
                Op::Call(CallOp::Unmodelled(call)) => {
                    let (calls, of_calls) = unmodelled.entry(call.name().to_owned()).or_default();
                    (*calls, *of_calls) = (*calls + 1, *of_calls + time);
                }
                Op::Call(CallOp::Recv { from, .. } | CallOp::Irecv { from, .. })
                    if from.peer == (Peer::Any { recorded: None }) =>
                {
                    facts.unknown_sources += 1;
                }
                _ => {}
            }
            facts.actions += 1;
        }
        facts
    }
}

fn texts(list: &[impl ToString]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn pending(facts: &TraceFacts) -> Vec<String> {
    let pending = facts.report.pending;
    let text = format!(
        "{pending} request(s) are never completed; a replay waits for them at the end of their ranks"
    );
    (pending > 0).then_some(text).into_iter().collect()
}

fn unit(facts: &TraceFacts) -> Vec<String> {
    let computes = facts.ranks.iter().any(|rank| rank.computations > 0);
    let text = "computations have no unit: nothing tells whether they are flops, instructions or times; if they are times, say \
                so by `trace convert --speed`";
    (computes && !facts.has_unit).then(|| text.to_owned()).into_iter().collect()
}

fn idle_ranks(facts: &TraceFacts) -> Vec<String> {
    let computes = facts.ranks.iter().any(|rank| rank.computations > 0);
    if !computes {
        let has_actions = facts.ranks.iter().any(|rank| rank.actions > 0);
        let text = "no rank computes: a replay shows communication alone, at once after another";
        return has_actions.then(|| text.to_owned()).into_iter().collect();
    }
    let nothing =
        facts.ranks_with(|rank| rank.actions == 0).map(|ranks| format!("{ranks} never did anything"));
    let idle = facts.ranks_with(|rank| rank.actions > 0 && rank.computations == 0);
    let idle = idle.map(|ranks| format!("{ranks} never computed, where others did"));
    nothing.into_iter().chain(idle).collect()
}

/// Part of the recorded time of the longest rank below which that of another one is suspicious.
const SHORT: f64 = 0.9;

/// A rank with the end of its program has only begun later. Where no rank computes, single calls were recorded, such as accesses to files.
fn short_ranks(facts: &TraceFacts) -> Vec<String> {
    if facts.ranks.iter().all(|rank| rank.computations == 0) {
        return Vec::new();
    }
    let longest = facts.ranks.iter().map(|rank| rank.time).max().unwrap_or(0);
    let is_short = |rank: &RankFacts| !rank.is_whole && (rank.time as f64) < SHORT * longest as f64;
    let ranks = facts.ranks_with(is_short);
    let describe = |ranks| {
        format!(
            "{ranks} was recorded for less than nine tenths of the {:.6} s of the longest: the recording may have ended early there",
            longest as f64 * 1e-9
        )
    };
    ranks.map(describe).into_iter().collect()
}

/// Part of the computation of a rank in one action that looks as if the recording had stopped there.
const LARGE_PART: f64 = 0.5;

/// Number of computations of a rank from which on one that is so large is suspicious.
const MANY: u64 = 20;

fn gaps(facts: &TraceFacts) -> Vec<String> {
    let is_gap = |rank: &RankFacts| rank.computations >= MANY && rank.greatest.0 > LARGE_PART * rank.amount;
    let Some(ranks) = facts.ranks_with(is_gap) else { return Vec::new() };
    let first = facts.ranks.iter().find(|rank| is_gap(rank)).expect("a rank is one of these");
    vec![format!(
        "one of many computations is more than half of all on {ranks} action {}: the program may have been stopped, or not recorded",
        first.greatest.1
    )]
}

fn sleeps(facts: &TraceFacts) -> Vec<String> {
    let (time, sleep) =
        facts.ranks.iter().fold((0, 0), |(time, sleep), rank| (time + rank.time, sleep + rank.sleep));
    let percent = 100 * sleep / time.max(1);
    let text = format!("{percent} % of the measured time is sleep, which takes as long on every machine");
    (percent >= 10).then_some(text).into_iter().collect()
}

fn unmodelled(facts: &TraceFacts) -> Vec<String> {
    let describe = |(name, (calls, time)): (&String, &(u64, u64))| {
        let took = if *time > 0 {
            format!(", and took {:.6} s when recorded", *time as f64 * 1e-9)
        } else {
            String::new()
        };
        format!("{name} has no model: {calls} call(s) take no time in a replay{took}")
    };
    facts.unmodelled.iter().map(describe).collect()
}

fn any_source(facts: &TraceFacts) -> Vec<String> {
    let receives: u64 = facts.ranks.iter().map(|rank| rank.unknown_sources).sum();
    let ranks = facts.ranks_with(|rank| rank.unknown_sources > 0);
    let describe = |ranks| {
        format!(
            "{receives} receive(s) of {ranks} take a message from any source, and the one that they took is not recorded: the order is that of the replay"
        )
    };
    ranks.map(describe).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&'static str, String)> {
        let trace = crate::from_text(text).unwrap_or_else(|error| panic!("{error}"));
        lint(&trace).into_iter().map(|Suspicion { lint, text }| (lint, text)).collect()
    }

    /// Returns the text of a lint, which finds one thing.
    fn one(text: &str, lint: &str) -> String {
        let found = found(text);
        let mut of_lint = found.iter().filter(|(name, _)| *name == lint);
        let text = of_lint.next().unwrap_or_else(|| panic!("{lint} finds nothing: {found:?}")).1.clone();
        assert_eq!(of_lint.next(), None);
        text
    }

    #[test]
    fn each_lint_finds_its_own() {
        let computations = "0 compute 1\n".repeat(30);
        let cases = [
            ("0 init\n0 barrier\n1 init\n", "violation", "rank 1 has none"),
            ("0 init\n0 finalize\n1 init\n", "import", "rank 1 has no finalize"),
            ("0 init\n0 send 1 7 8\n1 init\n", "unreceived", "1 message is never received"),
            ("0 init\n0 ibarrier req=3\n1 init\n1 ibarrier req=4\n1 wait req=4\n", "pending", "1 request(s)"),
            ("0 init\n0 compute 5\n", "unit", "computations have no unit"),
            ("0 init\n0 barrier\n", "idle-rank", "no rank computes"),
            (
                "0 init\n0 compute 5\n1 init\n2 init\n",
                "idle-rank",
                "2 ranks, the first is rank 1, never computed",
            ),
            ("0 compute 5\n2 init\n2 compute 5\n", "idle-rank", "rank 1 never did anything"),
            (
                "0 compute 5 time=100\n1 compute 5 time=80\n2 compute 5 time=90\n",
                "short-rank",
                "rank 1 was recorded",
            ),
            (&format!("{computations}0 compute 31\n"), "gap", "rank 0 action 30"),
            ("0 sleep 1 time=1000\n0 compute 5 time=9000\n", "sleep", "10 %"),
            (
                "0 unmodelled MPI_Put time=3000\n0 unmodelled MPI_Put\n",
                "unmodelled",
                "2 call(s) take no time in a replay, and took 0.000003 s",
            ),
            ("0 init\n0 recv -555 7 8\n1 init\n1 send 0 7 8\n", "any-source", "1 receive(s) of rank 0 take"),
        ];
        for (text, lint, expected) in cases {
            let found = one(text, lint);
            assert!(found.contains(expected), "{lint}: {found}");
        }
    }

    #[test]
    fn a_sound_program_has_no_suspicion_but_the_unit_of_text() {
        let text =
            "0 init\n0 compute 5\n0 send 1 7 8\n0 finalize\n1 init\n1 compute 5\n1 recv 0 7 8\n1 finalize\n";
        let names: Vec<_> = found(text).into_iter().map(|(lint, _)| lint).collect();
        assert_eq!(names, ["unit"]);
        let late =
            "0 init time=900\n0 compute 5 time=100\n0 finalize\n1 init\n1 compute 5 time=100\n1 finalize\n";
        let accesses = "0 sleep 1 time=900\n1 sleep 1 time=9\n";
        for text in [late, accesses] {
            assert!(found(text).iter().all(|(lint, _)| *lint != "short-rank"), "{text}");
        }
        let even = format!("{}0 compute 29\n", "0 compute 1\n".repeat(30));
        assert!(found(&even).iter().all(|(lint, _)| *lint != "gap"));
    }
}
