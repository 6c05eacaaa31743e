//! The examples do what they say: the same on any number of threads, with results as computed apart from the simulation.

#![allow(dead_code, reason = "the examples have a main of their own")]

#[path = "../../examples/master_worker.rs"]
mod master_worker;
#[path = "../../examples/parameter_server.rs"]
mod parameter_server;
#[path = "../../examples/ring.rs"]
mod ring;
#[path = "../../examples/stencil.rs"]
mod stencil;
#[path = "../../examples/task_scheduler.rs"]
mod task_scheduler;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pdes_core::SimTime;
use replay::CodeProgram;
use task_scheduler::Task;

use super::{MODELS, digest_of_all, run, spec};

/// Runs a program, and takes its result; its digest is the same on any number of threads.
fn result_of<T: Default>(program: impl Fn(&Arc<Mutex<T>>) -> CodeProgram) -> (T, SimTime) {
    let result = Arc::default();
    let program = program(&result);
    MODELS.iter().for_each(|model| drop(digest_of_all(&program, &[*model])));
    std::mem::take(&mut *result.lock().unwrap());
    let (_, outcome) = run(&spec(&program, &MODELS[..1]), None).unwrap();
    (std::mem::take(&mut *result.lock().unwrap()), outcome.simulated_time())
}

#[test]
fn a_ring_ends() {
    MODELS.iter().for_each(|model| drop(digest_of_all(&ring::program(7, 3), &[*model])));
}

/// Rows are relaxed with those of the neighbours as they were before, so that ranks do not matter.
#[test]
fn a_stencil_ends_alike_on_any_number_of_ranks() {
    let [alone, beside, uneven] =
        [1, 3, 5].map(|ranks| result_of(|result| stencil::program(ranks, 8, result)).0);
    assert_eq!((beside, uneven), (alone, alone));
    assert!(alone.0 > 30 && (0.7..0.8).contains(&alone.1), "{alone:?}");
}

#[test]
fn a_master_adds_up_all_tasks() {
    let ((done, sum), time) = result_of(|result| master_worker::program(5, 40, result));
    assert_eq!((done.len(), done.iter().sum::<u32>()), (4, 40));
    assert_eq!(sum, (0..40).map(|task| task * task).sum::<u64>());
    // 5 rounds of 1 to 7 ms and 1 to 5 ms are 155 ms of work.
    assert!(time.as_secs_f64() > 0.155 / 4.0 && time.as_secs_f64() < 0.155 / 4.0 + 0.008, "{time}");
}

#[test]
fn parameters_become_those_of_the_line() {
    let ((parameters, stale), _) = result_of(|result| parameter_server::program(4, 400, result));
    assert!((parameters[0] - 3.0).abs() < 0.05 && (parameters[1] + 1.0).abs() < 0.05, "{parameters:?}");
    assert!(stale >= 2, "the slowest worker is passed by both others: {stale}");
}

#[test]
fn tasks_wait_for_their_inputs_and_workers() {
    let (schedule, end) = result_of(|schedule| task_scheduler::program(4, 6, schedule));
    let tasks: BTreeMap<Task, _> =
        schedule.iter().map(|(task, worker, begin, end)| (*task, (*worker, *begin, *end))).collect();
    assert_eq!((tasks.len(), schedule.len()), (Task::all(6).count(), 6 * 7 * 8 / 6));
    for (task, (_, begin, _)) in &tasks {
        assert!(task.needs().iter().all(|needed| tasks[needed].2 < *begin), "{task:?}");
    }
    for one in 1..4 {
        let mut of_worker: Vec<_> = tasks.values().filter(|(worker, ..)| *worker == one).collect();
        of_worker.sort();
        assert!(!of_worker.is_empty() && of_worker.windows(2).all(|pair| pair[0].2 < pair[1].1));
    }
    let work: f64 = Task::all(6).map(Task::flops).sum();
    assert!(end.as_secs_f64() > work / 3e9, "three workers of 1 Gflop/s");
}
