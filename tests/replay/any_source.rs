//! Programs whose course depends on whose messages their receives from any source take.

use std::path::Path;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, is_empty};

use crate::command_line::{DONE, FAILED, Folder, command};

const CLUSTER: &str =
    "topology = { kind = 'cluster', hosts = 16, speed = '1Gf', bandwidth = '1.25GBps', latency = '5us' }";

/// The order of two results that a master takes from anyone and answers, and what it does before each answer.
fn master(sources: [u32; 2], receive: &str, bytes: u32) -> String {
    let result = |source: u32| {
        let receive = receive.replace('S', &source.to_string()).replace('B', &bytes.to_string());
        let lines = receive.split(';').map(|line| format!("0 {line}\n"));
        format!("{}0 send {source} 1 {bytes}\n", lines.collect::<String>())
    };
    let worker = |rank: u32, flops: &str| {
        format!(
            "{rank} init\n{rank} compute {flops}\n{rank} send 0 1 {bytes}\n{rank} recv 0 1 {bytes}\n{rank} finalize\n"
        )
    };
    let results: String = sources.into_iter().map(result).collect();
    format!("0 init\n{results}0 finalize\n{}{}", worker(1, "1e5"), worker(2, "1e6"))
}

fn replay(trace: &Path, platform: &Path, more: &[&str]) -> assert_cmd::assert::Assert {
    let mut run = command();
    run.arg("--trace").arg(trace).arg("--platform").arg(platform).arg("-q").args(more).assert()
}

