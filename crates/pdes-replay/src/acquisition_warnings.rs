//! Warnings about traces that were acquired from a running program.

use trace_mmap::{NoteKind, Provenance, WorkMetric};

/// Plausible rates of a core \[instructions/s\].
const INSTRUCTION_RATES: std::ops::RangeInclusive<f64> = 1e8..=1e12;

/// Largest plausible ratio of the speed of a host and the nominal rate of the trace, either way.
const MAX_SPEED_RATIO: f64 = 100.0;

/// Returns the reasons to doubt a trace on hosts of speed `speed` \[flop/s\], one sentence each.
pub(crate) fn warnings(provenance: &Provenance, speed: f64) -> Vec<String> {
    let Provenance { work_metric: counted, ended_early, cut_actions, .. } = *provenance;
    let early = (ended_early > 0).then(|| {
        format!(
            "the recording of {ended_early} rank(s) ended early: the trace ends where all ranks could still proceed, without {cut_actions} \
             action(s) that were recorded"
        )
    });
    let notes = provenance.notes.iter().filter(|note| note.kind != NoteKind::CallInProgress);
    let speed = counted.and_then(|counted| implausible_speed(counted, speed));
    early.into_iter().chain(notes.map(ToString::to_string)).chain(speed).collect()
}

/// Returns the reason why the speed of the hosts is implausible for the unit in which the trace counts computation.
fn implausible_speed(counted: WorkMetric, speed: f64) -> Option<String> {
    let (is_plausible, hint) = match counted {
        WorkMetric::Instructions => (
            INSTRUCTION_RATES.contains(&speed),
            "the speed of a host is then its instructions per second, some 1e9 for a core".to_owned(),
        ),
        WorkMetric::CpuTime { rate } => (
            (rate / MAX_SPEED_RATIO..=rate * MAX_SPEED_RATIO).contains(&speed),
            format!("computations take {} times as long as when they were recorded", rate / speed),
        ),
    };
    (!is_plausible).then(|| {
        format!("the trace counts {counted}, and the host of rank 0 computes {speed:e} flop/s: {hint}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implausible_speeds_are_reported() {
        let trace = |counted| Provenance { work_metric: Some(counted), ..Provenance::default() };
        let [instructions, time] = [WorkMetric::Instructions, WorkMetric::CpuTime { rate: 1e9 }].map(trace);
        for fitting in [1e8, 1e9, 1e11] {
            assert_eq!(warnings(&instructions, fitting), [""; 0]);
            assert_eq!(warnings(&time, fitting), [""; 0]);
        }
        assert!(warnings(&instructions, 1.0)[0].contains("instructions per second"));
        assert!(warnings(&time, 1e6)[0].contains("computations take 1000 times as long"));
        assert_eq!(warnings(&Provenance::default(), 1.0), [""; 0], "nothing is known of text");
        let killed = Provenance { ended_early: 2, cut_actions: 9, ..Provenance::default() };
        assert!(warnings(&killed, 1e9)[0].contains("2 rank(s) ended early"));
    }
}
