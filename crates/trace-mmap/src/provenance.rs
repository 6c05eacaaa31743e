//! Provenance of a trace: how it was recorded.

/// The quantity that amounts of computation measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WorkMetric {
    /// Instructions retired in user mode, each counted as one flop.
    Instructions,
    /// CPU time of the thread.
    CpuTime {
        /// Flops per second of CPU time \[flop/s\], finite and positive.
        rate: f64,
    },
}

/// Provenance of a trace, as stored in its archive.
///
/// ```
/// use trace_mmap::{ConvertOptions, LoadOptions, Provenance, Trace, WorkMetric, convert};
/// let dir = tempfile::tempdir()?;
/// let (text, archive) = (dir.path().join("trace.txt"), dir.path().join("trace.pdt"));
/// std::fs::write(&text, "0 init\n0 compute 5000000\n")?;
/// let work_metric = Some(WorkMetric::CpuTime { rate: 1e9 });
/// let provenance = Provenance { work_metric, ..Provenance::default() };
/// convert(&text, &archive, &ConvertOptions { provenance: Some(provenance), ..ConvertOptions::default() })?;
/// assert_eq!(Trace::load(&archive, &LoadOptions::default())?.provenance(), provenance);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Provenance {
    /// The quantity that amounts of computation measure; `None` if unknown, as for text.
    pub work_metric: Option<WorkMetric>,
    /// Number of ranks whose recording ended before `MPI_Finalize`.
    pub ended_early: u32,
    /// Number of recorded actions that were removed because they depend on actions that were not recorded.
    pub cut_actions: u64,
}

const UNKNOWN: u32 = 0;
const INSTRUCTIONS: u32 = 1;
const CPU_TIME: u32 = 2;

impl Provenance {
    /// Encodes the provenance for the header of an archive.
    pub(crate) fn to_words(self) -> [u64; 3] {
        let (kind, rate) = match self.work_metric {
            None => (UNKNOWN, 0.0),
            Some(WorkMetric::Instructions) => (INSTRUCTIONS, 0.0),
            Some(WorkMetric::CpuTime { rate }) => (CPU_TIME, rate),
        };
        [u64::from(kind) | u64::from(self.ended_early) << 32, rate.to_bits(), self.cut_actions]
    }

    /// Decodes a header; `None` if [`Self::to_words`] never writes such words.
    pub(crate) fn from_words([head, rate, cut_actions]: [u64; 3]) -> Option<Self> {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        let counted = match head as u32 {
            UNKNOWN if rate == 0 => None,
            INSTRUCTIONS if rate == 0 => Some(WorkMetric::Instructions),
            CPU_TIME if is_rate(f64::from_bits(rate)) => {
                Some(WorkMetric::CpuTime { rate: f64::from_bits(rate) })
            }
            _ => return None,
        };
        Some(Self { work_metric: counted, ended_early: (head >> 32) as u32, cut_actions })
    }
}

impl std::fmt::Display for WorkMetric {
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
    fn provenance_survives_encoding() {
        let rate = 2.5e9;
        for counted in [None, Some(WorkMetric::Instructions), Some(WorkMetric::CpuTime { rate })] {
            let provenance = Provenance { work_metric: counted, ended_early: u32::MAX, cut_actions: 7 };
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
