//! Members that are processes of an MPI program.

use mpi::Threading;
use mpi::datatype::Equivalence;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Source};

use super::MpiError;
use super::link::Messages;

/// The most messages that are received before the caller gets to see them.
const MESSAGES_PER_LOOK: usize = 64;

/// A communicator of all processes.
pub(super) struct MpiLink {
    me: usize,
    members: usize,
    communicator: SimpleCommunicator,
    /// Finalises MPI when it is dropped, which must happen after the communicator is freed: fields are dropped in their
    /// order.
    _universe: Universe,
}

impl MpiLink {
    pub(super) fn new() -> Result<Self, MpiError> {
        // All calls come from the one thread that keeps the cluster; that need not be the first one of the process.
        let (universe, threading) =
            mpi::initialize_with_threading(Threading::Serialized).ok_or(MpiError::Initialised)?;
        if threading < Threading::Serialized {
            return Err(MpiError::Threads);
        }
        // Its own communicator keeps its messages apart from any others of the program.
        let communicator = universe.world().duplicate();
        Ok(Self {
            me: communicator.rank() as usize,
            members: communicator.size() as usize,
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
        if !outgoing.is_empty() {
            self.send(outgoing, incoming);
            outgoing.clear();
        }
        self.receive(incoming);
    }

    /// Sends, and receives until all is sent.
    fn send(&self, outgoing: &Messages, incoming: &mut Messages) {
        mpi::request::scope(|scope| {
            let mut requests: Vec<_> = outgoing
                .iter()
                .map(|(to, message)| {
                    self.communicator.process_at_rank(*to as i32).immediate_send(scope, message.as_slice())
                })
                .collect();
            loop {
                requests = requests.into_iter().filter_map(|request| request.test().err()).collect();
                if requests.is_empty() {
                    break;
                }
                self.receive(incoming);
                std::thread::yield_now();
            }
        });
    }

    /// Receives what has arrived.
    fn receive(&self, incoming: &mut Messages) {
        for _ in 0..MESSAGES_PER_LOOK {
            let Some((message, status)) = self.communicator.any_process().immediate_matched_probe() else {
                break;
            };
            let mut bytes = vec![0_u8; status.count(u8::equivalent_datatype()) as usize];
            message.matched_receive_into(&mut bytes[..]);
            incoming.push_back((status.source_rank() as usize, bytes));
        }
    }
}
