//! The gateway of a member to the other members of its cluster, in a run of the free-running engine.

use std::time::{Duration, Instant};

use super::census::Census;
use super::frame::{Frame, Report, Tally};
use super::horizon::Floors;
use super::partition::Share;
use super::quiescence::{Quiet, Verdict};
use crate::cluster::patience::Patience;
use crate::cluster::{Cluster, ClusterError, Delivery, Terms};
use crate::{Progress, Rank, SimTime};

/// Period at which the other members send their progress to member 0.
const PROGRESS_PERIOD: Duration = Duration::from_millis(200);

/// An arrival from another member for a worker of this one.
pub(crate) enum Arrival {
    /// Encoded tokens.
    Tokens { worker: usize, packets: Vec<u8> },
    /// The conditional event of this process is committed.
    Commit(Rank),
    /// The run is over.
    Stop,
}

/// The gateway through which the first worker of a member communicates with the other members, on behalf of all workers.
/// The protocol is described in the README beside this file.
pub(crate) struct Gateway<'a> {
    cluster: &'a mut Cluster,
    floors: &'a Floors,
    share: Share,
    terms: Terms,
    progress: &'a Progress,
    /// Steps and time reached of each member by its last report, at member 0; elsewhere only the own entry is used, for the
    /// progress sent last.
    done: Vec<(u64, SimTime)>,
    told_progress: Instant,
    /// Number of counted frames to each member.
    sent: Vec<u64>,
    /// Number of counted frames from each member.
    received: Vec<u64>,
    /// Report that was sent last.
    reported: Option<Report>,
    /// Termination detector over the reports of all members; used at member 0.
    census: Census,
    /// Lower bound that each other member waits for, if it has requested one.
    asked_by: Vec<Option<SimTime>>,
    /// Lower bound that was requested of each other member and has not been reached yet.
    asked: Vec<Option<SimTime>>,
    told_cutoff: SimTime,
    delivery: Option<Delivery>,
    /// True if a message has arrived since the last call of `take_has_arrivals`.
    stirred: bool,
    /// Summaries of the members, at member 0; elsewhere the summary of all, in the entry of member 0.
    tallies: Vec<Option<Tally>>,
    error: Option<ClusterError>,
}

impl<'a> Gateway<'a> {
    /// Begins a run.
    pub(crate) fn new(
        cluster: &'a mut Cluster,
        floors: &'a Floors,
        share: Share,
        terms: Terms,
        progress: &'a Progress,
    ) -> Self {
        let members = cluster.members();
        cluster.begin();
        let mail = cluster.mail();
        let frame = Frame::Terms(terms).to_bytes();
        mail.others().for_each(|member| mail.post(member, &frame));
        Self {
            cluster,
            floors,
            share,
            terms,
            progress,
            done: vec![(0, SimTime::ZERO); members],
            told_progress: Instant::now(),
            sent: vec![0; members],
            received: vec![0; members],
            reported: None,
            census: Census::new(members),
            asked_by: vec![None; members],
            asked: vec![None; members],
            told_cutoff: SimTime::MAX,
            delivery: None,
            stirred: false,
            tallies: vec![None; members],
            error: None,
        }
    }

    fn me(&self) -> usize {
        self.cluster.member()
    }

    /// Sends a counted frame.
    pub(crate) fn send(&mut self, member: usize, frame: &[u8]) {
        self.sent[member] += 1;
        self.cluster.mail().post(member, frame);
    }

    fn tell(&mut self, member: usize, frame: &Frame<'_>) {
        self.cluster.mail().post(member, &frame.to_bytes());
    }

    fn tell_others(&mut self, frame: &Frame<'_>) {
        self.cluster.mail().others().for_each(|member| self.tell(member, frame));
    }

    /// Returns true if frames have arrived that are not read yet.
    pub(crate) fn is_reading(&mut self) -> bool {
        self.delivery.is_some() || self.cluster.mail().has_incoming()
    }

