//! Sporadic computations: those that are traced in some iterations and not in others.
//!
//! A tracer leaves out computations that are too short. Between the same calls there is then a computation in some iterations of a
//! loop only, which would make iterations differ. So these computations become optional: the program always has them, and a
//! column marks those that are absent. Rare computations, and irregular ones that are present at most half of the time, are not in
//! the program at all: they are inserted between its records, so that a cursor need not test for them in each iteration.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::record::Record;

/// Context of a computation: the heads of the two actions before it and of the one after it. One action before it would not
/// suffice: exchanges with one neighbour after the other begin and end alike, with computations between some of them only.
pub(crate) type ComputationContext = [u64; 3];

/// Head that stands for no action: the begin or end of a rank, or a computation next to another one.
pub(crate) const BOUNDARY: u64 = u64::MAX;

/// Largest number of contexts that are examined; a rank with more has hardly any structure.
const MAX_CONTEXTS: usize = 4096;

/// A computation is rare if it is absent more than this many times as often as present: whatever the order, nearly all tests for
/// it would fail.
const RARE_RATIO: u64 = 8;

/// Least number of occurrences of a context with an irregular computation that is inserted. Below it a cursor would gain
/// little, but ranks on both sides of a limit do not share a program.
const MIN_INSERTED_OCCURRENCES: u64 = 256;

/// Number of different histories: nine bits, one for each of the last nine occurrences.
const HISTORIES: usize = 512;

/// The contexts that have a computation at some times only.
#[derive(Debug, Default)]
pub(crate) struct SporadicComputations(FxHashMap<ComputationContext, Presence>);

/// Statistics of a context, with a predictor of whether there is a computation.
///
/// The predictor is that of a processor for branches: a table of last outcomes, indexed by the nine outcomes before.
#[derive(Clone, Copy, Debug, Default)]
struct ContextStats {
    computations: u64,
    absences: u64,
    /// Number of mispredictions: the outcome differed from the last one after the same history.
    mispredictions: u64,
    /// History: one bit for each of the last nine outcomes.
    history: usize,
    /// Last outcome after each history, one bit each.
    predictions: [u64; HISTORIES / 64],
}

impl ContextStats {
    #[inline]
    fn record_outcome(&mut self, is_there: bool) {
        let (word, bit) = (self.history / 64, self.history % 64);
        let is_surprise = (self.predictions[word] >> bit & 1 == 1) != is_there;
        self.predictions[word] ^= u64::from(is_surprise) << bit;
        self.history = (2 * self.history + usize::from(is_there)) % HISTORIES;
        self.mispredictions += u64::from(is_surprise);
        self.computations += u64::from(is_there);
        self.absences += u64::from(!is_there);
    }

    /// Returns how the computations are stored; `None` if there is always one, or never.
    ///
    /// For a cursor one insertion costs about as much as two tests, and a distance takes fewer bits than several absent values.
    /// But if the outcomes are regular, as those of several positions in a loop with the same context, the processor predicts
    /// the tests, and all iterations may be equal.
    fn presence(&self) -> Option<Presence> {
        let Self { computations, absences, mispredictions, .. } = *self;
        if computations == 0 || absences == 0 {
            return None;
        }
        let is_seldom = absences / RARE_RATIO > computations;
        let is_irregular = mispredictions > computations / 2;
        let is_often = computations + absences >= MIN_INSERTED_OCCURRENCES;
        let is_inserted = is_seldom || is_irregular && is_often && absences >= computations;
        Some(if is_inserted { Presence::Inserted } else { Presence::Optional })
    }
}

/// Storage of a sporadic computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// In the program, with a column that marks the times when it is absent.
    Optional,
    /// Inserted between the records of the program.
    Inserted,
}

impl SporadicComputations {
    /// Finds the sporadic computations among all actions of a rank.
    pub(crate) fn find(actions: impl Iterator<Item = Record>) -> Self {
        let mut seen: FxHashMap<ComputationContext, ContextStats> = FxHashMap::default();
        let (mut before, mut has_computed) = ([BOUNDARY; 2], false);
        for record in actions {
            if record.inline_flops().is_some() {
                if has_computed {
                    before[1] = BOUNDARY;
                }
                has_computed = true;
                continue;
            }
            let next = record.head();
            record_outcome_in(&mut seen, [before[0], before[1], next], has_computed);
            (before, has_computed) = ([before[1], next], false);
        }
        Self(seen.into_iter().filter_map(|(context, seen)| Some((context, seen.presence()?))).collect())
    }

    /// Makes all sporadic computations optional, so that none is inserted.
    pub(crate) fn all_optional(mut self) -> Self {
        self.0.values_mut().for_each(|presence| *presence = Presence::Optional);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how the computations of a context are stored; `None` if there is always one, or never.
    #[inline]
    pub(crate) fn presence(&self, context: ComputationContext) -> Option<Presence> {
        if self.0.is_empty() { None } else { self.0.get(&context).copied() }
    }
}

#[inline]
fn record_outcome_in(
    contexts: &mut FxHashMap<ComputationContext, ContextStats>,
    context: ComputationContext,
    has_computed: bool,
) {
    if context[1] == BOUNDARY {
        return;
    }
    let is_full = contexts.len() == MAX_CONTEXTS;
    let seen = match contexts.entry(context) {
        Entry::Occupied(seen) => seen.into_mut(),
        Entry::Vacant(_) if is_full => return,
        Entry::Vacant(entry) => entry.insert(ContextStats::default()),
    };
    seen.record_outcome(has_computed);
}
