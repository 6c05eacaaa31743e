//! `scale`: computations take another amount.

use pdes_core::Rank;

use super::computations::Computations;
use super::keys::Keys;
use super::{Plan, Pointwise, Program, Refusal, Rewrite, Selector, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "scale",
    subject: Subject::Computations,
    keys: &["factor"],
    semantics: "Each computation is multiplied by `factor`.",
    read,
};

#[derive(Clone, Debug)]
struct Scale {
    selector: Selector,
    factor: f64,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let factor = keys.amount("factor", "by which computations are multiplied")?;
    Ok(Box::new(Scale { selector, factor }))
}

impl Transform for Scale {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn pointwise(&self) -> Option<&dyn Pointwise> {
        Some(self)
    }

    fn plan(&self, _: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        Ok(Box::new(self.clone()))
    }
}

impl Pointwise for Scale {
    fn change(&self, flops: f64) -> f64 {
        (flops * self.factor).min(f64::MAX)
    }
}

impl Plan for Scale {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(Computations::new(&self.selector, rank, |flops, _| self.change(flops)))
    }
}
