//! Mistakes of users: each is named, with the remedy, and none is silent.

use std::path::{Path, PathBuf};

use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, ends_with, is_empty, starts_with};
use trace_mmap::{ConvertOptions, Provenance, WorkMetric};
use trace_tools::convert;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::reference::repository;
use crate::shared::shared;

/// Two hosts of 1 Gflop/s.
const PAIR: &str =
    "[topology]\nkind = 'cluster'\nhosts = 2\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n";

const MESSAGE: &str = "0 init\n1 init\n0 send 1 0 984\n1 recv 0 0 984\n";

/// Returns the whole of stderr of a command that ends with this status.
fn stderr(status: i32, arguments: &[&str]) -> String {
    let assert = command().args(arguments).assert().code(status);
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A program in which two ranks poll 200 times, every microsecond, before they send what the other polls for.
fn polling(folder: &Folder) -> PathBuf {
    let rank = |rank: u32| {
        let (peer, polls) =
            (1 - rank, format!("{rank} test req=0 done=-\n{rank} compute 1000\n").repeat(200));
        format!(
            "{rank} init\n{rank} irecv {peer} 5 984 req=0\n{polls}{rank} send {peer} 5 984\n{rank} wait req=0\n"
        )
    };
    folder.write("trace.txt", &format!("{}{}", rank(0), rank(1)))
}

#[test]
fn polls_of_recorded_programs_are_free_and_those_of_simgrid_grow() {
    let folder = Folder::new();
    let (trace, platform) = (polling(&folder), folder.write("pair.toml", PAIR));
    let replay = |trace: &Path, more: &[&str]| {
        let mut replay = command();
        replay.args(["run", text(trace), "--platform", text(&platform), "--set=network.preset=raw", "-q"]);
        replay.args(more).assert().code(DONE)
    };
    let growing = "WARN 100 % of the time of all ranks is the modelled cost of tests, by mpi.test_s; it grows with each failed poll, as \
                   in SimGrid: mpi.test_grows = false keeps it constant; mpi.test_s = 0 leaves it out\n";
    replay(&trace, &[]).stderr(ends_with(growing));
    replay(&trace, &["--set=mpi.test_s=0"]).stderr("").stdout("simulated time: 0.000203000 s\n");

    let archive = folder.path("trace.pdt");
    let work_metric = Some(WorkMetric::CpuTime { rate: 1e9 });
    let provenance = Some(Provenance { work_metric, ..Provenance::default() });
    convert(&trace, &archive, &ConvertOptions { provenance, ..ConvertOptions::default() }).unwrap();
    replay(&archive, &[]).stderr("").stdout("simulated time: 0.000203000 s\n");
    let constant = "by mpi.test_s; mpi.test_s = 0 leaves it out\n";
    replay(&archive, &["--set=mpi.test_s=1 ms"]).stderr(ends_with(constant));
}

#[test]
fn ranks_beyond_the_hosts_are_warned_of() {
    let folder = Folder::new();
    let ranks: String = (0..3).map(|rank| format!("{rank} init\n{rank} compute 1e9\n")).collect();
    let (trace, platform) = (folder.write("trace.txt", &ranks), folder.write("pair.toml", PAIR));
    let run = ["run", text(&trace), "--platform", text(&platform), "-q"];
    let cyclic = "3 ranks for 2 hosts, platform.placement = \"block\"; take a larger platform, or choose hosts with platform.hosts\n";
    let sharing =
        format!(" WARN node-0 has 2 ranks for 1 core, computations at the same time share cores: {cyclic}");
    assert_eq!(stderr(DONE, &run), sharing);
    let free = stderr(DONE, &[&run[..], &["--model=contention-free"]].concat());
    let apart = "the model \"contention-free\" gives each rank a core of its own";
    assert_eq!(free, format!(" WARN node-0 has 2 ranks for 1 core, {apart}: {cyclic}"));
}

#[test]
fn the_model_of_schedules_has_no_platform() {
    let folder = Folder::new();
    let goal = folder.write("pair.goal", "num_ranks 1\nrank 0 {\nl1: calc 100\n}\n");
    let run = ["run", text(&goal), "--model=loggops", "-q"];
    let hint = "pdes-replay: the model loggops, for GOAL schedules, has [loggops] in place of a platform: leave --platform (or [platform]) out, or \
                set --model flow\n";
    assert_eq!(stderr(MISUSE, &[&run[..], &["--platform=no/such/file.xml"]].concat()), hint);
    let ignored = stderr(DONE, &[&run[..], &["--set=mpi.test_s=1"]].concat());
    assert_eq!(ignored, " WARN [mpi] has no effect with the model loggops\n");
    // The trace of an MPI program, as text and as an archive.
    let trace = folder.write("pair.txt", "0 init\n0 compute 1e6\n0 finalize\n");
    let archive = folder.path("pair.pdt");
    command().args(["trace", "convert", "-q"]).arg(&trace).arg("-o").arg(&archive).assert().code(DONE);
    for path in [&trace, &archive] {
        let found = stderr(FAILED, &["run", text(path), "--model=loggops", "-q"]);
        let hint = "is not a GOAL schedule, and the model loggops replays these only: for the trace of an MPI program, leave --model loggops out, and \
                    name a platform with --platform\n";
        assert_eq!(found, format!("pdes-replay: {} {hint}", path.display()));
    }
}

#[test]
fn a_latency_without_unit_is_refused() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", MESSAGE);
    let platform = folder.write("slow.toml", &PAIR.replace("'1us'", "50"));
    let message = "line 6, column 11\n  |\n6 | latency = 50\n  |           ^^\n\
        found 50, which is 50 s: write the unit, as in \"50us\" or \"50s\" (one of w d h m s ms us ns or ps)\n";
    let found = stderr(FAILED, &["run", text(&trace), "--platform", text(&platform), "-q"]);
    assert!(found.ends_with(message), "{found}");
    let slow = folder.write("slow.toml", &PAIR.replace("'1us'", "'50 s'"));
    command().args(["platform", "check", text(&slow)]).assert().code(DONE);
}

