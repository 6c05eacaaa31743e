//! Output of a machine as a configuration of pdes-replay, in TOML.

use std::fmt::Write as _;

use crate::curve::{Curve, Segment};
use crate::machine::{Fitted, Machine};
use crate::threshold::Evidence;

/// Default speed of a host if none was measured [flop/s]: the rate at which traces of processor time are recorded.
const DEFAULT_SPEED: f64 = 1e9;

impl Machine {
    /// Returns the machine as a configuration for a replay: sections `platform`, `network` and `mpi`, preceded by comments
    /// with the origin of the data, the notes among them, and the quality of each fit. A [local](Self::is_local) machine has its speed
    /// in `online`, too.
    ///
    /// The platform is a cluster of two hosts, as many as there were processes; further hosts have the same link each.
    /// Numbers have seven digits.
    pub fn to_toml(&self, notes: &[(String, String)]) -> String {
        let mut text =
            String::from("# A machine as measured. Replay on it: pdes-replay --config THIS --trace TRACE\n");
        for (key, value) in notes {
            let _ = writeln!(text, "# {key}: {}", value.replace(['\n', '\r'], " "));
        }
        self.warnings().iter().for_each(|warning| {
            let _ = writeln!(text, "# warning: {warning}");
        });
        text.push_str(&self.table());
        text.push_str(&self.platform());
        text.push_str(&self.network());
        text.push_str(&self.mpi());
        text.push_str(&self.regions());
        text.push_str(&self.online());
        text
    }

    /// Returns a table of the fits, in comments.
    fn table(&self) -> String {
        let mut text = String::from(
            "#\n# fit         above [B]  sizes  constant [us]  per byte [ns]  residual: median    worst  spread of a size\n",
        );
        for fitted in self.fits() {
            for (segment, residuals) in fitted.curve.segments().iter().zip(fitted.residuals()) {
                let Some(residuals) = residuals else { continue };
                let _ = writeln!(
                    text,
                    "# {:<10}{:>11}{:>7}{:>15.4}{:>15.5}{:>17.1} %{:>7.1} %{:>14.1} %",
                    fitted.name(),
                    segment.above,
                    residuals.sizes,
                    segment.line.constant_s * 1e6,
                    segment.line.slope_s * 1e9,
                    residuals.median * 100.0,
                    residuals.worst * 100.0,
                    residuals.spread * 100.0,
                );
            }
        }
        text
    }

    /// Returns the platform, with units: a bare number that is far from those of machines is refused.
    fn platform(&self) -> String {
        let (speed, origin) = match self.speed {
            Some(speed) => (speed, "as measured, or given"),
            None => (DEFAULT_SPEED, "not measured"),
        };
        format!(
            "\n[platform.topology]\nkind = \"cluster\"\n# Any number: each host has a link like the two that were measured.\nhosts = 2\n\
             # Of flops, {origin}. A trace of processor time wants the rate that it was recorded with, 1e9 by default.\n\
             speed = \"{speed}f\"\n# Of the largest messages.\nbandwidth = \"{bandwidth}Bps\"\n\
             # Of each of the two links that a message crosses.\nlatency = \"{latency}s\"\n",
            speed = float(speed),
            bandwidth = float(self.bandwidth()),
            latency = float(self.latency_s() / 2.0),
        )
    }

    fn network(&self) -> String {
        let (latency, bandwidth) = (rounded(self.latency_s() / 2.0) * 2.0, rounded(self.bandwidth()));
        let table = |factor: &dyn Fn(&Segment) -> f64| {
            let section = |segment: &Segment| format!("{}:{}", segment.above, rounded(factor(segment)));
            distinct(&self.network).map(section).collect::<Vec<_>>().join(";")
        };
        format!(
            "\n[network]\npreset = \"raw\"\nlatency_factor = \"{}\"\nbandwidth_factor = \"{}\"\n",
            table(&|segment| segment.line.constant_s / latency),
            table(&|segment| 1.0 / (segment.line.slope_s * bandwidth)),
        )
    }

    fn mpi(&self) -> String {
        let thresholds = self.thresholds;
        let mut text = format!(
            "\n[mpi]\n# The measurements include the envelope.\nenvelope_bytes = 0\n# {}\n\
             detached_below_bytes = {}\neager_below_bytes = {}\n",
            describe(thresholds.evidence),
            thresholds.detached_below,
            thresholds.detached_below
        );
        if thresholds.progress_in_calls {
            text.push_str("# Data did not move while the receiver of a posted receive computed.\nprogress = \"calls\"\n");
        }
        let overheads = [("send", &self.send), ("isend", &self.isend), ("receive", &self.receive)];
        for (name, Fitted { curve, .. }) in
            overheads.into_iter().filter_map(|(name, fitted)| Some((name, fitted.as_ref()?)))
        {
            let section = |Segment { above, line }: &Segment| {
                format!("{above}:{}:{}", float(line.constant_s), float(line.slope_s))
            };
            let sections: Vec<String> = distinct(curve).map(section).collect();
            let _ = writeln!(text, "{name}_overhead = \"{}\"", sections.join(";"));
        }
        for (key, time) in [("irecv_s", self.irecv_s), ("test_s", self.test_s), ("iprobe_s", self.iprobe_s)] {
            if let Some(time) = time {
                let _ = writeln!(text, "{key} = {}", float(time));
            }
        }
        if self.test_s.is_some() || self.iprobe_s.is_some() {
            text.push_str("test_grows = false\n");
        }
        if !self.call_costs.is_empty() {
            text.push_str("\n# Time of the library itself in calls of programs: number of calls, spread of a call.\n[mpi.call_overhead]\n");
        }
        for cost in &self.call_costs {
            let doubt = if cost.is_uncertain() { ", more than the cost" } else { "" };
            let _ = writeln!(
                text,
                "{} = \"{}\" # {} calls, spread {:.3} us{doubt}",
                cost.call,
                cost.to_text(),
                cost.count,
                cost.spread_s * 1e6
            );
        }
        text
    }

