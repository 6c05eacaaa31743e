//! What operations have in common in which rank 0 serves the others as they arrive.
//!
//! The others announce themselves to rank 0, which looks for announcements and serves those that it finds in rounds. A
//! header tells the members of a round in what order they stand, which is that of their numbers. Its size is SimGrid's, or
//! 4 bytes for each rank where more are needed. What it says reaches them beside it ([`Step::Learn`]), so that each knows
//! beforehand from whom its header comes; none of them does anything else before it has the header itself.

mod asking;
mod conversation;
mod sweeping;

use pdes_core::{Bytes, Rank};

use super::{Member, Step};

pub(super) use asking::{Ask, serve_after_asking};
pub(super) use conversation::learn;
pub(super) use sweeping::{Sweep, serve_after_sweeping};

/// The size of a header with room for so many numbers.
pub(super) fn header(room: u32, member: Member<'_>) -> Bytes {
    Bytes::new(4 * u64::from(room.max(member.size)))
}

/// The step of a member that is there.
pub(super) fn announce() -> Step {
    Step::Announce { to: Rank::new(0) }
}

/// A member of a round, as a link of a chain of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) before: Option<u32>,
    pub(super) after: Option<u32>,
}

impl Link {
    /// What a member knows that has learned who stands before and behind it in the ring of the round.
    pub(super) fn new(rank: u32, [before, after]: [u32; 2]) -> Self {
        Self { before: (before < rank).then_some(before), after: (after > rank).then_some(after) }
    }
}

/// Lets each member of a round know who stands before it and behind it.
fn assign(round: &[u32]) -> impl Iterator<Item = Step> + Send + use<> {
    let steps: Vec<Step> = (0..round.len())
        .map(|place| {
            let [before, after] =
                [place + round.len() - 1, place + 1].map(|other| round[other % round.len()]);
            Step::Assign { to: Rank::new(round[place]), numbers: [before, after] }
        })
        .collect();
    steps.into_iter()
}

fn look(from: u32) -> Step {
    Step::Look { from: Rank::new(from) }
}

fn greet(from: u32) -> Step {
    Step::Greet { from: Rank::new(from) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_a_chain_from_its_lowest_member_to_its_highest() {
        let link = |step| match step {
            Step::Assign { to, numbers } => Link::new(to.get(), numbers),
            other => panic!("{other:?}"),
        };
        let links: Vec<Link> = assign(&[2, 5, 7]).map(link).collect();
        let expected = [(None, Some(5)), (Some(2), Some(7)), (Some(5), None)];
        assert_eq!(links, expected.map(|(before, after)| Link { before, after }));
        assert_eq!(assign(&[3]).map(link).next(), Some(Link { before: None, after: None }));
    }
}
