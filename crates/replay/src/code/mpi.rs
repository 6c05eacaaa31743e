//! The calls of a program.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use pdes_core::SimTime;
use trace_mmap::{Collective, Datatype, SendMode, Slot};

use super::communicator::Membership;
use super::data::{Data, Message, Values};
use super::operation::{Answer, Dialogue, Filter, Operation, Receive, Send};

/// A rank of a communicator, and its calls of MPI. Its clones are the same rank.
///
/// A call is awaited before the next one begins: what overlaps in MPI are requests. Ranks are those of the communicator; a source or a tag
/// `None` is any. A call with wrong arguments ends the run with an error that names the rank and the call.
///
/// | | |
/// |---|---|
/// | computation and time | [`compute`](Self::compute), [`sleep`](Self::sleep), [`time`](Self::time) |
/// | messages | [`send`](Self::send), [`synchronous_send`](Self::synchronous_send), [`receive`](Self::receive), [`probe`](Self::probe), [`try_probe`](Self::try_probe) |
/// | requests | [`isend`](Self::isend), [`ireceive`](Self::ireceive), [`wait`](Self::wait), [`wait_all`](Self::wait_all), [`wait_any`](Self::wait_any), [`test`](Self::test) |
/// | collective operations, with values | [`barrier`](Self::barrier), [`broadcast`](Self::broadcast), [`all_reduce`](Self::all_reduce), [`all_gather`](Self::all_gather) |
/// | all collective operations, by their sizes | [`collective`](Self::collective), [`icollective`](Self::icollective) |
/// | communicators | [`split`](Self::split) |
/// | errors | [`abort`](Self::abort) |
#[derive(Clone, Debug)]
pub struct Mpi {
    dialogue: Arc<Mutex<Dialogue>>,
    membership: Membership,
}

/// A request of a rank. One that is never waited for is completed at the end of the program.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a request is complete when it is waited for"]
pub struct Request(Slot);

impl Mpi {
    pub(super) fn new(dialogue: Arc<Mutex<Dialogue>>, membership: Membership) -> Self {
        Self { dialogue, membership }
    }

