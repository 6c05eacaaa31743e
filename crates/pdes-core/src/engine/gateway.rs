//! A member's side of a run on a cluster.

use std::time::{Duration, Instant};

use super::census::Census;
use super::frame::{Frame, Report, Tally};
use super::horizon::Floors;
use super::partition::Share;
use super::quiescence::{Quiet, Verdict};
use crate::cluster::patience::Patience;
use crate::cluster::{Cluster, ClusterError, Delivery, Terms};
use crate::{Progress, Rank, SimTime};

/// How often member 0 is told of the progress of the others.
const PROGRESS_PERIOD: Duration = Duration::from_millis(200);

/// What comes in for a worker of this member.
pub(crate) enum Arrival {
    /// Tokens, as they were written.
    Tokens { worker: usize, packets: Vec<u8> },
    /// The conditional event of this process is committed.
    Commit(Rank),
    /// The run is over.
    Stop,
}

/// What the first worker of a member uses to speak for all of them with the other members. The protocol is described
/// in the README beside this file.
pub(crate) struct Gateway<'a> {
    cluster: &'a mut Cluster,
    floors: &'a Floors,
    share: Share,
    terms: Terms,
    progress: &'a Progress,
    /// What each member has done, as it last told, at member 0; elsewhere, when this one last told.
    done: Vec<(u64, SimTime)>,
    told_progress: Instant,
    /// Counted frames to and from each member.
    sent: Vec<u64>,
    received: Vec<u64>,
    /// What was reported last.
    reported: Option<Report>,
    /// The reports of all members, at member 0.
    census: Census,
    /// The clocks for which other members wait, and those for which they were asked to tell.
    asked_by: Vec<Option<SimTime>>,
    asked: Vec<Option<SimTime>>,
    told_cutoff: SimTime,
    delivery: Option<Delivery>,
    /// Whether anything has arrived since that was asked last.
    stirred: bool,
    /// How members ended the run; at the others, how all did, from member 0.
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

    /// Returns whether frames have come in that are not read yet.
    pub(crate) fn is_reading(&mut self) -> bool {
        self.delivery.is_some() || self.cluster.mail().has_incoming()
    }

    /// Returns whether anything has arrived since the last call: then more may follow soon.
    pub(crate) fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.stirred)
    }

    /// Returns the bytes that wait until their receivers have received what came before.
    pub(crate) fn backlog(&mut self) -> usize {
        self.cluster.mail().backlog()
    }

    /// Sends what is filed, takes in what has arrived, and returns the first of it that concerns a worker.
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

    /// Tells member 0 what this one has done, if there is news.
    fn tell_progress(&mut self) {
        self.told_progress = Instant::now();
        let (me, done) = (self.me(), (self.progress.steps(), self.progress.reached()));
        if std::mem::replace(&mut self.done[me], done) != done {
            self.tell(0, &Frame::Progress(done.0, done.1));
        }
    }

    /// Asks the members that seem to be behind.
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

    /// Ends the run where a member has left it.
    fn check(&mut self) -> Option<Arrival> {
        if self.error.is_none() {
            self.error = self.cluster.check().err();
        }
        self.error.is_some().then_some(Arrival::Stop)
    }

    /// Reports that no worker of this member can run; returns, at member 0, what is to be done if that is so
    /// everywhere.
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

    /// Has a process of another member go on; returns whether it is one of another member.
    pub(crate) fn commit(&mut self, rank: Rank) -> bool {
        let (member, _) = self.share.seat(self.share.whole.worker(rank));
        let abroad = member != self.me();
        if abroad {
            self.send(member, &Frame::Commit(rank).to_bytes());
        } else {
            // What is reported next may be the same again, of a process with another event at the same instant, and
            // must still count as news: no frame has told them apart.
            self.reported = None;
        }
        abroad
    }

    /// Ends the run for all members.
    pub(crate) fn stop(&mut self) {
        self.tell_others(&Frame::Stop);
    }

    /// Ends the run for all members where this one cannot read what it gets.
    pub(crate) fn refuse(self) -> ClusterError {
        self.cluster.fail(None);
        ClusterError::Garbled { receiver: self.me() }
    }

    /// Puts together how the run ended for all members.
    pub(crate) fn finish(mut self, tally: Tally) -> Result<Tally, ClusterError> {
        // What was computed until then means nothing, and must not be taken for a result by others.
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

    /// Waits for something that other members bring about.
    fn poll_until(&mut self, done: impl Fn(&mut Self) -> bool) -> Result<(), ClusterError> {
        let mut patience = Patience::new();
        while !done(self) {
            // Whatever else arrives, the run is over.
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
