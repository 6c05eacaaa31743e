//! Open MPI's table for alltoall; its `linear_sync` counts as linear.

use super::super::{MORE, REST, Table};
use crate::collective::alltoall::{Algorithm, basic_linear as linear, bruck, pair};

/// By the bytes for one peer.
pub(in crate::collective) const ALLTOALL: Table<Algorithm> = &[
    (
        3,
        &[
            (2, pair),
            (4, linear),
            (16, pair),
            (64, linear),
            (256, pair),
            (4096, linear),
            (32768, pair),
            (1_048_576, linear),
            (REST, pair),
        ],
    ),
    (8, &[(524_288, linear), (1_048_576, pair), (REST, linear)]),
    (16, &[(REST, linear)]),
    (32, &[(4, linear), (512, bruck), (REST, linear)]),
    (64, &[(512, bruck), (REST, linear)]),
    (128, &[(1024, bruck), (262_144, linear), (REST, pair)]),
    (256, &[(1024, bruck), (262_144, linear), (REST, pair)]),
    (512, &[(1024, bruck), (32768, linear), (REST, pair)]),
    (1024, &[(512, bruck), (262_144, linear), (REST, pair)]),
    (2048, &[(512, bruck), (REST, linear)]),
    (4096, &[(1024, bruck), (REST, linear)]),
    (MORE, &[(2048, bruck), (REST, linear)]),
];
