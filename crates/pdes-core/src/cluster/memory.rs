//! The backend for members that are threads of one process.

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::link::Messages;

/// One member's end of the channels to all others.
pub(super) struct MemoryLink {
    me: usize,
    inbox: Receiver<(usize, Vec<u8>)>,
    peers: Vec<Sender<(usize, Vec<u8>)>>,
}

/// Makes the connected ends of all members.
pub(super) fn connect(members: usize) -> Vec<MemoryLink> {
    let (peers, inboxes): (Vec<_>, Vec<_>) = (0..members).map(|_| unbounded()).unzip();
    let end = |(me, inbox)| MemoryLink { me, inbox, peers: peers.clone() };
    inboxes.into_iter().enumerate().map(end).collect()
}

impl MemoryLink {
    pub(super) fn me(&self) -> usize {
        self.me
    }

    pub(super) fn members(&self) -> usize {
        self.peers.len()
    }

    pub(super) fn exchange(&mut self, outgoing: &mut Messages, incoming: &mut Messages) {
        for (to, message) in outgoing.drain(..) {
            // Errors are ignored: a member that has gone has waited for the departures of all others.
            let _ = self.peers[to].send((self.me, message));
        }
        incoming.extend(self.inbox.try_iter());
    }
}
