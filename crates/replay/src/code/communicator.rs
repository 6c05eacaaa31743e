//! Communicators that a program makes while it runs.

use std::sync::Arc;

use pdes_core::Rank;
use trace_mmap::{CommId, CommIdx, Communicator, Group};

use super::data::Values;

/// A communicator, as a member of it knows it.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    pub(super) index: CommIdx,
    /// Rank of this process in it.
    pub(super) rank: u32,
    pub(super) group: Arc<Group>,
}

/// What a member contributes to the division of a communicator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    pub(super) color: Option<u32>,
    pub(super) key: i64,
    /// Number of communicators of which it was the first member.
    pub(super) led: u32,
}

/// Returns the communicator of those with the color of a rank, by their keys and their ranks before; `None` for the rank without a color.
///
/// The identifier names the first member and the number of communicators of which it has been that before, so that all members know it
/// and no two communicators share it.
///
/// # Errors
/// The first member has led too many communicators.
pub(super) fn divide(
    (me, ranks): (Rank, u32),
    parent: &Group,
    divisions: &Values,
) -> Result<Option<Communicator>, Box<str>> {
    let divisions: Vec<Division> = divisions.values().copied().collect();
    let Some(own) = parent.position(me).map(|place| divisions[place as usize]) else { return Ok(None) };
    if own.color.is_none() {
        return Ok(None);
    }
    let alike = (0_u32..).zip(&divisions).filter(|(_, other)| other.color == own.color);
    let mut members: Vec<(i64, u32)> = alike.map(|(place, other)| (other.key, place)).collect();
    members.sort_unstable();
    let first = members[0].1;
    let number = u64::from(divisions[first as usize].led) * u64::from(ranks);
    let id = number + u64::from(parent.member(first).get()) + 1;
    let id = u32::try_from(id).map_err(|_| {
        let most = u32::MAX / ranks;
        format!(
            "split: the first member has led {most} communicators, and can lead no more; split less often"
        )
    })?;
    let group = Group::new(members.iter().map(|&(_, place)| parent.member(place)));
    let group = Arc::new(group.expect("a member of a group is there once"));
    let rank = group.position(me).expect("a rank has its own color");
    Ok(Some(Communicator { id: CommId::new(id), rank, group }))
}
