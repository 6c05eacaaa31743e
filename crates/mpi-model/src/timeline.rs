//! Timeline of a replay: states, waits and messages of ranks, as a stream of events.

use std::fmt::Debug;
use std::ops::Range;

use pdes_core::{Bytes, Rank, SimTime};
use serde::{Deserialize, Serialize};
use trace_mmap::{CommId, LocationId};

use crate::statistics::ActionKind;
use crate::wait_state::WaitState;

/// Event of a timeline.
///
/// The states of a rank follow each other without gaps, from its start to its end. Calls that take no time are states, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A rank computes, sleeps, or is in an MPI call.
    State {
        /// The rank.
        rank: Rank,
        /// Kind of action.
        kind: ActionKind,
        /// Call site or region; `None` before the first one.
        site: Option<LocationId>,
        /// Begin.
        begin: SimTime,
        /// End; not before `begin`.
        end: SimTime,
    },
    /// Within a state, a rank waits for another rank that is not there.
    Wait {
        /// The rank.
        rank: Rank,
        /// Kind of the action that waits.
        kind: ActionKind,
        /// Wait state.
        state: WaitState,
        /// Call site or region of the action.
        site: Option<LocationId>,
        /// Begin.
        begin: SimTime,
        /// End; after `begin`.
        end: SimTime,
    },
    /// A received message.
    Message {
        /// The sender.
        from: Rank,
        /// The receiver.
        to: Rank,
        /// Time at which the send was posted.
        sent: SimTime,
        /// Arrival of the last byte; perhaps before the receive was posted.
        arrived: SimTime,
        /// Payload \[B\].
        bytes: Bytes,
        /// Tag; in a collective operation, the number of the operation on its communicator, modulo 2^24.
        tag: u32,
        /// Communicator.
        communicator: CommId,
        /// Collective operation to which the message belongs, if any.
        operation: Option<ActionKind>,
    },
}

/// Part of a replay that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Simulated time. States and waits are cut at its ends; messages that are in flight within it are recorded whole.
    pub window: Range<SimTime>,
    /// Ranks. A message is recorded if at least one end is among them.
    pub ranks: Range<u32>,
    /// Records the messages inside collective operations, too.
    pub operations: bool,
}

/// Everything but the messages of collective operations.
impl Default for Excerpt {
    fn default() -> Self {
        Self { window: SimTime::ZERO..SimTime::MAX, ranks: 0..u32::MAX, operations: false }
    }
}

impl Excerpt {
    /// Returns whether states of a rank are recorded.
    pub fn includes(&self, rank: Rank) -> bool {
        self.ranks.contains(&rank.get())
    }

    /// Returns the part of the span from `begin` to `end` within the window, if any. An empty span counts as inside from the start
    /// of the window up to, but without, its end.
    #[inline]
    pub fn clip(&self, begin: SimTime, end: SimTime) -> Option<(SimTime, SimTime)> {
        let Range { start, end: stop } = self.window;
        let is_in = begin < stop && (end > start || begin >= start);
        is_in.then(|| (begin.max(start), end.min(stop)))
    }
}

/// Consumer of the events of all ranks of a process of the operating system, called from all its threads.
pub trait EventSink: Debug + Sync {
    /// Consumes some events of one rank. Their order is unspecified; the set of events of a whole replay is the same in every
    /// run.
    fn record(&self, events: &[Event]);

    /// Drops all events: the replay begins anew, in another mode of execution. A sink that is made for each attempt has none.
    fn begin_anew(&self) {}
}

/// Recording of a timeline: what is recorded, and its consumer.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'t> {
    /// Part that is recorded.
    pub excerpt: &'t Excerpt,
    /// Consumer of the events.
    pub sink: &'t dyn EventSink,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_clipped_to_the_window() {
        let at = SimTime::from_picos;
        let excerpt = Excerpt { window: at(10)..at(20), ..Excerpt::default() };
        let cut = |begin, end| {
            excerpt.clip(at(begin), at(end)).map(|(begin, end)| (begin.as_picos(), end.as_picos()))
        };
        assert_eq!(cut(5, 30), Some((10, 20)));
        assert_eq!(cut(12, 15), Some((12, 15)));
        assert_eq!([cut(5, 10), cut(20, 25), cut(9, 9), cut(20, 20)], [None; 4]);
        assert_eq!(cut(10, 10), Some((10, 10)));
        assert_eq!(Excerpt::default().clip(at(0), at(0)), Some((at(0), at(0))));
    }
}
