//! State as canonical bytes, relative to an instant.

use serde::Serialize;

use crate::SimTime;

/// Writes the state of a simulation relative to an instant, for comparison with the state at another instant: equal bytes mean
/// that everything happens again, later by the time between the instants.
///
/// # Laws
/// 1. Everything on which the future depends is written, in an order that depends on what is written only.
/// 2. Instants are written relative to the present. One whose effect has passed may be left out.
/// 3. What only names things (numbers that are reused, positions in a pool) is left out or written relative to a base.
///
/// ```
/// use pdes_core::{SimDuration, SimTime, StateWriter};
/// let at = SimTime::from_picos;
/// let bytes = |now: u64, timer: u64| {
///     let mut state = StateWriter::at(at(now));
///     state.time(at(timer));
///     state.value(&"armed");
///     state.into_bytes()
/// };
/// assert_eq!(bytes(10, 25), bytes(110, 125));
/// assert_ne!(bytes(10, 25), bytes(110, 126));
/// ```
#[derive(Debug)]
pub struct StateWriter {
    now: SimTime,
    bytes: Vec<u8>,
}

impl StateWriter {
    /// Creates a writer of state at an instant.
    pub fn at(now: SimTime) -> Self {
        Self { now, bytes: Vec::new() }
    }

    /// Returns the present instant.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Writes an instant, past or future, relative to the present one.
    #[inline]
    pub fn time(&mut self, at: SimTime) {
        // Any two instants have different differences modulo 2^64.
        self.number(at.as_picos().wrapping_sub(self.now.as_picos()));
    }

    /// Writes a number that must be the same.
    #[inline]
    pub fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes a floating-point number that must be the same, to the last bit.
    #[inline]
    pub fn float(&mut self, number: f64) {
        self.number(number.to_bits());
    }

    /// Writes a value that must be the same.
    pub fn value(&mut self, value: &impl Serialize) {
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(value, bytes).expect("a vector grows");
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
