//! Lints of GOAL schedules.

use goal::{Kind, LogGops, Operation, Schedule, SimulationError, simulate};
use rustc_hash::FxHashMap;

use super::{Lint, Suspicion, suspicions};

/// All lints of schedules, in the order of their output.
pub static SCHEDULE_LINTS: [Lint<ScheduleFacts>; 7] = [
    Lint { name: "violation", find: |facts| Vec::from_iter(facts.violation.clone()) },
    Lint { name: "buffering", find: buffering },
    Lint { name: "size", find: sizes },
    Lint { name: "any-source", find: any_source },
    Lint { name: "idle-rank", find: idle_ranks },
    Lint { name: "unordered", find: unordered },
    Lint { name: "processor", find: processors },
];

/// Facts of a schedule for its lints.
#[derive(Debug)]
pub struct ScheduleFacts {
    /// Reasons why the schedule does not end, and why it does not if no message is buffered.
    violation: Option<String>,
    unbuffered: Option<String>,
    /// Messages that are longer and shorter than the receives that match them.
    longer: Differing,
    shorter: Differing,
    /// Number of receives from any source or with any tag.
    wildcards: u64,
    /// Numbers of operations and of computations of each rank.
    operations: Vec<(u64, u64)>,
    /// Computations beside other operations that no dependency orders, and dependencies between processors.
    unordered: Differing,
    processors: Differing,
}

/// A number of operations that have something in common, and the first one.
#[derive(Debug, Default)]
struct Differing {
    count: u64,
    first: String,
}

impl Differing {
    fn add(&mut self, first: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = first();
        }
        self.count += 1;
    }

    fn describe(&self, what: &str, follows: &str) -> Option<String> {
        let Self { count, first } = self;
        (*count > 0).then(|| format!("{count} {what}, the first {first}: {follows}"))
    }
}

/// Finds what is suspicious in a schedule. Cost: that of simulating it twice on up to `threads` threads, and O(operations + dependencies)
/// in time and memory.
///
/// ```
/// let text = b"num_ranks 2\nrank 0 {\n send 9b to 1\n}\nrank 1 {\n recv 1b from 0\n}\n";
/// let found = trace_tools::lint_schedule(&goal::read_text(text)?, 1);
/// assert_eq!(found[0].lint, "size");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn lint_schedule(schedule: &Schedule, threads: usize) -> Vec<Suspicion> {
    suspicions(&SCHEDULE_LINTS, &ScheduleFacts::of(schedule, threads))
}

impl ScheduleFacts {
    /// Collects the facts of a schedule.
    fn of(schedule: &Schedule, threads: usize) -> Self {
        let unbuffered = LogGops { eager_up_to: 0, ..LogGops::default() };
        let error = |parameters| simulate(schedule, &parameters, threads).err();
        let deadlock = |error: SimulationError| {
            matches!(error, SimulationError::Unmatched { .. }).then(|| error.to_string())
        };
        let [longer, shorter] = differing_sizes(schedule);
        let mut facts = Self {
            violation: error(LogGops::default()).map(|error| error.to_string()),
            unbuffered: error(unbuffered).and_then(deadlock),
            longer,
            shorter,
            wildcards: 0,
            operations: Vec::new(),
            unordered: Differing::default(),
            processors: Differing::default(),
        };
        (0..schedule.extent().ranks).for_each(|rank| facts.add(schedule, rank));
        facts
    }

    fn add(&mut self, schedule: &Schedule, rank: u32) {
        let operations: Vec<Operation> = schedule.operations(rank).collect();
        let mut is_ordered = vec![false; operations.len()];
        for (earlier, later, _) in schedule.dependencies(rank) {
            let (earlier, later) = (earlier as usize, later as usize);
            (is_ordered[earlier], is_ordered[later]) = (true, true);
            if operations[earlier].cpu != operations[later].cpu {
                self.processors.add(|| format!("of operation {later} of rank {rank} on operation {earlier}"));
            }
        }
        let mut computations = 0;
        for (index, operation) in operations.iter().enumerate() {
            self.wildcards += u64::from(is_wildcard(operation));
            if operation.kind == Kind::Calculate {
                computations += 1;
                if !is_ordered[index] && operations.len() > 1 {
                    self.unordered.add(|| format!("is operation {index} of rank {rank}"));
                }
            }
        }
        self.operations.push((operations.len() as u64, computations));
    }

