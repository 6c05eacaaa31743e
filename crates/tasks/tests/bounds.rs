//! Graphs on processors and accelerators: all that is run is between the bounds and a stated share above them.

use netmodel::Platform;
use proptest::prelude::*;
use tasks::{Bounds, Execution, Node, Rates, SCHEDULERS, TaskGraph, execute};

/// A processor of eight cores and two accelerators, each with a link of its own to the memory, and one between them.
fn platform(pcie: &str) -> Platform {
    let link = |name: &str, bandwidth: &str| {
        format!("{{ name = '{name}', bandwidth = '{bandwidth}', latency = '2us', sharing = 'split_duplex' }}")
    };
    let text = format!(
        "topology = {{ kind = 'graph' }}\n\
         host = [{{ name = 'cpu', speed = '1Gf', cores = 8 }}, {{ name = 'gpu-0', speed = '1Gf' }}, {{ name = 'gpu-1', speed = '1Gf' }}]\n\
         link = [{}, {}, {}]\n\
         route = [{{ src = 'cpu', dst = 'gpu-0', links = [{{ up = 'pcie-0' }}] }}, {{ src = 'cpu', dst = 'gpu-1', links = [{{ up = 'pcie-1' }}] }},\n\
         {{ src = 'gpu-0', dst = 'gpu-1', links = [{{ up = 'nvlink' }}] }}]\n",
        link("pcie-0", pcie),
        link("pcie-1", pcie),
        link("nvlink", "200GBps")
    );
    Platform::from_toml(&text, "node.toml").unwrap()
}

const RATES: &str = "memory = 'cpu'\n\
    rates.cpu = { potrf = 25, trsm = 28, syrk = 30, gemm = 32 }\n\
    rates.'gpu-*' = { potrf = 40, trsm = 300, syrk = 500, gemm = 700 }\n";

