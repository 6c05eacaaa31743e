//! Warnings about traces that were acquired from a running program.

use trace_mmap::{NoteKind, Provenance};

/// Returns the reasons to doubt the recording of a trace, one sentence each.
pub(crate) fn warnings(provenance: &Provenance) -> Vec<String> {
    let Provenance { ended_early, cut_actions, .. } = *provenance;
    let early = (ended_early > 0).then(|| {
        format!(
            "the recording of {ended_early} rank(s) ended early: the trace ends where all ranks could still proceed, without {cut_actions} \
             action(s) that were recorded"
        )
    });
    let notes = provenance.notes.iter().filter(|note| note.kind != NoteKind::CallInProgress);
    early.into_iter().chain(notes.map(ToString::to_string)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_ended_early_are_warned_of() {
        assert_eq!(warnings(&Provenance::default()), [""; 0]);
        let killed = Provenance { ended_early: 2, cut_actions: 9, ..Provenance::default() };
        assert!(warnings(&killed)[0].contains("2 rank(s) ended early"));
    }
}
