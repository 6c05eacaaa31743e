//! The speed of the machine on which a program ran or runs, and what other hosts make of its computations.

use outputs::quantity::metric;
use trace_mmap::WorkMetric;

use crate::simulation::Simulation;

/// Plausible rates of a core \[instructions/s\].
const INSTRUCTION_RATES: std::ops::RangeInclusive<f64> = 1e8..=1e12;

/// Plausible speeds of a host with a rank, from an embedded core to a node of accelerators [flop/s].
const FLOP_RATES: std::ops::RangeInclusive<f64> = 1e7..=1e16;

/// Largest plausible ratio of the speed of a host and that of the machine of the recording, either way.
const MAX_SPEED_RATIO: f64 = 100.0;

/// Speeds of the hosts of ranks, and of the machine on which the program ran, or runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedSpeed {
    counted: Option<WorkMetric>,
    /// Speed of the machine that the configuration gives [flop/s].
    given: Option<f64>,
    /// The program runs, and there is no trace of it.
    is_running: bool,
    /// Speeds of the slowest and the fastest host with a rank [flop/s].
    hosts: [f64; 2],
}

impl RecordedSpeed {
    /// Returns the speeds of a run; `None` if there are no ranks.
    pub fn of(simulation: &Simulation) -> Option<Self> {
        let (spec, trace) = (simulation.spec(), simulation.trace());
        let hosts = simulation.platform().hosts();
        // Hosts have their speed in flops of the trace.
        let scale = spec.amount_scale(trace);
        let used = simulation.placement().hosts_with_ranks();
        let speeds = || used.iter().map(|host| hosts[host.index()].speed * scale);
        let hosts = [speeds().reduce(f64::min)?, speeds().reduce(f64::max)?];
        let counted = trace.provenance().work_metric;
        Some(Self { counted, given: spec.trace_speed, is_running: spec.code.is_some(), hosts })
    }

    /// Returns the speed of the machine on which the program ran [flop/s]; `None` if nothing tells it.
    pub fn machine(self) -> Option<f64> {
        self.given.or(self.counted.and_then(WorkMetric::rate))
    }

    /// Returns the least and the greatest factor by which computations take longer than in the recorded run, with three digits; `None` if
    /// nothing tells it.
    pub fn factors(self) -> Option<[f64; 2]> {
        let [slowest, fastest] = self.hosts;
        let speed = self.machine()?;
        Some([speed / fastest, speed / slowest].map(three_digits))
    }

    /// Returns the factors in words; `None` if nothing tells them, or all are 1.
    pub(crate) fn change(self) -> Option<String> {
        match self.factors()? {
            [1.0, 1.0] => None,
            [least, greatest] if least == greatest => Some(format!("{least}")),
            [least, greatest] => Some(format!("{least} to {greatest}")),
        }
    }

    /// Returns a warning if hosts change the times of computations and nobody said of which machine these are, or if speeds are implausible.
    pub(crate) fn warning(self) -> Option<String> {
        let Self { counted, given, is_running, hosts } = self;
        let outside =
            |range: &std::ops::RangeInclusive<f64>| hosts.iter().any(|speed| !range.contains(speed));
        let hosts = match hosts.map(|speed| metric(speed, "flop/s")) {
            [slowest, fastest] if slowest == fastest => slowest,
            [slowest, fastest] => format!("{slowest} to {fastest}"),
        };
        let what = if is_running { "program" } else { "trace" };
        let Some(factors) = self.factors() else {
            return match counted {
                Some(counted) => outside(&INSTRUCTION_RATES).then(|| {
                    format!(
                        "the {what} counts {counted}, and its hosts compute {hosts}: the speed of a host is then its instructions per second, some \
                         1e9 for a core"
                    )
                }),
                None => outside(&FLOP_RATES).then(|| {
                    format!("the hosts of the ranks compute {hosts}: expected 10 Mflop/s to 10 Pflop/s, as machines do")
                }),
            };
        };
        let is_plausible =
            factors.iter().all(|factor| (1.0 / MAX_SPEED_RATIO..=MAX_SPEED_RATIO).contains(factor));
        let change = self.change().filter(|_| given.is_none() || !is_plausible)?;
        let (reference, key, machine) = match is_running {
            true => ("on this machine", "online.speed", "this machine, which calibrate measures"),
            false => ("when they were recorded", "trace.speed", "the machine on which the program ran"),
        };
        let (source, advice) = match given {
            Some(speed) => (format!("{key} is {}", metric(speed, "flop/s")), String::new()),
            None => (
                format!("the {what} counts {}", counted?),
                format!("; {key} (--speed) tells the speed of {machine}"),
            ),
        };
        let doubt = if is_plausible { "" } else { ", which is implausible" };
        Some(format!(
            "computations take {change} times as long as {reference}{doubt}: {source}, and its hosts compute {hosts}{advice}"
        ))
    }
}

