//! Generated programs: NPB LU against its acquired traces, and the guarantees of all generators.

use std::collections::BTreeMap;
use std::fs;

use flate2::read::GzDecoder;
use pdes_core::{Bytes, Rank};
use proptest::prelude::*;
use trace_mmap::{
    ArchiveWriter, CheckReport, Collective, Direction, Item, LoadOptions, Op, Request, check, flatten,
};
use trace_tools::TextLine;
use trace_tools::generate::{
    AllreduceLoop, AllreduceLoopParameters, AlltoallFft, AlltoallFftParameters, CheckpointRestart,
    CheckpointRestartParameters, Class, FilePattern, GenerateError, Generator, Halo3d, Halo3dParameters, Ior,
    IorParameters, Jitter, JitterScope, MasterWorker, MasterWorkerParameters, Mdtest, MdtestParameters,
    NpbLu, NpbLuParameters, RandomSparse, RandomSparseParameters, Recording, Ring, RingParameters, Traffic,
    TrafficParameters, TrafficPattern,
};

mod channels;
mod rendezvous;

use channels::assert_sends_match_receives;
use rendezvous::assert_runs_without_buffers;

use crate::shared::shared;

fn lu(class: Class, ranks: u32) -> NpbLu {
    NpbLu::new(NpbLuParameters::new(class, ranks)).expect("the count is legal")
}

fn lu_steps(class: Class, ranks: u32, steps: u32) -> NpbLu {
    NpbLu::new(NpbLuParameters { steps, ..NpbLuParameters::new(class, ranks) }).expect("the count is legal")
}

fn programs(generator: &dyn Generator) -> Vec<Vec<Item>> {
    (0..generator.ranks()).map(|rank| generator.rank(Rank::new(rank))).collect()
}

/// Writes an operation as the acquired traces do, counts instead of bytes; `None` for computation.
fn acquired_line(rank: u32, op: &Op) -> Option<String> {
    let name = |peer: &Option<Rank>| peer.expect("no peer is null").get();
    let doubles = |bytes: &Bytes| bytes.get() / 8;
    Some(match op {
        Op::Compute { .. } => return None,
        Op::Init => format!("{rank} init"),
        Op::Finalize => format!("{rank} finalize"),
        Op::Send { peer, tag, bytes } => format!("{rank} send {} {tag} {} 0", name(peer), doubles(bytes)),
        Op::Recv { peer, tag: Some(tag), bytes } => {
            format!("{rank} recv {} {tag} {} 0", name(peer), doubles(bytes))
        }
        Op::Irecv { peer, tag: Some(tag), bytes } => {
            format!("{rank} irecv {} {tag} {} 0", name(peer), doubles(bytes))
        }
        Op::Wait(Request { direction: Direction::Receive, peer, tag: Some(tag) }) => {
            format!("{rank} wait {} {rank} {tag}", name(peer))
        }
        Op::Collective(Collective::Barrier) => format!("{rank} barrier"),
        Op::Collective(Collective::Bcast { count, root, datatype }) => {
            format!("{rank} bcast {count} {root} {}", datatype.id())
        }
        Op::Collective(Collective::Allreduce { count, flops, datatype }) => {
            format!("{rank} allreduce {count} {flops} {}", datatype.id())
        }
        other => panic!("{other:?} never occurs in LU"),
    })
}

#[test_with::shared]
fn lu_communicates_as_the_acquired_traces_line_by_line() {
    let traces = shared("traces");
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (class, ranks) in [(Class::S, 8), (Class::W, 16), (Class::A, 8)] {
        let name = format!("lu.{class}.{ranks}");
        let archive = fs::File::open(traces.join(format!("{name}.tar.gz"))).expect("the archive opens");
        tar::Archive::new(GzDecoder::new(archive)).unpack(dir.path()).expect("the archive unpacks");
        let lu = lu(class, ranks);
        for rank in 0..ranks {
            let file = dir.path().join(&name).join(format!("rank-{rank}.txt"));
            let text = fs::read_to_string(file).expect("the file is text");
            let lines =
                text.lines().map(str::trim_end).filter(|line| line.split(' ').nth(1) != Some("compute"));
            let program = lu.rank(Rank::new(rank));
            let mut generated = flatten(&program).filter_map(|op| acquired_line(rank, op));
            for (index, line) in lines.enumerate() {
                let found = generated.next();
                assert_eq!(found.as_deref(), Some(line), "{name}, rank {rank}, communication {index}");
            }
            assert_eq!(generated.next(), None, "{name}, rank {rank} ends");
        }
    }
}

