//! Where a computation is traced at some times and not at others.
//!
//! A tracer leaves out computations that are too short to see. Between the same two calls there is then one in some
//! iterations of a loop only, and no two iterations would be equal. So these computations become optional: the program
//! has them always, and a column says when they are left out.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::record::Record;

/// The heads of two actions that follow each other but for a computation in between.
pub(crate) type Pair = (u64, u64);

/// No action: the begin or end of a rank, or a computation beside another one.
pub(crate) const BOUNDARY: u64 = u64::MAX;

/// Pairs that are looked at; a rank with more has hardly any structure.
const MAX_PAIRS: usize = 4096;

/// The pairs of actions that have a computation in between at some times only.
#[derive(Debug, Default)]
pub(crate) struct Gaps(FxHashMap<Pair, Seen>);

/// What was seen between two actions.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    computation: bool,
    nothing: bool,
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
        seen.retain(|_, seen| seen.computation && seen.nothing);
        Self(seen)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn contains(&self, pair: Pair) -> bool {
        !self.0.is_empty() && self.0.contains_key(&pair)
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
    seen.computation |= has_computed;
    seen.nothing |= !has_computed;
}
