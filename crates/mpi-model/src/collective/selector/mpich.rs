//! MPICH's decisions (version 3), as SimGrid 3.32 has them.

mod allgather;
mod alltoall;
mod reduce_scatter;

pub(in crate::collective) use allgather::{allgather, allgatherv};
pub(in crate::collective) use alltoall::alltoall;
pub(in crate::collective) use reduce_scatter::reduce_scatter;