/// The acquired class A trace has computations at the same places, except short ones that the tracer recorded only now and then.
#[test]
fn lu_computes_where_the_acquired_trace_does() {
    let lu = NpbLu::new(NpbLuParameters {
        recording: Recording::Receives,
        steps: 1,
        ..NpbLuParameters::new(Class::W, 16)
    })
    .expect("the count is legal");
    let plane = |rank: u32, index: usize| {
        let program = lu.rank(Rank::new(rank));
        let loops: Vec<&Item> = program.iter().filter(|item| matches!(item, Item::Loop { .. })).collect();
        let Item::Loop { count, body } = loops[index] else { unreachable!("only loops are kept") };
        let letters = flatten(body).map(|op| match op {
            Op::Recv { .. } => 'R',
            Op::Send { .. } => 'S',
            Op::Compute { .. } => 'C',
            other => panic!("{other:?} in a sweep"),
        });
        (*count, letters.collect::<String>())
    };
    assert_eq!(plane(5, 0), (31, "RCRCSS".to_owned()), "an inner rank");
    assert_eq!(plane(0, 0), (30, "SSC".to_owned()), "the first rank starts the lower sweep");
    assert_eq!(plane(0, 1), (30, "RCRC".to_owned()), "and ends the upper one");
    assert_eq!(plane(3, 0), (31, "RCS".to_owned()), "a corner that the wave passes");
}

/// Sums the computation of a program.
fn flops(program: &[Item]) -> f64 {
    flatten(program).map(|op| if let Op::Compute { flops } = op { *flops } else { 0.0 }).sum()
}

/// A step of class A is 1984.77 * 64^3 - 10923.3 * 64^2 + 27770.9 * 64 - 144010 = 477_187_037.7 operations.
#[test]
fn lu_computes_what_npb_counts() {
    let step = Class::A.flops_per_step();
    assert!((step - 477_187_037.7).abs() < 0.1, "{step}");
    for ranks in [1, 8, 36] {
        let with = |steps| {
            let parameters =
                NpbLuParameters { steps, flops_per_value: 0.0, ..NpbLuParameters::new(Class::A, ranks) };
            let lu = NpbLu::new(parameters).expect("the count is legal");
            programs(&lu).iter().map(|program| flops(program)).sum::<f64>()
        };
        let difference = (with(12) - with(2)) / 10.0;
        assert!((difference / step - 1.0).abs() < 1e-3, "{ranks} ranks: {difference} for {step}");
    }
}

/// 16,384 ranks, 128 x 128, 301 steps of 2 x 1018 planes. A plane sends 2 x 127 x 128 messages. With all computations but
/// those after the last send: 2 x 32,512 calls, 16,384 planes computed, 127 x 127 short ones between receives and between sends
/// each, less what merges at the corners: 113,666 x 612,836 = 69.66e9, and 0.1e9 for the right-hand sides.
#[test]
fn lu_class_e_has_the_published_size() {
    let sweeps = 113_666 * 301 * 2 * 1018_u64;
    let actions = lu(Class::E, 16_384).actions();
    assert!((60_000_000_000..70_000_000_000).contains(&actions), "{actions}");
    assert!(actions > sweeps && actions - sweeps < 110_000_000, "{actions} for {sweeps}");
}