    /// Returns the speeds of regions; empty if there are none.
    fn regions(&self) -> String {
        let Some(speed) = self.speed.filter(|_| self.computations.iter().any(|one| !one.region.is_empty()))
        else {
            return String::new();
        };
        let mut text = String::from(
            "\n# Speeds of the regions of a program, as multiples of the speed of a host.\n[compute.region_speeds]\n",
        );
        for region in &self.computations {
            let Some(rate) = region.rate() else { continue };
            // A string of JSON is one of TOML, too.
            let name = serde_json::Value::from(region.region.as_str());
            let (count, seconds) = (region.count, region.seconds);
            let _ = writeln!(
                text,
                "{name} = {} # {count} computations of {seconds:.6} s",
                float(rate / rounded(speed))
            );
        }
        text
    }

    /// Returns the speed of the machine for programs that run on it; empty if it is another one, or has no speed.
    fn online(&self) -> String {
        let speed = self.speed.filter(|_| self.is_local).map(float);
        let section = |speed| {
            format!(
                "\n# Programs run online on the machine that was measured.\n[online]\nspeed = \"{speed}f\"\n"
            )
        };
        speed.map(section).unwrap_or_default()
    }
}

fn describe(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::LateReceiver => "From here on sends waited for a late receiver.",
        Evidence::SendDurations => "From here on sends took as long as their message.",
        Evidence::Coverage => "Smaller sends were measured by themselves, larger ones in ping-pong.",
        Evidence::Jump => {
            "Largest jump of the time of a message; there is no other evidence of a change of protocol."
        }
        Evidence::NoneFound => "The data show no size from which on senders wait.",
    }
}

/// Returns the segments whose line differs from that of the segment before.
fn distinct(curve: &Curve) -> impl Iterator<Item = &Segment> {
    let segments = curve.segments();
    let differs = |place: usize| place == 0 || segments[place].line != segments[place - 1].line;
    (0..segments.len()).filter(move |&place| differs(place)).map(|place| &segments[place])
}

/// Returns a number rounded to seven digits.
fn rounded(number: f64) -> f64 {
    float(number).parse().expect("a number that was just written")
}

/// Formats a number for TOML and tables of overheads.
fn float(number: f64) -> String {
    let digits = format!("{number:.6e}");
    let (mantissa, exponent) = digits.split_once('e').expect("the format has an exponent");
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    if exponent == "0" { format!("{mantissa}e0") } else { format!("{mantissa}e{exponent}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Measurements, Operation};

    #[test]
    fn numbers_have_seven_digits() {
        let numbers = [0.0, 1.0, 1.25e10, 1.234_567_89e-7, -2.0].map(float);
        assert_eq!(numbers, ["0e0", "1e0", "1.25e10", "1.234568e-7", "-2e0"]);
        assert_eq!(rounded(1.234_567_89), 1.234568);
    }

    #[test]
    fn the_whole_text() {
        let mut measurements = Measurements::default();
        for size in (0..2).chain((1..=20).map(|power| 1 << power)) {
            let bytes = size as f64;
            let one_way = if size <= 1024 { 2e-6 + bytes * 2e-9 } else { 8e-6 + bytes * 1e-9 };
            measurements.push(Operation::PingPong, size, 0.0, 2.0 * one_way);
            measurements.push(Operation::SendLate, size, 0.0, if size <= 1024 { 5e-7 } else { 1e-2 });
            measurements.push(Operation::SendOverlap, size, 0.0, 1e-2);
        }
        measurements.push(Operation::Iprobe, 0, 0.0, 4e-8);
        let machine = Machine::fit(&measurements).unwrap();
        let text = machine.to_toml(&[("mpi".to_owned(), "one\ntwo".to_owned())]);
        let values: Vec<&str> =
            text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        let expected = [
            "[platform.topology]",
            "kind = \"cluster\"",
            "hosts = 2",
            "speed = \"1e9f\"",
            "bandwidth = \"1e9Bps\"",
            "latency = \"7.5e-7s\"",
            "[network]",
            "preset = \"raw\"",
            "latency_factor = \"0:1;2047:5.333333\"",
            "bandwidth_factor = \"0:0.5;2047:1\"",
            "[mpi]",
            "envelope_bytes = 0",
            "detached_below_bytes = 2048",
            "eager_below_bytes = 2048",
            "progress = \"calls\"",
            "send_overhead = \"0:5e-7:0e0;2047:0e0:0e0\"",
            "iprobe_s = 4e-8",
            "test_grows = false",
        ];
        assert_eq!(values, expected);
        assert!(text.contains("\n# mpi: one two\n"), "{text}");
        let row = "# message             0     12         2.0000        2.00000              0.0 %    0.0 %           0.0 %";
        assert!(text.contains(row), "{text}");
        let local = Machine { speed: Some(3e9), is_local: true, ..machine };
        let online = "\n[online]\nspeed = \"3e9f\"\n";
        assert!(local.to_toml(&[]).ends_with(online), "{}", local.to_toml(&[]));
        for other in [Machine { speed: None, ..local.clone() }, Machine { is_local: false, ..local }] {
            assert!(!other.to_toml(&[]).contains("[online]"));
        }
    }
}