/// Bare numbers that cannot be meant are refused as a bare latency is.
#[test]
fn a_bandwidth_or_a_speed_without_unit_is_refused() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", MESSAGE);
    for (unit, bare, message) in [
        ("'1GBps'", "400", "found 400, which is 400 B/s: write the unit, as in \"400MBps\" or \"400Bps\""),
        ("'1Gf'", "10", "found 10, which is 10 flop/s: write the unit, as in \"10Gf\" or \"10f\""),
        ("'1GBps'", "'1e40GBps'", "no machine has that, expected 1 to 1e18 B/s"),
        ("'1us'", "inf", "found inf, expected a finite number"),
    ] {
        let platform = folder.write("bare.toml", &PAIR.replace(unit, bare));
        let found = stderr(FAILED, &["run", text(&trace), "--platform", text(&platform), "-q"]);
        assert!(found.contains(message) && !found.contains("infus"), "{found}");
    }
    let platform = folder.write("micro.toml", &PAIR.replace("'1us'", "'1 µs'"));
    command()
        .args(["run", text(&trace), "--platform", text(&platform), "-q"])
        .args(["--set=mpi.send_overhead=1µs", "--set=engine.run_ahead_s=1μs"])
        .assert()
        .code(DONE);
}

/// A larger limit of detached sends lets standard sends end, and no synchronous ones.
#[test]
fn synchronous_sends_that_wait_for_each_other_need_no_buffers() {
    let folder = Folder::new();
    let platform = folder.write("pair.toml", PAIR);
    let deadlock = |sends: [&str; 2]| {
        let rank = |(rank, send): (usize, &str)| {
            let peer = 1 - rank;
            let send = send.replace("PEER", &peer.to_string()).replace(';', &format!("\n{rank} "));
            format!("{rank} init\n{rank} {send}\n{rank} recv {peer} 5 100000\n{rank} finalize\n")
        };
        let trace = folder.write("trace.txt", &sends.into_iter().enumerate().map(rank).collect::<String>());
        let found = stderr(FAILED, &["run", text(&trace), "--platform", text(&platform), "-q"]);
        assert!(found.contains("2 ranks wait for each other"), "{found}");
        found.contains("raise it")
    };
    let [standard, synchronous] = ["send PEER 5 100000", "ssend PEER 5 100000"];
    let waits = ["issend PEER 5 100000 req=1;wait req=1", "isend PEER 5 100000 req=1;wait req=1"];
    let persistent = "ssend_init PEER 5 100000 req=1;start req=1;waitall req=1";
    for sends in [[synchronous; 2], [waits[0]; 2], [synchronous, waits[0]], [persistent, synchronous]] {
        assert!(!deadlock(sends), "{sends:?}");
    }
    for sends in [[standard; 2], [standard, synchronous], [waits[1], waits[0]]] {
        assert!(deadlock(sends), "{sends:?}");
    }
}

