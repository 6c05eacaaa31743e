//! The parameters of the MPI library that is modelled.

use std::collections::BTreeMap;

use pdes_core::{Bytes, SimDuration};

use crate::{Overhead, Selection};

/// What an MPI library charges and when it switches protocols, and how fast the program computes where; the defaults are SMPI's.
///
/// Sources: SimGrid 3.32, `smpi_config.cpp` (defaults) and `smpi_request.cpp` (use).
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// What every message carries beside its payload \[B\]; it counts for the network, not for thresholds.
    pub envelope: Bytes,
    /// Messages below this size are detached: the sender goes on at once, and the data flows when the receive is
    /// posted. From this size on the sender waits until the data has arrived (rendezvous).
    pub detached_below: Bytes,
    /// The data of messages below this size flows as soon as the sender is ready, whether or not the receive is
    /// posted (`smpi/async-small-thresh`); not above `detached_below`.
    pub eager_below: Bytes,
    /// Paid by the sender before a detached blocking send (`smpi/os`).
    pub send: Overhead,
    /// Paid by the sender before a non-blocking send, a combined send and receive, and non-blocking sends inside
    /// collectives (`smpi/ois`).
    pub isend: Overhead,
    /// Paid by the receiver when it completes a detached message (`smpi/or`).
    pub receive: Overhead,
    /// Paid by the receiver before it posts a receive that does not block, or starts a persistent one. SimGrid has no such cost.
    pub irecv: SimDuration,
    /// Paid before every test of a request (`smpi/test`), times one plus the number of failed tests of all ranks
    /// since the last successful one where `test_grows`.
    pub test: SimDuration,
    /// Whether failed tests make later ones dearer (`smpi/grow-injected-times`).
    pub test_grows: bool,
    /// Paid before every look for a message (`smpi/iprobe`), times one plus the number of looks of all ranks in vain since
    /// the last one that found a message, where `test_grows`.
    pub iprobe: SimDuration,
    /// Whose outcomes calls have that depend on time.
    pub outcomes: Outcomes,
    /// Whether making a communicator costs what its ranks have to tell each other: 8 bytes each, by an allgather. Of a
    /// communicator that the trace does not use, it never does.
    pub communicators_cost: bool,
    /// Which algorithms collectives use.
    pub collectives: Selection,
    /// How fast computations are in each region of the program (what a location of the trace names, without `:0` at its end), as a
    /// multiple of the speed of the host; 1 in others. Finite and above 0. What comes before any location is the region of no name.
    pub region_speeds: BTreeMap<String, f64>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            envelope: Bytes::new(16),
            detached_below: Bytes::new(65536),
            eager_below: Bytes::ZERO,
            send: Overhead::default(),
            isend: Overhead::default(),
            receive: Overhead::default(),
            irecv: SimDuration::ZERO,
            test: SimDuration::from_picos(100_000_000),
            test_grows: true,
            iprobe: SimDuration::from_picos(100_000_000),
            outcomes: Outcomes::default(),
            communicators_cost: true,
            collectives: Selection::default(),
            region_speeds: BTreeMap::new(),
        }
    }
}

/// Whose outcomes calls have that depend on time: which request completes first, whose message a receive from any source
/// takes, and whether a test succeeds.
///
/// | | recorded | reenact |
/// |---|---|---|
/// | waitany, waitsome | complete what they did in the trace | complete as many, but those that are complete first; what the trace says later of the others is exchanged |
/// | test that failed in the trace | fails | may succeed; later tests and waits of its request are no more |
/// | test that succeeded in the trace | waits | succeeds, or waits |
/// | receive from any source | takes the message of the recorded source, where there is one | takes the message that was sent first |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcomes {
    /// Those of the recorded run.
    Recorded,
    /// Those of the simulated run.
    #[default]
    Reenact,
}

impl Outcomes {
    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Reenact => "reenact",
        }
    }
}