/// Published are the counts, in millions, of traces with compute, send and receive actions. They record every gap, but for
/// the one of class B on 8 ranks.
#[test]
fn lu_has_the_published_action_counts() {
    let published =
        [(Class::B, [1.73, 4.89, 10.60, 22.83, 47.3]), (Class::C, [3.24, 7.78, 16.87, 36.33, 75.25])];
    for (class, counts) in published {
        for (ranks, millions) in [8, 16, 32, 64, 128].into_iter().zip(counts) {
            let odd_one = (class, ranks) == (Class::B, 8);
            let recording = if odd_one { Recording::ReceivesAndSends } else { Recording::EveryGap };
            let parameters = NpbLuParameters { recording, ..NpbLuParameters::new(class, ranks) };
            let lu = NpbLu::new(parameters).expect("the count is legal");
            let ratio = lu.actions() as f64 / (millions * 1e6);
            assert!((0.997..1.003).contains(&ratio), "class {class} on {ranks} ranks: {ratio}");
        }
    }
}

#[test]
fn lu_counts_like_its_programs() {
    for (class, ranks) in
        [(Class::S, 1), (Class::S, 2), (Class::W, 6), (Class::A, 8), (Class::A, 72), (Class::C, 2916)]
    {
        for recording in [Recording::Receives, Recording::ReceivesAndSends, Recording::EveryGap] {
            let lu = NpbLu::new(NpbLuParameters { recording, ..NpbLuParameters::new(class, ranks) })
                .expect("the count is legal");
            let sum: u64 = programs(&lu).iter().filter_map(|program| Item::count_all(program)).sum();
            assert_eq!(lu.actions(), sum, "class {class} on {ranks} ranks, {recording:?}");
        }
    }
}

#[test]
fn two_computations_never_meet() {
    for ranks in [1, 2, 4, 6, 8, 16] {
        for program in programs(&lu_steps(Class::S, ranks, 3)) {
            let ops: Vec<&Op> = flatten(&program).collect();
            let computes = |op: &Op| matches!(op, Op::Compute { .. });
            assert!(!ops.windows(2).any(|pair| computes(pair[0]) && computes(pair[1])), "{ranks} ranks");
        }
    }
}

#[test]
fn lu_matches_on_every_process_grid() {
    for (class, ranks) in
        [(Class::S, 1), (Class::S, 2), (Class::S, 12), (Class::W, 16), (Class::C, 2916), (Class::E, 16_384)]
    {
        assert_sends_match_receives(&lu(class, ranks));
    }
    for ranks in [1, 2, 4, 6, 8, 9, 12, 16] {
        assert_runs_without_buffers(&lu_steps(Class::S, ranks, 2));
        assert_runs_without_buffers(&lu_steps(Class::S, ranks, 1));
    }
}

#[test]
fn illegal_counts_name_the_nearest_legal_ones() {
    let refused = |class, ranks| NpbLu::new(NpbLuParameters::new(class, ranks)).err();
    let count = |class, ranks, below, above| Some(GenerateError::RankCount { class, ranks, below, above });
    assert_eq!(refused(Class::A, 3), count(Class::A, 3, Some(2), Some(4)));
    assert_eq!(refused(Class::A, 10), count(Class::A, 10, Some(9), Some(12)));
    assert_eq!(refused(Class::C, 3025), count(Class::C, 3025, Some(2916), None));
    assert_eq!(refused(Class::S, 0), count(Class::S, 0, None, Some(1)));
    let error = refused(Class::A, 10).map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(error, "NPB LU class A does not run on 10 ranks: the nearest legal counts are 9 and 12");
    assert_eq!("e".parse(), Ok(Class::E));
    assert_eq!("X".parse::<Class>(), Err(GenerateError::Class { found: "X".to_owned() }));
}

#[test]
fn a_cut_run_is_the_same_run_with_fewer_steps() {
    let steps = |steps| Item::count_all(&lu_steps(Class::E, 16_384, steps).rank(Rank::new(500)));
    let [one, two, three] = [1, 2, 3].map(|count| steps(count).expect("it fits"));
    let exchanges = 4 * 3;
    let computes_between = 1 + 4 * 2;
    assert_eq!(three - two, 7 * 2 * 1018 + exchanges + computes_between);
    let norms_of_the_warm_up = 2;
    assert_eq!(one, two - (three - two) + norms_of_the_warm_up);
}

