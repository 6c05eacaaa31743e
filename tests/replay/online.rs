//! Programs online: their results are those of real runs, their times those of SMPI, and mistakes are named.

#[path = "online/ahead.rs"]
mod ahead;
#[path = "online/bindings.rs"]
mod bindings;
#[path = "online/extrapolation.rs"]
mod extrapolation;
#[path = "online/files.rs"]
mod files;
#[path = "online/folding.rs"]
mod folding;
#[path = "online/large_types.rs"]
mod large_types;
#[path = "online/matched.rs"]
mod matched;
#[path = "online/mistakes.rs"]
mod mistakes;
#[path = "online/mpich.rs"]
mod mpich;
#[path = "online/oracle.rs"]
mod oracle;
#[path = "online/regions.rs"]
mod regions;
#[path = "online/samples.rs"]
mod samples;
#[path = "online/signatures.rs"]
mod signatures;
#[path = "online/truncation.rs"]
mod truncation;
#[path = "online/windows.rs"]
mod windows;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assert_cmd::assert::Assert;
use pdes_replay::SavedReport;
use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

use crate::command_line::{Folder, command, skip};

/// Platform and settings of a run without computations.
const SETTINGS: &str = "[platform]\ntopology = { kind = 'cluster', hosts = 16, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }\n\
    [network]\npreset = 'raw'\n[mpi]\ntest_s = 0\ntest_grows = false\niprobe_s = 0\n[online]\ncomputation = 'none'\nclock = 'all'\n";

/// A program that was compiled, with a configuration beside it.
pub(crate) struct Program {
    pub(crate) folder: Folder,
    pub(crate) file: PathBuf,
}

impl Program {
    /// Compiles a program; `None` if there is no compiler of Open MPI.
    fn compile(source: &Path) -> Option<Self> {
        Self::compile_with(source, &[])
    }

    /// Compiles a program in C with further arguments of the compiler.
    fn compile_with(source: &Path, arguments: &[&str]) -> Option<Self> {
        let compiler = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
        Self::compile_by(&compiler, source, arguments)
    }

    /// Compiles a program, and the files among the arguments before it.
    fn compile_by(compiler: &str, source: &Path, arguments: &[&str]) -> Option<Self> {
        if !Command::new(compiler).arg("-show").output().is_ok_and(|output| output.status.success()) {
            skip(&format!("there is no {compiler}, or it does not work"));
            return None;
        }
        let folder = Folder::new();
        let file = folder.path("program");
        let mut compile = Command::new(compiler);
        compile.args(["-O1", "-w", "-o"]).arg(&file).args(arguments).arg(source).arg("-lm");
        let compiled = compile.output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        folder.write("run.toml", SETTINGS);
        Some(Self { folder, file })
    }

    /// Compiles `main` with a body; `rank` and `size` are known there.
    pub(crate) fn with_body(body: &str) -> Option<Self> {
        let folder = Folder::new();
        Self::compile(&folder.write("program.c", &main_with(body)))
    }

    fn command(&self, ranks: u32, flags: &[&str]) -> assert_cmd::Command {
        let mut run = command();
        run.args(["online", "-np", &ranks.to_string(), "--config"]).arg(self.folder.path("run.toml"));
        run.args(flags).arg("--").arg(&self.file);
        run
    }

    fn run(&self, ranks: u32, flags: &[&str]) -> Assert {
        self.command(ranks, flags).timeout(std::time::Duration::from_secs(60)).assert()
    }

    /// Runs the program; returns the lines that it prints, in the order of their text, and its digest.
    fn lines_and_digest(&self, ranks: u32, flags: &[&str]) -> (Vec<String>, String) {
        let report = self.folder.path("report.json");
        let path = report.to_string_lossy().into_owned();
        let output =
            self.run(ranks, &[flags, &["--report", &path]].concat()).success().get_output().stdout.clone();
        let mut lines: Vec<String> = String::from_utf8(output).unwrap().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        (lines, SavedReport::from_path(&report).unwrap().digest.to_string())
    }

    /// Replays the record of a run of the program, with the settings of that run.
    fn replay(&self, flags: &[&str], record: &str) -> SavedReport {
        let (mut replay, report) = (command(), self.folder.path("replay.json"));
        replay.arg("run").arg(self.folder.path("run.toml")).args(flags);
        replay.args(["--trace", record, "--report"]).arg(&report).assert().success();
        SavedReport::from_path(&report).unwrap()
    }

    /// Runs the program, and replays its record with the same digest; returns the lines that it prints, in the order of their text.
    fn lines_of_recorded(&self, ranks: u32, flags: &[&str]) -> Vec<String> {
        let record = self.folder.path("record.pdt").to_string_lossy().into_owned();
        let (lines, digest) = self.lines_and_digest(ranks, &[flags, &["--record", &record]].concat());
        assert_eq!(self.replay(flags, &record).digest.to_string(), digest, "{flags:?}");
        lines
    }
}

/// Returns a program of a body.
fn main_with(body: &str) -> String {
    format!(
        "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n#include <unistd.h>\n#include <sys/syscall.h>\nint main(int argc, char **argv)\n{{\n\
         int rank, size;\nMPI_Init(&argc, &argv);\nMPI_Comm_rank(MPI_COMM_WORLD, &rank);\n\
         MPI_Comm_size(MPI_COMM_WORLD, &size);\n{body}\nMPI_Finalize();\nreturn 0;\n}}\n"
    )
}

#[test]
fn a_ring_takes_the_time_of_its_messages() {
    let body = "int token = rank;\ndouble begin = MPI_Wtime();\n\
        if (rank > 0) MPI_Recv(&token, 1, MPI_INT, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n\
        if (rank + 1 < size) MPI_Send(&token, 1, MPI_INT, rank + 1, 7, MPI_COMM_WORLD);\n\
        printf(\"%d %d %.0f\\n\", rank, token, (MPI_Wtime() - begin) * 1e9);";
    let Some(program) = Program::with_body(body) else { return };
    let (lines, _) = program.lines_and_digest(4, &[]);
    // Two links of 1 us, and 4 + 16 bytes at 1 ns each.
    assert_eq!(lines, ["0 0 0", "1 0 2020", "2 0 4040", "3 0 6060"]);
    program.run(4, &[]).success().stderr(contains("simulated time: 0.000006060 s"));
}