    fn dialogue(&self) -> MutexGuard<'_, Dialogue> {
        lock(&self.dialogue)
    }

    /// Makes a call, and waits for its end.
    async fn call(&self, operation: Operation) -> Answer {
        {
            let mut dialogue = self.dialogue();
            if dialogue.operation.is_some() {
                dialogue.mistake = Some("a call is made while another one is in progress: await each call, and overlap by requests".into());
            }
            dialogue.operation = Some((self.membership.index, operation));
        }
        poll_fn(|_| self.dialogue().answer.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Returns the rank in the communicator.
    pub fn rank(&self) -> u32 {
        self.membership.rank
    }

    /// Returns the number of ranks of the communicator.
    pub fn size(&self) -> u32 {
        self.membership.group.len()
    }

    /// Returns the simulated time, that of the end of the last call.
    pub fn time(&self) -> SimTime {
        self.dialogue().clock
    }

    /// Computes an amount of work \[flop\].
    pub async fn compute(&self, flops: f64) {
        self.call(Operation::Compute { flops }).await;
    }

    /// Sleeps for a time \[s\].
    pub async fn sleep(&self, seconds: f64) {
        self.call(Operation::Sleep { seconds }).await;
    }

    /// Ends the run with an error, which says why and names the rank: `MPI_Abort`.
    pub async fn abort(&self, why: impl Into<Box<str>>) -> ! {
        self.dialogue().mistake = Some(why.into());
        loop {
            std::future::pending::<()>().await;
        }
    }

    async fn post_send(&self, (to, tag): (u32, u32), data: Data, mode: SendMode, slot: Option<Slot>) {
        self.call(Operation::Send(Send { to, tag, data, mode, slot })).await;
    }

    /// Sends a message: `MPI_Send`.
    pub async fn send(&self, to: u32, tag: u32, data: impl Into<Data>) {
        self.post_send((to, tag), data.into(), SendMode::Standard, None).await;
    }

    /// Sends a message, and waits until its receive has begun: `MPI_Ssend`.
    pub async fn synchronous_send(&self, to: u32, tag: u32, data: impl Into<Data>) {
        self.post_send((to, tag), data.into(), SendMode::Synchronous, None).await;
    }

    /// Begins to send a message: `MPI_Isend`.
    pub async fn isend(&self, to: u32, tag: u32, data: impl Into<Data>) -> Request {
        let slot = self.dialogue().take_slot();
        self.post_send((to, tag), data.into(), SendMode::Standard, Some(slot)).await;
        Request(slot)
    }

    /// Receives a message of at most `bytes`: `MPI_Recv`.
    pub async fn receive(
        &self,
        source: impl Into<Option<u32>>,
        tag: impl Into<Option<u32>>,
        bytes: u64,
    ) -> Message {
        let filter = Filter { source: source.into(), tag: tag.into() };
        let answer = self.call(Operation::Receive(Receive { filter, bytes, slot: None })).await;
        answer.message.expect("a receive ends with a message")
    }

    /// Begins to receive a message of at most `bytes`: `MPI_Irecv`.
    pub async fn ireceive(
        &self,
        source: impl Into<Option<u32>>,
        tag: impl Into<Option<u32>>,
        bytes: u64,
    ) -> Request {
        let slot = self.dialogue().take_slot();
        let filter = Filter { source: source.into(), tag: tag.into() };
        self.call(Operation::Receive(Receive { filter, bytes, slot: Some(slot) })).await;
        Request(slot)
    }

    /// Waits for a request; returns the message of a receive.
    pub async fn wait(&self, request: Request) -> Option<Message> {
        self.call(Operation::Wait { slot: request.0 }).await.completed.pop()?.1
    }

    /// Waits for requests; returns the messages of the receives, in the order of the requests.
    pub async fn wait_all(&self, requests: impl IntoIterator<Item = Request>) -> Vec<Option<Message>> {
        let slots = requests.into_iter().map(|Request(slot)| slot).collect();
        let answer = self.call(Operation::WaitAll { slots }).await;
        answer.completed.into_iter().map(|(_, message)| message).collect()
    }

    /// Waits for the request that is complete first, removes it, and returns its index and the message of a receive: `MPI_Waitany`.
    ///
    /// # Panics
    /// Panics if there are no requests.
    pub async fn wait_any(&self, requests: &mut Vec<Request>) -> (usize, Option<Message>) {
        assert!(!requests.is_empty(), "wait_any: there are no requests");
        let slots = requests.iter().map(|&Request(slot)| slot).collect();
        let mut answer = self.call(Operation::WaitAny { slots }).await;
        let (slot, message) = answer.completed.pop().expect("a request is complete");
        let index = requests.iter().position(|request| *request == Request(slot)).expect("it is one of them");
        drop(requests.remove(index));
        (index, message)
    }

    /// Tests a request: `MPI_Test`. Returns the message of a receive if the request is complete.
    ///
    /// # Errors
    /// Returns the request that is not complete.
    pub async fn test(&self, request: Request) -> Result<Option<Message>, Request> {
        let mut answer = self.call(Operation::Test { slot: request.0 }).await;
        answer.completed.pop().map(|(_, message)| message).ok_or(request)
    }

    async fn post_probe(&self, filter: Filter, waits: bool) -> Option<Message> {
        self.call(Operation::Probe { filter, waits }).await.message
    }

    /// Waits until there is a message to receive, and returns it without its value: `MPI_Probe`.
    pub async fn probe(&self, source: impl Into<Option<u32>>, tag: impl Into<Option<u32>>) -> Message {
        let found = self.post_probe(Filter { source: source.into(), tag: tag.into() }, true).await;
        found.expect("a probe ends with a message")
    }

    /// Returns the first message to receive, if there is one, without its value: `MPI_Iprobe`.
    pub async fn try_probe(
        &self,
        source: impl Into<Option<u32>>,
        tag: impl Into<Option<u32>>,
    ) -> Option<Message> {
        self.post_probe(Filter { source: source.into(), tag: tag.into() }, false).await
    }

    /// Waits for all ranks of the communicator.
    pub async fn barrier(&self) {
        self.collective(Collective::Barrier).await;
    }

    /// Calls a collective operation by its sizes. Roots are ranks of the communicator.
    pub async fn collective(&self, operation: Collective) {
        self.call(Operation::Collective { operation, slot: None, data: None }).await;
    }

    /// Begins a nonblocking collective operation.
    pub async fn icollective(&self, operation: Collective) -> Request {
        let slot = self.dialogue().take_slot();
        self.call(Operation::Collective { operation, slot: Some(slot), data: None }).await;
        Request(slot)
    }

    async fn exchange(&self, operation: Collective, data: Data) -> Values {
        let answer = self.call(Operation::Collective { operation, slot: None, data: Some(data) }).await;
        answer.values.expect("an operation with data ends with those of its members")
    }

    /// Sends the data of the root to all ranks: `MPI_Bcast`. The other ranks give a size, that of the root.
    pub async fn broadcast(&self, root: u32, data: impl Into<Data>) -> Data {
        let data = data.into();
        let (count, datatype) = (data.bytes, Datatype::BYTE);
        let operation = Collective::Bcast { count, root: pdes_core::Rank::new(root), datatype };
        let values = self.exchange(operation, data).await;
        values.0[root as usize].get().expect("the root is the first to contribute").clone()
    }

    /// Reduces the data of all ranks on all of them: `MPI_Allreduce`, which takes each rank `flops`. Returns the data of all ranks: what
    /// they are reduced to is the program's.
    pub async fn all_reduce(&self, data: impl Into<Data>, flops: f64) -> Values {
        let data = data.into();
        let (count, datatype) = (data.bytes, Datatype::BYTE);
        self.exchange(Collective::Allreduce { count, flops, datatype }, data).await
    }

    /// Gathers the data of all ranks, of equal sizes, on all of them: `MPI_Allgather`.
    pub async fn all_gather(&self, data: impl Into<Data>) -> Values {
        let data = data.into();
        let (send_count, recv_count) = (data.bytes, data.bytes);
        let (send_type, recv_type) = (Datatype::BYTE, Datatype::BYTE);
        self.exchange(Collective::Allgather { send_count, recv_count, send_type, recv_type }, data).await
    }

    /// Divides the communicator into one for each color, in which ranks have the order of their keys, then that of before:
    /// `MPI_Comm_split`. Returns `None` for a rank without a color.
    ///
    /// The call takes the time of an exchange of 8 B by all ranks, whatever the parameters of the replay say about communicators.
    pub async fn split(&self, color: Option<u32>, key: i64) -> Option<Self> {
        let membership = self.call(Operation::Split { color, key }).await.membership?;
        Some(Self { dialogue: Arc::clone(&self.dialogue), membership })
    }
}

/// Locks a dialogue. Where a rank has panicked, the run ends anyway.
pub(super) fn lock(dialogue: &Mutex<Dialogue>) -> MutexGuard<'_, Dialogue> {
    dialogue.lock().unwrap_or_else(PoisonError::into_inner)
}
