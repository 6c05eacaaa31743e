//! Sweeps as a user runs them.

use std::path::Path;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::reference::repository;

const TRACE: &str = "0 init\n1 init\n0 compute 1e6\n0 send 1 0 984\n1 recv 0 0 984\n";
const CONFIG: &str = "[trace]\npath = 'trace.txt'\n[network]\npreset = 'raw'\n[platform.topology]\nkind = 'cluster'\n\
    hosts = 2\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n";

/// A folder with a configuration and this sweep of it.
fn folder(sweep: &str) -> Folder {
    let folder = Folder::new();
    folder.write("trace.txt", TRACE);
    folder.write("run.toml", CONFIG);
    folder.write("sweep.toml", sweep);
    folder
}

fn sweep(folder: &Folder) -> assert_cmd::Command {
    let mut command = command();
    command.arg("sweep").arg(folder.path("sweep.toml")).arg("-o").arg(folder.path("results"));
    command
}

/// The cells of a table, the header first.
fn table(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).unwrap();
    reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
}

fn column(table: &[Vec<String>], name: &str) -> Vec<String> {
    let place = table[0].iter().position(|head| head == name).unwrap();
    table[1..].iter().map(|row| row[place].clone()).collect()
}

#[test]
fn every_combination_is_a_run() {
    let folder = folder(
        "config = 'run.toml'\n[[axis]]\nname = 'speed'\nvalues = [\n\
         { label = 'slow', network.bandwidth_factor = 1 }, { label = 'fast', network.bandwidth_factor = 4 } ]\n\
         [grid]\nnetwork.latency_factor = [1, 1000]\nnetwork.preset = ['raw']\n",
    );
    let assert = sweep(&folder).args(["--jobs", "2", "--pictures", "svg"]).assert().code(DONE);
    // Labels that are the same in all runs are not repeated.
    assert.stdout(contains("fast   1000").and(contains("raw").not())).stderr(contains("4 runs"));
    let table = table(&folder.path("results/sweep.csv"));
    assert_eq!(column(&table, "speed"), ["slow", "slow", "fast", "fast"]);
    // 1 ms of computation, two links of 1 us, 1000 bytes at 1 GB/s: each number by hand.
    let times = ["0.001003000000", "0.003001000000", "0.001002250000", "0.003000250000"];
    assert_eq!(column(&table, "simulated_time_s"), times);
    let relative: Vec<f64> = column(&table, "relative").iter().map(|cell| cell.parse().unwrap()).collect();
    assert_eq!(relative[..2], [1.0, 0.003001 / 0.001003]);
    assert_eq!(column(&table, "error"), ["", "", "", ""]);
    let page = std::fs::read_to_string(folder.path("results/sweep.html")).unwrap();
    assert!(page.contains("\"simulated_time_s\":0.003001,") && !page.contains("http-equiv"));
    // The preset is in the title, and has one value, which is not named with each run.
    assert!(page.contains("<title>sweep (preset raw)</title>"));
    let axes = "\"axes\":[\"speed\",\"network.latency_factor\",\"network.preset\"],\"varying\":[0,1]";
    assert!(page.contains(axes));
    assert_eq!(column(&table, "network.preset"), ["raw"; 4]);
    for picture in ["runs.svg", "over-network.latency_factor.svg"] {
        let picture = std::fs::read_to_string(folder.path(&format!("results/{picture}"))).unwrap();
        assert!(picture.starts_with("<svg"));
    }
}

