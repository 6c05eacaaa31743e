//! Prices of parameters.

use std::sync::atomic::AtomicU64;

use answers::{Caveat, Costs, MessageGroup, Method, Parameter, Price, Prices};
use pdes_replay::RunSpec;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

use super::{CLUSTER, DRAGONFLY, TORUS, TREE, config, exchanges, pipeline, program, time, transpose};
use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::processes::mpirun;

fn prices(spec: &RunSpec) -> Prices {
    Prices::of(spec, [0.25, 4.0], None, Caveat::default(), 2, &AtomicU64::new(0)).unwrap()
}

/// Returns the prices of a program on a cluster, all of whose messages are eager.
fn eager_prices(trace: &str, model: &str) -> Prices {
    let folder = Folder::new();
    let mut config = config(&folder, trace, CLUSTER, model);
    config.set("mpi.eager_below_bytes = 1000000000").unwrap();
    prices(&config.resolve().unwrap())
}

fn price<'a>(prices: &'a Prices, name: &str) -> &'a Price {
    prices.prices.iter().find(|price| price.name() == name).unwrap_or_else(|| panic!("{name}: {prices:?}"))
}

/// Rank 0 computes 2 s, and sends 1 MB over two links; rank 1 computes until then, or longer.
#[test]
fn prices_and_breakpoints_have_a_closed_form() {
    let trace = program(|rank| match rank {
        0 => "compute 2000000;send 1 0 999984;".to_owned(),
        1 => "compute 3200000;recv 0 0 999984;".to_owned(),
        _ => String::new(),
    });
    let found = eager_prices(&trace, "contention-free");
    // 2 s of work at rank 0, 20 ms of latency, 1 s of data; or 3.2 s of work at rank 1.
    assert_eq!(found.simulated_time_ps, 3_200_000_000_000);
    let time_per_byte = price(&found, "time per byte, all links");
    assert_eq!((time_per_byte.method, time_per_byte.saved_s), (Method::Exact, 0.0));
    let curve = time_per_byte.curve.as_ref().unwrap();
    let factors: Vec<f64> = curve.iter().map(|point| point.factor).collect();
    // 2.02 + x = 3.2.
    assert!(factors.len() == 3 && (factors[1] - 1.18).abs() < 1e-9, "{factors:?}");
    let holds = time_per_byte.holds.unwrap();
    assert!(holds[0] == 0.25 && (holds[1] - 1.18).abs() < 1e-9, "{holds:?}");
    assert!((curve[2].time_s - 6.02).abs() < 1e-9, "{curve:?}");
    // Both ranks compute: 3.2 x, or 2 x + 1.02.
    let time_per_flop = price(&found, "time per flop");
    assert!((time_per_flop.saved_s - 0.032).abs() < 1e-12, "{time_per_flop:?}");
    assert!((time_per_flop.holds.unwrap()[0] - 0.85).abs() < 1e-9, "{time_per_flop:?}");
}

/// The slopes to both sides agree with differences at 1e-6 to 1e-4, for each parameter of ten cases.
#[test]
fn prices_are_those_of_differences() {
    let programs = [exchanges(), pipeline(), transpose()];
    let cases = [
        (0, CLUSTER, "contention-free"),
        (1, CLUSTER, "flow"),
        (2, CLUSTER, "flow"),
        (0, TREE, "contention-free"),
        (2, TREE, "contention-free"),
        (1, TORUS, "contention-free"),
        (2, TORUS, "flow"),
        (0, TORUS, "flow"),
        (1, DRAGONFLY, "contention-free"),
        (1, DRAGONFLY, "flow"),
    ];
    let mut checked = 0;
    for (program, topology, model) in cases {
        let folder = Folder::new();
        let mut config = config(&folder, &programs[program], topology, model);
        config.set("mpi.send_overhead = '0:30ms:0'").unwrap();
        let spec = config.resolve().unwrap();
        let found = prices(&spec);
        let messages = [None, Some("exchange")].map(|place| MessageGroup::new(&spec, place).ok().flatten());
        let parameters = Parameter::all(
            &spec.platform().unwrap(),
            vec!["solve".to_owned(), "exchange".to_owned()],
            messages.into_iter().flatten().collect(),
        );
        for parameter in parameters {
            let name = match parameter.place() {
                Some(place) => format!("{}, {place}", parameter.name()),
                None => parameter.name().to_owned(),
            };
            let Some(price) = found.prices.iter().find(|price| price.name() == name) else { continue };
            let case = format!("{name} of program {program} on {topology} ({model}): {price:?}");
            // Sizes are whole bytes.
            let step = if matches!(parameter, Parameter::Messages(_)) { 1e-4 } else { 1e-6 };
            let [above, below] = [1.0 + step, 1.0 - step]
                .map(|factor| time(&parameter.scaled(&spec, factor).unwrap()) as f64 / 1e12);
            let sides = [
                (price.saved_s, found.simulated_time_s - below),
                (price.lost_s, above - found.simulated_time_s),
            ];
            for (percent, difference) in sides {
                let (slope, expected) = (100.0 * percent, difference / step);
                // A picosecond at each end.
                assert!((slope - expected).abs() <= 1e-4 * slope.abs() + 2e-6, "{case}, expected {expected}");
            }
            checked += 1;
            let is_exact = model == "contention-free" && !matches!(parameter, Parameter::Messages(_));
            assert_eq!(price.method == Method::Exact, is_exact, "{case}");
        }
        if model == "contention-free" {
            // No chain of causes has anything else than these: the slopes to the left of all of them together are the run time.
            let sum: f64 =
                ["latency, all links", "time per byte, all links", "time per flop", "costs of the library"]
                    .map(|name| 100.0 * price(&found, name).saved_s)
                    .into_iter()
                    .sum();
            assert!((sum / found.simulated_time_s - 1.0).abs() < 1e-6, "{sum} {found:?}");
        }
    }
    assert!(checked > 80, "{checked}");
}

