//! Broadcast algorithms.

mod arrival;
mod arrival_scatter;
mod binomial_tree;
mod flat;
mod knomial;
mod pipelined;
mod scatter_allgather;
mod segmented;
mod smp;
mod split_binary;
mod two_level;

use super::member::Elements;
use super::operation::{Entry, Operation, Selectable};
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, Selection, analytic, in_network};

use arrival::{arrival_aware, arrival_aware_in_sweeps};
use arrival_scatter::arrival_scatter;
pub(super) use binomial_tree::binomial_tree;
pub(super) use flat::{flat, flat_pipelined};
pub(super) use knomial::knomial;
pub(super) use pipelined::{binary_pipeline, chain_pipeline};
pub(super) use scatter_allgather::{doubling_allgather, ring_allgather};
pub(super) use segmented::chain_by_two;
pub(super) use smp::{smp_binary, smp_binomial, smp_linear};
pub(super) use split_binary::split_binary;
pub(super) use two_level::{Levels, inter_node, intra_node, two_level};

/// The arguments of a broadcast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    pub(super) root: u32,
    pub(super) data: Elements,
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args) -> Schedule<'a>;

/// The operation bcast.
pub(super) enum Bcast {}

impl Selectable for Bcast {
    type Args<'a> = Args;
    type Algorithm = Algorithm;

    const OPERATION: Operation = Operation::Bcast;
    const ALGORITHMS: &'static [Entry<Algorithm>] = &[
        Entry::new("default", binomial_tree),
        Entry::new("arrival_pattern_aware", arrival_aware),
        Entry::new("arrival_pattern_aware_wait", arrival_aware_in_sweeps),
        Entry::new("arrival_scatter", arrival_scatter),
        Entry::new("binomial_tree", binomial_tree),
        Entry::new("flattree", flat),
        Entry::new("flattree_pipeline", flat_pipelined),
        Entry::new("NTSB", binary_pipeline),
        Entry::new("NTSL", chain_pipeline),
        Entry::new("NTSL_Isend", chain_pipeline),
        Entry::new("scatter_LR_allgather", ring_allgather),
        Entry::new("scatter_rdb_allgather", doubling_allgather),
        Entry::new("SMP_binary", smp_binary),
        Entry::new("SMP_binomial", smp_binomial),
        Entry::new("SMP_linear", smp_linear),
        Entry::table("ompi", &ompi::BCAST),
        Entry::new("ompi_split_bintree", split_binary),
        Entry::new("ompi_pipeline", chain_by_two),
        Entry::table("mpich", &mpich::BCAST),
        Entry::table("mvapich2", &mvapich2::BCAST),
        Entry::new("mvapich2_inter_node", inter_node),
        Entry::new("mvapich2_intra_node", intra_node),
        Entry::new("mvapich2_knomial_intra_node", knomial),
        Entry::table("impi", &impi::BCAST),
        Entry::AUTOMATIC,
        Entry::new("analytic", analytic::bcast),
        Entry::new(Selection::IN_NETWORK, in_network::bcast),
    ];

    fn data(_: Member<'_>, args: Args) -> Elements {
        args.data
    }

    fn run<'a>(algorithm: Algorithm, member: Member<'a>, args: Args) -> Schedule<'a> {
        algorithm(member, args)
    }
}
