//! What the computations of a program were measured to take.

use std::collections::BTreeMap;

use calibration::Computations;
use mpi_model::region_name;
use pdes_core::Rank;
use trace_mmap::{Action, RankTrace, Trace, TraceError};

use super::ValidationError;

/// Returns what the computations of a trace take that was recorded with times, by region of the program, in the order of their names.
///
/// Linear in the number of actions.
///
/// # Errors
/// Where no computation has a time, and where the trace is damaged.
pub fn measured_computations(trace: &Trace) -> Result<Vec<Computations>, ValidationError> {
    let mut regions = BTreeMap::new();
    (0..trace.ranks()).for_each(|rank| add(trace.rank(Rank::new(rank)), &mut regions));
    trace.integrity().map_err(TraceError::from)?;
    match regions.is_empty() {
        true => Err(ValidationError::NoTimes),
        false => Ok(regions.into_values().collect()),
    }
}

fn add<'t>(trace: &'t RankTrace, regions: &mut BTreeMap<&'t str, Computations>) {
    let mut region = "";
    for (action, time) in trace.measured().into_iter().flatten() {
        match (action, time) {
            (Action::Location(site), _) => region = region_name(trace.location(site)),
            (Action::Compute { flops }, Some(time)) => {
                let sum = regions
                    .entry(region)
                    .or_insert_with(|| Computations { region: region.to_owned(), ..Computations::default() });
                sum.count += 1;
                sum.amount += flops;
                sum.seconds += time.as_secs_f64();
            }
            _ => {}
        }
    }
}
