//! The machine on which a program runs, as the MPI library sees it.

use pdes_core::{Bytes, Rank, SimDuration};

use crate::notice::Notice;

/// What computing and sending cost.
///
/// A machine without contention answers at once, by [`transfer`](Machine::transfer) and [`speed`](Machine::speed). One
/// whose links or cores are shared answers in the order of time: [`order`](Machine::order) makes orders for the
/// [`Arbiter`](pdes_core::Arbiter) that stands for it, which says by [`Notice::give`] when they are carried out.
///
/// # Laws
/// All answers depend on the arguments alone. A machine that makes an order of some work makes one of all work of this
/// kind.
pub trait Machine: Sync {
    /// What is known of the way between two ranks, looked up once and used for every message.
    type Path: Copy + Send;
    /// What the machine does in the order of time; [`Infallible`](std::convert::Infallible) where that is nothing.
    type Order: Copy + Send;
    /// Why there is no way.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Looks up the way from one rank to another, which may be itself.
    ///
    /// # Errors
    /// Where there is none.
    fn path(&self, from: Rank, to: Rank) -> Result<Self::Path, Self::Error>;

    /// Makes an order of some work, which begins when the order is filed; `None` where the cost of the work is known
    /// without, which is the default.
    #[inline]
    fn order(&self, work: Work<Self::Path>, notice: Notice) -> Option<Self::Order> {
        let _ = (work, notice);
        None
    }

    /// Returns whether nobody else uses the core on which a rank computes, and nothing else that happens bears on when it is done: then
    /// the rank goes on at once, ahead of what is in progress, and mostly makes no order of a computation. By default it does not.
    #[inline]
    fn computes_alone(&self, rank: Rank) -> bool {
        let _ = rank;
        false
    }

    /// Returns the time from the moment when both sides are ready to the arrival of the last byte, or `None` where
    /// that is more than a [`SimDuration`] holds.
    ///
    /// `bytes` includes the envelope. Called for every message of which no order is made, and for those of collective
    /// operations in closed form, which share their way with no other.
    fn transfer(&self, path: Self::Path, bytes: Bytes) -> Option<SimDuration>;

    /// Says what a message takes alone on its way, in its parts; what is too long for a [`SimDuration`] is the longest one. By
    /// default, the latency is what a message of no bytes takes.
    fn alone(&self, path: Self::Path, bytes: Bytes) -> Passage {
        Passage::new(self.transfer(path, bytes), self.transfer(path, Bytes::ZERO))
    }

    /// Returns how fast a rank computes [flop/s], where no order is made of it.
    fn speed(&self, rank: Rank) -> f64;

    /// Returns a number that tells the rank's node, with which some collective algorithms reckon, from the others.
    fn node(&self, rank: Rank) -> u32;
}

/// What a message takes alone on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// The part that does not depend on bandwidths.
    pub latency: SimDuration,
    /// The rest.
    pub bandwidth: SimDuration,
}

impl Passage {
    /// Cuts a time in two; a latency beyond the whole is the whole. `None` stands for more than a [`SimDuration`] holds.
    pub fn new(all: Option<SimDuration>, latency: Option<SimDuration>) -> Self {
        let longest = SimDuration::from_picos(u64::MAX);
        let all = all.unwrap_or(longest);
        let latency = latency.unwrap_or(longest).min(all);
        Self { latency, bandwidth: SimDuration::from_picos(all.as_picos() - latency.as_picos()) }
    }
}

/// What ranks have a machine do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work<Path> {
    /// Moves a message.
    Transfer {
        /// The way.
        path: Path,
        /// The size on the wire, the envelope included.
        bytes: Bytes,
    },
    /// Computes on a core of the rank's host.
    Compute {
        /// The rank.
        rank: Rank,
        /// How many floating-point operations.
        flops: f64,
    },
    /// Lets time pass.
    Sleep {
        /// How much.
        duration: SimDuration,
    },
}
