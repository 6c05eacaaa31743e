//! Reduction algorithms. The caller charges their computation.

mod arrival;
mod binomial;
mod generic;
mod knomial;
mod linear;
mod pipelined;
mod rabenseifner;
mod scatter_gather;
mod two_level;

use super::member::Elements;
use super::operation::{Entry, Operation, Selectable};
use super::selector::{mpich, mvapich2, ompi};
use super::{Member, Schedule, Selection, analytic, in_network};

use arrival::arrival_aware;
pub(super) use binomial::binomial;
pub(super) use generic::{binary, binomial_segments, chains, in_order_binary, pipeline};
pub(super) use knomial::{knomial, knomial_with_degree};
pub(super) use linear::{in_turn, linear};
pub(super) use pipelined::chain_pipeline;
pub(super) use rabenseifner::{fold_halves, rabenseifner};
pub(super) use scatter_gather::scatter_gather;
pub(super) use two_level::{OnNode, mpich_two_level, two_level};

/// The arguments of a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    pub(super) root: u32,
    pub(super) data: Elements,
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args) -> Schedule<'a>;

/// The operation reduce.
pub(super) enum Reduce {}

impl Selectable for Reduce {
    type Args<'a> = Args;
    type Algorithm = Algorithm;

    const OPERATION: Operation = Operation::Reduce;
    const ALGORITHMS: &'static [Entry<Algorithm>] = &[
        Entry::new("default", linear),
        Entry::new("arrival_pattern_aware", arrival_aware),
        Entry::new("binomial", binomial),
        Entry::new("flat_tree", in_turn),
        Entry::new("NTSL", chain_pipeline),
        Entry::new("scatter_gather", scatter_gather),
        Entry::table("ompi", &ompi::REDUCE),
        Entry::new("ompi_chain", chains),
        Entry::new("ompi_pipeline", pipeline),
        Entry::new("ompi_basic_linear", in_turn),
        Entry::new("ompi_in_order_binary", in_order_binary),
        Entry::new("ompi_binary", binary),
        Entry::new("ompi_binomial", binomial_segments),
        Entry::table("mpich", &mpich::REDUCE),
        Entry::table("mvapich2", &mvapich2::REDUCE),
        Entry::new("mvapich2_knomial", knomial),
        Entry::new("mvapich2_two_level", mpich_two_level),
        Entry::table("impi", &mvapich2::REDUCE),
        Entry::new("rab", rabenseifner),
        Entry::AUTOMATIC,
        Entry::new("analytic", analytic::reduce),
        Entry::new(Selection::IN_NETWORK, in_network::reduce),
    ];

    fn data(_: Member<'_>, args: Args) -> Elements {
        args.data
    }

    fn run<'a>(algorithm: Algorithm, member: Member<'a>, args: Args) -> Schedule<'a> {
        algorithm(member, args)
    }
}
