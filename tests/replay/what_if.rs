//! Hypotheses about programs, as a user tests them.

use std::fmt::Write as _;
use std::path::Path;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::reference::repository;
use crate::trace_commands::trace;

/// Rank 0 computes 3 ms and sends, rank 1 computes 1 ms and receives.
const TRACE: &str = "0 init\n1 init\n0 location foo 0\n0 compute 3e6\n1 location foo 0\n1 compute 1e6\n\
    0 location exchange 0\n0 send 1 5 984\n1 location exchange 0\n1 recv 0 5 984\n";
const CONFIG: &str = "[trace]\npath = 'trace.txt'\n[network]\npreset = 'raw'\n[platform.topology]\nkind = 'cluster'\n\
    hosts = 2\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n";

/// A folder with a configuration and these hypotheses.
fn folder(hypotheses: &str) -> Folder {
    let folder = Folder::new();
    folder.write("trace.txt", TRACE);
    folder.write("run.toml", CONFIG);
    folder.write("h.toml", hypotheses);
    folder
}

fn what_if(folder: &Folder) -> assert_cmd::Command {
    let mut command = command();
    command.arg("what-if").arg(folder.path("h.toml")).arg("--config").arg(folder.path("run.toml"));
    command.arg("-o").arg(folder.path("results"));
    command
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The list of the summary.
fn summary(folder: &Folder) -> Vec<Value> {
    json(&folder.path("results/summary.json"))["hypotheses"].as_array().unwrap().clone()
}

#[test]
fn hypotheses_are_compared_with_the_program() {
    let folder = folder(
        "[[hypothesis]]\nname = 'identity'\n\
         [[hypothesis]]\nname = 'larger'\ntransform = [{ kind = 'resize', factor = 2, tag = 5 }]\n\
         [[hypothesis]]\nname = 'even foo'\n[[hypothesis.transform]]\nkind = 'balance'\nregion = 'foo'\n\
         [[hypothesis]]\nname = 'silent'\ntransform = [{ kind = 'eliminate', call = 'send' }]\n\
         [[hypothesis]]\nname = 'never'\ntransform = [{ kind = 'scale', factor = 1e30 }]\n",
    );
    let assert = what_if(&folder).args(["--jobs", "2"]).assert().code(FAILED);
    let assert = assert.stderr(contains("1 of 6 replays failed"));
    let output = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    let names: Vec<&str> = output.lines().map(|line| line.split("  ").next().unwrap()).collect();
    // The largest gain first, the failure last.
    assert_eq!(names, ["hypothesis", "original", "even foo", "silent", "identity", "larger", "never"]);
    assert!(output.contains("changes nothing") && output.contains("-33.30 %"), "{output}");

    let found = summary(&folder);
    let names: Vec<&str> = found.iter().map(|result| result["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["original", "identity", "larger", "even foo", "silent", "never"]);
    // 3 ms of computation, two links of 1 us, 984 + 16 bytes at 1 ns each: each number by hand.
    let times = [3_003_000_000_u64, 3_003_000_000, 3_003_984_000, 2_003_000_000, 3_000_000_000];
    for (result, time) in found.iter().zip(times) {
        assert_eq!(result["simulated_time_ps"], time, "{result}");
        let change = time as f64 / 3_003_000_000.0 - 1.0;
        assert!((result["change"].as_f64().unwrap() - change).abs() < 1e-12, "{result}");
        assert_eq!(result["digest"].as_str().unwrap().len(), 64);
    }
    // Rank 1 waits 2 ms for rank 0, unless both compute equally long, or there is no message.
    let waits = found[..5].iter().map(|result| result["wait_states"]["late_sender"].as_f64().unwrap());
    assert_eq!(waits.collect::<Vec<_>>(), [0.002, 0.002, 0.002, 0.0, 0.0]);
    assert_eq!((&found[1]["is_same"], &found[2]["is_same"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!(found[1]["digest"], found[0]["digest"]);
    assert!(found[5]["error"].is_string() && found[5]["simulated_time_s"].is_null());

    let page = std::fs::read_to_string(folder.path("results/what-if.html")).unwrap();
    for words in
        ["even foo saves most: 33.30 %", "\"page\":\"reports/even%20foo.html\"", "late_sender", "exchange"]
    {
        assert!(page.contains(words), "{words}");
    }
    let comparison = std::fs::read_to_string(folder.path("results/reports/even foo.html")).unwrap();
    assert!(comparison.contains("trace.txt") && comparison.contains("trace.txt (even foo)"));
    assert_eq!(json(&folder.path("results/reports/larger.json"))["message_bytes"], 1968);
    // The transformed traces are gone.
    let left = std::fs::read_dir(folder.path("results")).unwrap().count();
    assert_eq!(left, 3);
}

/// Replays a trace with these arguments, and returns the digest.
fn digest(folder: &Folder, trace: &Path, arguments: &[&str]) -> String {
    let report = folder.path("report.json");
    let mut replay = command();
    replay.arg("--config").arg(folder.path("run.toml")).arg("--trace").arg(trace).args(arguments);
    replay.arg("--report").arg(&report).assert().code(DONE);
    json(&report)["digest"].as_str().unwrap().to_owned()
}

/// LU of eight ranks, as text and as folded and flat archives, on one to three threads, by `what-if`, and by `trace transform` and
/// a replay.
#[test]
fn one_digest_however_the_program_is_stored_and_replayed() {
    let folder = folder(
        "[[hypothesis]]\nname = 'identity'\n\
         [[hypothesis]]\nname = 'faster'\ntransform = [{ kind = 'scale', factor = 0.7, ranks = '2-' }]\n\
         [[hypothesis]]\nname = 'changed'\n\
         transform = [{ kind = 'scale', factor = 2, ranks = '0-3' }, { kind = 'balance', over = 'sum' }, \
         { kind = 'resize', factor = 0.5, bytes = '1000-' }, { kind = 'eliminate', ranks = 3, bytes = '0-1000' }]\n\
         [[hypothesis]]\nname = 'rewritten'\n\
         transform = [{ kind = 'aggregate', count = 2, bytes = '0-1000' }, { kind = 'split', parts = 3, bytes = '1000-' }, \
         { kind = 'overlap', early = 2, late = 1 }]\n",
    );
    let lu = repository().join("configs/traces/lu.S.8");
    let platform = repository().join("configs/platforms/torus-5g.toml");
    folder.write("run.toml", &format!("[platform]\nfile = {platform:?}\n"));
    let (folded, flat) = (folder.path("folded.pdt"), folder.path("flat.pdt"));
    trace(&["convert", "--output"], &[&folded, &lu]).code(DONE);
    trace(&["convert", "--flat", "--output"], &[&flat, &lu]).code(DONE);
    let mut digests = Vec::new();
    for (program, threads) in [(&lu, "1"), (&folded, "1"), (&folded, "2"), (&flat, "3")] {
        let mut command = what_if(&folder);
        command.arg("--trace").arg(program).args(["--model=contention-free", "--threads", threads]);
        command.assert().code(DONE).stdout(contains("changes nothing"));
        let found = summary(&folder);
        digests.push([0, 1, 2, 3, 4].map(|place: usize| found[place]["digest"].as_str().unwrap().to_owned()));
        let changed = folder.path("changed.pdt");
        let with = folder.path("h.toml");
        let arguments = ["transform", "--hypothesis=changed", "--threads", threads, "--with"];
        trace(&arguments, &[&with, program, Path::new("--output"), &changed])
            .code(DONE)
            .stdout(contains("8 ranks"));
        trace(&["check"], &[&changed]).code(DONE).stdout(contains("all right"));
        let model = ["--model=contention-free", "--threads", threads];
        assert_eq!(digest(&folder, &changed, &model), digests.last().unwrap()[3]);
    }
    assert!(digests.iter().all(|found| *found == digests[0]), "{digests:?}");
    let [original, identity, faster, changed, rewritten] = &digests[0];
    assert_eq!(original, identity);
    assert!(original != changed && original != faster && faster != changed);
    assert!([original, changed, faster].iter().all(|other| *other != rewritten));
}

#[test]
fn wrong_hypotheses_are_misuse_and_nothing_is_replayed() {
    let one = |keys: &str| format!("[[hypothesis]]\nname = 'a'\n[[hypothesis.transform]]\n{keys}\n");
    for (text, message) in [
        (
            one("kind = 'scale'\nfactor = -1"),
            "h.toml:3: the hypothesis \"a\", transformation 1: scale: found factor = -1",
        ),
        (one("kind = 'ballance'"), "did you mean \"balance\"?"),
        (
            one("kind = 'scale'\nfactor = 2\nregion = 'fo'"),
            "region = \"fo\" matches no computations; the program has \"foo\"",
        ),
        (one("kind = 'remove'"), "call = \"barrier\" matches no collective operations"),
        (one("kind = 'balance'\nranks = '0-2'"), "ranks 0 to 1"),
        ("hypothesis = 3".to_owned(), "h.toml"),
    ] {
        let folder = folder(&text);
        what_if(&folder).assert().code(MISUSE).stdout("").stderr(contains(message));
        assert!(!folder.path("results/summary.json").exists(), "{text}");
    }
    let folder = folder(&one("kind = 'scale'\nfactor = 2"));
    what_if(&folder)
        .arg("--set=network.latencyfactor=1")
        .assert()
        .code(MISUSE)
        .stderr(contains("latency_factor"));
    std::fs::remove_file(folder.path("h.toml")).unwrap();
    what_if(&folder).assert().code(FAILED).stderr(contains("h.toml"));
    let two = "[[hypothesis]]\nname = 'a'\n[[hypothesis]]\nname = 'b'\n";
    let (with, input, output) =
        (folder.write("h.toml", two), folder.path("trace.txt"), folder.path("out.pdt"));
    let transform = |more: &[&str]| {
        trace(&[&["transform"], more, &["--with"]].concat(), &[&with, &input, Path::new("--output"), &output])
    };
    transform(&[]).code(MISUSE).stderr(contains("--hypothesis with one of \"a\", \"b\""));
    transform(&["--hypothesis=c"]).code(MISUSE).stderr(contains("--hypothesis").and(contains("\"b\"")));
    transform(&["--hypothesis=b"]).code(DONE).stdout(contains("2 ranks, 10 actions"));
}

/// The traces of the benchmark of figure 4 of SILAS, as `benches/what-if/run` acquires them: four processes, a master with
/// `MPI_Waitany`, and the regions `foo`, of which the imbalance goes, and `bar`. Computations take their measured processor time.
#[test]
fn balancing_a_region_predicts_the_program_that_was_really_balanced() {
    let folder = folder(
        "[[hypothesis]]\nname = 'identity'\n\
         [[hypothesis]]\nname = 'balanced'\n[[hypothesis.transform]]\nkind = 'balance'\nregion = 'foo'\n",
    );
    folder.write("run.toml", &CONFIG.replace("hosts = 2", "hosts = 4"));
    let data = repository().join("tests/data/hypotheses");
    let mut command = what_if(&folder);
    command
        .arg("--trace")
        .arg(data.join("waitany.txt"))
        .arg("--verify")
        .arg(data.join("waitany-balanced.txt"));
    let assert = command.assert().code(DONE);
    assert.stdout(contains("balanced, as recorded").and(contains("late sender")));
    let found = summary(&folder);
    // The program itself: with either source of outcomes the results are those of the program.
    assert_eq!((&found[1]["is_same"], &found[1]["other_outcomes"]["is_same"]), (&true.into(), &true.into()));
    let balanced = &found[2];
    let names = [&balanced["outcomes"], &balanced["other_outcomes"]["outcomes"]];
    assert_eq!(names, ["reenact", "recorded"]);
    let row = |result: &Value, list: &str, name: &str| {
        let rows = result["verification"][list].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {rows:?}"));
        row["deviation"].as_f64().unwrap()
    };
    let deviations = |result: &Value| {
        let run_time = result["verification"]["run_time"]["deviation"].as_f64().unwrap();
        [run_time, row(result, "sorts", "point-to-point"), row(result, "wait_states", "late_sender")]
    };
    let reenacted = deviations(balanced);
    assert!(reenacted.iter().all(|deviation| deviation.abs() < 0.001), "{reenacted:?}");
    // In the order of the recorded run the master waits for the last result first: a third longer, 3.2 units of 2.4.
    let [run_time, messages, late_sender] = deviations(&balanced["other_outcomes"]);
    assert!((run_time - 0.8 / 7.0).abs() < 0.001, "{run_time}");
    assert!((messages - 1.0 / 3.0).abs() < 0.001 && (late_sender - 1.0 / 3.0).abs() < 0.001);
    let modified = json(&folder.path("results/summary.json"))["modified"].clone();
    assert_eq!((&modified["name"], &modified["verification"]), (&"modified".into(), &Value::Null));
    for report in ["modified.json", "reports/recorded/balanced.json"] {
        assert!(folder.path("results").join(report).exists(), "{report}");
    }
    let mut missing = what_if(&folder);
    missing
        .arg("--verify")
        .arg(folder.path("none.txt"))
        .assert()
        .code(FAILED)
        .stderr(contains("modified program"));
}

/// The heart model of the Performance Expert paper, with Gigabit Ethernet: from the program that exchanges and then calculates, the one
/// that sends the edges first is predicted. Both were recorded (`benches/what-if/run`), on 9 ranks with 48 x 48 cells each.
#[test]
fn overlapping_an_exchange_predicts_the_program_that_was_really_rewritten() {
    let folder = folder(
        "[[hypothesis]]\nname = 'overlapped'\n\
         [[hypothesis.transform]]\nkind = 'move'\nregion = 'cells'\nto = 'halo'\nfraction = 0.918\n\
         [[hypothesis.transform]]\nkind = 'overlap'\nregion = 'halo'\nearly = 3\nlate = 'place'\nindependent = true\n",
    );
    let machine =
        CONFIG.replace("hosts = 2", "hosts = 9").replace("'1GBps'", "'125MBps'").replace("'1us'", "'25us'");
    folder.write("run.toml", &machine.replace("preset = 'raw'", "model = 'flow'\npreset = 'smpi'"));
    let data = repository().join("tests/data/hypotheses");
    let mut command = what_if(&folder);
    command.arg("--trace").arg(data.join("heart.txt")).arg("--verify").arg(data.join("heart-overlapped.txt"));
    command.assert().code(DONE);
    let verification = summary(&folder)[1]["verification"].clone();
    let (gain, of) = (&verification["gain"], |key: &str| verification["gain"][key].as_f64().unwrap());
    // Half of the run time: each of ten steps saves most of four latencies.
    assert!(of("deviation").abs() < 0.05, "{gain}");
    let before =
        json(&folder.path("results/summary.json"))["hypotheses"][0]["simulated_time_s"].as_f64().unwrap();
    assert!(of("modified_s") / before > 0.4, "{gain}");
}

#[test]
fn hypotheses_place_ranks_and_change_the_machine() {
    let folder = folder(
        "[[hypothesis]]\nname = 'half the latency'\nset = ['network.latency_factor=0.5']\n\
         [[hypothesis]]\nname = 'greedy'\ntransform = [{ kind = 'place', mapping = 'greedy' }]\n\
         [[hypothesis]]\nname = 'bisection'\ntransform = [{ kind = 'place', mapping = 'bisection' }]\n\
         [[hypothesis]]\nname = 'by hand'\ntransform = [{ kind = 'place', order = [0, 2, 1, 3, 4, 6, 5, 7] }]\n\
         [[hypothesis]]\nname = 'two'\ntransform = [{ kind = 'place', per_host = 2 }]\n",
    );
    // Each rank sends to the one four behind, on a ring of eight hosts: four hops.
    let rank = |rank: u32| {
        let peer = (rank + 4) % 8;
        format!(
            "{rank} init\n{rank} compute 1e6\n{rank} irecv {peer} 1 84\n{rank} send {peer} 1 84\n{rank} waitall\n"
        )
    };
    folder.write("trace.txt", &(0..8).map(rank).collect::<String>());
    let torus = "[trace]\npath = 'trace.txt'\n[network]\npreset = 'raw'\nmodel = 'contention-free'\n[platform.topology]\nkind = 'torus'\n\
        dims = [8]\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n";
    folder.write("run.toml", torus);
    what_if(&folder).assert().code(DONE);
    let found = summary(&folder);
    let picos = |place: usize| found[place]["simulated_time_ps"].as_u64().unwrap();
    // 1 ms of computation, a link of 1 us for each hop, 84 + 16 bytes.
    assert_eq!([picos(0), picos(1)], [1_004_100_000, 1_002_100_000]);
    let hops = |place: usize| {
        [&found[place]["hop_bytes"]["before"], &found[place]["hop_bytes"]["after"]]
            .map(|n| n.as_u64().unwrap())
    };
    let bytes = 4 * 2 * 84;
    // Partners are neighbours on the ring.
    assert_eq!([hops(2), hops(3)], [[4 * bytes, bytes]; 2]);
    assert_eq!([picos(2), picos(3)], [1_001_100_000; 2]);
    assert_eq!((hops(4)[0], picos(4)), (4 * bytes, 1_004_100_000));
    // Two ranks on a host, and four hosts: partners are two hops away, and share nothing.
    assert_eq!((hops(5)[1], found[1]["hop_bytes"].is_null()), (2 * bytes, true));
    for (text, message) in [
        ("set = ['trace.ranks=2']", "sections other than trace, output and engine can be changed"),
        ("set = ['network.latencyfactor=1']", "the hypothesis \"a\": "),
        ("transform = [{ kind = 'place', order = [1, 0] }]", "order has 2 ranks, the program has 8"),
    ] {
        folder.write("h.toml", &format!("[[hypothesis]]\nname = 'a'\n{text}\n"));
        what_if(&folder).assert().code(MISUSE).stderr(contains(message));
    }
    let (with, input, output) = (folder.path("h.toml"), folder.path("trace.txt"), folder.path("out.pdt"));
    let arguments: &[&Path] = &[&with, &input, Path::new("--output"), &output];
    trace(&["transform", "--with"], arguments).code(MISUSE).stderr(contains("not part of a trace"));
}

/// Partners four ranks apart exchange data by collective operations of communicators of two, on a ring of eight hosts; the messages
/// between two ranks say little, and the contrary: neighbours talk to each other.
#[test]
fn mappings_count_messages_of_collective_operations() {
    let place = |name: &str, keys: &str| {
        format!("[[hypothesis]]\nname = '{name}'\ntransform = [{{ kind = 'place', mapping = {keys} }}]\n")
    };
    let folder = folder(
        &(place("messages", "'greedy'")
            + &place("greedy", "'greedy', traffic = 'all'")
            + &place("bisection", "'bisection', traffic = 'all'")),
    );
    let rank = |rank: u32| {
        let (pair, next, last) = (rank % 4, (rank + 1) % 8, (rank + 7) % 8);
        format!(
            "{rank} init\n{rank} comm_split new={} members={pair},{}\n{rank} irecv {last} 1 4\n{rank} send {next} 1 4\n{rank} waitall\n\
             {rank} alltoall 1000 1000 6 6 comm={}\n",
            pair + 1,
            pair + 4,
            pair + 1
        )
    };
    folder.write("trace.txt", &(0..8).map(rank).collect::<String>());
    let torus = "[trace]\npath = 'trace.txt'\n[network]\npreset = 'raw'\nmodel = 'contention-free'\n[platform.topology]\nkind = 'torus'\n\
        dims = [8]\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n[mpi]\ncommunicators_cost = false\n";
    folder.write("run.toml", torus);
    what_if(&folder).assert().code(DONE);
    let found = summary(&folder);
    let hops = |place: usize| {
        let hops = &found[place]["hop_bytes"];
        (hops["before"].as_u64().unwrap(), hops["after"].as_u64().unwrap())
    };
    // Eight messages of four bytes, each over one link, and eight of 1000, each over four.
    assert_eq!(hops(1), (32, 32));
    assert_eq!([hops(2).0, hops(3).0], [32 + 4 * 8000; 2]);
    // Partners are neighbours.
    assert!(hops(2).1 < 8000 + 4 * 32 && hops(3).1 < 8000 + 4 * 32, "{:?} {:?}", hops(2), hops(3));
    let time = |place: usize| found[place]["simulated_time_ps"].as_u64().unwrap();
    assert!(time(2) < time(0) && time(1) == time(0), "{} {} {}", time(0), time(1), time(2));
    for (keys, message) in [
        ("per_host = 1, traffic = 'all'", "place: traffic is what a mapping counts: add mapping"),
        ("mapping = 'greedy', traffic = 'none'", "expected \"messages\" or \"all\""),
    ] {
        let text = format!("[[hypothesis]]\nname = 'a'\ntransform = [{{ kind = 'place', {keys} }}]\n");
        folder.write("h.toml", &text);
        what_if(&folder).assert().code(MISUSE).stderr(contains(message));
    }
}

/// SimGrid's default algorithms of these operations are the linear ones: the same messages in the same order. So a replay of the program
/// with messages in place of an operation ends at the same time, whatever the network.
#[test]
fn collective_operations_take_as_long_as_their_messages() {
    let operations = [
        "barrier",
        "reduce 30000 5000 2 6",
        "gather 900 900 1 6 6",
        "gatherv S 3000 1 70000 900 20 3 6 6",
        "scatter 900 900 1 6 6",
        "scatterv 3000 1 70000 900 20 S 3 6 6",
        "alltoallv 9 3000 1 70000 900 20 9 S S S S S 6 6",
        "reducescatter 700 700 700 700 700 0 6",
        "scan 3000 500 6",
        "exscan 90000 500 6",
        "neighbor_alltoallv 6 6 to=NEXT scounts=100000 from=LAST rcounts=100000",
        "allgather 3000 3000 6 6",
    ];
    let sizes = ["3000", "1", "70000", "900", "20"];
    let mut trace = String::new();
    for (rank, size) in sizes.iter().enumerate() {
        writeln!(trace, "{rank} init").unwrap();
        for (number, operation) in operations.iter().enumerate() {
            let (next, last) = (((rank + 1) % 5).to_string(), ((rank + 4) % 5).to_string());
            let operation = operation.replace("NEXT", &next).replace("LAST", &last).replace('S', size);
            // Ranks come at different times.
            let flops = 1e5 * ((rank * 7 + number * 3) % 5) as f64;
            writeln!(trace, "{rank} location op{number} 0\n{rank} compute {flops}\n{rank} {operation}")
                .unwrap();
        }
    }
    let hypothesis = |number: usize| {
        format!(
            "[[hypothesis]]\nname = '{number}'\ntransform = [{{ kind = 'point_to_point', region = 'op{number}' }}]\n"
        )
    };
    let folder = folder(&(0..operations.len()).map(hypothesis).collect::<String>());
    folder.write("trace.txt", &trace);
    for model in ["contention-free", "flow"] {
        let machine = CONFIG.replace("hosts = 2", "hosts = 5");
        folder.write(
            "run.toml",
            &machine.replace("preset = 'raw'", &format!("preset = 'raw'\nmodel = '{model}'")),
        );
        what_if(&folder).assert().code(DONE);
        let found = summary(&folder);
        for (operation, result) in operations.iter().zip(&found[1..]) {
            assert_eq!(result["simulated_time_ps"], found[0]["simulated_time_ps"], "{model}: {operation}");
            assert!(result["is_same"] == false, "{model}: {operation}");
        }
    }
}

/// With outcomes as recorded, a program whose calls cannot depend on time is replayed once.
#[test]
fn only_programs_that_may_depend_on_time_are_replayed_twice() {
    let folder = folder("[[hypothesis]]\nname = 'identity'\n");
    let any_source = TRACE.replace("1 recv 0 5 984", "1 recv -555 5 984 source=0");
    let test = TRACE.replace("1 recv 0 5 984", "1 irecv 0 5 984 6 req=1\n1 testall req=1 done=all");
    for (trace, depends_on_time) in [(TRACE, false), (&any_source, true), (&test, true)] {
        folder.write("trace.txt", trace);
        what_if(&folder)
            .arg("--set=mpi.outcomes=recorded")
            .assert()
            .code(DONE)
            .stdout(contains("changes nothing"));
        let other = folder.path("results/reports/reenact");
        assert_eq!(other.join("identity.json").exists(), depends_on_time, "{trace}");
        for result in summary(&folder) {
            assert_eq!(result["outcomes"], "recorded");
            assert_eq!(result["other_outcomes"].is_null(), !depends_on_time, "{trace}{result}");
        }
    }
}

/// By hand: at half of the frequency the computations of 3 and 1 ms take twice as long, at an eighth of the power above 100 W.
#[test]
fn a_region_at_another_frequency_takes_other_time_and_energy() {
    let folder = folder("[[hypothesis]]\nname = 'slower'\nset = ['energy.frequency={ foo = 0.5 }']\n");
    let energy = "[energy]\nenabled = true\nby = ['region', 'host']\nhosts = { '*' = { idle = 100, all_cores = 200 } }\n";
    folder.write("run.toml", &format!("{CONFIG}{energy}"));
    what_if(&folder).assert().code(DONE).stdout(contains("energy").and(contains("1.300600 J")));
    let near = |found: &Value, expected: f64| {
        let found = found.as_f64().unwrap();
        assert!((found / expected - 1.0).abs() < 1e-9, "{found}, expected {expected}");
    };
    let [original, slower] = &summary(&folder)[..] else { panic!("two programs") };
    near(&original["energy_j"], 2.0 * 100.0 * 3.003e-3 + 100.0 * 4e-3);
    near(&slower["simulated_time_s"], 6.003e-3);
    near(&slower["energy_j"], 2.0 * 100.0 * 6.003e-3 + 100.0 * 8e-3 / 8.0);
    let energy = &json(&folder.path("results/reports/slower.json"))["energy"];
    let foo = energy["regions"].as_array().unwrap().iter().find(|region| region["name"] == "foo").unwrap();
    near(&foo["energy_j"], 100.0 * 8e-3 * (1.0 + 1.0 / 8.0));
    near(&energy["hosts"][1]["energy_j"], 100.0 * 6.003e-3 + 100.0 * 2e-3 / 8.0);
    let run = |frequency: &str| {
        command().arg("run").arg(folder.path("run.toml")).args(["--set", frequency]).assert()
    };
    run("energy.frequency={ foo = 0 }").code(MISUSE).stderr(contains("found 0, expected a factor above 0"));
    run("energy.frequency={ bar = 2 }").code(DONE).stderr(contains("no rank enters the region \"bar\""));
}