/// Rounds a number to three significant digits.
fn three_digits(number: f64) -> f64 {
    format!("{number:.2e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(counted: Option<WorkMetric>, given: Option<f64>, hosts: [f64; 2]) -> String {
        RecordedSpeed { counted, given, is_running: false, hosts }.warning().unwrap_or_default()
    }

    #[test]
    fn implausible_speeds_are_warned_of_whatever_a_trace_counts() {
        let instructions = Some(WorkMetric::Instructions);
        for fitting in [1e8, 1e9, 1e11] {
            assert_eq!(warning(instructions, None, [fitting; 2]), "");
            assert_eq!(warning(None, None, [fitting; 2]), "");
        }
        assert!(warning(instructions, None, [1.0, 1e9]).contains("instructions per second"));
        for unlikely in [[1.0, 1e9], [1e9, 1e17]] {
            assert!(
                warning(None, None, unlikely).contains("expected 10 Mflop/s to 10 Pflop/s"),
                "{unlikely:?}"
            );
        }
        for counted in [WorkMetric::CpuTime { rate: 1e9 }, WorkMetric::Time { rate: 1e9 }] {
            let implausible =
                "computations take 1000 times as long as when they were recorded, which is implausible";
            assert!(warning(Some(counted), None, [1e6; 2]).starts_with(implausible));
        }
        assert!(
            warning(None, Some(1e9), [1e6; 2]).contains("which is implausible: trace.speed is 1 Gflop/s")
        );
    }

    #[test]
    fn other_hosts_change_times_with_one_warning_unless_the_machine_is_known() {
        let time = Some(WorkMetric::Time { rate: 1e9 });
        assert_eq!(warning(time, None, [1e9; 2]), "");
        let found = warning(time, None, [5e9, 50e9]);
        assert!(
            found.starts_with("computations take 0.02 to 0.2 times as long as when they were recorded: "),
            "{found}"
        );
        for known in [[1e9; 2], [5e9, 50e9]] {
            assert_eq!(warning(time, Some(1e9), known), "");
        }
        let speed = RecordedSpeed { counted: time, given: Some(3e9), is_running: false, hosts: [2e9; 2] };
        assert_eq!(
            (speed.machine(), speed.factors(), speed.change()),
            (Some(3e9), Some([1.5; 2]), Some("1.5".into()))
        );
    }

    #[test]
    fn a_program_that_runs_is_compared_with_this_machine() {
        let running = |counted, given| {
            let speed = RecordedSpeed { counted: Some(counted), given, is_running: true, hosts: [4e9; 2] };
            speed.warning().unwrap_or_default()
        };
        let measured = WorkMetric::CpuTime { rate: 1e9 };
        let assumed = "computations take 0.25 times as long as on this machine: the program counts processor time at 1000000000 flops per \
            second, and its hosts compute 4 Gflop/s; online.speed (--speed) tells the speed of this machine, which calibrate measures";
        assert_eq!(running(measured, None), assumed);
        assert_eq!(running(measured, Some(2e9)), "");
        assert_eq!(running(WorkMetric::Instructions, None), "");
        let implausible = "on this machine, which is implausible: online.speed is 1 Tflop/s, and its hosts";
        assert!(running(WorkMetric::CpuTime { rate: 1e12 }, Some(1e12)).contains(implausible));
    }
}
