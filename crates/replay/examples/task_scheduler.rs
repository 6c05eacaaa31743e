//! A scheduler of tasks in code: rank 0 gives the tasks of a Cholesky factorisation by tiles to idle workers as soon as their inputs are
//! there, of several the one of the earliest column.
//!
//! ```console
//! cargo run --release --example task_scheduler -- 5 12
//! ```
//! The arguments are the number of ranks and that of tiles along a side of the matrix.

#[path = "launch/cluster.rs"]
mod cluster;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use pdes_core::SimTime;
use replay::{CodeProgram, Data, Mpi};

/// Points along a side of a tile.
const TILE: f64 = 256.0;

/// Size of a tile of doubles \[B\].
const BYTES: u64 = 8 << 16;

/// A task: it updates the tile of row and column by column `step`, and is the last one of its tile if `step` is `column`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Task {
    /// Column of its tile.
    pub(crate) column: u32,
    /// Column by which the tile is updated, or its own.
    pub(crate) step: u32,
    /// Row of its tile.
    pub(crate) row: u32,
}

impl Task {
    /// Returns all tasks of a matrix with so many tiles along a side.
    pub(crate) fn all(side: u32) -> impl Iterator<Item = Self> {
        (0..side).flat_map(move |column| {
            (0..=column).flat_map(move |step| (column..side).map(move |row| Self { column, step, row }))
        })
    }

    /// Returns the tasks whose results it needs.
    pub(crate) fn needs(self) -> Vec<Self> {
        let Self { column, step, row } = self;
        let last = |row, column| Self { column, step: column, row };
        let before = step.checked_sub(1).map(|step| Self { step, ..self });
        let others = match (step == column, row == column) {
            (true, true) => vec![],
            (true, false) => vec![last(column, column)],
            (false, true) => vec![last(row, step)],
            (false, false) => vec![last(row, step), last(column, step)],
        };
        before.into_iter().chain(others).collect()
    }

    /// Returns the computation: that of POTRF, TRSM, SYRK or GEMM \[flop\].
    pub(crate) fn flops(self) -> f64 {
        let factor = match (self.step == self.column, self.row == self.column) {
            (true, true) => 1.0 / 3.0,
            (false, false) => 2.0,
            _ => 1.0,
        };
        factor * TILE.powi(3)
    }
}

/// Tasks in the order of their ends, with the worker and the time at which it began to compute.
pub(crate) type Schedule = Vec<(Task, u32, SimTime, SimTime)>;

async fn scheduler(mpi: Mpi, side: u32, schedule: Arc<Mutex<Schedule>>) {
    let (mut waiting, mut done): (BTreeSet<Task>, BTreeSet<Task>) =
        (Task::all(side).collect(), BTreeSet::new());
    let mut idle: BTreeSet<u32> = (1..mpi.size()).collect();
    while !waiting.is_empty() || idle.len() < mpi.size() as usize - 1 {
        let is_ready = |task: &&Task| task.needs().iter().all(|needed| done.contains(needed));
        if let (Some(&task), Some(&worker)) = (waiting.iter().find(is_ready), idle.first()) {
            mpi.send(worker, 0, Data::new(BYTES * (1 + task.needs().len() as u64), task)).await;
            waiting.remove(&task);
            idle.remove(&worker);
            continue;
        }
        let message = mpi.receive(None, 0, BYTES).await;
        let &(task, begin, end) = message.value::<(Task, SimTime, SimTime)>().expect("a task has an end");
        schedule.lock().expect("no rank panics").push((task, message.source, begin, end));
        done.insert(task);
        idle.insert(message.source);
    }
    for worker in 1..mpi.size() {
        mpi.send(worker, 0, 0).await;
    }
}

async fn worker(mpi: Mpi) {
    loop {
        let message = mpi.receive(0, 0, 4 * BYTES).await;
        let Some(&task) = message.value::<Task>() else { return };
        let begin = mpi.time();
        mpi.compute(task.flops()).await;
        mpi.send(0, 0, Data::new(BYTES, (task, begin, mpi.time()))).await;
    }
}

/// Returns the program.
pub(crate) fn program(ranks: u32, side: u32, schedule: &Arc<Mutex<Schedule>>) -> CodeProgram {
    let schedule = Arc::clone(schedule);
    CodeProgram::new("scheduler of tasks", ranks, move |mpi| {
        let schedule = Arc::clone(&schedule);
        async move { if mpi.rank() == 0 { scheduler(mpi, side, schedule).await } else { worker(mpi).await } }
    })
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [ranks, side] = cluster::arguments([5, 12])?;
    let schedule = Arc::default();
    cluster::run(program(ranks, side, &schedule))?;
    println!("{} tasks", schedule.lock().expect("no rank panics").len());
    Ok(())
}
