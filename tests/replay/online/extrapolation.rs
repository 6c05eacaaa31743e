//! Programs that are left once their calls repeat: what follows is that of the whole run.

use pdes_replay::SavedReport;
use predicates::str::contains;

use super::Program;

/// A stencil with as many steps as the environment says; its third rank is not in step with the others before it begins.
const STENCIL: &str = "double halo[2] = {0}, sum = 0, all; MPI_Request requests[4];\nint steps = atoi(getenv(\"STEPS\"));\n\
    int left = (rank + size - 1) % size, right = (rank + 1) % size;\nMPI_Bcast(&steps, 1, MPI_INT, 0, MPI_COMM_WORLD);\n\
    if (rank == 2) MPI_Send(&rank, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);\n\
    if (rank == 0) MPI_Recv(&left, 1, MPI_INT, 2, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE), left = size - 1;\n\
    for (int step = 0; step < steps; step++) {\n\
    MPI_Irecv(&halo[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);\n\
    MPI_Irecv(&halo[1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);\n\
    MPI_Isend(&sum, 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[2]);\n\
    MPI_Isend(&sum, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[3]);\n\
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);\n\
    if (rank % 2) for (int part = 0; part < 3; part++) MPI_Sendrecv(&sum, 1, MPI_DOUBLE, rank, 7, &all, 1, MPI_DOUBLE, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n\
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);\nsum += all;\n}";

/// Runs the program; returns the report and what is said of the run.
fn run(program: &Program, steps: u64, flags: &[&str]) -> (SavedReport, String) {
    let report = program.folder.path("report.json");
    let mut command = program.command(4, &[flags, &["--report", &report.to_string_lossy()]].concat());
    let done = command.env("STEPS", steps.to_string()).timeout(std::time::Duration::from_secs(120)).assert();
    let said = String::from_utf8_lossy(&done.success().get_output().stderr).into_owned();
    (SavedReport::from_path(&report).unwrap(), said)
}

#[test]
fn a_program_that_is_left_has_the_time_and_the_digest_of_the_whole_run() {
    let Some(program) = Program::with_body(STENCIL) else { return };
    let left = ["--extrapolate", "iterations=400"];
    let has_cores = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    for model in [["--model", "contention-free"], ["--model", "flow"]] {
        let (whole, _) = run(&program, 400, &model);
        // It would never end.
        for threads in ["1", "2"] {
            let flags = [&model as &[&str], &left, &["--threads", threads]].concat();
            let (replayed, said) = run(&program, 2_000_000_000, &flags);
            assert_eq!(
                (&replayed.digest, replayed.simulated_time_s),
                (&whole.digest, whole.simulated_time_s)
            );
            assert!(
                !has_cores || !said.contains("threads for 1 core"),
                "it is no longer kept on one: {said}"
            );
            let report = std::fs::read(program.folder.path("report.json")).unwrap();
            let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
            assert!(report["fast_forward"]["skipped_iterations"].as_u64() > Some(300), "{said}");
            assert!(
                replayed.warnings.iter().any(|warning| warning.contains("400 of them were replayed")),
                "{said}"
            );
        }
    }
    // What follows the loop is the computation before the end alone.
    let fixed = ["--set", "online.computation='fixed'", "--set", "online.fixed_s='1us'"];
    let (whole, _) = run(&program, 400, &fixed);
    let trace = program.folder.path("left.pdt");
    let record = ["--record", &trace.to_string_lossy()];
    let (replayed, _) = run(&program, 2_000_000_000, &[&fixed as &[&str], &left, &record].concat());
    let difference = whole.simulated_time_s - replayed.simulated_time_s;
    assert!((difference - 1e-6).abs() < 1e-9, "{difference}");
    assert!(trace.exists());
}

#[test]
fn measured_computations_of_a_loop_are_means() {
    let work = "sum += all;\nfor (volatile int i = 0; i < 10000; i++);";
    let Some(program) = Program::with_body(&STENCIL.replace("sum += all;", work)) else { return };
    let measured = ["--set", "online.computation='measured'", "--extrapolate", "iterations=1000,executed=20"];
    let (replayed, said) = run(&program, 2_000_000_000, &measured);
    let computed = replayed.time_by_action.iter().find(|total| total.action == "compute").unwrap();
    // At least 1 ns for each round of the work, in each step of four ranks.
    assert!(computed.time_s > 1000.0 * 4.0 * 1e-6, "{said}");
}

#[test]
fn programs_that_do_not_repeat_go_on() {
    let growing = STENCIL.replace(
        "MPI_Allreduce(&sum, &all, 1,",
        "MPI_Send(0, 0, MPI_INT, rank, step, MPI_COMM_WORLD);\nMPI_Allreduce(&sum, &all, 1,",
    );
    let Some(program) = Program::with_body(&growing) else { return };
    let (whole, _) = run(&program, 100, &[]);
    let (same, said) = run(&program, 100, &["--extrapolate", "iterations=50"]);
    assert_eq!(same.digest, whole.digest);
    assert!(said.contains("the program was executed to its end (--extrapolate)"), "{said}");
    for (rule, what) in
        [("iterations=5", "less than the 10 that are executed"), ("steps=9", "found steps=9, expected")]
    {
        program.run(4, &["--extrapolate", rule]).code(2).stderr(contains(what));
    }
}
