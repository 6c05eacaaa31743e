//! Termination detection over all members of a cluster: no process can run and no frame is in transit.

use super::frame::Report;
use super::quiescence::Decision;

/// Detects global quiescence at member 0 from the last report of each idle member.
///
/// A member reports how many counted frames it has sent to each other member, and received from each (the vector
/// counters of Mattern 1987). If the last reports agree for every pair, the run is quiescent, although the reports are of
/// different moments. Proof: frames between two members keep their order, so every frame that a member had received when
/// it reported was sent before its sender reported, and all of those have been received. The first member to become
/// active after its report would have to receive a frame that was sent after a report, by a member that had become active
/// before it; so there is no first one.
pub(crate) struct TerminationDetector {
    reports: Vec<Option<Report>>,
    changed: bool,
}

impl TerminationDetector {
    pub(crate) fn new(members: usize) -> Self {
        Self { reports: vec![None; members], changed: false }
    }

    pub(crate) fn record(&mut self, member: usize, report: Report) {
        self.reports[member] = Some(report);
        self.changed = true;
    }

    /// Returns a decision if the run is quiescent and a report has come since the last call.
    pub(crate) fn decide(&mut self) -> Option<Decision> {
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
        Some(Decision::new(candidate, cutoff))
    }
}

#[cfg(test)]
mod tests {
    use super::super::conditional_events::{Candidate, CandidateKind};
    use super::*;
    use crate::{LpId, SimTime};

    fn report(sent: [u64; 3], received: [u64; 3]) -> Report {
        Report { sent: sent.into(), received: received.into(), candidate: None, cutoff: SimTime::MAX }
    }

    #[test]
    fn equal_sums_of_old_reports_are_not_quiescence() {
        let mut detector = TerminationDetector::new(3);
        // Member 0 reports before it receives the frame of member 1, and sends to member 2 afterwards: the sums are equal.
        detector.record(0, report([0; 3], [0; 3]));
        detector.record(1, report([1, 0, 0], [0; 3]));
        detector.record(2, report([0; 3], [1, 0, 0]));
        assert_eq!(detector.decide(), None);
        detector.record(0, report([0, 0, 1], [0, 1, 0]));
        assert_eq!(detector.decide(), Some(Decision::Stop));
        assert_eq!(detector.decide(), None, "nothing new was reported");
    }

    #[test]
    fn the_earliest_event_of_all_members_is_committed_unless_a_failure_lies_before_it() {
        let at = SimTime::from_picos;
        let mut detector = TerminationDetector::new(3);
        let with = |candidate, cutoff| Report { candidate, cutoff, ..report([0; 3], [0; 3]) };
        let event =
            |time, lp| Some(Candidate { at: at(time), kind: CandidateKind::Conditional, lp: LpId::new(lp) });
        detector.record(0, with(event(7, 1), SimTime::MAX));
        detector.record(1, with(event(5, 4), SimTime::MAX));
        detector.record(2, with(None, at(5)));
        assert_eq!(detector.decide(), Some(Decision::Commit(LpId::new(4))));
        detector.record(2, with(None, at(4)));
        assert_eq!(detector.decide(), Some(Decision::Stop));
    }
}