/// Neither threads nor the order in which ranks come back matter: each really sleeps for a time that is new in each run.
#[test]
fn wildcards_polls_and_collectives_are_deterministic() {
    let body = "int sum = 0, all = 0, flag = 0, value;\nMPI_Request request;\nMPI_Status status;\n\
        for (int round = 0; round < 20; round++) {\n\
        syscall(SYS_nanosleep, &(struct timespec){0, (getpid() * 7919L + round * 104729L) % 200000}, NULL);\n\
        if (rank == 0)\nfor (int i = 1; i < size; i++) {\n\
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);\n\
        sum = sum * 31 + status.MPI_SOURCE;\nMPI_Send(&sum, 1, MPI_INT, status.MPI_SOURCE, 1, MPI_COMM_WORLD);\n}\n\
        else {\nMPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);\nusleep((rank * 7 + round * 13) % 5);\n\
        MPI_Send(&round, 1, MPI_INT, 0, round, MPI_COMM_WORLD);\n\
        for (flag = 0; !flag;)\nMPI_Test(&request, &flag, &status);\nsum += value;\n}\n\
        MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_BXOR, MPI_COMM_WORLD);\nsum ^= all;\n}\n\
        printf(\"%d %d %.12f\\n\", rank, sum, MPI_Wtime());";
    let Some(program) = Program::with_body(body) else { return };
    let first = program.lines_and_digest(6, &[]);
    for threads in ["1", "2", "4"] {
        assert_eq!(program.lines_and_digest(6, &["--threads", threads]), first, "{threads} threads");
    }
    let free = &["--model", "contention-free"];
    let without = program.lines_and_digest(6, free);
    assert_eq!(program.lines_and_digest(6, &[free, &["--threads", "3"] as &[&str]].concat()), without);
}

/// The trace of a run has its digest, also with costs of calls and polls, and with answers to messages from any source.
#[test]
fn a_recorded_run_is_replayed_with_its_digest() {
    let body = "int value = rank, sum = 0, flag = 0, found = 0, n = 0, indices[8];\nint all[8], cell = rank;\n\
        MPI_Request requests[8], one;\nMPI_Status status, statuses[8];\nMPI_Comm half, copy;\n\
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);\nMPI_Comm_dup(half, &copy);\n\
        for (int round = 0; round < 3; round++) {\n\
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);\nMPI_Bcast(&sum, 1, MPI_INT, 1, MPI_COMM_WORLD);\n\
        MPI_Iallgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &one);\nusleep(rank * 3);\n\
        for (flag = 0; !flag;) MPI_Test(&one, &flag, &status);\n\
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &value, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &status);\n\
        MPI_Sendrecv(&rank, 1, MPI_INT, rank, 0, &value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &status);\n\
        if (rank == 0) {\n\
        for (int i = 1; i < size; i++) {\nMPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);\n\
        MPI_Send(&value, 1, MPI_INT, status.MPI_SOURCE, 2, MPI_COMM_WORLD);\n}\n\
        for (int i = 1; i < size; i++) MPI_Irecv(&all[i], 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &requests[i]);\n\
        for (int i = 1; i < size; i++) MPI_Waitany(size - 1, requests + 1, &n, &status);\n\
        for (int left = size - 1; left > 0;) {\nMPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &found, &status);\n\
        if (!found) continue;\nMPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 4, MPI_COMM_WORLD, &status);\nleft--;\n}\n\
        for (int i = 1; i < size; i++) {\nMPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status);\n\
        MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 5, MPI_COMM_WORLD, &status);\n}\n\
        for (int i = 1; i < size; i++) MPI_Recv_init(&all[i], 1, MPI_INT, i, 6, MPI_COMM_WORLD, &requests[i]);\n\
        MPI_Startall(size - 1, requests + 1);\n\
        for (int left = size - 1; left > 0; left -= n) MPI_Waitsome(size - 1, requests + 1, &n, indices, statuses);\n\
        for (int i = 1; i < size; i++) MPI_Request_free(&requests[i]);\n\
        } else {\nusleep(size - rank);\nMPI_Ssend(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);\n\
        MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &status);\n\
        MPI_Isend(&cell, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &one);\nMPI_Request_get_status(one, &flag, &status);\n\
        MPI_Wait(&one, &status);\n\
        for (int tag = 4; tag < 7; tag++) {\nusleep(50 * rank);\nMPI_Send(&rank, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);\n}\n}\n\
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 9, copy, &one);\nMPI_Cancel(&one);\nMPI_Wait(&one, &status);\n}\n\
        MPI_Barrier(copy);\nMPI_Comm_free(&copy);";
    let Some(program) = Program::with_body(body) else { return };
    let cases: [&[&str]; 3] = [
        &["--model", "contention-free"],
        &["--set", "online.computation='fixed'", "--set", "online.fixed_s='1us'"],
        &[
            "--set",
            "network.preset='smpi'",
            "--set",
            "mpi.test_s=1e-7",
            "--set",
            "mpi.iprobe_s=2e-7",
            "--set",
            "mpi.test_grows=true",
        ],
    ];
    for flags in cases {
        program.lines_of_recorded(5, flags);
    }
}

/// Ranks 0 and 2 go on at one instant, rank 2 from a wait that takes all its requests: a trace knows this beforehand, the run does not. Its
/// message is there for the probe of rank 0 in both.
#[test]
fn a_wait_for_some_that_takes_all_does_not_wait_for_its_turn() {
    let body = "int value, found, n, indices[2];\nMPI_Request requests[2];\nint from = rank == 0 ? 4 : 1, to = rank < 4 ? 2 : 0;\n\
        if (rank == 0 || rank == 2)\n\
        for (int i = 0; i < 2; i++) MPI_Irecv(&value, 1, MPI_INT, from + i * (rank == 2 ? 2 : 1), 1, MPI_COMM_WORLD, &requests[i]);\n\
        else {\nusleep(100);\nMPI_Send(&rank, 1, MPI_INT, to, 1, MPI_COMM_WORLD);\n}\n\
        if (rank == 2) {\nMPI_Waitsome(2, requests, &n, indices, MPI_STATUSES_IGNORE);\n\
        MPI_Send(&n, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);\n}\n\
        if (rank == 0) {\nMPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n\
        MPI_Iprobe(2, 2, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);\n\
        MPI_Recv(&n, 1, MPI_INT, 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\nprintf(\"%d %d\\n\", found, n);\n}";
    let Some(program) = Program::with_body(body) else { return };
    for model in ["contention-free", "flow"] {
        assert_eq!(program.lines_of_recorded(6, &["--model", model]), ["1 2"], "{model}");
    }
}

/// A trace knows which receive its rank will cancel, the run does not: other messages of the rank are not later for that, as that of rank 2,
/// which the probe of rank 0 finds at its instant.
#[test]
fn messages_of_ranks_that_cancel_receives_have_no_turns() {
    let body = "int found;\nMPI_Request request;\nif (rank < 2) usleep(100);\n\
        if (rank == 1) MPI_Send(NULL, 0, MPI_INT, 2, 1, MPI_COMM_WORLD);\n\
        if (rank == 2) {\nMPI_Recv(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n\
        MPI_Send(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD);\nMPI_Irecv(NULL, 0, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);\n\
        MPI_Cancel(&request);\nMPI_Wait(&request, MPI_STATUS_IGNORE);\n}\n\
        if (rank == 0) {\nMPI_Iprobe(2, 2, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);\n\
        MPI_Recv(NULL, 0, MPI_INT, 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\nprintf(\"%d\\n\", found);\n}";
    let Some(program) = Program::with_body(body) else { return };
    program.folder.write("run.toml", &SETTINGS.replace("latency = '1us'", "latency = '0us'"));
    for model in ["contention-free", "flow"] {
        let without = ["--model", model, "--set", "mpi.envelope_bytes=0"];
        assert_eq!(program.lines_of_recorded(3, &without), ["1"], "{model}");
    }
}