/// Programs that are generated have the results of the archives that `trace generate` writes, alone, in a sweep and as jobs.
#[test]
fn programs_are_generated_for_runs() {
    let folder = folder(
        "config = 'machine.toml'\n[[axis]]\nname = 'ranks'\nvalues = [\n\
         { label = 2, trace.generate = 'ring --ranks 2 --rounds 3' }, { label = 4, trace.generate = 'ring --ranks 4 --rounds 3' } ]\n",
    );
    let machine = CONFIG.replace("[trace]\npath = 'trace.txt'\n", "").replace("hosts = 2", "hosts = 8");
    let machine = folder.write("machine.toml", &machine);
    sweep(&folder).assert().code(DONE);
    let rows = table(&folder.path("results/sweep.csv"));
    assert_eq!(column(&rows, "ranks"), ["2", "4"]);
    let page = std::fs::read_to_string(folder.path("results/sweep.html")).unwrap();
    assert!(page.contains("Speed-up") || page.contains("speed-up"));
    let archive = folder.path("ring.pdt");
    let generate = ["trace", "generate", "ring", "--ranks", "4", "--rounds", "3", "-o"];
    command().args(generate).arg(&archive).assert().code(DONE);
    let report = |arguments: &[&str]| {
        let mut run = command();
        run.args(arguments).arg("--json");
        let output = run.assert().code(DONE).get_output().stdout.clone();
        serde_json::from_slice::<serde_json::Value>(&output).unwrap()
    };
    let on_machine = ["--config", machine.to_str().unwrap()];
    let expected =
        report(&[&on_machine[..], &["--trace", archive.to_str().unwrap()]].concat())["digest"].clone();
    assert_eq!(expected, column(&rows, "digest")[1].as_str());
    let alone = report(&[&on_machine[..], &["--set", "trace.generate='ring --ranks 4 --rounds 3'"]].concat());
    assert_eq!(
        (&alone["digest"], &alone["parameters"]["trace"]),
        (&expected, &"ring --ranks 4 --rounds 3".into())
    );
    let text = std::fs::read_to_string(&machine).unwrap();
    let text = format!(
        "[[job]]\ngenerate = 'ring --ranks 4 --rounds 3'\n[[job]]\ngenerate = 'ring --ranks 2'\n{text}"
    );
    let jobs = report(&["--config", folder.write("jobs.toml", &text).to_str().unwrap()]);
    assert_eq!(jobs["jobs"][0]["digest"], expected, "{}", jobs["jobs"]);
    for (recipe, words) in [
        ("ringg", "unrecognized subcommand 'ringg'"),
        ("ring --ranks two", "invalid value 'two'"),
        ("npb-lu --class S --ranks 64", "the nearest legal counts are 16"),
    ] {
        let mut run = command();
        run.arg("--config").arg(&machine).args(["--set", &format!("trace.generate='{recipe}'")]);
        run.assert().code(MISUSE).stderr(contains(words).and(contains("trace.generate")));
    }
    let mut both = command();
    both.arg("--config").arg(folder.path("run.toml")).args(["--set", "trace.generate='ring'"]);
    both.assert().code(MISUSE).stderr(contains("stands beside trace.path"));
}

