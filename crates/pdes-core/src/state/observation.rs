//! Observed states, and what repeats between two of them.

use std::any::Any;
use std::fmt::Debug;
use std::vec;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Phase, State, StateVisitor};
use crate::{SimDuration, SimTime};

/// A compound of sums that grow and make no difference.
pub trait Total: Any + Clone + Debug + Send + Sync + Serialize + DeserializeOwned {
    /// Returns the sums after `times` more repetitions of their growth since `before`; `None` where one overflows.
    #[must_use]
    fn repeated(&self, before: &Self, times: u64) -> Option<Self>;
}

/// A total of some type.
trait AnyTotal: Any + Debug + Send + Sync {
    fn repeated(&self, before: &dyn AnyTotal, times: u64) -> Option<Box<dyn AnyTotal>>;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Total> AnyTotal for T {
    fn repeated(&self, before: &dyn AnyTotal, times: u64) -> Option<Box<dyn AnyTotal>> {
        let before = before.as_any().downcast_ref()?;
        Some(Box::new(Total::repeated(self, before, times)?))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A state as it was observed: canonical bytes, relative to the present, and all counters and totals.
#[derive(Debug, Default)]
pub struct Observation {
    bytes: Vec<u8>,
    counters: Vec<u64>,
    totals: Vec<Box<dyn AnyTotal>>,
}

/// The counters and totals after a repetition, in the order in which they are visited.
#[derive(Debug)]
pub struct Repetition {
    counters: vec::IntoIter<u64>,
    totals: vec::IntoIter<Box<dyn AnyTotal>>,
}

impl Observation {
    /// Observes a state that can recur.
    ///
    /// # Panics
    /// If it [cannot](StateVisitor::refuse).
    pub fn of(now: SimTime, state: &mut (impl State + ?Sized)) -> Self {
        let mut visitor = StateVisitor::observing(now);
        state.visit(&mut visitor);
        visitor.into_observation().expect("the state can recur")
    }

    /// Returns the canonical bytes: equal bytes mean that everything happens again, later by the time between the observations.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns whether two states have the same future.
    pub fn equals(&self, other: &Self) -> bool {
        self.bytes == other.bytes
            && self.counters.len() == other.counters.len()
            && self.totals.len() == other.totals.len()
    }

    /// Returns the counters and totals after `times` more repetitions of what has happened since an [equal](Self::equals) state; `None`
    /// where one overflows.
    pub fn repetition(&self, before: &Self, times: u64) -> Option<Repetition> {
        let counter = |(now, before): (&u64, &u64)| {
            let growth = now.checked_sub(*before)?.checked_mul(times)?;
            now.checked_add(growth)
        };
        let counters: Option<Vec<u64>> = self.counters.iter().zip(&before.counters).map(counter).collect();
        let totals = self.totals.iter().zip(&before.totals);
        let totals: Option<Vec<_>> =
            totals.map(|(now, before)| AnyTotal::repeated(&**now, &**before, times)).collect();
        Some(Repetition { counters: counters?.into_iter(), totals: totals?.into_iter() })
    }

    #[inline]
    pub(super) fn word(&mut self, word: u64) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    #[inline]
    pub(super) fn write(&mut self, value: &impl Serialize) {
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(value, bytes).expect("a vector grows");
    }

    #[inline]
    pub(super) fn count(&mut self, counter: u64) {
        self.counters.push(counter);
    }

    pub(super) fn add_total(&mut self, total: &impl Total) {
        self.totals.push(Box::new(total.clone()));
    }
}

impl Repetition {
    /// Repeats: shifts all instants of a state by `time`, the duration of all repetitions, and replaces its counters and totals. The
    /// state is the one that was observed last.
    ///
    /// # Panics
    /// If it is another one.
    pub fn repeat(self, time: SimDuration, state: &mut (impl State + ?Sized)) {
        let mut visitor = StateVisitor::new(Phase::Repeat(time, self), SimTime::ZERO);
        state.visit(&mut visitor);
        let Phase::Repeat(_, Self { counters, totals }) = visitor.phase else {
            unreachable!("a visitor has one phase")
        };
        assert!(counters.len() == 0 && totals.len() == 0, "the state is the one that was observed");
    }

    pub(super) fn next_counter(&mut self) -> u64 {
        self.counters.next().expect("the state is the one that was observed")
    }

    pub(super) fn next_total<T: Total>(&mut self) -> T {
        let total = self.totals.next().and_then(|total| total.into_any().downcast().ok());
        *total.expect("the state is the one that was observed")
    }
}
