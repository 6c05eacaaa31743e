//! Interrupts: requests from another thread to end a run early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::SimTime;

/// A request to end runs where they are, so that later runs can continue from there; clones share the request.
///
/// The state of each process at the end of an interrupted run depends on the wall clock; the final result does not.
///
/// ```
/// let interrupt = pdes_core::Interrupt::default();
/// let engine = pdes_core::Engine::new(1).interrupted_by(interrupt.clone());
/// interrupt.request();
/// assert!(interrupt.is_requested());
/// # let _ = engine;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    is_requested: Arc<AtomicBool>,
    before: Option<SimTime>,
}

// Relaxed throughout: only the flag itself is communicated.
impl Interrupt {
    /// Requests the end of the present run, and of later ones, each of which makes some progress.
    pub fn request(&self) {
        self.is_requested.store(true, Ordering::Relaxed);
    }

    /// Requests the end of runs before their first event at or after an instant of simulated time, too. Only an
    /// [`OrderedEngine`](crate::OrderedEngine) heeds it.
    pub fn before(self, instant: SimTime) -> Self {
        Self { before: Some(instant), ..self }
    }

    /// Returns the last instant at which runs have events.
    pub(crate) fn last_event(&self) -> SimTime {
        let last = |before: SimTime| SimTime::from_picos(before.as_picos().saturating_sub(1));
        self.before.map_or(SimTime::MAX, last)
    }

    /// Withdraws the request.
    pub fn clear(&self) {
        self.is_requested.store(false, Ordering::Relaxed);
    }

    /// Returns true if runs are requested to end.
    pub fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Relaxed)
    }
}
