//! Noise of the operating system, which makes operations longer.

mod mersenne_twister;

use mersenne_twister::MersenneTwister;

use crate::parameters::NANOSECOND;

/// Noise of the hosts of a simulation.
///
/// # Laws
/// The answer depends on the arguments alone.
pub trait Noise {
    /// Returns by how much an operation on the processor of a rank becomes longer that begins at an instant and has a length
    /// \[ps\].
    fn delay(&self, rank: u32, begin: u64, length: u64) -> u64;

    /// Returns the length of the longest operation to which the noise has an answer \[ps\].
    fn longest(&self) -> u64 {
        u64::MAX
    }
}

/// A trace of noise in LogGOPSim's format: events with their begins and lengths, which recur.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NoiseTrace {
    /// Begins \[ps\], in ascending order.
    begins: Vec<u64>,
    /// Sums of the lengths of the events before each \[ps\], and of all.
    sums: Vec<u64>,
}

/// Error in a trace of noise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoiseError {
    /// A line is none of the format.
    #[error(
        "line {line}: found {text:?}, expected the begin and the length of an event, as two numbers of nanoseconds of 0 or more"
    )]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// Events are not in the order of time.
    #[error(
        "line {line}: the event begins before that of the line before, expected events in the order of time"
    )]
    Order {
        /// Number of the line, from 1.
        line: usize,
    },
    /// There are too few events to recur.
    #[error(
        "found no period, expected events, and a last line whose begin, above 0, is the length of the trace"
    )]
    Empty,
}

impl NoiseTrace {
    /// Reads lines of the begin and the length of an event \[ns\], which are rounded; `#` begins a comment. The begin of the last one is the
    /// length of the trace.
    ///
    /// # Errors
    /// If a line has another form, or events are not in the order of time.
    pub fn read(text: &str) -> Result<Self, NoiseError> {
        let (mut begins, mut sums) = (Vec::new(), vec![0]);
        for (number, line) in (1..).zip(text.lines()) {
            let fields = line.split('#').next().unwrap_or_default();
            let fields: Vec<Option<u64>> = fields.split_whitespace().map(picos).collect();
            let (begin, length) = match fields[..] {
                [] => continue,
                [Some(begin), Some(length)] => (begin, length),
                _ => return Err(NoiseError::Line { line: number, text: line.to_owned() }),
            };
            if begins.last().is_some_and(|&before| begin < before) {
                return Err(NoiseError::Order { line: number });
            }
            begins.push(begin);
            sums.push(sums[sums.len() - 1] + length);
        }
        match begins.last() {
            Some(1..) => Ok(Self { begins, sums }),
            _ => Err(NoiseError::Empty),
        }
    }

    /// Returns the length of the trace \[ps\].
    pub fn period(&self) -> u64 {
        self.begins[self.begins.len() - 1]
    }

    /// Returns the begins and the lengths of the events before the end of the trace \[ps\].
    pub fn events(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let lengths = self.sums.windows(2).map(|sums| sums[1] - sums[0]);
        self.begins[..self.begins.len() - 1].iter().copied().zip(lengths)
    }

    /// Returns the noise in an interval of the trace, which begins `at` and ends `until` \[ps\]: what is left of an event that is running, and the
    /// whole of each that begins in it. The first event is only ever one that is running.
    pub fn between(&self, at: u64, until: u64) -> u64 {
        let begun = self.begins.partition_point(|&begin| begin <= at);
        let coming = self.begins.partition_point(|&begin| begin < until).max(begun).max(1);
        let whole = self.sums[coming] - self.sums[begun.max(1)];
        let running = match begun.checked_sub(1) {
            Some(last) if at > self.begins[0] => {
                let length = self.sums[last + 1] - self.sums[last];
                (self.begins[last] + length).saturating_sub(at)
            }
            _ => 0,
        };
        whole + running
    }
}

/// Reads nanoseconds, in whole ones.
fn picos(text: &str) -> Option<u64> {
    let nanos = text.parse::<f64>().ok()?.round();
    (0.0..1e15).contains(&nanos).then_some(nanos as u64 * NANOSECOND)
}

/// Noise of a trace that each rank begins to read elsewhere, as in LogGOPSim.
///
/// An operation of length `n` that begins at `t` on a rank that begins at `s` reads the trace of length `T` from `(t + s) mod (T - n)`
/// on: past the end of the trace, operations of different lengths look at different places. Events in the noise itself do not count.
#[derive(Clone, Debug)]
pub struct RecurringNoise {
    trace: NoiseTrace,
    /// Begins of the ranks in the trace \[ps\].
    starts: Vec<u64>,
}

impl RecurringNoise {
    /// Places ranks at random in a trace: at one place, or each at its own.
    pub fn new(trace: NoiseTrace, ranks: u32, seed: u32, is_synchronised: bool) -> Self {
        let mut random = MersenneTwister::new(seed);
        let nanos = (trace.period() / NANOSECOND) as f64;
        let mut start = || (f64::from(random.next()) / f64::from(u32::MAX) * nanos) as u64 * NANOSECOND;
        let common = start();
        let starts = (0..ranks).map(|_| if is_synchronised { common } else { start() }).collect();
        Self { trace, starts }
    }

    /// Returns where in the trace each rank begins \[ps\].
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }
}

impl Noise for RecurringNoise {
    fn delay(&self, rank: u32, begin: u64, length: u64) -> u64 {
        let at = (begin + self.starts[rank as usize]) % (self.trace.period() - length);
        self.trace.between(at, at + length)
    }

    fn longest(&self) -> u64 {
        self.trace.period() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_as_they_run_and_begin() {
        let trace = NoiseTrace::read("# noise\n0\t5\n10 3\n\n20.4\t2 # two\n100 0").unwrap();
        assert_eq!(trace.period(), 100_000);
        let between = |at: u64, until: u64| trace.between(at * 1000, until * 1000) / 1000;
        // The first event is running from 1 to 5, and never begins.
        assert_eq!([between(0, 10), between(2, 10), between(2, 11)], [0, 3, 6]);
        // 10 is not after 10: the event is running.
        assert_eq!([between(10, 11), between(12, 20), between(12, 21), between(13, 20)], [3, 1, 3, 0]);
    }

    #[test]
    fn damaged_traces_are_refused() {
        let line = |text: &str| NoiseTrace::read(text).unwrap_err().to_string();
        assert!(line("0 0\nx 1\n").starts_with("line 2: found \"x 1\""));
        assert!(line("0 0 7\n").starts_with("line 1"));
        assert!(line("0 -1\n").starts_with("line 1"));
        assert!(line("5 0\n4 0\n").starts_with("line 2: the event begins before"));
        assert_eq!(NoiseTrace::read("# nothing\n0 3\n"), Err(NoiseError::Empty));
    }
}
