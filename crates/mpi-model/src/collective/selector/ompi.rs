//! Open MPI's fixed decisions (`coll_tuned_decision_fixed.c`, version 4.1), as in SimGrid 3.32.
//!
//! Algorithms that SimGrid lacks are replaced as there.

mod allgather;
mod allgatherv;
mod allreduce;
mod alltoall;
mod alltoallv;
mod barrier;
mod bcast;
mod gather;
mod reduce;
mod reduce_scatter;
mod scatter;

pub(in crate::collective) use allgather::allgather;
pub(in crate::collective) use allgatherv::allgatherv;
pub(in crate::collective) use allreduce::allreduce;
pub(in crate::collective) use alltoall::alltoall;
pub(in crate::collective) use alltoallv::alltoallv;
pub(in crate::collective) use barrier::barrier;
pub(in crate::collective) use bcast::bcast;
pub(in crate::collective) use gather::gather;
pub(in crate::collective) use reduce::reduce;
pub(in crate::collective) use reduce_scatter::reduce_scatter;
pub(in crate::collective) use scatter::scatter;
