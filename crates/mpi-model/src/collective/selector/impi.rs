//! Intel MPI's decisions (version 4.1, measured on Stampede), as in SimGrid 3.32 (`smpi_intel_mpi_selector.cpp`).
//!
//! Reduce takes MVAPICH2's decisions whatever the size.

use crate::collective::decision_table::{Condition, DecisionTable, Measure, Rule};
use crate::collective::member::Elements;
use crate::collective::operation::Selectable;
use crate::collective::{
    Member, Schedule, allgather, allreduce, alltoall, barrier, bcast, gather, reduce_scatter, scatter,
};
use super::mvapich2;
use Condition::RanksPerNode;
use Measure::Bytes;
use Rule::{Otherwise, Ranks, When};

/// Barrier; by the number of ranks alone.
pub(in crate::collective) static BARRIER: DecisionTable<barrier::Algorithm> = {
    use barrier::{linear, recursive_doubling as doubling};
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[2]), &[
            Ranks(9, &[], linear),
            Ranks(33, &[], doubling),
            Ranks(129, &[], linear),
            Otherwise(&[], doubling),
        ]),
        When(RanksPerNode(&[4, 16]), &[
            Ranks(5, &[], doubling),
            Ranks(9, &[], linear),
            Otherwise(&[], doubling),
        ]),
        When(RanksPerNode(&[8]), &[
            Ranks(9, &[], linear),
            Otherwise(&[], doubling),
        ]),
        Ranks(3, &[], doubling),
        Ranks(9, &[], linear),
        Ranks(65, &[], doubling),
        Otherwise(&[], linear),
    ] }
};

/// Bcast.
pub(in crate::collective) static BCAST: DecisionTable<bcast::Algorithm> = {
    use bcast::{binomial_tree as binomial, chain_pipeline as chain, smp_binomial, smp_linear};
    const MVAPICH2: bcast::Algorithm = |member, args| bcast::Bcast::by_table(&mvapich2::BCAST, member, args);
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[2]), &[
            Ranks(5, &[(806, smp_binomial), (18093, MVAPICH2), (51366, smp_linear), (182_526, smp_binomial),
                (618_390, binomial)], MVAPICH2),
            Ranks(9, &[(24, binomial), (74, smp_binomial), (18137, binomial), (614_661, MVAPICH2),
                (1_284_626, binomial)], chain),
            Ranks(17, &[(1, binomial), (158, MVAPICH2), (16955, binomial)], MVAPICH2),
            Ranks(33, &[(242, MVAPICH2), (10345, binomial)], MVAPICH2),
            Otherwise(&[(1, binomial), (737, MVAPICH2), (5340, binomial)], MVAPICH2),
        ]),
        When(RanksPerNode(&[4, 16]), &[
            Ranks(9, &[(256, smp_binomial), (17181, binomial)], MVAPICH2),
            Otherwise(&[], MVAPICH2),
        ]),
        When(RanksPerNode(&[8]), &[
            Ranks(17, &[(3, binomial), (318, MVAPICH2), (1505, binomial)], MVAPICH2),
            Ranks(33, &[(422, MVAPICH2), (851, binomial)], MVAPICH2),
            Ranks(65, &[(468, MVAPICH2), (699, binomial)], MVAPICH2),
            Otherwise(&[], MVAPICH2),
        ]),
        Ranks(3, &[(1, chain), (402, MVAPICH2), (682, chain), (1433, smp_binomial), (5734, MVAPICH2),
            (21845, binomial), (95963, smp_linear), (409_897, chain)], binomial),
        Ranks(5, &[], MVAPICH2),
        Ranks(9, &[(3, smp_linear), (4, MVAPICH2), (25, smp_linear), (256, binomial), (682, smp_linear),
            (1264, binomial), (2234, smp_linear), (6655, chain), (16336, binomial),
            (3_998_434, MVAPICH2)], smp_linear),
        Otherwise(&[], MVAPICH2),
    ] }
};