#[test]
fn an_interrupted_sweep_continues() {
    let folder = folder("config = 'run.toml'\n[grid]\nnetwork.latency_factor = [1, 2, 3]\n");
    sweep(&folder).arg("--quiet").assert().code(DONE).stdout("");
    let first = table(&folder.path("results/sweep.csv"));
    // As if it had been stopped while the third run was written.
    let journal = folder.path("results/runs.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    // The sweep and its three runs.
    assert_eq!(text.lines().count(), 4);
    std::fs::write(&journal, &text[..text.len() - 10]).unwrap();
    sweep(&folder).assert().code(DONE).stderr(contains("2 of them had been done before"));
    let again = table(&folder.path("results/sweep.csv"));
    assert_eq!(column(&again, "digest"), column(&first, "digest"));
    sweep(&folder).assert().code(DONE).stderr(contains("3 of them had been done before"));
    // Another trace is another program.
    folder.write("trace.txt", &TRACE.replace("1e6", "2e6"));
    sweep(&folder)
        .assert()
        .code(DONE)
        .stderr(predicates::prelude::PredicateBooleanExt::not(contains("before")));
    let changed = table(&folder.path("results/sweep.csv"));
    assert_eq!(column(&changed, "simulated_time_s")[0], "0.002003000000");
    sweep(&folder).arg("--fresh").assert().code(DONE);
}

#[test]
fn a_run_that_fails_is_a_row() {
    let folder = folder("config = 'run.toml'\n[grid]\ntrace.path = ['trace.txt', 'stuck.txt']\n");
    folder.write("stuck.txt", "0 init\n1 init\n0 recv 1 0 984\n1 recv 0 0 984\n");
    sweep(&folder).assert().code(FAILED).stderr(contains("1 of 2 runs failed"));
    let table = table(&folder.path("results/sweep.csv"));
    let errors = column(&table, "error");
    assert_eq!(errors[0], "");
    assert!(errors[1].contains("rank 0") && errors[1].contains("rank 1"), "{}", errors[1]);
}

#[test]
fn invalid_sweeps_are_reported() {
    for (text, message) in [
        ("config = 'run.toml'\n", "nothing to vary"),
        ("config = 'run.toml'\n[grid]\nnetwork.latency_factor = 2\n", "expected a list"),
        ("config = 'run.toml'\n[grid]\nnetwork.latency_factor = []\n", "has no values"),
        (
            "config = 'run.toml'\n[grid]\nnetwork.latencyfactor = [1]\n",
            "sweep.toml:3:9: [grid.network] has no key \"latencyfactor\"; did you mean \"latency_factor\"?",
        ),
        ("[[axis]]\nname = 'x'\nvalues = [{ label = 'a', network.preset = 'lv8' }]\n", "sweep.toml:3:43: "),
        ("config = 'run.toml'\n[grid]\nnetwork.latency_factor = [1, -2]\n", "sweep.toml:3:30: "),
        (
            "config = 'run.toml'\n[grid]\nnetwork.epoch_s = [0, '5 parsec']\n",
            "the run 5 parsec: [network] epoch_s: found \"5 parsec\"",
        ),
        ("confg = 'run.toml'\n", "confg"),
    ] {
        let folder = folder(text);
        sweep(&folder).assert().code(MISUSE).stderr(contains(message));
        assert!(!folder.path("results").exists());
    }
    let missing = folder("config = 'nowhere.toml'\n[grid]\nnetwork.model = ['flow']\n");
    sweep(&missing).assert().code(FAILED).stderr(contains("nowhere.toml"));
    sweep(&Folder::new()).assert().code(FAILED).stderr(contains("sweep.toml"));
}

#[test]
fn sections_of_other_models_are_left_out_where_models_vary() {
    let grid = "network.model = ['packets', 'contention-free']\npackets.packet_bytes = [100, 1000]\n";
    let varied = folder(&format!("config = 'run.toml'\n[grid]\n{grid}"));
    varied.write("run.toml", &format!("{CONFIG}[packets]\nheader_bytes = 10\n"));
    sweep(&varied).assert().code(DONE);
    let times = column(&table(&varied.path("results/sweep.csv")), "simulated_time_s");
    assert!(times[0] != times[1] && times[2] == times[3], "{times:?}");
    // A section that no run could have is a mistake.
    let fixed = folder("config = 'run.toml'\n[grid]\nnetwork.latency_factor = [1, 2]\n");
    fixed.write("run.toml", &format!("{CONFIG}[packets]\nheader_bytes = 10\n"));
    sweep(&fixed).assert().code(MISUSE).stderr(contains("this section is for the model \"packets\""));
}

#[test]
fn the_sweep_of_the_documentation() {
    let folder = Folder::new();
    let config = repository().join("configs/machines.toml");
    command().arg("sweep").arg(config).arg("-o").arg(folder.path("machines")).assert().code(DONE);
    let table = table(&folder.path("machines/sweep.csv"));
    assert_eq!(
        column(&table, "machine"),
        ["torus", "torus", "fat tree", "fat tree", "dragonfly", "dragonfly"]
    );
    assert_eq!(column(&table, "cost"), ["30", "30", "45", "45", "38", "38"]);
    let documented = std::fs::read_to_string(repository().join("docs/sweeps.md")).unwrap();
    assert!(documented.contains("{ label = \"dragonfly\", cost = 38, platform.file"));
}

#[test]
fn results_are_json_for_scripts() {
    let folder = folder(
        "config = 'run.toml'\n[grid]\nnetwork.latency_factor = [1, 1000]\ntrace.path = ['trace.txt', 'none.txt']\n",
    );
    let assert = sweep(&folder).arg("--json").assert().code(FAILED);
    let rows: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 4);
    assert_eq!(rows[2]["values"]["network.latency_factor"], "1000");
    assert_eq!(
        (&rows[2]["result"]["simulated_time_ps"], &rows[2]["error"]),
        (&3_001_000_000_u64.into(), &serde_json::Value::Null)
    );
    assert!(rows[1]["result"].is_null() && rows[1]["error"].as_str().unwrap().contains("none.txt"));
}

