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
use super::operation::{Entry, Operation};
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, analytic, automatic};

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

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
    Entry::new("default", linear),
    Entry::new("arrival_pattern_aware", arrival_aware),
    Entry::new("binomial", binomial),
    Entry::new("flat_tree", in_turn),
    Entry::new("NTSL", chain_pipeline),
    Entry::new("scatter_gather", scatter_gather),
    Entry::new("ompi", ompi::reduce),
    Entry::new("ompi_chain", chains),
    Entry::new("ompi_pipeline", pipeline),
    Entry::new("ompi_basic_linear", in_turn),
    Entry::new("ompi_in_order_binary", in_order_binary),
    Entry::new("ompi_binary", binary),
    Entry::new("ompi_binomial", binomial_segments),
    Entry::new("mpich", mpich::reduce),
    Entry::new("mvapich2", mvapich2::reduce),
    Entry::new("mvapich2_knomial", knomial),
    Entry::new("mvapich2_two_level", mpich_two_level),
    Entry::new("impi", impi::reduce),
    Entry::new("rab", rabenseifner),
    Entry::new("automatic", automatic),
    Entry::new("analytic", analytic::reduce),
];

/// Returns the schedule of all algorithms in turn; see [`automatic::run_all`].
fn automatic<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    automatic::run_all(member, ALGORITHMS, move |algorithm| algorithm(member, args))
}

/// Returns the schedule of the selected algorithm.
pub(super) fn selected<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let place = member.selection.algorithm_index(Operation::Reduce, member.size, args.data.bytes().get());
    (ALGORITHMS[place].algorithm)(member, args)
}