/// Allreduce.
pub(in crate::collective) static ALLREDUCE: DecisionTable<allreduce::Algorithm> = {
    use allreduce::{
        mpich_two_level as two_level, recursive_doubling as doubling, reduce_broadcast as redbcast,
        segmented_ring as ring, smp_binomial,
    };
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[2]), &[
            Ranks(5, &[(2084, ring), (15216, doubling), (99715, ring), (168_666, redbcast),
                (363_889, rabenseifner)], ring),
            Ranks(9, &[(14978, doubling), (66879, rabenseifner), (179_296, ring), (304_801, redbcast),
                (704_509, ring)], rabenseifner),
            Ranks(17, &[(16405, doubling), (81784, rabenseifner), (807_546, ring),
                (1_259_854, rabenseifner)], redbcast),
            Ranks(33, &[(8913, doubling), (103_578, rabenseifner), (615_876, ring)], rabenseifner),
            Ranks(65, &[(1000, doubling), (2249, rabenseifner), (6029, doubling), (325_357, rabenseifner),
                (2_556_670, ring)], redbcast),
            Ranks(129, &[(664, doubling), (754_706, rabenseifner), (1_663_862, two_level),
                (3_269_097, rabenseifner)], ring),
            Otherwise(&[(789, doubling), (2_247_589, rabenseifner)], ring),
        ]),
        When(RanksPerNode(&[4]), &[
            Ranks(5, &[(5738, doubling), (197_433, rabenseifner), (593_742, ring)], rabenseifner),
            Ranks(9, &[(5655, doubling), (75166, rabenseifner), (177_639, ring), (988_014, redbcast),
                (1_643_869, rabenseifner), (2_494_859, ring)], rabenseifner),
            Ranks(17, &[(587, doubling), (3941, rabenseifner), (9003, doubling), (101_469, rabenseifner),
                (355_768, ring), (3_341_814, redbcast)], ring),
            Ranks(33, &[(795, doubling), (146_567, rabenseifner), (732_118, ring)], redbcast),
            Ranks(65, &[(528, doubling), (221_277, rabenseifner), (1_440_737, ring)], redbcast),
            Ranks(129, &[(481, doubling), (593_833, rabenseifner)], ring),
            Ranks(257, &[(584, doubling)], rabenseifner),
            Otherwise(&[(604, doubling), (2_997_006, rabenseifner)], ring),
        ]),
        When(RanksPerNode(&[8]), &[
            Ranks(9, &[(2560, doubling), (114_230, two_level), (288_510, ring),
                (664_038, rabenseifner)], two_level),
            Ranks(17, &[(497, doubling), (54201, rabenseifner), (356_217, ring),
                (3_413_609, redbcast)], ring),
            Ranks(33, &[(377, doubling), (109_745, rabenseifner), (716_514, ring),
                (3_976_768, redbcast)], ring),
            Ranks(65, &[(109, doubling), (649, smp_binomial), (266_080, rabenseifner),
                (2_541_403, ring)], redbcast),
            Ranks(129, &[(7, doubling), (751, smp_binomial), (408_808, rabenseifner)], ring),
            Ranks(257, &[(828, smp_binomial), (909_676, rabenseifner)], ring),
            Ranks(513, &[(847, smp_binomial), (1_007_066, rabenseifner), (1_068_775, two_level),
                (2_803_389, rabenseifner)], ring),
            Otherwise(&[(1974, smp_binomial), (4_007_876, rabenseifner)], ring),
        ]),
        When(RanksPerNode(&[16]), &[
            Ranks(17, &[(409, doubling), (3071, two_level), (11299, rabenseifner), (21746, two_level),
                (55629, rabenseifner), (86065, two_level), (153_867, rabenseifner), (590_560, two_level),
                (1_448_760, rabenseifner)], ring),
            Ranks(33, &[(6, doubling), (24, smp_binomial), (86, doubling), (875, smp_binomial),
                (74528, rabenseifner)], ring),
            Ranks(65, &[(1018, smp_binomial), (1217, two_level), (2370, smp_binomial),
                (160_654, rabenseifner), (1_885_487, ring)], redbcast),
            Ranks(129, &[(2291, smp_binomial), (434_465, rabenseifner)], ring),
            Ranks(257, &[(2189, smp_binomial), (713_154, rabenseifner)], ring),
            Ranks(513, &[(2140, smp_binomial), (1_235_056, rabenseifner)], ring),
            Otherwise(&[(2153, smp_binomial), (2_629_855, rabenseifner)], ring),
        ]),
        Ranks(3, &[(6, ring), (85, doubling), (192, ring), (853, doubling), (1279, ring), (16684, doubling),
            (34279, ring), (1_681_224, redbcast)], ring),
        Ranks(5, &[(16, ring), (47, doubling), (2062, ring), (16699, doubling), (70732, ring),
            (1_300_705, redbcast)], ring),
        Ranks(9, &[(118, doubling), (146, two_level), (16760, doubling), (36364, two_level), (315_710, ring),
            (3_220_366, redbcast)], ring),
        Ranks(17, &[(934, doubling), (1160, two_level), (15505, doubling), (52730, rabenseifner),
            (563_680, ring)], redbcast),
        Otherwise(&[(11, two_level), (182, doubling), (1450, two_level), (11146, doubling),
            (93784, two_level), (817_658, rabenseifner)], redbcast),
    ] }
};

