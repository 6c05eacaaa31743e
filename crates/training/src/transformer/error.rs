//! Errors in the parameters of a training run.

use super::model::PRESETS;

/// The parameters of a training run are illegal.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TransformerError {
    /// A number is zero.
    #[error("{name} is 0, expected 1 or more")]
    Zero {
        /// The name of the parameter.
        name: &'static str,
    },
    /// A number does not divide another one.
    #[error("{name} is {found}, expected a divisor of {of}, which is {whole}")]
    Indivisible {
        /// The name of the divisor.
        name: &'static str,
        /// The divisor.
        found: u64,
        /// The name of the number to be divided.
        of: &'static str,
        /// That number.
        whole: u64,
    },
    /// A number is too large.
    #[error("{name} is {found}, expected at most {most}")]
    TooLarge {
        /// The name of the parameter.
        name: &'static str,
        /// The value found.
        found: u64,
        /// The largest legal value.
        most: u64,
    },
    /// The ratio of speed to memory bandwidth is negative or not finite.
    #[error("flops_per_byte is {found}, expected a finite number, 0 or more")]
    Ratio {
        /// The value found.
        found: f64,
    },
    /// One stage cannot be interleaved.
    #[error("a pipeline of one stage has nothing to interleave, expected interleave = 1 or more stages")]
    InterleavedStage,
    /// The product of all dimensions is too large.
    #[error("tensor * context * data * pipeline is more than 2^20 ranks")]
    TooManyRanks,
    /// There is no model of this name.
    #[error("there is no model {found:?}, expected one of {}", names())]
    Preset {
        /// The value found.
        found: String,
    },
}

fn names() -> String {
    PRESETS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

pub(super) fn check_positive(name: &'static str, value: u64) -> Result<(), TransformerError> {
    if value == 0 { Err(TransformerError::Zero { name }) } else { Ok(()) }
}

/// Checks that `found` divides `whole`.
pub(super) fn check_divides(
    name: &'static str,
    found: u64,
    of: &'static str,
    whole: u64,
) -> Result<(), TransformerError> {
    if whole.is_multiple_of(found) {
        Ok(())
    } else {
        Err(TransformerError::Indivisible { name, found, of, whole })
    }
}
