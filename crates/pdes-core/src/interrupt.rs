//! Interrupts: requests from another thread to end a run early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
pub struct Interrupt(Arc<AtomicBool>);

// Relaxed throughout: only the flag itself is communicated.
impl Interrupt {
    /// Requests the end of the present run, and of later ones, each of which makes some progress.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Withdraws the request.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Returns true if runs are requested to end.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
