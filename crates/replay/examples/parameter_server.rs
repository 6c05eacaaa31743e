//! A parameter server in code: workers fit a line to points of their own by gradients, each at its own pace. The server adds up gradients
//! in the order in which they come, and answers with the parameters as they are then.
//!
//! ```console
//! cargo run --release --example parameter_server -- 5 2000
//! ```
//! The arguments are the number of ranks and that of steps of each worker.

#[path = "launch/cluster.rs"]
mod cluster;

use std::sync::{Arc, Mutex};

use replay::{CodeProgram, Data, Mpi};

/// Size of the parameters and of a gradient, as of a large model \[B\].
const BYTES: u64 = 100 << 20;

/// Slope and offset of a line.
type Parameters = [f64; 2];

/// The parameters, and the largest number of gradients that the server got while a worker computed one.
pub(crate) type Result = (Parameters, u32);

async fn server(mpi: Mpi, steps: u32, result: Arc<Mutex<Result>>) {
    let mut parameters = [0.0; 2];
    let (mut answered, mut stale) = (vec![0; mpi.size() as usize], 0);
    for step in 0..steps * (mpi.size() - 1) {
        let message = mpi.receive(None, 0, BYTES).await;
        let gradient: &Parameters = message.value().expect("a gradient has values");
        parameters.iter_mut().zip(gradient).for_each(|(parameter, gradient)| *parameter -= 0.05 * gradient);
        let last = std::mem::replace(&mut answered[message.source as usize], step + 1);
        stale = stale.max(step - last);
        mpi.send(message.source, 0, Data::new(BYTES, parameters)).await;
    }
    *result.lock().expect("no rank panics") = (parameters, stale);
}

/// Computes gradients at points of y = 3 x - 1. A step takes `rank` times 10 ms.
async fn worker(mpi: Mpi, steps: u32) {
    let me = f64::from(mpi.rank());
    let mut parameters: Parameters = [0.0; 2];
    for step in 0..steps {
        let x = (f64::from(step) * me).sin();
        let error = parameters[0] * x + parameters[1] - (3.0 * x - 1.0);
        mpi.compute(1e7 * me).await;
        mpi.send(0, 0, Data::new(BYTES, [error * x, error])).await;
        parameters = *mpi.receive(0, 0, BYTES).await.value().expect("parameters have values");
    }
}

/// Returns the program.
pub(crate) fn program(ranks: u32, steps: u32, result: &Arc<Mutex<Result>>) -> CodeProgram {
    let result = Arc::clone(result);
    CodeProgram::new("parameter server", ranks, move |mpi| {
        let result = Arc::clone(&result);
        async move { if mpi.rank() == 0 { server(mpi, steps, result).await } else { worker(mpi, steps).await } }
    })
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let [ranks, steps] = cluster::arguments([5, 2000])?;
    let result = Arc::default();
    cluster::run(program(ranks, steps, &result))?;
    println!("slope and offset, and the stalest gradient: {:?}", result.lock().expect("no rank panics"));
    Ok(())
}
