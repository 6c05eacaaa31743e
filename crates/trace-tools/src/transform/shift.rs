//! `shift`: some ranks compute a part of what others did.

use pdes_core::Rank;

use super::instances::{Instances, Rescaled};
use super::key::{Key, KeyValues};
use super::keys::{Keys, Numbers, number};
use super::{Plan, Program, Refusal, Rewrite, Selector, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "shift",
    subject: Subject::Computations,
    keys: &[
        Key::required("fraction", KeyValues::Amount(1.0), "Part of the computation that other ranks get."),
        Key::required("to", KeyValues::Numbers, "Ranks that get it."),
        Key::optional(
            "over",
            KeyValues::Choice(&["instance", "sum"]),
            "By instances, the default, or in sum.",
        ),
    ],
    semantics: "`fraction` of the computation of each selected rank not in `to` goes to the ranks `to` (numbers) in equal parts: the k-th instance to the \
                k-th, or with `over = \"sum\"` in sum, as of `balance`.",
    read,
};

#[derive(Debug)]
struct Shift {
    selector: Selector,
    instances: Instances,
    fraction: f64,
    to: Numbers,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let fraction = keys.require("fraction", number)?;
    let to = keys.require("to", Numbers::read)?;
    Ok(Box::new(Shift { instances: Instances::read(&selector, keys)?, selector, fraction, to }))
}

impl Transform for Shift {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        self.selector.check_ranks("to", &self.to, program)?;
        let (to, others): (Vec<Rank>, Vec<Rank>) =
            program.ranks().partition(|rank| self.to.contains(rank.get().into()));
        let givers: Vec<Rank> = others.into_iter().filter(|rank| self.selector.selects_rank(*rank)).collect();
        if givers.is_empty() {
            let reason =
                "it gets computation, as do all selected ranks: select one that is not in to (ranks)";
            return Err(Refusal::Place { rank: to[0], action: None, reason: reason.to_owned() });
        }
        let number = to.len() as f64;
        let given = self.instances.amounts(program, givers, None)?;
        let own = self.instances.amounts(program, to, Some(given.sums.len()))?;
        let added = given.sums.iter().map(|sum| sum * self.fraction / number).collect();
        let nothing = vec![0.0; given.sums.len()];
        Ok(Box::new(Shifted {
            getters: self.instances.rescale(program, own, 1.0, added)?,
            givers: self.instances.rescale(program, given, 1.0 - self.fraction, nothing)?,
        }))
    }
}

#[derive(Debug)]
struct Shifted {
    givers: Rescaled,
    getters: Rescaled,
}

impl Plan for Shifted {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        let side = if self.getters.contains(rank) { &self.getters } else { &self.givers };
        side.rewrite(program, rank)
    }
}
