//! Open MPI's decision table for barrier.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::barrier::{Algorithm, dissemination, linear, recursive_doubling as doubling, tree};
use crate::collective::{Member, Schedule};

/// Rows by the number of ranks; the size does not matter.
const TABLE: DecisionTable<Algorithm> = &[
    (4, &[(REST, doubling)]),
    (8, &[(REST, linear)]),
    (64, &[(REST, doubling)]),
    (256, &[(REST, dissemination)]),
    (512, &[(REST, tree)]),
    (1024, &[(REST, dissemination)]),
    (4096, &[(REST, tree)]),
    (MORE, &[(REST, dissemination)]),
];

/// Returns the schedule that Open MPI selects.
pub(in crate::collective) fn barrier(member: Member<'_>) -> Schedule<'_> {
    look_up(TABLE, member.size, 0)(member)
}
