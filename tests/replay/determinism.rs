//! Determinism: the digest is the same for any number of threads and any bound on run-ahead,
//! and with schedules that are perturbed at random.

use std::path::{Path, PathBuf};

use pdes_core::Progress;
use pdes_replay::{Config, Digest, Simulation};

use crate::matrix::results;
use crate::reference;
use crate::shared::shared;

/// Returns the digest and all results of each rank.
fn digest(trace: &Path, platform: &Path, settings: &[String], jitter: Option<u64>) -> (Digest, Vec<u8>) {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", platform);
    for setting in settings {
        config.set(setting).unwrap();
    }
    // More threads than there are cores, too.
    config.set("parallel.oversubscribe=true").unwrap();
    let mut simulation = Simulation::load(&config.resolve().unwrap()).unwrap();
    if let Some(seed) = jitter {
        simulation = simulation.with_jitter(Some(seed));
    }
    results(&simulation.replay(&Progress::new(simulation.spec().threads)).unwrap())
}

/// Replays in many configurations, with and without contention, and expects one digest of each.
fn check(trace: &Path, platform: &Path) {
    check_with(trace, platform, &[]);
}

fn check_with(trace: &Path, platform: &Path, settings: &[String]) {
    let digest = |trace, platform, more: &[String], jitter| {
        digest(trace, platform, &[settings, more].concat(), jitter)
    };
    let flow = "network.model='flow'".to_owned();
    let expected = digest(trace, platform, std::slice::from_ref(&flow), None);
    for seed in 0..3 {
        let disturbed = digest(trace, platform, std::slice::from_ref(&flow), Some(seed));
        assert!(disturbed == expected, "{} {settings:?} with contention, seed {seed}", trace.display());
    }
    let contention_free = "network.model='contention-free'".to_owned();
    let expected = digest(trace, platform, std::slice::from_ref(&contention_free), None);
    for threads in [1, 2, 3, 7] {
        let run_aheads = ["'auto'", "0", "1e-6", "1e3"];
        // Two of the bounds for each number of threads, or all.
        let (first, every) = if reference::is_campaign() { (0, 1) } else { (threads % 2, 2) };
        for run_ahead in run_aheads.into_iter().skip(first).step_by(every) {
            let settings = [
                contention_free.clone(),
                format!("engine.threads={threads}"),
                format!("engine.run_ahead_s={run_ahead}"),
            ];
            let found = digest(trace, platform, &settings, None);
            assert!(found == expected, "{} {settings:?}", trace.display());
        }
        for seed in 0..2 {
            let settings = [contention_free.clone(), format!("engine.threads={threads}")];
            let disturbed = digest(trace, platform, &settings, Some(seed));
            assert!(disturbed == expected, "{} {settings:?} seed {seed}", trace.display());
        }
    }
}

pub(crate) fn committed_platform(name: &str) -> PathBuf {
    reference::repository().join("configs/platforms").join(name)
}

#[test]
fn the_committed_trace() {
    let trace = reference::repository().join("configs/traces/lu.S.8");
    for platform in ["torus-5g.toml", "backbone-gbe.toml"] {
        check(&trace, &committed_platform(platform));
    }
}

/// Random programs mix all kinds of sends, receives and collectives.
#[test]
fn random_programs() {
    let folder = reference::data("uncontended");
    for row in reference::rows(&folder.join("random.csv")) {
        check(&folder.join("random").join(&row["trace"]), &folder.join(&row["platform"]));
    }
}

/// Tests depend on simulated time, and share a counter.
#[test]
fn programs_that_test_requests() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("tests.txt");
    std::fs::write(&trace, tests_of_requests()).unwrap();
    check(&trace, &committed_platform("crossbar-gbe.toml"));
}

pub(crate) fn tests_of_requests() -> String {
    let mut text = String::new();
    for rank in 0..6 {
        let (next, previous) = ((rank + 1) % 6, (rank + 5) % 6);
        text.push_str(&format!("{rank} init\n"));
        for round in 0..20 {
            text.push_str(&format!(
                "{rank} irecv {previous} {round} 70000\n{rank} compute {}\n",
                rank * 100_000
            ));
            text.push_str(&format!(
                "{rank} test {previous} {rank} {round}\n{rank} isend {next} {round} 70000\n"
            ));
            text.push_str(&format!("{rank} test {previous} {rank} {round}\n{rank} waitall\n"));
        }
    }
    text
}