/// Rabenseifner's algorithm: SimGrid's for powers of two; MPICH's for other numbers of ranks, which SimGrid's does not
/// support.
fn rabenseifner(member: Member<'_>, data: Elements) -> Schedule<'_> {
    if member.size.is_power_of_two() {
        allreduce::halve_then_allgather(member, data)
    } else {
        allreduce::halving_doubling(member, data)
    }
}

/// Gather.
pub(in crate::collective) static GATHER: DecisionTable<gather::Algorithm> = {
    use gather::binomial;
    const MVAPICH2: gather::Algorithm = |member, args| gather::Gather::by_table(&mvapich2::GATHER, member, args);
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[2, 4, 16]), &[
            Otherwise(&[], MVAPICH2),
        ]),
        When(RanksPerNode(&[8]), &[
            Ranks(17, &[], MVAPICH2),
            Ranks(33, &[(9, binomial)], MVAPICH2),
            Ranks(65, &[(784, binomial)], MVAPICH2),
            Ranks(129, &[(160, MVAPICH2), (655, binomial)], MVAPICH2),
            Otherwise(&[], MVAPICH2),
        ]),
        Ranks(9, &[(17561, MVAPICH2), (44791, binomial)], MVAPICH2),
        Ranks(17, &[(16932, MVAPICH2), (84425, binomial), (158_363, MVAPICH2), (702_801, binomial),
            (1_341_444, MVAPICH2), (2_413_569, binomial)], MVAPICH2),
        Otherwise(&[(47187, MVAPICH2), (349_696, binomial)], MVAPICH2),
    ] }
};

/// Scatter.
pub(in crate::collective) static SCATTER: DecisionTable<scatter::Algorithm> = {
    use scatter::binomial;
    const MVAPICH2: scatter::Algorithm = |member, args| scatter::Scatter::by_table(&mvapich2::SCATTER, member, args);
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[2]), &[
            Otherwise(&[], MVAPICH2),
        ]),
        When(RanksPerNode(&[4, 16]), &[
            Ranks(9, &[], MVAPICH2),
            Ranks(17, &[(140, MVAPICH2), (1302, binomial)], MVAPICH2),
            Ranks(33, &[(159, MVAPICH2), (486, binomial)], MVAPICH2),
            Ranks(65, &[(149, binomial)], MVAPICH2),
            Otherwise(&[(139, binomial)], MVAPICH2),
        ]),
        When(RanksPerNode(&[8]), &[
            Ranks(17, &[(2102, binomial)], MVAPICH2),
            Ranks(33, &[(2065, binomial)], MVAPICH2),
            Ranks(65, &[(2069, binomial)], MVAPICH2),
            Ranks(129, &[(796, binomial)], MVAPICH2),
            Otherwise(&[(139, binomial)], MVAPICH2),
        ]),
        Ranks(3, &[(16391, binomial)], MVAPICH2),
        Ranks(5, &[(16723, MVAPICH2), (153_541, binomial), (425_631, MVAPICH2), (794_142, binomial),
            (1_257_027, MVAPICH2)], binomial),
        Ranks(9, &[(2633, MVAPICH2), (6144, binomial), (14043, MVAPICH2), (24576, binomial),
            (107_995, MVAPICH2), (1_752_729, binomial)], MVAPICH2),
        Ranks(17, &[(2043, MVAPICH2), (2252, binomial), (17749, MVAPICH2), (106_020, binomial),
            (628_654, MVAPICH2), (3_751_354, binomial)], MVAPICH2),
        Otherwise(&[(65907, MVAPICH2), (245_132, binomial), (1_042_439, MVAPICH2)], binomial),
    ] }
};

