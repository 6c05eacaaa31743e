//! A ring in code: a token visits all ranks, each of which computes before it passes the token on.
//!
//! ```console
//! cargo run --release --example ring -- 1000 3
//! ```
//! The arguments are the number of ranks and that of rounds.

use pdes_core::Progress;
use replay::{CodeProgram, Data, Model, Mpi, OWN_DEFAULT, PlatformSource, RunSpec, Simulation};

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

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = std::env::args().skip(1).map(|argument| argument.parse::<u32>());
    let [ranks, rounds] = arguments.collect::<Result<Vec<_>, _>>()?.try_into().unwrap_or([16, 10]);

    let platform = format!(
        "topology = {{ kind = 'cluster', hosts = {ranks}, speed = '1Gf', bandwidth = '10GBps', latency = '1us' }}"
    );
    let platform = PlatformSource::Inline(Box::new(toml::from_str(&platform)?), None);
    let spec = RunSpec { model: Model::uncontended(), ..RunSpec::new("", platform, OWN_DEFAULT) };
    let spec = spec.with_code(CodeProgram::new("ring", ranks, move |mpi| ring(mpi, rounds)));

    let simulation = Simulation::load(&spec)?;
    let outcome = simulation.replay(&Progress::new(spec.threads))?;
    let (actions, wall) = (simulation.actions(&outcome), outcome.replay_time.as_secs_f64());
    println!("{actions} actions, {} s simulated in {wall:.3} s", outcome.simulated_time());
    Ok(())
}