/// A program whose computations are measured polls as often as it has time for; so does the replay of its trace.
#[test]
fn polls_of_measured_programs_cost_nothing_beside() {
    let body = "int flag, value; MPI_Request request;\nMPI_Irecv(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request);\n\
        for (int i = 0; i < 100; i++) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);\n\
        MPI_Send(&rank, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);\nMPI_Wait(&request, MPI_STATUS_IGNORE);";
    let Some(program) = Program::with_body(body) else { return };
    let settings = SETTINGS.replace("test_s = 0\ntest_grows = false\niprobe_s = 0\n", "");
    assert_ne!(settings, SETTINGS);
    program.folder.write("run.toml", &settings);
    let (trace, report) = (program.folder.path("run.pdt"), program.folder.path("report.json"));
    let trace = trace.to_string_lossy().into_owned();
    for (computation, cost) in [("measured", 0.0), ("none", 1e-4)] {
        let computation = format!("online.computation='{computation}'");
        program.lines_and_digest(1, &["--set", &computation, "--record", &trace]);
        let cost_of = |path: &Path| {
            let report: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            report["parameters"]["mpi"]["test_s"].as_f64().unwrap()
        };
        assert_eq!(cost_of(&report), cost, "{computation}");
        program.replay(&[], &trace);
        assert_eq!(cost_of(&program.folder.path("replay.json")), cost, "{computation}");
    }
}

/// Polls that fail unasked are late by a part of the time waited, and the results are deterministic.
#[test]
fn polls_of_a_row_fail_unasked_within_the_tolerance() {
    let body = "int flag = 0, value; MPI_Request request;\n\
        if (rank == 0) {\nMPI_Irecv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);\n\
        while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);\n\
        for (flag = 0; !flag;) MPI_Iprobe(1, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);\n\
        MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n} else\n\
        for (int tag = 0; tag < 2; tag++) { usleep(1000); MPI_Send(&rank, 1, MPI_INT, 0, tag, MPI_COMM_WORLD); }\n\
        if (rank == 0) printf(\"%d\\n\", MPI_Wtime() < 0.0025);";
    let Some(program) = Program::with_body(body) else { return };
    let fixed = ["--set", "online.computation='fixed'", "--set", "online.fixed_s='1us'"];
    let polls = |tolerance: &str| {
        let tolerance = format!("online.poll_tolerance={tolerance}");
        let run = |threads: &str| {
            program.lines_and_digest(
                2,
                &[&fixed as &[&str], &["--set", &tolerance, "--threads", threads]].concat(),
            )
        };
        let first = run("1");
        assert_eq!((first.0.as_slice(), &first), (&["1".to_owned()] as &[String], &run("2")));
        let report = SavedReport::from_path(&program.folder.path("report.json")).unwrap();
        let is_poll = |name: &str| name == "test" || name == "iprobe";
        report
            .time_by_action
            .iter()
            .filter(|total| is_poll(&total.action))
            .map(|total| total.count)
            .sum::<u64>()
    };
    let (all, some) = (polls("0"), polls("0.1"));
    assert!(all > 1900 && some < 300, "{all} {some}");
    let negative = ["--set", "online.poll_tolerance=-1"];
    program
        .run(2, &negative)
        .code(2)
        .stderr(contains("poll_tolerance: found -1, expected a part from 0 to 1"));
    let above = ["--set", "online.poll_tolerance=5"];
    program.run(2, &above).code(2).stderr(contains("poll_tolerance: found 5, expected a part from 0 to 1"));
}

