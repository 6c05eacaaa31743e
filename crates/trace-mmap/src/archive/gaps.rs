//! Where a computation is traced at some times and not at others.
//!
//! A tracer leaves out computations that are too short to see. Between the same two calls there is then one in some
//! iterations of a loop only, and no two iterations would be equal. So these computations become optional: the program
//! has them always, and a column says when they are left out. Those that are there but seldom the program never has: they are
//! inserted between its records, so that a cursor does not ask for them at each turn.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::record::Record;

/// The heads of two actions that follow each other but for a computation in between.
pub(crate) type Pair = (u64, u64);

/// No action: the begin or end of a rank, or a computation beside another one.
pub(crate) const BOUNDARY: u64 = u64::MAX;

/// Pairs that are looked at; a rank with more has hardly any structure.
const MAX_PAIRS: usize = 4096;

/// A computation is seldom there that is missing more often than this part of the times: to insert one costs a cursor about as much as
/// to ask for it that often in vain.
const SELDOM: u64 = 8;

/// The pairs of actions that have a computation in between at some times only.
#[derive(Debug, Default)]
pub(crate) struct Gaps(FxHashMap<Pair, Seen>);

/// How often a computation was seen between two actions, and how often none.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    computations: u64,
    nothing: u64,
}

/// Where computations are that are there at some times only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// In the program, and a column says when they are left out.
    Optional,
    /// Between the records of the program.
    Inserted,
}

impl Gaps {
    /// Looks at all actions of a rank.
    pub(crate) fn find(actions: impl Iterator<Item = Record>) -> Self {
        let mut seen: FxHashMap<Pair, Seen> = FxHashMap::default();
        let (mut before, mut has_computed) = (BOUNDARY, false);
        for record in actions {
            if record.own_flops().is_some() {
                if has_computed {
                    before = BOUNDARY;
                }
                has_computed = true;
                continue;
            }
            let next = record.head();
            note(&mut seen, (before, next), has_computed);
            (before, has_computed) = (next, false);
        }
        seen.retain(|_, seen| seen.computations > 0 && seen.nothing > 0);
        Self(seen)
    }

    /// Makes all computations optional, so that none is inserted.
    pub(crate) fn all_optional(mut self) -> Self {
        self.0.values_mut().for_each(|seen| seen.nothing = 1);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns where the computations between two actions are; `None` where there is one always, or never.
    #[inline]
    pub(crate) fn presence(&self, pair: Pair) -> Option<Presence> {
        if self.0.is_empty() {
            return None;
        }
        let Seen { computations, nothing } = *self.0.get(&pair)?;
        Some(if nothing / SELDOM > computations { Presence::Inserted } else { Presence::Optional })
    }
}

#[inline]
fn note(pairs: &mut FxHashMap<Pair, Seen>, pair: Pair, has_computed: bool) {
    if pair.0 == BOUNDARY {
        return;
    }
    let is_full = pairs.len() == MAX_PAIRS;
    let seen = match pairs.entry(pair) {
        Entry::Occupied(seen) => seen.into_mut(),
        Entry::Vacant(_) if is_full => return,
        Entry::Vacant(place) => place.insert(Seen::default()),
    };
    seen.computations += u64::from(has_computed);
    seen.nothing += u64::from(!has_computed);
}
