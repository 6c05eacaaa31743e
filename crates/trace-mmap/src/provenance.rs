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
    /// Time of computations as another program measured or prescribed it, such as the states of Paraver, or the computations of GOAL.
    Time {
        /// Flops per second of that time \[flop/s\], finite and positive.
        rate: f64,
    },
}

impl WorkMetric {
    /// Returns the rate at which times became amounts \[flop/s\]; `None` if amounts are no times.
    pub fn rate(self) -> Option<f64> {
        match self {
            Self::Instructions => None,
            Self::CpuTime { rate } | Self::Time { rate } => Some(rate),
        }
    }
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
/// trace_tools::convert(&text, &archive, &ConvertOptions { provenance: Some(provenance.clone()), ..ConvertOptions::default() })?;
/// assert_eq!(Trace::load(&archive)?.provenance(), provenance);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct Provenance {
    /// The quantity that amounts of computation measure; `None` if unknown, as for text that does not say it.
    pub work_metric: Option<WorkMetric>,
    /// Number of ranks whose recording ended before `MPI_Finalize`.
    pub ended_early: u32,
    /// Number of recorded actions that were removed because they depend on actions that were not recorded.
    pub cut_actions: u64,
    /// True if no rank could proceed any more when the recording ended: the calls in progress would never have completed.
    pub is_deadlocked: bool,
    /// What else a user of the trace should know about its recording.
    pub notes: Vec<RecordingNote>,
}

/// Kind of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum NoteKind {
    /// The ranks were in a call when their recording ended.
    CallInProgress,
    /// Several threads called MPI.
    Threads,
    /// The ranks computed for less than 1 % of the time that passed between calls.
    Idle,
    /// Calls returned an error and are not recorded.
    FailedCalls,
    /// Calls started or completed requests that no recorded call has made.
    UnknownRequests,
}

/// A note about the recording of some ranks.
#[derive(Clone, Debug, PartialEq, Eq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct RecordingNote {
    /// Kind of the note.
    pub kind: NoteKind,
    /// Function of the calls, or of the first one of each rank; empty if the note is about none.
    pub function: String,
    /// Number of ranks.
    pub ranks: u32,
    /// The first of them.
    pub first: u32,
    /// Number of calls.
    pub calls: u64,
}

/// Number of notes beyond which functions are named without their arguments.
const MAX_NOTES: usize = 256;

impl Provenance {
    /// Adds a note about a rank, and its calls of a function, to those of the ranks before it.
    pub fn add_note(&mut self, kind: NoteKind, rank: u32, function: &str, calls: u64) {
        let function = match function.split_once('(') {
            Some((name, _)) if self.notes.len() >= MAX_NOTES => name,
            _ => function,
        };
        match self.notes.iter_mut().find(|note| note.kind == kind && note.function == function) {
            Some(note) => {
                note.ranks += 1;
                note.calls += calls;
            }
            None => self.notes.push(RecordingNote {
                kind,
                function: function.to_owned(),
                ranks: 1,
                first: rank,
                calls,
            }),
        }
    }

    /// Returns whether the tracer of this program has recorded the trace as the program ran.
    pub fn is_recorded(&self) -> bool {
        matches!(self.work_metric, Some(WorkMetric::Instructions | WorkMetric::CpuTime { .. }))
    }

    /// Returns the notes of a kind.
    pub fn notes_of(&self, kind: NoteKind) -> impl Iterator<Item = &RecordingNote> {
        self.notes.iter().filter(move |note| note.kind == kind)
    }

    /// Returns the provenance of a part of the trace, which need not end as the trace does.
    pub(crate) fn of_part(mut self) -> Self {
        self.is_deadlocked = false;
        self
    }

    /// Returns whether the rate of times, if there is one, is finite and positive, as recorders write it.
    pub(crate) fn is_valid(&self) -> bool {
        let rate = self.work_metric.and_then(WorkMetric::rate);
        rate.is_none_or(|rate| rate.is_finite() && rate > 0.0)
    }
}

impl std::fmt::Display for WorkMetric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Instructions => f.write_str("instructions in user mode, as flops"),
            Self::CpuTime { rate } => write!(f, "processor time at {rate} flops per second"),
            Self::Time { rate } => write!(f, "times at {rate} flops per second"),
        }
    }
}

impl std::fmt::Display for RecordingNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, function, ranks, first, calls } = self;
        match ranks {
            1 => write!(f, "rank {first}")?,
            _ => write!(f, "{ranks} ranks, the first is rank {first},")?,
        }
        let (was, its) = if *ranks == 1 { ("was", "its") } else { ("were", "their") };
        let calls = if *calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
        match kind {
            NoteKind::CallInProgress => write!(f, " {was} in {function} when {its} recording ended"),
            NoteKind::Threads => f.write_str(
                " called MPI from several threads, which are recorded as if they were one, in the order of their calls: a replay may \
                 take longer than the program, or deadlock where the program does not",
            ),
            NoteKind::Idle => f.write_str(
                " computed for less than 1 % of the time that elapsed outside of MPI: sleeping, and waiting for devices or other \
                 programs, takes no processor time and so no time in a replay; record with --with-times and compare by `validate`, or \
                 add `sleep` actions to the text of `trace dump`",
            ),
            NoteKind::FailedCalls => write!(
                f,
                " made {calls} that returned an error and did nothing, the first of {function}: an argument such as a rank, a tag or a \
                 count was refused; they are not recorded"
            ),
            NoteKind::UnknownRequests => write!(
                f,
                " made {calls} on requests that no recorded call had made, the first of {function}: what they start takes no time in a \
                 replay"
            ),
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
            assert!(!is_valid(Some(WorkMetric::Time { rate })), "{rate}");
        }
    }

    #[test]
    fn notes_are_added_up_by_function() {
        let mut provenance = Provenance::default();
        for rank in 0..1000 {
            provenance.add_note(
                NoteKind::CallInProgress,
                rank,
                &format!("MPI_Recv(source {rank}, tag 1)"),
                1,
            );
            provenance.add_note(NoteKind::FailedCalls, rank, "MPI_Send", 2);
        }
        assert_eq!(provenance.notes.len(), MAX_NOTES + 1);
        let first = "rank 0 was in MPI_Recv(source 0, tag 1) when its recording ended";
        assert_eq!(provenance.notes[0].to_string(), first);
        let rest = "745 ranks, the first is rank 255, were in MPI_Recv when their recording ended";
        assert_eq!(provenance.notes.last().unwrap().to_string(), rest);
        let failed = provenance.notes_of(NoteKind::FailedCalls).next().unwrap();
        assert!(failed.to_string().contains("made 2000 calls that returned an error"), "{failed}");
    }
}
