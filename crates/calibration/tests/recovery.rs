//! Segments that were put into noisy data are recovered from it.

use calibration::{Line, Machine, Measurements, Operation, Segment};
use proptest::prelude::*;

/// Returns the measured sizes: small ones all, others at random with constant density of their logarithm.
fn sizes(random: &mut fastrand::Rng, largest: u64, count: u32) -> Vec<u64> {
    let from = 16.0_f64.ln();
    let step = ((largest as f64).ln() - from) / f64::from(count);
    let drawn = (0..count).map(|place| (from + step * (f64::from(place) + random.f64())).exp() as u64);
    let mut sizes: Vec<u64> = (0..16).chain(drawn).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The true machine: segments of the time of a message.
#[derive(Clone, Debug)]
struct Truth {
    segments: Vec<Segment>,
}

impl Truth {
    fn at(&self, bytes: u64) -> f64 {
        let after = self.segments.partition_point(|segment| segment.above < bytes);
        self.segments[after.max(1) - 1].line.at(bytes as f64)
    }

    /// Simulates ping-pong measurements, each size several times, with errors of this relative standard deviation; one in
    /// forty observations is disturbed and takes up to ten times as long.
    fn measure(&self, sizes: &[u64], noise: f64, random: &mut fastrand::Rng) -> Measurements {
        let mut measurements = Measurements::default();
        for &size in sizes {
            for _ in 0..9 {
                let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                let disturbed = if random.u8(..) < 6 { 1.0 + 9.0 * random.f64() } else { 1.0 };
                let duration = self.at(size) * (1.0 + noise * normal) * disturbed;
                measurements.push(Operation::PingPong, size, 0.0, 2.0 * duration);
            }
        }
        measurements
    }
}

/// Generates one to four segments; between two of them the time jumps up by 25 % to 100 %, and the bandwidth changes.
fn truth() -> impl Strategy<Value = Truth> {
    let step = (1.25_f64..2.0, 0.5_f64..2.0, 0.1_f64..0.9);
    (1e-7..1e-4, 1e-11..1e-8, proptest::collection::vec(step, 0..4)).prop_map(
        |(constant_s, slope_s, steps)| {
            let mut segments = vec![Segment { above: 0, line: Line { constant_s, slope_s } }];
            let number = steps.len() as f64;
            for (place, (jump, change, at)) in steps.into_iter().enumerate() {
                let last = segments[place].line;
                // Breakpoints lie in parts of their own of the sizes from 64 B to 1 MiB.
                let share = (place as f64 + at) / number;
                let above = (64.0 * (16384.0_f64).powf(share)) as u64;
                let time = last.at(above as f64) * jump;
                let slope_s = (last.slope_s * change).min(0.9 * time / above as f64);
                let line = Line { constant_s: time - slope_s * above as f64, slope_s };
                segments.push(Segment { above, line });
            }
            Truth { segments }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn segments_are_found_again(truth in truth(), noise in 0.01..0.05, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let sizes = sizes(&mut random, 4 << 20, 150);
        let machine = Machine::fit(&truth.measure(&sizes, noise, &mut random)).unwrap();
        let curve = &machine.one_way.curve;
        let places = |above: u64| sizes.partition_point(|&size| size <= above);
        let found: Vec<usize> = curve.breakpoints().map(places).collect();
        let expected: Vec<usize> = truth.segments[1..].iter().map(|segment| places(segment.above)).collect();
        prop_assert_eq!(found.len(), expected.len(), "found {:?}", curve);
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!(found.abs_diff(*expected) <= 1, "{:?} of {} sizes", curve, sizes.len());
        }
        // Only away from breakpoints, where a size may be on the wrong side.
        for (place, &size) in sizes.iter().enumerate() {
            if expected.iter().all(|&expected| place.abs_diff(expected) > 1) {
                let error = curve.at(size) / truth.at(size) - 1.0;
                prop_assert!(error.abs() < 0.01 + 1.5 * noise, "{} at {} B", error, size);
            }
        }
        let last = truth.segments[truth.segments.len() - 1].line.slope_s;
        prop_assert!((machine.bandwidth() * last - 1.0).abs() < 0.01 + 2.0 * noise, "{:?}", curve);
    }

    #[test]
    fn a_line_has_no_breakpoint(constant_s in 1e-7..1e-4, slope_s in 1e-11..1e-8, noise in 0.0..0.05, seed: u64) {
        let truth = Truth { segments: vec![Segment { above: 0, line: Line { constant_s, slope_s } }] };
        let mut random = fastrand::Rng::with_seed(seed);
        let sizes = sizes(&mut random, 4 << 20, 150);
        let machine = Machine::fit(&truth.measure(&sizes, noise, &mut random)).unwrap();
        prop_assert_eq!(machine.one_way.curve.segments().len(), 1, "{:?}", machine.one_way.curve);
        prop_assert!((machine.latency_s() / constant_s - 1.0).abs() < 0.001 + noise);
        prop_assert!((machine.bandwidth() * slope_s - 1.0).abs() < 0.001 + noise);
    }
}
