//! Collective operations of members between runs, and messages of any length, in fragments.

use std::collections::VecDeque;
use std::ops::Range;

use super::patience::Patience;
use super::{Cluster, ClusterError};
use crate::{SimTime, Wire};

/// Maximum size of a fragment \[B\].
const PIECE: usize = 3_900;
/// First byte of a fragment that others follow; different from the first bytes of the frames of a run.
const MORE: u8 = 100;
/// First byte of the last fragment of a message.
const LAST: u8 = 101;

/// # Collective calls
/// Every member makes these calls, in the same order, also with respect to runs.
impl Cluster {
    /// Gathers the bytes of each member at member 0; returns them there, in the order of the members, and an empty list at
    /// the others.
    ///
    /// # Errors
    /// If a member has left the cluster.
    ///
    /// # Panics
    /// If this member has failed before.
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

    /// Broadcasts the bytes of member 0 to all members; the arguments of the others are ignored.
    ///
    /// # Errors
    /// If a member has left the cluster.
    ///
    /// # Panics
    /// If this member has failed before.
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

    /// Returns, on all members, the lowest member that has not succeeded in its own work, if there is one. Each member
    /// passes its own success.
    ///
    /// # Errors
    /// If a member has left the cluster.
    ///
    /// # Panics
    /// If this member has failed before.
    ///
    /// ```
    /// use pdes_core::Cluster;
    ///
    /// let failures = Cluster::in_memory(3, |mut cluster| {
    ///     let succeeded = cluster.member() == 0;
    ///     cluster.first_failure(succeeded)
    /// });
    /// assert!(failures.into_iter().all(|failure| failure.unwrap() == Ok(Some(1))));
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

    /// Queues a message of any length, in fragments, for a member that receives it with
    /// [`receive_from_each`](Cluster::receive_from_each).
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

    /// Receives one message of each of these members; returns them in the order of the members.
    fn take_in(&mut self, members: Range<usize>) -> Result<Vec<Vec<u8>>, ClusterError> {
        let mut pieces = Pieces::new(self.members());
        self.await_all(&mut pieces, members.clone())?;
        Ok(members.map(|member| pieces.take(member)).collect())
    }

    /// Waits until there is a complete message of each of these members, other than this one. Sends queued frames meanwhile.
    ///
    /// # Errors
    /// If a member has left the cluster.
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

    /// Completes a collective call after all frames of this member have been sent.
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

/// Reassembles messages from fragments, in the order in which each member sent them.
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

    /// Takes the oldest complete message of a member; an empty one for this member.
    pub(crate) fn take(&mut self, member: usize) -> Vec<u8> {
        self.of_member[member].whole.pop_front().unwrap_or_default()
    }
}
