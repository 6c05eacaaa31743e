//! Causes of waiting: actions of a rank before others have to wait for it.

use pdes_core::{Rank, SimDuration};
use serde::{Deserialize, Serialize};
use trace_mmap::LocationId;

use crate::statistics::ActionKind;

/// Cause of the lateness of a rank: actions of one kind at one call site, of that rank or of another one that it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cause {
    rank: Rank,
    /// Kind of action, and above it one more than the call site, or 0; [`UNKNOWN`] where nothing is known.
    place: u32,
}

/// Number of bits for the kind.
const KIND_BITS: u32 = 6;
/// Place of an unknown cause: the kind is none.
const UNKNOWN: u32 = (1 << KIND_BITS) - 1;

const _: () = assert!(ActionKind::ALL.len() < UNKNOWN as usize);

/// Unknown.
impl Default for Cause {
    fn default() -> Self {
        Self { rank: Rank::new(0), place: UNKNOWN }
    }
}

impl Cause {
    /// No cause, of a message that was sent before the checkpoint from which its program goes on: it has arrived.
    pub(crate) const REPEATED: Self = Self { rank: Rank::new(0), place: UNKNOWN | 1 << KIND_BITS };

    pub(crate) fn of_place(rank: Rank, site: Option<LocationId>, kind: ActionKind) -> Self {
        let number = site.map_or(0, |site| site.get().saturating_add(1));
        let place = number.checked_mul(1 << KIND_BITS).map(|site| site | kind as u32);
        place.map_or(Self::default(), |place| Self { rank, place })
    }

    /// Returns the rank, its call site (`None` before the first one) and the kind of action; `None` where they are unknown.
    pub fn place(self) -> Option<(Rank, Option<LocationId>, ActionKind)> {
        let kind = ActionKind::from_number(self.place & UNKNOWN)?;
        Some((self.rank, (self.place >> KIND_BITS).checked_sub(1).map(LocationId::new), kind))
    }
}

/// Longest activity of a rank, each blocking call halving the weight of those before it: whoever waits for the rank now, waits for
/// what it did lately. Waiting for a rank that is late is an activity whose cause is that of the other rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Activity {
    rank: Rank,
    site: Option<LocationId>,
    pub(crate) cause: Cause,
    weight: SimDuration,
    /// Waiting in the action in progress.
    waited: SimDuration,
}

impl Activity {
    pub(crate) fn of_rank(rank: Rank) -> Self {
        let (weight, waited) = (SimDuration::ZERO, SimDuration::ZERO);
        Self { rank, site: None, cause: Cause::default(), weight, waited }
    }

    pub(crate) fn enter(&mut self, site: LocationId) {
        self.site = Some(site);
    }

    /// Adds a wait of the program for a rank that was late by something.
    #[inline]
    pub(crate) fn wait(&mut self, waiting: SimDuration, cause: Cause) {
        self.waited += waiting;
        if waiting > SimDuration::ZERO && waiting >= self.weight {
            (self.cause, self.weight) = (cause, waiting);
        }
    }

    /// Ends an action of the program.
    #[inline]
    pub(crate) fn end(&mut self, kind: ActionKind, time: SimDuration) {
        use ActionKind::{
            Cancel, Compute, FileReadStart, FileWriteStart, Iprobe, Irecv, Isend, Marker, NonBlocking, Send,
            Sleep, Start, Test,
        };
        let own = SimDuration::from_picos(time.as_picos() - self.waited.as_picos());
        self.waited = SimDuration::ZERO;
        let goes_on = matches!(
            kind,
            Compute
                | Sleep
                | Send
                | Isend
                | Irecv
                | Test
                | Iprobe
                | Start
                | Cancel
                | NonBlocking
                | FileReadStart
                | FileWriteStart
                | Marker
        );
        if !goes_on {
            self.weight = SimDuration::from_picos(self.weight.as_picos() / 2);
        }
        if own > SimDuration::ZERO && own >= self.weight {
            (self.cause, self.weight) = (Cause::of_place(self.rank, self.site, kind), own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Rank = Rank::new(3);

    fn picos(picos: u64) -> SimDuration {
        SimDuration::from_picos(picos)
    }

    #[test]
    fn places_come_back() {
        for site in [None, Some(LocationId::new(0)), Some(LocationId::new((1 << 26) - 2))] {
            for kind in ActionKind::ALL {
                assert_eq!(Cause::of_place(ME, site, kind).place(), Some((ME, site, kind)));
            }
        }
        assert_eq!(Cause::of_place(ME, Some(LocationId::new(u32::MAX)), ActionKind::Send).place(), None);
        assert_eq!([Cause::default().place(), Cause::REPEATED.place()], [None; 2]);
        assert_ne!(Cause::default(), Cause::REPEATED);
    }

    #[test]
    fn the_longest_activity_of_late_counts() {
        let mut activity = Activity::of_rank(ME);
        let kind = |activity: &Activity| activity.cause.place().map(|(_, _, kind)| kind);
        assert_eq!(kind(&activity), None);
        activity.end(ActionKind::Compute, picos(100));
        activity.end(ActionKind::SendRecv, picos(20));
        activity.end(ActionKind::Sleep, picos(30));
        assert_eq!(kind(&activity), Some(ActionKind::Compute), "50 of 100 are left");
        activity.end(ActionKind::Recv, picos(0));
        activity.end(ActionKind::Sleep, picos(30));
        assert_eq!(kind(&activity), Some(ActionKind::Sleep), "25 of 100 are left");
        let late = Cause::of_place(Rank::new(7), None, ActionKind::Compute);
        activity.wait(picos(40), late);
        activity.end(ActionKind::Recv, picos(50));
        assert_eq!(
            (activity.cause, activity.weight),
            (late, picos(20)),
            "the wait, and not the transfer of 10"
        );
    }
}
