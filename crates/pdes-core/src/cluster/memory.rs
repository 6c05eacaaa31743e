//! The backend for members that are threads of one process.

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::backend::Messages;

/// One member's end of the channels to all others.
pub(super) struct MemoryBackend {
    me: usize,
    inbox: Receiver<(usize, Vec<u8>)>,
    peers: Vec<Sender<(usize, Vec<u8>)>>,
}

/// Makes the connected ends of all members.
pub(super) fn connect(members: usize) -> Vec<MemoryBackend> {
    let (peers, inboxes): (Vec<_>, Vec<_>) = (0..members).map(|_| unbounded()).unzip();
    let end = |(me, inbox)| MemoryBackend { me, inbox, peers: peers.clone() };
    inboxes.into_iter().enumerate().map(end).collect()
}

impl MemoryBackend {
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
