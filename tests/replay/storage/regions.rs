//! Storage that regions simulate: the same bits on any number of threads, and with epochs one digest.

use pdes_core::Progress;
use pdes_replay::{Config, Simulation};

use super::{FREE, config, run};
use crate::checkpoints::replay_in_parts;
use crate::command_line::{DONE, Folder, command};
use crate::matrix::digest;

/// A fat tree of 128 hosts with a file system on its last leaf, whose servers have all abilities.
pub(crate) const SERVERS: &str = "topology = { kind = 'fat_tree', levels = [{ children = 8, parents = 1 }, { children = 16, parents = 4 }], \
     speed = '10Gf', bandwidth = '1GBps', latency = '500ns' }\n\
     storage = [{ directory = '/tmp', read = '200MBps', write = '100MBps' }]\n\
     [[file_system]]\n\
     directory = '/fs'\n\
     servers = ['node-[120-123]', 'node-3', 'node-127', 'node-127']\n\
     device = { kind = 'ssd', read = '1GBps', write = '500MBps', latency = '20us' }\n\
     stripe = '64kB'\n\
     transfer = '50kB'\n\
     cache = { bytes = '3MB', dirty = '200kB', read_ahead = '100kB' }\n\
     metadata = { host = 'node-124', rate = 100000 }\n\
     forwarders = ['node-5', 'node-100']\n\
     scheduler = 'by-offset'\n\
     locks = true\n\
     files = { '/fs/input' = '10MB' }\n";

/// Ranks that write, read, sync and sieve parts of files that they share, beside messages.
pub(crate) fn on_servers(ranks: u32) -> String {
    let of_rank = |rank: u32| {
        let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        format!(
            "R init\nR io-open /fs/x 0 striping_factor=3 striping_unit=30000\nR compute {rank}00000\nR io-write_at /fs/x {rank}00000 100000\n\
             R send {next} 0 1000\nR recv {last} 0 1000\nR io-iwrite_at /fs/x {rank}50000 20000 req=1\nR io-read_at /fs/input {rank}0000 200000\n\
             R wait req=1\nR io-sync /fs/x\nR io-read_at /fs/x {next}00000 100000\nR io-set_view /fs/x {rank}000 100000 0:100:1000:9\n\
             R io-write_all /fs/x 9000\nR io-write /fs/x 2000\nR io-open /tmp/y\nR io-write /tmp/y {rank}000\nR io-sync /fs/x\nR io-close /fs/x\n"
        )
        .replace("R ", &format!("{rank} "))
    };
    (0..ranks).map(of_rank).collect()
}

/// Clients and servers of file systems have the bits of one thread on several, without contention and with it; with epochs there is one
/// digest for any number of threads, and from a checkpoint.
#[test]
fn file_systems_are_simulated_by_regions() {
    let folder = Folder::new();
    let (trace, platform) =
        (folder.write("trace.txt", &on_servers(6)), folder.write("servers.toml", SERVERS));
    let with = |settings: &[&str]| {
        config(
            &trace,
            &platform,
            &[&["network.preset='raw'", "mpi.collective_io='romio'"], settings].concat(),
        )
    };
    let replay = |settings: &[&str]| {
        let simulation = Simulation::load(&with(settings).resolve().unwrap()).unwrap();
        assert!(!simulation.warnings().iter().any(|warning| warning.contains("one thread")));
        // With a perturbed schedule the windows are not on trial.
        let is_exact = settings[0] == "network.model='flow'";
        let simulation = simulation.with_jitter(is_exact.then_some(7));
        let outcome = simulation.replay(&Progress::new(simulation.spec().threads)).unwrap();
        assert_eq!(outcome.file_servers.len(), 7);
        (digest(&outcome), outcome.file_servers.clone(), outcome.simulated_time().as_secs_f64())
    };
    let mut times = Vec::new();
    for model in [FREE, "network.model='flow'", "network.epoch_s='auto'"] {
        let one = replay(&[model]);
        for threads in 2..=4 {
            let found = replay(&[model, &format!("engine.threads={threads}")]);
            assert!(found == one, "{model}, {threads} threads");
        }
        times.push(one);
    }
    assert!(times[0].2 < times[1].2, "contention takes time");
    let ratio = times[2].2 / times[1].2;
    assert!((ratio - 1.0).abs() < 0.05, "with epochs {ratio} times as long");
    folder.write("trace.txt", &on_servers(3));
    let one = replay(&["network.epoch_s='auto'"]);
    let (in_parts, stops) = replay_in_parts(with(&["network.epoch_s='auto'"]), &folder);
    let in_parts = in_parts.unwrap();
    assert!(stops > 0 && digest(&in_parts) == one.0 && in_parts.file_servers == one.1, "in {stops} parts");
}