    /// Returns true if a message has arrived since the last call: then more may follow soon.
    pub(crate) fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.stirred)
    }

    /// Returns the number of bytes that wait for credit \[B\].
    pub(crate) fn backlog(&mut self) -> usize {
        self.cluster.mail().backlog()
    }

    /// Sends queued frames, receives messages, and returns the first arrival for a worker.
    pub(crate) fn poll(&mut self) -> Option<Arrival> {
        if !self.is_reading() {
            self.exchange();
        }
        loop {
            let Some(mut delivery) = self.delivery.take().or_else(|| self.open_next()) else {
                return self.check();
            };
            let Delivery { from, floor, .. } = delivery;
            while let Some(frame) = delivery.next_frame() {
                if let Some(arrival) = self.act(from, floor, Frame::read(frame)) {
                    self.delivery = Some(delivery);
                    return Some(arrival);
                }
            }
        }
    }

    fn exchange(&mut self) {
        let cutoff = self.floors.cutoff();
        if cutoff < self.told_cutoff {
            self.told_cutoff = cutoff;
            self.tell_others(&Frame::Cutoff(cutoff));
        }
        if let Some(wanted) = self.floors.take_wanted() {
            self.ask(wanted);
        }
        if self.me() != 0 && self.told_progress.elapsed() >= PROGRESS_PERIOD {
            self.tell_progress();
        }
        let floor = self.floors.least();
        let mail = self.cluster.mail();
        for (member, asked) in self.asked_by.iter_mut().enumerate() {
            if asked.take_if(|wanted| *wanted <= floor).is_some() {
                mail.nudge(member);
            }
        }
        mail.exchange(floor);
    }

    /// Sends this member's progress to member 0 if it has changed.
    fn tell_progress(&mut self) {
        self.told_progress = Instant::now();
        let (me, done) = (self.me(), (self.progress.steps(), self.progress.reached()));
        if std::mem::replace(&mut self.done[me], done) != done {
            self.tell(0, &Frame::Progress(done.0, done.1));
        }
    }

    /// Requests a lower bound from the members that seem to be behind it.
    fn ask(&mut self, wanted: SimTime) {
        for member in self.cluster.mail().others() {
            let asked = self.asked[member].is_some_and(|asked| asked <= wanted);
            if self.floors.view(member) < wanted && !asked {
                self.asked[member] = Some(wanted);
                self.tell(member, &Frame::Ask(wanted));
            }
        }
    }

    fn open_next(&mut self) -> Option<Delivery> {
        let delivery = self.cluster.mail().next()?;
        let Delivery { from, floor, .. } = delivery;
        self.stirred = true;
        self.floors.see(from, floor);
        self.asked[from].take_if(|wanted| *wanted <= floor);
        Some(delivery)
    }

    fn act(&mut self, from: usize, floor: SimTime, frame: Option<Frame<'_>>) -> Option<Arrival> {
        match frame {
            Some(Frame::Terms(theirs)) if theirs == self.terms => {}
            Some(Frame::Terms(theirs)) => {
                let error = ClusterError::Mismatch { member: from, theirs, ours: self.terms };
                self.error.get_or_insert(error);
                self.cluster.fail(None);
                return Some(Arrival::Stop);
            }
            Some(Frame::Tokens { worker, packets }) => {
                self.received[from] += 1;
                let worker = worker as usize;
                self.floors.lower(worker, floor);
                return Some(Arrival::Tokens { worker, packets: packets.to_vec() });
            }
            Some(Frame::Commit(rank)) => {
                self.received[from] += 1;
                return Some(Arrival::Commit(rank));
            }
            Some(Frame::Idle(report)) => self.census.file(from, report),
            Some(Frame::Cutoff(at)) => self.floors.lower_cutoff(at),
            Some(Frame::Ask(wanted)) => self.asked_by[from] = Some(wanted),
            Some(Frame::Progress(steps, reached)) => {
                self.done[from] = (steps, reached);
                let steps = self.done.iter().map(|(steps, _)| steps).sum();
                self.progress.publish_elsewhere(steps, reached);
            }
            Some(Frame::Stop) => return Some(Arrival::Stop),
            Some(Frame::Tally(tally)) => self.tallies[from] = Some(tally),
            None => panic!("member {from} sends a frame that is none: it runs another version"),
        }
        None
    }

    /// Stops the run if a member has left the cluster.
    fn check(&mut self) -> Option<Arrival> {
        if self.error.is_none() {
            self.error = self.cluster.check().err();
        }
        self.error.is_some().then_some(Arrival::Stop)
    }

    /// Reports that no worker of this member can run; returns, at member 0, the decision if the run is quiescent.
    pub(crate) fn report(&mut self, Quiet(candidate): Quiet) -> Option<Verdict> {
        let cutoff = self.floors.cutoff();
        let known = self.reported.as_ref().is_some_and(|report| {
            report.candidate == candidate
                && report.cutoff == cutoff
                && report.sent == self.sent
                && report.received == self.received
        });
        if !known {
            let report =
                Report { sent: self.sent.clone(), received: self.received.clone(), candidate, cutoff };
            self.reported = Some(report.clone());
            match self.me() {
                0 => self.census.file(0, report),
                _ => self.tell(0, &Frame::Idle(report)),
            }
        }
        if self.me() == 0 { self.census.verdict() } else { None }
    }

    /// Sends the commit of a conditional event if its process belongs to another member; returns true if so.
    pub(crate) fn commit(&mut self, rank: Rank) -> bool {
        let (member, _) = self.share.seat(self.share.whole.worker(rank));
        let abroad = member != self.me();
        if abroad {
            self.send(member, &Frame::Commit(rank).to_bytes());
        } else {
            // A local commit is not a counted frame. The next report may equal the last one, for another event of the process
            // at the same instant, and must still be recorded.
            self.reported = None;
        }
        abroad
    }

    /// Ends the run for all members.
    pub(crate) fn stop(&mut self) {
        self.tell_others(&Frame::Stop);
    }

    /// Fails the run for all members because this one received data that it cannot decode.
    pub(crate) fn refuse(self) -> ClusterError {
        self.cluster.fail(None);
        ClusterError::Garbled { receiver: self.me() }
    }

    /// Exchanges the summaries of all members; returns their sum.
    pub(crate) fn finish(mut self, tally: Tally) -> Result<Tally, ClusterError> {
        // A partial result must not be merged with those of other members.
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let all = if self.me() == 0 { self.gather(tally)? } else { self.hand_in(tally)? };
        self.cluster.complete();
        Ok(all)
    }

    fn gather(&mut self, tally: Tally) -> Result<Tally, ClusterError> {
        self.tallies[0] = Some(tally);
        self.poll_until(|gateway| gateway.tallies.iter().all(Option::is_some))?;
        let mut all = Tally::default();
        for part in self.tallies.iter_mut().filter_map(Option::take) {
            all.merge(part);
        }
        self.tell_others(&Frame::Tally(all.clone()));
        self.poll_until(|gateway| !gateway.cluster.mail().has_outgoing())?;
        Ok(all)
    }

    fn hand_in(&mut self, tally: Tally) -> Result<Tally, ClusterError> {
        self.tell_progress();
        self.tell(0, &Frame::Tally(tally));
        self.poll_until(|gateway| gateway.tallies[0].is_some())?;
        Ok(self.tallies[0].take().unwrap_or_default())
    }

    /// Polls until a condition holds that depends on other members.
    fn poll_until(&mut self, done: impl Fn(&mut Self) -> bool) -> Result<(), ClusterError> {
        let mut patience = Patience::new();
        while !done(self) {
            // Arrivals are dropped: the run is over.
            while self.poll().is_some_and(|arrival| !matches!(arrival, Arrival::Stop)) {}
            if !done(self)
                && let Some(error) = self.error.take()
            {
                return Err(error);
            }
            patience.pause();
        }
        Ok(())
    }
}
