//! Overhead: time that the MPI library itself spends on a message.

use std::fmt;

use pdes_core::{Bytes, SimDuration};

/// A piecewise linear cost in the size of a message: SimGrid's options `smpi/os`, `smpi/ois` and `smpi/or`.
///
/// Written `s0:a0:b0;s1:a1:b1;...` with thresholds `s` \[B\], constants `a` \[s\] and slopes `b` [s/B]: a message of
/// `n` bytes costs `a + b n` of the section with the largest `s < n`, or of the first section where there is none. A single time is
/// the cost for all sizes.
///
/// ```
/// use mpi_model::Overhead;
/// use pdes_core::{Bytes, SimDuration};
/// let overhead: Overhead = "0:1us:0;1000:2us:1ns".parse()?;
/// assert_eq!(overhead.cost(Bytes::new(1000)), SimDuration::from_picos(1_000_000));
/// assert_eq!(overhead.cost(Bytes::new(1001)), SimDuration::from_picos(3_001_000));
/// assert!("0:1".parse::<Overhead>().is_err());
/// # Ok::<(), mpi_model::OverheadError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overhead {
    /// Sections by ascending threshold; without any the cost is zero.
    sections: Vec<Section>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Section {
    above: u64,
    constant_ps: f64,
    slope_ps: f64,
}

/// Error of a text that is not an overhead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverheadError {
    /// A section does not have three fields.
    #[error(
        "found the section {0:?}, expected size:constant:slope, such as 0:1us:0.5ns (sections are separated by ';')"
    )]
    Fields(String),
    /// A field is not a size.
    #[error("found the size {0:?}, expected a whole number of bytes")]
    Size(String),
    /// A field is not a time.
    #[error("found {0:?}, expected a time such as 1.5us, 20ns or 0 (seconds where no unit is given)")]
    Time(String),
    /// Two sections start at the same size.
    #[error("two sections start at {0} bytes")]
    DuplicateThreshold(u64),
}

impl Overhead {
    /// Returns whether every message is free.
    pub fn is_zero(&self) -> bool {
        self.sections.iter().all(|section| section.constant_ps == 0.0 && section.slope_ps == 0.0)
    }

    /// Returns the overhead with all its costs multiplied.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let scaled = |section: &Section| Section {
            constant_ps: section.constant_ps * factor,
            slope_ps: section.slope_ps * factor,
            ..*section
        };
        Self { sections: self.sections.iter().map(scaled).collect() }
    }

    /// Returns the cost of a message of this size. O(number of sections).
    #[inline]
    pub fn cost(&self, bytes: Bytes) -> SimDuration {
        // Asked for every message, and most have no cost.
        self.sections.first().map_or(SimDuration::ZERO, |first| self.cost_by_sections(first, bytes))
    }

    #[inline(never)]
    fn cost_by_sections(&self, first: &Section, bytes: Bytes) -> SimDuration {
        let section = self.sections.iter().rev().find(|section| section.above < bytes.get()).unwrap_or(first);
        SimDuration::from_picos_f64(section.constant_ps + section.slope_ps * bytes.get() as f64)
    }
}

/// Prints the sections by ascending threshold, with picoseconds: `0:1000000ps:0ps`. No section prints `0:0ps:0ps`.
impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sections.is_empty() {
            return f.write_str("0:0ps:0ps");
        }
        for (index, Section { above, constant_ps, slope_ps }) in self.sections.iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            write!(f, "{separator}{above}:{constant_ps}ps:{slope_ps}ps")?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Overhead {
    type Err = OverheadError;

    fn from_str(text: &str) -> Result<Self, OverheadError> {
        if !text.contains(':') {
            return Ok(Self {
                sections: vec![Section { above: 0, constant_ps: picos(text)?, slope_ps: 0.0 }],
            });
        }
        let mut sections = text.split(';').map(section).collect::<Result<Vec<_>, _>>()?;
        sections.sort_by_key(|section| section.above);
        match sections.windows(2).find(|pair| pair[0].above == pair[1].above) {
            Some(pair) => Err(OverheadError::DuplicateThreshold(pair[0].above)),
            None => Ok(Self { sections }),
        }
    }
}

fn section(text: &str) -> Result<Section, OverheadError> {
    let fields: Vec<&str> = text.split(':').map(str::trim).collect();
    let [above, constant, slope] = fields[..] else { return Err(OverheadError::Fields(text.to_owned())) };
    let above = above.parse().map_err(|_| OverheadError::Size(above.to_owned()))?;
    Ok(Section { above, constant_ps: picos(constant)?, slope_ps: picos(slope)? })
}

fn picos(text: &str) -> Result<f64, OverheadError> {
    const UNITS: [(&str, f64); 7] = [
        ("ms", 1e9),
        ("us", 1e6),
        ("\u{b5}s", 1e6),
        ("\u{3bc}s", 1e6),
        ("ns", 1e3),
        ("ps", 1.0),
        ("s", 1e12),
    ];
    let (number, unit) = UNITS
        .iter()
        .find_map(|&(suffix, picos)| Some((text.strip_suffix(suffix)?, picos)))
        .unwrap_or((text, 1e12));
    let value: f64 = number.trim().parse().map_err(|_| OverheadError::Time(text.to_owned()))?;
    if (0.0..1e18).contains(&value) && value * unit < 1e18 {
        Ok(value * unit)
    } else {
        Err(OverheadError::Time(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_section_is_free_and_sections_sort() {
        assert_eq!(Overhead::default().cost(Bytes::new(5)), SimDuration::ZERO);
        let overhead: Overhead = "100:2:0;0:1:0".parse().unwrap();
        assert_eq!(overhead.cost(Bytes::ZERO).as_secs_f64(), 1.0);
        assert_eq!(overhead.cost(Bytes::new(101)).as_secs_f64(), 2.0);
        assert!(!overhead.is_zero());
        assert!("0:0:0".parse::<Overhead>().unwrap().is_zero());
        assert_eq!(overhead.to_string().parse(), Ok(overhead));
        assert_eq!(Overhead::default().to_string(), "0:0ps:0ps");
    }

    #[test]
    fn errors_name_their_operand() {
        assert_eq!(
            "1.5 us".parse::<Overhead>().unwrap().cost(Bytes::new(9)),
            SimDuration::from_picos(1_500_000)
        );
        assert_eq!("fast".parse::<Overhead>(), Err(OverheadError::Time("fast".into())));
        assert_eq!("x:1:2".parse::<Overhead>(), Err(OverheadError::Size("x".into())));
        assert_eq!("0:-1:2".parse::<Overhead>(), Err(OverheadError::Time("-1".into())));
        assert_eq!("0:1:2;0:1:2".parse::<Overhead>(), Err(OverheadError::DuplicateThreshold(0)));
        assert_eq!("0:1:2:3".parse::<Overhead>(), Err(OverheadError::Fields("0:1:2:3".into())));
    }
}
