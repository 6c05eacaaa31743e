//! Counters of a thread's computation.

use rustix::time::{ClockId, clock_gettime};

/// Returns the wall-clock time since an arbitrary instant \[ns\].
pub fn wall_clock() -> u64 {
    nanos(ClockId::Monotonic)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the wall-clock time since an arbitrary instant to a few milliseconds \[ns\]: sums of many differences are right all the
/// same, and reading it costs next to nothing.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn coarse_clock() -> u64 {
    nanos(ClockId::MonotonicCoarse)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub use wall_clock as coarse_clock;

/// Returns how long the calling thread was ready to run and waited for a processor so far \[ns\]; 0 if that is unknown.
pub(crate) fn queued_time() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    statistics.split_whitespace().nth(1).and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

/// Quantity that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Instructions retired in user mode.
    Instructions,
    /// Processor time.
    CpuTime,
}

impl Counter {
    /// Returns the best counter that the kernel offers to this process.
    pub fn best() -> Self {
        if open().is_some() { Self::Instructions } else { Self::CpuTime }
    }

    /// Returns the name in shards.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::CpuTime => "cpu-time",
        }
    }
}

/// Counter of one thread.
#[derive(Debug)]
pub struct Clock {
    source: CounterSource,
    /// Difference of two consecutive readings.
    reading_overhead: u64,
}

#[derive(Debug)]
enum CounterSource {
    #[cfg(target_os = "linux")]
    Instructions(Box<perf_event::Counter>),
    CpuTime,
}

impl Clock {
    /// Starts to count for the calling thread; `None` if its instructions cannot be counted.
    pub fn start(counter: Counter) -> Option<Self> {
        let source = match counter {
            Counter::Instructions => open()?,
            Counter::CpuTime => CounterSource::CpuTime,
        };
        let mut clock = Self { source, reading_overhead: 0 };
        let mut difference = || {
            let before = clock.read();
            clock.read().saturating_sub(before)
        };
        let own = (0..32).map(|_| difference()).min().unwrap_or(0);
        Some(Self { reading_overhead: own, ..clock })
    }

    /// Returns the instructions, or the nanoseconds of processor time, so far.
    pub fn read(&mut self) -> u64 {
        match &mut self.source {
            // A counter that was read once can be read again.
            #[cfg(target_os = "linux")]
            CounterSource::Instructions(counter) => counter.read().unwrap_or(0),
            CounterSource::CpuTime => nanos(ClockId::ThreadCPUTime),
        }
    }

    /// Returns whether this counts nanoseconds of processor time.
    pub fn counts_time(&self) -> bool {
        matches!(self.source, CounterSource::CpuTime)
    }

    /// Returns the count between two readings, without that of the readings themselves.
    pub fn between(&self, from: u64, to: u64) -> u64 {
        to.saturating_sub(from).saturating_sub(self.reading_overhead)
    }
}

#[cfg(target_os = "linux")]
fn open() -> Option<CounterSource> {
    // The default of the builder is this thread, in user mode, on any processor.
    let mut counter = perf_event::Builder::new(perf_event::events::Hardware::INSTRUCTIONS).build().ok()?;
    counter.enable().ok()?;
    counter.read().ok()?;
    Some(CounterSource::Instructions(Box::new(counter)))
}

#[cfg(not(target_os = "linux"))]
fn open() -> Option<CounterSource> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(rounds: u64) -> u64 {
        (0..rounds).fold(1, |sum, round| std::hint::black_box(sum ^ round))
    }

    #[test]
    fn work_counts_and_sleep_does_not() {
        for counter in [Counter::CpuTime, Counter::best()] {
            let mut clock = Clock::start(counter).unwrap();
            let start = clock.read();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let slept = clock.read();
            work(20_000_000);
            let worked = clock.read();
            assert!(clock.between(slept, worked) > clock.between(start, slept), "{counter:?}");
            assert_eq!(clock.between(worked, worked), 0);
        }
    }
}