fn halo(processes: [u32; 3], periodic: bool) -> Halo3d {
    let cells = [7, 6, 5];
    Halo3d::new(Halo3dParameters { cells, processes, periodic, iterations: 3, ..Halo3dParameters::default() })
        .expect("the parameters are legal")
}

/// 7 x 6 x 5 cells on 3 x 2 x 1 processes: rank 0 has 3 x 3 x 5 cells, a face of 15 to both neighbours.
#[test]
fn a_halo_has_the_faces_of_its_cells() {
    let program = halo([3, 2, 1], false).rank(Rank::new(0));
    let lines: Vec<String> =
        flatten(&program).map(|op| TextLine { rank: Rank::new(0), op }.to_string()).collect();
    let body = [
        "irecv 1 0 120 6",
        "irecv 3 2 120 6",
        "isend 1 1 120 6",
        "isend 3 3 120 6",
        "waitall",
        "compute 360",
    ];
    assert_eq!(lines[1..7], body.map(|line| format!("0 {line}")));
    assert_eq!(lines.len(), 1 + 3 * 6 + 1);
}

/// 8 x 4 x 4 points on 2 ranks: blocks of 4 x 4 x 2 points, two doubles each; 64 points per rank, levels 3, 2 and 2 of 5
/// operations, and 6 per point.
#[test]
fn a_transform_cuts_slabs() {
    let parameters =
        AlltoallFftParameters { ranks: 2, grid: [8, 4, 4], steps: 2, ..AlltoallFftParameters::default() };
    let fft = AlltoallFft::new(parameters).expect("the parameters are legal");
    let program = fft.rank(Rank::new(1));
    let lines: Vec<String> =
        flatten(&program).map(|op| TextLine { rank: Rank::new(1), op }.to_string()).collect();
    assert_eq!(lines[1..4], ["1 compute 1984", "1 alltoall 64 64 0 0", "1 compute 640"]);
    assert_eq!(fft.actions(), 2 * (2 + 2 * 3));
}

#[test]
fn a_loop_of_reductions_counts_in_closed_form() {
    let parameters =
        AllreduceLoopParameters { ranks: 5, iterations: 7, ..AllreduceLoopParameters::default() };
    let reductions = AllreduceLoop::new(parameters).expect("the parameters are legal");
    assert_eq!(reductions.actions(), 5 * (2 + 7 * 2));
    assert_runs_without_buffers(&reductions);
}

fn master(ranks: u32, tasks: u64) -> MasterWorker {
    let parameters = MasterWorkerParameters { ranks, tasks, ..MasterWorkerParameters::default() };
    MasterWorker::new(parameters).expect("the parameters are legal")
}

/// Five tasks for three workers: a whole round and one of two.
#[test]
fn a_master_hands_out_tasks_in_turn() {
    let lines = |rank| {
        let rank = Rank::new(rank);
        let program = master(4, 5).rank(rank);
        flatten(&program).map(|op| TextLine { rank, op }.to_string()).collect::<Vec<_>>()
    };
    let (task, result) = (|to| format!("0 send {to} 0 1024 6"), "0 recv -555 1 8192 6".to_owned());
    let end = |to| format!("0 send {to} 2 0 6");
    let rounds = [vec![task(1), task(2), task(3)], vec![result.clone(); 3], vec![task(1), task(2)]].concat();
    let expected =
        [vec!["0 init".to_owned()], rounds, vec![result; 2], vec![end(1), end(2), end(3)]].concat();
    assert_eq!(lines(0)[..expected.len()], expected);
    let task = ["3 recv 0 0 1024 6", "3 compute 10000000", "3 send 0 1 8192 6"];
    assert_eq!(lines(3), [&["3 init"], &task[..], &["3 recv 0 2 0 6", "3 finalize"]].concat());
    assert_eq!(lines(2).len(), 1 + 2 * 3 + 2);
}

