//! The machine on which a program runs, as the MPI library sees it.

use pdes_core::{Bytes, Rank, SimDuration};

/// What computing and sending cost.
///
/// # Laws
/// All answers depend on the arguments alone.
pub trait Machine: Sync {
    /// What is known of the way between two ranks, looked up once and used for every message.
    type Path: Copy + Send;
    /// Why there is no way.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Looks up the way from one rank to another, which may be itself.
    ///
    /// # Errors
    /// Where there is none.
    fn path(&self, from: Rank, to: Rank) -> Result<Self::Path, Self::Error>;

    /// Returns the time from the moment when both sides are ready to the arrival of the last byte, or `None` where
    /// that is more than a [`SimDuration`] holds.
    ///
    /// `bytes` includes the envelope. Called for every message.
    fn transfer(&self, path: Self::Path, bytes: Bytes) -> Option<SimDuration>;

    /// Returns how fast a rank computes [flop/s].
    fn speed(&self, rank: Rank) -> f64;
}
