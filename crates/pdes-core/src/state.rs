//! One description of the state of a simulation, from which saving, loading, comparing, and repeating follow.
//!
//! A type describes its state once, by [`State::visit`]: it shows each part to a visitor, and the type of a part says its role.
//!
//! | role | saved | compared | repeated |
//! |---|---|---|---|
//! | an instant ([`SimTime`]) | yes | relative to the present | shifted |
//! | a [`Counter`], a [`Total`] | yes | no | grows as it did before |
//! | a number [on a base](StateVisitor::number_on) | yes | relative to the base | no |
//! | anything else | yes | yes | no |
//!
//! Two states that compare equal have the same future, later by the time between them. So what lies between them can be repeated
//! without simulating it: instants are shifted, and counters and totals grow once more by what they have grown.

mod containers;
mod observation;

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Bytes, LpId, Rank, SimDuration, SimTime};
pub use observation::{Observation, Repetition, Total};

/// A part of the state of a simulation.
///
/// `#[derive(State)]` visits all fields: see [the macro](pdes_core_derive::State).
///
/// # Laws
/// 1. Everything on which the future depends is visited, in an order that depends on what is visited only.
/// 2. What only names things (numbers that are reused, positions in a pool) is not compared, or as a number on a base.
///
/// ```
/// use pdes_core::{Observation, SimDuration, SimTime, State, StateVisitor};
/// # use serde::{Deserialize, Serialize};
///
/// #[derive(State, Serialize, Deserialize)]
/// struct Timer { at: SimTime, is_armed: bool }
///
/// let mut timer = Timer { at: SimTime::from_picos(25), is_armed: true };
/// let before = Observation::of(SimTime::from_picos(10), &mut timer);
/// timer.at += SimDuration::from_picos(100);
/// let now = Observation::of(SimTime::from_picos(110), &mut timer);
/// assert!(now.equals(&before));
/// now.repetition(&before, 3).unwrap().repeat(SimDuration::from_picos(300), &mut timer);
/// assert_eq!(timer.at, SimTime::from_picos(425));
/// ```
///
/// A field whose type has no role compiles with one of its own only:
///
/// ```
/// # use pdes_core::State;
/// # use serde::{Deserialize, Serialize};
/// #[derive(State, Serialize, Deserialize)]
/// struct Timer { at: u64, #[state(saved = "of no effect")] name: std::path::PathBuf }
/// ```
///
/// ```compile_fail
/// # use pdes_core::State;
/// # use serde::{Deserialize, Serialize};
/// #[derive(State, Serialize, Deserialize)]
/// struct Timer { at: u64, name: std::path::PathBuf }
/// ```
pub trait State {
    /// Shows all parts to a visitor.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>);
}

/// A number that grows and makes no difference: it grows as much again when what happened is repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
pub struct Counter(pub u64);

/// Name of a base of [numbers](StateVisitor::number_on): what they number, and whose they are.
pub type BaseName = (u32, u32);

/// A visitor of states: it saves, loads, compares or repeats all that it is shown.
#[derive(Debug)]
pub struct StateVisitor<'a> {
    phase: Phase<'a>,
    /// The present.
    now: SimTime,
    /// The first number on each base.
    bases: BTreeMap<BaseName, u32>,
    is_refused: bool,
}

#[derive(Debug)]
enum Phase<'a> {
    Save(Vec<u8>),
    /// Bytes that are not loaded yet.
    Load(&'a [u8]),
    Observe(Observation),
    /// Time by which instants are shifted, and the counters and totals after it.
    Repeat(SimDuration, Repetition),
}

/// The bytes are not a state of what was to be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state is another one's")]
pub struct ForeignState;

/// Saves a state; `None` where it [refuses](StateVisitor::refuse).
pub fn save_state(state: &mut (impl State + ?Sized)) -> Option<Vec<u8>> {
    let mut visitor = StateVisitor::new(Phase::Save(Vec::new()), SimTime::ZERO);
    state.visit(&mut visitor);
    match visitor.phase {
        Phase::Save(bytes) if !visitor.is_refused => Some(bytes),
        _ => None,
    }
}

/// Loads a state into one that has done nothing yet.
///
/// # Errors
/// If the bytes are no such state, or the state [refuses](StateVisitor::refuse) it. What was loaded until then remains.
pub fn load_state(state: &mut (impl State + ?Sized), bytes: &[u8]) -> Result<(), ForeignState> {
    let mut visitor = StateVisitor::new(Phase::Load(bytes), SimTime::ZERO);
    state.visit(&mut visitor);
    match visitor.phase {
        Phase::Load([]) if !visitor.is_refused => Ok(()),
        _ => Err(ForeignState),
    }
}

impl<'a> StateVisitor<'a> {
    fn new(phase: Phase<'a>, now: SimTime) -> Self {
        Self { phase, now, bases: BTreeMap::new(), is_refused: false }
    }

    /// Makes a visitor that observes states at an instant, for comparison.
    pub fn observing(now: SimTime) -> Self {
        Self::new(Phase::Observe(Observation::default()), now)
    }

    /// Returns what was observed; `None` where a state [cannot recur](Self::refuse).
    ///
    /// # Panics
    /// If the visitor does not observe.
    pub fn into_observation(self) -> Option<Observation> {
        let Phase::Observe(observation) = self.phase else { panic!("the visitor does not observe") };
        (!self.is_refused).then_some(observation)
    }

    /// Returns whether the visitor saves.
    #[inline]
    pub fn is_saving(&self) -> bool {
        matches!(self.phase, Phase::Save(_))
    }