/// A platform that is almost XML is read as XML, in the encodings of XML.
#[test]
fn platforms_in_xml_are_recognized() {
    let folder = Folder::new();
    let body = "<platform version='4.1'><zone id='z' routing='Full'><host id='a' speed='1Gf'/><host id='b' speed='1Gf'/>\
                <link id='l' bandwidth='125MBps' latency='50us'/><route src='a' dst='b'><link_ctn id='l'/></route></zone></platform>";
    for name in ["page.xml", "page.txt"] {
        let page = folder.write(name, &format!("This page has no style.\n<?xml version='1.0'?>{body}"));
        let found = stderr(FAILED, &["platform", "check", text(&page)]);
        assert!(found.contains(":1: not well-formed XML: text before the first element"), "{found}");
    }
    let latin = folder.path("latin.xml");
    let bytes =
        [b"<?xml version='1.0' encoding='ISO-8859-1'?>\n<!-- caf\xe9 -->\n", body.as_bytes()].concat();
    std::fs::write(&latin, &bytes).unwrap();
    command().args(["platform", "check", text(&latin)]).assert().code(DONE);
    std::fs::write(&latin, String::from_utf8_lossy(&bytes).replace("ISO-8859-1", "EBCDIC")).unwrap();
    let found = stderr(FAILED, &["platform", "check", text(&latin)]);
    assert!(found.contains("the encoding EBCDIC is not read"), "{found}");
    std::fs::write(&latin, &bytes[b"<?xml version='1.0' encoding='ISO-8859-1'?>\n".len()..]).unwrap();
    let found = stderr(FAILED, &["platform", "check", text(&latin)]);
    assert!(found.contains("the byte 0xe9 in line 1, which is not UTF-8"), "{found}");
    // A comment does not make XML of TOML.
    let toml = folder.write("pair.toml", &format!("# Made of a <platform> in XML.\n{PAIR}"));
    command().args(["platform", "check", text(&toml)]).assert().code(DONE);
}

#[test]
fn units_are_read_as_they_are_printed() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", &format!("{MESSAGE}1 compute 1e10\n"));
    let printed =
        PAIR.replace("'1Gf'", "'10 Gflop/s'").replace("'1GBps'", "'1 GB/s'").replace("'1us'", "'500 ns'");
    let platform = folder.write("pair.toml", &printed);
    let replay = |settings: &[&str]| {
        let mut replay = command();
        replay.args(["run", text(&trace), "--platform", text(&platform), "-q", "--set=network.preset=raw"]);
        replay.args(settings).assert().code(DONE)
    };
    // Two links of 500 ns, 1000 bytes at 1 ns, 1 s of computation.
    replay(&[]).stdout("simulated time: 1.000002000 s\n");
    replay(&["--set=mpi.envelope_bytes=1.016 kB"]).stdout("simulated time: 1.000003000 s\n");
    replay(&["--set=network.epoch_s=250 ns", "--set=engine.run_ahead_s=1us"])
        .stdout(starts_with("simulated time: 1.00000"));

    let goal =
        folder.write("pair.goal", "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n");
    let schedule = |setting: &str| {
        command().args(["run", text(&goal), "--model=loggops", "-q", setting]).output().unwrap()
    };
    assert_eq!(schedule("--set=loggops.L=1us").stdout, schedule("--set=loggops.L=1000").stdout);
    let wrong = "pdes-replay: --set loggops.L=1 parsec: \"1 parsec\" is not a quantity: unknown unit \"parsec\", expected w d h m s ms us ns or ps\n";
    assert_eq!(String::from_utf8(schedule("--set=loggops.L=1 parsec").stderr).unwrap(), wrong);
}

#[test]
fn messages_that_nobody_receives_are_found() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", "0 init\n1 init\n0 send 1 0 100000\n0 finalize\n1 finalize\n");
    let message = format!(
        "pdes-replay: {}: 1 thing is wrong:\n  1 message is never received, the first from rank 0 to rank 1 with tag 0; a send of \
         mpi.detached_below_bytes (65536 B by default) or more waits for its receive: a deadlock\n",
        trace.display()
    );
    assert_eq!(stderr(FAILED, &["trace", "check", text(&trace)]), message);
    let platform = folder.write("pair.toml", PAIR);
    command()
        .args(["run", text(&trace), "--platform", text(&platform)])
        .assert()
        .code(FAILED)
        .stderr(contains("deadlock in the program: 1 rank waits for ever\n"));
}

/// Returns the error about a file in place of a trace, without the name of the file.
fn recognised(path: &Path) -> String {
    let platform = repository().join("configs/platforms/torus-5g.toml");
    let found = stderr(FAILED, &["run", "--trace", text(path), "--platform", text(&platform), "-q"]);
    let message = found.strip_prefix(&format!("pdes-replay: the trace: {}: ", path.display()));
    let message = message.unwrap_or_else(|| panic!("{found}")).to_owned();
    assert!(message.chars().all(|letter| letter == '\n' || !letter.is_control()), "{message:?}");
    message
}