/// Loops with accesses to files are fast-forwarded on several threads, too, without contention and with it.
#[test]
fn iterations_with_files_are_fast_forwarded_on_threads() {
    let folder = Folder::new();
    let platform = folder.write("servers.toml", SERVERS);
    let of_rank = |rank: u32| {
        let (next, last) = ((rank + 1) % 12, (rank + 11) % 12);
        let iteration = format!(
            "R compute 1e6\nR io-open /fs/x\nR io-write_at /fs/x {rank}00000 100000\nR send {next} 0 1000\nR recv {last} 0 1000\n\
             R io-read_at /fs/x {rank}00000 70000\nR io-close /fs/x\nR barrier\n"
        );
        format!("R init\n{}R finalize\n", iteration.repeat(100)).replace("R ", &format!("{rank} "))
    };
    let text = folder.write("loop.txt", &(0..12).map(of_rank).collect::<String>());
    let trace = folder.path("loop.pdt");
    command().args(["trace", "convert"]).arg(text).arg("-o").arg(&trace).assert().code(DONE);
    let replay = |settings: &[&str]| {
        let config = config(
            &trace,
            &platform,
            &[&["network.preset='raw'", "parallel.oversubscribe=true"], settings].concat(),
        );
        let simulation = Simulation::load(&config.resolve().unwrap()).unwrap().with_jitter(Some(7));
        assert!(!simulation.warnings().iter().any(|warning| warning.contains("one thread")));
        let outcome = simulation.replay(&Progress::new(simulation.spec().threads)).unwrap();
        (digest(&outcome), outcome.file_servers, outcome.fast_forward)
    };
    for model in [FREE, "network.model='flow'"] {
        let one = replay(&[model]);
        for threads in ["engine.threads=1", "engine.threads=3"] {
            let found = replay(&[model, threads, "engine.fast_forward=true"]);
            assert!((&found.0, &found.1) == (&one.0, &one.1), "{model} {threads}");
            let skipped = found.2.expect("it was asked for").skipped_iterations;
            assert!(skipped > 30, "{model} {threads}: {skipped} iterations skipped");
        }
    }
}

/// A read beyond the end fails at the client, wherever the servers are; what is missing of a part may be a hole of the file.
#[test]
fn servers_tell_the_ends_of_files() {
    let folder = Folder::new();
    let platform = folder.write("servers.toml", SERVERS);
    let run = |text: &str, settings: &[&str]| {
        let trace = folder.write("trace.txt", text);
        run(config(&trace, &platform, &[&["network.preset='raw'"], settings].concat()))
    };
    let begin = "0 init\n1 init\n0 io-open /fs/input\n1 io-open /fs/input\n0 io-write_at /fs/input 20000000 1000\n0 send 1 0 1\n1 recv 0 0 1\n";
    // Between the 10 MB that exist and the data is a hole.
    let hole = format!("{begin}1 io-read_at /fs/input 9000000 11001000\n");
    let beyond = format!("{begin}1 io-read_at /fs/input 9000000 11001001\n");
    for model in [FREE, "network.model='flow'", "network.epoch_s='auto'"] {
        for threads in ["engine.threads=1", "engine.threads=2"] {
            run(&hole, &[model, threads]).unwrap();
            let error = run(&beyond, &[model, threads]).unwrap_err().to_string();
            assert!(error.contains("rank 1, action 3") && error.contains("which has 20001000 B"), "{error}");
        }
    }
}

/// Accesses to devices of the own host, beside messages: exact contention has the same bits on one thread and on several, and with epochs
/// one digest on any number of threads.
#[test]
fn own_devices_are_simulated_by_regions() {
    const RANKS: u32 = 128;
    let folder = Folder::new();
    let of_rank = |rank: u32| {
        let (next, last) = ((rank + 1) % RANKS, (rank + RANKS - 1) % RANKS);
        format!(
            "{rank} init\n{rank} io-open /tmp/x\n{rank} compute {rank}00000\n{rank} io-write /tmp/x {}0000\n{rank} send {next} 0 10000\n\
             {rank} recv {last} 0 10000\n{rank} io-iwrite /tmp/x 300000 req=1\n{rank} io-read_at /tmp/y 0 200000\n\
             {rank} wait req=1\n{rank} io-write_at_all /tmp/z {rank}0000 10000\n{rank} io-close /tmp/x\n",
            rank % 7 + 1
        )
    };
    let trace = folder.write("trace.txt", &(0..RANKS).map(of_rank).collect::<String>());
    let config = |settings: &[&str]| {
        let mut config = Config::default();
        config.set_path("trace", "path", &trace);
        let platform = "platform.topology={ kind = 'fat_tree', levels = [{ children = 8, parents = 1 }, { children = 16, parents = 4 }], \
                        speed = '10Gf', bandwidth = '1GBps', latency = '500ns' }";
        let storage = "platform.storage=[{ directory = '/tmp', read = '200MBps', write = '100MBps' }]";
        let common = [
            platform,
            storage,
            "network.preset='raw'",
            "mpi.collectives='ompi'",
            "parallel.oversubscribe=true",
        ];
        common.iter().chain(settings).for_each(|setting| config.set(setting).unwrap());
        config
    };
    let load = |settings: &[&str]| Simulation::load(&config(settings).resolve().unwrap()).unwrap();
    let replay = |simulation: &Simulation| {
        let outcome = simulation.replay(&Progress::new(simulation.spec().threads)).unwrap();
        (digest(&outcome), outcome.simulated_time().as_secs_f64())
    };
    let exact = replay(&load(&[]));
    for threads in ["engine.threads=2", "engine.threads=3"] {
        let simulation = load(&[threads]);
        assert!(!simulation.warnings().iter().any(|warning| warning.contains("one thread")));
        // With a perturbed schedule the windows are not on trial.
        assert_eq!(replay(&simulation.with_jitter(Some(7))), exact, "{threads}");
    }
    let epochs = |threads: &str| replay(&load(&["network.epoch_s='auto'", threads]));
    let one = epochs("engine.threads=1");
    assert!((one.1 / exact.1 - 1.0).abs() < 0.02, "{} s, without epochs {} s", one.1, exact.1);
    for threads in ["engine.threads=2", "engine.threads=4"] {
        assert_eq!(epochs(threads), one, "{threads}");
    }
    let (in_parts, stops) = replay_in_parts(config(&["network.epoch_s='auto'"]), &folder);
    assert!(stops > 0);
    assert_eq!(digest(&in_parts.unwrap()), one.0, "in {stops} parts");
}
