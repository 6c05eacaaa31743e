//! Provenance of a trace: how it was recorded.

/// The quantity that amounts of computation measure.
#[derive(Clone, Copy, Debug, PartialEq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
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
/// use trace_mmap::{ConvertOptions, Provenance, Trace, WorkMetric};
/// let dir = tempfile::tempdir()?;
/// let (text, archive) = (dir.path().join("trace.txt"), dir.path().join("trace.pdt"));
/// std::fs::write(&text, "0 init\n0 compute 5000000\n")?;
/// let work_metric = Some(WorkMetric::CpuTime { rate: 1e9 });
/// let provenance = Provenance { work_metric, ..Provenance::default() };
/// trace_tools::convert(&text, &archive, &ConvertOptions { provenance: Some(provenance), ..ConvertOptions::default() })?;
/// assert_eq!(Trace::load(&archive)?.provenance(), provenance);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct Provenance {
    /// The quantity that amounts of computation measure; `None` if unknown, as for text.
    pub work_metric: Option<WorkMetric>,
    /// Number of ranks whose recording ended before `MPI_Finalize`.
    pub ended_early: u32,
    /// Number of recorded actions that were removed because they depend on actions that were not recorded.
    pub cut_actions: u64,
}

impl Provenance {
    /// Returns whether the rate of CPU time, if there is one, is finite and positive, as recorders write it.
    pub(crate) fn is_valid(&self) -> bool {
        !matches!(self.work_metric, Some(WorkMetric::CpuTime { rate }) if !(rate.is_finite() && rate > 0.0))
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
    fn rates_are_finite_and_positive() {
        let is_valid = |work_metric| Provenance { work_metric, ..Provenance::default() }.is_valid();
        assert!(is_valid(None) && is_valid(Some(WorkMetric::Instructions)));
        assert!(is_valid(Some(WorkMetric::CpuTime { rate: 2.5e9 })));
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(!is_valid(Some(WorkMetric::CpuTime { rate })), "{rate}");
        }
    }
}
