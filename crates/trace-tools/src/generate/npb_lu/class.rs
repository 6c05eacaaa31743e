//! Problem classes of the NAS Parallel Benchmarks, for LU.

use std::fmt;
use std::str::FromStr;

use crate::generate::GenerateError;

/// A problem class: grid size and number of time steps.
///
/// | class | S | W | A | B | C | D | E | F |
/// |---|---|---|---|---|---|---|---|---|
/// | points per side | 12 | 33 | 64 | 102 | 162 | 408 | 1020 | 2560 |
/// | time steps | 50 | 300 | 250 | 250 | 250 | 300 | 300 | 300 |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the table above says it")]
pub enum Class {
    S,
    W,
    A,
    B,
    C,
    D,
    E,
    F,
}

impl Class {
    /// All classes, from small to large.
    pub const ALL: [Self; 8] = [Self::S, Self::W, Self::A, Self::B, Self::C, Self::D, Self::E, Self::F];

    /// Returns the number of grid points along each of the three dimensions.
    pub const fn points(self) -> u32 {
        match self {
            Self::S => 12,
            Self::W => 33,
            Self::A => 64,
            Self::B => 102,
            Self::C => 162,
            Self::D => 408,
            Self::E => 1020,
            Self::F => 2560,
        }
    }

    /// Returns the number of time steps.
    pub const fn steps(self) -> u32 {
        match self {
            Self::S => 50,
            Self::A | Self::B | Self::C => 250,
            Self::W | Self::D | Self::E | Self::F => 300,
        }
    }

    /// Returns the computation of one time step over the whole grid \[flop\], by the formula that NPB uses to report its rate:
    /// 1984.77 n^3 - 10923.3 n^2 + 27770.9 n - 144010.
    pub fn flops_per_step(self) -> f64 {
        let n = f64::from(self.points());
        1984.77 * n * n * n - 10923.3 * n * n + 27770.9 * n - 144_010.0
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Class {
    type Err = GenerateError;

    /// Reads the letter, in either case.
    fn from_str(text: &str) -> Result<Self, GenerateError> {
        Self::ALL
            .into_iter()
            .find(|class| class.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| GenerateError::Class { found: text.to_owned() })
    }
}
