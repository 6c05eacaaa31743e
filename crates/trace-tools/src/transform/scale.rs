//! `scale`: computations take another amount.

use super::computations::PointwiseTransform;
use super::key::{Key, KeyValues};
use super::keys::{Keys, number};
use super::{Pointwise, Selector, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "scale",
    subject: Subject::Computations,
    keys: &[Key::required(
        "factor",
        KeyValues::Amount(f64::MAX),
        "Factor by which computations are multiplied.",
    )],
    semantics: "Each computation is multiplied by `factor`.",
    read,
};

/// Factor of each amount.
#[derive(Clone, Debug)]
struct Scale(f64);

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let change = Scale(keys.require("factor", number)?);
    Ok(Box::new(PointwiseTransform { selector, change }))
}

impl Pointwise for Scale {
    fn change(&self, flops: f64) -> f64 {
        (flops * self.0).min(f64::MAX)
    }
}