fn run(platform: &Platform, rates: &str, (tiles, scheduler): (usize, usize)) -> (Execution, Bounds) {
    let graph = TaskGraph::cholesky(tiles, 512);
    let node = Node::new(platform, &toml::from_str::<Rates>(rates).unwrap(), &graph).unwrap();
    let execution = execute(&graph, &node, SCHEDULERS[scheduler].scheduler(&graph, &node));
    // Nothing before its predecessors, no two tasks of a worker at a time, each for its time.
    let mut of_workers = vec![Vec::new(); node.workers.len()];
    for (task, run) in graph.tasks.iter().zip(&execution.runs) {
        assert!(task.successors.iter().all(|&after| execution.runs[after].begin >= run.end));
        let time_s = node.time_s(task, node.workers[run.worker].kind).unwrap();
        assert!(((run.end - run.begin).as_secs_f64() - time_s).abs() < 1e-10);
        of_workers[run.worker].push((run.begin, run.end));
    }
    for runs in &mut of_workers {
        runs.sort();
        assert!(runs.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }
    let bounds = Bounds::of(&graph, &node);
    let makespan_s = execution.makespan.as_secs_f64();
    assert!(makespan_s >= bounds.best_s() * (1.0 - 1e-9), "{makespan_s} s is below {bounds:?}");
    (execution, bounds)
}

/// Of 24 by 24 tiles: the model is within 15 % of the bounds, one queue and stealing, which do not know that some tasks are much faster on
/// accelerators, are farther.
#[test]
fn a_model_is_near_the_bounds() {
    let platform = platform("25GBps");
    let share = |scheduler| {
        let (execution, bounds) = run(&platform, RATES, (24, scheduler));
        execution.makespan.as_secs_f64() / bounds.best_s()
    };
    let [eager, stealing, model] = [share(0), share(1), share(2)];
    assert!(model < 1.15, "{model}");
    assert!(eager > model && stealing > model, "eager {eager}, ws {stealing}, dm {model}");
    assert!(eager < 3.0 && stealing < 3.0, "eager {eager}, ws {stealing}");
}

/// By hand: cores alone, without copies, do all work of one tile after the other, and of many in the time of the area.
#[test]
fn equal_workers_reach_their_bounds() {
    let platform = platform("25GBps");
    let cores = "memory = 'cpu'\nrates.cpu = { potrf = 1, trsm = 1, syrk = 1, gemm = 1 }\n";
    let flops = 512_f64.powi(3);
    for scheduler in 0..SCHEDULERS.len() {
        let (execution, bounds) = run(&platform, cores, (2, scheduler));
        assert!((execution.makespan.as_secs_f64() - flops * (2.0 / 3.0 + 2.0) / 1e9).abs() < 1e-9);
        assert!((bounds.area_s - flops * 8.0 / 3.0 / 8e9).abs() < 1e-12);
        assert_eq!((execution.copies, execution.copied.get()), (0, 0));
        let (execution, bounds) = run(&platform, cores, (20, scheduler));
        assert!(execution.makespan.as_secs_f64() < 1.2 * bounds.best_s());
    }
}

/// Copies cost time: on links a hundredth as wide the same graph takes longer, and no tile is copied for nothing if accelerators do all.
#[test]
fn copies_share_links() {
    let [wide, narrow] = ["25GBps", "250MBps"].map(platform);
    for scheduler in 0..SCHEDULERS.len() {
        let (fast, _) = run(&wide, RATES, (8, scheduler));
        let (slow, _) = run(&narrow, RATES, (8, scheduler));
        assert!(slow.makespan > fast.makespan && fast.copies > 0);
    }
    let one = "memory = 'cpu'\nrates.'gpu-0' = { potrf = 40, trsm = 300, syrk = 500, gemm = 700 }\n";
    let (alone, _) = run(&wide, one, (8, 2));
    // Each of 36 tiles of 2 MiB once.
    assert_eq!((alone.copies, alone.copied.get()), (36, 36 * (8 * 512 * 512)));
}

#[test]
fn wrong_rates_are_refused() {
    let (platform, graph) = (platform("25GBps"), TaskGraph::cholesky(3, 64));
    for (rates, expected) in [
        (
            "memory = 'ram'\nrates = {}\n",
            "memory \"ram\": the platform has no such host; its first is \"cpu\"",
        ),
        ("memory = 'cpu'\nrates = {}\n", "found 0 kinds of workers"),
        (
            "memory = 'cpu'\nrates.'tpu-*' = { gemm = 1 }\n",
            "[rates] \"tpu-*\": the platform has no such host",
        ),
        ("memory = 'cpu'\nrates.'*' = { gemm = 1 }\nrates.cpu = { gemm = 1 }\n", "a host is of one kind"),
        ("memory = 'cpu'\nrates.cpu = { gemv = 1 }\n", "there is no kernel \"gemv\""),
        ("memory = 'cpu'\nrates.cpu = { gemm = -1 }\n", "found -1, expected Gflop/s above 0"),
        ("memory = 'cpu'\nrates.cpu = { gemm = 1, trsm = 1, syrk = 1 }\n", "no cores have a rate for potrf"),
    ] {
        let error = Node::new(&platform, &toml::from_str(rates).unwrap(), &graph).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever the rates, no scheduler beats the bounds; the same execution twice.
    #[test]
    fn nothing_is_faster_than_the_bounds(
        tiles in 1_usize..10,
        scheduler in 0..SCHEDULERS.len(),
        (cpu, gpu) in (prop::array::uniform4(1_u32..50), prop::array::uniform4(1_u32..1000)),
    ) {
        let platform = platform("5GBps");
        let rates = |[potrf, trsm, syrk, gemm]: [u32; 4]| {
            format!("{{ potrf = {potrf}, trsm = {trsm}, syrk = {syrk}, gemm = {gemm} }}")
        };
        let rates = format!("memory = 'cpu'\nrates.cpu = {}\nrates.'gpu-*' = {}\n", rates(cpu), rates(gpu));
        let (one, _) = run(&platform, &rates, (tiles, scheduler));
        let (other, _) = run(&platform, &rates, (tiles, scheduler));
        prop_assert_eq!((one.makespan, one.runs), (other.makespan, other.runs));
    }
}