/// 1 s of data in one region, 0.3 s at a call site, each with 20 ms of latency, and a message that is too short to lose a part.
#[test]
fn messages_have_prices_by_place() {
    let trace = program(|rank| match rank {
        0 => {
            "location faces 0;send 1 0 1000000;location main.c 30;send 1 0 300000;location flag 0;send 1 0 1;"
                .to_owned()
        }
        1 => "recv 0 0 1000000;recv 0 0 300000;recv 0 0 1;".to_owned(),
        _ => String::new(),
    });
    for model in ["contention-free", "flow"] {
        let folder = Folder::new();
        let found = prices(&config(&folder, &trace, CLUSTER, model).resolve().unwrap());
        for (name, saved_s) in
            [("messages, faces", 0.01), ("messages, main.c:30", 0.003), ("messages", 0.013)]
        {
            let price = price(&found, name);
            assert!((price.saved_s - saved_s).abs() < 1e-7 && price.saved_s == price.lost_s, "{price:?}");
            assert_eq!((price.method, price.curve.is_some()), (Method::Differences, false));
        }
        assert!(found.prices.iter().all(|price| price.name() != "messages, flag"));
        assert!(
            found.warnings.iter().any(|warning| warning.contains("messages, flag have no price")),
            "{found:?}"
        );
    }
}

/// Run time 3.2 s until x 1.18 of the time per byte, then 2.02 + x: with contention the same, as a sample.
#[test]
fn the_knee_of_a_curve_is_found() {
    let trace = program(|rank| match rank {
        0 => "compute 2000000;send 1 0 999984;".to_owned(),
        1 => "compute 3200000;recv 0 0 999984;".to_owned(),
        _ => String::new(),
    });
    for model in ["contention-free", "flow"] {
        let found = eager_prices(&trace, model);
        let price = price(&found, "time per byte, all links");
        let [from, to] = price.knee.unwrap();
        // 3.2 x 1.01 = 2.02 + x.
        let limit = price.limits.as_ref().unwrap()[0].factor.unwrap() / 1.212;
        if model == "contention-free" {
            assert!(from == to && (from - 1.18).abs() < 1e-9, "{price:?}");
            assert!((limit - 1.0).abs() < 1e-9, "{price:?}");
        } else {
            assert!(from <= 1.18 && 1.18 <= to && (limit - 1.0).abs() < 1e-3, "{price:?}");
            assert_eq!(price.curve.as_ref().unwrap().len(), 9);
        }
        assert_eq!(found.prices.iter().find(|price| price.parameter == "work").map(|price| price.knee), None);
    }
}

/// A pair of ranks has two chains of causes that are equally long.
#[test]
fn both_sides_of_a_breakpoint_are_told() {
    let trace = program(|rank| match rank {
        0 => "compute 1000000;send 1 0 999984;".to_owned(),
        1 => "recv 0 0 999984;".to_owned(),
        2 => "compute 2020000;".to_owned(),
        _ => String::new(),
    });
    for model in ["contention-free", "flow"] {
        let found = eager_prices(&trace, model);
        let price = price(&found, "time per byte, all links");
        assert!((price.saved_s, (price.lost_s - 0.01).abs() < 1e-7) == (0.0, true), "{price:?}");
        assert_eq!(price.method == Method::OneSided, model == "flow");
    }
}