/// Tests that fail for certain are not asked, and end as those that are: `MPI_Request_get_status` always is.
#[test]
fn tests_that_fail_for_certain_are_not_asked() {
    let body = "int flag, next = (rank + 1) % size, last = (rank + size - 1) % size, got[2];\nlong polls = 0; double sum = 0;\n\
        MPI_Request in[2], out[2]; MPI_Status status;\nfor (int round = 0; round < 6; round++) {\n\
        for (int i = 0; i < 2; i++) MPI_Irecv(&got[i], 1, MPI_INT, last, i, MPI_COMM_WORLD, &in[i]);\n\
        for (int i = 0; i < 2; i++) {\nusleep((rank * 37 + round * 61 + i * 23) % 50);\n\
        MPI_Isend(&rank, 1, MPI_INT, next, 1 - i, MPI_COMM_WORLD, &out[i]);\n}\n\
        for (int done = 0; done < 2;)\nfor (int i = 0; i < 2; i++) {\nif (in[i] == MPI_REQUEST_NULL) continue;\n\
        if (argc > 1) MPI_Request_get_status(in[i], &flag, &status); else MPI_Test(&in[i], &flag, &status);\n\
        polls++;\nif (!flag) continue;\nsum += MPI_Wtime() * ++done;\nMPI_Wait(&in[i], &status);\n}\n\
        MPI_Waitall(2, out, MPI_STATUSES_IGNORE);\n}\nprintf(\"%d %ld %.12f\\n\", rank, polls, sum);";
    let Some(program) = Program::with_body(body) else { return };
    let lines = |computation: &str, settings: &[&str], arguments: &[&str]| {
        let is_fixed = computation == "fixed";
        let computation = format!("online.computation='{computation}'");
        let report = program.folder.path("report.json").to_string_lossy().into_owned();
        let mut flags = vec!["--set", &computation, "--report", &report];
        flags.extend(is_fixed.then_some(["--set", "online.fixed_s='100ns'"]).into_iter().flatten());
        settings.iter().for_each(|setting| flags.extend(["--set", setting]));
        let ended = program.command(4, &flags).args(arguments).assert().success();
        let mut lines: Vec<String> =
            String::from_utf8_lossy(&ended.get_output().stdout).lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let polls = |lines: &[String]| -> u64 {
        lines.iter().map(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap()).sum()
    };
    let in_calls = ["mpi.progress='calls'", "mpi.eager_below_bytes=0", "mpi.detached_below_bytes=0"];
    for settings in [&[] as &[&str], &["mpi.test_s='200ns'"], &in_calls] {
        let asked = lines("fixed", settings, &["get"]);
        assert!(polls(&asked) > 1000, "{asked:?}");
        assert_eq!(lines("fixed", settings, &[]), asked, "{settings:?}");
    }
    program.folder.write("run.toml", &SETTINGS.replace("latency = '1us'", "latency = '1ms'"));
    for price_s in [0.0, 1e-6] {
        let measured = lines("measured", &[&format!("mpi.test_s={price_s}")], &[]);
        let report = SavedReport::from_path(&program.folder.path("report.json")).unwrap();
        let tests = report.time_by_action.iter().find(|total| total.action == "test").unwrap().count;
        assert!(tests * 5 < polls(&measured), "{tests} of {measured:?}");
        // Those that are not asked take as long.
        let (spent_s, time_s) = (polls(&measured) as f64 * price_s, 4.0 * report.simulated_time_s);
        assert!(spent_s < time_s, "{spent_s} s of {time_s} s");
    }
}

/// Ranks and the simulator take turns on one core; ranks, and threads and processes that they start, see all that the command may use.
#[test]
fn programs_run_on_all_cores() {
    let body = "cpu_set_t cores; char text[99]; pthread_t thread; pid_t process; FILE *pipe;\n\
        char *const child[] = {\"env\", \"nproc\", NULL}; unsetenv(\"OMP_NUM_THREADS\");\n\
        void meet(void) { fflush(stdout); for (int i = 0; i < 500; i++) MPI_Barrier(MPI_COMM_WORLD); }\n\
        void *ask(void *nothing) { sched_getaffinity(0, sizeof cores, &cores); printf(\"%d\\n\", CPU_COUNT(&cores)); return 0; }\n\
        meet(); ask(NULL);\nmeet(); pthread_create(&thread, NULL, ask, NULL); pthread_join(thread, NULL);\n\
        meet(); system(\"nproc\");\n\
        meet(); pipe = popen(\"nproc\", \"r\"); fputs(fgets(text, sizeof text, pipe), stdout); pclose(pipe);\n\
        meet(); posix_spawn(&process, \"/usr/bin/env\", NULL, NULL, child, environ); waitpid(process, NULL, 0);\n\
        meet(); posix_spawnp(&process, \"env\", NULL, NULL, child, environ); waitpid(process, NULL, 0);\n\
        meet(); if ((process = vfork()) == 0) { execvp(\"env\", child); _exit(1); } waitpid(process, NULL, 0);";
    let headers =
        ["pthread", "sched", "spawn", "sys/wait"].map(|name| format!("#include <{name}.h>\n")).concat();
    let text = format!("#define _GNU_SOURCE\n{headers}{}", main_with(body));
    let folder = Folder::new();
    let Some(program) = Program::compile(&folder.write("program.c", &text)) else { return };
    let cores = rustix::thread::sched_getaffinity(None).unwrap().count().to_string();
    assert_eq!(program.lines_and_digest(2, &["--threads", "1"]).0, vec![cores; 14]);
}

#[test]
fn fixed_computations_take_their_time() {
    let body = "MPI_Barrier(MPI_COMM_SELF);\nMPI_Barrier(MPI_COMM_SELF);\nprintf(\"%.6f\\n\", MPI_Wtime());";
    let Some(program) = Program::with_body(body) else { return };
    let flags = ["--set", "online.computation='fixed'", "--set", "online.fixed_s='1ms'"];
    let (lines, _) = program.lines_and_digest(1, &flags);
    // Before the barriers, and before the clock.
    assert_eq!(lines, ["0.003000"]);
}

/// Computations on hosts of another speed need that of this machine: a flag or the configuration tells it, else a warning says what was
/// taken.
#[test]
fn the_speed_of_this_machine_is_told_or_warned_of() {
    let Some(program) = Program::with_body("MPI_Barrier(MPI_COMM_SELF);\nprintf(\"%.6f\\n\", MPI_Wtime());")
    else {
        return;
    };
    let fast = SETTINGS.replace("speed = '1Gf'", "speed = '4Gf'");
    program.folder.write("run.toml", &fast.replace("'none'", "'fixed'\nfixed_s = '1ms'"));
    let warning = " WARN computations take 0.25 times as long as on this machine: the program counts times at 1000000000 flops per second, \
                   and its hosts compute 4 Gflop/s; online.speed (--speed) tells the speed of this machine, which calibrate measures\n";
    let assumed = program.run(1, &[]).success();
    assumed.stdout("0.000500\n").stderr(contains(warning));
    let [of_online, of_trace] = ["--set=online.speed=4Gf", "--set=trace.speed=8Gf"];
    // The flag is before the section, and the section before that of traces.
    for (flags, time) in [
        (&[of_online] as &[&str], "0.002000\n"),
        (&[of_trace], "0.004000\n"),
        (&[of_online, of_trace], "0.002000\n"),
        (&["--speed=2Gf", of_trace], "0.001000\n"),
    ] {
        program.run(1, flags).success().stdout(time).stderr(contains("WARN").not());
    }
    program.folder.write("run.toml", &fast.replace("'none'", "'fixed'\nfixed_s = '1ms'\nspeed = '4Gf'"));
    for (flags, time) in [(&[] as &[&str], "0.002000\n"), (&["--speed=2Gf"], "0.001000\n")] {
        program.run(1, flags).success().stdout(time).stderr(contains("WARN").not());
    }
    program.run(1, &["--speed=0"]).code(2).stderr(contains("speed: found 0, expected more than zero"));
}

/// Programs that ask mpirun's variables for their rank, before MPI knows it, are told the same; each rank has a host.
#[test]
fn variables_tell_ranks() {
    let text = "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\nint main(int argc, char **argv) {\n\
        int rank, found; char most[9] = \"\";\n\
        int before = atoi(getenv(\"OMPI_COMM_WORLD_RANK\")), size = atoi(getenv(\"OMPI_COMM_WORLD_SIZE\"));\n\
        int local = atoi(getenv(\"OMPI_COMM_WORLD_LOCAL_RANK\"));\nMPI_Init(&argc, &argv);\n\
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);\nMPI_Info_get(MPI_INFO_ENV, \"maxprocs\", 8, most, &found);\n\
        printf(\"%d %d %d %d %s\\n\", before, rank, size, local, most);\nMPI_Finalize();\n}\n";
    let folder = Folder::new();
    let Some(program) = Program::compile(&folder.write("program.c", text)) else { return };
    assert_eq!(program.lines_and_digest(3, &[]).0, ["0 0 3 0 3", "1 1 3 0 3", "2 2 3 0 3"]);
}

/// Any thread may call MPI, while the others read the clock; two at the same time are refused, as is announced.
#[test]
fn threads_call_one_at_a_time() {
    let text = "#include <mpi.h>\n#include <pthread.h>\n#include <stdio.h>\nint rank, size, provided, over;\n\
        void *watch(void *nothing) {\nfor (double last = 0, now; !over; last = now)\nif ((now = MPI_Wtime()) < last) printf(\"back\\n\");\nreturn NULL;\n}\n\
        void *talk(void *tag) {\nint got, is_main;\nMPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, (long)tag,\n\
        &got, 1, MPI_INT, (rank + size - 1) % size, (long)tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n\
        MPI_Is_thread_main(&is_main);\nprintf(\"%d %d %d %d\\n\", rank, (int)(long)tag, got, is_main);\nreturn NULL;\n}\n\
        void *receive(void *from) { MPI_Recv(&over, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); return NULL; }\n\
        void handle(MPI_Comm *on, int *error, ...) {\npthread_t thread;\npthread_create(&thread, NULL, receive, NULL);\npthread_join(thread, NULL);\n}\n\
        int main(int argc, char **argv) {\npthread_t watching, thread;\nMPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);\n\
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);\nMPI_Comm_size(MPI_COMM_WORLD, &size);\npthread_create(&watching, NULL, watch, NULL);\n\
        for (long tag = 0; tag < 2; tag++) {\npthread_create(&thread, NULL, talk, (void *)tag);\npthread_join(thread, NULL);\n}\n\
        if (provided == MPI_THREAD_SERIALIZED) talk((void *)2);\n\
        MPI_Errhandler handler;\nMPI_Comm_create_errhandler(handle, &handler);\nMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);\n\
        if (size == 2) MPI_Send(&rank, 1, MPI_INT, size, 3, MPI_COMM_WORLD);\nMPI_Errhandler_free(&handler);\n\
        over = 1;\npthread_join(watching, NULL);\nMPI_Finalize();\n}\n";
    let folder = Folder::new();
    let Some(program) = Program::compile(&folder.write("program.c", text)) else { return };
    let expected =
        ["0 0 2 0", "0 1 2 0", "0 2 2 1", "1 0 0 0", "1 1 0 0", "1 2 0 1", "2 0 1 0", "2 1 1 0", "2 2 1 1"];
    for computation in ["none", "measured"] {
        let computation = format!("online.computation='{computation}'");
        assert_eq!(program.lines_and_digest(3, &["--set", &computation]).0, expected, "{computation}");
    }
    let refusal =
        "threads are in MPI_Send and MPI_Recv at the same time; there is at most MPI_THREAD_SERIALIZED";
    program.run(2, &[]).failure().stderr(contains(refusal));
}

/// A tool for MPI that the user preloads sees the calls of the program, in simulated time.
#[test]
fn preloaded_tools_see_the_calls() {
    let folder = Folder::new();
    let tool = "#include <mpi.h>\n#include <stdio.h>\nstatic int sent;\nstatic double spent;\n\
        int MPI_Ssend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm on) {\ndouble begin = PMPI_Wtime();\n\
        int error = PMPI_Ssend(data, n, type, to, tag, on);\nsent++;\nspent += PMPI_Wtime() - begin;\nreturn error;\n}\n\
        int MPI_Finalize(void) {\nprintf(\"%d %.0f\\n\", sent, spent * 1e9);\nreturn PMPI_Finalize();\n}\n";
    let Some(tool) = Program::compile_with(&folder.write("tool.c", tool), &["-shared", "-fPIC"]) else {
        return;
    };
    let body = "if (rank == 0) MPI_Ssend(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);\n\
        else { usleep(5); MPI_Recv(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }";
    let Some(program) = Program::with_body(body) else { return };
    let output =
        program.command(2, &[]).env("LD_PRELOAD", &tool.file).assert().success().get_output().stdout.clone();
    let mut lines: Vec<_> = std::str::from_utf8(&output).unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines[0], "0 0");
    let sent: Vec<f64> = lines[1].split(' ').map(|number| number.parse().unwrap()).collect();
    assert!(sent[0] == 1.0 && (5000.0..20_000.0).contains(&sent[1]), "{lines:?}");
}

