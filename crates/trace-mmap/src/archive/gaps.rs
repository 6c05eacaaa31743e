//! Where a computation is traced at some times and not at others.
//!
//! A tracer leaves out computations that are too short to see. Between the same calls there is then one in some
//! iterations of a loop only, and no two iterations would be equal. So these computations become optional: the program
//! has them always, and a column says when they are left out. Those that are there seldom, or often enough but half of the time at most and
//! in no order, the program never has: they are inserted between its records, so that a cursor does not ask for them at each turn.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::record::Record;

/// Where a computation may be: the heads of the two actions before and of the one behind it. One action before would not do: an exchange
/// with each neighbour in turn begins and ends alike, and computes between some of them only.
pub(crate) type Place = [u64; 3];

/// No action: the begin or end of a rank, or a computation beside another one.
pub(crate) const BOUNDARY: u64 = u64::MAX;

/// Places that are looked at; a rank with more has hardly any structure.
const MAX_PLACES: usize = 4096;

/// A computation is seldom there that is missing more often than this part of the times: whatever the order, a cursor would ask for it
/// in vain nearly always.
const SELDOM: u64 = 8;

/// How often there must be a place so that what is neither seldom nor in order is inserted. With fewer it does not take a cursor
/// long, but ranks that are at both sides of the limit do not share a program.
const OFTEN: u64 = 256;

/// Bits of the past in which an order is looked for.
const PAST: usize = 512;

/// The places that have a computation at some times only.
#[derive(Debug, Default)]
pub(crate) struct Gaps(FxHashMap<Place, Presence>);

/// How often a computation was seen at a place, and how often none.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    computations: u64,
    nothing: u64,
    /// How often it was otherwise than the last time that the nine times before had been the same.
    surprises: u64,
    /// Whether there was a computation at these nine times, by bits.
    past: usize,
    /// What followed the last time, by each such past.
    followed: [u64; PAST / 64],
}

impl Seen {
    #[inline]
    fn note(&mut self, is_there: bool) {
        let (word, bit) = (self.past / 64, self.past % 64);
        let is_surprise = (self.followed[word] >> bit & 1 == 1) != is_there;
        self.followed[word] ^= u64::from(is_surprise) << bit;
        self.past = (2 * self.past + usize::from(is_there)) % PAST;
        self.surprises += u64::from(is_surprise);
        self.computations += u64::from(is_there);
        self.nothing += u64::from(!is_there);
    }

    /// Returns where the computations are; `None` where there is one always, or never.
    ///
    /// To insert one takes a cursor about as long as to ask twice, and a gap fewer bits than to tell several times that there is nothing. But
    /// where there is an order, as that of several places of a loop that look alike, the processor predicts optional ones, and
    /// all iterations may be equal.
    fn presence(&self) -> Option<Presence> {
        let Self { computations, nothing, surprises, .. } = *self;
        if computations == 0 || nothing == 0 {
            return None;
        }
        let is_seldom = nothing / SELDOM > computations;
        let is_irregular = surprises > computations / 2;
        let is_often = computations + nothing >= OFTEN;
        let is_inserted = is_seldom || is_irregular && is_often && nothing >= computations;
        Some(if is_inserted { Presence::Inserted } else { Presence::Optional })
    }
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
        let mut seen: FxHashMap<Place, Seen> = FxHashMap::default();
        let (mut before, mut has_computed) = ([BOUNDARY; 2], false);
        for record in actions {
            if record.own_flops().is_some() {
                if has_computed {
                    before[1] = BOUNDARY;
                }
                has_computed = true;
                continue;
            }
            let next = record.head();
            note(&mut seen, [before[0], before[1], next], has_computed);
            (before, has_computed) = ([before[1], next], false);
        }
        Self(seen.into_iter().filter_map(|(place, seen)| Some((place, seen.presence()?))).collect())
    }

    /// Makes all computations optional, so that none is inserted.
    pub(crate) fn all_optional(mut self) -> Self {
        self.0.values_mut().for_each(|presence| *presence = Presence::Optional);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns where the computations at a place are; `None` where there is one always, or never.
    #[inline]
    pub(crate) fn presence(&self, place: Place) -> Option<Presence> {
        if self.0.is_empty() { None } else { self.0.get(&place).copied() }
    }
}

#[inline]
fn note(places: &mut FxHashMap<Place, Seen>, place: Place, has_computed: bool) {
    if place[1] == BOUNDARY {
        return;
    }
    let is_full = places.len() == MAX_PLACES;
    let seen = match places.entry(place) {
        Entry::Occupied(seen) => seen.into_mut(),
        Entry::Vacant(_) if is_full => return,
        Entry::Vacant(entry) => entry.insert(Seen::default()),
    };
    seen.note(has_computed);
}
