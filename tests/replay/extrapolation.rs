//! Traces of programs on more ranks than were traced, against those that the generators write.

use std::path::PathBuf;

use pdes_core::Rank;
use predicates::str::contains;
use trace_mmap::{Action, Collective, RankTrace, Trace};

use crate::command_line::{DONE, FAILED, Folder};
use crate::epochs::{TREE, generated, spec};
use crate::forward::digest;
use crate::trace_commands::trace;

/// Largest difference of an amount of computation from that of the generator, which rounds: the traces have whole flops.
const AMOUNT: f64 = 1e-3;

fn extrapolated(folder: &Folder, traces: &[PathBuf], options: &[&str]) -> PathBuf {
    let output = folder.path("extrapolated.pdt");
    let paths: Vec<_> = traces.iter().map(PathBuf::as_path).collect();
    trace(&[&["extrapolate"], options, &["--output"]].concat(), &[&[output.as_path()], &paths[..]].concat())
        .code(DONE);
    output
}

/// Compares the calls of a rank: peers, tags and bytes exactly, amounts up to a part of them.
fn compare(rank: Rank, found: &RankTrace, expected: &RankTrace, amount: f64) {
    assert_eq!(found.len(), expected.len(), "rank {rank}");
    let channel = |trace: &RankTrace, action| match action {
        Action::Send { to, bytes } | Action::Isend { to, bytes, .. } => {
            let channel = trace.outgoing()[to.index()];
            Some((channel.peer, channel.tag.get(), bytes.get()))
        }
        Action::Recv { from, bytes } | Action::Irecv { from, bytes, .. } => {
            let channel = trace.incoming()[from.index()];
            Some((channel.peer, channel.tag.map_or(-1, |tag| tag.get()), bytes.get()))
        }
        _ => None,
    };
    let operation = |trace: &RankTrace, action| -> Option<Collective> {
        if let Action::Collective(id) = action { Some(trace.collective(id).clone()) } else { None }
    };
    for (found_action, expected_action) in found.cursor().zip(expected.cursor()) {
        match (found_action, expected_action) {
            (Action::Compute { flops: found }, Action::Compute { flops: expected }) => {
                assert!((found / expected - 1.0).abs() < amount, "rank {rank}: {found} {expected}");
            }
            (one, other) => {
                assert_eq!(std::mem::discriminant(&one), std::mem::discriminant(&other), "rank {rank}");
                assert_eq!(channel(found, one), channel(expected, other), "rank {rank}");
                assert_eq!(operation(found, one), operation(expected, other), "rank {rank}");
            }
        }
    }
}

/// Extrapolates, and compares some ranks or all with the program as generated.
fn check(
    small: &[Vec<String>],
    large: &[String],
    ranks: u32,
    compared: impl Fn(u32) -> bool,
) -> (Folder, [PathBuf; 2]) {
    check_with(small, large, ranks, &[], |rank| compared(rank).then_some(AMOUNT))
}

/// Extrapolates with options, and compares the ranks for which a part is given by which amounts may differ.
fn check_with(
    small: &[Vec<String>],
    large: &[String],
    ranks: u32,
    options: &[&str],
    compared: impl Fn(u32) -> Option<f64>,
) -> (Folder, [PathBuf; 2]) {
    let folder = Folder::new();
    let generate = |(number, arguments): (usize, &Vec<String>)| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        generated(&folder, &number.to_string(), &arguments)
    };
    let traces: Vec<PathBuf> = small.iter().enumerate().map(generate).collect();
    let expected = generate((small.len(), &large.to_vec()));
    let found = extrapolated(&folder, &traces, &[&[&*format!("--ranks={ranks}")], options].concat());
    let (one, other) = (Trace::load(&found).unwrap(), Trace::load(&expected).unwrap());
    assert_eq!((one.ranks(), other.ranks()), (ranks, ranks));
    for (rank, amount) in (0..ranks).filter_map(|rank| Some((Rank::new(rank), compared(rank)?))) {
        compare(rank, one.rank(rank), other.rank(rank), amount);
    }
    trace(&["check"], &[&found]).code(DONE).stdout(contains("all right"));
    (folder, [found, expected])
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn lu(class: &str, ranks: u32, steps: u32) -> Vec<String> {
    words(&format!("npb-lu --class={class} --ranks={ranks} --steps={steps}"))
}

