//! A stencil in code: Jacobi's iteration on the rows of a square, one side of which is warm, until nothing changes by more than 1e-3.
//!
//! ```console
//! cargo run --release --example stencil -- 8 64
//! ```
//! The arguments are the number of ranks and that of points along a side.

#[path = "launch/cluster.rs"]
mod cluster;

use std::sync::{Arc, Mutex};

use replay::{CodeProgram, Data, Mpi};

/// Change of a point below which the iteration ends.
const TOLERANCE: f64 = 1e-3;

/// Rows of points, between two of the neighbours or of the border.
type Rows = Vec<Vec<f64>>;

/// Sends the outermost rows to the neighbours, and takes theirs; those at the ends of the square keep its border.
async fn exchange(mpi: &Mpi, rows: &mut Rows) {
    let (me, last) = (mpi.rank(), rows.len() - 1);
    let bytes = size_of_val(&*rows[0]) as u64;
    // The neighbour, the own row that it needs, and the place of its row.
    let above = me.checked_sub(1).map(|above| (above, 1, 0));
    let below = Some(me + 1).filter(|below| *below < mpi.size()).map(|below| (below, last - 1, last));
    let neighbours = [above, below].into_iter().flatten();
    let (mut receives, mut sends) = (Vec::new(), Vec::new());
    for (peer, _, _) in neighbours.clone() {
        receives.push(mpi.ireceive(peer, 0, bytes).await);
    }
    for (peer, own, _) in neighbours.clone() {
        sends.push(mpi.isend(peer, 0, Data::of_vec(rows[own].clone())).await);
    }
    let messages = mpi.wait_all(receives).await;
    for ((_, _, place), message) in neighbours.zip(messages.into_iter().flatten()) {
        rows[place].clone_from(message.value::<Vec<f64>>().expect("a row has values"));
    }
    mpi.wait_all(sends).await;
}

/// Replaces each point by the mean of its neighbours, and returns the largest change.
fn relax(rows: &mut Rows) -> f64 {
    let (old, mut change) = (rows.clone(), 0.0_f64);
    for row in 1..rows.len() - 1 {
        for point in 1..rows[row].len() - 1 {
            let mean =
                (old[row - 1][point] + old[row + 1][point] + old[row][point - 1] + old[row][point + 1]) / 4.0;
            change = change.max((mean - old[row][point]).abs());
            rows[row][point] = mean;
        }
    }
    change
}

async fn stencil(mpi: Mpi, side: u32, result: Arc<Mutex<(u32, f64)>>) {
    let (me, size) = (mpi.rank(), mpi.size());
    let own = side / size + u32::from(me < side % size);
    let mut rows: Rows = vec![vec![0.0; side as usize + 2]; own as usize + 2];
    if me == 0 {
        rows[0].fill(1.0);
    }
    for iteration in 1.. {
        exchange(&mpi, &mut rows).await;
        let change = relax(&mut rows);
        mpi.compute(5.0 * f64::from(own * side)).await;
        let changes = mpi.all_reduce(Data::of(change), 1.0).await;
        let change = changes.values::<f64>().fold(0.0_f64, |most, change| most.max(*change));
        if change < TOLERANCE {
            let first = rows[1][side as usize / 2];
            if me == 0 {
                *result.lock().expect("no rank panics") = (iteration, first);
            }
            return;
        }
    }
}

/// Returns the program. Its result is the number of iterations, and the value in the middle of the first row.
pub(crate) fn program(ranks: u32, side: u32, result: &Arc<Mutex<(u32, f64)>>) -> CodeProgram {
    let result = Arc::clone(result);
    CodeProgram::new("stencil", ranks, move |mpi| stencil(mpi, side, Arc::clone(&result)))
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [ranks, side] = cluster::arguments([8, 64])?;
    let result = Arc::default();
    cluster::run(program(ranks, side, &result))?;
    println!("iterations and a value: {:?}", result.lock().expect("no rank panics"));
    Ok(())
}
