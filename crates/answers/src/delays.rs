//! Who delays whom: the time that each job of a run loses to each other one.

use std::collections::{BTreeMap, BTreeSet};

use pdes_core::{Progress, SimTime};
use replay::{Delay, Outcome, RunError, RunSpec, Simulation};

use crate::shapley::{Changes, Plan};

/// Largest number of jobs of which all combinations are replayed.
const MAX_COMBINED: usize = 4;

/// Returns the delay of each job of a run with this outcome. Jobs that are left out keep their hosts.
///
/// Up to four jobs, the time that a job loses to another one is its Shapley value: the mean, over all orders in which the others could be
/// added, of what that one adds to the end of the job. These times add up to the difference between the run and the job alone, and take a replay of
/// each combination of jobs. Among more jobs it is the difference to the run without the other one, which takes two replays for each job; such times
/// do not add up where three jobs meet.
///
/// # Errors
/// Returns an error if a combination of jobs cannot be replayed.
pub fn delays(spec: &RunSpec, outcome: &Outcome) -> Result<Vec<Delay>, RunError> {
    let jobs = outcome.programs.len();
    let all: BTreeSet<usize> = (0..jobs).collect();
    let mut ends = Ends { spec, known: BTreeMap::new() };
    ends.add(all.clone(), outcome);
    (0..jobs).map(|job| ends.delay(job, &all)).collect()
}

/// Ends of the jobs of each combination that was replayed.
struct Ends<'a> {
    spec: &'a RunSpec,
    known: BTreeMap<BTreeSet<usize>, BTreeMap<usize, SimTime>>,
}

impl Ends<'_> {
    fn add(&mut self, present: BTreeSet<usize>, outcome: &Outcome) {
        let ends = outcome.programs.iter().map(|program| program.end());
        self.known.insert(present.clone(), present.into_iter().zip(ends).collect());
    }

    /// Returns the end of a job in the presence of itself and of others.
    fn end(&mut self, job: usize, present: BTreeSet<usize>) -> Result<SimTime, RunError> {
        if !self.known.contains_key(&present) {
            let spec = RunSpec { present: Some(present.clone()), ..self.spec.without_analyses() };
            let outcome = Simulation::load(&spec)?.replay(&Progress::new(spec.threads))?;
            self.add(present.clone(), &outcome);
        }
        Ok(self.known[&present][&job])
    }

    fn delay(&mut self, job: usize, all: &BTreeSet<usize>) -> Result<Delay, RunError> {
        let alone = self.end(job, BTreeSet::from([job]))?;
        let others: Vec<usize> = all.iter().copied().filter(|&other| other != job).collect();
        let mut lost_ps = vec![0; all.len()];
        if all.len() <= MAX_COMBINED {
            let plan = Plan::new(others.len());
            let mut values = BTreeMap::<Changes, i128>::new();
            for set in plan.combinations() {
                let present = others.iter().enumerate().filter(|(index, _)| set & (1 << index) != 0);
                let present = present.map(|(_, other)| *other).chain([job]).collect();
                values.insert(set, self.end(job, present)?.as_picos().into());
            }
            let (parts, _) = plan.parts(&values);
            others.iter().zip(parts).for_each(|(&other, part)| lost_ps[other] = part);
        } else {
            let end = i128::from(self.end(job, all.clone())?.as_picos());
            for other in others {
                let without = all.iter().copied().filter(|&one| one != other).collect();
                lost_ps[other] = end - i128::from(self.end(job, without)?.as_picos());
            }
        }
        Ok(Delay { alone, lost_ps })
    }
}
