//! The gateway of a member to the other members of its cluster, in a run of the free-running engine.

use std::time::{Duration, Instant};

use super::frame::{Frame, Report, RunSummary};
use super::partition::MemberPartition;
use super::quiescence::{Decision, Quiescent};
use super::run_ahead::LowerBounds;
use super::termination::TerminationDetector;
use crate::cluster::backoff::Backoff;
use crate::cluster::{Cluster, ClusterError, ReceivedMessage, RunParameters, encoding};
use crate::{LpId, Progress, SimTime};

/// Period at which the other members send their progress to member 0.
const PROGRESS_PERIOD: Duration = Duration::from_millis(200);

/// An arrival from another member for a worker of this one.
pub(crate) enum Arrival {
    /// Encoded tokens.
    Tokens { worker: usize, packets: Vec<u8> },
    /// The conditional event of this process is committed.
    Commit(LpId),
    /// The run is over.
    Stop,
}

/// The gateway through which the first worker of a member communicates with the other members, on behalf of all workers.
/// The protocol is described in the README beside this file.
pub(crate) struct ClusterGateway<'a> {
    cluster: &'a mut Cluster,
    lower_bounds: &'a LowerBounds,
    partition: MemberPartition,
    parameters: RunParameters,
    progress: &'a Progress,
    /// Steps and time reached of each member by its last report, at member 0; elsewhere only the own entry is used, for the
    /// progress sent last.
    progress_of: Vec<(u64, SimTime)>,
    progress_sent_at: Instant,
    /// Number of counted frames to each member.
    sent: Vec<u64>,
    /// Number of counted frames from each member.
    received: Vec<u64>,
    /// Report that was sent last.
    reported: Option<Report>,
    /// Termination detector over the reports of all members; used at member 0.
    detector: TerminationDetector,
    /// Lower bound that each other member waits for, if it has requested one.
    requested_by: Vec<Option<SimTime>>,
    /// Lower bound that was requested of each other member and has not been reached yet.
    requested: Vec<Option<SimTime>>,
    sent_cutoff: SimTime,
    unread: Option<ReceivedMessage>,
    /// True if a message has arrived since the last call of `take_has_arrivals`.
    has_arrivals: bool,
    /// Summaries of the members, at member 0; elsewhere the summary of all, in the entry of member 0.
    summaries: Vec<Option<RunSummary>>,
    error: Option<ClusterError>,
}

impl<'a> ClusterGateway<'a> {
    /// Begins a run.
    pub(crate) fn new(
        cluster: &'a mut Cluster,
        floors: &'a LowerBounds,
        share: MemberPartition,
        terms: RunParameters,
        progress: &'a Progress,
    ) -> Self {
        let members = cluster.members();
        cluster.begin();
        let transport = cluster.transport();
        let frame = Frame::Parameters(terms).to_bytes();
        transport.others().for_each(|member| transport.enqueue(member, &frame));
        Self {
            cluster,
            lower_bounds: floors,
            partition: share,
            parameters: terms,
            progress,
            progress_of: vec![(0, SimTime::ZERO); members],
            progress_sent_at: Instant::now(),
            sent: vec![0; members],
            received: vec![0; members],
            reported: None,
            detector: TerminationDetector::new(members),
            requested_by: vec![None; members],
            requested: vec![None; members],
            sent_cutoff: SimTime::MAX,
            unread: None,
            has_arrivals: false,
            summaries: vec![None; members],
            error: None,
        }
    }

    fn me(&self) -> usize {
        self.cluster.member()
    }

    /// Sends a counted frame.
    pub(crate) fn send(&mut self, member: usize, frame: &[u8]) {
        self.sent[member] += 1;
        self.cluster.transport().enqueue(member, frame);
    }

    fn send_uncounted(&mut self, member: usize, frame: &Frame) {
        self.cluster.transport().enqueue(member, &frame.to_bytes());
    }

    fn broadcast(&mut self, frame: &Frame) {
        self.cluster.transport().others().for_each(|member| self.send_uncounted(member, frame));
    }

    /// Returns true if frames have arrived that are not read yet.
    pub(crate) fn has_unread(&mut self) -> bool {
        self.unread.is_some() || self.cluster.transport().has_incoming()
    }

