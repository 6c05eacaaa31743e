//! `move`: a part of a computation takes place in another region of the program.

use pdes_core::Rank;
use trace_mmap::Op;

use super::computations::for_each;
use super::key::{Key, KeyValues};
use super::keys::{Keys, Patterns, number};
use super::selector::Tracker;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "move",
    subject: Subject::Computations,
    keys: &[
        Key::optional(
            "fraction",
            KeyValues::Amount(1.0),
            "Part of the computations that moves, 1 by default.",
        ),
        Key::required("to", KeyValues::Names, "Region or call site to which they move."),
        Key::optional("at", KeyValues::Choice(&["begin", "end"]), "Place in the visit, the end by default."),
    ],
    semantics: "`fraction` (by default 1) of the computations of the k-th visit of the `region` or `site` moves to the k-th visit of the place `to`, a region \
                or call site, of the same rank, as a computation of its own: to its end, before the next `location` (`at = \"end\"`, the default), or to its \
                `\"begin\"`. Both places have equally many visits on each selected rank, `iterations` or not.",
    read,
};

#[derive(Clone, Debug)]
struct Move {
    selector: Selector,
    fraction: f64,
    /// The other place, on the ranks of the selector.
    to: Selector,
    is_at_begin: bool,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let fraction = keys.get("fraction", number)?;
    let to = keys.require("to", Patterns::read)?;
    let is_at_begin = keys.get("at", |value| match value.as_str()? {
        "begin" => Some(true),
        "end" => Some(false),
        _ => None,
    })?;
    if !selector.has_place() {
        return Err("move lacks region or site: the place whose computations move".to_owned());
    }
    Ok(Box::new(Move {
        to: selector.at_place(to),
        selector,
        fraction: fraction.unwrap_or(1.0),
        is_at_begin: is_at_begin.unwrap_or_default(),
    }))
}

impl Transform for Move {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        self.to.check(program)?;
        for rank in program.ranks().filter(|rank| self.selector.selects_rank(*rank)) {
            let [mut from, mut to] = [&self.selector, &self.to].map(|selector| Tracker::new(selector, rank));
            for step in program.steps(rank) {
                from.follow(&step.op);
                to.follow(&step.op);
            }
            if from.visits() != to.visits() {
                let (from, to) = (from.visits(), to.visits());
                let reason = format!(
                    "it visits the place {from} times, and the place to which computations move {to} times: expected equal numbers"
                );
                return Err(Refusal::Place { rank, action: None, reason });
            }
        }
        Ok(Box::new(self.clone()))
    }
}

impl Plan for Move {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        let mut moved: Vec<f64> = Vec::new();
        for_each(&self.selector, &program, rank, |visit, flops, _| {
            moved.resize(moved.len().max(visit as usize + 1), 0.0);
            moved[visit as usize] += flops * self.fraction;
        });
        Box::new(Moved {
            plan: self,
            from: Tracker::new(&self.selector, rank),
            to: Tracker::new(&self.to, rank),
            moved,
            due: None,
        })
    }
}

/// Takes parts of computations away, and adds them to other visits.
#[derive(Debug)]
struct Moved<'p> {
    plan: &'p Move,
    from: Tracker<'p>,
    to: Tracker<'p>,
    /// Amount that moves from each visit, and to each \[flop\].
    moved: Vec<f64>,
    /// The computation at the end of the current visit.
    due: Option<Step>,
}

impl Rewrite for Moved<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        if matches!(step.op, Op::Location { .. } | Op::Finalize) {
            out.extend(self.due.take());
        }
        let visits = self.to.visits();
        self.from.follow(&step.op);
        self.to.follow(&step.op);
        if let Op::Compute { flops } = &mut step.op
            && self.from.is_here()
            && self.plan.fraction > 0.0
        {
            *flops -= *flops * self.plan.fraction;
            step.nanos = None;
        }
        let place = (step.action, self.to.visits());
        out.push(step);
        if place.1 > visits && self.to.is_here() {
            let amount = self.moved.get(visits as usize).copied().filter(|flops| *flops > 0.0);
            let new = amount.map(|flops| Step {
                op: Op::Compute { flops },
                posted: None,
                awaited: None,
                action: place.0,
                nanos: None,
            });
            if self.plan.is_at_begin { out.extend(new) } else { self.due = new }
        }
    }

    fn finish(&mut self, out: &mut Vec<Step>) {
        out.extend(self.due.take());
    }
}
