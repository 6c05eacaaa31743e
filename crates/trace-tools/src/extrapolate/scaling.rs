//! Laws of one trace: what its ranks with unequal shares tell, and else how the problem is said to grow.

use super::grid::{DIMENSIONS, Offset};
use super::law::{self, Features, Law, Sample, Unfitted};
use super::program::Kind;

/// How a problem grows with the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// Each rank has as many points as in the trace: sizes and amounts stay.
    Weak,
    /// The points of the trace are divided among the ranks: computations are proportional to the points of a rank, messages to those
    /// on the face towards the peer.
    Strong,
}

/// Dimensions whose shares a value is a product of.
type Factors = [bool; DIMENSIONS];

/// Rules of one trace.
pub(super) struct Rules {
    scaling: Scaling,
    /// Laws of inner ranks, by their factors and whether they are amounts: those at ends of the grid have them, too.
    known: Vec<(Factors, bool, Law)>,
}

impl Rules {
    pub(super) fn new(scaling: Scaling) -> Self {
        Self { scaling, known: Vec::new() }
    }

    /// Takes the laws of inner ranks; `offsets` are those of the peers of their program.
    pub(super) fn learn(&mut self, kinds: &[Kind], offsets: &[Offset], laws: Vec<Law>) {
        for (kind, law) in kinds.iter().zip(laws) {
            if let Some(factors) = factors(*kind, offsets) {
                self.known.push((factors, *kind == Kind::Work, law));
            }
        }
    }

    /// Finds the law of a value; `offsets` are those of the peers of its program.
    pub(super) fn fit(
        &self,
        kind: Kind,
        offsets: &[Offset],
        samples: &[Sample],
        targets: &[Features],
        tolerance: Option<f64>,
        dimensions: usize,
    ) -> Result<Law, Unfitted> {
        let is_zero = samples.iter().all(|sample| sample.value == 0.0);
        match (self.scaling, kind) {
            _ if is_zero => return Law::constant(samples, tolerance),
            (_, Kind::PerPair) => return Err(Unfitted::Unknown),
            (Scaling::Weak, _) | (_, Kind::Fixed) => return Law::constant(samples, tolerance),
            (Scaling::Strong, _) => {}
        }
        let mut factors = factors(kind, offsets).ok_or(Unfitted::Unknown)?;
        let is_amount = tolerance.is_some();
        if let Some(law) = Law::of_shares(samples, targets, is_amount, dimensions)? {
            return Ok(law);
        }
        let known = self.known.iter().filter(|known| (known.0, known.1) == (factors, is_amount));
        let of_inner = known.flat_map(|known| known.2.at_ends()).map(|law| law.measured(samples));
        let of_inner = of_inner.filter(|law| law.is_exact_on(samples, is_amount)).collect();
        if let Some(law) = Law::agreed(of_inner, targets, is_amount)? {
            return Ok(law);
        }
        factors[dimensions..].fill(false);
        match tolerance {
            None => self.fit_size(factors, samples, targets),
            Some(tolerance) => {
                let laws = Law::proportional(factors, samples).into_iter();
                let best = laws.min_by(|one, other| one.misfit.total_cmp(&other.misfit));
                best.filter(|law| law.misfit <= tolerance).ok_or(Unfitted::NoLaw(None))
            }
        }
    }

    /// Finds the law of the size of a message that only the form of the grid tells.
    fn fit_size(&self, factors: Factors, samples: &[Sample], targets: &[Features]) -> Result<Law, Unfitted> {
        if let Some(law) = Law::with_layers(factors, samples) {
            return Ok(law);
        }
        if self.known.is_empty() {
            let mut laws = Law::proportional(factors, samples);
            laws.retain(|law| law.is_exact_on(samples, false));
            return Law::agreed(laws, targets, false)?.ok_or(Unfitted::Unknown);
        }
        // What inner ranks do not have may count points, or be the same on any number of ranks.
        match law::may_count_points(factors, samples) {
            true => Err(Unfitted::Unknown),
            false => Law::constant(samples, None),
        }
    }
}

/// Returns the factors of a value; `None` if one trace does not tell them.
fn factors(kind: Kind, offsets: &[Offset]) -> Option<Factors> {
    match kind {
        Kind::Work => Some([true; DIMENSIONS]),
        Kind::Message(Some(peer)) => Some(offsets[peer].map(|offset| offset == 0)),
        Kind::Message(None) | Kind::Fixed | Kind::PerRank | Kind::PerPair => None,
    }
}
