//! MVAPICH2's decision for barrier.

use crate::collective::barrier::recursive_doubling;
use crate::collective::{Member, Schedule};

/// MVAPICH2's choice: pairs at doubling distances.
pub(in crate::collective) fn barrier(member: Member<'_>) -> Schedule<'_> {
    recursive_doubling(member)
}