/// Every call that depends on time or proceeds beside the program, with outcomes that differ from the trace.
#[test]
fn programs_of_all_calls() {
    let folder = tempfile::tempdir().unwrap();
    for master in [0, 3] {
        let trace = folder.path().join(format!("calls-{master}.txt"));
        std::fs::write(&trace, all_calls(master)).unwrap();
        for platform in ["crossbar-gbe.toml", "torus-5g.toml"] {
            check(&trace, &committed_platform(platform));
            check_with(&trace, &committed_platform(platform), &["mpi.progress='calls'".to_owned()]);
        }
    }
}

/// Collective operations that depend on the arrival of ranks, on the world and in two halves at once, beside the program, and among
/// probes of the program, which share their cost with them.
pub(crate) fn operations_among_probes() -> String {
    let mut text = String::new();
    for rank in 0..6_u32 {
        let mut line = |line: String| text.push_str(&format!("{rank} {line}\n"));
        let half = rank / 3 + 1;
        line("init".to_owned());
        line(format!("comm_split new={half} members={}-{}", half * 3 - 3, half * 3 - 1));
        for round in 0..3_u32 {
            line(format!("compute {}", (rank * 7 + round * 5) % 11 * 200_000));
            line(format!("bcast {} {} 6", 10_u32.pow(round + 2), round));
            line(format!("ibcast 20000 {round} 6 req=1"));
            line(format!("compute {}", (rank * 3 + round) % 5 * 100_000));
            line(format!("iprobe {} {round} done=no", (rank + 1) % 6));
            line(format!("bcast 500 0 6 comm={half}"));
            line("wait req=1".to_owned());
            line(
                format!("reduce {} 50000 {round} 6 comm={half}", 10_u32.pow(round + 2))
                    .replace(" 3 6", " 2 6"),
            );
            line("alltoall 1000 1000 6 6".to_owned());
        }
    }
    text
}

#[test]
fn operations_that_serve_ranks_as_they_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("arrivals.txt");
    std::fs::write(&trace, operations_among_probes()).unwrap();
    for bcast in ["arrival_pattern_aware", "arrival_pattern_aware_wait", "arrival_scatter", "automatic"] {
        let choices = [("bcast", bcast), ("reduce", "arrival_pattern_aware"), ("alltoall", "pair_rma")];
        let mut settings: Vec<String> =
            choices.iter().map(|(operation, name)| format!("mpi.{operation}='{name}'")).collect();
        if bcast == "arrival_pattern_aware" {
            settings.push("mpi.eager_below_bytes=2000".to_owned());
        }
        check_with(&trace, &committed_platform("torus-5g.toml"), &settings);
    }
}

/// A master receives results as they arrive, with all kinds of waits; six ranks in two halves work beside it.
pub(crate) fn all_calls(master: u32) -> String {
    let mut text = String::new();
    for rank in 0..6_u32 {
        let mut line = |line: String| text.push_str(&format!("{rank} {line}\n"));
        let (half, number) = (rank / 3 + 1, rank % 3);
        let next = rank / 3 * 3 + (number + 1) % 3;
        let previous = rank / 3 * 3 + (number + 2) % 3;
        line("init".to_owned());
        line(format!("comm_split new={half} members={}-{}", half * 3 - 3, half * 3 - 1));
        line(format!("send_init {next} 5 70000 6 req=90 comm={half}"));
        line(format!("recv_init {previous} 5 70000 6 req=91 comm={half}"));
        for round in 0..6_u32 {
            line(format!("compute {}", (rank * 7 + round * 5) % 11 * 20_000));
            line("startall req=90,91".to_owned());
            line(format!("iallreduce 3000 5000 0 req=92 comm={half}"));
            line(format!("ibcast 90000 {} 6 req=93", round % 6));
            line(format!("compute {}", (rank * 5 + round * 3) % 7 * 30_000));
            line("testsome req=90,91 done=-".to_owned());
            line("testany req=92,93 done=-".to_owned());
            if rank == master {
                take_results(master, round, &mut line);
            } else {
                line(format!(
                    "{} {master} 8 {}",
                    ["ssend", "bsend", "rsend", "send"][(rank % 4) as usize],
                    100 + rank
                ));
                line(format!("isend {master} 9 {} req=1", 1000 * rank));
                line("waitany req=1 done=1".to_owned());
                line(format!("send {master} 10 64"));
            }
            line("waitall req=90,91,92,93".to_owned());
            line(format!(
                "neighbor_alltoall 500 500 6 6 to={0} from={1} comm={half}",
                (number + 1) % 3,
                (number + 2) % 3
            ));
        }
        line("request_free req=90".to_owned());
        line("request_free req=91".to_owned());
        line("comm_free".to_owned() + &format!(" comm={half}"));
        line("finalize".to_owned());
    }
    text
}

