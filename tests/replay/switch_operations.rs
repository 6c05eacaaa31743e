//! Operations of switches as packets, with several ranks on a host, other messages, threads, processes and checkpoints.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use pdes_core::{Cluster, Progress};
use pdes_replay::{ExecutionMode, Simulation};

use crate::checkpoints::replay_in_parts;
use crate::collectives::call;
use crate::command_line::Folder;
use crate::matrix::digest;
use crate::packets::{TREE, config, generate, load, replay};

const RANKS: usize = 32;
const CREDITS: &str = "packets.queues='credits'";
const IN_NETWORK: [&str; 6] = [
    "mpi.barrier='in_network'",
    "mpi.allreduce='in_network'",
    "mpi.reduce='in_network'",
    "mpi.bcast='in_network'",
    "packets.packet_bytes=512",
    "analysis.links=true",
];

/// Writes a program of 32 ranks, two on each host: operations with roots that lead their hosts and others, between messages.
fn program(folder: &Folder) -> PathBuf {
    let operations = [
        ("allreduce", "3000", "0"),
        ("bcast", "5000", "5"),
        ("reduce", "4000", "18"),
        ("barrier", "0", "0"),
        ("bcast", "100", "0"),
        ("reduce", "100", "31"),
    ];
    let operations = operations.map(|(name, bytes, root)| call(name, RANKS, bytes, root));
    let of_rank = |rank: usize| {
        let (next, last) = ((rank + 5) % RANKS, (rank + RANKS - 5) % RANKS);
        let part = |(number, operation): (usize, &String)| {
            let flops = 1 + rank * 37 % 29 * 1000;
            format!(
                "{rank} irecv {last} {number} 9000\n{rank} isend {next} {number} 9000\n{rank} compute {flops}\n{rank} {operation}\n\
                 {rank} waitall\n"
            )
        };
        let parts: String = operations.iter().enumerate().map(part).collect();
        format!("{rank} init\n{parts}{rank} finalize\n")
    };
    folder.write("program.txt", &(0..RANKS).map(of_rank).collect::<String>())
}

fn with<'a>(settings: &[&'a str]) -> Vec<&'a str> {
    IN_NETWORK.into_iter().chain(settings.iter().copied()).collect()
}

#[test]
fn threads_processes_and_checkpoints_make_no_difference() {
    let folder = Folder::new();
    let (platform, program) = (folder.write("tree.toml", TREE), program(&folder));
    for (routing, queues) in [
        ("packets.routing='minimal'", "packets.queues='fifo'"),
        ("packets.routing='spray'", "packets.queues='fifo'"),
        ("packets.routing='minimal'", CREDITS),
        ("packets.routing='adaptive'", CREDITS),
    ] {
        let settings = with(&[routing, queues, "packets.buffer_bytes=2048"]);
        let whole = replay(&program, &platform, &settings);
        for (threads, processes, regions) in [(2, 1, 4), (4, 1, 16), (1, 2, 7), (2, 3, 16)] {
            let mut config = config(&program, &platform, &settings);
            config.set(&format!("network.regions={regions}")).unwrap();
            config.set(&format!("engine.threads={threads}")).unwrap();
            config.set("parallel.oversubscribe=true").unwrap();
            let spec = config.resolve().unwrap();
            let outcomes = Cluster::in_memory(processes, |mut cluster| {
                let simulation = Simulation::load_on(&mut cluster, &spec, &AtomicU64::new(0)).unwrap();
                let execution = simulation.execution(processes);
                assert!(matches!(execution.mode, ExecutionMode::Regions), "{execution:?}");
                simulation.run(&mut cluster, &Progress::new(threads)).unwrap()
            });
            let first = outcomes.into_iter().next().unwrap().expect("no process panics");
            let found = first.expect("it is the first");
            let how = format!("{routing}, {queues} on {threads} threads of {processes} processes");
            assert_eq!(digest(&found), digest(&whole), "{how}");
            assert!(found.links.is_some() && found.links == whole.links, "{how}: loads of links");
        }
        let parts = Folder::new();
        let (outcome, stops) = replay_in_parts(config(&program, &platform, &settings), &parts);
        assert_eq!(digest(&outcome.unwrap()), digest(&whole), "{routing}, {queues}");
        assert!(stops > 3, "{routing}, {queues}: {stops} stops");
    }
}

#[test]
fn repeated_reductions_of_switches_are_skipped_exactly() {
    let folder = Folder::new();
    let platform = folder.write("tree.toml", TREE);
    let cases = [("--ranks=16", "packets.queues='fifo'"), ("--ranks=32", "packets.queues='fifo'")];
    for (ranks, queues) in cases.into_iter().chain([("--ranks=16", CREDITS), ("--ranks=32", CREDITS)]) {
        let program = generate(&folder, "allreduce-loop", &[ranks, "--iterations=40"]);
        let whole = replay(&program, &platform, &with(&[queues]));
        let forwarded = replay(&program, &platform, &with(&[queues, "engine.fast_forward=true"]));
        assert_eq!(digest(&forwarded), digest(&whole), "{ranks}");
        assert_eq!(forwarded.links, whole.links, "{ranks}");
        let skipped = forwarded.fast_forward.unwrap().skipped_iterations;
        assert!(skipped >= 30, "{ranks}: {skipped} iterations");
    }
}

/// The packet of a barrier waits for those of a message that are before it.
#[test]
fn operations_wait_for_messages() {
    let folder = Folder::new();
    let platform = folder.write("tree.toml", TREE);
    let time = |of_rank: &dyn Fn(usize) -> String| {
        let text: String =
            (0..16).map(|rank| format!("{rank} init\n{}{rank} finalize\n", of_rank(rank))).collect();
        let settings = ["mpi.barrier='in_network'", "network.preset=raw"];
        replay(&folder.write("busy.txt", &text), &platform, &settings).simulated_time().as_picos()
    };
    // Six latencies, and the envelope on each link.
    let alone = 6 * (500_000 + 16 * 80);
    assert_eq!(time(&|rank| format!("{rank} barrier\n")), alone);
    // The message begins when its sender learns of the receive, two latencies after the begin, and the barrier at 1.1 us.
    let busy = time(&|rank| match rank {
        0 => "0 isend 1 0 4096\n0 compute 11000\n0 barrier\n0 waitall\n".to_owned(),
        1 => "1 irecv 0 0 4096\n1 barrier\n1 waitall\n".to_owned(),
        _ => format!("{rank} barrier\n"),
    });
    assert_eq!(busy, 1_000_000 + (4096 + 16) * 80 + alone);
}

#[test]
fn what_critical_paths_do_not_show_is_warned_of() {
    let folder = Folder::new();
    let (platform, program) = (folder.write("tree.toml", TREE), program(&folder));
    let warns = |path: &Path, setting: &str| {
        let warnings = load(path, &platform, &with(&[setting])).warnings();
        warnings.iter().any(|warning| warning.contains("critical paths stay on a rank"))
    };
    assert!(
        warns(&program, "analysis.critical_path=true") && !warns(&program, "analysis.critical_path=false")
    );
}
