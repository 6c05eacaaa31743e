//! Global quiescence over all members: none can run and no frame is under way.

use super::frame::Report;
use super::quiescence::Verdict;

/// The last report of each member that had nothing to do, kept by member 0.
///
/// A member reports how many counted frames it has sent to each other member, and received from each (the vector
/// counters of Mattern 1987). Where, by the last reports, every pair agrees, the run is quiescent, although the
/// reports are of different moments: frames between two members keep their order, so that each frame which a member
/// has received when it reported was sent before its sender reported, and all of those have been received. The first
/// member to get something to do after its report would have to receive a frame that was sent after a report, by a
/// member that had got something to do before: there is no first one.
pub(crate) struct Census {
    reports: Vec<Option<Report>>,
    changed: bool,
}

impl Census {
    pub(crate) fn new(members: usize) -> Self {
        Self { reports: vec![None; members], changed: false }
    }

    pub(crate) fn file(&mut self, member: usize, report: Report) {
        self.reports[member] = Some(report);
        self.changed = true;
    }

    /// Returns a verdict if the run is quiescent and something was reported since the last call.
    pub(crate) fn verdict(&mut self) -> Option<Verdict> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let reports: Vec<&Report> = self.reports.iter().map(Option::as_ref).collect::<Option<_>>()?;
        let all_received = reports.iter().enumerate().all(|(from, sender)| {
            reports.iter().zip(&sender.sent).all(|(receiver, &sent)| receiver.received[from] == sent)
        });
        if !all_received {
            return None;
        }
        let candidate = reports.iter().filter_map(|report| report.candidate).min();
        let cutoff = reports.iter().map(|report| report.cutoff).min().unwrap_or_default();
        Some(Verdict::new(candidate, cutoff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rank, SimTime};

    fn report(sent: [u64; 3], received: [u64; 3]) -> Report {
        Report { sent: sent.into(), received: received.into(), candidate: None, cutoff: SimTime::MAX }
    }

    #[test]
    fn equal_sums_of_old_reports_are_not_quiescence() {
        let mut census = Census::new(3);
        // Member 0 reports before it hears of member 1, and sends to member 2 afterwards: the sums are equal.
        census.file(0, report([0; 3], [0; 3]));
        census.file(1, report([1, 0, 0], [0; 3]));
        census.file(2, report([0; 3], [1, 0, 0]));
        assert_eq!(census.verdict(), None);
        census.file(0, report([0, 0, 1], [0, 1, 0]));
        assert_eq!(census.verdict(), Some(Verdict::Stop));
        assert_eq!(census.verdict(), None, "nothing new was reported");
    }

    #[test]
    fn the_earliest_event_of_all_members_is_committed_unless_a_failure_lies_before_it() {
        let at = SimTime::from_picos;
        let mut census = Census::new(3);
        let with = |candidate, cutoff| Report { candidate, cutoff, ..report([0; 3], [0; 3]) };
        census.file(0, with(Some((at(7), Rank::new(1))), SimTime::MAX));
        census.file(1, with(Some((at(5), Rank::new(4))), SimTime::MAX));
        census.file(2, with(None, at(5)));
        assert_eq!(census.verdict(), Some(Verdict::Commit(Rank::new(4))));
        census.file(2, with(None, at(4)));
        assert_eq!(census.verdict(), Some(Verdict::Stop));
    }
}
