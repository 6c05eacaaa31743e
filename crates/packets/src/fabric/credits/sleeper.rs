//! Parts of a node that wake.

/// Whom a wake wakes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sleeper {
    Queue(u32),
    Injection(u32),
    Output(u32),
}

/// A sleeper as a number, which heaps compare quickly: its kind in the upper half, in the order in which those of one instant wake.
pub(super) type PackedSleeper = u64;

impl Sleeper {
    /// Returns the number.
    pub(super) fn pack(self) -> PackedSleeper {
        let (kind, number) = match self {
            Self::Queue(queue) => (0, queue),
            Self::Injection(port) => (1, port),
            Self::Output(port) => (2, port),
        };
        kind << 32 | u64::from(number)
    }

    /// Returns the sleeper of a number.
    pub(super) fn unpack(packed: PackedSleeper) -> Self {
        let number = packed as u32;
        match packed >> 32 {
            0 => Self::Queue(number),
            1 => Self::Injection(number),
            _ => Self::Output(number),
        }
    }
}
