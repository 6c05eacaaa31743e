//! MPICH's decision table for gather.

use crate::collective::gather::{Args, binomial};
use crate::collective::{Member, Schedule};

/// Returns the schedule that MPICH selects: a binomial tree.
pub(in crate::collective) fn gather<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    binomial(member, args)
}
