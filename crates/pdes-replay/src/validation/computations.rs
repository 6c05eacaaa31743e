//! Measured costs of the computations of a program.

use std::collections::BTreeMap;

use calibration::Computations;
use mpi_model::region_name;
use pdes_core::Rank;
use trace_mmap::{Action, RankTrace, Trace, TraceError};

use super::ValidationError;
use super::measurement::timed_actions;

/// Returns the measured costs of the computations of a trace, by region of the program, in the order of the regions' names.
///
/// Linear in the number of actions.
///
/// # Errors
/// Returns an error if no computation has a measured time, or if the trace is damaged.
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
    for (site, action, time) in timed_actions(trace) {
        let Action::Compute { flops } = action else { continue };
        let region = site.map_or("", |site| region_name(trace.location(site)));
        let new = || Computations { region: region.to_owned(), ..Computations::default() };
        let sum = regions.entry(region).or_insert_with(new);
        sum.count += 1;
        sum.amount += flops;
        sum.seconds += time.as_secs_f64();
    }
}
