//! A ring in code: a token visits all ranks, each of which computes before it passes the token on.
//!
//! ```console
//! cargo run --release --example ring -- 1000 3
//! ```
//! The arguments are the number of ranks and that of rounds.

#[path = "launch/cluster.rs"]
mod cluster;

use replay::{CodeProgram, Data, Mpi};

/// Size of the token \[B\].
const TOKEN: u64 = 1 << 20;

/// Passes a token, which counts the ranks that it has visited.
async fn ring(mpi: Mpi, rounds: u32) {
    let (me, size) = (mpi.rank(), mpi.size());
    let (before, after) = ((me + size - 1) % size, (me + 1) % size);
    for round in 0..rounds {
        let mut visited = 0_u32;
        if me > 0 {
            visited = *mpi.receive(before, round, TOKEN).await.value().expect("the token has a number");
        }
        mpi.compute(1e6).await;
        mpi.send(after, round, Data::new(TOKEN, visited + 1)).await;
        if me == 0 {
            let token = mpi.receive(before, round, TOKEN).await;
            assert_eq!(token.value(), Some(&size));
        }
    }
}

/// Returns the program.
pub(crate) fn program(ranks: u32, rounds: u32) -> CodeProgram {
    CodeProgram::new("ring", ranks, move |mpi| ring(mpi, rounds))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [ranks, rounds] = cluster::arguments([16, 10])?;
    cluster::run(program(ranks, rounds))
}
