//! The backend for members that are processes of an MPI program.

mod pending_send;

use std::collections::VecDeque;

use mpi::Threading;
use mpi::datatype::Equivalence;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Source};

use super::MpiError;
use super::backend::Messages;
use pending_send::PendingSend;

/// Maximum number of messages received in one poll.
const MESSAGES_PER_POLL: usize = 64;
/// Number of pending sends before MPI is asked to test the first of them: a test may cost a system call, and may yield the
/// processor to other threads.
const PENDING_BEFORE_TEST: usize = 16;

/// The backend over a communicator of all processes.
pub(super) struct MpiBackend {
    me: usize,
    members: usize,
    /// Pending sends, oldest first. Nothing waits for them: between processes of one host, Open MPI completes a send, however
    /// short it is, only when the receiver has polled for messages.
    sending: VecDeque<PendingSend>,
    communicator: SimpleCommunicator,
    /// Finalises MPI when it is dropped, which must happen after all sends are complete and the communicator is freed:
    /// fields are dropped in their order.
    _universe: Universe,
}

impl MpiBackend {
    pub(super) fn new() -> Result<Self, MpiError> {
        // All calls come from the one thread that keeps the cluster; that need not be the first one of the process.
        let (universe, threading) =
            mpi::initialize_with_threading(Threading::Serialized).ok_or(MpiError::Initialised)?;
        if threading < Threading::Serialized {
            return Err(MpiError::Threads);
        }
        // A duplicated communicator keeps these messages apart from others of the program.
        let communicator = universe.world().duplicate();
        Ok(Self {
            me: communicator.rank() as usize,
            members: communicator.size() as usize,
            sending: VecDeque::new(),
            communicator,
            _universe: universe,
        })
    }

    pub(super) fn me(&self) -> usize {
        self.me
    }

    pub(super) fn members(&self) -> usize {
        self.members
    }

    pub(super) fn exchange(&mut self, outgoing: &mut Messages, incoming: &mut Messages) {
        for (to, message) in outgoing.drain(..) {
            let to = self.communicator.process_at_rank(to as i32);
            self.sending.push_back(PendingSend::new(&to, message));
        }
        self.receive(incoming);
        if self.sending.len() > PENDING_BEFORE_TEST {
            self.reap_completed();
        }
    }

    pub(super) fn is_sending(&mut self) -> bool {
        self.reap_completed();
        !self.sending.is_empty()
    }

    fn reap_completed(&mut self) {
        while self.sending.front_mut().is_some_and(PendingSend::is_done) {
            self.sending.pop_front();
        }
    }

    /// Receives the messages that have arrived.
    fn receive(&self, incoming: &mut Messages) {
        for _ in 0..MESSAGES_PER_POLL {
            let Some((message, status)) = self.communicator.any_process().immediate_matched_probe() else {
                break;
            };
            let mut bytes = vec![0_u8; status.count(u8::equivalent_datatype()) as usize];
            message.matched_receive_into(&mut bytes[..]);
            incoming.push_back((status.source_rank() as usize, bytes));
        }
    }
}
