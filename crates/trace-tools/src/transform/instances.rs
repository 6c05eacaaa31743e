//! Amounts of computation by instance, and other amounts in their place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pdes_core::Rank;
use trace_mmap::AmountSum;

use super::computations::{Computations, for_each};
use super::keys::Keys;
use super::{Plan, Program, Refusal, Rewrite, Selector};

/// The computations of ranks by instance: a visit of the place of the selector, or without one a computation. The computations of an
/// instance are scaled alike.
#[derive(Clone, Debug)]
pub(super) struct Instances {
    /// The computations, on all ranks.
    selector: Selector,
    /// False if all computations of a rank are one instance.
    is_split: bool,
}

/// The amounts of some ranks by instance \[flop\].
#[derive(Debug)]
pub(super) struct Amounts {
    ranks: Vec<Rank>,
    /// Amounts of all these ranks together.
    pub(super) sums: Vec<f64>,
    /// Amount of each rank; empty if instances are split, which are as many as computations and summed again.
    of_ranks: BTreeMap<Rank, Vec<f64>>,
}

impl Instances {
    /// Makes the instances of a selector, but on all ranks, and reads the key `over`.
    pub(super) fn read(selector: &Selector, keys: &Keys<'_>) -> Result<Self, String> {
        let over = keys.get("over", |value| match value.as_str()? {
            "instance" => Some(true),
            "sum" => Some(false),
            _ => None,
        })?;
        Ok(Self { selector: selector.clone().on_all_ranks(), is_split: over.unwrap_or(true) })
    }

    pub(super) fn is_split(&self) -> bool {
        self.is_split
    }

    /// Returns the place of a computation in the list of amounts.
    fn place(&self, instance: u64) -> usize {
        if self.is_split { instance as usize } else { 0 }
    }

    /// Returns the amounts of a rank \[flop\].
    pub(super) fn of_rank(&self, program: &Program<'_>, rank: Rank) -> Vec<f64> {
        let mut amounts = Vec::new();
        if !self.is_split {
            // As of a folded program, whose computations are added up in another order.
            let mut sum: Option<AmountSum> = None;
            for_each(&self.selector, program, rank, |_, flops, _| sum.get_or_insert_default().add(flops));
            return sum.map(AmountSum::get).into_iter().collect();
        }
        for_each(&self.selector, program, rank, |instance, flops, _| {
            let place = self.place(instance);
            if amounts.len() <= place {
                amounts.resize(place + 1, 0.0);
            }
            amounts[place] += flops;
        });
        amounts
    }

    /// Adds up the amounts of ranks.
    ///
    /// # Errors
    /// Fails if a rank has no instance, or another number of them than `expected`, or than the first rank.
    pub(super) fn amounts(
        &self,
        program: &Program<'_>,
        ranks: Vec<Rank>,
        expected: Option<usize>,
    ) -> Result<Amounts, Refusal> {
        // Sums are in the order of ranks, so that they do not depend on the number of threads.
        let mut amounts = Amounts { ranks: Vec::new(), sums: Vec::new(), of_ranks: BTreeMap::new() };
        let mut expected = expected;
        for rank in &ranks {
            let own = self.of_rank(program, *rank);
            let found = own.len();
            let expected = *expected.get_or_insert(found);
            let reason = match self.is_split {
                true => (found != expected).then(|| {
                    format!("it has {found} instances, an earlier rank has {expected}: select ranks with equal numbers, or take over = \"sum\"")
                }),
                false => own.is_empty().then(|| "it has no such computation: leave the rank out (ranks)".to_owned()),
            };
            if let Some(reason) = reason {
                return Err(Refusal::Place { rank: *rank, action: None, reason });
            }
            amounts.sums.resize(found, 0.0);
            amounts.sums.iter_mut().zip(&own).for_each(|(sum, own)| *sum += own);
            if !self.is_split {
                amounts.of_ranks.insert(*rank, own);
            }
        }
        Ok(Amounts { ranks, ..amounts })
    }

    /// Gives each instance of some ranks a part of its amount, and adds an amount that is the same for all these ranks \[flop\].
    ///
    /// # Errors
    /// Fails where something is added to an instance of which all computations are zero.
    pub(super) fn rescale(
        &self,
        program: &Program<'_>,
        amounts: Amounts,
        part: f64,
        added: Vec<f64>,
    ) -> Result<Rescaled, Refusal> {
        let rescaled = Rescaled { instances: self.clone(), amounts, part, added };
        for rank in &rescaled.amounts.ranks {
            let own = rescaled.own(program, *rank);
            let Some(place) =
                own.iter().zip(&rescaled.added).position(|(own, added)| *own == 0.0 && *added > 0.0)
            else {
                continue;
            };
            let mut action = None;
            for_each(&self.selector, program, *rank, |instance, _, at| {
                if self.place(instance) == place {
                    action.get_or_insert(at);
                }
            });
            let reason = "its computations are all zero, so they cannot be scaled: leave the rank out (ranks), or take over = \"sum\"";
            return Err(Refusal::Place { rank: *rank, action, reason: reason.to_owned() });
        }
        Ok(rescaled)
    }
}

/// Other amounts of some ranks.
#[derive(Debug)]
pub(super) struct Rescaled {
    instances: Instances,
    amounts: Amounts,
    part: f64,
    /// Amount that is added to each instance of each rank \[flop\].
    added: Vec<f64>,
}

impl Rescaled {
    fn own(&self, program: &Program<'_>, rank: Rank) -> Cow<'_, [f64]> {
        match self.amounts.of_ranks.get(&rank) {
            Some(own) => Cow::Borrowed(own),
            None => Cow::Owned(self.instances.of_rank(program, rank)),
        }
    }

    pub(super) fn contains(&self, rank: Rank) -> bool {
        self.amounts.ranks.binary_search(&rank).is_ok()
    }
}

impl Plan for Rescaled {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        let own = if self.contains(rank) { self.own(&program, rank) } else { Cow::Borrowed(&[][..]) };
        Box::new(Computations::new(&self.instances.selector, rank, move |flops, instance| {
            let place = self.instances.place(instance);
            let amount = own.get(place).copied().unwrap_or_default();
            // In this order, a computation that is the whole instance becomes its new amount exactly.
            if amount > 0.0 { flops / amount * (self.part * amount + self.added[place]) } else { flops }
        }))
    }
}