/// Allgather.
pub(in crate::collective) static ALLGATHER: DecisionTable<allgather::Algorithm> = {
    use allgather::direct::ring;
    use allgather::doubling::{bruck, recursive};
    use allgather::gather_bcast::gather_bcast;
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[2]), &[
            Ranks(9, &[(490, recursive), (558, bruck), (2319, recursive), (46227, ring),
                (2_215_101, recursive)], ring),
            Ranks(17, &[(1005, recursive), (1042, bruck), (2059, recursive)], ring),
            Otherwise(&[(2454, recursive)], ring),
        ]),
        When(RanksPerNode(&[4, 16]), &[
            Ranks(9, &[(2861, recursive)], ring),
            Otherwise(&[(605, recursive)], ring),
        ]),
        When(RanksPerNode(&[8]), &[
            Ranks(17, &[(66, recursive), (213, gather_bcast), (514, recursive)], ring),
            Ranks(33, &[(91, recursive), (213, gather_bcast), (514, recursive)], ring),
            Ranks(65, &[(71, recursive), (213, gather_bcast), (514, recursive)], ring),
            Ranks(129, &[(305, recursive)], ring),
            Otherwise(&[(213, recursive)], ring),
        ]),
        Ranks(5, &[(1, gather_bcast), (384, recursive), (1533, gather_bcast), (3296, recursive),
            (10763, gather_bcast), (31816, ring), (193_343, gather_bcast), (405_857, ring),
            (597_626, gather_bcast), (1_844_323, ring)], gather_bcast),
        Ranks(9, &[(12, gather_bcast), (46, recursive), (205, gather_bcast), (3422, bruck),
            (4200, gather_bcast), (8748, recursive), (24080, ring), (33244, gather_bcast),
            (371_159, recursive)], ring),
        Ranks(17, &[(3, gather_bcast), (53, recursive), (100, gather_bcast), (170, recursive),
            (6077, gather_bcast), (127_644, recursive), (143_741, gather_bcast)], ring),
        Otherwise(&[(184, recursive), (320, gather_bcast), (759, recursive), (1219, gather_bcast),
            (2633, recursive), (8259, gather_bcast), (123_678, recursive), (160_801, gather_bcast),
            (284_341, recursive)], gather_bcast),
    ] }
};

/// Allgatherv; by the size of all blocks.
pub(in crate::collective) static ALLGATHERV: DecisionTable<allgather::Algorithm> = {
    use allgather::direct::ring;
    use allgather::doubling::{bruck, recursive_unless_empty as recursive};
    use allgather::gather_bcast::gather_bcast;
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[2]), &[
            Ranks(5, &[(3147, recursive), (5622, bruck)], ring),
            Ranks(9, &[(975, recursive), (4158, bruck)], ring),
            Ranks(17, &[(2146, recursive)], ring),
            Ranks(33, &[(81, recursive), (414, bruck), (1190, recursive)], ring),
            Otherwise(&[(1, bruck), (3, recursive), (783, bruck), (1782, gather_bcast)], ring),
        ]),
        When(RanksPerNode(&[4, 16]), &[
            Ranks(9, &[(2554, recursive)], ring),
            Ranks(17, &[(272, recursive), (657, bruck), (2078, recursive)], ring),
            Ranks(33, &[(1081, recursive)], ring),
            Ranks(65, &[(547, recursive)], ring),
            Otherwise(&[(19, recursive), (239, bruck), (327, recursive), (821, gather_bcast)], ring),
        ]),
        When(RanksPerNode(&[8]), &[
            Ranks(17, &[(55, recursive), (514, bruck)], ring),
            Ranks(33, &[(53, recursive), (167, gather_bcast), (514, bruck)], ring),
            Ranks(65, &[(13, recursive), (319, gather_bcast)], ring),
            Ranks(129, &[(2, recursive), (11, bruck), (48, recursive), (201, bruck), (304, recursive),
                (1048, gather_bcast)], ring),
            Otherwise(&[(5, recursive), (115, gather_bcast), (129, recursive), (451, gather_bcast)], ring),
        ]),
        Ranks(3, &[(259_668, ring), (635_750, gather_bcast)], ring),
        Ranks(5, &[(1, recursive), (5, gather_bcast), (46, recursive), (2590, bruck), (1_177_259, ring),
            (2_767_234, gather_bcast)], ring),
        Ranks(9, &[(99, bruck), (143, recursive), (4646, bruck), (63522, ring),
            (2_187_806, gather_bcast)], ring),
        Otherwise(&[(1, recursive), (5, gather_bcast), (46, recursive), (2590, bruck), (1_177_259, ring),
            (2_767_234, gather_bcast)], ring),
    ] }
};

