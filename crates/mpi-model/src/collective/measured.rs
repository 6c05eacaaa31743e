//! Measured times of collective operations by number of ranks and size.

use std::collections::BTreeMap;

use pdes_core::SimDuration;

use super::operation::Operation;
use super::{Member, Schedule, Step, analytic};

/// Measured times of an operation: for each number of ranks, sizes \[B\] as [`Operation`] defines them, with the time from the last entry
/// to the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredTimes(BTreeMap<u32, BTreeMap<u64, SimDuration>>);

/// A time that nobody measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnmeasuredError {
    /// There is no measurement on so many ranks.
    #[error(
        "{operation} of {ranks} ranks was not measured, but on {}: measure it, or choose an algorithm by a row of mpi.table.{operation}",
        measured.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
    )]
    Ranks {
        /// Name of the operation.
        operation: &'static str,
        /// Number of ranks.
        ranks: u32,
        /// Measured numbers of ranks.
        measured: Vec<u32>,
    },
    /// The size is beyond those measured.
    #[error(
        "{operation} of {bytes} B on {ranks} ranks was not measured, but from {} to {} B: measure it, or choose an algorithm by a row of \
         mpi.table.{operation}",
        range[0], range[1]
    )]
    Size {
        /// Name of the operation.
        operation: &'static str,
        /// Number of ranks.
        ranks: u32,
        /// Size \[B\].
        bytes: u64,
        /// Smallest and largest measured size \[B\].
        range: [u64; 2],
    },
}

impl MeasuredTimes {
    /// Adds a measurement; returns whether there was none of this size and number of ranks.
    pub fn add(&mut self, ranks: u32, bytes: u64, time: SimDuration) -> bool {
        self.0.entry(ranks).or_default().insert(bytes, time).is_none()
    }

    /// Yields the numbers of ranks.
    pub fn ranks(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }

    /// Returns the time of a call, on the line between the measured sizes next to it.
    ///
    /// # Errors
    /// Fails if the number of ranks was not measured, or the size is beyond those measured.
    pub fn time(&self, operation: Operation, ranks: u32, bytes: u64) -> Result<SimDuration, UnmeasuredError> {
        let operation = operation.name();
        let unmeasured = || UnmeasuredError::Ranks { operation, ranks, measured: self.ranks().collect() };
        let times = self.0.get(&ranks).ok_or_else(unmeasured)?;
        let (below, above) = (times.range(..=bytes).next_back(), times.range(bytes..).next());
        let (Some((from, begin)), Some((to, end))) = (below, above) else {
            let ends = [times.keys().next(), times.keys().next_back()];
            let range = ends.map(|bytes| bytes.copied().unwrap_or_default());
            return Err(UnmeasuredError::Size { operation, ranks, bytes, range });
        };
        let [begin, end] = [begin, end].map(|time| i128::from(time.as_picos()));
        let length = i128::from(to - from).max(1);
        let picos = begin + (end - begin) * i128::from(bytes - from) / length;
        Ok(SimDuration::from_picos(picos as u64))
    }
}

/// Returns the schedule of a call: all wait for all, and then for the measured time.
pub(super) fn schedule<'a>(
    times: &MeasuredTimes,
    operation: Operation,
    member: Member<'a>,
    bytes: u64,
) -> Schedule<'a> {
    let step = match times.time(operation, member.size, bytes) {
        Ok(SimDuration::ZERO) => None,
        Ok(duration) => Some(Step::Sleep { duration }),
        Err(_) => Some(Step::Unmeasured { operation, bytes }),
    };
    analytic::after_synchronization(member, step.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_on_lines_between_measurements() {
        let mut times = MeasuredTimes::default();
        for (bytes, picos) in [(8, 1000), (16, 3000), (1024, 2000)] {
            assert!(times.add(4, bytes, SimDuration::from_picos(picos)));
        }
        assert!(!times.add(4, 8, SimDuration::from_picos(1)), "it was measured already");
        times.add(4, 8, SimDuration::from_picos(1000));
        let time = |ranks, bytes| times.time(Operation::Allreduce, ranks, bytes).map(SimDuration::as_picos);
        assert_eq!(
            [8, 9, 12, 16, 520, 1024].map(|bytes| time(4, bytes)),
            [1000, 1250, 2000, 3000, 2500, 2000].map(Ok)
        );
        let beyond = "allreduce of 7 B on 4 ranks was not measured, but from 8 to 1024 B";
        assert!(time(4, 7).unwrap_err().to_string().starts_with(beyond));
        assert!(time(4, 1025).is_err());
        assert!(
            time(8, 8)
                .unwrap_err()
                .to_string()
                .starts_with("allreduce of 8 ranks was not measured, but on 4")
        );
    }
}
