//! MPICH's decision for scatter.

use crate::collective::scatter::{Args, binomial};
use crate::collective::{Member, Schedule};

/// MPICH's choice: a binomial tree.
pub(in crate::collective) fn scatter<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    binomial(member, args)
}
