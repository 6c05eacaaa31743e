//! Measurements by two processes of an MPI program.

mod clock;
mod kernel;
mod pair;
mod program;

use std::sync::atomic::{AtomicU64, Ordering};

use mpi::environment::{library_version, processor_name};
use mpi::traits::{Communicator, Destination, Source};

use crate::observation::Measurements;
use crate::plan::Plan;
use clock::Clock;
use kernel::Kernel;
use pair::MeasuringProcess;
pub use program::run_program;

/// Error of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// MPI is in use already.
    #[error("MPI was initialised before; measurements initialise it themselves")]
    Initialised,
    /// There are not two processes.
    #[error(
        "found {found} process(es), expected two: `mpirun -np 2 pdes-replay calibrate -o machine.toml`, on two hosts with \
         `--map-by node` (Open MPI) or `-ppn 1` (MPICH)"
    )]
    Processes {
        /// Number of processes.
        found: i32,
    },
}

/// Runs the experiments of a plan; both processes call this with the same plan. The first process gets the measurements,
/// the other one `None`. `done` counts experiments.
///
/// Durations are those of the monotonic clock, less the time of reading it, and at least its resolution. An unrecorded
/// round precedes each experiment. At the end, the size from which on sends wait for their receiver is searched for byte by
/// byte.
///
/// # Errors
/// If MPI is in use already, or there are not two processes.
pub fn measure(plan: &Plan, done: &AtomicU64) -> Result<Option<Measurements>, MeasureError> {
    let universe = mpi::initialize().ok_or(MeasureError::Initialised)?;
    let world = universe.world();
    if world.size() != 2 {
        return Err(MeasureError::Processes { found: world.size() });
    }
    let is_first = world.rank() == 0;
    let mut pair = MeasuringProcess::new(world.duplicate(), Clock::new(), plan.largest);
    let mut kernel = Kernel::new();
    for experiment in plan.experiments() {
        pair.run(experiment, &mut kernel);
        // A progress display reads this counter; nothing depends on its order.
        done.fetch_add(1, Ordering::Relaxed);
    }
    pair.search_threshold();
    let timer = pair.clock().to_string();
    let mut measurements = pair.gather();
    let (mine, peer) = (processor_name().unwrap_or_default(), world.process_at_rank(1 - world.rank()));
    if !is_first {
        peer.send(mine.as_bytes());
        return Ok(None);
    }
    let other = String::from_utf8_lossy(&peer.receive_vec::<u8>().0).into_owned();
    let notes = [
        ("hosts", format!("{mine}, {other}")),
        ("mpi", library_version().unwrap_or_default()),
        ("timer", timer),
        ("compute", Kernel::DESCRIPTION.to_owned()),
        (
            "plan",
            format!(
                "seed {}, {} sizes above 16 B up to {} B, {} visits",
                plan.seed, plan.sizes, plan.largest, plan.visits
            ),
        ),
    ];
    let clean = |text: String| {
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect::<String>()
    };
    measurements.notes = notes.map(|(key, value)| (key.to_owned(), clean(value).trim().to_owned())).to_vec();
    Ok(Some(measurements))
}
