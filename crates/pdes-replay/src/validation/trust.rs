//! Trust in a prediction: the parameters of the machine on which its run time depends, and how much.
//!
//! A run time is a sum of the times of the machine, each so many times: computations, latencies, times per byte, overheads. If one of
//! them is longer by a part, the run takes longer by that part of its share, which two replays measure.

use mpi_model::Parameters;
use pdes_core::{Progress, SimDuration, SimTime};
use replay::{Job, LinkScale, Polling, Simulation};
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

/// Returns the shares of the run time of a job, in descending order: one replay for each of three parameters; the rest is computation.
pub(super) fn shares(job: &Job, run_time: SimTime) -> Result<Vec<Share>, ValidationError> {
    let links = |latency: f64, bandwidth: f64| {
        let mut job = job.clone();
        job.link_scales.push(LinkScale { class: None, latency, bandwidth });
        job
    };
    let changed = [
        ("latency", "platform, network.latency_scale", links(1.0 + STEP, 1.0)),
        ("time per byte", "platform, network.bandwidth_scale", links(1.0, 1.0 / (1.0 + STEP))),
        ("costs of the library", "mpi.*_overhead", slower_library(job)),
    ];
    let mut shares = Vec::new();
    for (parameter, key, job) in changed {
        let simulation = Simulation::load(&job)?;
        let outcome = simulation.replay(&Progress::new(job.threads))?;
        let longer = outcome.simulated_time().as_secs_f64() / run_time.as_secs_f64();
        shares.push(Share { parameter, key, share: (longer - 1.0) / STEP });
    }
    let rest = 1.0 - shares.iter().map(|one| one.share).sum::<f64>();
    shares.push(Share { parameter: "computations", key: "platform: speed", share: rest });
    shares.sort_by(|one, other| other.share.total_cmp(&one.share));
    Ok(shares)
}

/// Returns the job with a library whose calls take longer.
fn slower_library(job: &Job) -> Job {
    let factor = 1.0 + STEP;
    let scaled = |time: SimDuration| SimDuration::from_picos_f64(time.as_picos() as f64 * factor);
    let mpi = &job.mpi;
    Job {
        mpi: Parameters {
            send: mpi.send.scaled(factor),
            isend: mpi.isend.scaled(factor),
            receive: mpi.receive.scaled(factor),
            irecv: scaled(mpi.irecv),
            call_overheads: mpi
                .call_overheads
                .iter()
                .map(|(&call, cost)| (call, cost.scaled(factor)))
                .collect(),
            ..mpi.clone()
        },
        polling: Polling {
            test: job.polling.test.map(scaled),
            iprobe: job.polling.iprobe.map(scaled),
            ..job.polling
        },
        ..job.clone()
    }
}
