//! The run of an example, on a flat cluster with one host for each rank.

use pdes_core::Progress;
use replay::{CodeProgram, Model, OWN_DEFAULT, PlatformSource, RunSpec, RunningProgram as _, Simulation};

/// Returns the arguments of the command line, or these.
pub(crate) fn arguments<const N: usize>(or: [u32; N]) -> Result<[u32; N], Box<dyn std::error::Error>> {
    let arguments = std::env::args().skip(1).map(|argument| argument.parse::<u32>());
    Ok(arguments.collect::<Result<Vec<_>, _>>()?.try_into().unwrap_or(or))
}

/// Runs a program without contention, and prints its simulated time.
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
pub(crate) fn run(program: CodeProgram) -> Result<(), Box<dyn std::error::Error>> {
    let hosts = program.ranks();
    let platform = format!(
        "topology = {{ kind = 'cluster', hosts = {hosts}, speed = '1Gf', bandwidth = '10GBps', latency = '1us' }}"
    );
    let platform = PlatformSource::Inline(Box::new(toml::from_str(&platform)?), None);
    let spec = RunSpec { model: Model::uncontended(), ..RunSpec::new("", platform, OWN_DEFAULT) };
    let simulation = Simulation::load(&spec.with_code(program))?;
    let outcome = simulation.replay(&Progress::new(1))?;
    let (actions, wall) = (simulation.actions(&outcome), outcome.replay_time.as_secs_f64());
    println!("{actions} actions, {} s simulated in {wall:.3} s", outcome.simulated_time());
    Ok(())
}
