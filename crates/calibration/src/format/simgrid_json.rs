//! Reader of JSON files of SimGrid's network calibration: segments with distributions of the constant part of the time, as
//! mixtures of normal distributions or as histograms. The mean of a distribution is used.
//!
//! The operation is not in the file, but in its name. Ping-pongs are already halved in it.

use serde::Deserialize;

use super::{FormatError, Text};
use crate::observation::{Measurements, Operation};

/// Number of sizes at which a segment is sampled.
const SIZES: u32 = 12;
/// Largest sampled size of a segment without an end \[B\].
const LARGEST: f64 = (1_u32 << 24) as f64;

#[derive(Deserialize)]
struct File {
    seg: Vec<Part>,
}

/// A segment, or a component of the mixture of one.
#[derive(Deserialize)]
struct Part {
    min_x: f64,
    max_x: f64,
    #[serde(flatten)]
    times: Times,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Times {
    Normal {
        mean: f64,
        prob: f64,
        coefficient: f64,
    },
    Histogram {
        /// True if the times are logarithms.
        #[serde(default)]
        log: bool,
        xbr: Vec<f64>,
        height: Vec<f64>,
        coeff: f64,
    },
}

pub(super) fn read(text: Text<'_>) -> Result<Measurements, FormatError> {
    let error = |message: String| FormatError::Json { file: text.file.to_owned(), message };
    let file: File = serde_json::from_str(text.text).map_err(|source| error(source.to_string()))?;
    let (operation, times) = operation(text).ok_or_else(|| {
        error("the name of the file holds none of pingpong, isend, send and recv".to_owned())
    })?;
    let mut measurements = Measurements::default();
    for parts in file.seg.chunk_by(|one, other| (one.min_x, one.max_x) == (other.min_x, other.max_x)) {
        let constant: f64 = parts.iter().map(|part| part.times.constant()).sum();
        let slope = parts[0].times.slope();
        for size in sizes(&parts[0]) {
            let duration = times * (constant + slope * size as f64);
            if !(duration > 0.0 && duration.is_finite()) {
                return Err(error(format!("found a duration of {duration} s for {size} B")));
            }
            measurements.push(operation, size, 0.0, duration);
        }
    }
    Ok(measurements)
}

/// Returns the operation by the name of the file, and the factor of its times.
fn operation(text: Text<'_>) -> Option<(Operation, f64)> {
    let name = text.file.file_stem()?.to_string_lossy().to_lowercase();
    let operations = [
        ("pingpong", Operation::PingPong, 2.0),
        ("isend", Operation::Isend, 1.0),
        ("send", Operation::Send, 1.0),
        ("recv", Operation::Receive, 1.0),
    ];
    operations
        .into_iter()
        .find(|(part, ..)| name.contains(part))
        .map(|(_, operation, times)| (operation, times))
}

/// Returns the sampled sizes of a segment, in geometric progression.
fn sizes(part: &Part) -> impl Iterator<Item = u64> + use<> {
    let first = part.min_x.max(0.0).floor() + 1.0;
    let last = part.max_x.min(LARGEST.max(16.0 * first)).max(first);
    let size =
        move |place| (first * (last / first).powf(f64::from(place) / f64::from(SIZES - 1))).round() as u64;
    let mut sizes: Vec<u64> = (0..SIZES).map(size).collect();
    sizes.dedup();
    sizes.into_iter()
}

impl Times {
    /// Returns the contribution of the distribution to the mean.
    fn constant(&self) -> f64 {
        match self {
            Self::Normal { mean, prob, .. } => mean * prob,
            Self::Histogram { log, xbr, height, .. } => {
                let bins = || xbr.windows(2).zip(height);
                let share = |value: fn(f64, f64) -> f64| {
                    bins().map(|(ends, height)| height * value(ends[0], ends[1])).sum::<f64>()
                };
                let integral = match log {
                    true => share(|from, to| to.exp() - from.exp()),
                    false => share(|from, to| (to * to - from * from) / 2.0),
                };
                integral / share(|from, to| to - from)
            }
        }
    }

    fn slope(&self) -> f64 {
        match self {
            Self::Normal { coefficient, .. } => *coefficient,
            Self::Histogram { coeff, .. } => *coeff,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::format::read_text;
    use crate::observation::Operation;

    fn points(text: &str, name: &str, operation: Operation) -> Vec<(u64, f64)> {
        let measurements = read_text(text, Path::new(name)).unwrap();
        measurements.points(operation).iter().map(|point| (point.amount, point.typical_s)).collect()
    }

    #[test]
    fn mixtures_of_normal_distributions() {
        let part = |mean: &str, prob: f64, range: &str| {
            format!("{{\"mean\": {mean}, \"sd\": 1e-9, \"prob\": {prob}, \"coefficient\": 1e-10, {range}}}")
        };
        let small = "\"min_x\": 0.0, \"max_x\": 4.0";
        let large = "\"min_x\": 4.0, \"max_x\": 3.4028234663852886e+38";
        let text = format!(
            "{{\"bandwidth_base\": 1e10, \"latency_base\": 1e-5, \"seg\": [{}, {}, {}]}}",
            part("1e-6", 0.75, small),
            part("5e-6", 0.25, small),
            part("8e-6", 1.0, large)
        );
        let sends = points(&text, "dir/send_ckmeans.json", Operation::Send);
        assert_eq!(sends.iter().map(|&(size, _)| size).take(5).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert!((sends[0].1 - (2e-6 + 1e-10)).abs() < 1e-18, "{sends:?}");
        let &(size, duration) = sends.last().unwrap();
        assert_eq!(size, 1 << 24);
        assert!((duration - (8e-6 + 1e-10 * size as f64)).abs() < 1e-12, "{sends:?}");
        let back = points(&text, "pingpong_ckmeans.json", Operation::PingPong);
        assert!((back[0].1 - 2.0 * sends[0].1).abs() < 1e-18, "{back:?}");
        assert_eq!(points(&text, "isend.json", Operation::Isend), sends);
    }

    #[test]
    fn histograms() {
        let text = |log: bool, ends: &str| {
            format!(
                "{{\"seg\": [{{\"log\": {log}, \"min_x\": 0, \"max_x\": 1.0, \"xbr\": {ends}, \"height\": [1.0, 3.0], \"coeff\": 0.5}}]}}"
            )
        };
        // One in 1..2 with weight 1, one in 2..3 with weight 3.
        let plain = points(&text(false, "[1.0, 2.0, 3.0]"), "recv.json", Operation::Receive);
        assert_eq!(plain, [(1, (1.5 + 3.0 * 2.5) / 4.0 + 0.5)]);
        let logarithms = points(&text(true, "[0.0, 1.0, 2.0]"), "recv.json", Operation::Receive);
        let e = 1.0_f64.exp();
        assert!(
            (logarithms[0].1 - ((e - 1.0 + 3.0 * (e * e - e)) / 4.0 + 0.5)).abs() < 1e-12,
            "{logarithms:?}"
        );
    }

    #[test]
    fn errors_name_their_cause() {
        let error = |text: &str, name: &str| read_text(text, Path::new(name)).unwrap_err().to_string();
        assert!(error("{\"seg\": 4}", "send.json").contains("at line 1"));
        let negative =
            "{\"seg\": [{\"mean\": -1, \"prob\": 1, \"coefficient\": 0, \"min_x\": 0, \"max_x\": 1}]}";
        assert!(error(negative, "send.json").contains("found a duration of -1 s for 1 B"));
        assert!(error(negative, "file.json").contains("none of pingpong, isend, send and recv"));
    }
}