#[test]
fn files_of_other_formats_are_named_and_not_printed() {
    let folder = Folder::new();
    let junk: Vec<u8> = (0..4096_u32).map(|number| (number * 167 + 93) as u8 | 1).collect();
    std::fs::write(folder.path("junk"), junk).unwrap();
    let binary = "this looks like a binary file; expected time-independent text (plain, gzip or zstd) or an archive (.pdt)\n";
    assert_eq!(recognised(&folder.path("junk")), binary);
    let platform = folder.write("pair.toml", PAIR);
    assert!(recognised(&platform).starts_with("this looks like a platform or configuration in TOML; "));
    let list = folder.write("list", "rank-0.txt\n");
    let expected = format!(
        ":1: found no file {:?}; expected names of trace files, or actions, such as `0 init`\n",
        folder.path("rank-0.txt")
    );
    let found = stderr(FAILED, &["trace", "info", text(&list)]);
    assert!(found.ends_with(&expected), "{found}");
}

#[test_with::shared]
fn traces_of_other_tools_are_named() {
    let samples = shared("samples");
    for (file, name) in [
        ("otf2/data/ping-pong/traces/0.evt", "an OTF2 file of events or definitions"),
        ("dumpi/data/testtrace-0000.txt", "a DUMPI trace as text"),
        ("chakra/data/microbenchmarks/all_gather/4npus_1MB/all_gather.0.et", "a Chakra execution trace"),
    ] {
        let found = recognised(&samples.join(file));
        assert!(found.starts_with(&format!("this looks like {name}; ")), "{file}: {found}");
    }
}

#[test]
fn flags_and_settings_are_named_with_what_fits() {
    let run = ["--trace=x", "--platform=x"];
    for (argument, message) in [
        ("--threads=0", "--threads: found 0, expected a whole number from 1 to 1024"),
        ("--threads=-1", "--threads: found -1, expected a whole number from 1 to 1024"),
        (
            "--model=fluid",
            "--model: found \"fluid\"; expected \"flow\", \"contention-free\", \"packets\" or \"loggops\"",
        ),
        (
            "--set=engine.threads=two",
            "--set engine.threads=two: [engine] threads: found \"two\", expected a whole number from 1 to 1024",
        ),
        (
            "--set=mpi.irecv_s=1e9",
            "--set mpi.irecv_s=1e9: [mpi] irecv_s: found 1000000000, expected a time from 0 to 18446744 s",
        ),
        (
            "--set=mpi.eager_below_bytes=1.5",
            "--set mpi.eager_below_bytes=1.5: [mpi] eager_below_bytes: found 1.5, expected a whole number from 0 to 281474976710656 or a string with a \
             unit",
        ),
    ] {
        let found = stderr(MISUSE, &[&run[..], &[argument]].concat());
        assert_eq!(found, format!("pdes-replay: {message}\n"));
    }
    let folder = Folder::new();
    let config = folder.write(
        "run.toml",
        "[trace]\npath = 'x'\n[platform]\nfile = 'x'\n[mpi]\n  eager_below_bytes = 70000\ndetached_below_bytes = 65536\n",
    );
    let expected = "run.toml:6:3: [mpi] eager_below_bytes: found 70000 B, expected at most detached_below_bytes, 65536 B\n";
    let found = stderr(MISUSE, &["run", text(&config)]);
    assert!(found.ends_with(expected), "{found}");
}

#[test]
fn files_for_other_commands_are_recognised() {
    let folder = Folder::new();
    let config = folder.write("run.toml", "[trace]\npath = 'x'\n[engine]\nthreads = 2\n");
    let sweep = folder.write("sweep.toml", "config = 'run.toml'\n[grid]\nnetwork.preset = ['raw']\n");
    let platform = folder.write("pair.toml", PAIR);
    let found = stderr(MISUSE, &["sweep", text(&config), "--output", "x"]);
    let expected = "this is the configuration of a run; replay it with `pdes-replay run FILE`, or name it as config = \"FILE\" in a sweep, \
                    beside [grid] or [[axis]]";
    assert_eq!(found, format!("pdes-replay: {}: {expected}\n", config.display()));
    let found = stderr(MISUSE, &["run", text(&sweep)]);
    assert_eq!(
        found,
        format!(
            "pdes-replay: {}: this is a sweep; run it with: pdes-replay sweep FILE -o DIR\n",
            sweep.display()
        )
    );
    let hypotheses = folder.write("hypotheses.toml", "[[hypothesis]]\nname = 'a'\n");
    let found = stderr(MISUSE, &["run", text(&hypotheses)]);
    assert!(found.contains("a file of hypotheses; test them with: pdes-replay what-if FILE"), "{found}");
    let found = stderr(MISUSE, &["run", text(&platform)]);
    assert!(
        found.ends_with(
            "this is a platform; name it with --platform, or as [platform] file in a configuration\n"
        ),
        "{found}"
    );
}

