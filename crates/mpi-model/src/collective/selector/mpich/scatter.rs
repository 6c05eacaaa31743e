//! MPICH's decision table for scatter.

use crate::collective::scatter::{Args, binomial};
use crate::collective::{Member, Schedule};

/// Returns the schedule that MPICH selects: a binomial tree.
pub(in crate::collective) fn scatter<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    binomial(member, args)
}
