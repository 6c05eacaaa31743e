//! Reduce-scatter as a reduction and a scatter.

use super::ReduceScatter;
use crate::collective::blocks::Blocks;
use crate::collective::selector::mpich;
use crate::collective::{Member, Schedule, Selectable, Steps, reduce, scatter};

/// A linear reduction of everything to rank 0, then a linear scatter.
///
/// Cost: 2 (P - 1) messages; 2 alpha + (P² - 1) n beta for blocks of n bytes. Source: SimGrid's `default` for equal blocks.
pub(in crate::collective) fn reduce_then_scatter<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    let reduced = reduce::linear(member, reduce::Args { root: 0, data: blocks.total(member.size) });
    let scattered =
        scatter::linear(member, 0, move |rank| blocks.bytes_of(rank), blocks.bytes_of(member.rank));
    Box::new(reduced.then(scattered))
}

/// [`reduce_then_scatter`] if all blocks are equal, else MPICH's selection. Source: SimGrid's `default`.
pub(in crate::collective) fn by_regularity<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    let first = blocks.elements(0).count;
    if (1..member.size).all(|rank| blocks.elements(rank).count == first) {
        reduce_then_scatter(member, blocks)
    } else {
        ReduceScatter::by_table(&mpich::REDUCE_SCATTER, member, blocks)
    }
}
