//! The parameters of the model, and what they make of an operation.

/// LogGOPS: latency, overhead and gap per message and per byte, and the size from which messages wait for their receive.
///
/// Times are in picoseconds, so that parameters of a fraction of a nanosecond are exact as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGops {
    /// L: from the end of the overhead of the sender to the arrival of the first byte \[ps\].
    pub latency: u64,
    /// o: what sender and receiver compute per message \[ps\].
    pub overhead: u64,
    /// g: from one message to the next at a network interface \[ps\].
    pub gap: u64,
    /// G: what each byte beyond the first adds to that \[ps/B\].
    pub gap_per_byte: u64,
    /// O: what each byte beyond the first adds to the overhead \[ps/B\].
    pub overhead_per_byte: u64,
    /// S: the largest message whose sender does not wait for the receive \[B\].
    pub eager_up_to: u64,
    /// What a message without bytes costs.
    pub empty: EmptyMessage,
}

/// What a message without bytes costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyMessage {
    /// One byte less than a message of one byte, as in LogGOPSim, whose `size - 1` wraps.
    #[default]
    Wraps,
    /// As much as a message of one byte.
    OneByte,
}

impl EmptyMessage {
    /// Returns the name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wraps => "wraps",
            Self::OneByte => "one_byte",
        }
    }
}

/// Picoseconds in a nanosecond, the unit of GOAL.
pub const NANOSECOND: u64 = 1000;

/// LogGOPSim's defaults.
impl Default for LogGops {
    fn default() -> Self {
        Self {
            latency: 2500 * NANOSECOND,
            overhead: 1500 * NANOSECOND,
            gap: 1000 * NANOSECOND,
            gap_per_byte: 6 * NANOSECOND,
            overhead_per_byte: 0,
            eager_up_to: 65535,
            empty: EmptyMessage::Wraps,
        }
    }
}

/// Times and costs stay below this \[ps\], so that the sum of two does not wrap: 53 days.
pub(crate) const LIMIT: u64 = 1 << 62;

/// What messages cost; all in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charges {
    parameters: LogGops,
    /// From the start of a send to the arrival of its message: o + L.
    pub(crate) flight: u64,
}

impl Charges {
    pub(crate) fn new(parameters: LogGops) -> Self {
        Self { parameters, flight: parameters.overhead.saturating_add(parameters.latency) }
    }

    pub(crate) fn is_eager(&self, bytes: u64) -> bool {
        bytes <= self.parameters.eager_up_to
    }

    /// Returns what the processor of the sender is charged.
    #[inline]
    pub(crate) fn send(&self, bytes: u64) -> u64 {
        self.linear(self.parameters.overhead, self.parameters.overhead_per_byte, bytes)
    }

    /// Returns what an interface of the sender or the receiver is charged.
    #[inline]
    pub(crate) fn gap(&self, bytes: u64) -> u64 {
        self.linear(self.parameters.gap, self.parameters.gap_per_byte, bytes)
    }

    /// Returns what the processor of the receiver is charged.
    #[inline]
    pub(crate) fn receive(&self, bytes: u64) -> u64 {
        let LogGops { overhead, gap_per_byte, overhead_per_byte, .. } = self.parameters;
        self.linear(overhead, self.dearer(bytes, overhead_per_byte, gap_per_byte), bytes)
    }

    /// Returns which of two costs per byte is charged. For a message without bytes both wrap to huge numbers, of which
    /// the larger one is the smaller cost; no cost at all does not wrap.
    fn dearer(&self, bytes: u64, one: u64, other: u64) -> u64 {
        if bytes > 0 || one == 0 || other == 0 { one.max(other) } else { one.min(other) }
    }

    #[inline]
    fn linear(&self, fixed: u64, per_byte: u64, bytes: u64) -> u64 {
        match (bytes, self.parameters.empty) {
            (0, EmptyMessage::Wraps) => fixed - per_byte,
            (0, EmptyMessage::OneByte) => fixed,
            _ => fixed + (bytes - 1) * per_byte,
        }
    }

    /// Returns whether all costs of a message are numbers from 0 to [`LIMIT`].
    pub(crate) fn bounds(&self, bytes: u64) -> bool {
        let LogGops { overhead, gap, gap_per_byte, overhead_per_byte, empty, .. } = self.parameters;
        if self.flight >= LIMIT {
            return false;
        }
        if bytes == 0 && empty == EmptyMessage::Wraps {
            let dearer = self.dearer(0, overhead_per_byte, gap_per_byte);
            return overhead_per_byte <= overhead && gap_per_byte <= gap && dearer <= overhead;
        }
        let most = u128::from(gap_per_byte.max(overhead_per_byte)) * u128::from(bytes);
        most + u128::from(gap.max(overhead)) < u128::from(LIMIT)
    }

    /// Returns the length of a computation, which GOAL has in nanoseconds.
    pub(crate) fn calculate(nanos: u64) -> Option<u64> {
        nanos.checked_mul(NANOSECOND).filter(|&picos| picos < LIMIT)
    }
}
