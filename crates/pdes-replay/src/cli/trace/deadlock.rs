//! Deadlocks that the program of a trace has on any machine.

use std::path::Path;

use anyhow::Result;
use pdes_core::{Bytes, Progress};
use pdes_replay::{Config, RunError, Simulation, available_threads};

/// Largest number of actions that are replayed: some seconds.
const MOST_ACTIONS: u64 = 10_000_000;

/// Replays a trace on one host as if the MPI library kept all messages until they are received, and returns the deadlock in which that
/// ends, if it does. Longer traces are left out, with a note. Where receives from any source let the times decide, the deadlock is one of
/// this machine: a warning. Cost: that of a replay without contention.
///
/// # Errors
/// The configuration of the replay is wrong.
pub(super) fn find(trace: &Path, ranks: u32, actions: u64) -> Result<Option<String>> {
    if actions > MOST_ACTIONS {
        tracing::info!(
            "deadlocks are sought in traces of up to {MOST_ACTIONS} actions: this one has {actions}; replay it"
        );
        return Ok(None);
    }
    let machine = format!(
        "platform.topology={{ kind='cluster', hosts=1, cores={ranks}, speed='1Gf', bandwidth='10GBps', latency='0us' }}"
    );
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    let settings = ["network.model='contention-free'", "analysis.waits=false"];
    for setting in [&*machine].into_iter().chain(settings) {
        config.set(setting)?;
    }
    let mut spec = config.resolve()?;
    spec.mpi.detached_below = Bytes::new(1 << 62);
    spec.threads = available_threads();
    // What else keeps it from being replayed is not of the trace alone.
    let Ok(simulation) = Simulation::load(&spec) else { return Ok(None) };
    Ok(match simulation.replay(&Progress::new(spec.threads)) {
        Err(RunError::Deadlock(deadlock)) if deadlock.advice.is_none() => {
            Some(format!("\n  no replay can end: {deadlock}"))
        }
        Err(RunError::Deadlock(deadlock)) => {
            tracing::warn!("a replay may not end: {deadlock}");
            None
        }
        _ => None,
    })
}
