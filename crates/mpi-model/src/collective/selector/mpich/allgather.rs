//! MPICH's decisions for allgather and allgatherv.
//!
//! Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1) 2005. As in SimGrid, `ring` stands for MPICH's allgather among
//! neighbours, and the table for allgatherv counts elements instead of bytes.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::allgather::direct::ring;
use crate::collective::allgather::doubling::{bruck, recursive, recursive_unless_empty};
use crate::collective::allgather::{Algorithm, Args};
use crate::collective::allgatherv::segmented_ring::segmented_ring;
use crate::collective::member::empty_schedule;
use crate::collective::{Member, Schedule};

/// Table for powers of two; columns by the size of all blocks.
const ON_POWERS: DecisionTable<Algorithm> = &[(MORE, &[(524_288, recursive), (REST, ring)])];

const ELSEWHERE: DecisionTable<Algorithm> = &[(MORE, &[(81_921, bruck), (REST, ring)])];

/// Table for powers of two; columns by the number of elements of all blocks.
const ON_POWERS_V: DecisionTable<Algorithm> =
    &[(MORE, &[(524_288, recursive_unless_empty), (REST, segmented_ring)])];

const ELSEWHERE_V: DecisionTable<Algorithm> = &[(MORE, &[(81_921, bruck), (REST, segmented_ring)])];

/// Returns the schedule that MPICH selects.
pub(in crate::collective) fn allgather<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let table = if member.size.is_power_of_two() { ON_POWERS } else { ELSEWHERE };
    let all = args.sent.bytes().get().saturating_mul(member.size.into());
    look_up(table, member.size, all)(member, args)
}

/// Returns the schedule that MPICH selects; nothing is sent if all blocks are empty.
pub(in crate::collective) fn allgatherv<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let elements = args.blocks.total(member.size).count;
    if elements == 0 {
        return empty_schedule();
    }
    let table = if member.size.is_power_of_two() { ON_POWERS_V } else { ELSEWHERE_V };
    look_up(table, member.size, elements)(member, args)
}