/// Jitter makes tasks uneven, and a check finds nothing wrong with the archive.
#[test]
fn a_master_with_uneven_tasks_is_a_good_archive() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let pdt = dir.path().join("master.pdt");
    let (master, jitter) = (master(6, 23), Jitter::new(3, 0.5, JitterScope::Action).expect("a fraction"));
    let mut writer = ArchiveWriter::create(&pdt, 6, 1).expect("the archive is created");
    for rank in (0..6).map(Rank::new) {
        let program = jitter.apply(rank, master.rank(rank)).expect("the program is short");
        writer.write_rank(rank, &program).expect("the program is right");
    }
    assert_eq!(writer.finish().expect("the archive is written").actions, master.actions());
    let trace = trace_tools::load(&pdt, &LoadOptions::default()).expect("the archive loads");
    assert_eq!(check(&trace, None), CheckReport::default());
}

#[test]
fn every_generator_reads_back_from_text() {
    let sparse = RandomSparse::new(RandomSparseParameters { rounds: 2, ..RandomSparseParameters::default() });
    let ring = Ring::new(RingParameters { rounds: 3, ..RingParameters::default() });
    let (sparse, ring, halo) = (sparse.expect("legal"), ring.expect("legal"), halo([2, 2, 2], true));
    let fft = AlltoallFft::new(AlltoallFftParameters::default()).expect("legal");
    let (lu, master) = (lu_steps(Class::S, 8, 2), master(5, 11));
    for generator in [&sparse as &dyn Generator, &ring, &halo, &fft, &lu, &master] {
        let mut text = String::new();
        for (rank, program) in programs(generator).iter().enumerate() {
            let rank = Rank::new(rank as u32);
            flatten(program).for_each(|op| text += &format!("{}\n", TextLine { rank, op }));
        }
        let trace = trace_tools::from_text(&text).expect("the text is a trace");
        assert_eq!(trace.actions(), generator.actions());
        assert_eq!((trace.warnings().len(), trace.unreceived()), (0, None));
    }
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let halo = |parameters| Halo3d::new(parameters).err();
    let default = Halo3dParameters::default();
    assert_eq!(
        halo(Halo3dParameters { cells: [8, 2, 8], processes: [2, 3, 2], ..default }),
        Some(GenerateError::EmptySubdomain { dimension: 1, cells: 2, processes: 3 })
    );
    assert_eq!(
        halo(Halo3dParameters { cells: [1 << 20; 3], processes: [1 << 11; 3], ..default }),
        Some(GenerateError::TooManyRanks { grid: [1 << 11; 3] })
    );
    let ring = |parameters| Ring::new(parameters).err();
    let flops = GenerateError::Amount { parameter: "flops", value: -1.0 };
    assert_eq!(ring(RingParameters { flops: -1.0, ..RingParameters::default() }), Some(flops));
    let few = GenerateError::TooFewRanks { kind: "a ring", ranks: 1, least: 2 };
    assert_eq!(ring(RingParameters { ranks: 1, ..RingParameters::default() }), Some(few));
    let max_bytes = Bytes::new(7);
    let sparse = RandomSparse::new(RandomSparseParameters { max_bytes, ..RandomSparseParameters::default() });
    assert_eq!(sparse.err(), Some(GenerateError::EmptyRange { min: 8, max: 7 }));
    assert_eq!(Jitter::new(1, 1.5, JitterScope::Rank).err(), Some(GenerateError::Spread { spread: 1.5 }));
    let long = Jitter::new(1, 0.5, JitterScope::Action)
        .and_then(|jitter| jitter.apply(Rank::new(0), lu_steps(Class::F, 1 << 16, 4000).rank(Rank::new(0))));
    assert!(matches!(long, Err(GenerateError::TooManyToUnroll { rank: 0, most: 8_388_608, .. })), "{long:?}");
}