const LAYOUTS: &str = "config = 'machine.toml'\n[layouts]\noptions = '--layers=4 --hidden=64 --heads=4 --feed-forward=256 \
    --vocabulary=100 --sequence=64 --batch=8 --overlap'\nranks = 8\nmemory = '4MB'\ntensor = [1, 2, 3]\npipeline = [1, 4]\n\
    recompute = ['none', 'full']\n";

/// A folder with a machine of eight hosts and this sweep of it.
fn layouts(sweep: &str) -> Folder {
    let folder = folder(sweep);
    let machine = CONFIG.replace("[trace]\npath = 'trace.txt'\n", "").replace("hosts = 2", "hosts = 8");
    folder.write("machine.toml", &format!("{machine}[engine]\nfast_forward = true\n"));
    folder
}

/// Each layout is the program that `trace generate` would write; impossible ones and those without room are rows without a run.
#[test]
fn layouts_are_runs_or_left_out_by_name() {
    let folder = layouts(LAYOUTS);
    let assert = sweep(&folder).args(["--pictures", "svg"]).assert().code(DONE).stderr(contains("7 runs"));
    let rows = table(&folder.path("results/sweep.csv"));
    assert_eq!(rows[0][..4], ["tensor", "pipeline", "recompute", "data"]);
    let errors = column(&rows, "error");
    let impossible = "tensor * context * pipeline is 12, expected a divisor of ranks, which is 8";
    assert_eq!((errors.len(), errors[11].as_str()), (12, impossible));
    assert_eq!((rows[1][..4].join(" "), rows[12][..4].join(" ")), ("1 1 none 8".into(), "3 4 full ".into()));
    assert!(
        errors[0].starts_with("a rank needs 0.00") && errors[0].ends_with("expected at most 0.004 GiB"),
        "{errors:?}"
    );
    let times = column(&rows, "simulated_time_s");
    let runs: Vec<usize> = (0..12).filter(|row| !times[*row].is_empty()).collect();
    assert!(runs.iter().all(|run| errors[*run].is_empty()) && runs.len() == 7, "{rows:?}");
    // The table names the shortest run, and counts what is left out.
    let best = runs.into_iter().min_by_key(|run| &times[*run]).unwrap();
    let [tensor, pipeline, recompute, data] = &rows[1 + best][..4] else { panic!("{rows:?}") };
    let shortest =
        format!("shortest: tensor {tensor}, pipeline {pipeline}, recompute {recompute}, data {data}\n");
    assert
        .stdout(contains(shortest).and(contains("left out: 4, such as: tensor * context * pipeline is 3,")));
    let alone = format!(
        "trace.generate='transformer --layers=4 --hidden=64 --heads=4 --feed-forward=256 --vocabulary=100 --sequence=64 --batch=8 \
         --overlap --tensor={tensor} --pipeline={pipeline} --recompute={recompute} --data={data}'"
    );
    let mut run = command();
    run.arg("--config").arg(folder.path("machine.toml")).args(["--set", &alone, "--json"]);
    let report = run.assert().code(DONE).get_output().stdout.clone();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["digest"], column(&rows, "digest")[best].as_str());
    sweep(&folder).assert().code(DONE).stderr(contains("7 of them had been done before"));
}

#[test]
fn impossible_layouts_are_reported() {
    for (from, to, words) in [
        ("'4MB'", "'100kB'", "[layouts]: no layout is possible; of the first, a rank needs"),
        (
            "ranks = 8",
            "ranks = 7",
            "of the first, data * micro_batch is 7, expected a divisor of batch, which is 8",
        ),
        ("--overlap", "--overlapp", "unexpected argument '--overlapp'"),
        ("--overlap", "--tensor=2", "cannot be used multiple times"),
        ("--overlap", "--model=gpt5", "there is no model \"gpt5\""),
        ("[1, 2, 3]", "[0]", "sweep.toml:6:"),
        ("'none', 'full'", "'all'", "expected \"none\", \"selective\" or \"full\""),
    ] {
        let text = LAYOUTS.replace(from, to);
        assert_ne!(text, LAYOUTS);
        let folder = layouts(&text);
        sweep(&folder).assert().code(MISUSE).stderr(contains(words));
    }
}