    /// Describes the ranks of which something is true.
    fn ranks_with(&self, is_true: impl Fn(&(u64, u64)) -> bool) -> Option<String> {
        super::describe_ranks(self.operations.iter().map(is_true))
    }
}

fn is_wildcard(operation: &Operation) -> bool {
    operation.kind == Kind::Receive && (operation.peer.is_none() || operation.tag.is_none())
}

/// Sizes of the messages or receives of each source, destination and tag, in the order of their definition.
type Sizes = FxHashMap<(u32, u32, u32), Vec<u64>>;

/// Finds messages that are longer and shorter than the receives that match them, at ranks where the order of definition decides.
fn differing_sizes(schedule: &Schedule) -> [Differing; 2] {
    let ranks = 0..schedule.extent().ranks;
    let mut receives = Sizes::default();
    for rank in ranks.clone() {
        let is_receive = |operation: &Operation| operation.kind == Kind::Receive;
        if schedule.operations(rank).any(|operation| is_wildcard(&operation)) {
            continue;
        }
        for operation in schedule.operations(rank).filter(is_receive) {
            if let (Some(source), Some(tag)) = (operation.peer, operation.tag) {
                receives.entry((source, rank, tag)).or_default().push(operation.size);
            }
        }
    }
    let mut sent: FxHashMap<(u32, u32, u32), usize> = FxHashMap::default();
    let [mut longer, mut shorter] = [(); 2].map(|()| Differing::default());
    for rank in ranks {
        for (index, Operation { kind, size, peer, tag, .. }) in schedule.operations(rank).enumerate() {
            let (Kind::Send, Some(to), Some(tag)) = (kind, peer, tag) else { continue };
            let number = sent.entry((rank, to, tag)).or_default();
            let received = receives.get(&(rank, to, tag)).and_then(|sizes| sizes.get(*number));
            *number += 1;
            let Some(&received) = received.filter(|received| **received != size) else { continue };
            let differing = if received < size { &mut longer } else { &mut shorter };
            differing.add(|| {
                format!("is operation {index} of rank {rank}, with {size} B to a receive of {received} B on rank {to}")
            });
        }
    }
    [longer, shorter]
}

fn buffering(facts: &ScheduleFacts) -> Vec<String> {
    let text = facts.unbuffered.as_ref().filter(|_| facts.violation.is_none());
    let describe = |text| {
        format!("if no message is sent before its receive is posted, the schedule does not end: {text}")
    };
    text.map(describe).into_iter().collect()
}

fn sizes(facts: &ScheduleFacts) -> Vec<String> {
    let longer = facts.longer.describe(
        "message(s) are longer than their receives",
        "a replay on a platform ends there with an error, and in loggops the message decides",
    );
    let shorter = facts.shorter.describe(
        "message(s) are shorter than their receives",
        "the time is that of the message; different sizes may be a mistake",
    );
    longer.into_iter().chain(shorter).collect()
}

fn any_source(facts: &ScheduleFacts) -> Vec<String> {
    let receives = facts.wildcards;
    let text = format!(
        "{receives} receive(s) take a message from any source or with any tag: which one is as the machine has it"
    );
    (receives > 0).then_some(text).into_iter().collect()
}