    /// Returns true if a message has arrived since the last call: then more may follow soon.
    pub(crate) fn take_has_arrivals(&mut self) -> bool {
        std::mem::take(&mut self.has_arrivals)
    }

    /// Returns the number of bytes that wait for credit \[B\].
    pub(crate) fn backlog(&mut self) -> usize {
        self.cluster.transport().backlog()
    }

    /// Sends queued frames, receives messages, and returns the first arrival for a worker.
    pub(crate) fn poll(&mut self) -> Option<Arrival> {
        if !self.has_unread() {
            self.exchange();
        }
        loop {
            let Some(mut delivery) = self.unread.take().or_else(|| self.next_message()) else {
                return self.check_members();
            };
            let ReceivedMessage { from, lower_bound, .. } = delivery;
            while let Some(frame) = delivery.next_frame() {
                let mut rest = frame;
                let frame = encoding::take(&mut rest);
                if let Some(arrival) = self.handle(from, lower_bound, frame, rest) {
                    self.unread = Some(delivery);
                    return Some(arrival);
                }
            }
        }
    }

    fn exchange(&mut self) {
        let cutoff = self.lower_bounds.cutoff();
        if cutoff < self.sent_cutoff {
            self.sent_cutoff = cutoff;
            self.broadcast(&Frame::Cutoff(cutoff));
        }
        if let Some(wanted) = self.lower_bounds.take_wanted_bound() {
            self.request_bounds(wanted);
        }
        if self.me() != 0 && self.progress_sent_at.elapsed() >= PROGRESS_PERIOD {
            self.send_progress();
        }
        let floor = self.lower_bounds.least_clock();
        let transport = self.cluster.transport();
        for (member, asked) in self.requested_by.iter_mut().enumerate() {
            if asked.take_if(|wanted| *wanted <= floor).is_some() {
                transport.force_header(member);
            }
        }
        transport.exchange(floor);
    }

    /// Sends this member's progress to member 0 if it has changed.
    fn send_progress(&mut self) {
        self.progress_sent_at = Instant::now();
        let (me, done) = (self.me(), (self.progress.steps(), self.progress.reached()));
        if std::mem::replace(&mut self.progress_of[me], done) != done {
            self.send_uncounted(0, &Frame::Progress(done.0, done.1));
        }
    }

    /// Requests a lower bound from the members that seem to be behind it.
    fn request_bounds(&mut self, wanted: SimTime) {
        for member in self.cluster.transport().others() {
            let asked = self.requested[member].is_some_and(|asked| asked <= wanted);
            if self.lower_bounds.member_bound(member) < wanted && !asked {
                self.requested[member] = Some(wanted);
                self.send_uncounted(member, &Frame::RequestBound(wanted));
            }
        }
    }

    fn next_message(&mut self) -> Option<ReceivedMessage> {
        let delivery = self.cluster.transport().next_message()?;
        let ReceivedMessage { from, lower_bound, .. } = delivery;
        self.has_arrivals = true;
        self.lower_bounds.update_member(from, lower_bound);
        self.requested[from].take_if(|wanted| *wanted <= lower_bound);
        Some(delivery)
    }

    /// Handles a frame, and the bytes that follow it.
    fn handle(&mut self, from: usize, floor: SimTime, frame: Option<Frame>, rest: &[u8]) -> Option<Arrival> {
        match frame {
            Some(Frame::Parameters(theirs)) if theirs == self.parameters => {}
            Some(Frame::Parameters(theirs)) => {
                let error = ClusterError::Mismatch { member: from, theirs, ours: self.parameters };
                self.error.get_or_insert(error);
                self.cluster.fail(None);
                return Some(Arrival::Stop);
            }
            Some(Frame::Tokens { worker }) => {
                self.received[from] += 1;
                self.lower_bounds.lower(worker, floor);
                return Some(Arrival::Tokens { worker, packets: rest.to_vec() });
            }
            Some(Frame::Commit(lp)) => {
                self.received[from] += 1;
                return Some(Arrival::Commit(lp));
            }
            Some(Frame::Idle(report)) => self.detector.record(from, report),
            Some(Frame::Cutoff(at)) => self.lower_bounds.lower_cutoff(at),
            Some(Frame::RequestBound(wanted)) => self.requested_by[from] = Some(wanted),
            Some(Frame::Progress(steps, reached)) => {
                self.progress_of[from] = (steps, reached);
                let steps = self.progress_of.iter().map(|(steps, _)| steps).sum();
                self.progress.publish_other_members(steps, reached);
            }
            Some(Frame::Stop) => return Some(Arrival::Stop),
            Some(Frame::Summary(summary)) => self.summaries[from] = Some(summary),
            None => panic!("member {from} sends a frame that is none: it runs another version"),
        }
        None
    }

