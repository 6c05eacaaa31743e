//! `set`: computations have a given amount.

use pdes_core::Rank;

use super::computations::Computations;
use super::keys::Keys;
use super::{Plan, Pointwise, Program, Refusal, Rewrite, Selector, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "set",
    subject: Subject::Computations,
    keys: &["flops"],
    semantics: "Each computation becomes `flops`, in the unit of the trace.",
    read,
};

#[derive(Clone, Debug)]
struct Set {
    selector: Selector,
    flops: f64,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let flops = keys.amount("flops", "the amount of each computation")?;
    Ok(Box::new(Set { selector, flops }))
}

impl Transform for Set {
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

impl Pointwise for Set {
    fn change(&self, _: f64) -> f64 {
        self.flops
    }
}

impl Plan for Set {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(Computations::new(&self.selector, rank, |flops, _| self.change(flops)))
    }
}
