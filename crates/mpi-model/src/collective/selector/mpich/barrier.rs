//! MPICH's decision table for barrier.

use crate::collective::barrier::dissemination;
use crate::collective::{Member, Schedule};

/// Returns the schedule that MPICH selects: dissemination.
pub(in crate::collective) fn barrier(member: Member<'_>) -> Schedule<'_> {
    dissemination(member)
}
