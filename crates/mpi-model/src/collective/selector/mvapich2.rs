//! MVAPICH2's decisions (version 1.9, tuned on Stampede), as SimGrid 3.32 has them.

mod allgather;
mod allgatherv;
mod alltoall;
mod reduce_scatter;

pub(in crate::collective) use allgather::allgather;
pub(in crate::collective) use allgatherv::allgatherv;
pub(in crate::collective) use alltoall::alltoall;
pub(in crate::collective) use reduce_scatter::reduce_scatter;