/// Returns the receivers of the messages that each rank sends.
fn receivers(parameters: TrafficParameters) -> Vec<Vec<u32>> {
    let traffic = Traffic::new(parameters).expect("the parameters are legal");
    let of_program = |program: &Vec<Item>| {
        let sends = flatten(program).filter_map(|op| match op {
            Op::Isend { peer: Some(peer), .. } => Some(peer.get()),
            _ => None,
        });
        sends.collect()
    };
    programs(&traffic).iter().map(of_program).collect()
}

#[test]
fn traffic_has_its_patterns() {
    let traffic =
        |pattern| TrafficParameters { pattern, ranks: 12, messages: 20, ..TrafficParameters::default() };
    let incast = receivers(TrafficParameters { messages: 1, ..traffic(TrafficPattern::Incast) });
    assert_eq!(incast, std::iter::once(vec![]).chain(vec![vec![0]; 11]).collect::<Vec<_>>());
    let outcast = receivers(TrafficParameters { messages: 1, ..traffic(TrafficPattern::Outcast) });
    assert_eq!(outcast[0], (1..12).collect::<Vec<_>>());
    for (rank, receivers) in receivers(traffic(TrafficPattern::Tornado)).into_iter().enumerate() {
        assert_eq!(receivers, [(rank as u32 + 5) % 12; 20]);
    }
    for (rank, receivers) in receivers(traffic(TrafficPattern::Adversarial)).into_iter().enumerate() {
        let next = (rank as u32 / 4 + 1) % 3;
        assert!(receivers.iter().all(|receiver| receiver / 4 == next), "{rank}: {receivers:?}");
        assert!((0..4).all(|place| receivers.contains(&(next * 4 + place))), "{rank}: {receivers:?}");
    }
    for receivers in receivers(traffic(TrafficPattern::Permutation)) {
        assert!(receivers.windows(2).all(|pair| pair[0] == pair[1]), "{receivers:?}");
    }
    let hot = receivers(TrafficParameters { hot_share: 0.5, ..traffic(TrafficPattern::HotSpot) });
    let to_hot = hot[1..].iter().flatten().filter(|&&receiver| receiver == 0).count();
    // Half of 220 messages and a twelfth of the rest; the deviation is below 8.
    assert!((95..145).contains(&to_hot), "{to_hot}");
}

#[test]
fn bad_traffic_is_refused() {
    let refused = |parameters| Traffic::new(parameters).unwrap_err();
    let adversarial =
        TrafficParameters { pattern: TrafficPattern::Adversarial, group: 5, ..TrafficParameters::default() };
    assert_eq!(refused(adversarial), GenerateError::Indivisible { parameter: "ranks", whole: 16, part: 5 });
    let share = TrafficParameters { hot_share: 1.5, ..TrafficParameters::default() };
    assert_eq!(refused(share), GenerateError::Share { parameter: "hot_share", value: 1.5 });
    let unknown: Result<TrafficPattern, _> = "outburst".parse();
    assert_eq!(unknown, Err(GenerateError::Pattern { found: "outburst".to_owned() }));
}

