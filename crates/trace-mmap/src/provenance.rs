//! Where a trace comes from.

/// What an amount of computation counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counted {
    /// Instructions retired in user mode, one to a flop.
    Instructions,
    /// Processor time of the thread.
    CpuTime {
        /// What a second of it stands for \[flop/s\]: finite and above 0.
        rate: f64,
    },
}

/// How a trace was acquired, as its archive says.
///
/// ```
/// use trace_mmap::{ConvertOptions, Counted, LoadOptions, Provenance, Trace, convert};
/// let dir = tempfile::tempdir()?;
/// let (text, archive) = (dir.path().join("trace.txt"), dir.path().join("trace.pdt"));
/// std::fs::write(&text, "0 init\n0 compute 5000000\n")?;
/// let provenance = Provenance { counted: Some(Counted::CpuTime { rate: 1e9 }), ..Provenance::default() };
/// convert(&text, &archive, &ConvertOptions { provenance: Some(provenance), ..ConvertOptions::default() })?;
/// assert_eq!(Trace::load(&archive, &LoadOptions::default())?.provenance(), provenance);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Provenance {
    /// What amounts of computation count; `None` where that is not known, as of text.
    pub counted: Option<Counted>,
    /// Ranks whose recording ended before they left MPI.
    pub ended_early: u32,
    /// Actions that were recorded and are not in the trace, because others were not recorded on which they wait.
    pub cut_actions: u64,
}

const UNKNOWN: u32 = 0;
const INSTRUCTIONS: u32 = 1;
const CPU_TIME: u32 = 2;

impl Provenance {
    /// Packs what the header of an archive holds.
    pub(crate) fn to_words(self) -> [u64; 3] {
        let (kind, rate) = match self.counted {
            None => (UNKNOWN, 0.0),
            Some(Counted::Instructions) => (INSTRUCTIONS, 0.0),
            Some(Counted::CpuTime { rate }) => (CPU_TIME, rate),
        };
        [u64::from(kind) | u64::from(self.ended_early) << 32, rate.to_bits(), self.cut_actions]
    }

    /// Unpacks it; `None` where it is nothing that was packed.
    pub(crate) fn from_words([head, rate, cut_actions]: [u64; 3]) -> Option<Self> {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        let counted = match head as u32 {
            UNKNOWN if rate == 0 => None,
            INSTRUCTIONS if rate == 0 => Some(Counted::Instructions),
            CPU_TIME if is_rate(f64::from_bits(rate)) => {
                Some(Counted::CpuTime { rate: f64::from_bits(rate) })
            }
            _ => return None,
        };
        Some(Self { counted, ended_early: (head >> 32) as u32, cut_actions })
    }
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Instructions => f.write_str("instructions in user mode, as flops"),
            Self::CpuTime { rate } => write!(f, "processor time at {rate} flops per second"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_nothing_else() {
        let rate = 2.5e9;
        for counted in [None, Some(Counted::Instructions), Some(Counted::CpuTime { rate })] {
            let provenance = Provenance { counted, ended_early: u32::MAX, cut_actions: 7 };
            assert_eq!(Provenance::from_words(provenance.to_words()), Some(provenance));
        }
        let bits = f64::to_bits;
        for words in
            [[3, 0, 0], [0, 1, 0], [1, bits(1e9), 0], [2, 0, 0], [2, bits(-1.0), 0], [2, bits(f64::NAN), 0]]
        {
            assert_eq!(Provenance::from_words(words), None, "{words:?}");
        }
    }
}
