//! MPICH's decision tables (version 3), as in SimGrid 3.32.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod bcast;
mod gather;
mod reduce;
mod reduce_scatter;
mod scatter;

pub(in crate::collective) use allgather::{allgather, allgatherv};
pub(in crate::collective) use allreduce::allreduce;
pub(in crate::collective) use alltoall::alltoall;
pub(in crate::collective) use barrier::barrier;
pub(in crate::collective) use bcast::bcast;
pub(in crate::collective) use gather::gather;
pub(in crate::collective) use reduce::reduce;
pub(in crate::collective) use reduce_scatter::reduce_scatter;
pub(in crate::collective) use scatter::scatter;