fn stdout(assert: assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// Large and small messages; the master takes the result of rank 2 first, as in the recorded run, although rank 1 is earlier.
#[test]
fn answers_keep_the_recorded_order_and_a_warning_says_so() {
    let folder = Folder::new();
    let platform = folder.write("platform.toml", CLUSTER);
    let receives = [
        "recv -555 1 B source=S",
        "irecv -555 1 B req=1 source=S;wait req=1",
        "irecv -555 1 B req=1 source=S;testany req=1 done=1",
        "irecv -555 -444 B req=7 source=S;waitany req=7 done=7",
    ];
    for bytes in [800_000, 800] {
        let named = folder.write("named.txt", &master([2, 1], "recv S 1 B", bytes));
        for receive in receives {
            let any = folder.write("any.txt", &master([2, 1], receive, bytes));
            for model in ["flow", "contention-free", "epochs"] {
                let model: &[&str] = match model {
                    "epochs" => &["--model=flow", "--set=network.epoch_s='auto'"],
                    model => &["--model", model],
                };
                let free = [model, &["--set=mpi.test_s=0"]].concat();
                let expected = stdout(replay(&named, &platform, &free).code(DONE).stderr(is_empty()));
                for threads in ["--threads=1", "--threads=2"] {
                    let found = replay(&any, &platform, &[&free, &[threads][..]].concat()).code(DONE);
                    let found = found.stderr(
                        contains("2 receive(s) or probe(s) from any source (MPI_ANY_SOURCE) of rank 0 took")
                            .and(contains("mpi.outcomes = \"recorded\"")),
                    );
                    assert_eq!(stdout(found), expected, "{receive}, {bytes} B, {model:?}");
                }
            }
            let recorded = ["--set=mpi.test_s=0", "--set=mpi.outcomes=recorded"];
            replay(&any, &platform, &recorded).code(DONE).stderr(is_empty());
        }
    }
}

#[test]
fn probes_keep_the_recorded_order_and_a_warning_says_so() {
    let folder = Folder::new();
    let platform = folder.write("platform.toml", CLUSTER);
    let named = folder.write("named.txt", &master([2, 1], "recv S 1 B", 800_000));
    let probed = folder.write("probed.txt", &master([2, 1], "probe -555 1 source=S;recv S 1 B", 800_000));
    let expected = stdout(replay(&named, &platform, &[]).code(DONE));
    let found =
        replay(&probed, &platform, &[]).code(DONE).stderr(contains("2 receive(s) or probe(s) from any"));
    assert_eq!(stdout(found), expected);
}

/// Without the recorded sources nothing tells that the master answers: where messages do not fit, the error says why.
#[test]
fn errors_tell_that_messages_come_in_the_order_of_time() {
    let folder = Folder::new();
    let platform = folder.write("platform.toml", CLUSTER);
    let trace = folder.write("trace.txt", &master([2, 1], "recv -555 1 B", 800_000));
    let advice =
        "rank 0 receives from any source (MPI_ANY_SOURCE), and takes messages in the order of simulated time";
    let deadlock = || contains("deadlock in the program").and(contains(advice));
    let lacks = contains("for which the trace needs their sources (source=)");
    replay(&trace, &platform, &[]).code(FAILED).stderr(deadlock().and(lacks));
    let recorded = ["--set=mpi.outcomes=recorded"];
    let lacks = contains("although mpi.outcomes = \"recorded\": the trace lacks their recorded sources");
    replay(&trace, &platform, &recorded).code(FAILED).stderr(deadlock().and(lacks));
    // The second receive of a message gets that of another rank, which is longer, or the master names other ranks than it hears from.
    let sizes = "0 init\n0 recv -555 1 4\n0 recv 2 1 40\n0 recv -555 1 4\n0 recv 1 1 40000\n1 init\n1 compute 1e5\n1 send 0 1 4\n1 send 0 1 40000\n\
                 2 init\n2 compute 1e6\n2 send 0 1 4\n2 send 0 1 40\n";
    let trace = folder.write("sizes.txt", sizes);
    replay(&trace, &platform, &[]).code(FAILED).stderr(contains("has room for 4 B").and(contains(advice)));
    let chain = "0 init\n0 recv -555 1 8 source=2\n0 recv -555 1 8 source=1\n0 send 2 1 8\n0 recv 2 2 8\n1 init\n1 recv 0 1 8\n1 send 0 1 8\n\
                 2 init\n2 send 0 1 8\n2 recv 0 1 8\n2 send 0 2 8\n";
    let chain = folder.write("chain.txt", &format!("{chain}0 send 1 1 8\n"));
    let has = contains("; mpi.outcomes = \"recorded\" takes the messages of the recorded run\n");
    replay(&chain, &platform, &[]).code(FAILED).stderr(contains(advice).and(has));
    // A deadlock that has nothing to do with it says nothing of it.
    let cycle =
        folder.write("cycle.txt", "0 init\n0 recv 1 1 8\n0 send 1 1 8\n1 init\n1 recv 0 1 8\n1 send 0 1 8\n");
    replay(&cycle, &platform, &[]).code(FAILED).stderr(contains("MPI_ANY_SOURCE").not());
}

/// A persistent request is started again as what it is, also where another request has completed in its place.
#[test]
fn persistent_requests_stay_what_they_are() {
    let folder = Folder::new();
    let platform = folder.write("platform.toml", CLUSTER);
    let replayed = |name: &str, completion: &str| {
        let trace = format!(
            "0 init\n0 recv_init 1 0 8 6 req=0\n0 startall req=0\n0 irecv 2 5 8 6 req=2\n{completion}\
             0 startall req=0\n0 wait req=0\n0 finalize\n\
             1 init\n1 compute 1e6\n1 send 0 0 8 6\n1 compute 1e6\n1 send 0 0 8 6\n1 finalize\n\
             2 init\n2 send 0 5 8 6\n2 finalize\n"
        );
        stdout(replay(&folder.write(name, &trace), &platform, &[]).code(DONE))
    };
    // In this run the message of rank 2 comes first.
    let other = replayed("other.txt", "0 waitany req=0,2 done=0\n0 waitany req=2 done=2\n");
    assert_eq!(other, replayed("both.txt", "0 waitall req=0,2\n"));
}