#[test]
fn jitter_changes_computation_only_and_within_its_spread() {
    let program = lu_steps(Class::S, 8, 2).rank(Rank::new(3));
    for scope in [JitterScope::Rank, JitterScope::Action] {
        let jitter = Jitter::new(7, 0.2, scope).expect("a fraction");
        let noisy = jitter.apply(Rank::new(3), program.clone()).expect("the program is short");
        assert_eq!(Item::count_all(&noisy), Item::count_all(&program));
        let mut factors = BTreeMap::new();
        for (before, after) in flatten(&program).zip(flatten(&noisy)) {
            match (before, after) {
                (Op::Compute { flops: before }, Op::Compute { flops: after }) => {
                    assert!(
                        (0.799 * before - 1.0..=1.201 * before + 1.0).contains(after),
                        "{before} {after}"
                    );
                    *factors.entry((1000.0 * after / before).round() as u64).or_insert(0) += 1;
                }
                (before, after) => assert_eq!(before, after),
            }
        }
        let alike = factors.values().max().copied().unwrap_or(0);
        let all: usize = factors.values().sum();
        assert_eq!(alike > all / 2, scope == JitterScope::Rank, "{alike} of {all} factors are alike");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn halos_match(processes in prop::array::uniform3(1_u32..5), periodic: bool) {
        let halo = halo(processes, periodic);
        assert_sends_match_receives(&halo);
        assert_runs_without_buffers(&halo);
        let cells: f64 = programs(&halo).iter().map(|program| flops(program)).sum::<f64>() / (3.0 * 8.0);
        prop_assert_eq!(cells, 7.0 * 6.0 * 5.0);
    }

    #[test]
    fn random_partners_match(seed: u64, ranks in 2_u32..40, partners in 1_u32..6, steps in 0_u32..5) {
        let parameters = RandomSparseParameters { seed, ranks, partners, steps, rounds: 2, ..RandomSparseParameters::default() };
        let sparse = RandomSparse::new(parameters).expect("the parameters are legal");
        assert_sends_match_receives(&sparse);
        assert_runs_without_buffers(&sparse);
    }

    #[test]
    fn traffic_matches(
        pattern in prop::sample::select(TrafficPattern::ALL.to_vec()),
        seed: u64,
        groups in 1_u32..8,
        group in 1_u32..6,
        messages in 1_u32..5,
        hot_share in 0.0..1.0,
    ) {
        let ranks = (groups * group).max(3);
        let group = if ranks == groups * group { group } else { 1 };
        let parameters = TrafficParameters { pattern, seed, ranks, messages, group, hot_share, rounds: 2, ..TrafficParameters::default() };
        let traffic = Traffic::new(parameters).expect("the parameters are legal");
        assert_sends_match_receives(&traffic);
        assert_runs_without_buffers(&traffic);
    }

    #[test]
    fn masters_match(ranks in 2_u32..9, tasks in 0_u64..40) {
        let master = master(ranks, tasks);
        assert_sends_match_receives(&master);
        assert_runs_without_buffers(&master);
        let expected = 2 * u64::from(ranks) + 5 * tasks + 2 * u64::from(ranks - 1);
        prop_assert_eq!(master.actions(), expected);
    }

    #[test]
    fn rings_match(ranks in 2_u32..20, rounds in 0_u64..5) {
        let ring = Ring::new(RingParameters { ranks, rounds, ..RingParameters::default() }).expect("legal");
        assert_sends_match_receives(&ring);
        assert_runs_without_buffers(&ring);
        let sum: u64 = programs(&ring).iter().filter_map(|program| Item::count_all(program)).sum();
        prop_assert_eq!(ring.actions(), sum);
    }
}

fn lines_of(generator: &dyn Generator, rank: u32) -> Vec<String> {
    let rank = Rank::new(rank);
    flatten(&generator.rank(rank)).map(|op| TextLine { rank, op }.to_string()).collect()
}

/// Two ranks share a file of two segments, and each reads what the other one wrote.
#[test]
fn ior_writes_and_reads_blocks() {
    let (block, transfer) = (Bytes::new(4000), Bytes::new(2000));
    let access = FilePattern { transfer, ..IorParameters::default().access };
    let shared = IorParameters {
        ranks: 2,
        segments: 2,
        block,
        access: access.clone(),
        reorder: 1,
        ..IorParameters::default()
    };
    let phase = |call: &str, begins: [u64; 2]| {
        let access = format!("1 {call} /scratch/ior 2000");
        let segment =
            |begin: u64| [format!("1 io-seek /scratch/ior {begin}"), access.clone(), access.clone()];
        let begin = ["1 barrier", "1 io-open /scratch/ior 0"].map(str::to_owned);
        [&begin[..], &segment(begins[0]), &segment(begins[1]), &["1 io-close /scratch/ior".to_owned()]]
            .concat()
    };
    let whole = |phases: &[Vec<String>]| {
        [vec!["1 init".to_owned()], phases.concat(), vec!["1 finalize".to_owned()]].concat()
    };
    let ior = Ior::new(shared.clone()).expect("the parameters are legal");
    let expected = whole(&[phase("io-write", [4000, 12_000]), phase("io-read", [0, 8000])]);
    assert_eq!(lines_of(&ior, 1), expected);
    assert_eq!(ior.actions(), 2 * expected.len() as u64);
    let collective = IorParameters {
        access: FilePattern { collective: true, ..access.clone() },
        read: false,
        ..shared.clone()
    };
    let ior = Ior::new(collective).expect("the parameters are legal");
    assert_eq!(lines_of(&ior, 1), whole(&[phase("io-write_all", [4000, 12_000])]));
    let own = IorParameters {
        access: FilePattern { file_per_rank: true, sync: true, ..access.clone() },
        segments: 1,
        ..shared.clone()
    };
    let lines = lines_of(&Ior::new(own).expect("the parameters are legal"), 1);
    let expected =
        ["1 comm_create_group comm=0 new=2 members=1", "1 barrier", "1 io-open /scratch/ior.1 0 comm=2"];
    assert_eq!(lines[1..4], expected);
    assert!(lines.contains(&"1 io-sync /scratch/ior.1 comm=2".to_owned()));
    assert!(lines.contains(&"1 io-read /scratch/ior.0 2000 comm=2".to_owned()), "{lines:?}");
    let refused = |parameters| Ior::new(parameters).expect_err("the parameters are not legal").to_string();
    let uneven = IorParameters {
        access: FilePattern { transfer: Bytes::new(3000), ..access.clone() },
        ..shared.clone()
    };
    assert_eq!(refused(uneven), "block is 4000, expected a multiple of 3000");
    let large = IorParameters {
        block: Bytes::new(1 << 60),
        access: FilePattern { transfer: Bytes::new(1 << 60), ..access },
        ..shared
    };
    assert!(refused(large).contains("the size of the file is"));
}

#[test]
fn checkpoints_follow_iterations() {
    let parameters = CheckpointRestartParameters {
        ranks: 3,
        checkpoints: 2,
        iterations: 2,
        bytes: Bytes::new(250),
        access: FilePattern { transfer: Bytes::new(100), ..CheckpointRestartParameters::default().access },
        restart: true,
        ..CheckpointRestartParameters::default()
    };
    let program = CheckpointRestart::new(parameters).expect("the parameters are legal");
    let access = |call: &str| {
        let accesses = [100, 100, 50].map(|bytes| format!("2 {call} /scratch/checkpoint {bytes}"));
        let before = ["2 io-open /scratch/checkpoint 0", "2 io-seek /scratch/checkpoint 500"];
        [&before.map(str::to_owned)[..], &accesses, &["2 io-close /scratch/checkpoint".to_owned()]].concat()
    };
    let iteration = ["2 compute 1000000000", "2 allreduce 1 0 0"].map(str::to_owned);
    let checkpoint = [&iteration[..], &iteration, &access("io-write")].concat();
    let ends = ["2 init", "2 finalize"].map(|end| vec![end.to_owned()]);
    let expected = [&ends[0][..], &access("io-read"), &checkpoint, &checkpoint, &ends[1]].concat();
    assert_eq!(lines_of(&program, 2), expected);
    assert_eq!(program.actions(), 3 * expected.len() as u64);
    let parameters = MdtestParameters { ranks: 2, files: 2, ..MdtestParameters::default() };
    let opens = Mdtest::new(parameters).expect("the parameters are legal");
    let calls = |number| {
        [
            format!("1 io-open /scratch/mdtest.1.{number} 0 comm=2"),
            format!("1 io-close /scratch/mdtest.1.{number} comm=2"),
        ]
    };
    assert_eq!(lines_of(&opens, 1)[3..7], [calls(0), calls(1)].concat());
}