fn take_results(master: u32, round: u32, line: &mut impl FnMut(String)) {
    let workers: Vec<u32> = (0..6).filter(|&rank| rank != master).collect();
    line("iprobe -555 8 done=no".to_owned());
    for _ in &workers {
        line("recv -555 8 1000".to_owned());
    }
    for worker in &workers {
        line(format!("irecv {worker} 9 9000 req={worker}"));
    }
    let list = |workers: &[u32]| workers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    match round % 3 {
        0 => {
            for done in 0..workers.len() {
                line(format!("waitany req={} done={}", list(&workers[done..]), workers[done]));
                line("compute 10000".to_owned());
            }
        }
        1 => {
            line(format!("waitsome req={} done={}", list(&workers), list(&workers[..2])));
            line(format!("testall req={} done=all", list(&workers[2..])));
        }
        _ => {
            line(format!("test req={} done=-", workers[0]));
            line(format!("test req={0} done={0}", workers[0]));
            line(format!("waitall req={}", list(&workers[1..])));
        }
    }
    for &worker in &workers {
        line(format!("probe {worker} 10"));
        line(format!("recv {worker} 10 64"));
    }
}

/// Two ranks fail: the one that fails first in simulated time is reported, whichever fails first in the engine.
#[test]
fn the_first_failure() {
    let text = "0 init\n1 init\n2 init\n0 irecv 1 1 10\n0 compute 1000\n0 send 2 2 100\n0 wait 1 0 1\n\
                1 compute 1000000\n1 send 0 1 100\n2 recv 0 2 10\n";
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("failures.txt");
    std::fs::write(&trace, text).unwrap();
    for threads in [1, 2, 3] {
        for run_ahead in ["'auto'", "1e3"] {
            for seed in 0..10 {
                let mut config = Config::default();
                config.set_path("trace", "path", &trace);
                config.set_path("platform", "file", &committed_platform("crossbar-gbe.toml"));
                config.set("network.model='contention-free'").unwrap();
                config.set(&format!("engine.threads={threads}")).unwrap();
                config.set("parallel.oversubscribe=true").unwrap();
                config.set(&format!("engine.run_ahead_s={run_ahead}")).unwrap();
                let simulation =
                    Simulation::load(&config.resolve().unwrap()).unwrap().with_jitter(Some(seed));
                let error = simulation.replay(&Progress::new(threads)).unwrap_err().to_string();
                assert!(error.contains("failures.txt:10: rank 2, action 1"), "{error}");
            }
        }
    }
}

#[test_with::shared]
fn all_real_traces() {
    let traces = shared("traces");
    let unpacked = reference::unpack(&traces);
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(unpacked.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() >= 19, "found {} traces", names.len());
    for trace in names {
        let platform = committed_platform("fattree-hdr.toml");
        let contention_free = "network.model='contention-free'".to_owned();
        let expected = digest(&trace, &platform, std::slice::from_ref(&contention_free), None);
        for threads in [2, 3, 7] {
            let settings = [contention_free.clone(), format!("engine.threads={threads}")];
            let found = digest(&trace, &platform, &settings, None);
            assert!(found == expected, "{} {threads}", trace.display());
        }
    }
}
