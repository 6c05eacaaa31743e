//! Prints a communication pattern as GOAL text: `cargo run -p goal --example pattern -- linear_alltoall 16 1024`.

use std::io::BufWriter;

use goal::pattern::{
    Stencil, binomial_bcast, binomial_reduce, dissemination, linear_alltoall, recursive_doubling_allreduce,
};

const USAGE: &str = "expected PATTERN RANKS BYTES, with a pattern such as linear_alltoall, or stencil COLUMNS ROWS \
                     ITERATIONS BYTES NANOS JITTER";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pattern = arguments.next().ok_or(USAGE)?;
    let numbers = arguments.map(|number| number.parse()).collect::<Result<Vec<u64>, _>>()?;
    let schedule = match (pattern.as_str(), numbers.as_slice()) {
        ("binomial_bcast", &[ranks, bytes]) => binomial_bcast(ranks as u32, bytes)?,
        ("binomial_reduce", &[ranks, bytes]) => binomial_reduce(ranks as u32, bytes)?,
        ("dissemination", &[ranks, bytes]) => dissemination(ranks as u32, bytes)?,
        ("recursive_doubling_allreduce", &[ranks, bytes]) => {
            recursive_doubling_allreduce(ranks as u32, bytes)?
        }
        ("linear_alltoall", &[ranks, bytes]) => linear_alltoall(ranks as u32, bytes)?,
        ("stencil", &[columns, rows, iterations, bytes, nanos, jitter]) => {
            let ranks = [columns as u32, rows as u32];
            Stencil { ranks, iterations: iterations as u32, bytes, nanos, jitter }.schedule()?
        }
        _ => return Err(USAGE.into()),
    };
    Ok(goal::write_text(&schedule, &mut BufWriter::new(std::io::stdout().lock()))?)
}
