//! A master and workers in code: whoever has done a task gets the next one. The master adds up what the workers find.
//!
//! ```console
//! cargo run --release --example master_worker -- 8 100
//! ```
//! The arguments are the number of ranks and that of tasks.

#[path = "launch/cluster.rs"]
mod cluster;

use std::sync::{Arc, Mutex};

use replay::{CodeProgram, Data, Mpi};

/// Size of a task and of a result \[B\].
const BYTES: u64 = 1000;

/// Number of tasks that each worker has done, and the sum of the results.
pub(crate) type Result = (Vec<u32>, u64);

/// Gives a task to each worker that asks, and ends those that ask when there are none left.
async fn master(mpi: Mpi, tasks: u32, result: Arc<Mutex<Result>>) {
    let (mut next, mut done, mut sum) = (0, vec![0; mpi.size() as usize - 1], 0);
    for _ in 0..tasks + mpi.size() - 1 {
        let message = mpi.receive(None, 0, BYTES).await;
        if let Some(found) = message.value::<u64>() {
            done[message.source as usize - 1] += 1;
            sum += found;
        }
        let task = if next < tasks { Data::new(BYTES, next) } else { BYTES.into() };
        mpi.send(message.source, 0, task).await;
        next += 1;
    }
    *result.lock().expect("no rank panics") = (done, sum);
}

/// Asks for tasks, with the result of the one before; a task squares its number, and takes 1 to 7 ms.
async fn worker(mpi: Mpi) {
    let mut result = Data::from(BYTES);
    loop {
        mpi.send(0, 0, result).await;
        let message = mpi.receive(0, 0, BYTES).await;
        let Some(task) = message.value::<u32>() else { return };
        mpi.compute(1e6 * f64::from(1 + task % 7)).await;
        result = Data::new(BYTES, u64::from(*task).pow(2));
    }
}

/// Returns the program.
pub(crate) fn program(ranks: u32, tasks: u32, result: &Arc<Mutex<Result>>) -> CodeProgram {
    let result = Arc::clone(result);
    CodeProgram::new("master and workers", ranks, move |mpi| {
        let result = Arc::clone(&result);
        async move { if mpi.rank() == 0 { master(mpi, tasks, result).await } else { worker(mpi).await } }
    })
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let [ranks, tasks] = cluster::arguments([8, 100])?;
    let result = Arc::default();
    cluster::run(program(ranks, tasks, &result))?;
    println!("tasks of each worker, and the sum: {:?}", result.lock().expect("no rank panics"));
    Ok(())
}
