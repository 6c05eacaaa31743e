//! `balance`: ranks share computations equally.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pdes_core::Rank;

use super::computations::{Computations, for_each};
use super::keys::Keys;
use super::{Plan, Program, Refusal, Rewrite, Selector, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "balance",
    subject: Subject::Computations,
    keys: &["over"],
    semantics: "`over = \"instance\"` (the default): the k-th instance of each selected rank becomes the mean of the k-th instances of these ranks; an instance \
                is a visit of the `region` or `site`, whose computations are scaled alike, or without these keys a computation. `over = \"sum\"`: the \
                computations of a rank are scaled alike, so that their sum becomes the mean of the sums of the ranks.",
    read,
};

#[derive(Clone, Debug)]
struct Balance {
    selector: Selector,
    per_instance: bool,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let over = keys.get("over", "\"instance\" or \"sum\"", |value| match value.as_str()? {
        "instance" => Some(true),
        "sum" => Some(false),
        _ => None,
    })?;
    Ok(Box::new(Balance { selector, per_instance: over.unwrap_or(true) }))
}

impl Balance {
    /// Returns the place of a computation in the list of amounts to balance.
    fn place(&self, instance: u64) -> usize {
        if self.per_instance { instance as usize } else { 0 }
    }

    /// Returns the amounts of a rank \[flop\]: one for each instance, or their sum.
    fn amounts(&self, program: &Program<'_>, rank: Rank) -> Vec<f64> {
        let mut amounts = Vec::new();
        for_each(&self.selector, program, rank, |instance, flops, _| {
            let place = self.place(instance);
            if amounts.len() <= place {
                amounts.resize(place + 1, 0.0);
            }
            amounts[place] += flops;
        });
        amounts
    }

    /// Checks that the amounts of a rank can become the means.
    fn check(&self, program: &Program<'_>, rank: Rank, own: &[f64], means: &[f64]) -> Result<(), Refusal> {
        let Some(place) = own.iter().zip(means).position(|(own, mean)| *own == 0.0 && *mean > 0.0) else {
            return Ok(());
        };
        let mut action = None;
        for_each(&self.selector, program, rank, |instance, _, at| {
            if self.place(instance) == place {
                action.get_or_insert(at);
            }
        });
        let reason = "its computations are all zero, so they cannot be scaled: leave the rank out (ranks), or take over = \"sum\"";
        Err(Refusal::Place { rank, action, reason: reason.to_owned() })
    }
}

impl Transform for Balance {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let ranks: Vec<Rank> = program.ranks().filter(|rank| self.selector.selects_rank(*rank)).collect();
        // Sums are in the order of ranks, so that the means do not depend on the number of threads.
        let mut sums: Vec<f64> = Vec::new();
        let mut of_ranks = BTreeMap::new();
        for (number, rank) in ranks.iter().enumerate() {
            let own = self.amounts(program, *rank);
            let (found, expected) = (own.len(), sums.len());
            let reason = match self.per_instance {
                true => (number > 0 && found != expected).then(|| {
                    format!("it has {found} instances, an earlier rank has {expected}: select ranks with equal numbers, or take over = \"sum\"")
                }),
                false => own.is_empty().then(|| "it has no such computation: leave the rank out (ranks)".to_owned()),
            };
            if let Some(reason) = reason {
                return Err(Refusal::Place { rank: *rank, action: None, reason });
            }
            sums.resize(own.len(), 0.0);
            sums.iter_mut().zip(&own).for_each(|(sum, own)| *sum += own);
            if !self.per_instance {
                of_ranks.insert(*rank, own);
            }
        }
        let means: Vec<f64> = sums.iter().map(|sum| sum / ranks.len() as f64).collect();
        let balanced = Balanced { balance: self.clone(), of_ranks, means };
        for rank in ranks {
            self.check(program, rank, &balanced.amounts(program, rank), &balanced.means)?;
        }
        Ok(Box::new(balanced))
    }
}

/// The means of a program.
#[derive(Debug)]
struct Balanced {
    balance: Balance,
    /// Sum of each rank \[flop\]; empty if instances are balanced, which are as many as computations and summed again.
    of_ranks: BTreeMap<Rank, Vec<f64>>,
    /// Mean of each instance, or of the sums \[flop\].
    means: Vec<f64>,
}

impl Balanced {
    fn amounts(&self, program: &Program<'_>, rank: Rank) -> Cow<'_, [f64]> {
        match self.of_ranks.get(&rank) {
            Some(own) => Cow::Borrowed(own),
            None => Cow::Owned(self.balance.amounts(program, rank)),
        }
    }
}

impl Plan for Balanced {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        let own = self.amounts(&program, rank);
        Box::new(Computations::new(&self.balance.selector, rank, move |flops, instance| {
            let place = self.balance.place(instance);
            // In this order, a computation that is the whole instance becomes the mean exactly.
            if own[place] > 0.0 { flops / own[place] * self.means[place] } else { flops }
        }))
    }
}
