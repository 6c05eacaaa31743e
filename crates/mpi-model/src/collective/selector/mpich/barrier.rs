//! MPICH's decision for barrier.

use crate::collective::barrier::dissemination;
use crate::collective::{Member, Schedule};

/// MPICH's choice: dissemination.
pub(in crate::collective) fn barrier(member: Member<'_>) -> Schedule<'_> {
    dissemination(member)
}
