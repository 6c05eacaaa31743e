//! Report of a calibration as an HTML page: its data, for the script beside this file.

use std::path::Path;

use figures::{Explorer, WriteError};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::curve::Curve;
use crate::machine::{Fitted, Machine};
use crate::observation::{Measurements, Operation, Point};

/// Maximum number of observations of an operation on the page; of more, every k-th one is drawn.
const MAX_OBSERVATIONS: usize = 2000;
/// Number of sizes at which a curve is drawn, beside those at its breakpoints.
const CURVE_SIZES: u32 = 300;

impl Machine {
    /// Writes data, fits and residuals as a page that needs no other file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write_page(
        &self,
        title: &str,
        measurements: &Measurements,
        path: &Path,
    ) -> Result<(), WriteError> {
        let data = to_raw_value(&self.page_data(measurements))
            .map_err(|error| WriteError::Write { path: path.to_owned(), source: error.into() })?;
        let footer = measurements.note("program").unwrap_or_default();
        let scripts = [include_str!("page.js")];
        Explorer { title, data: &[("machine", data)], scripts: &scripts, footer }.write(path)
    }

    fn page_data(&self, measurements: &Measurements) -> Value {
        let fits: Vec<_> = self.fits().map(|fitted| self.fit_data(fitted, measurements)).collect();
        let computations = self
            .computations
            .iter()
            .map(|region| (&region.region, region.count, region.seconds, region.rate()))
            .collect::<Vec<_>>();
        let streams: Vec<&Point> = self.streams.iter().filter(|point| point.amount > 0).collect();
        let stream = |point: &&Point| (point.amount, point.typical_s, self.stream_s(point.amount));
        json!({
            "zero_bytes_s": self.one_way.curve.at(0),
            "bandwidth": self.bandwidth(),
            "detached_below": self.thresholds.detached_below,
            "speed": self.speed,
            "test_s": self.test_s,
            "iprobe_s": self.iprobe_s,
            "irecv_s": self.irecv_s,
            "warnings": self.warnings(),
            "fits": fits,
            "streams": streams.iter().map(stream).collect::<Vec<_>>(),
            "stream_model": pieces(&self.network, &self.streams, |bytes| self.stream_s(bytes)),
            "computations": computations,
            "notes": measurements.notes,
        })
    }

    fn fit_data(&self, fitted: &Fitted, measurements: &Measurements) -> Value {
        let Fitted { operation, points, curve } = fitted;
        // Half of a ping-pong is a message.
        let scale = if *operation == Operation::PingPong { 0.5 } else { 1.0 };
        let last = points.last().map_or(0, |point| point.amount);
        let observations: Vec<(u64, f64)> = measurements
            .observations
            .iter()
            .filter(|one| one.operation == *operation && one.amount <= last)
            .map(|one| (one.amount, one.duration_s * scale))
            .collect();
        let every = observations.len().div_ceil(MAX_OBSERVATIONS).max(1);
        let ends = curve.breakpoints().map(Some).chain([None]);
        let segments = curve.segments().iter().zip(ends).zip(fitted.residuals());
        let segments = segments.filter_map(|((segment, end), residuals)| {
            let residuals = residuals?;
            Some(json!({
                "above": segment.above,
                "end": end,
                "constant_s": segment.line.constant_s,
                "slope_s": segment.line.slope_s,
                "sizes": residuals.sizes,
                "median": residuals.median,
                "worst": residuals.worst,
                "spread": residuals.spread,
            }))
        });
        let point = |point: &Point| {
            let Point { amount, typical_s, low_s, high_s, count } = *point;
            (amount, typical_s, low_s, high_s, count, curve.at(amount))
        };
        json!({
            "operation": operation.name(),
            "composed_below": self.composed_below.filter(|_| *operation == Operation::PingPong),
            "observations": observations.iter().step_by(every).collect::<Vec<_>>(),
            "points": points.iter().map(point).collect::<Vec<_>>(),
            "segments": segments.collect::<Vec<_>>(),
            "curve": pieces(curve, points, |bytes| curve.at(bytes)),
            "breakpoints": curve.breakpoints().filter(|&above| above < last).collect::<Vec<_>>(),
        })
    }
}

/// Returns the values of a function of the size between the breakpoints of a curve, at sizes by equal factors over those of points.
fn pieces(curve: &Curve, points: &[Point], value: impl Fn(u64) -> f64) -> Vec<Vec<(u64, f64)>> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let least = first.amount.max(1) as f64;
    let step = (last.amount.max(1) as f64 / least).powf(1.0 / f64::from(CURVE_SIZES));
    let sizes = (0..=CURVE_SIZES).map(|place| (least * step.powf(f64::from(place))).round() as u64);
    let beside = curve.breakpoints().flat_map(|above| [above, above + 1]);
    let mut sizes: Vec<u64> = sizes.chain(beside).chain([first.amount, last.amount]).collect();
    sizes.retain(|size| (first.amount..=last.amount).contains(size));
    sizes.sort_unstable();
    sizes.dedup();
    let pieces =
        sizes.chunk_by(|&one, &other| curve.breakpoints().all(|above| one > above || other <= above));
    pieces.map(|piece| piece.iter().map(|&bytes| (bytes, value(bytes))).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_what_was_measured() {
        let mut measurements = Measurements::default();
        for size in (0..24).map(|power| 1_u64 << power).chain([0]) {
            let jump = if size > 4096 { 2.0 } else { 1.0 };
            measurements.push(Operation::PingPong, size, 0.0, jump * (4e-6 + size as f64 * 2e-10));
            measurements.push(Operation::SendLate, size, 0.0, if size > 4096 { 1.0 } else { 5e-7 });
            measurements.push(Operation::Stream, size, 0.0, 5e-7 + size as f64 * 2e-10);
        }
        let machine = Machine::fit(&measurements).unwrap();
        let data = machine.page_data(&measurements);
        let [message, send] = [0, 1].map(|fit| &data["fits"][fit]);
        assert_eq!((&message["operation"], &send["operation"]), (&json!("pingpong"), &json!("send_late")));
        assert_eq!(message["breakpoints"], json!([8191]));
        // The curve has a piece on each side of the jump, and the sizes beside it.
        let pieces: Vec<Vec<(u64, f64)>> = serde_json::from_value(message["curve"].clone()).unwrap();
        let ends = [pieces[0].last().unwrap(), pieces[1].first().unwrap()];
        assert_eq!((pieces.len(), ends.map(|end| end.0)), (2, [8191, 8192]));
        let expected = [2e-6 + 8191.0 * 1e-10, 2.0 * (2e-6 + 8192.0 * 1e-10)];
        ends.iter().zip(expected).for_each(|(end, time)| assert!((end.1 / time - 1.0).abs() < 1e-9));
        assert_eq!((pieces[0][0].0, pieces[1].last().unwrap().0), (0, 1 << 23));
        assert_eq!(message["observations"].as_array().unwrap().len(), 25);
        // A size that waits for its receiver is none of the blocking sends.
        assert_eq!(send["observations"].as_array().unwrap().len(), 14);
        assert_eq!((data["streams"].as_array().unwrap().len(), &data["warnings"]), (24, &json!([])));
    }
}
