//! The cables of each shape.

use super::finite_field::FiniteField;
use super::{SwitchShape, jellyfish};

/// A cable between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwitchCable {
    /// The switch of the smaller number.
    pub(super) lower: u32,
    pub(super) upper: u32,
    /// The dimension of a HyperX in which it leads.
    pub(super) dimension: u8,
}

impl SwitchCable {
    pub(super) fn new(one: u32, other: u32) -> Self {
        Self { lower: one.min(other), upper: one.max(other), dimension: 0 }
    }
}

impl SwitchShape {
    /// Lists the cables between switches; `None` if there is no such network.
    pub(super) fn switch_cables(&self) -> Option<Vec<SwitchCable>> {
        match *self {
            Self::HyperX { ref dims, cables, .. } => Some(hyperx(dims, cables)),
            Self::SlimFly { order, .. } => slim_fly(order),
            Self::PolarFly { order, .. } => polarfly(order),
            Self::Jellyfish { switches, degree, seed, .. } => jellyfish::cables(switches, degree, seed),
            Self::DragonflyPlus { groups, leaves, spines, cables, .. } => {
                Some(dragonfly_plus([groups, leaves, spines, cables]))
            }
            Self::RailOptimized { units, servers, rails, spines, cables, .. } => {
                let first_leaf = units * servers;
                let first_spine = first_leaf + units * rails;
                let spines = first_spine..first_spine + spines;
                Some(every_pair(first_leaf..first_spine, spines, cables).collect())
            }
        }
    }
}

/// Joins all of some switches with all of others.
fn every_pair(
    lower: std::ops::Range<u32>,
    upper: std::ops::Range<u32>,
    cables: u32,
) -> impl Iterator<Item = SwitchCable> {
    let pairs = lower.flat_map(move |lower| upper.clone().map(move |upper| SwitchCable::new(lower, upper)));
    pairs.flat_map(move |cable| std::iter::repeat_n(cable, cables as usize))
}

/// Joins every two switches that differ in one coordinate; the first coordinate changes fastest.
fn hyperx(dims: &[u32], cables: u32) -> Vec<SwitchCable> {
    let mut all = Vec::new();
    for switch in 0..dims.iter().product() {
        let mut stride = 1;
        for (dimension, &size) in (0..).zip(dims) {
            let larger = 1..size - switch / stride % size;
            let cable = |step| SwitchCable { dimension, ..SwitchCable::new(switch, switch + step * stride) };
            all.extend(larger.map(cable).flat_map(|cable| std::iter::repeat_n(cable, cables as usize)));
            stride *= size;
        }
    }
    all
}

/// The graphs of McKay, Miller and Širáň (1998), as Hafner constructs them (2004): switches `(0, x, y)` and `(1, m, c)` over a finite field
/// are joined where `y = m x + c`, and inside each line by two sets of differences.
fn slim_fly(order: u32) -> Option<Vec<SwitchCable>> {
    let field = FiniteField::new(order).filter(|_| order != 2)?;
    // Even powers, or, where -1 is no square, half of them and their negatives.
    let exponents: Vec<u32> = if order % 4 == 3 {
        let half = order.div_ceil(2);
        (0..half).step_by(2).chain((half - 1..order - 1).step_by(2)).collect()
    } else {
        (0..order - 1).step_by(2).collect()
    };
    let mut cables = Vec::new();
    for side in 0..2 {
        let differences = exponents.iter().map(|&exponent| field.power(exponent + side));
        let differences: Vec<u32> = differences.collect();
        for line in 0..order {
            let switch = |place| (side * order + line) * order + place;
            for place in 0..order {
                let others = differences.iter().map(|&difference| field.sum(place, difference));
                cables.extend(
                    others
                        .filter(|&other| other > place)
                        .map(|other| SwitchCable::new(switch(place), switch(other))),
                );
            }
        }
    }
    for (line, place, slope) in triples(order) {
        let other = field.sum(field.product(slope, place), line);
        cables.push(SwitchCable::new(place * order + other, (order + slope) * order + line));
    }
    Some(cables)
}

fn triples(order: u32) -> impl Iterator<Item = (u32, u32, u32)> {
    let pairs = (0..order).flat_map(move |first| (0..order).map(move |second| (first, second)));
    pairs.flat_map(move |(first, second)| (0..order).map(move |third| (first, second, third)))
}

/// Joins the points of a projective plane that are orthogonal (Erdős and Rényi, 1962; Brown, 1966).
fn polarfly(order: u32) -> Option<Vec<SwitchCable>> {
    let field = FiniteField::new(order)?;
    let pairs = (0..order).flat_map(|first| (0..order).map(move |second| [1, first, second]));
    let points: Vec<[u32; 3]> =
        pairs.chain((0..order).map(|last| [0, 1, last])).chain(std::iter::once([0, 0, 1])).collect();
    let are_orthogonal = |one: &[u32; 3], other: &[u32; 3]| {
        let products = one.iter().zip(other).map(|(&one, &other)| field.product(one, other));
        products.fold(0, |sum, product| field.sum(sum, product)) == 0
    };
    let mut cables = Vec::new();
    for (lower, point) in (0..).zip(&points) {
        let others = (lower + 1..).zip(&points[lower as usize + 1..]);
        cables.extend(
            others
                .filter(|(_, other)| are_orthogonal(point, other))
                .map(|(upper, _)| SwitchCable::new(lower, upper)),
        );
    }
    Some(cables)
}

/// Joins the leaves of a group with its spines, and every two groups by their spines in turn.
fn dragonfly_plus([groups, leaves, spines, cables]: [u32; 4]) -> Vec<SwitchCable> {
    let first_spine = groups * leaves;
    let spine = |group: u32, port: u32| first_spine + group * spines + port % spines;
    let mut all = Vec::new();
    for group in 0..groups {
        let of_group = spine(group, 0)..first_spine + (group + 1) * spines;
        all.extend(every_pair(group * leaves..(group + 1) * leaves, of_group, 1));
    }
    for (low, high) in (0..groups).flat_map(|low| (low + 1..groups).map(move |high| (low, high))) {
        let ends =
            (0..cables).map(|cable| [(low, (high - 1) * cables + cable), (high, low * cables + cable)]);
        all.extend(
            ends.map(|ends| ends.map(|(group, port)| spine(group, port)))
                .map(|[low, high]| SwitchCable::new(low, high)),
        );
    }
    all
}
