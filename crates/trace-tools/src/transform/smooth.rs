//! `smooth`: computations do not vary between visits of a place.

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::Op;

use super::key::{Key, KeyValues};
use super::keys::Keys;
use super::selector::Tracker;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "smooth",
    subject: Subject::Computations,
    keys: &[Key::optional(
        "statistic",
        KeyValues::Choice(&["mean", "median", "min"]),
        "Statistic of the computations at the same place, the mean by default.",
    )],
    semantics: "Each computation becomes the `\"mean\"` (the default), `\"median\"` or `\"min\"`, by `statistic`, of the selected computations of its rank at \
                the same place: the k-th after the `location` of the same region or call site. Computations before the first `location` stay.",
    read,
};

/// Returns the statistic of at least one amount \[flop\].
type Statistic = fn(&mut [f64]) -> f64;

#[derive(Clone, Debug)]
struct Smooth {
    selector: Selector,
    statistic: Statistic,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let statistic = keys.get("statistic", |value| match value.as_str()? {
        "mean" => Some(mean as Statistic),
        "median" => Some(median),
        "min" => Some(min),
        _ => None,
    })?;
    Ok(Box::new(Smooth { selector, statistic: statistic.unwrap_or(mean) }))
}

fn min(amounts: &mut [f64]) -> f64 {
    amounts.iter().copied().fold(f64::INFINITY, f64::min)
}

fn mean(amounts: &mut [f64]) -> f64 {
    // The mean of equal amounts is the same amount, exactly.
    let min = min(amounts);
    min + amounts.iter().map(|amount| amount - min).sum::<f64>() / amounts.len() as f64
}

fn median(amounts: &mut [f64]) -> f64 {
    amounts.sort_unstable_by(f64::total_cmp);
    let (low, high) = (amounts[(amounts.len() - 1) / 2], amounts[amounts.len() / 2]);
    low / 2.0 + high / 2.0
}

impl Transform for Smooth {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, _: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        Ok(Box::new(self.clone()))
    }
}

impl Plan for Smooth {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        let mut amounts: FxHashMap<Place, Vec<f64>> = FxHashMap::default();
        let mut places = PlaceTracker::new(&self.selector, rank);
        if self.selector.selects_rank(rank) {
            for mut step in program.steps(rank) {
                let computation = places.follow(&mut step.op);
                computation
                    .into_iter()
                    .for_each(|(place, flops)| amounts.entry(place).or_default().push(*flops));
            }
        }
        let smooth = amounts.into_iter().map(|(place, mut amounts)| (place, (self.statistic)(&mut amounts)));
        Box::new(Smoothed { places: PlaceTracker::new(&self.selector, rank), amounts: smooth.collect() })
    }
}

/// The number of a location, in the order of first appearance, and of a computation since then.
type Place = (usize, u64);

/// Follows the places of the selected computations of a rank.
#[derive(Debug)]
struct PlaceTracker<'p> {
    tracker: Tracker<'p>,
    locations: FxHashMap<(String, u32), usize>,
    /// The place of the next computation.
    next: Option<Place>,
}

impl<'p> PlaceTracker<'p> {
    fn new(selector: &'p Selector, rank: Rank) -> Self {
        Self { tracker: Tracker::new(selector, rank), locations: FxHashMap::default(), next: None }
    }

    /// Takes the next operation of the rank; returns the place and the amount \[flop\] of a selected computation.
    fn follow<'o>(&mut self, op: &'o mut Op) -> Option<(Place, &'o mut f64)> {
        self.tracker.follow(op);
        match op {
            Op::Location { file, line } => {
                let number = self.locations.len();
                let location = *self.locations.entry((file.clone(), *line)).or_insert(number);
                self.next = Some((location, 0));
                None
            }
            Op::Compute { flops } => {
                let next = self.next.as_mut()?;
                let place = *next;
                next.1 += 1;
                self.tracker.is_here().then_some((place, flops))
            }
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Smoothed<'p> {
    places: PlaceTracker<'p>,
    amounts: FxHashMap<Place, f64>,
}

impl Rewrite for Smoothed<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        if let Some((place, flops)) = self.places.follow(&mut step.op) {
            let changed = self.amounts.get(&place).copied().unwrap_or(*flops);
            step.nanos = step.nanos.filter(|_| changed.to_bits() == flops.to_bits());
            *flops = changed;
        }
        out.push(step);
    }
}
