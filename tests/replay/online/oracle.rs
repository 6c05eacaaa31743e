//! The programs of ../shared/oracle/online: results as of Open MPI, times as of SMPI.

use std::collections::BTreeMap;

use super::Program;
use crate::reference::is_campaign;
use crate::shared::shared;

/// Row of a table, by the names of its columns.
type Row = BTreeMap<String, String>;

/// Programs, with whether their times are SMPI's in all laps. Others take other times by design: nonblocking collective operations run their
/// algorithms here, and SMPI sends their messages at once; SMPI has algorithms of its own for operators that do not commute; and one-sided
/// accesses take no time.
const PROGRAMS: [(&str, bool); 16] = [
    ("p2p_sizes", true),
    ("waits", true),
    ("probe", true),
    ("persistent", true),
    ("cart_halo", true),
    ("colls", true),
    ("colls_v", true),
    ("derived", true),
    ("comms", true),
    ("adaptive", true),
    ("master_worker", true),
    ("ring64", true),
    ("user_ops", false),
    ("nbc", false),
    ("rma_fence", false),
    ("rma_lock", false),
];

/// A program whose ranks poll until all of them have ended, and its greatest number of ranks, with which it takes as long as all others.
const LONG: (&str, &str) = ("adaptive", "16");

/// Returns whether a run, of ranks on a platform, is one of a campaign only: large programs run on the torus otherwise, small ones on the
/// crossbar.
fn is_left_to_campaign((ranks, platform, _): (&str, &str, &str)) -> bool {
    (platform == "torus-5g") != matches!(ranks, "16" | "64")
}

fn rows(file: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(shared("oracle/online").join(file)).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

#[test_with::shared]
fn programs_have_the_results_of_open_mpi_and_the_times_of_smpi() {
    let (outputs, times) = (rows("expected-output.csv"), rows("expected-times.csv"));
    for (name, has_times) in PROGRAMS {
        let Some(program) = Program::compile(&shared("oracle/online/programs").join(format!("{name}.c")))
        else {
            return;
        };
        let mut runs: Vec<(&str, &str, &str)> = times
            .iter()
            .filter(|row| row["program"] == name)
            .map(|row| (row["np"].as_str(), row["platform"].as_str(), row["selector"].as_str()))
            .filter(|run| is_campaign() || (!is_left_to_campaign(*run) && (name, run.0) != LONG))
            .collect();
        runs.sort_unstable();
        runs.dedup();
        assert!(!runs.is_empty(), "{name} has times");
        for run in runs {
            compare(name, &program, run, (&outputs, &times), has_times);
        }
    }
}

/// Compares one run of a program.
fn compare(
    name: &str,
    program: &Program,
    (ranks, platform, selector): (&str, &str, &str),
    (outputs, times): (&[Row], &[Row]),
    has_times: bool,
) {
    let what = format!("{name} with {ranks} ranks on {platform}, {selector}");
    let settings = [
        format!("platform.file={:?}", shared("oracle").join(format!("{platform}.xml"))),
        format!("platform.hosts={:?}", shared("oracle/hosts.txt")),
        "network.preset='smpi'".to_owned(),
        "mpi.iprobe_s=1e-4".to_owned(),
        format!("mpi.collectives={selector:?}"),
    ];
    let flags: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let (lines, _) = program.lines_and_digest(ranks.parse().unwrap(), &flags);
    for row in outputs.iter().filter(|row| row["program"] == name && row["np"] == ranks) {
        let expected = |rank: &str| format!("out {rank} {}", row["text"]);
        let of_all = (0..ranks.parse::<u32>().unwrap()).map(|rank| rank.to_string());
        let on: Vec<String> = if row["ranks"] == "all" {
            of_all.collect()
        } else {
            row["ranks"].split(' ').map(str::to_owned).collect()
        };
        on.iter().for_each(|rank| assert!(lines.contains(&expected(rank)), "{what}: {}", expected(rank)));
    }
    // Not compared: the selector of Open MPI, which differs from 8 ranks on; and operations on the crossbar, which differ by up to 0.4 us.
    if !has_times || selector == "ompi" || (name, platform) == ("colls", "crossbar-gbe") {
        return;
    }
    let mut found: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for line in &lines {
        if let ["time", lap, rank, time] = line.split(' ').collect::<Vec<_>>()[..] {
            found.entry((lap.to_owned(), rank.to_owned())).or_default().push(time.parse().unwrap());
        }
    }
    found.values_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let of_run = |row: &&BTreeMap<String, String>| {
        let key = (row["np"].as_str(), row["platform"].as_str(), row["selector"].as_str());
        row["program"] == name && key == (ranks, platform, selector) && row["lap"] != "tasks"
    };
    for row in times.iter().filter(of_run) {
        let (lap, number) = row["lap"].split_once('#').unwrap_or((&row["lap"], "1"));
        let value: f64 = row["value"].parse().unwrap();
        let time = found[&(lap.to_owned(), row["rank"].clone())][number.parse::<usize>().unwrap() - 1];
        assert!(
            // Times are printed to the nanosecond.
            (time - value).abs() <= 1.5e-9_f64.max(1e-5 * value),
            "{what}: {} of rank {}: {time}, expected {value}",
            row["lap"],
            row["rank"]
        );
    }
}