/// Alltoall; in place of its `Plum's algorithm`, which is not public, MVAPICH2's decisions.
pub(in crate::collective) static ALLTOALL: DecisionTable<alltoall::Algorithm> = {
    use alltoall::bruck::bruck;
    use alltoall::pairwise::pair;
    use alltoall::windows::including_self as scatter_dest;
    const MVAPICH2: alltoall::Algorithm = |member, args| alltoall::Alltoall::by_table(&mvapich2::ALLTOALL, member, args);
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[2]), &[
            Ranks(5, &[(1, scatter_dest), (75, pair)], scatter_dest),
            Ranks(9, &[(709, bruck)], scatter_dest),
            Ranks(17, &[(40048, scatter_dest), (155_927, pair)], MVAPICH2),
            Ranks(33, &[(105, bruck), (130, scatter_dest), (1030, bruck), (131_072, scatter_dest),
                (271_838, pair)], scatter_dest),
            Otherwise(&[(521, bruck), (2032, MVAPICH2), (2412, scatter_dest), (4112, MVAPICH2),
                (61620, scatter_dest), (427_408, pair)], MVAPICH2),
        ]),
        When(RanksPerNode(&[4]), &[
            Ranks(9, &[(512, bruck)], scatter_dest),
            Ranks(65, &[(7, bruck), (199, MVAPICH2), (764, bruck), (6409, MVAPICH2), (20026, scatter_dest),
                (32768, pair), (221_643, MVAPICH2)], pair),
            Otherwise(&[(262, bruck), (7592, MVAPICH2), (22871, scatter_dest), (47538, pair),
                (101_559, MVAPICH2)], pair),
        ]),
        When(RanksPerNode(&[8]), &[
            Ranks(17, &[(973, bruck), (5126, MVAPICH2), (16898, scatter_dest),
                (65456, MVAPICH2)], scatter_dest),
            Ranks(33, &[(874, bruck), (6727, MVAPICH2), (17912, scatter_dest), (41513, pair),
                (199_604, MVAPICH2)], pair),
            Ranks(65, &[(5, bruck), (114, MVAPICH2), (552, bruck), (8130, MVAPICH2), (34486, pair),
                (160_113, MVAPICH2)], pair),
            Ranks(129, &[(270, bruck), (3679, MVAPICH2), (64367, pair), (146_595, MVAPICH2)], pair),
            Otherwise(&[(133, bruck), (4017, MVAPICH2), (32768, pair), (76351, MVAPICH2)], pair),
        ]),
        When(RanksPerNode(&[16]), &[
            Ranks(33, &[(963, bruck), (1818, MVAPICH2), (20007, scatter_dest), (54296, MVAPICH2),
                (169_735, pair)], scatter_dest),
            Ranks(65, &[(17, bruck), (42, MVAPICH2), (592, bruck), (2015, MVAPICH2), (2753, scatter_dest),
                (6496, pair), (20402, MVAPICH2), (36246, pair), (93229, MVAPICH2)], pair),
            Ranks(129, &[(18, bruck), (40, MVAPICH2), (287, bruck), (1308, MVAPICH2), (6842, bruck),
                (36986, pair), (129_081, MVAPICH2)], pair),
            Ranks(257, &[(135, bruck), (1538, MVAPICH2), (3267, bruck), (4132, pair),
                (31469, MVAPICH2)], pair),
            Otherwise(&[(66, bruck), (1637, MVAPICH2), (2626, bruck), (4842, MVAPICH2), (33963, pair),
                (72978, MVAPICH2)], pair),
        ]),
        Ranks(3, &[], pair),
        Ranks(9, &[], scatter_dest),
        Ranks(17, &[(84645, scatter_dest), (167_570, pair), (413_152, MVAPICH2)], scatter_dest),
        Ranks(33, &[(61, bruck), (164, scatter_dest), (696, bruck), (143_254, scatter_dest),
            (387_024, pair)], scatter_dest),
        Ranks(65, &[(523, bruck), (146_088, scatter_dest), (488_989, MVAPICH2)], scatter_dest),
        Otherwise(&[(270, bruck), (628, MVAPICH2)], scatter_dest),
    ] }
};

