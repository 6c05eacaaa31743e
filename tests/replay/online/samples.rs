//! Sampled blocks of programs: executed until their time is known, then skipped.

use std::process::Command;

use pdes_replay::{Sampling, SavedReport};
use predicates::str::contains;

use super::Program;
use crate::command_line::{Folder, command};

/// Returns the directory of the headers, as the command prints it.
fn headers() -> String {
    let output = command().args(["tracer", "headers"]).assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap().trim_end().to_owned()
}

/// Compiles `main` with a body; `work` takes some time, and `times` counts executions.
fn program(body: &str) -> Option<Program> {
    let folder = Folder::new();
    let text = format!(
        "#include <mpi.h>\n#include <pdes_sample.h>\n#include <stdio.h>\nstatic volatile double sum;\n\
         static void work(void) {{ for (int i = 0; i < 100000; i++) sum += i; }}\n\
         int main(int argc, char **argv)\n{{\nint rank, times = 0;\nMPI_Init(&argc, &argv);\n\
         MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n{body}\nprintf(\"%d\\n\", times);\nMPI_Finalize();\nreturn 0;\n}}\n"
    );
    Program::compile_with(&folder.write("program.c", &text), &[&format!("-I{}", headers())])
}

/// Runs a program on two ranks; returns what they print, the section of the report, and the time of computations of all ranks \[s\].
fn run(program: &Program, flags: &[&str]) -> (Vec<String>, Sampling, f64) {
    let (lines, _) = program.lines_and_digest(2, flags);
    let report = SavedReport::from_path(&program.folder.path("report.json")).unwrap();
    let computations = report.time_by_action.iter().find(|total| total.action == "compute");
    (lines, report.sections.sampling.unwrap(), computations.map_or(0.0, |total| total.time_s))
}

#[test]
fn a_sampled_block_takes_its_mean_time_once_that_is_known() {
    let Some(program) = program("for (int i = 0; i < 50; i++) PDES_SAMPLE_LOCAL(5, 0) { times++; work(); }")
    else {
        return;
    };
    let (lines, sampling, computations) = run(&program, &["--set", "online.computation='measured'"]);
    assert_eq!(lines, ["5", "5"]);
    let [block] = &sampling.blocks[..] else { panic!("{sampling:?}") };
    assert!(block.place.ends_with("program.c:11") && !block.of_all_ranks, "{block:?}");
    assert_eq!((block.executed, block.skipped), (10, 90));
    // Each rank takes fifty times its mean; both have as many executions.
    assert!(block.mean_work > 0.0 && computations >= 99.999 * block.mean_work, "{computations} {block:?}");
    program
        .run(2, &["--set", "online.computation='measured'"])
        .success()
        .stderr(contains("program.c:11 (executed 10 times, skipped 90 times)"));
}

#[test]
fn a_precise_mean_ends_the_samples_and_those_of_all_ranks_count_together() {
    let body = "for (int i = 0; i < 500; i++) PDES_SAMPLE_LOCAL(500, 0.5) { times++; work(); }\n\
        for (int i = 0; i < 20; i++) { PDES_SAMPLE_GLOBAL(6, 0) work(); MPI_Barrier(MPI_COMM_WORLD); }";
    let Some(program) = program(body) else { return };
    let (_, sampling, _) = run(&program, &["--set", "online.computation='measured'", "--threads", "1"]);
    let [local, global] = &sampling.blocks[..] else { panic!("{sampling:?}") };
    assert!(local.executed >= 4 && local.skipped > 0 && local.executed + local.skipped == 1000, "{local:?}");
    assert!(global.of_all_ranks, "{global:?}");
    assert_eq!((global.executed, global.skipped), (6, 34));
}

/// The number of executions without measured computations is that of the program, on any number of threads.
#[test]
fn without_measurements_each_rank_executes_its_samples() {
    let body = "for (int i = 0; i < 20; i++) PDES_SAMPLE_GLOBAL(5, 0.9) { times++; if (i == 1) continue; work(); }\n\
        for (int i = 0; i < 20; i++) PDES_SAMPLE_LOCAL(2, 0) times += 100;";
    let Some(program) = program(body) else { return };
    for flags in [&["--threads", "1"], &["--threads", "2"]] {
        let (lines, sampling, computations) = run(&program, flags);
        assert_eq!(lines, ["203", "203"]);
        let counts: Vec<_> = sampling.blocks.iter().map(|block| (block.executed, block.skipped)).collect();
        assert_eq!((counts, computations), (vec![(6, 34), (4, 36)], 0.0));
    }
}

#[test]
fn calls_in_a_block_and_blocks_that_are_left_are_named() {
    let cases = [
        "PDES_SAMPLE_LOCAL(5, 0) MPI_Barrier(MPI_COMM_WORLD);",
        "PDES_SAMPLE_LOCAL(5, 0) break;\nMPI_Barrier(MPI_COMM_WORLD);",
        "PDES_SAMPLE_LOCAL(5, 0) { PDES_SAMPLE_GLOBAL(5, 0) work(); }",
    ];
    for body in cases {
        let Some(program) = program(body) else { return };
        program
            .run(2, &[])
            .code(1)
            .stderr(contains("program.c:11, which may be skipped: the block must not call MPI"));
    }
    let Some(program) = program("PDES_SAMPLE_LOCAL(0, 0) work();") else { return };
    program.run(2, &[]).code(1).stderr(contains("expected at least one sample"));
}

/// Without a run online all blocks are executed, and nothing has to be linked.
#[test]
fn a_program_alone_executes_its_blocks() {
    let folder = Folder::new();
    let text = "#include <pdes_sample.h>\nint main(void) {\nint times = 0;\n\
        for (int i = 0; i < 50; i++) PDES_SAMPLE_LOCAL(5, 0) times++;\nreturn times;\n}\n";
    let (source, file) = (folder.write("program.c", text), folder.path("program"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compiled =
        Command::new(compiler).arg(format!("-I{}", headers())).arg(source).arg("-o").arg(&file).output();
    assert!(compiled.unwrap().status.success());
    assert_eq!(Command::new(file).status().unwrap().code(), Some(50));
}

#[test]
fn blocks_of_fortran_programs_are_sampled() {
    let folder = Folder::new();
    let text = "program blocks\nuse mpi\nuse pdes_sample\nimplicit none\ninteger :: i, times, error\ncall MPI_Init(error)\ntimes = 0\n\
        do i = 1, 20\nif (pdes_sample_local('loop ', 4, 0d0)) then\ntimes = times + 1\ncall pdes_sample_end()\nend if\nend do\n\
        print '(i0)', times\ncall MPI_Finalize(error)\nend program blocks\n";
    let source = folder.write("program.f90", text);
    let module = format!("{}/pdes_sample.f90", headers());
    let Some(program) =
        Program::compile_by("mpifort", &source, &[&module, &format!("-J{}", folder.path("").display())])
    else {
        return;
    };
    let (lines, sampling, _) = run(&program, &[]);
    assert_eq!(lines, ["4", "4"]);
    let counts: Vec<_> = sampling.blocks.iter().map(|block| (block.place.as_str(), block.skipped)).collect();
    assert_eq!(counts, [("loop", 32)]);
}
