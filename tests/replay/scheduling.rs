//! The command that schedules workloads of batch jobs.

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};

/// Three jobs of which the third is backfilled.
const WORKLOAD: &str = r#"{"nb_res": 4, "jobs": [
    {"id": "a", "subtime": 0, "walltime": 10, "res": 3, "profile": "p"},
    {"id": "b", "subtime": 1, "walltime": 10, "res": 4, "profile": "p"},
    {"id": "c", "subtime": 2, "walltime": 5, "res": 1, "profile": "q"}],
    "profiles": {"p": {"type": "delay", "delay": 10}, "q": {"type": "delay", "delay": 4.5}}}"#;

#[test]
fn a_workload_becomes_a_table_and_a_page() {
    let folder = Folder::new();
    let workload = folder.write("w.json", WORKLOAD);
    for (flags, expected) in [
        (
            &["--policy", "easy"][..],
            "a,0.000000,10.000000,0-2\nc,2.000000,6.500000,3\nb,10.000000,20.000000,0-3\n",
        ),
        (
            &["--policy", "fcfs", "--nodes", "8"],
            "a,0.000000,10.000000,0-2\nb,1.000000,11.000000,3-6\nc,2.000000,6.500000,7\n",
        ),
    ] {
        let output = folder.path("out");
        let measures = contains("makespan: ").and(contains("bounded")).and(contains("utilisation: "));
        let mut schedule = command();
        schedule.arg("schedule").arg(&workload).args(flags).arg("-o").arg(&output);
        schedule.assert().code(DONE).stdout(measures);
        let table = std::fs::read_to_string(output.join("jobs.csv")).unwrap();
        assert_eq!(table, format!("job,start,finish,nodes\n{expected}"));
        assert!(std::fs::read_to_string(output.join("schedule.html")).unwrap().contains("Gantt"));
    }
}

#[test]
fn broken_workloads_are_refused_by_name() {
    let folder = Folder::new();
    let line = "1 0 -1 10 8 -1 -1 -1 10 -1 1 -1 -1 -1 -1 -1 -1 -1\n";
    let refuse = |name: &str, text: &str, flags: &[&str], status: i32, words: &str| {
        let workload = folder.write(name, text);
        let mut schedule = command();
        schedule.arg("schedule").arg(workload).args(flags).arg("-o").arg(folder.path("out"));
        schedule.assert().code(status).stdout("").stderr(contains(words));
    };
    refuse("w.swf", &format!("{line}2 0 -1 x\n"), &["--nodes", "8"], FAILED, "line 2: found 4 fields");
    refuse("w.swf", line, &["--nodes", "4"], FAILED, "job 1 needs 8 nodes, and the machine has 4");
    refuse("w.swf", line, &[], MISUSE, "give --nodes");
    refuse("w.txt", line, &[], MISUSE, "name it .swf");
    refuse("w.json", "{]", &[], FAILED, "line 1");
    refuse("w.swf", line, &["--policy", "lottery"], MISUSE, "conservative");
}
