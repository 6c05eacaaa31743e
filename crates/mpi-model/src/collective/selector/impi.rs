//! Intel MPI's decisions (version 4.1, measured on Stampede), as SimGrid 3.32 has them.

mod allgather;
mod allgatherv;
mod alltoall;
mod alltoallv;
mod reduce_scatter;

pub(in crate::collective) use allgather::allgather;
pub(in crate::collective) use allgatherv::allgatherv;
pub(in crate::collective) use alltoall::alltoall;
pub(in crate::collective) use alltoallv::alltoallv;
pub(in crate::collective) use reduce_scatter::reduce_scatter;
