//! Traces with measured times: each computation becomes a sleep, which takes the measured time on any machine.

use std::path::Path;

use crate::action::Action;
use crate::archive::convert::{Encoding, encode, in_order};
use crate::archive::{ArchiveWriter, ConvertOptions, Summary, WriteError};
use crate::builder::LinkableRank;
use crate::error::TraceError;
use crate::record::Record;
use crate::trace::{RankTrace, Trace};

/// Picoseconds per second.
const PICOS_PER_SECOND: f64 = 1e12;

/// Writes a trace in which each computation with a measured time is replaced by a sleep of that time. Computations without one
/// are kept; the measured times themselves are dropped.
///
/// # Errors
/// Fails if the trace is damaged or the archive cannot be written.
///
/// ```
/// use trace_mmap::{Action, ConvertOptions, Trace, write_with_measured_times};
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("timed.pdt");
/// let trace = trace_tools::from_text("0 init\n0 compute 5e6 time=4000000\n0 compute 7\n")?;
/// write_with_measured_times(&trace, &path, &ConvertOptions::default())?;
/// let timed = Trace::load(&path)?;
/// let actions: Vec<Action> = timed.rank(pdes_core::Rank::new(0)).cursor().collect();
/// assert_eq!(actions[1..], [Action::Sleep { seconds: 0.004 }, Action::Compute { flops: 7.0 }]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_with_measured_times(
    trace: &Trace,
    output: &Path,
    options: &ConvertOptions<'_>,
) -> Result<Summary, WriteError> {
    let mut writer = ArchiveWriter::for_conversion(output, trace.ranks(), trace.provenance(), options)?;
    let prepare = |rank| {
        let from = trace.rank(rank);
        Ok((from, encode(rank, records_with_sleeps(from), &from.side_tables, Encoding::of(options))?))
    };
    in_order(options.load.threads, trace.ranks(), prepare, |rank, (from, encoded): (&RankTrace, _)| {
        let linkable = LinkableRank { trace: from.tables(), ..LinkableRank::default() };
        writer.write_encoded(rank, encoded, records_with_sleeps(from), linkable)
    })?;
    trace.integrity().map_err(TraceError::from)?;
    writer.finish()
}

/// Returns the records of a rank, with sleeps in place of measured computations.
fn records_with_sleeps(rank: &RankTrace) -> impl Iterator<Item = Record> + Clone + '_ {
    let (measured, others) = match rank.measured() {
        Some(measured) => (Some(measured), None),
        None => (None, Some(rank.cursor())),
    };
    let timed = measured.into_iter().flatten().map(|(action, time)| match (action, time) {
        (Action::Compute { .. }, Some(time)) => {
            Action::Sleep { seconds: time.as_picos() as f64 / PICOS_PER_SECOND }
        }
        _ => action,
    });
    timed.chain(others.into_iter().flatten()).map(Record::encode)
}
