//! Noise of the operating systems of hosts: from traces, or generated.
//!
//! It follows LogGOPSim's rule (Hoefler, Schneider and Lumsdaine, "Characterizing the Influence of System Noise on Large-Scale Applications by
//! Simulation", SC 2010): a computation becomes longer by what is left of the event that is running when it begins, and by the
//! whole of each that begins in it; events in the noise itself do not count. Random numbers are keyed by the seed, the host, and what
//! they are for, so that neither partition nor order matter.

mod generated;
mod recorded;
mod section;

pub use generated::{EventLengths, GeneratedNoise};
pub use recorded::RecordedNoise;
pub use section::{NoiseKind, NoiseSection, NoiseSectionError};

use netmodel::HostId;
use xxhash_rust::xxh3::xxh3_64;

/// Returns a generator of random numbers for one purpose.
fn random(seed: u64, host: Option<HostId>, purpose: i64) -> fastrand::Rng {
    let host = host.map_or(u64::MAX, |host| u64::from(host.get()));
    let mut key = [0; 24];
    for (part, number) in key.as_chunks_mut().0.iter_mut().zip([seed, host, purpose as u64]) {
        *part = number.to_le_bytes();
    }
    fastrand::Rng::with_seed(xxh3_64(&key))
}

/// Purpose of the number that decides where a host begins.
const PHASE: i64 = i64::MIN;