/// Replays both traces without contention.
fn replays(traces: &[PathBuf; 2]) -> [pdes_replay::Outcome; 2] {
    let tree = TREE.replace("children = 4", "children = 11");
    traces.each_ref().map(|trace| {
        let spec = spec(trace, &tree, &["network.model='contention-free'"]);
        pdes_replay::Simulation::load(&spec).unwrap().replay(&pdes_core::Progress::new(1)).unwrap()
    })
}

#[test]
fn lu_on_1024_ranks_follows_from_16_64_and_256() {
    let small = [16, 64, 256].map(|ranks| lu("C", ranks, 1));
    let (_folder, traces) = check(&small, &lu("C", 1024, 1), 1024, |_| true);
    let [found, expected] = replays(&traces).map(|outcome| outcome.simulated_time().as_secs_f64());
    assert!((found / expected - 1.0).abs() < 1e-4, "{found} {expected}");
}

/// Class E; ranks at all ends and of all shares are compared.
#[test]
fn lu_on_16384_ranks_follows_from_16_64_and_256() {
    let small = [16, 64, 256].map(|ranks| lu("E", ranks, 1));
    check(&small, &lu("E", 16_384, 1), 16_384, |rank| {
        [0, 1, 127].contains(&(rank % 128)) && rank / 128 % 41 == 0
    });
}

#[test]
fn halos_and_transposes_follow_from_smaller_ones() {
    let same = |small: [Vec<String>; 3], large: &[String], ranks: u32| {
        let (_folder, traces) = check(&small, large, ranks, |_| true);
        let [found, expected] = replays(&traces).map(|outcome| digest(&outcome));
        assert_eq!(found, expected);
    };
    let halo = |side: u32, periodic| {
        let periodic = if periodic { "--periodic" } else { "" };
        words(&format!("halo3d --cells=250,310,200 --ranks={side},{side},{side} --iterations=3 {periodic}"))
    };
    same([4, 5, 6].map(|side| halo(side, false)), &halo(9, false), 729);
    same([4, 5, 6].map(|side| halo(side, true)), &halo(8, true), 512);
    let fft = |ranks: u32| words(&format!("alltoall-fft --ranks={ranks} --grid=256,128,256 --steps=3"));
    same([4, 8, 16].map(fft), &fft(128), 128);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let folder = Folder::new();
    let refuse = |traces: &[&PathBuf], options: &[&str], text: &str| {
        let output = folder.path("refused.pdt");
        let paths: Vec<_> = traces.iter().map(|path| path.as_path()).collect();
        trace(
            &[&["extrapolate"], options, &["--output"]].concat(),
            &[&[output.as_path()], &paths[..]].concat(),
        )
        .code(FAILED)
        .stderr(contains(text));
        assert!(!output.exists());
    };
    let ring =
        |ranks: &str| generated(&folder, &format!("ring{ranks}"), &["ring", &format!("--ranks={ranks}")]);
    let (four, five, nine) = (ring("4"), ring("5"), ring("9"));
    refuse(&[&four, &four], &["--ranks=16"], "[4, 4] ranks, expected two different numbers");
    refuse(&[&four, &five], &["--ranks=16", "--grid=4,4"], "16 ranks do not stand in a grid of [4, 4]");
    let sparse = |ranks: &str| {
        generated(
            &folder,
            &format!("sparse{ranks}"),
            &["random-sparse", &format!("--ranks={ranks}"), "--steps=3"],
        )
    };
    refuse(&[&sparse("9"), &sparse("16")], &["--ranks=64"], "the ranks stand in no grid");
    let other = generated(&folder, "other", &["ring", "--ranks=16", "--bytes=999"]);
    refuse(&[&five, &nine, &other], &["--ranks=64"], "follows no law");
    let calls = folder.path("calls.txt");
    std::fs::write(
        &calls,
        "0 init\n0 comm_split new=1 members=0-1\n1 init\n1 comm_split new=1 members=0-1\n",
    )
    .unwrap();
    refuse(&[&calls, &four], &["--ranks=64"], "comm_split, for which there is no rule");
}

