//! Parameters of the LogGOPS model, and the cost of an operation under them.

/// LogGOPS parameters: latency, overhead and gap per message and per byte, and the rendezvous threshold.
///
/// Times are in picoseconds, so that fractions of a nanosecond are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGops {
    /// L, latency: time from the end of the sender's overhead to the arrival of the first byte \[ps\].
    pub latency: u64,
    /// o, overhead: processor time per message at sender and receiver \[ps\].
    pub overhead: u64,
    /// g, gap: time between two messages at a network interface \[ps\].
    pub gap: u64,
    /// G: gap per byte beyond the first \[ps/B\].
    pub gap_per_byte: u64,
    /// O: overhead per byte beyond the first \[ps/B\].
    pub overhead_per_byte: u64,
    /// S: largest eager message, whose sender does not wait for the receive \[B\].
    pub eager_up_to: u64,
    /// Cost rule for messages without bytes.
    pub empty: EmptyMessage,
}

/// Cost rule for messages without bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyMessage {
    /// One byte less than a message of one byte, as in LogGOPSim, whose unsigned `size - 1` wraps.
    #[default]
    Wraps,
    /// The cost of a message of one byte.
    OneByte,
}

impl EmptyMessage {
    /// Returns the name that configurations use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wraps => "wraps",
            Self::OneByte => "one_byte",
        }
    }
}

/// Picoseconds in a nanosecond, the unit of GOAL.
pub const NANOSECOND: u64 = 1000;

/// Uses LogGOPSim's default parameters.
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

/// Upper limit of times and costs \[ps\], so that the sum of two does not wrap: 53 days.
pub(crate) const TIME_LIMIT: u64 = 1 << 62;

/// Costs of operations \[ps\].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    parameters: LogGops,
    /// Time from the start of a send to the arrival of its message, o + L \[ps\]: the lookahead between hosts.
    pub(crate) arrival_delay: u64,
}

impl Costs {
    pub(crate) fn new(parameters: LogGops) -> Self {
        Self { parameters, arrival_delay: parameters.overhead.saturating_add(parameters.latency) }
    }

    /// Returns the time of a processor per message, without that of its bytes \[ps\].
    pub(crate) fn overhead(&self) -> u64 {
        self.parameters.overhead
    }

    pub(crate) fn is_eager(&self, bytes: u64) -> bool {
        bytes <= self.parameters.eager_up_to
    }

    /// Returns the time that a message occupies the sender's processor \[ps\].
    #[inline]
    pub(crate) fn send_overhead(&self, bytes: u64) -> u64 {
        self.linear(self.parameters.overhead, self.parameters.overhead_per_byte, bytes)
    }

    /// Returns the time that a message occupies an interface of its sender or receiver \[ps\].
    #[inline]
    pub(crate) fn gap(&self, bytes: u64) -> u64 {
        self.linear(self.parameters.gap, self.parameters.gap_per_byte, bytes)
    }

    /// Returns the time that a message occupies the receiver's processor \[ps\].
    #[inline]
    pub(crate) fn receive_overhead(&self, bytes: u64) -> u64 {
        let LogGops { overhead, gap_per_byte, overhead_per_byte, .. } = self.parameters;
        self.linear(overhead, self.larger_per_byte(bytes, overhead_per_byte, gap_per_byte), bytes)
    }

    /// Returns the larger of two costs per byte, as LogGOPSim compares them. For an empty message both products wrap to
    /// huge numbers there, of which the larger one is the smaller cost; a cost of 0 does not wrap.
    fn larger_per_byte(&self, bytes: u64, one: u64, other: u64) -> u64 {
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

    /// Returns true if all costs of a message are between 0 and [`TIME_LIMIT`].
    pub(crate) fn are_valid(&self, bytes: u64) -> bool {
        let LogGops { overhead, gap, gap_per_byte, overhead_per_byte, empty, .. } = self.parameters;
        if self.arrival_delay >= TIME_LIMIT {
            return false;
        }
        if bytes == 0 && empty == EmptyMessage::Wraps {
            let dearer = self.larger_per_byte(0, overhead_per_byte, gap_per_byte);
            return overhead_per_byte <= overhead && gap_per_byte <= gap && dearer <= overhead;
        }
        let most = u128::from(gap_per_byte.max(overhead_per_byte)) * u128::from(bytes);
        most + u128::from(gap.max(overhead)) < u128::from(TIME_LIMIT)
    }

    /// Converts the length of a computation from nanoseconds, GOAL's unit, to picoseconds; `None` from the limit on.
    pub(crate) fn computation(nanos: u64) -> Option<u64> {
        nanos.checked_mul(NANOSECOND).filter(|&picos| picos < TIME_LIMIT)
    }
}
