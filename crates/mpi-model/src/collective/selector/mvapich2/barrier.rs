//! MVAPICH2's decision table for barrier.

use crate::collective::barrier::recursive_doubling;
use crate::collective::{Member, Schedule};

/// Returns the schedule that MVAPICH2 selects: pairs at doubling distances.
pub(in crate::collective) fn barrier(member: Member<'_>) -> Schedule<'_> {
    recursive_doubling(member)
}
