//! The search of all schedules, depth first.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::run::Run;
use crate::schedule::{ChoicePoint, End, Schedule};

/// End of a run.
#[derive(Clone, Debug)]
pub enum Ending {
    /// At its end.
    Completed {
        /// Simulated time \[s\].
        time_s: f64,
        /// Mistakes that did not end the program.
        mistakes: Vec<String>,
    },
    /// No rank can go on.
    Deadlock(Failure),
    /// A rank ends the program, or makes a mistake that does.
    Failed(Failure),
}

/// Mistake that a run shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Failure {
    /// Description of the mistake.
    pub message: String,
    /// Calls of MPI in which ranks were, each with its place in the program.
    pub calls: Vec<String>,
}

/// Kind of what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A deadlock.
    Deadlock,
    /// The program ends before its end.
    Failure,
    /// A mistake that does not end the program.
    Mistake,
}

/// Something wrong, and where it shows.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// Its kind.
    pub kind: FailureKind,
    /// The mistake.
    #[serde(flatten)]
    pub failure: Failure,
    /// Number of schedules that show it.
    pub schedules: u64,
    /// The first run, in the order of simulated time, shows it.
    pub in_first_run: bool,
    /// The first schedule that shows it.
    pub schedule: Schedule,
}

/// A schedule, and its time.
#[derive(Clone, Debug, Serialize)]
pub struct Timed {
    /// Simulated time \[s\].
    pub time_s: f64,
    /// The schedule.
    pub schedule: Schedule,
}

/// Results of a search.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// Number of schedules.
    pub schedules: u64,
    /// Number of runs, with those of schedules that proved impossible.
    pub runs: u64,
    /// All schedules were run.
    pub complete: bool,
    /// Mistakes, in the order in which they were found.
    pub failures: Vec<Found>,
    /// The schedule of the shortest time, if one completes.
    pub fastest: Option<Timed>,
    /// The schedule of the longest time.
    pub slowest: Option<Timed>,
}

/// Ends that are prescribed to begin with, each among all that are known of its call.
type Prescription = BTreeMap<ChoicePoint, (End, BTreeSet<End>)>;

fn schedule_of(prescription: &Prescription) -> Schedule {
    Schedule(prescription.iter().map(|(point, (end, _))| (*point, end.clone())).collect())
}

/// Runs a program under all schedules, at most `most` times.
///
/// # Errors
/// Those of a run that say nothing about the program.
pub fn search<E>(
    most: u64,
    mut run_under: impl FnMut(&Schedule, &Run) -> Result<Ending, E>,
) -> Result<Findings, E> {
    let mut findings = Findings { complete: true, ..Findings::default() };
    let (mut tried, mut ended) = (BTreeSet::new(), BTreeSet::new());
    let mut open = vec![Prescription::new()];
    while let Some(prescription) = open.pop() {
        let schedule = schedule_of(&prescription);
        if !tried.insert(schedule.clone()) {
            continue;
        }
        if findings.runs == most {
            findings.complete = false;
            break;
        }
        findings.runs += 1;
        let run = Run::default();
        let ending = run_under(&schedule, &run)?;
        add_late(&prescription, &run, &mut open);
        add_other_ends(&prescription, &run, &mut open);
        let is_impossible = matches!(ending, Ending::Deadlock(_)) && run.has_unmet();
        let whole = run.schedule(&schedule);
        if !is_impossible && ended.insert(whole.clone()) {
            findings.add(ending, whole);
        }
    }
    Ok(findings)
}

/// Adds the runs in which a receive waits for a message that came later.
fn add_late(prescription: &Prescription, run: &Run, open: &mut Vec<Prescription>) {
    let choices = run.choices();
    let mut whole = prescription.clone();
    whole.extend(choices.iter().map(|choice| (choice.point, (choice.end.clone(), choice.ends.clone()))));
    let known = whole.iter().map(|(point, (_, ends))| (*point, ends.clone())).collect();
    for late in run.late_messages(&known) {
        let before =
            choices.iter().take_while(|choice| choice.point != late.point).map(|choice| choice.point);
        let before: BTreeSet<ChoicePoint> = prescription.keys().copied().chain(before).collect();
        let is_kept = |point: &ChoicePoint| {
            let is_after = point.rank == late.point.rank && point.number > late.point.number;
            late.past.contains(point) || (before.contains(point) && !is_after)
        };
        let mut waits: Prescription = whole
            .iter()
            .filter(|(point, _)| is_kept(point))
            .map(|(point, end)| (*point, end.clone()))
            .collect();
        let end = End::Source(Some(late.from.get()));
        let mut ends = known[&late.point].clone();
        ends.insert(end.clone());
        waits.insert(late.point, (end, ends));
        open.push(waits);
    }
}

/// Adds the runs in which a choice has another end.
fn add_other_ends(prescription: &Prescription, run: &Run, open: &mut Vec<Prescription>) {
    let mut before = prescription.clone();
    for choice in run.choices() {
        for end in choice.ends.iter().filter(|end| **end != choice.end) {
            let mut other = before.clone();
            other.insert(choice.point, (end.clone(), choice.ends.clone()));
            open.push(other);
        }
        before.insert(choice.point, (choice.end, choice.ends));
    }
}

impl Findings {
    fn add(&mut self, ending: Ending, schedule: Schedule) {
        self.schedules += 1;
        match ending {
            Ending::Completed { time_s, mistakes } => {
                for message in mistakes {
                    let failure = Failure { message, calls: Vec::new() };
                    self.add_failure(FailureKind::Mistake, failure, &schedule);
                }
                if self.fastest.as_ref().is_none_or(|fastest| time_s < fastest.time_s) {
                    self.fastest = Some(Timed { time_s, schedule: schedule.clone() });
                }
                if self.slowest.as_ref().is_none_or(|slowest| time_s > slowest.time_s) {
                    self.slowest = Some(Timed { time_s, schedule });
                }
            }
            Ending::Deadlock(failure) => self.add_failure(FailureKind::Deadlock, failure, &schedule),
            Ending::Failed(failure) => self.add_failure(FailureKind::Failure, failure, &schedule),
        }
    }

    fn add_failure(&mut self, kind: FailureKind, failure: Failure, schedule: &Schedule) {
        let is_it = |found: &&mut Found| {
            let is_same = match kind {
                // Ranks wait in the same calls, whatever the message says of their actions.
                FailureKind::Deadlock => found.failure.calls == failure.calls,
                // What the others did then depends on the order.
                FailureKind::Failure | FailureKind::Mistake => found.failure.message == failure.message,
            };
            found.kind == kind && is_same
        };
        match self.failures.iter_mut().find(is_it) {
            Some(found) => found.schedules += 1,
            None => self.failures.push(Found {
                kind,
                failure,
                schedules: 1,
                in_first_run: self.runs == 1,
                schedule: schedule.clone(),
            }),
        }
    }
}
