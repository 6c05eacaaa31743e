//! Trust in a prediction: the parameters of the machine on which its run time depends, and how much.
//!
//! A run time is a sum of the times of the machine, each so many times: computations, latencies, times per byte, overheads. If one of
//! them is longer by a part, the run takes longer by that part of its share, which two replays measure.

use answers::{LinkGroup, Parameter};
use pdes_core::{Progress, SimTime};
use replay::{RunSpec, Simulation};
use serde::Serialize;

use super::ValidationError;

/// Change of a parameter from which its share is taken.
const STEP: f64 = 0.01;

/// A parameter of the machine, and the share of the run time that is proportional to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// Place of the parameter in a configuration.
    pub key: &'static str,
    /// Share of the run time: a parameter that is off by 10 % moves the run time by a tenth of it.
    pub share: f64,
}

/// Returns the shares of a run's time, in descending order: one replay for each of three parameters; the rest is computation.
pub(super) fn shares(spec: &RunSpec, run_time: SimTime) -> Result<Vec<Share>, ValidationError> {
    let changed = [
        (Parameter::Latency(LinkGroup::all()), "platform, network.latency_scale"),
        (Parameter::TimePerByte(LinkGroup::all()), "platform, network.bandwidth_scale"),
        (Parameter::Library, "mpi.*_overhead"),
    ];
    let mut shares = Vec::new();
    for (parameter, key) in changed {
        let simulation = Simulation::load(&*parameter.scaled(spec, 1.0 + STEP)?)?;
        let outcome = simulation.replay(&Progress::new(spec.threads))?;
        let longer = outcome.simulated_time().as_secs_f64() / run_time.as_secs_f64();
        shares.push(Share { parameter: parameter.name(), key, share: (longer - 1.0) / STEP });
    }
    let rest = 1.0 - shares.iter().map(|one| one.share).sum::<f64>();
    shares.push(Share { parameter: "computations", key: "platform: speed", share: rest });
    shares.sort_by(|one, other| other.share.total_cmp(&one.share));
    Ok(shares)
}