/// Faces and points are divided as the generator divides them, so that messages are equal; copies of messages at ends of the grid are taken
/// for work.
#[test]
fn lu_on_1024_ranks_follows_from_64_alone() {
    let (_folder, traces) =
        check_with(&[lu("C", 64, 2)], &lu("C", 1024, 2), 1024, &["--scaling=strong"], |_| Some(1.0));
    let [found, expected] = replays(&traces).map(|outcome| outcome.simulated_time().as_secs_f64());
    assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
}

#[test]
fn halos_follow_from_one_trace_and_how_they_grow() {
    let halo = |cells: &str, side: u32, more: &str| {
        words(&format!("halo3d --cells={cells} --ranks={side},{side},{side} --iterations=3 {more}"))
    };
    let same = |small: Vec<String>, large: &[String], side: u32, scaling: &str| {
        let (_folder, traces) = check_with(&[small], large, side.pow(3), &[scaling], |_| Some(1e-9));
        let [found, expected] = replays(&traces).map(|outcome| digest(&outcome));
        assert_eq!(found, expected);
    };
    for periodic in ["", "--periodic"] {
        let uneven = |side| halo("250,310,202", side, periodic);
        same(uneven(4), &uneven(9), 9, "--scaling=strong");
        let even = |cells, side| halo(cells, side, periodic);
        same(even("256,256,128", 4), &even("256,256,128", 8), 8, "--scaling=strong");
        same(even("100,120,80", 4), &even("200,240,160", 8), 8, "--scaling=weak");
    }
}

#[test]
fn what_one_trace_does_not_tell_is_refused_by_name() {
    let folder = Folder::new();
    let refuse = |trace_of_one: &PathBuf, options: &[&str], text: &str| {
        let output = folder.path("refused.pdt");
        trace(&[&["extrapolate"], options, &["--output"]].concat(), &[&output, trace_of_one])
            .code(FAILED)
            .stderr(contains(text));
        assert!(!output.exists());
    };
    let program = |arguments: &str| {
        let arguments = words(arguments);
        generated(&folder, "program", &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let halo =
        |options: &str| program(&format!("halo3d --cells=250,310,200 --iterations=3 --ranks={options}"));
    let (weak, strong) = (["--ranks=512", "--scaling=weak"], ["--ranks=729", "--scaling=strong"]);
    refuse(&halo("4,4,4"), &weak, "irecv at the place inner, inner, inner follows no law: 31200 on 64 ranks");
    refuse(&halo("4,4,4"), &strong, "irecv would be 6222.2");
    refuse(&halo("4,4,4"), &["--ranks=512"], "or one trace and --scaling");
    refuse(&halo("2,2,2"), &weak, "0 of the traces have ranks at the place inner, first, first, expected 1");
    refuse(&halo("4,4,3"), &weak, "three ranks along dimension 3 do not tell");
    let fft = program("alltoall-fft --ranks=16 --grid=256,128,256 --steps=3");
    refuse(&fft, &weak, "alltoall at the place inner: one trace does not tell how it changes");
    refuse(&fft, &strong, "alltoall at the place inner: one trace does not tell how it changes");
    // Messages along edges of the grid have a whole number of bytes per point of class A on 4 x 4 ranks, but the same on any grid.
    let edges = program("npb-lu --class=A --ranks=16 --steps=1");
    refuse(&edges, &["--ranks=64", "--scaling=strong"], "one trace does not tell how it changes");
    let other = generated(&folder, "other", &["ring", "--ranks=5"]);
    let output = folder.path("refused.pdt");
    trace(&["extrapolate", "--ranks=9", "--scaling=weak", "--output"], &[&output, &edges, &other])
        .code(FAILED)
        .stderr(contains("--scaling weak or strong is for one trace"));
    let halves = |rank| format!("{rank} init\n{rank} {}\n", if rank < 3 { "compute 5" } else { "sleep 5" });
    let halves = folder.write("halves.txt", &(0..6).map(halves).collect::<String>());
    refuse(
        &halves,
        &["--ranks=24", "--scaling=weak"],
        "the ranks stand in the grids [2, 3] and [3, 2] alike",
    );
}