#[test]
fn costs_rank_prices_by_what_money_saves() {
    let folder = Folder::new();
    let spec = config(&folder, &exchanges(), TREE, "contention-free").resolve().unwrap();
    let text = "currency = 'EUR'\n[[cost]]\nparameter = 'latency'\nplace = 'host to leaf'\neach = 2\n\
                [[cost]]\nparameter = 'time per flop'\neach = 1000\n";
    let costs = Costs::from_text(text, "costs.toml".as_ref()).unwrap();
    let found =
        Prices::of(&spec, [0.5, 2.0], Some(&costs), Caveat::default(), 1, &AtomicU64::new(0)).unwrap();
    let (latency, flops) = (price(&found, "latency, host to leaf"), price(&found, "time per flop"));
    // Sixteen links, eight hosts.
    assert_eq!((latency.cost, flops.cost), (Some(32.0), Some(8000.0)));
    assert_eq!(latency.saved_s_per_cost, Some(latency.saved_s / 32.0));
    // A percent of the work saves more, a euro for latency.
    assert!(flops.saved_s > latency.saved_s && found.prices[0] == *latency, "{found:?}");
}

/// The answer of the command, as JSON; the same for any number of threads, of replays at a time and of processes.
#[test]
fn the_command_writes_text_json_and_a_page() {
    let folder = Folder::new();
    config(&folder, &exchanges(), TORUS, "flow");
    let (run, json) = (folder.path("run.toml"), folder.path("prices.json"));
    let mut answers = Vec::new();
    for (threads, jobs) in [("1", "1"), ("3", "2")] {
        let mut prices = command();
        prices.arg("prices").arg(&run).args(["--threads", threads, "--jobs", jobs, "--json"]).arg(&json);
        let text = contains("time per byte, dimension 1").and(contains("work, solve"));
        prices.assert().code(DONE).stdout(text.and(contains("causes in the model, not on a real machine")));
        answers.push(std::fs::read_to_string(&json).unwrap());
    }
    assert_eq!(answers[0], answers[1]);
    let page = folder.path("prices.html");
    let validation = folder.write("validation.json", "{\"run_time\": {\"error\": -0.034}}");
    let costs =
        folder.write("costs.toml", "currency = 'EUR'\n[[cost]]\nparameter = 'time per flop'\neach = 3\n");
    let mut prices = command();
    prices.arg("prices").arg(&run).arg("--validation").arg(validation).arg("--costs").arg(costs);
    if cfg!(feature = "pictures") {
        prices
            .arg("--page")
            .arg(&page)
            .assert()
            .code(DONE)
            .stdout(contains("off by -3.4 %").and(contains("per EUR")));
        let text = std::fs::read_to_string(page).unwrap();
        assert!(text.contains("off by -3.4 %") && text.contains("time per byte, dimension 2"));
    } else {
        prices.assert().code(DONE);
    }
}

#[test]
fn wrong_costs_are_misuse() {
    let folder = Folder::new();
    config(&folder, &exchanges(), CLUSTER, "contention-free");
    let run = |costs: &str| {
        let mut prices = command();
        prices
            .arg("prices")
            .arg(folder.path("run.toml"))
            .arg("--costs")
            .arg(folder.write("costs.toml", costs));
        prices
    };
    let unknown = "currency = 'EUR'\n[[cost]]\nparameter = 'latency'\nplace = 'dimension 1'\neach = 1\n";
    run(unknown)
        .assert()
        .code(MISUSE)
        .stderr(contains("latency, dimension 1").and(contains("latency, all links")));
    run("currency = 'EUR'\n[[cost]]\nparameter = 'latency'\neach = 0\n")
        .assert()
        .code(MISUSE)
        .stderr(contains("above 0"));
    run("price = 1").assert().code(MISUSE);
    command().arg("prices").arg(folder.path("run.toml")).args(["--range", "2..4"]).assert().code(MISUSE);
    let mut absent = command();
    absent.arg("prices").arg(folder.path("run.toml")).arg("--validation").arg(folder.path("absent.json"));
    absent.assert().code(FAILED).stderr(contains("absent.json"));
}

#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs MPI")]
fn one_answer_on_several_processes() {
    let folder = Folder::new();
    let spec = config(&folder, &pipeline(), CLUSTER, "contention-free").resolve().unwrap();
    let (run, json) = (folder.path("run.toml"), folder.path("prices.json"));
    mpirun(2, &["prices", run.to_str().unwrap(), "--json", json.to_str().unwrap()]).code(DONE);
    let found: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(found, serde_json::to_value(prices(&spec)).unwrap());
}
