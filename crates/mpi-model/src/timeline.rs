//! What ranks do when: states, waits and messages, as they come to pass.

use std::fmt::Debug;
use std::ops::Range;

use pdes_core::{Bytes, Rank, SimTime};
use trace_mmap::CommId;

use crate::statistics::ActionKind;
use crate::wait_state::WaitState;

/// Something that a timeline shows.
///
/// The states of a rank follow each other without gaps, from the start of its time to its end. Calls that take no time are states, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A rank computes, sleeps, or is in an MPI call.
    State {
        /// The rank.
        rank: Rank,
        /// What it does.
        kind: ActionKind,
        /// When it begins to.
        begin: SimTime,
        /// When that is over; not before `begin`.
        end: SimTime,
    },
    /// In a state, a rank waits for another rank that is not there.
    Wait {
        /// The rank.
        rank: Rank,
        /// What it does meanwhile.
        kind: ActionKind,
        /// Why it waits.
        state: WaitState,
        /// When it begins to.
        begin: SimTime,
        /// When that is over; after `begin`.
        end: SimTime,
    },
    /// A message that is received.
    Message {
        /// The sender.
        from: Rank,
        /// The receiver.
        to: Rank,
        /// When the sender was ready.
        sent: SimTime,
        /// When the last byte arrived; perhaps before the receive was posted.
        arrived: SimTime,
        /// The payload.
        bytes: Bytes,
        /// The tag; of a message of a collective operation, the number of that on its communicator, modulo 2^24.
        tag: u32,
        /// The communicator.
        communicator: CommId,
        /// The collective operation of which the message is a part, if it is of one.
        operation: Option<ActionKind>,
    },
}

/// What of a replay is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Simulated time. States and waits are cut at its ends; messages are whole, where they are under way in it.
    pub window: Range<SimTime>,
    /// Ranks. Of messages one end at least is one of them.
    pub ranks: Range<u32>,
    /// Whether messages inside collective operations are recorded.
    pub operations: bool,
}

/// All but the messages of collective operations.
impl Default for Excerpt {
    fn default() -> Self {
        Self { window: SimTime::ZERO..SimTime::MAX, ranks: 0..u32::MAX, operations: false }
    }
}

impl Excerpt {
    /// Returns whether states of a rank are recorded.
    pub fn has(&self, rank: Rank) -> bool {
        self.ranks.contains(&rank.get())
    }

    /// Returns the part in the window of what lasts from `begin` to `end`, if there is one. What takes no time is in the
    /// window from its start up to, but without, its end.
    #[inline]
    pub fn cut(&self, begin: SimTime, end: SimTime) -> Option<(SimTime, SimTime)> {
        let Range { start, end: stop } = self.window;
        let is_in = begin < stop && (end > start || begin >= start);
        is_in.then(|| (begin.max(start), end.min(stop)))
    }
}

/// Takes events in from all ranks of a process of the operating system, on all its threads.
pub trait EventSink: Debug + Sync {
    /// Takes in events of one rank. They come in no particular order; which ones come, over a whole replay, is the same
    /// in each.
    fn take(&self, events: &[Event]);
}

/// What is recorded, and who takes it.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'t> {
    /// What is recorded.
    pub excerpt: &'t Excerpt,
    /// Who takes it.
    pub sink: &'t dyn EventSink,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_cut_off() {
        let at = SimTime::from_picos;
        let excerpt = Excerpt { window: at(10)..at(20), ..Excerpt::default() };
        let cut = |begin, end| {
            excerpt.cut(at(begin), at(end)).map(|(begin, end)| (begin.as_picos(), end.as_picos()))
        };
        assert_eq!(cut(5, 30), Some((10, 20)));
        assert_eq!(cut(12, 15), Some((12, 15)));
        assert_eq!([cut(5, 10), cut(20, 25), cut(9, 9), cut(20, 20)], [None; 4]);
        assert_eq!(cut(10, 10), Some((10, 10)));
        assert_eq!(Excerpt::default().cut(at(0), at(0)), Some((at(0), at(0))));
    }
}
