//! Collective operations of members between runs, and messages of any length, in fragments.

use std::collections::VecDeque;
use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::backoff::Backoff;
use super::{Cluster, ClusterError, encoding};
use crate::SimTime;

/// Maximum size of a fragment \[B\].
const FRAGMENT_BYTES: usize = 3_900;
/// First byte of a fragment that others follow; different from the first bytes of the frames of a run.
const MORE: u8 = 100;
/// First byte of the last fragment of a message.
const LAST: u8 = 101;

/// # Collective calls
/// Every member makes these calls, in the same order, also with respect to runs.
impl Cluster {
    /// Gathers a value of each member at member 0; returns them there, in the order of the members, and an empty list at
    /// the others.
    ///
    /// # Errors
    /// If a member has left the cluster, or sends what is no such value.
    ///
    /// # Panics
    /// If this member has failed before.
    pub fn gather<T: Serialize + DeserializeOwned>(&mut self, own: T) -> Result<Vec<T>, ClusterError> {
        self.begin();
        let mut all = Vec::new();
        if self.member() == 0 {
            let others = self.receive_all(1..self.members())?;
            all.push(own);
            for bytes in others {
                all.push(self.decode(&bytes)?);
            }
        } else {
            self.enqueue_value(0..1, &own);
        }
        self.complete_call()?;
        Ok(all)
    }

    /// Broadcasts the value of member 0 to all members; those that others pass are ignored.
    ///
    /// # Errors
    /// If a member has left the cluster, or member 0 sends what is no such value.
    ///
    /// # Panics
    /// If member 0 passes no value, and if this member has failed before.
    pub fn broadcast<T: Serialize + DeserializeOwned>(
        &mut self,
        of_first: Option<T>,
    ) -> Result<T, ClusterError> {
        self.begin();
        let value = if self.member() == 0 {
            let value = of_first.expect("member 0 has the value to broadcast");
            self.enqueue_value(1..self.members(), &value);
            value
        } else {
            let bytes = self.receive_all(0..1)?.pop().unwrap_or_default();
            self.decode(&bytes)?
        };
        self.complete_call()?;
        Ok(value)
    }

    fn enqueue_value<T: Serialize>(&mut self, to: Range<usize>, value: &T) {
        let mut bytes = Vec::new();
        encoding::append(value, &mut bytes);
        to.for_each(|member| self.enqueue_fragmented(member, &bytes));
    }

    /// Decodes a message that holds one value, or fails the call for all members.
    fn decode<T: DeserializeOwned>(&mut self, mut bytes: &[u8]) -> Result<T, ClusterError> {
        let value = encoding::take(&mut bytes).filter(|_| bytes.is_empty());
        value.ok_or_else(|| self.fail_undecodable())
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
        let all = self.gather(succeeded)?;
        self.broadcast(Some(all.iter().position(|succeeded| !succeeded)))
    }

    /// Queues a message of any length, in fragments, for a member that receives it with
    /// [`receive_from_each`](Cluster::receive_from_each).
    pub(crate) fn enqueue_fragmented(&mut self, to: usize, bytes: &[u8]) {
        let (mut rest, mut frame) = (bytes, Vec::with_capacity(1 + FRAGMENT_BYTES.min(bytes.len())));
        loop {
            let (piece, later) = rest.split_at(rest.len().min(FRAGMENT_BYTES));
            frame.clear();
            frame.push(if later.is_empty() { LAST } else { MORE });
            frame.extend_from_slice(piece);
            self.transport.enqueue(to, &frame);
            if later.is_empty() {
                return;
            }
            rest = later;
        }
    }

    /// Receives one message of each of these members; returns them in the order of the members.
    fn receive_all(&mut self, members: Range<usize>) -> Result<Vec<Vec<u8>>, ClusterError> {
        let mut assembler = FragmentAssembler::new(self.members());
        self.receive_from_each(&mut assembler, members.clone())?;
        Ok(members.map(|member| assembler.take(member)).collect())
    }

    /// Waits until there is a complete message of each of these members, other than this one. Sends queued frames meanwhile.
    ///
    /// # Errors
    /// If a member has left the cluster.
    pub(crate) fn receive_from_each(
        &mut self,
        assembler: &mut FragmentAssembler,
        members: Range<usize>,
    ) -> Result<(), ClusterError> {
        let me = self.member();
        let is_missing = |assembler: &FragmentAssembler, member: usize| {
            member != me && assembler.by_member[member].complete.is_empty()
        };
        let mut backoff = Backoff::patient();
        loop {
            self.transport.exchange(SimTime::MAX);
            while let Some(mut delivery) = self.transport.next_message() {
                backoff = Backoff::patient();
                let from = delivery.from;
                while let Some(frame) = delivery.next_frame() {
                    assembler.put(from, frame);
                }
            }
            if !members.clone().any(|member| is_missing(assembler, member)) {
                return Ok(());
            }
            self.check()?;
            backoff.pause();
        }
    }

    /// Completes a collective call after all frames of this member have been sent.
    pub(crate) fn complete_call(&mut self) -> Result<(), ClusterError> {
        let mut backoff = Backoff::new();
        while self.transport.has_outgoing() {
            self.transport.exchange(SimTime::MAX);
            if self.transport.has_outgoing() {
                self.check()?;
                backoff.pause();
            }
        }
        self.complete();
        Ok(())
    }
}

/// Reassembles messages from fragments, in the order in which each member sent them.
pub(crate) struct FragmentAssembler {
    by_member: Box<[Reassembly]>,
}

#[derive(Default)]
struct Reassembly {
    partial: Vec<u8>,
    complete: VecDeque<Vec<u8>>,
}

impl FragmentAssembler {
    pub(crate) fn new(members: usize) -> Self {
        Self { by_member: (0..members).map(|_| Reassembly::default()).collect() }
    }

    fn put(&mut self, from: usize, frame: &[u8]) {
        let Reassembly { partial, complete } = &mut self.by_member[from];
        match frame {
            [MORE, piece @ ..] => partial.extend_from_slice(piece),
            [LAST, piece @ ..] => {
                partial.extend_from_slice(piece);
                complete.push_back(std::mem::take(partial));
            }
            _ => panic!("member {from} takes part in something else: it runs another version"),
        }
    }

    /// Takes the oldest complete message of a member; an empty one for this member.
    pub(crate) fn take(&mut self, member: usize) -> Vec<u8> {
        self.by_member[member].complete.pop_front().unwrap_or_default()
    }
}
