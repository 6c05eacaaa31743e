//! Split of a message's time between sender, network and receiver.

use std::collections::BTreeSet;

use super::{Fitted, NO_OVERHEAD};
use crate::curve::{Curve, Segment};
use crate::line::Line;

/// Minimum share of the network in a message's latency, and in its time per byte.
pub(super) const NETWORK_SHARE: f64 = 0.05;

/// Time of a message, split between the sender, the network and the receiver.
pub(super) struct Split {
    pub(super) network: Curve,
    pub(super) send: Curve,
    pub(super) receive: Curve,
}

impl Split {
    pub(super) fn new(one_way: &Curve, overheads: [&Option<Fitted>; 2], detached_below: u64) -> Self {
        let curves = overheads.map(|fitted| fitted.as_ref().map(|fitted| &fitted.curve));
        let mut thresholds: BTreeSet<u64> = [0, detached_below.saturating_sub(1)].into();
        thresholds.extend(one_way.breakpoints());
        let of_overheads = curves.iter().flatten().flat_map(|curve| curve.breakpoints());
        thresholds.extend(of_overheads.filter(|&above| above < detached_below));
        let parts = |above: u64| {
            let whole = one_way.line(above + 1);
            let is_detached = above + 1 < detached_below;
            let measured = curves.map(|curve| {
                curve.filter(|_| is_detached).map_or(NO_OVERHEAD, |curve| curve.line(above + 1))
            });
            let [send, receive] = scaled_within(measured, whole);
            [whole.minus(send).minus(receive), send, receive].map(|line| Segment { above, line })
        };
        let parts: Vec<[Segment; 3]> = thresholds.into_iter().map(parts).collect();
        let curve = |part: usize| {
            let segments = parts.iter().map(|parts| parts[part]).collect();
            Curve::new(segments).expect("thresholds grow, and 0 is one of them")
        };
        Self { network: curve(0), send: curve(1), receive: curve(2) }
    }
}

/// Scales two lines down, in proportion, if they leave too little of the whole.
fn scaled_within(parts: [Line; 2], whole: Line) -> [Line; 2] {
    let factor = |value: fn(&Line) -> f64| {
        let (sum, most) = (parts.iter().map(value).sum::<f64>(), (1.0 - NETWORK_SHARE) * value(&whole));
        if sum > most { most / sum } else { 1.0 }
    };
    let constant = factor(|line| line.constant_s);
    let slope = factor(|line| line.slope_s);
    parts.map(|line| Line { constant_s: line.constant_s * constant, slope_s: line.slope_s * slope })
}
