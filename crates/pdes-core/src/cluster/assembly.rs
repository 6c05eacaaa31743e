//! What members tell each other in pieces: between simulations, and at the meetings of regions.

use std::collections::VecDeque;
use std::ops::Range;

use super::patience::Patience;
use super::{Cluster, ClusterError};
use crate::{SimTime, Wire};

/// Bytes of a frame.
const PIECE: usize = 3_900;
/// First bytes of frames, different from those of a simulation. More of the same follows, or nothing does.
const MORE: u8 = 100;
const LAST: u8 = 101;

/// # Calls of all members
/// Every member makes these calls, in the same order as all others and as simulations.
impl Cluster {
    /// Brings something of each member to member 0; returns it there, in the order of the members, and nothing at the
    /// others.
    ///
    /// # Errors
    /// Where a member has left the cluster.
    ///
    /// # Panics
    /// Where this member has failed before.
    pub fn gather(&mut self, own: Vec<u8>) -> Result<Vec<Vec<u8>>, ClusterError> {
        self.begin();
        let mut all = Vec::new();
        if self.member() == 0 {
            all = self.take_in(1..self.members())?;
            all.insert(0, own);
        } else {
            self.post(0, &own);
        }
        self.end()?;
        Ok(all)
    }

    /// Brings something of member 0 to all; what the others give does not matter.
    ///
    /// # Errors
    /// Where a member has left the cluster.
    ///
    /// # Panics
    /// Where this member has failed before.
    pub fn spread(&mut self, of_first: Vec<u8>) -> Result<Vec<u8>, ClusterError> {
        self.begin();
        let mut found = of_first;
        if self.member() == 0 {
            (1..self.members()).for_each(|member| self.post(member, &found));
        } else {
            found = self.take_in(0..1)?.pop().unwrap_or_default();
        }
        self.end()?;
        Ok(found)
    }

    /// Tells all members which of them, the lowest one, has failed in what it did on its own, if any has; each says
    /// whether it has succeeded itself.
    ///
    /// # Errors
    /// Where a member has left the cluster.
    ///
    /// # Panics
    /// Where this member has failed before.
    ///
    /// ```
    /// use pdes_core::Cluster;
    ///
    /// let told = Cluster::in_memory(3, |mut cluster| {
    ///     let succeeded = cluster.member() == 0;
    ///     cluster.first_failure(succeeded)
    /// });
    /// assert!(told.into_iter().all(|told| told.unwrap() == Ok(Some(1))));
    /// ```
    pub fn first_failure(&mut self, succeeded: bool) -> Result<Option<usize>, ClusterError> {
        let all = self.gather(vec![u8::from(succeeded)])?;
        let failed = all.iter().position(|one| one.as_slice() != [1]).map(|member| member as u32);
        let mut bytes = Vec::new();
        failed.write(&mut bytes);
        let told = self.spread(bytes)?;
        let failed: Option<u32> = Wire::read(&mut told.as_slice()).expect("member 0 tells what it found");
        Ok(failed.map(|member| member as usize))
    }

    /// Files bytes, as many as there are, for a member that [waits](Cluster::await_all) for them.
    pub(crate) fn post(&mut self, to: usize, bytes: &[u8]) {
        let (mut rest, mut frame) = (bytes, Vec::with_capacity(1 + PIECE.min(bytes.len())));
        loop {
            let (piece, later) = rest.split_at(rest.len().min(PIECE));
            frame.clear();
            frame.push(if later.is_empty() { LAST } else { MORE });
            frame.extend_from_slice(piece);
            self.mail.post(to, &frame);
            if later.is_empty() {
                return;
            }
            rest = later;
        }
    }

    /// Waits for what these members give; returns it in their order.
    fn take_in(&mut self, members: Range<usize>) -> Result<Vec<Vec<u8>>, ClusterError> {
        let mut pieces = Pieces::new(self.members());
        self.await_all(&mut pieces, members.clone())?;
        Ok(members.map(|member| pieces.take(member)).collect())
    }

    /// Waits until each of these members has given something that was not taken yet. Meanwhile what this one gives is sent.
    pub(crate) fn await_all(
        &mut self,
        pieces: &mut Pieces,
        members: Range<usize>,
    ) -> Result<(), ClusterError> {
        let me = self.member();
        let is_missing =
            |pieces: &Pieces, member: usize| member != me && pieces.of_member[member].whole.is_empty();
        let mut patience = Patience::new();
        loop {
            self.mail.exchange(SimTime::MAX);
            while let Some(mut delivery) = self.mail.next() {
                patience = Patience::new();
                let from = delivery.from;
                while let Some(frame) = delivery.next_frame() {
                    pieces.put(from, frame);
                }
            }
            if !members.clone().any(|member| is_missing(pieces, member)) {
                return Ok(());
            }
            self.check()?;
            patience.pause();
        }
    }

    /// Ends a call when all that this member gives is on its way.
    pub(crate) fn end(&mut self) -> Result<(), ClusterError> {
        let mut patience = Patience::new();
        while self.mail.has_outgoing() {
            self.mail.exchange(SimTime::MAX);
            if self.mail.has_outgoing() {
                self.check()?;
                patience.pause();
            }
        }
        self.complete();
        Ok(())
    }
}

/// What members give, put together from pieces, in the order in which each gave it.
pub(crate) struct Pieces {
    of_member: Box<[Given]>,
}

#[derive(Default)]
struct Given {
    begun: Vec<u8>,
    whole: VecDeque<Vec<u8>>,
}

impl Pieces {
    pub(crate) fn new(members: usize) -> Self {
        Self { of_member: (0..members).map(|_| Given::default()).collect() }
    }

    fn put(&mut self, from: usize, frame: &[u8]) {
        let Given { begun, whole } = &mut self.of_member[from];
        match frame {
            [MORE, piece @ ..] => begun.extend_from_slice(piece),
            [LAST, piece @ ..] => {
                begun.extend_from_slice(piece);
                whole.push_back(std::mem::take(begun));
            }
            _ => panic!("member {from} takes part in something else: it runs another version"),
        }
    }

    /// Takes what a member gave first; nothing where it is this one.
    pub(crate) fn take(&mut self, member: usize) -> Vec<u8> {
        self.of_member[member].whole.pop_front().unwrap_or_default()
    }
}
