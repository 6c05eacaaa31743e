//! Intel MPI's decision table for allreduce.

use super::super::{MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::allreduce::{
    Algorithm, halve_then_allgather, halving_doubling, mpich_two_level as two_level,
    recursive_doubling as doubling, reduce_broadcast as redbcast, segmented_ring as ring, smp_binomial,
};
use crate::collective::member::Elements;
use crate::collective::{Member, Schedule};

/// Tables by ranks per node; columns by the size of the vector.
#[rustfmt::skip]
const TABLES: NodeDecisionTables<Algorithm> = &[
    (1, &[
        (3, &[
            (6, ring), (85, doubling), (192, ring), (853, doubling), (1279, ring), (16684, doubling),
            (34279, ring), (1_681_224, redbcast), (REST, ring),
        ]),
        (5, &[
            (16, ring), (47, doubling), (2062, ring), (16699, doubling), (70732, ring),
            (1_300_705, redbcast), (REST, ring),
        ]),
        (9, &[
            (118, doubling), (146, two_level), (16760, doubling), (36364, two_level), (315_710, ring),
            (3_220_366, redbcast), (REST, ring),
        ]),
        (17, &[
            (934, doubling), (1160, two_level), (15505, doubling), (52730, rabenseifner), (563_680, ring),
            (REST, redbcast),
        ]),
        (MORE, &[
            (11, two_level), (182, doubling), (1450, two_level), (11146, doubling), (93784, two_level),
            (817_658, rabenseifner), (REST, redbcast),
        ]),
    ]),
    (2, &[
        (5, &[
            (2084, ring), (15216, doubling), (99715, ring), (168_666, redbcast), (363_889, rabenseifner),
            (REST, ring),
        ]),
        (9, &[
            (14978, doubling), (66879, rabenseifner), (179_296, ring), (304_801, redbcast), (704_509, ring),
            (REST, rabenseifner),
        ]),
        (17, &[
            (16405, doubling), (81784, rabenseifner), (807_546, ring), (1_259_854, rabenseifner),
            (REST, redbcast),
        ]),
        (33, &[(8913, doubling), (103_578, rabenseifner), (615_876, ring), (REST, rabenseifner)]),
        (65, &[
            (1000, doubling), (2249, rabenseifner), (6029, doubling), (325_357, rabenseifner),
            (2_556_670, ring), (REST, redbcast),
        ]),
        (129, &[
            (664, doubling), (754_706, rabenseifner), (1_663_862, two_level), (3_269_097, rabenseifner),
            (REST, ring),
        ]),
        (MORE, &[(789, doubling), (2_247_589, rabenseifner), (REST, ring)]),
    ]),
    (4, &[
        (5, &[(5738, doubling), (197_433, rabenseifner), (593_742, ring), (REST, rabenseifner)]),
        (9, &[
            (5655, doubling), (75166, rabenseifner), (177_639, ring), (988_014, redbcast),
            (1_643_869, rabenseifner), (2_494_859, ring), (REST, rabenseifner),
        ]),
        (17, &[
            (587, doubling), (3941, rabenseifner), (9003, doubling), (101_469, rabenseifner),
            (355_768, ring), (3_341_814, redbcast), (REST, ring),
        ]),
        (33, &[(795, doubling), (146_567, rabenseifner), (732_118, ring), (REST, redbcast)]),
        (65, &[(528, doubling), (221_277, rabenseifner), (1_440_737, ring), (REST, redbcast)]),
        (129, &[(481, doubling), (593_833, rabenseifner), (REST, ring)]),
        (257, &[(584, doubling), (REST, rabenseifner)]),
        (MORE, &[(604, doubling), (2_997_006, rabenseifner), (REST, ring)]),
    ]),
    (8, &[
        (9, &[
            (2560, doubling), (114_230, two_level), (288_510, ring), (664_038, rabenseifner),
            (REST, two_level),
        ]),
        (17, &[(497, doubling), (54201, rabenseifner), (356_217, ring), (3_413_609, redbcast), (REST, ring)]),
        (33, &[
            (377, doubling), (109_745, rabenseifner), (716_514, ring), (3_976_768, redbcast), (REST, ring),
        ]),
        (65, &[
            (109, doubling), (649, smp_binomial), (266_080, rabenseifner), (2_541_403, ring),
            (REST, redbcast),
        ]),
        (129, &[(7, doubling), (751, smp_binomial), (408_808, rabenseifner), (REST, ring)]),
        (257, &[(828, smp_binomial), (909_676, rabenseifner), (REST, ring)]),
        (513, &[
            (847, smp_binomial), (1_007_066, rabenseifner), (1_068_775, two_level),
            (2_803_389, rabenseifner), (REST, ring),
        ]),
        (MORE, &[(1974, smp_binomial), (4_007_876, rabenseifner), (REST, ring)]),
    ]),
    (16, &[
        (17, &[
            (409, doubling), (3071, two_level), (11299, rabenseifner), (21746, two_level),
            (55629, rabenseifner), (86065, two_level), (153_867, rabenseifner), (590_560, two_level),
            (1_448_760, rabenseifner), (REST, ring),
        ]),
        (33, &[
            (6, doubling), (24, smp_binomial), (86, doubling), (875, smp_binomial), (74528, rabenseifner),
            (REST, ring),
        ]),
        (65, &[
            (1018, smp_binomial), (1217, two_level), (2370, smp_binomial), (160_654, rabenseifner),
            (1_885_487, ring), (REST, redbcast),
        ]),
        (129, &[(2291, smp_binomial), (434_465, rabenseifner), (REST, ring)]),
        (257, &[(2189, smp_binomial), (713_154, rabenseifner), (REST, ring)]),
        (513, &[(2140, smp_binomial), (1_235_056, rabenseifner), (REST, ring)]),
        (MORE, &[(2153, smp_binomial), (2_629_855, rabenseifner), (REST, ring)]),
    ]),
];

/// Returns the schedule that Intel MPI selects.
pub(in crate::collective) fn allreduce(member: Member<'_>, data: Elements) -> Schedule<'_> {
    look_up_by_node_size(TABLES, member, data.bytes().get())(member, data)
}

/// Rabenseifner's algorithm: SimGrid's for powers of two; MPICH's for other numbers of ranks, which SimGrid's does not
/// support.
fn rabenseifner(member: Member<'_>, data: Elements) -> Schedule<'_> {
    if member.size.is_power_of_two() {
        halve_then_allgather(member, data)
    } else {
        halving_doubling(member, data)
    }
}