/// Measured computations are the processor time of the thread, whether they are short, so that the wall clock is read, or long.
#[test]
fn measured_computations_are_processor_time() {
    let body = "double begin, spun = 0;\nstruct timespec t, pause = {0, 10000000};\n\
        void spin(double s) {\ndouble first = 0, now = 0;\ndo {\nclock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);\n\
        now = t.tv_sec + 1e-9 * t.tv_nsec;\nfirst = first ? first : now;\n} while (now < first + s);\nspun += now - first;\n}\n\
        begin = MPI_Wtime();\n\
        for (int i = 0; i < 500; i++) { spin(5e-6); MPI_Barrier(MPI_COMM_SELF); }\n\
        for (int i = 0; i < 20; i++) { spin(1e-3); syscall(SYS_nanosleep, &pause, NULL); MPI_Barrier(MPI_COMM_SELF); }\n\
        double simulated = MPI_Wtime() - begin;\n\
        printf(\"%s\\n\", simulated > 0.9 * spun && simulated < 1.5 * spun ? \"ok\" : \"differs\");\n\
        if (simulated <= 0.9 * spun || simulated >= 1.5 * spun) fprintf(stderr, \"%g s for %g s\\n\", simulated, spun);";
    let text =
        format!("#define _GNU_SOURCE\n#include <sys/syscall.h>\n#include <time.h>\n{}", main_with(body));
    let folder = Folder::new();
    let Some(program) = Program::compile(&folder.write("program.c", &text)) else { return };
    let flags = ["--set", "online.computation='measured'", "--set", "online.clock='wtime'"];
    assert_eq!(program.lines_and_digest(2, &flags).0, ["ok"; 2]);
}

/// Long computations are told while they last, also after a message that is on its way: data arrive, and the trace of the run has its digest.
#[test]
fn long_computations_are_those_of_the_record() {
    let body = "for (int round = 0; round < 60; round++) {\n\
        int sent = 100 * rank + round, got, before = (rank + size - 1) % size;\nMPI_Request request;\n\
        MPI_Isend(&sent, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, &request);\n\
        for (volatile int i = 0; i < 100000 * (1 + rank % 3); i++);\n\
        MPI_Recv(&got, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\nMPI_Wait(&request, MPI_STATUS_IGNORE);\n\
        if (got != 100 * before + round) printf(\"lost\\n\");\n\
        for (volatile int i = 0; i < 300000; i++);\nMPI_Barrier(MPI_COMM_WORLD);\n}\nprintf(\"%d\\n\", rank);";
    let Some(program) = Program::with_body(body) else { return };
    let lines = program.lines_of_recorded(5, &["--set", "online.computation='measured'"]);
    assert_eq!(lines, ["0", "1", "2", "3", "4"]);
}

