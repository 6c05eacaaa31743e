//! Comparison of the communicators of all ranks.

use std::collections::BTreeMap;
use std::sync::Arc;

use pdes_core::Rank;

use crate::builder::LinkableRank;
use crate::communicator::{CommId, Group};

/// Ranks disagree about a communicator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommunicatorConflict {
    /// Two ranks list different members.
    #[error(
        "communicator {id} has other members on rank {second} than on rank {first}: all ranks that name it must list the same ones in the same order"
    )]
    Members {
        /// The communicator.
        id: CommId,
        /// The first rank that creates it.
        first: Rank,
        /// The first rank that creates it with other members.
        second: Rank,
    },
    /// A member never creates the communicator.
    #[error("rank {member} is in communicator {id}, as rank {rank} says, but never makes it")]
    NotCreated {
        /// The communicator.
        id: CommId,
        /// A rank that creates it.
        rank: Rank,
        /// A member that does not.
        member: Rank,
    },
}

/// A communicator as created by its first rank, and the number of ranks that create it.
struct CommunicatorDefinition {
    first: Rank,
    group: Arc<Group>,
    ranks: u32,
}

/// Checks that all members of each communicator create it with the same group, and shares the group among them in memory.
pub(super) fn check_communicators(ranks: &mut [LinkableRank]) -> Result<(), CommunicatorConflict> {
    let mut made: BTreeMap<CommId, CommunicatorDefinition> = BTreeMap::new();
    for (rank, linkable) in (0..).map(Rank::new).zip(ranks.iter_mut()) {
        for communicator in &mut *linkable.trace.communicators {
            let id = communicator.id;
            let known = made.entry(id).or_insert_with(|| CommunicatorDefinition {
                first: rank,
                group: Arc::clone(&communicator.group),
                ranks: 0,
            });
            if known.group != communicator.group {
                return Err(CommunicatorConflict::Members { id, first: known.first, second: rank });
            }
            communicator.group = Arc::clone(&known.group);
            known.ranks += 1;
        }
    }
    match made.iter().find(|(_, made)| made.ranks != made.group.len()) {
        Some((&id, CommunicatorDefinition { first, group, .. })) => {
            let makes =
                |rank: &Rank| ranks[rank.index()].trace.communicators.iter().any(|made| made.id == id);
            let member = group.members().find(|rank| !makes(rank)).unwrap_or(*first);
            Err(CommunicatorConflict::NotCreated { id, rank: *first, member })
        }
        None => Ok(()),
    }
}
