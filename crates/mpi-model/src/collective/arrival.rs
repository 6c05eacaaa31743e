//! Arrival-pattern-aware operations, in which rank 0 serves the others in rounds as they arrive.
//!
//! The others announce themselves to rank 0, which polls for announcements and serves those that it finds in rounds
//! (STAR-MPI). A header gives the members of a round their order, which is that of their ranks. Its size is SimGrid's, or 4
//! bytes per rank if more are needed. Its contents reach them out of band ([`Step::RecvOutOfBand`]), so that each member
//! knows the source of its header beforehand; it does nothing else until the header itself has arrived.

mod polling;
mod reactive;
mod sweeping;

use pdes_core::{Bytes, Rank};

use super::{Member, Step};

pub(super) use polling::{PollStrategy, serve_after_polls};
pub(super) use reactive::with_received_numbers;
pub(super) use sweeping::{SweepStrategy, serve_after_sweeps};

/// Returns the size of a header with room for this many numbers.
pub(super) fn header(room: u32, member: Member<'_>) -> Bytes {
    Bytes::new(4 * u64::from(room.max(member.size)))
}

/// Returns the step by which a member announces its arrival.
pub(super) fn announce() -> Step {
    Step::SendAnnouncement { to: Rank::new(0) }
}

/// Neighbours of a member in the chain of its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChainLink {
    pub(super) previous: Option<u32>,
    pub(super) next: Option<u32>,
}

impl ChainLink {
    /// Returns the neighbours in the chain from those in the ring of the round: the ring closes between the highest and the
    /// lowest rank.
    pub(super) fn new(rank: u32, [before, after]: [u32; 2]) -> Self {
        Self { previous: (before < rank).then_some(before), next: (after > rank).then_some(after) }
    }
}

/// Returns the steps that send each member of a round its neighbours in the ring of the round.
fn send_ring_neighbours(round: &[u32]) -> impl Iterator<Item = Step> + Send + use<> {
    let steps: Vec<Step> = (0..round.len())
        .map(|place| {
            let [before, after] =
                [place + round.len() - 1, place + 1].map(|other| round[other % round.len()]);
            Step::SendOutOfBand { to: Rank::new(round[place]), numbers: [before, after] }
        })
        .collect();
    steps.into_iter()
}

fn poll_announcement(from: u32) -> Step {
    Step::PollAnnouncement { from: Rank::new(from) }
}

fn recv_announcement(from: u32) -> Step {
    Step::RecvAnnouncement { from: Rank::new(from) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_a_chain_from_its_lowest_member_to_its_highest() {
        let link = |step| match step {
            Step::SendOutOfBand { to, numbers } => ChainLink::new(to.get(), numbers),
            other => panic!("{other:?}"),
        };
        let links: Vec<ChainLink> = send_ring_neighbours(&[2, 5, 7]).map(link).collect();
        let expected = [(None, Some(5)), (Some(2), Some(7)), (Some(5), None)];
        assert_eq!(links, expected.map(|(previous, next)| ChainLink { previous, next }));
        assert_eq!(
            send_ring_neighbours(&[3]).map(link).next(),
            Some(ChainLink { previous: None, next: None })
        );
    }
}