fn idle_ranks(facts: &ScheduleFacts) -> Vec<String> {
    let computes = facts.operations.iter().any(|(_, computations)| *computations > 0);
    let nothing = facts.ranks_with(|(operations, _)| *operations == 0);
    let idle = facts.ranks_with(|(operations, computations)| *operations > 0 && *computations == 0);
    let nothing = nothing.map(|ranks| format!("{ranks} has no operation"));
    let idle = idle.filter(|_| computes).map(|ranks| format!("{ranks} never computes, where others do"));
    nothing.into_iter().chain(idle).collect()
}

fn unordered(facts: &ScheduleFacts) -> Vec<String> {
    let text = facts.unordered.describe(
        "computation(s) have no dependency, though their ranks do more",
        "they begin at once, beside all others",
    );
    text.into_iter().collect()
}

fn processors(facts: &ScheduleFacts) -> Vec<String> {
    let text = facts.processors.describe(
        "dependency(ies) join operations of different processors",
        "in loggops, as in LogGOPSim, the later one may begin before the time at which the earlier one ends",
    );
    text.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ranks: &[&str]) -> Vec<(&'static str, String)> {
        let ranks: Vec<String> =
            ranks.iter().enumerate().map(|(rank, lines)| format!("rank {rank} {{\n{lines}\n}}\n")).collect();
        let text = format!("num_ranks {}\n{}", ranks.len(), ranks.concat());
        let schedule = goal::read_text(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
        lint_schedule(&schedule, 1).into_iter().map(|Suspicion { lint, text }| (lint, text)).collect()
    }

    #[test]
    fn each_lint_finds_its_own() {
        let exchange = |peer| {
            format!("s: send 9b to {peer}\nr: recv 9b from {peer}\nc: calc 5\nr requires s\nc requires r")
        };
        let cases: [(&[&str], &str, &str); 10] = [
            (&["send 9b to 1", "calc 5"], "violation", "1 message(s) without a receive"),
            (&["recv 9b from 1 tag 4", "send 9b to 0 tag 3"], "violation", "1 receive(s) without a message"),
            (&[&exchange(1), &exchange(0)], "buffering", "does not end: "),
            (
                &["send 9b to 1", "recv 8b from 0"],
                "size",
                "1 message(s) are longer than their receives, the first is operation 0 of rank 0, with 9 B to a receive of 8 B on rank 1",
            ),
            (
                &["send 9b to 1\nsend 7b to 1", "recv 9b from 0\nrecv 8b from 0"],
                "size",
                "shorter than their receives, the first is operation 1 of rank 0",
            ),
            (&["send 9b to 1", "recv 9b from -1"], "any-source", "1 receive(s)"),
            (&["calc 5", ""], "idle-rank", "rank 1 has no operation"),
            (
                &["a: send 9b to 1\nb: calc 5\nb requires a", "recv 9b from 0"],
                "idle-rank",
                "rank 1 never computes",
            ),
            (
                &["a: calc 5\nb: calc 6\nc: calc 7\nb requires a"],
                "unordered",
                "1 computation(s) have no dependency, though their ranks do more, the first is operation 2 of rank 0",
            ),
            (
                &["a: calc 5\nb: calc 6 cpu 1\nb requires a"],
                "processor",
                "the first of operation 1 of rank 0 on operation 0",
            ),
        ];
        for (ranks, lint, expected) in cases {
            let found = found(ranks);
            let texts: Vec<&String> =
                found.iter().filter(|(name, _)| *name == lint).map(|(_, text)| text).collect();
            assert_eq!(texts.len(), 1, "{lint}: {found:?}");
            assert!(texts[0].contains(expected), "{lint}: {texts:?}");
        }
        assert!(
            cases
                .map(|(_, lint, _)| lint)
                .iter()
                .all(|name| SCHEDULE_LINTS.iter().any(|lint| lint.name == *name))
        );
    }

    #[test]
    fn a_sound_schedule_has_no_suspicion() {
        let sound =
            ["a: calc 5\nb: send 9b to 1\nb requires a", "a: recv 9b from 0\nb: calc 5\nb requires a"];
        assert_eq!(found(&sound), []);
    }
}
