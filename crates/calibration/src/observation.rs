//! Observations: the measured durations.

use std::fmt;

/// A measured operation. The table defines the duration and the amount of an observation.
///
/// | operation | duration of | amount |
/// |---|---|---|
/// | `pingpong` | a message there and one back, at the process that begins | bytes of each message |
/// | `send` | `MPI_Send` to a receive that is posted | bytes |
/// | `send_late` | `MPI_Send` to a receive that is posted much later than a message takes | bytes |
/// | `send_overlap` | `MPI_Send` to a receive that is posted, by a process that then computes much longer than a message takes | bytes |
/// | `isend` | `MPI_Isend` | bytes |
/// | `irecv` | `MPI_Irecv` of a message that is sent later | 0 |
/// | `recv` | `MPI_Recv` of a message that was sent long before | bytes |
/// | `stream` | one of many messages in one direction, in flight together | bytes of each message |
/// | `test` | `MPI_Test` of a receive whose message is not there | 0 |
/// | `iprobe` | `MPI_Iprobe` where no message is there | 0 |
/// | `compute` | floating-point operations of one core | flops |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A message there and one back.
    PingPong,
    /// A blocking send whose receiver waits for it.
    Send,
    /// A blocking send whose receiver comes late.
    SendLate,
    /// A blocking send whose receiver has posted its receive, and computes.
    SendOverlap,
    /// The call of a non-blocking send.
    Isend,
    /// The call of a non-blocking receive.
    Irecv,
    /// A blocking receive of a message that was sent long before.
    Receive,
    /// One of many messages in flight together.
    Stream,
    /// A test that fails.
    Test,
    /// A probe that finds no message.
    Iprobe,
    /// Floating-point operations.
    Compute,
}

impl Operation {
    /// All operations, in the order of their declaration.
    pub const ALL: [Self; 11] = [
        Self::PingPong,
        Self::Send,
        Self::SendLate,
        Self::SendOverlap,
        Self::Isend,
        Self::Irecv,
        Self::Receive,
        Self::Stream,
        Self::Test,
        Self::Iprobe,
        Self::Compute,
    ];

    /// Returns the name in files of observations.
    pub fn name(self) -> &'static str {
        match self {
            Self::PingPong => "pingpong",
            Self::Send => "send",
            Self::SendLate => "send_late",
            Self::SendOverlap => "send_overlap",
            Self::Isend => "isend",
            Self::Irecv => "irecv",
            Self::Receive => "recv",
            Self::Stream => "stream",
            Self::Test => "test",
            Self::Iprobe => "iprobe",
            Self::Compute => "compute",
        }
    }

    /// Returns the operation of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Operation that was measured.
    pub operation: Operation,
    /// Bytes or flops, as [`Operation`] says.
    pub amount: u64,
    /// Start, since the beginning of the measurements \[s\]; 0 if unknown.
    pub start_s: f64,
    /// Duration \[s\].
    pub duration_s: f64,
}

/// Observations and notes on their origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements {
    /// Observations in the order in which they were made.
    pub observations: Vec<Observation>,
    /// Notes on the machine and the measurement, such as `("mpi", "Open MPI 4.1.4")`, in order of addition.
    pub notes: Vec<(String, String)>,
}

/// Summary of the observations of one operation with one amount.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes or flops.
    pub amount: u64,
    /// Typical duration \[s\]: the median, or another quantile.
    pub typical_s: f64,
    /// First decile of the durations \[s\].
    pub low_s: f64,
    /// Ninth decile of the durations \[s\].
    pub high_s: f64,
    /// Number of observations.
    pub count: usize,
}

impl Measurements {
    /// Appends an observation.
    pub fn push(&mut self, operation: Operation, amount: u64, start_s: f64, duration_s: f64) {
        self.observations.push(Observation { operation, amount, start_s, duration_s });
    }

    /// Returns the value of a note.
    pub fn note(&self, key: &str) -> Option<&str> {
        self.notes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Appends the observations of others, and those of their notes whose keys are new.
    pub fn extend(&mut self, others: Self) {
        self.observations.extend(others.observations);
        for (key, value) in others.notes {
            if self.note(&key).is_none() {
                self.notes.push((key, value));
            }
        }
    }

    /// Returns the number of observations of each operation, as text.
    pub(crate) fn describe(&self) -> String {
        let count = |operation: Operation| {
            let found = self.observations.iter().filter(|observation| observation.operation == operation);
            let count = found.count();
            (count > 0).then(|| format!("{count} {operation}"))
        };
        Operation::ALL.into_iter().filter_map(count).collect::<Vec<_>>().join(", ")
    }

    /// Returns a point with the median for each amount of an operation, by growing amount. Takes `O(n log n)`.
    pub fn points(&self, operation: Operation) -> Vec<Point> {
        self.points_at_quantile(operation, 0.5)
    }

    /// Returns a point with a quantile (0.5: the median) for each amount of an operation, by growing amount. Takes
    /// `O(n log n)`.
    ///
    /// # Panics
    /// If the quantile is not in 0 to 1.
    pub fn points_at_quantile(&self, operation: Operation, quantile: f64) -> Vec<Point> {
        assert!((0.0..=1.0).contains(&quantile), "{quantile} is a part of all");
        let of_operation = self.observations.iter().filter(|observation| observation.operation == operation);
        let mut durations: Vec<(u64, f64)> =
            of_operation.map(|observation| (observation.amount, observation.duration_s)).collect();
        durations.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        durations.chunk_by(|one, other| one.0 == other.0).map(|own| Point::of_sorted(own, quantile)).collect()
    }
}

impl Point {
    fn of_sorted(observations: &[(u64, f64)], quantile: f64) -> Self {
        let at = |share: f64| {
            let place = share * (observations.len() - 1) as f64;
            let (below, above) = (place.floor() as usize, place.ceil() as usize);
            let (low, high) = (observations[below].1, observations[above].1);
            low + (high - low) * (place - below as f64)
        };
        Self {
            amount: observations[0].0,
            typical_s: at(quantile),
            low_s: at(0.1),
            high_s: at(0.9),
            count: observations.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_medians_by_amount() {
        let mut measurements = Measurements::default();
        for duration in [5.0, 1.0, 2.0, 4.0, 3.0] {
            measurements.push(Operation::PingPong, 8, 0.0, duration);
            measurements.push(Operation::Isend, 8, 0.0, 100.0);
        }
        measurements.push(Operation::PingPong, 4, 0.0, 7.0);
        measurements.push(Operation::PingPong, 4, 0.0, 8.0);
        let points = measurements.points(Operation::PingPong);
        let expected =
            |amount, typical_s, low_s, high_s, count| Point { amount, typical_s, low_s, high_s, count };
        assert_eq!(points, [expected(4, 7.5, 7.1, 7.9, 2), expected(8, 3.0, 1.4, 4.6, 5)]);
        assert!(measurements.points(Operation::Test).is_empty());
        assert_eq!(measurements.points_at_quantile(Operation::PingPong, 0.25)[1].typical_s, 2.0);
    }

    #[test]
    fn names_are_read_back() {
        for operation in Operation::ALL {
            assert_eq!(Operation::from_name(&operation.to_string()), Some(operation));
        }
    }
}
