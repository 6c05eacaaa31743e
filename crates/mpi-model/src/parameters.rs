//! Parameters of the modelled MPI library.

use std::collections::BTreeMap;

use pdes_core::{Bytes, SimDuration};

use crate::{ChargedCall, Overhead, Selection};

/// Overheads and protocol thresholds of an MPI library, and relative speeds of regions of the program. The defaults are SMPI's.
///
/// Sources: SimGrid 3.32, `smpi_config.cpp` (defaults) and `smpi_request.cpp` (use).
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Size of the envelope of every message \[B\]; it counts for the network, not for thresholds.
    pub envelope: Bytes,
    /// Messages below this size are detached: the sender continues at once, and the data flow when the receive is
    /// posted. From this size on the sender waits until the data have arrived (rendezvous).
    pub detached_below: Bytes,
    /// The data of messages below this size flow as soon as the sender is ready, whether or not the receive is
    /// posted (`smpi/async-small-thresh`); at most `detached_below`.
    pub eager_below: Bytes,
    /// Cost to the sender, before a detached blocking send (`smpi/os`).
    pub send: Overhead,
    /// Cost to the sender, before a non-blocking send, a combined send and receive, and non-blocking sends inside
    /// collectives (`smpi/ois`).
    pub isend: Overhead,
    /// Cost to the receiver, when it completes a detached message (`smpi/or`).
    pub receive: Overhead,
    /// Cost to the receiver, before it posts a non-blocking receive or starts a persistent one. SimGrid has no such cost.
    pub irecv: SimDuration,
    /// Time that the library itself spends in calls, by sort of call and size ([`ChargedCall::of`]); none for those that are not
    /// listed. Calls that start something have it before they communicate, those that complete something (`recv`, `probe` and waits)
    /// after what they waited for. SimGrid has no such costs.
    pub call_overheads: BTreeMap<ChargedCall, Overhead>,
    /// Cost of every test of a request (`smpi/test`), times one plus the number of failed tests of all ranks
    /// since the last successful one where `test_grows`.
    pub test: SimDuration,
    /// Growth of the costs of tests and probes with the number of failed ones (`smpi/grow-injected-times`).
    pub test_grows: bool,
    /// Cost of every non-blocking probe (`smpi/iprobe`), times one plus the number of failed probes of all ranks since the last
    /// successful one where `test_grows`.
    pub iprobe: SimDuration,
    /// Source of the outcomes of calls that depend on time.
    pub outcomes: Outcomes,
    /// Moments at which the data of a message move for which its sender waits.
    pub progress: Progress,
    /// Charges the creation of a communicator with an allgather of 8 bytes per rank. The creation of a communicator that the trace
    /// does not use is always free.
    pub communicators_cost: bool,
    /// Algorithms of collective operations.
    pub collectives: Selection,
    /// Library whose collective accesses to files are modelled.
    pub collective_io: CollectiveIo,
    /// Speed of computations in each region of the program, as a multiple of the speed of the host; 1 elsewhere. Finite and positive.
    /// The name of a region is that of a location of the trace without `:0` at its end; before any location, the empty name.
    pub region_speeds: BTreeMap<String, f64>,
    /// Traffic of a computation with the memory \[B/flop\]; finite and not negative. A computation takes at least the time of its traffic
    /// at the [bandwidth](crate::Machine::memory_bandwidth) that its rank has.
    pub bytes_per_flop: f64,
    /// The same in regions of the program that differ.
    pub region_bytes_per_flop: BTreeMap<String, f64>,
}

impl Parameters {
    /// Returns the factor of the duration of computations in a region of the program, of a rank with a speed [flop/s] and a bandwidth of
    /// the memory \[B/s\]: a roofline.
    pub(crate) fn compute_factor(&self, region: &str, speed: f64, memory_bandwidth: f64) -> f64 {
        let alone = self.region_speeds.get(region).map_or(1.0, |speed| speed.recip());
        let traffic = self.region_bytes_per_flop.get(region).unwrap_or(&self.bytes_per_flop);
        alone.max(traffic * speed / memory_bandwidth)
    }

    /// Returns whether computations take other times in some regions than in others.
    pub(crate) fn distinguishes_regions(&self) -> bool {
        !self.region_speeds.is_empty() || !self.region_bytes_per_flop.is_empty()
    }
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
            call_overheads: BTreeMap::new(),
            test: SimDuration::from_picos(100_000_000),
            test_grows: true,
            iprobe: SimDuration::from_picos(100_000_000),
            outcomes: Outcomes::default(),
            progress: Progress::default(),
            communicators_cost: true,
            collectives: Selection::default(),
            collective_io: CollectiveIo::default(),
            region_speeds: BTreeMap::new(),
            bytes_per_flop: 0.0,
            region_bytes_per_flop: BTreeMap::new(),
        }
    }
}

/// Source of the outcomes of calls that depend on time: which request completes first, whose message a receive from any
/// source takes, and whether a test succeeds.
///
/// | | recorded | reenact |
/// |---|---|---|
/// | waitany, waitsome | complete the requests of the trace | complete as many, but those that are complete first; later uses in the trace of the others are exchanged |
/// | test that failed in the trace | fails | may succeed; later tests and waits of its request have no effect |
/// | test that succeeded in the trace | waits | succeeds, or waits |
/// | receive from any source | takes the message of the recorded source, where there is one | takes the message that was sent first |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcomes {
    /// Outcomes of the recorded run.
    Recorded,
    /// Outcomes of the simulated run.
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

/// Library whose collective accesses to files are modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CollectiveIo {
    /// SMPI's extended two phases: all ranks are aggregators, each for a chunk of the whole.
    #[default]
    Smpi,
    /// ROMIO's two phases, with aggregators and buffers.
    Romio,
}

impl CollectiveIo {
    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smpi => "smpi",
            Self::Romio => "romio",
        }
    }
}

/// Progress of the library: the moments at which the data of a message move for which its sender waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// At any time, as if by a thread of the library or by the network card.
    #[default]
    Asynchronous,
    /// From the first instant on at which the receiver is in a call of the library that waits, tests or blocks. Messages of nonblocking
    /// collective operations move at any time.
    Calls,
}

impl Progress {
    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Asynchronous => "asynchronous",
            Self::Calls => "calls",
        }
    }
}
