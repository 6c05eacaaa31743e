//! A rank whose operations overlap has one state at each instant.

use pdes_core::SimTime;
use serde::{Deserialize, Serialize};

use crate::observer::{ActionSpan, Peer};
use crate::statistics::ActionKind;

/// Work of the operations of a rank, and the messages for which it may have waited, in any order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Activity {
    work: Vec<ActionSpan>,
    arrivals: Vec<(SimTime, Peer)>,
}

/// Kinds of work. Where several are in progress, the first one is the state of the rank; where none is, it waits.
const KINDS: [ActionKind; 3] = [ActionKind::Compute, ActionKind::Isend, ActionKind::Irecv];

impl Activity {
    /// Adds work of an operation.
    pub(super) fn add_work(&mut self, span: ActionSpan) {
        let ActionSpan { kind, begin, end } = span;
        match self.work.last_mut() {
            _ if begin == end => {}
            Some(last) if last.kind == kind && (last.begin..=last.end).contains(&begin) => {
                last.end = last.end.max(end);
            }
            _ => self.work.push(span),
        }
    }

    /// Adds the completion of a message, with the other side.
    pub(super) fn add_arrival(&mut self, at: SimTime, peer: Peer) {
        self.arrivals.push((at, peer));
    }

    /// Returns whether all work lies before the end of a rank, and is of a known kind.
    pub(super) fn is_valid(&self, end: SimTime) -> bool {
        self.work.iter().all(|span| span.begin < span.end && span.end <= end && KINDS.contains(&span.kind))
    }

    /// Returns the states of the rank from `begin` to `end`, which follow each other without gaps. `O(n log n)`.
    pub(super) fn states(&self, begin: SimTime, end: SimTime) -> Vec<ActionSpan> {
        let number = |kind| KINDS.iter().position(|known| *known == kind).expect("work is of a known kind");
        let changes = self.work.iter().flat_map(|&ActionSpan { kind, begin, end }| {
            [(begin, true, number(kind)), (end, false, number(kind))]
        });
        let mut changes: Vec<(SimTime, bool, usize)> = changes.collect();
        changes.sort_unstable();
        let mut in_progress = [0_u32; KINDS.len()];
        let (mut states, mut begin) = (Vec::<ActionSpan>::new(), begin);
        for (at, begins, number) in changes.into_iter().chain([(end, true, 0)]) {
            let first = in_progress.iter().position(|count| *count > 0);
            let kind = first.map_or(ActionKind::Waitall, |number| KINDS[number]);
            match states.last_mut() {
                _ if begin == at => {}
                Some(last) if last.kind == kind => last.end = at,
                _ => states.push(ActionSpan { kind, begin, end: at }),
            }
            begin = at;
            if begins {
                in_progress[number] += 1;
            } else {
                in_progress[number] -= 1;
            }
        }
        states
    }

    /// Calls a function with the begin and the end of each wait in these states, and the message that ended it: the next one to be complete.
    pub(super) fn for_each_wait(
        &mut self,
        states: &[ActionSpan],
        mut wait: impl FnMut(SimTime, SimTime, Peer),
    ) {
        self.arrivals.sort_unstable();
        let mut arrivals = self.arrivals.iter().copied().peekable();
        for &ActionSpan { mut begin, end, .. } in
            states.iter().filter(|state| state.kind == ActionKind::Waitall)
        {
            while let Some((at, peer)) = arrivals.next_if(|(at, _)| *at <= end) {
                // Of several at one instant, the one whose other side was ready last.
                let is_last = arrivals.peek().is_none_or(|(next, _)| *next > at);
                if at > begin && is_last {
                    wait(begin, at, Peer { ready: peer.ready.max(begin).min(at), ..peer });
                    begin = at;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(picos: u64) -> SimTime {
        SimTime::from_picos(picos)
    }

    fn span(kind: ActionKind, begin: u64, end: u64) -> ActionSpan {
        ActionSpan { kind, begin: at(begin), end: at(end) }
    }

    #[test]
    fn a_rank_has_one_state_at_each_instant() {
        use ActionKind::{Compute, Irecv, Isend, Waitall};
        let mut activity = Activity::default();
        for work in [(Isend, 45, 60), (Compute, 10, 30), (Compute, 20, 50), (Irecv, 5, 12), (Irecv, 80, 80)] {
            activity.add_work(span(work.0, work.1, work.2));
        }
        let states = activity.states(SimTime::ZERO, at(90));
        let found: Vec<_> =
            states.iter().map(|span| (span.kind, span.begin.as_picos(), span.end.as_picos())).collect();
        let expected =
            [(Waitall, 0, 5), (Irecv, 5, 10), (Compute, 10, 50), (Isend, 50, 60), (Waitall, 60, 90)];
        assert_eq!(found, expected);
        assert!(activity.is_valid(at(60)) && !activity.is_valid(at(59)));
        let peer = |ready| Peer { ready: at(ready), ..Peer::default() };
        for (arrival, ready) in [(90, 85), (90, 88), (70, 1), (5, 3), (40, 39)] {
            activity.add_arrival(at(arrival), peer(ready));
        }
        let mut waits = Vec::new();
        activity.for_each_wait(&states, |begin, end, peer| {
            waits.push([begin, end, peer.ready].map(SimTime::as_picos));
        });
        assert_eq!(waits, [[0, 5, 3], [60, 70, 60], [70, 90, 88]]);
    }
}