/// More operations than fit into a turn are not lost where ranks compute at once, as a turn ends by an operation that takes no time.
#[test]
fn operations_of_many_turns_are_not_lost() {
    let body = "enum { COUNT = 300 };\nstatic int sent[COUNT], got[COUNT];\nstatic MPI_Request requests[2 * COUNT];\n\
        int wrong = 0, to = (rank + 1) % size, from = (rank + size - 1) % size;\n\
        for (int round = 0; round < 25; round++) {\nfor (volatile int i = 0; i < 50000; i++);\n\
        for (int k = 0; k < COUNT; k++) {\nMPI_Irecv(got + k, 1, MPI_INT, from, k, MPI_COMM_WORLD, requests + k);\n\
        for (volatile int i = 0; i < 200; i++);\n}\n\
        for (int k = 0; k < COUNT; k++) {\nsent[k] = COUNT * round + k;\n\
        MPI_Isend(sent + k, 1, MPI_INT, to, k, MPI_COMM_WORLD, requests + COUNT + k);\n\
        for (volatile int i = 0; i < 500; i++);\nif (k % 100 == 0) MPI_Wtime();\n}\n\
        MPI_Waitall(2 * COUNT, requests, MPI_STATUSES_IGNORE);\n\
        for (int k = 0; k < COUNT; k++) wrong += got[k] != COUNT * round + k;\n}\nprintf(\"%d\\n\", wrong);";
    let Some(program) = Program::with_body(body) else { return };
    let flags: [&[&str]; 2] = [
        &["--set", "online.computation='none'"],
        &["--set", "online.computation='fixed'", "--set", "online.fixed_s=1e-7"],
    ];
    for flags in flags {
        let outcomes = [0; 3].map(|_| program.lines_and_digest(4, flags));
        assert_eq!(outcomes[0].0, ["0"; 4], "{flags:?}");
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{outcomes:?}");
    }
}

/// Operations that a rank posts before it has the turn for the first time are not lost.
#[test]
fn each_rank_has_a_communicator_of_its_own() {
    let body = "int one = 1, sum = 0;\nMPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);\nprintf(\"%d\\n\", sum);";
    let Some(program) = Program::with_body(body) else { return };
    assert_eq!(program.lines_and_digest(4, &[]).0, ["1"; 4]);
}

/// A loop that waits for an instant ends, though it computes nothing; it is late by its last step at most.
/// The flag says what the key `online.clock` says.
#[test]
fn all_clocks_are_simulated_by_a_flag() {
    let body = "struct timespec before, after; clock_gettime(CLOCK_MONOTONIC, &before); sleep(1000);\n\
        clock_gettime(CLOCK_MONOTONIC, &after); printf(\"%ld\\n\", after.tv_sec - before.tv_sec);";
    let Some(program) = Program::with_body(body) else { return };
    program.folder.write("run.toml", &SETTINGS.replace("clock = 'all'", "clock = 'wtime'"));
    let (lines, _) = program.lines_and_digest(1, &["--clock", "all"]);
    assert_eq!(lines, ["1000"]);
    let both = ["--clock", "all", "--set", "online.clock='wtime'"];
    program.run(1, &both).code(2).stderr(contains("--set online.clock='wtime' says otherwise"));
}

#[test]
fn loops_that_read_the_clock_end() {
    let body = "double begin = MPI_Wtime(), end = begin;\nwhile (end < begin + 0.01) end = MPI_Wtime();\n\
        printf(\"%d\\n\", end - begin < 0.0102);";
    let Some(program) = Program::with_body(body) else { return };
    assert_eq!(program.lines_and_digest(2, &[]).0, ["1"; 2]);
}

/// Each member of an intercommunicator takes its slice of what the other group reduces.
#[test]
fn groups_reduce_and_scatter_for_each_other() {
    let body = "MPI_Comm local, inter;\nMPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &local);\n\
        MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 4, &inter);\n\
        int n, mine[12], got[12], all[12], counts[3] = {12 - 8 * (rank > 0), 2, 6}, me;\nMPI_Comm_size(inter, &n);\nMPI_Comm_rank(inter, &me);\n\
        for (int i = 0; i < 12; i++) mine[i] = 100 * rank + i;\n\
        MPI_Reduce_scatter_block(mine, got, 12 / n, MPI_INT, MPI_SUM, inter);\n\
        MPI_Reduce_scatter(mine, all, counts, MPI_INT, MPI_SUM, inter);\n\
        printf(\"%d %d %d %d %d\\n\", rank, got[0], got[12 / n - 1], all[0], all[counts[me] - 1]);\n\
        MPI_Comm_free(&inter);\nMPI_Comm_free(&local);";
    let Some(program) = Program::with_body(body) else { return };
    let expected = ["0 600 633 600 633", "1 0 3 0 3", "2 4 7 4 5", "3 8 11 6 11"];
    assert_eq!(program.lines_and_digest(4, &[]).0, expected);
}

/// A clock that moves is read as often as a program wants.
#[test]
fn short_pieces_are_timed() {
    let body = "double begin = MPI_Wtime(), end = begin;\nfor (int i = 0; i < 5000; i++) end = MPI_Wtime();\n\
        printf(\"%.7f\\n\", end - begin);";
    let Some(program) = Program::with_body(body) else { return };
    let flags = ["--set", "online.computation='fixed'", "--set", "online.fixed_s=1e-7"];
    assert_eq!(program.lines_and_digest(2, &flags).0, ["0.0005000"; 2]);
}

#[test]
fn calls_after_the_end_are_named() {
    let text = "#include <mpi.h>\nint main(int argc, char **argv) {\nMPI_Init(&argc, &argv);\nMPI_Finalize();\n\
        return MPI_Wtime() < 0 ? 2 : MPI_Barrier(MPI_COMM_WORLD);\n}\n";
    let folder = Folder::new();
    let Some(program) = Program::compile(&folder.write("program.c", text)) else { return };
    program.run(2, &[]).code(1).stderr(contains("calls MPI_Barrier after MPI_Finalize, called from"));
}

/// Accesses by the shared pointer of a file are one after the other, ordered ones in the order of ranks.
#[test]
fn files_have_a_shared_pointer() {
    let body = "MPI_File file; MPI_Status status; MPI_Offset at; int value = 10 + rank, all[8], count; char name[200];\n\
        sprintf(name, \"%s.data\", argv[0]);\n\
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);\n\
        MPI_File_set_view(file, 4, MPI_INT, MPI_INT, \"native\", MPI_INFO_NULL);\n\
        MPI_File_write_ordered(file, &value, 1, MPI_INT, &status);\n\
        MPI_File_get_position_shared(file, &at);\nprintf(\"at %d\\n\", (int)at);\nMPI_Barrier(MPI_COMM_WORLD);\n\
        usleep(10 * (size - rank));\nMPI_File_write_shared(file, &value, 1, MPI_INT, &status);\nMPI_Barrier(MPI_COMM_WORLD);\n\
        MPI_File_seek_shared(file, -2, MPI_SEEK_END);\nMPI_File_read_ordered_begin(file, &value, rank < 2, MPI_INT);\n\
        MPI_File_read_ordered_end(file, &value, &status);\nMPI_Get_count(&status, MPI_INT, &count);\n\
        printf(\"last %d %d\\n\", rank, count ? value : 0);\n\
        MPI_File_read_at(file, 0, all, 2 * size, MPI_INT, &status);\n\
        if (rank == 0) for (int i = 0; i < 2 * size; i++) printf(\"file %d %d\\n\", i, all[i]);\nMPI_File_close(&file);";
    let Some(program) = Program::with_body(body) else { return };
    let (lines, _) = program.lines_and_digest(3, &["--threads", "1"]);
    let mut expected =
        ["at 3", "at 3", "at 3", "last 0 11", "last 1 10", "last 2 0"].map(str::to_owned).to_vec();
    // The last rank sleeps shortest.
    let values = [10, 11, 12, 12, 11, 10];
    expected.extend((0..).zip(values).map(|(place, value)| format!("file {place} {value}")));
    expected.sort_unstable();
    assert_eq!(lines, expected);
    program
        .run(3, &["--threads", "2"])
        .code(1)
        .stderr(contains("shared pointer of a file runs on one thread"));
}

