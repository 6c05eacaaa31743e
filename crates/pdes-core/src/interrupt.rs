//! Asking a run from outside to end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks runs to end where they are, so that other runs can go on from there; clones ask the same ones.
///
/// When the request comes, and where each process is then, depends on the wall clock; what comes out in the end does not.
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

// Relaxed in all of this: nothing but the request itself is communicated.
impl Interrupt {
    /// Asks for the end of the present run, and of those that begin later, each of which comes a little further.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes the request back.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Returns whether runs are asked to end.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
