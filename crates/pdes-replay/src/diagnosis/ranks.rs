//! Ranks that have a problem.

use std::collections::HashMap;

use mpi_model::ActionKind;
use pdes_core::Rank;
use replay::Outcome;
use trace_mmap::Trace;

use super::Problem;
use crate::report::site_name;

/// Largest number of times of ranks of a problem.
const MAX_TIMES: usize = 1024;

/// Adds to problems the times of the ranks in their calls: one walk through the breakdown of the run.
pub(super) fn add_times(problems: &mut [Problem], trace: &Trace, outcome: &Outcome) {
    let all = outcome.program().statistics.len();
    // Problems of each place; those of the run and of links have none.
    let mut problems_of: HashMap<(Option<&str>, &str), Vec<usize>> = HashMap::new();
    for (number, problem) in problems.iter().enumerate() {
        for place in &problem.places {
            if let Some(call) = &place.call {
                problems_of.entry((place.site.as_deref(), call)).or_default().push(number);
            }
        }
    }
    let mut times = vec![Vec::new(); problems.len()];
    for (rank, statistics) in (0..).map(Rank::new).zip(&outcome.program().statistics) {
        for region in statistics.breakdown().into_iter().flat_map(|breakdown| breakdown.regions()) {
            let site = region.site().map(|site| site_name(trace, rank, site));
            for (kind, share) in region.shares().filter(|(_, share)| share.count > 0) {
                for &problem in problems_of.get(&(site.as_deref(), kind.name())).into_iter().flatten() {
                    times[problem].resize(all, 0);
                    times[problem][rank.get() as usize] += share.time.as_picos();
                }
            }
        }
    }
    for (problem, mut times) in problems.iter_mut().zip(times) {
        problem.ranks = times.iter().filter(|&&time| time > 0).count();
        if problem.places.is_empty() {
            times = outcome
                .program()
                .statistics
                .iter()
                .map(|rank| rank.time(ActionKind::Compute).as_picos())
                .collect();
        }
        if times.is_empty() || problem.places.is_empty() {
            problem.ranks = all;
        }
        problem.rank_times_s = means(&times);
    }
}

/// Returns the times of ranks, or the means of equally many neighbours \[s\].
fn means(times: &[u64]) -> Vec<f64> {
    let neighbours = times.len().div_ceil(MAX_TIMES).max(1);
    let mean = |times: &[u64]| {
        let sum: u128 = times.iter().map(|&time| u128::from(time)).sum();
        sum as f64 / times.len() as f64 / 1e12
    };
    times.chunks(neighbours).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_value_where_there_are_many_ranks() {
        assert_eq!(means(&[]), [0.0; 0]);
        assert_eq!(means(&[1_000_000_000_000, 3_000_000_000_000]), [1.0, 3.0]);
        let many = means(&(0..2048).map(|rank| 1_000_000_000_000 * (rank % 2)).collect::<Vec<u64>>());
        assert_eq!(many, [0.5; 1024]);
    }
}