/// Alltoallv; by the number of ranks alone.
pub(in crate::collective) static ALLTOALLV: DecisionTable<alltoall::Algorithm> = {
    use alltoall::linear::in_order;
    use alltoall::windows::excluding_self as windows;
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[8]), &[
            Ranks(17, &[], in_order),
            Otherwise(&[], windows),
        ]),
        Otherwise(&[], in_order),
    ] }
};

/// Reduce-scatter.
pub(in crate::collective) static REDUCE_SCATTER: DecisionTable<reduce_scatter::Algorithm> = {
    use reduce_scatter::halving::{doubling, recursive};
    use reduce_scatter::linear::by_regularity as basic;
    use reduce_scatter::rounds::pair;
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[2]), &[
            Ranks(3, &[(6, recursive)], pair),
            Ranks(5, &[(13, basic), (59, doubling), (76, recursive), (91488, doubling),
                (680_063, basic)], pair),
            Ranks(9, &[(11, basic), (31, recursive), (69615, doubling), (202_632, pair),
                (1_495_696, basic)], pair),
            Ranks(17, &[(4, basic)], recursive),
            Ranks(33, &[(4, basic), (992, recursive), (71417, doubling)], pair),
            Ranks(65, &[(4, basic), (1472, recursive), (196_592, doubling)], pair),
            Ranks(129, &[(4, basic), (32892, recursive), (381_072, doubling)], pair),
            Otherwise(&[(4, basic), (33262, recursive), (1_571_397, doubling)], basic),
        ]),
        When(RanksPerNode(&[4, 16]), &[
            Ranks(5, &[(27, basic), (49, doubling), (187, recursive), (405_673, doubling),
                (594_687, basic)], pair),
            Ranks(9, &[(24, basic), (155, recursive), (204_501, doubling)], basic),
            Ranks(17, &[(63, recursive), (72, doubling), (264, recursive), (168_421, doubling)], pair),
            Ranks(33, &[(4, basic), (12, recursive), (18, basic), (419, recursive), (188_739, doubling),
                (1_365_841, basic), (2_430_194, pair)], basic),
            Ranks(65, &[(17, basic), (635, recursive), (202_937, doubling), (1_389_874, basic)], pair),
            Ranks(129, &[(16, basic), (1238, recursive), (280_097, doubling), (2_605_072, basic)], pair),
            Ranks(257, &[(16, basic), (2418, recursive)], doubling),
            Otherwise(&[(16, basic), (33182, recursive), (3_763_779, doubling)], basic),
        ]),
        When(RanksPerNode(&[8]), &[
            Ranks(9, &[(5, basic), (494, recursive), (97739, doubling), (522_836, pair),
                (554_174, basic)], pair),
            Ranks(17, &[(5, basic), (62, recursive), (94, doubling), (215, recursive),
                (185_095, doubling)], basic),
            Ranks(33, &[(4, basic), (302, recursive), (250_841, doubling)], basic),
            Ranks(65, &[(41, basic), (306, recursive), (332_405, doubling)], basic),
            Ranks(129, &[(39, basic), (526, recursive), (487_878, doubling)], basic),
            Ranks(257, &[(36, basic), (1382, recursive), (424_162, doubling), (632_881, basic),
                (1_127_566, doubling)], basic),
            Ranks(513, &[(34, basic), (5884, recursive)], doubling),
            Otherwise(&[(32, basic), (25105, recursive)], doubling),
        ]),
        Ranks(3, &[(5, basic), (522_429, pair), (1_375_877, basic), (2_932_736, pair)], basic),
        Ranks(5, &[(4, basic), (15, recursive), (120, doubling), (651, recursive), (12188, doubling),
            (33890, recursive), (572_117, pair), (1_410_202, basic)], pair),
        Ranks(9, &[(4, basic), (2263, recursive), (25007, doubling), (34861, recursive), (169_625, pair),
            (2_734_000, basic)], pair),
        Ranks(17, &[(4, basic), (14228, recursive), (46084, doubling), (522_139, pair)], basic),
        Ranks(33, &[(4, basic), (27516, recursive), (61693, doubling), (2_483_469, pair)], basic),
        Ranks(65, &[(4, basic), (100_396, recursive)], pair),
        Otherwise(&[(4, basic), (186_926, recursive), (278_259, doubling), (1_500_100, pair)], basic),
    ] }
};
