//! `balance`: ranks share computations equally.

use super::instances::Instances;
use super::key::{Key, KeyValues};
use super::keys::Keys;
use super::{FoldedForm, Plan, Program, Refusal, Selector, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "balance",
    subject: Subject::Computations,
    keys: &[Key::optional(
        "over",
        KeyValues::Choice(&["instance", "sum"]),
        "By instances, the default, or in sum.",
    )],
    semantics: "`over = \"instance\"` (the default): the k-th instance of each selected rank becomes the mean of the k-th instances of these ranks; an instance \
                is a visit of the `region` or `site`, whose computations are scaled alike, or without these keys a computation. `over = \"sum\"`: the \
                computations of a rank are scaled alike, so that their sum becomes the mean of the sums of the ranks.",
    read,
};

#[derive(Debug)]
struct Balance {
    selector: Selector,
    instances: Instances,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let instances = Instances::read(&selector, keys)?;
    Ok(Box::new(Balance { selector, instances }))
}

impl Transform for Balance {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn folded(&self) -> Option<FoldedForm<'_>> {
        (!self.instances.is_split()).then_some(FoldedForm::EqualSums)
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let ranks: Vec<_> = program.ranks().filter(|rank| self.selector.selects_rank(*rank)).collect();
        let number = ranks.len() as f64;
        let amounts = self.instances.amounts(program, ranks, None)?;
        let means = amounts.sums.iter().map(|sum| sum / number).collect();
        Ok(Box::new(self.instances.rescale(program, amounts, 0.0, means)?))
    }
}
