//! MPICH's decision for gather.

use crate::collective::gather::{Args, binomial};
use crate::collective::{Member, Schedule};

/// MPICH's choice: a binomial tree.
pub(in crate::collective) fn gather<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    binomial(member, args)
}
