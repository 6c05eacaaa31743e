//! Open MPI's fixed decisions (`coll_tuned_decision_fixed.c`, version 4.1), as SimGrid 3.32 has them.
//!
//! Algorithms that SimGrid does not have are replaced as there.

mod alltoall;

pub(in crate::collective) use alltoall::ALLTOALL;