/// Functions that copy and delete attributes are the program's, and their calls those of a rank.
#[test]
fn functions_of_attributes_are_those_of_a_rank() {
    let folder = Folder::new();
    let text = "#include <mpi.h>\n#include <stdio.h>\n\
        static int gone(MPI_Comm c, int key, void *value, void *state) {\nint rank; MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n\
        printf(\"%d\\n\", rank);\nreturn MPI_SUCCESS;\n}\n\
        int main(int argc, char **argv) {\nint key; MPI_Comm copy;\nMPI_Init(&argc, &argv);\nMPI_Comm_dup(MPI_COMM_WORLD, &copy);\n\
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, gone, &key, NULL);\nMPI_Comm_set_attr(copy, key, NULL);\n\
        MPI_Comm_free(&copy);\nMPI_Finalize();\nreturn 0;\n}\n";
    let Some(program) = Program::compile(&folder.write("program.c", text)) else { return };
    assert_eq!(program.lines_and_digest(3, &[]).0, ["0", "1", "2"]);
}

#[test]
fn mistakes_are_named_with_rank_and_call() {
    let cases = [
        (
            "int x; MPI_Recv(&x, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);",
            "rank 1 in MPI_Recv from rank 0, tag 5",
            1,
        ),
        (
            "if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7); MPI_Barrier(MPI_COMM_WORLD);",
            "called MPI_Abort(7)",
            7,
        ),
        ("if (rank == 1) exit(3);", "ended with exit status 3 before MPI_Finalize", 3),
        ("if (rank == 1) abort();", "was ended by signal 6 (abort) before MPI_Finalize", 134),
        ("MPI_Send(&rank, 1, MPI_INT, 9, 0, MPI_COMM_WORLD);", "in MPI_Send", 1),
        (
            "MPI_Gather(&rank, 1, MPI_DATATYPE_NULL, &size, 1, MPI_INT, 0, MPI_COMM_WORLD);",
            "MPI_ERR_TYPE: invalid datatype",
            1,
        ),
        (
            "if (rank) MPI_Barrier(MPI_COMM_WORLD); else MPI_Bcast(&rank, 1, MPI_INT, 0, MPI_COMM_WORLD);",
            "has MPI_Bcast in the same collective operation, called from /",
            1,
        ),
        ("MPI_Bcast(&size, 1, MPI_INT, rank, MPI_COMM_WORLD);", "calls MPI_Bcast with root ", 1),
        (
            "double all[4]; MPI_Reduce(&all[2], all, 1 + rank, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);",
            "B for each member, and rank ",
            1,
        ),
        (
            "MPI_Allreduce(MPI_IN_PLACE, &size, 1, MPI_INT, rank ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);",
            "in the same collective operation, called from /",
            1,
        ),
        (
            "MPI_Request request[2]; if (rank) MPI_Recv(&size, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n\
             else MPI_Send((int[]){1, 2, 3}, 3, MPI_INT, 1, 3, MPI_COMM_WORLD);",
            "MPI_ERR_TRUNCATE: message truncated: the message from rank 0 has 12 B, but the receive that matches it has room for 4 B",
            1,
        ),
        (
            "MPI_Comm child; MPI_Comm_spawn(\"x\", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child, NULL);",
            "MPI_Comm_spawn does not run online",
            1,
        ),
    ];
    for (body, message, code) in cases {
        let Some(program) = Program::with_body(body) else { return };
        program.run(2, &[]).code(code).stderr(contains(message));
    }
}

/// Ranks that poll for what nobody sends end the run where the clock stands.
#[test]
fn endless_polls_are_named_with_rank_and_call() {
    let request = "int x, flag = 0; MPI_Request request; MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &request);\n\
        if (rank) MPI_Recv(&x, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n";
    let polls = [
        ("MPI_Test(&request, &flag, MPI_STATUS_IGNORE)", "for request"),
        ("MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE)", "from any rank, tag 5"),
    ];
    for (poll, call) in polls {
        let Some(program) = Program::with_body(&format!("{request}while (!flag) {poll};")) else { return };
        let name = &poll[..poll.find('(').unwrap()];
        program
            .run(2, &[])
            .code(1)
            .stderr(contains("livelock in the program"))
            .stderr(contains(format!("rank 0 in {name}")).and(contains(call)))
            .stderr(contains("rank 1 in MPI_Recv from rank 0, tag 5"));
    }
}

/// Requests, communicators and datatypes that a program leaves are warned of at its end, with the call that has made them, and messages that
/// are received with another type.
#[test]
fn what_a_program_leaves_and_mixes_is_named() {
    let body = "MPI_Request request;\nMPI_Comm copy;\nMPI_Datatype type, freed;\nint value;\n\
        if (rank == 0) MPI_Isend(&size, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &request);\n\
        if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n\
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);\nMPI_Type_contiguous(3, MPI_INT, &type);\n\
        if (rank == 0) { float one = 1; MPI_Send(&one, 1, MPI_FLOAT, 2, 5, MPI_COMM_WORLD); }\n\
        if (rank == 2) MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n\
        MPI_Type_contiguous(2, MPI_INT, &freed);\nMPI_Type_commit(&freed);\nMPI_Type_free(&freed);\n\
        MPI_Op operator;\nMPI_Op_create((MPI_User_function *)exit, 1, &operator);\nMPI_Group group;\nMPI_Comm_group(MPI_COMM_WORLD, &group);\n\
        if (rank == 1) for (int i = 0; i < 2; i++) MPI_Send(&rank, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);\n\
        if (rank == 2) MPI_Gather(&rank, 1, MPI_INT, NULL, 1, MPI_INT, 0, MPI_COMM_WORLD);";
    let Some(program) = Program::with_body(body) else { return };
    let warned = program.run(3, &[]).success();
    for message in [
        "rank 0: 1 request(s) were never completed, the first one of MPI_Isend, called from /",
        "rank 0 and 2 other(s): 1 communicator(s) were never freed, the first one of MPI_Comm_dup",
        "rank 2: MPI_Recv takes elements from rank 0 that are floating-point numbers of 4 B for integers or others of 4 B",
        "rank 0 and 2 other(s): 1 datatype(s) were never freed, the first one of MPI_Type_contiguous",
        "rank 0 and 2 other(s): 1 operator(s) were never freed, the first one of MPI_Op_create, called from /",
        "rank 0 and 2 other(s): 1 group(s) were never freed, the first one of MPI_Comm_group",
        "rank 1: 2 message(s) to rank 0 were never received, the first one of MPI_Send to rank 0, tag 6, 4 B on communicator 0, called",
        "rank 2: 1 of 3 members have called MPI_Gather on communicator 0, called from /",
    ] {
        let output = String::from_utf8_lossy(&warned.get_output().stderr).into_owned();
        assert!(output.contains(message), "{message}: {output}");
    }
}