#[test]
fn missing_files_have_one_exit_status() {
    let folder = Folder::new();
    let (trace, platform) = (folder.write("trace.txt", MESSAGE), folder.write("pair.toml", PAIR));
    let (trace, platform) = (text(&trace), text(&platform));
    for arguments in [
        &["run", "absent.toml"][..],
        &["--config", "absent.toml"],
        &["sweep", "absent.toml", "--output", "x"],
        &["run", "absent.pdt", "--platform", platform],
        // The trace comes before the platform, which is missing, too.
        &["run", "absent.pdt"],
        &["run", trace, "--platform", "absent.xml"],
    ] {
        let found = stderr(FAILED, arguments);
        assert!(
            found.contains("absent.") && found.ends_with("No such file or directory (os error 2)\n"),
            "{found}"
        );
    }
}

#[test]
fn run_takes_a_configuration_or_a_trace() {
    let folder = Folder::new();
    let (trace, platform) = (folder.write("trace.txt", MESSAGE), folder.write("pair.toml", PAIR));
    let config = folder.write("run.toml", "[trace]\npath = 'trace.txt'\n[platform]\nfile = 'pair.toml'\n");
    let time = |arguments: &[&str]| {
        let assert = command().arg("run").args(arguments).arg("--quiet").assert().code(DONE).stderr("");
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    let expected = time(&["--config", text(&config)]);
    assert_eq!(time(&[text(&config)]), expected);
    assert_eq!(time(&[text(&trace), "--platform", text(&platform)]), expected);
    let both =
        format!("pdes-replay: found {} and --config other.toml, expected one of them\n", config.display());
    assert_eq!(stderr(MISUSE, &["run", text(&config), "--config", "other.toml"]), both);
    let verbose = ["run", text(&config), "--verbose"];
    command()
        .args(verbose)
        .assert()
        .code(DONE)
        .stderr(contains("DEBUG").and(contains("mpi.test_grows: true")));
    command().args(["run", text(&config)]).assert().stderr(contains("DEBUG").not().and(is_empty().not()));
}

#[test]
fn the_version_names_the_features_of_the_build() {
    let version = command().arg("--version").assert().code(DONE);
    for feature in ["pictures", "parquet", "mpi", "otf2"] {
        let feature = [format!("with    {feature}\n"), format!("without {feature}\n")];
        let [with, without] = feature.each_ref().map(|line| contains(line.as_str()));
        assert!(predicates::Predicate::eval(
            &with.or(without),
            std::str::from_utf8(&version.get_output().stdout).unwrap()
        ));
    }
}

/// `tracer install` runs cargo on the sources with the compiler of the MPI library, and puts the library where it is looked for.
#[test]
fn the_tracer_is_compiled_and_installed() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    let tool = |name: &str, script: &str| {
        let path = folder.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    tool("mpicc-test", "echo cc -lmpi");
    tool(
        "cargo",
        "for last; do :; done; mkdir -p \"$last/release\"; echo \"$MPICC $*\" > \"$last/release/libti_tracer.so\"",
    );
    let path = format!("{}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap());
    let install = |more: &[&str]| {
        let mut install = command();
        install.env("PATH", &path).args(["tracer", "install", "--to", text(&folder.path("bin"))]).args(more);
        install.assert()
    };
    let library = folder.path("bin/libti_tracer.so");
    install(&["--mpicc=mpicc-test"]).code(DONE).stdout(format!("installed {}\n", library.display()));
    let ran = std::fs::read_to_string(&library).unwrap();
    assert!(
        ran.starts_with(
            "mpicc-test rustc --locked --release --features mpi --crate-type cdylib --manifest-path "
        ),
        "{ran}"
    );
    assert!(ran.contains("crates/ti-tracer/Cargo.toml --target-dir "), "{ran}");
    let advice = "no-such-mpicc: No such file or directory (os error 2); an MPI library is needed; name its compiler with --mpicc\n";
    install(&["--mpicc=no-such-mpicc"]).code(FAILED).stderr(ends_with(advice));
    install(&["--source=no/sources"])
        .code(FAILED)
        .stderr(contains("no/sources/crates/ti-tracer/Cargo.toml").and(contains("--source")));
    tool("cargo", "exit 3");
    install(&["--mpicc=mpicc-test"])
        .code(FAILED)
        .stderr(ends_with("the tracer was not built: cargo ended with exit status: 3\n"));
}

#[test]
fn binary_files_are_named_as_such() {
    let folder = Folder::new();
    let junk = folder.path("junk.bin");
    std::fs::write(&junk, [0xff, 0xfe, 0, 1, 0x80]).unwrap();
    let report = stderr(FAILED, &["report", text(&junk)]);
    assert!(report.contains("expected a report that pdes-replay wrote") && report.contains("a binary file"));
    let platform = stderr(FAILED, &["platform", "show", text(&junk)]);
    assert!(platform.contains("found a binary file, expected XML or TOML"), "{platform}");
}

#[test]
fn directories_of_outputs_are_created() {
    let folder = Folder::new();
    let (trace, platform) = (folder.write("trace.txt", MESSAGE), folder.write("pair.toml", PAIR));
    let (archive, report) = (folder.path("a/b/trace.pdt"), folder.path("c/d/run.json"));
    command().args(["trace", "convert", text(&trace), "-o", text(&archive)]).assert().code(DONE);
    let replay = ["run", text(&archive), "--platform", text(&platform), "--report", text(&report)];
    command().args(replay).assert().code(DONE);
    assert!(archive.is_file() && report.is_file());
}

/// A flag and a setting of one key that say different things are refused; equal ones are not.
#[test]
fn flags_that_contradict_settings_are_refused() {
    let folder = Folder::new();
    let (trace, platform) = (folder.write("trace.txt", MESSAGE), folder.write("pair.toml", PAIR));
    let run = ["run", text(&trace), "--platform", text(&platform), "-q"];
    let report = folder.path("a.json");
    for (setting, flag, shown) in [
        ("network.model=contention-free", "--model=flow", "--model: found flow"),
        ("trace.path=other.txt", "--threads=1", "--trace: found "),
        ("platform.file=other.xml", "--threads=1", "--platform: found "),
        ("platform.topology={ kind = 'cluster', hosts = 2 }", "--threads=1", "--platform: found "),
        ("engine.threads=2", "--threads=1", "--threads: found 1"),
        ("output.report=b.json", &format!("--report={}", report.display()), "--report: found "),
        ("timeline.window=1s..", "--timeline-window=2s..", "--timeline-window: found 2s.."),
    ] {
        let found = stderr(MISUSE, &[&run[..], &["--set", setting, flag]].concat());
        let advice = format!("but --set {setting} says otherwise: leave one of them out\n");
        assert!(found.starts_with(&format!("pdes-replay: {shown}")) && found.ends_with(&advice), "{found}");
    }
    assert!(!report.exists());
    command().args(run).args(["--set=network.model=flow", "--model=flow"]).assert().code(DONE);
    let diagnose = ["diagnose", text(&trace), "--platform", text(&platform), "--model=flow"];
    let found = stderr(MISUSE, &[&diagnose[..], &["--set=network.model=contention-free"]].concat());
    assert!(found.contains("--model: found flow, but --set network.model=contention-free"), "{found}");
}

/// Files that another command takes are named, with that command.
#[test]
fn files_of_other_commands_are_named() {
    let folder = Folder::new();
    let (trace, platform) = (folder.write("trace.txt", MESSAGE), folder.write("pair.toml", PAIR));
    let [archive, report, diagnosis, timeline, swept] =
        ["run.pdt", "run.json", "found.json", "timeline.json", "swept"].map(|name| folder.path(name));
    let run = ["run", text(&trace), "--platform", text(&platform), "-q"];
    command().args(run).arg("--report").arg(&report).arg("--timeline").arg(&timeline).assert().code(DONE);
    command().args(["trace", "convert", "-q", text(&trace), "-o", text(&archive)]).assert().code(DONE);
    let diagnose =
        ["diagnose", text(&trace), "--platform", text(&platform), "--json", text(&diagnosis), "-q"];
    command().args(diagnose).assert().code(DONE);
    let config = folder.write("run.toml", "[trace]\npath = 'trace.txt'\n[platform]\nfile = 'pair.toml'\n");
    let sweep = folder.write("sweep.toml", "config = 'run.toml'\n[grid]\nnetwork.latency_factor = [1, 2]\n");
    command().args(["sweep", text(&sweep), "-o", text(&swept), "-q"]).assert().code(DONE);
    let [table, journal, page] = ["sweep.csv", "runs.jsonl", "sweep.html"].map(|name| swept.join(name));
    let rules = folder.write("rules.toml", "[[event]]\nname = 'a'\nwhen = '1'\n");

    for (path, found) in [
        (
            &diagnosis,
            "this is a diagnosis; show it with the report of the run: pdes-replay report RUN.json --diagnosis FILE -o",
        ),
        (&swept, "this is the result of a sweep; its page is sweep.html"),
        (&table, "this is the result of a sweep; "),
        (&journal, "this is the result of a sweep; "),
        (&page, "this is a page; open it in a browser"),
        (&timeline, "this is a timeline; "),
        (&archive, "this is a trace; replay it with: pdes-replay run FILE --platform PLATFORM"),
        (&trace, "this is a trace; "),
        (&platform, "this is a platform; "),
        (&config, "this is a configuration; replay it with: pdes-replay run FILE"),
        (&sweep, "this is a sweep; run it with: pdes-replay sweep FILE -o DIR"),
        (&rules, "this is a file of rules; name it with: pdes-replay diagnose CONFIG --rules FILE"),
    ] {
        let message = stderr(MISUSE, &["report", text(path)]);
        assert!(message.starts_with(&format!("pdes-replay: {}: {found}", path.display())), "{message}");
    }
    for (arguments, found) in [
        (&["run", "--config", text(&archive)][..], "this is a trace; replay it with"),
        (&["run", "--config", text(&report)], "this is a report; show it with: pdes-replay report FILE"),
        (&["run", text(&config), "--config", text(&platform)], "expected one of them"),
        (&["sweep", text(&trace), "-o", text(&swept)], "this is a trace; "),
        (&["what-if", text(&config), "-o", text(&swept)], "this is a configuration; "),
        (&["diagnose", text(&config), "--rules", text(&diagnosis)], "this is a diagnosis; "),
    ] {
        let message = stderr(MISUSE, arguments);
        assert!(message.contains(found), "{arguments:?}: {message}");
    }
    for (arguments, found) in [
        (
            &["run", "--trace", text(&platform), "--platform", text(&platform)][..],
            "this looks like a platform or configuration in TOML",
        ),
        (&["run", text(&trace), "--platform", text(&archive)], "this is a trace; replay it with"),
        (&["run", text(&trace), "--platform", text(&report)], "this is a report; "),
        (&["diagnose", text(&config), "--reference", text(&report)], "this is a report; "),
        (&["report", text(&report), "--diagnosis", text(&report), "-o", "x.html"], "this is a report; "),
        (&["report", text(&report), "--timeline", text(&diagnosis), "-o", "x.html"], "this is a diagnosis; "),
        (&["platform", "show", text(&config)], "this is a configuration; "),
    ] {
        let message = stderr(FAILED, arguments);
        assert!(message.contains(found), "{arguments:?}: {message}");
    }
}

/// What is written has the form that the suffix of its name says, or is refused.
#[test]
fn names_of_outputs_say_what_is_written() {
    let folder = Folder::new();
    let (trace, platform) = (folder.write("trace.txt", MESSAGE), folder.write("pair.toml", PAIR));
    let report = folder.path("run.json");
    let run = ["run", text(&trace), "--platform", text(&platform), "-q"];
    command().args(run).arg("--report").arg(&report).assert().code(DONE);
    let before = std::fs::read(&report).unwrap();
    let page = |name: &str, more: &[&str]| {
        let path = folder.path(name);
        let output = ["report", text(&report), "-o", text(&path)];
        let message = stderr(MISUSE, &[&output[..], more].concat());
        assert!(name == "run.json" || !path.exists(), "{name}");
        message
    };
    assert!(page("run.json", &[]).ends_with("is the report, too: name another file\n"));
    for name in ["page.json", "page.svg", "page.pdf", "page.PNG", "page.csv", "page.html.gz"] {
        let message = page(name, &[]);
        assert!(
            message.contains(
                "expected .html, the page of the report; --format svg, png or csv writes a file for each"
            ),
            "{message}"
        );
    }
    for (name, format) in [("pictures.svg", "svg"), ("pictures.html", "png"), ("tables.csv", "csv")] {
        let message = page(name, &["--format", format]);
        assert!(
            message.contains("is the name of a file; --format svg, png or csv writes a file for each"),
            "{message}"
        );
    }
    assert_eq!(std::fs::read(&report).unwrap(), before);
    let message = stderr(MISUSE, &["report", text(&report), "-o", text(&folder.path(""))]);
    assert!(message.contains("is a directory, expected the name of a page, such as run.html"), "{message}");
    for name in ["page.html", "page.HTM", "page"] {
        command().args(["report", text(&report), "-o"]).arg(folder.path(name)).assert().code(DONE);
        assert!(folder.path(name).is_file());
    }

    let report = folder.path("report.html");
    let message = stderr(MISUSE, &[&run[..], &["--report", text(&report)]].concat());
    assert!(
        message.contains("--report: found the suffix .html, expected .json: the report is JSON"),
        "{message}"
    );
    let diagnose = |flag: &str, name: &str| {
        stderr(
            MISUSE,
            &["diagnose", text(&trace), "--platform", text(&platform), flag, text(&folder.path(name))],
        )
    };
    assert!(
        diagnose("--page", "found.json")
            .contains("found the suffix .json, expected .html or .htm; --page writes")
    );
    assert!(diagnose("--json", "found.csv").contains("found the suffix .csv, expected .json; --json writes"));
    assert!(!report.exists() && !folder.path("found.json").exists() && !folder.path("found.csv").exists());
}

/// Reports of different programs are compared, with a warning that says what differs.
#[test]
fn different_programs_are_compared_with_a_warning() {
    let folder = Folder::new();
    let platform = folder.write("pair.toml", PAIR);
    let report = |name: &str, program: &str| {
        let (trace, report) =
            (folder.write(&format!("{name}.txt"), program), folder.path(&format!("{name}.json")));
        let run = ["run", text(&trace), "--platform", text(&platform), "-q", "--report", text(&report)];
        command().args(run).assert().code(DONE);
        report
    };
    let pair = report("pair", MESSAGE);
    let compare = |other: &Path, more: &[&str]| {
        stderr(DONE, &[&["report", text(&pair), text(other)][..], more].concat())
    };
    assert_eq!(compare(&pair, &[]), "");
    let one = report("one", "0 init\n0 compute 1e6\n");
    let warning = " WARN A and B are not runs of the same program: ranks: 2 and 1; actions: 4 and 2; messages: 1 and 0; bytes in messages: 984 and 0\n";
    assert_eq!(compare(&one, &[]), warning);
    let same = report("same", MESSAGE);
    let found = compare(&same, &[]);
    assert!(
        found.contains("A and B are runs of different traces, with as many ranks, actions and messages: "),
        "{found}"
    );
    if cfg!(feature = "pictures") {
        let page = folder.path("page.html");
        assert!(compare(&one, &["-o", text(&page)]).starts_with(warning));
        assert!(std::fs::read_to_string(page).unwrap().contains("A and B are not runs of the same program"));
    }
}

/// No message shows how the program stores what it names.
#[test]
fn messages_are_not_in_the_language_of_the_program() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", MESSAGE);
    let goal = folder.write("pair.goal", "num_ranks 2\nrank 0 {\nsend 8b to 9\n}\nrank 1 {\n}\n");
    let found = stderr(FAILED, &["run", text(&goal), "--model=loggops", "-q"]);
    assert!(found.contains("found peer 9, expected a rank from 0 to 1"), "{found}");
    let rest = "speed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n";
    for (shape, expected) in [
        ("kind = 'torus'\ndims = [4, 0]\n", "\"torus 4,0\""),
        (
            "kind = 'fat_tree'\nlevels = [{ children = 2, parents = 0 }]\n",
            "\"fat tree of 2 children, 0 parents, 1 cables\"",
        ),
    ] {
        let platform = folder.write("shape.toml", &format!("[topology]\n{shape}{rest}"));
        let found = stderr(FAILED, &["run", text(&trace), "--platform", text(&platform), "-q"]);
        assert!(found.contains(expected), "{found}");
    }
}

/// More threads than cores: as many work as there are cores, with the same result, unless all are told to.
#[test]
fn threads_without_cores_do_not_work() {
    let folder = Folder::new();
    let (trace, platform) = (folder.write("trace.txt", MESSAGE), folder.write("pair.toml", PAIR));
    let cores = std::thread::available_parallelism().unwrap().get();
    let warning = format!("{} threads for {cores} core", cores + 1);
    let replay = |more: &[&str]| {
        let mut replay = command();
        replay.args(["run", "--trace", text(&trace), "--platform", text(&platform), "-q"]);
        replay.args(["--model=contention-free", &format!("--threads={}", cores + 1)]);
        replay.args(more).assert().code(DONE)
    };
    let limited = replay(&[]).stderr(contains(warning.as_str()).and(contains("parallel.oversubscribe")));
    let all = replay(&["--set=parallel.oversubscribe=true"]).stderr(contains(warning.as_str()).not());
    assert_eq!(limited.get_output().stdout, all.get_output().stdout);
}
