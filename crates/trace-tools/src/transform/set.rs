//! `set`: computations have a given amount.

use super::computations::PointwiseTransform;
use super::key::{Key, KeyValues};
use super::keys::{Keys, number};
use super::{Pointwise, Selector, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "set",
    subject: Subject::Computations,
    keys: &[Key::required("flops", KeyValues::Amount(f64::MAX), "Amount of each computation [flop].")],
    semantics: "Each computation becomes `flops`, in the unit of the trace.",
    read,
};

/// The amount [flop].
#[derive(Clone, Debug)]
struct Set(f64);

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let change = Set(keys.require("flops", number)?);
    Ok(Box::new(PointwiseTransform { selector, change }))
}

impl Pointwise for Set {
    fn change(&self, _: f64) -> f64 {
        self.0
    }
}