/// A rank that is to be debugged stops; what a debugger does to let it go on, a signal does as well.
#[test]
fn a_rank_waits_for_a_debugger() {
    let Some(program) = Program::with_body("printf(\"%d\\n\", rank);") else { return };
    // Killed if the rank never stops.
    let mut run = Command::new("timeout");
    run.arg("60").arg(command().get_program()).args(["online", "-np", "2", "--gdb", "1", "--config"]);
    run.arg(program.folder.path("run.toml")).arg(&program.file);
    let mut running = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stderr.take().unwrap()).lines().map_while(Result::ok);
    let told = lines.find(|line| line.contains("rank 1 waits for a debugger: gdb -p ")).unwrap();
    let process = told.rsplit("gdb -p ").next().and_then(|rest| rest.split(',').next()).unwrap().to_owned();
    let state = || std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    while !state().contains(") T ") {
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-CONT", &process]).status().unwrap().success());
    lines.for_each(drop);
    let output = running.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout.len(), "0\n1\n".len());
    program.run(2, &["--gdb", "2"]).code(2).stderr(contains("--gdb 2: the program has ranks 0 to 1"));
}

/// Buffers that are changed while a request is pending are named on demand; those that are used again after its end are not.
#[test]
fn changed_buffers_of_pending_requests_are_named() {
    let body = |changed: &str| {
        format!(
            "int sent[3] = {{1, 2, 3}}, got[3] = {{0}};\nMPI_Request requests[2], start;\nMPI_Datatype ends;\n\
             MPI_Type_vector(2, 1, 2, MPI_INT, &ends);\nMPI_Type_commit(&ends);\n\
             MPI_Send_init(sent, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &start);\n\
             for (int step = 0; step < 2; step++) {{\nsent[0] = step;\n\
             MPI_Irecv(got, 1, ends, rank, 0, MPI_COMM_WORLD, &requests[0]);\n\
             MPI_Isend(sent, 1, ends, rank, 0, MPI_COMM_WORLD, &requests[1]);\n\
             sent[1] = got[1] = 5;\n{changed}\nMPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n\
             MPI_Start(&start);\nMPI_Recv(&got[1], 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n\
             MPI_Wait(&start, MPI_STATUS_IGNORE);\n}}\nMPI_Request_free(&start);\nMPI_Type_free(&ends);"
        )
    };
    let check = ["--set", "online.check_buffers=true"];
    let said = "the program has changed the buffer of";
    for (changed, call) in
        [("sent[2] = 7;", Some("MPI_Isend")), ("got[0] = 7;", Some("MPI_Irecv")), ("", None)]
    {
        let Some(program) = Program::with_body(&body(changed)) else { return };
        let checked = program.run(1, &check).success();
        match call {
            Some(call) => {
                checked.stderr(contains(format!("{said} {call} before")).and(contains("called from")))
            }
            None => checked.stderr(contains(said).not()),
        };
        program.run(1, &[]).success().stderr(contains(said).not());
    }
}

/// A message must not be received into memory of another that is pending; two may be sent from the same.
#[test]
fn buffers_that_pending_messages_share_are_named() {
    let body = |first: &str, second: &str| {
        format!(
            "int got[8], sent[8] = {{0}};\nMPI_Request requests[4];\nMPI_Datatype even;\n\
             MPI_Type_vector(2, 1, 2, MPI_INT, &even);\nMPI_Type_commit(&even);\n\
             MPI_Irecv({first}, 0, MPI_COMM_WORLD, &requests[0]);\nMPI_Irecv({second}, 1, MPI_COMM_WORLD, &requests[1]);\n\
             for (int i = 0; i < 2; i++) MPI_Isend(sent, 2, MPI_INT, rank, i, MPI_COMM_WORLD, &requests[2 + i]);\n\
             MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);\n\
             MPI_Irecv(got, 4, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[0]);\n\
             MPI_Send(sent, 4, MPI_INT, rank, 0, MPI_COMM_WORLD);\nMPI_Wait(&requests[0], MPI_STATUS_IGNORE);\nMPI_Type_free(&even);"
        )
    };
    let said = "the buffer of MPI_Irecv overlaps that of MPI_Irecv, which was not completed before";
    let check = ["--set", "online.check_buffers=true"];
    let cases = [
        ("got, 4, MPI_INT, rank", "&got[3], 4, MPI_INT, rank", true),
        ("got, 4, MPI_INT, rank", "&got[4], 4, MPI_INT, rank", false),
        ("got, 1, even, rank", "&got[1], 1, even, rank", false),
    ];
    for (first, second, is_named) in cases {
        let Some(program) = Program::with_body(&body(first, second)) else { return };
        let checked = program.run(1, &check).success();
        match is_named {
            true => checked.stderr(contains(said).and(contains("called from"))),
            false => checked.stderr(contains("overlaps").not()),
        };
        program.run(1, &[]).success().stderr(contains("overlaps").not());
    }
}

#[test]
fn static_programs_are_refused() {
    let folder = Folder::new();
    let (source, program) =
        (folder.write("program.c", "int main(void) { return 0; }\n"), folder.path("program"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compiled = Command::new(compiler).arg("-static").arg(source).arg("-o").arg(&program).output();
    assert!(compiled.unwrap().status.success());
    let mut run = command();
    run.args(["online", "-n", "2"]).arg(program);
    run.assert().code(1).stderr(contains("is linked statically"));
}

#[test]
fn commands_without_mpi_are_refused() {
    let mut run = command();
    run.args(["online", "-n", "2", "true"]);
    run.assert().code(1).stderr(contains("no process of it was an MPI program"));
}

#[test]
fn what_an_online_run_cannot_have_is_refused_by_name() {
    let folder = Folder::new();
    let directory = folder.path("checkpoints").to_string_lossy().into_owned();
    let place = folder.path("").to_string_lossy().into_owned();
    let cases: [(&[&str], &str); 5] = [
        (&["--set", "online.fixed_s='1us'"], "set online.computation = \"fixed\", or leave fixed_s out"),
        (&["--record", &place], "found a directory, expected the name of a file"),
        (&["--checkpoint", &directory], "an online run cannot have a checkpoint"),
        (&["--set", "engine.fast_forward=true"], "an online run cannot have fast-forward"),
        (&["--trace", "x"], "--trace is for replays"),
    ];
    for (flags, message) in cases {
        let mut run = command();
        run.args(["online", "-n", "2"]).args(flags).arg("true");
        run.assert().code(2).stderr(contains(message));
    }
}
