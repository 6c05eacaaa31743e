//! MPICH's decision table for reduce-scatter.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::blocks::Blocks;
use crate::collective::reduce_scatter::Algorithm;
use crate::collective::reduce_scatter::halving::doubling;
use crate::collective::reduce_scatter::rounds::pair;
use crate::collective::{Member, Schedule};

/// Columns by the number of elements of the whole vector, as in SimGrid, whose recursive doubling also stands for MPICH's
/// recursive halving of short vectors; MPICH's limit is in bytes.
const TABLE: DecisionTable<Algorithm> = &[(MORE, &[(524_289, doubling), (REST, pair)])];

/// Returns the schedule that MPICH selects for commutative operators.
pub(in crate::collective) fn reduce_scatter<'a>(member: Member<'a>, args: Blocks<'a>) -> Schedule<'a> {
    look_up(TABLE, member.size, args.total(member.size).count)(member, args)
}
