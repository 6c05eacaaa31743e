//! Regions of programs: reports have their times, and computations their speeds.

use pdes_replay::SavedReport;

use super::Program;

/// Returns the regions of a report, with the computation of all ranks in each [ns].
fn regions(report: &SavedReport) -> Vec<(Option<String>, u64)> {
    let breakdown = report.sections.breakdown.as_ref().unwrap();
    let of_region = |region: &pdes_replay::RegionParts| {
        (region.site.clone(), (region.parts.compute_s * 1e9).round() as u64)
    };
    let mut all: Vec<_> = breakdown.regions.iter().map(of_region).collect();
    all.sort();
    all
}

#[test]
fn computations_belong_to_regions_in_reports_and_in_the_record() {
    let body = "MPI_Barrier(MPI_COMM_WORLD);\npdes_region_begin(\"the solver\");\nMPI_Barrier(MPI_COMM_WORLD);\nMPI_Pcontrol(3);\n\
        MPI_Pcontrol(1);\nMPI_Barrier(MPI_COMM_WORLD);\nMPI_Barrier(MPI_COMM_WORLD);\npdes_region_begin(\"inner\");\nMPI_Pcontrol(-3);\n\
        MPI_Barrier(MPI_COMM_WORLD);\npdes_region_end();\npdes_region_end();\nMPI_Barrier(MPI_COMM_WORLD);";
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../ti-tracer/include/pdes_region.h");
    let text = format!(
        "#include <mpi.h>\n#include \"{header}\"\nint main(int argc, char **argv)\n{{\nMPI_Init(&argc, &argv);\n{body}\nMPI_Finalize();\nreturn 0;\n}}\n"
    );
    let folder = crate::command_line::Folder::new();
    let Some(program) = Program::compile(&folder.write("program.c", &text)) else { return };
    let trace = program.folder.path("run.pdt").to_string_lossy().into_owned();
    let flags = [
        "--set",
        "online.computation='fixed'",
        "--set",
        "online.fixed_s='1us'",
        "--set",
        "compute.region_speeds={ 'the_solver/level-3' = 0.2 }",
        "--record",
        &trace,
    ];
    let (_, digest) = program.lines_and_digest(2, &flags);
    let report = SavedReport::from_path(&program.folder.path("report.json")).unwrap();
    // Of both ranks: one computation before the first barrier, two in each region, and two after them.
    let named = |name: &str, ns| (Some(name.to_owned()), ns);
    let expected = [
        (None, 2000),
        named("outside", 4000),
        named("the_solver", 4000),
        named("the_solver/level-3", 20_000),
        named("the_solver/level-3/inner", 0),
    ];
    assert_eq!(regions(&report), expected);
    let replayed = program.replay(&flags[4..6], &trace);
    assert_eq!((replayed.digest.to_string(), regions(&replayed)), (digest, expected.to_vec()));
}

/// Measured times have the speed of each region on this machine: factors that hold for it would count twice.
#[test]
fn speeds_of_regions_are_warned_of_where_times_are_measured() {
    let Some(program) = Program::with_body("MPI_Barrier(MPI_COMM_SELF);") else { return };
    let warning =
        "WARN the times that are measured are divided by compute.region_speeds, which have to be of";
    let speeds = "--set=compute.region_speeds={ '' = 2.0 }";
    for (flags, warns) in [
        (&["--set=online.computation='measured'", speeds] as &[&str], true),
        (&["--set=online.computation='measured'"], false),
        (&["--set=online.computation='none'", speeds], false),
        (&["--set=online.computation='fixed'", "--set=online.fixed_s='1us'", speeds], false),
    ] {
        let run = program.run(1, flags).success();
        let told = String::from_utf8_lossy(&run.get_output().stderr);
        assert_eq!(told.contains(warning), warns, "{flags:?}: {told}");
    }
}