    /// Stops the run if a member has left the cluster.
    fn check_members(&mut self) -> Option<Arrival> {
        if self.error.is_none() {
            self.error = self.cluster.check().err();
        }
        self.error.is_some().then_some(Arrival::Stop)
    }

    /// Reports that no worker of this member can run; returns, at member 0, the decision if the run is quiescent.
    pub(crate) fn report(&mut self, Quiescent(candidate): Quiescent) -> Option<Decision> {
        let cutoff = self.lower_bounds.cutoff();
        let is_known = self.reported.as_ref().is_some_and(|report| {
            report.candidate == candidate
                && report.cutoff == cutoff
                && report.sent == self.sent
                && report.received == self.received
        });
        if !is_known {
            let report =
                Report { sent: self.sent.clone(), received: self.received.clone(), candidate, cutoff };
            self.reported = Some(report.clone());
            match self.me() {
                0 => self.detector.record(0, report),
                _ => self.send_uncounted(0, &Frame::Idle(report)),
            }
        }
        if self.me() == 0 { self.detector.decide() } else { None }
    }

    /// Sends the commit of a conditional event if its process belongs to another member; returns true if so.
    pub(crate) fn commit(&mut self, lp: LpId) -> bool {
        let (member, _) = self.partition.locate_worker(self.partition.global.worker(lp));
        let is_remote = member != self.me();
        if is_remote {
            self.send(member, &Frame::Commit(lp).to_bytes());
        } else {
            // A local commit is not a counted frame. The next report may equal the last one, for another event of the process
            // at the same instant, and must still be recorded.
            self.reported = None;
        }
        is_remote
    }

    /// Ends the run for all members.
    pub(crate) fn stop(&mut self) {
        self.broadcast(&Frame::Stop);
    }

    /// Fails the run for all members because this one received data that it cannot decode.
    pub(crate) fn fail_undecodable(self) -> ClusterError {
        self.cluster.fail_undecodable()
    }

    /// Exchanges the summaries of all members; returns their sum.
    pub(crate) fn finish(mut self, summary: RunSummary) -> Result<RunSummary, ClusterError> {
        // A partial result must not be merged with those of other members.
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let all = if self.me() == 0 { self.gather_summaries(summary)? } else { self.send_summary(summary)? };
        self.cluster.complete();
        Ok(all)
    }

    fn gather_summaries(&mut self, summary: RunSummary) -> Result<RunSummary, ClusterError> {
        self.summaries[0] = Some(summary);
        self.poll_until(|gateway| gateway.summaries.iter().all(Option::is_some))?;
        let mut all = RunSummary::default();
        for part in self.summaries.iter_mut().filter_map(Option::take) {
            all.merge(part);
        }
        self.broadcast(&Frame::Summary(all.clone()));
        self.poll_until(|gateway| !gateway.cluster.transport().has_outgoing())?;
        Ok(all)
    }

    fn send_summary(&mut self, summary: RunSummary) -> Result<RunSummary, ClusterError> {
        self.send_progress();
        self.send_uncounted(0, &Frame::Summary(summary));
        self.poll_until(|gateway| gateway.summaries[0].is_some())?;
        Ok(self.summaries[0].take().unwrap_or_default())
    }

    /// Polls until a condition holds that depends on other members.
    fn poll_until(&mut self, done: impl Fn(&mut Self) -> bool) -> Result<(), ClusterError> {
        let mut backoff = Backoff::new();
        while !done(self) {
            // Arrivals are dropped: the run is over.
            while self.poll().is_some_and(|arrival| !matches!(arrival, Arrival::Stop)) {}
            if !done(self)
                && let Some(error) = self.error.take()
            {
                return Err(error);
            }
            backoff.pause();
        }
        Ok(())
    }
}