    /// Returns whether the visitor loads.
    #[inline]
    pub fn is_loading(&self) -> bool {
        matches!(self.phase, Phase::Load(_))
    }

    /// Returns whether the visitor observes, for comparison: what makes no difference need not be shown.
    #[inline]
    pub fn is_observing(&self) -> bool {
        matches!(self.phase, Phase::Observe(_))
    }

    /// Returns whether the visitor repeats.
    #[inline]
    pub fn is_repeating(&self) -> bool {
        matches!(self.phase, Phase::Repeat(..))
    }

    /// Returns the present, while the visitor observes.
    #[inline]
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Says that the state cannot be saved, is not the one of the bytes that are loaded, or cannot recur.
    pub fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// Returns whether the state was [refused](Self::refuse) so far.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Visits a value that is the same in equal states, and after a repetition.
    #[inline]
    pub fn plain<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) {
        match &mut self.phase {
            Phase::Observe(observation) => observation.write(value),
            _ => self.saved(value),
        }
    }

    /// Visits a value that makes no difference, and is the same after a repetition.
    pub fn saved<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) {
        match &mut self.phase {
            Phase::Save(bytes) => {
                *bytes = postcard::to_extend(value, std::mem::take(bytes)).expect("a vector grows");
            }
            Phase::Load(bytes) => match postcard::take_from_bytes(bytes) {
                Ok((loaded, left)) => (*value, *bytes) = (loaded, left),
                Err(_) => (self.is_refused, *bytes) = (true, &[]),
            },
            Phase::Observe(_) | Phase::Repeat(..) => {}
        }
    }

    /// Saves or loads a whole value, whose parts are to be visited otherwise; returns whether it did.
    #[inline]
    pub fn saves_whole<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> bool {
        let is_whole = self.is_saving() || self.is_loading();
        if is_whole {
            self.saved(value);
        }
        is_whole
    }

    /// Visits the number of a variant, or of parts, which loading does not change.
    #[inline]
    pub fn variant(&mut self, number: u32) {
        self.plain(&mut { number });
    }

    /// Writes a value that follows from what is visited, where it says more than its parts do: it is compared only.
    #[inline]
    pub fn compare(&mut self, value: &impl Serialize) {
        if let Phase::Observe(observation) = &mut self.phase {
            observation.write(value);
        }
    }

    /// Visits parts whose number follows from the context.
    pub fn parts<'p, S: State + 'p>(&mut self, parts: impl ExactSizeIterator<Item = &'p mut S>) {
        self.context(parts.len());
        if !self.is_refused {
            parts.for_each(|part| part.visit(self));
        }
    }

    /// Visits a value that follows from the context: a state with another value is not one of this context.
    pub fn context<T: Copy + PartialEq + Serialize + DeserializeOwned>(&mut self, value: T) {
        let mut saved = value;
        self.saved(&mut saved);
        if saved != value {
            self.refuse();
        }
    }

    /// Visits an instant.
    #[inline]
    pub fn time(&mut self, at: &mut SimTime) {
        match &mut self.phase {
            // Any two instants have different differences modulo 2^64.
            Phase::Observe(observation) => {
                observation.word(at.as_picos().wrapping_sub(self.now.as_picos()));
            }
            Phase::Repeat(time, _) => *at = at.saturating_add(*time),
            Phase::Save(_) | Phase::Load(_) => self.saved(at),
        }
    }

    /// Visits an instant that makes no difference if it lies before `horizon`; returns whether it makes one.
    pub fn time_from(&mut self, horizon: SimTime, at: &mut SimTime) -> bool {
        let matters = *at >= horizon;
        if self.is_observing() {
            self.compare(&matters);
        }
        if matters || !self.is_observing() {
            self.time(at);
        }
        matters
    }

    /// Visits a number on a base: only differences between the numbers on one base matter. The first one that is shown is the base.
    pub fn number_on(&mut self, base: BaseName, number: &mut u32) {
        let first = self.first_on(base, *number);
        self.compare(&number.wrapping_sub(first));
        self.saved(number);
    }

    /// Returns the first number that was shown on a base; if there was none, it is this one. For numbers that are parts of others.
    pub fn first_on(&mut self, base: BaseName, number: u32) -> u32 {
        *self.bases.entry(base).or_insert(number)
    }

    /// Visits a number that [counts](Counter).
    #[inline]
    pub fn counter(&mut self, count: &mut u64) {
        match &mut self.phase {
            Phase::Observe(observation) => observation.count(*count),
            Phase::Repeat(_, repetition) => *count = repetition.next_counter(),
            Phase::Save(_) | Phase::Load(_) => self.saved(count),
        }
    }

    /// Visits a [total](Total).
    pub fn total<T: Total>(&mut self, total: &mut T) {
        match &mut self.phase {
            Phase::Observe(observation) => observation.add_total(total),
            Phase::Repeat(_, repetition) => *total = repetition.next_total(),
            Phase::Save(_) | Phase::Load(_) => self.saved(total),
        }
    }
}

impl State for SimTime {
    #[inline]
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.time(self);
    }
}

impl State for Counter {
    #[inline]
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.counter(&mut self.0);
    }
}

impl State for f64 {
    #[inline]
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        // Equal to the last bit.
        let mut bits = self.to_bits();
        visitor.plain(&mut bits);
        *self = Self::from_bits(bits);
    }
}

macro_rules! plain {
    ($($type:ty)*) => {
        $(impl State for $type {
            #[inline]
            fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
                visitor.plain(self);
            }
        })*
    };
}

plain!(() bool u8 u16 u32 u64 usize u128 i32 i64 String Box<str> Bytes LpId Rank SimDuration);

#[cfg(test)]
mod tests;
