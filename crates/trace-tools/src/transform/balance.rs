//! `balance`: ranks share computations equally.

mod absent;

use pdes_core::Rank;

use super::instances::{Instances, Rescaled};
use super::key::{Key, KeyValues};
use super::keys::Keys;
use super::{FoldedForm, Plan, Program, Refusal, Rewrite, Selector, Subject, Transform, TransformKind};
use absent::Inserted;

pub(super) const KIND: TransformKind = TransformKind {
    key: "balance",
    subject: Subject::Computations,
    keys: &[Key::optional(
        "over",
        KeyValues::Choice(&["instance", "sum"]),
        "By instances, the default, or in sum.",
    )],
    semantics: "`over = \"instance\"` (the default): the k-th instance of each selected rank becomes the mean of those of these ranks; an instance is a visit \
                of the `region` or `site`, whose computations are scaled alike, or without these keys a computation. `over = \"sum\"`: the computations of a \
                rank are scaled alike, their sum to the mean of the sums. A rank without them computes the mean where the rank that computes most does: after \
                as many collective operations on the world, and after its messages that this rank has received by then.",
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
        if self.instances.is_split() {
            let amounts = self.instances.amounts(program, ranks, None)?;
            let means = amounts.sums.iter().map(|sum| sum / number).collect();
            return Ok(Box::new(self.instances.rescale(program, amounts, 0.0, means)?));
        }
        let sum_of = |rank: &Rank| self.instances.of_rank(program, *rank).iter().sum::<f64>();
        let (own, absent): (Vec<_>, Vec<_>) =
            ranks.into_iter().map(|rank| (rank, sum_of(&rank))).partition(|(_, sum)| *sum > 0.0);
        // At a tie, the lowest rank.
        let most = own.iter().rev().max_by(|one, other| one.1.total_cmp(&other.1)).copied();
        let amounts =
            self.instances.amounts(program, own.into_iter().map(|(rank, _)| rank).collect(), None)?;
        let mean = amounts.sums.first().map_or(0.0, |sum| sum / number);
        let inserted = most
            .filter(|_| !absent.is_empty())
            .map(|(rank, sum)| Inserted::like(&self.selector, program, rank, mean / sum));
        Ok(Box::new(Balanced {
            own: self.instances.rescale(program, amounts, 0.0, vec![mean])?,
            absent: absent.into_iter().map(|(rank, _)| rank).collect(),
            inserted,
        }))
    }
}

/// Computations of equal sums.
#[derive(Debug)]
struct Balanced {
    /// Those of ranks that compute.
    own: Rescaled,
    /// Selected ranks that do not, in ascending order.
    absent: Vec<Rank>,
    /// Their computations.
    inserted: Option<Inserted>,
}

impl Plan for Balanced {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        match &self.inserted {
            Some(inserted) if self.absent.binary_search(&rank).is_ok() => inserted.rewrite(rank),
            _ => self.own.rewrite(program, rank),
        }
    }
}
