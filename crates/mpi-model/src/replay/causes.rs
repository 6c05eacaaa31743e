//! The critical paths of a rank: to its clock, and to what its requests wait for.
//!
//! The path to the clock of the strand that runs grows with it. Whatever may become the cause of a later instant keeps the path as it is then: a message,
//! for its receiver; a post of this rank, for the request and, where the other side waits, for that.

mod ledger;

use pdes_core::{Bytes, Outbox, Rank, SimTime};
use trace_mmap::{CallId, PortId};

use super::RankProcess;
use super::shelf::{Key, Shelves, ToPort, cut, join};
use super::times::Alone;
use crate::critical_path::CriticalPath;
use crate::machine::{Machine, Passage};
use crate::matching::{Departure, Port};
use crate::request::{Completion, Request, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Lane, Message, Piece, Token};
pub(super) use ledger::Causes;
use ledger::Flow;

/// Calls a method where critical paths are followed, out of the way of replays where they are not.
macro_rules! if_followed {
    ($process:expr, $name:ident($($argument:expr),*)) => {
        if $process.causes.is_some() {
            $process.$name($($argument),*);
        }
    };
}

impl Alone {
    /// Adds the time of the data to a path.
    fn lengthen(self, path: &mut CriticalPath, kind: ActionKind) {
        let end = path.end() + self.time;
        path.spend(kind, path.end() + self.overhead);
        path.pass(kind, self.passage, end);
    }
}

impl<'t, M: Machine> RankProcess<'t, M> {
    /// Returns the critical path to the end of the rank, where that was [asked for](crate::World::with_critical_paths).
    pub fn critical_path(&self) -> Option<&CriticalPath> {
        self.causes.as_deref().map(|causes| &causes.path)
    }

    #[inline]
    fn causes(&mut self) -> &mut Causes {
        self.causes.as_mut().expect("critical paths are followed")
    }

    #[inline]
    fn shelves(&self) -> &'t Shelves {
        self.world.shelves.as_ref().expect("critical paths are followed")
    }

    /// Takes in that the rank has been busy until now with an action of this kind.
    #[inline(always)]
    pub(super) fn spend(&mut self, kind: ActionKind) {
        let now = self.strand.clock;
        if let Some(causes) = &mut self.causes
            && causes.path.end() < now
        {
            causes.path_mut().spend(kind, now);
        }
    }

    /// Keeps the path to a post of this rank.
    #[inline(always)]
    pub(super) fn keep_post(&mut self, request: RequestId) {
        if let Some(causes) = &mut self.causes {
            debug_assert_eq!(causes.path.end(), self.strand.clock, "rank {} has spent its time", self.me);
            causes.post(request, None);
        }
    }

    #[inline]
    fn path_to_now(&self) -> &CriticalPath {
        let path = &self.causes.as_ref().expect("critical paths are followed").path;
        debug_assert_eq!(path.end(), self.strand.clock, "rank {} has spent its time on something", self.me);
        path
    }

    /// Sends the path to a message along with it.
    #[inline(always)]
    pub(super) fn send_path(
        &mut self,
        (to, lane): (Rank, Lane),
        message: &Message,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        if_followed!(self, send_path_to_now((to, lane), message, request, outbox));
    }

    #[inline(never)]
    fn send_path_to_now(
        &mut self,
        (to, lane): (Rank, Lane),
        message: &Message,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let (shelves, path) = (self.shelves(), self.path_to_now());
        let is_here = match lane {
            Lane::Port(port) => shelves.put_to_port(to, port, message.round, path),
            Lane::Collective(_) | Lane::Mailbox(_) | Lane::Time(_) => {
                shelves.put(to, Key::of(lane, message), path)
            }
        };
        if !is_here {
            self.send_pieces(to, Key::of(lane, message), path, outbox);
        }
        if message.reply.is_some() {
            let bytes = message.bytes + self.world.parameters.envelope;
            self.causes().post(request, Some(Flow::Out { to, bytes }));
        }
    }

    fn put(&self, to: Rank, key: Key, path: &CriticalPath, outbox: &mut Outbox<Token, M::Order>) {
        if !self.shelves().put(to, key, path) {
            self.send_pieces(to, key, path, outbox);
        }
    }

    #[cold]
    fn send_pieces(&self, to: Rank, key: Key, path: &CriticalPath, outbox: &mut Outbox<Token, M::Order>) {
        let from = self.me;
        cut(key, path).into_iter().for_each(|piece| outbox.send(to, Token::Piece { from, piece }));
    }

    /// Takes in a piece of a path from another process.
    pub(super) fn take_piece(&mut self, from: Rank, piece: Piece) {
        let bytes = self.causes().incoming.entry(from).or_default();
        if let Some((key, path)) = join(bytes, piece) {
            self.shelves().put(self.me, key, &path);
        }
    }

    /// Finds out why a message arrives that meets its receive: the side that posts last starts it, unless it flows before.
    #[inline(always)]
    pub(super) fn meet_cause(
        &mut self,
        port: usize,
        (message, departure): (&Message, Departure),
        (request, ready): (RequestId, SimTime),
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let Some(causes) = &mut self.causes else { return };
        let bytes = message.bytes + self.world.parameters.envelope;
        causes.of(request).flow = Some(Flow::In { port: port as u32, bytes });
        if departure != Departure::Received || message.posted > ready {
            self.take_path(port, message, request);
            return;
        }
        self.pass_over(port, message);
        if let Some(send) = message.reply
            && message.posted < ready
        {
            self.tell_sender(port, request, send, outbox);
        }
    }

    /// Takes over the path that has come with a message.
    #[inline(never)]
    fn take_path(&mut self, port: usize, message: &Message, request: RequestId) {
        let (me, key, shelves) = (self.me, self.key_at(port, message), self.shelves());
        let causes = self.causes();
        let sent = causes.take_sent(me, key, shelves);
        debug_assert!(sent.is_some(), "a path comes with each message");
        causes.of(request).path = sent;
    }

    /// Sends the path to a receive to the sender that has waited for it.
    #[inline(never)]
    fn tell_sender(
        &mut self,
        port: usize,
        receive: RequestId,
        send: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let causes = self.causes();
        let posted = causes.of(receive).path.clone();
        let posted = posted.unwrap_or_else(|| causes.path.clone());
        let Port { peer, .. } = *self.ports.get(port);
        self.put(peer, Key::Arrival(send), &posted, outbox);
    }

    #[inline(always)]
    fn pass_over(&mut self, port: usize, message: &Message) {
        let (me, shelves) = (self.me, self.shelves());
        if port < self.trace.ports() as usize {
            let &Message { posted, round, .. } = message;
            self.causes().pass_over(me, ToPort { port: PortId::new(port as u32), posted, round }, shelves);
            return;
        }
        let path = shelves.take(me, self.key_at(port, message));
        debug_assert!(path.is_some(), "a path comes with each message");
    }

    fn key_at(&self, port: usize, message: &Message) -> Key {
        let lane = if port < self.trace.ports() as usize {
            Lane::Port(PortId::new(port as u32))
        } else {
            Lane::Collective(self.ports.get(port).peer.get())
        };
        Key::of(lane, message)
    }

    /// Takes in that nobody will receive a message.
    pub(super) fn drop_path(&mut self, port: usize, message: &Message) {
        if_followed!(self, pass_over(port, message));
    }

    /// Finds out why what a request has sent has arrived: because of the receive, if that was posted later.
    #[inline(always)]
    pub(super) fn hear_of_receive(&mut self, request: RequestId) {
        if_followed!(self, take_path_of_receive(request));
    }

    #[inline(never)]
    fn take_path_of_receive(&mut self, request: RequestId) {
        let path = self.shelves().take(self.me, Key::Arrival(request));
        if path.is_some() {
            self.causes().of(request).path = path;
        }
    }

    /// Sends the path to a time along with it, which the data that it stands for reach on their way.
    pub(super) fn tell_path(
        &mut self,
        to: Rank,
        message: &Message,
        (kind, data): (ActionKind, Alone),
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        if self.causes.is_none() {
            return;
        }
        let mut path = self.path_to_now().clone();
        data.lengthen(&mut path, kind);
        self.put(to, Key::of(Lane::Time(self.me.get()), message), &path, outbox);
    }

    /// Takes over the path to a time that was told.
    pub(super) fn hear_path(&mut self, from: Rank, message: &Message, request: RequestId) {
        if self.causes.is_some() {
            // Numbers that are told the same way come without a path.
            if let Some(path) = self.shelves().take(self.me, Key::of(Lane::Time(from.get()), message)) {
                self.causes().set(request, path);
            }
        }
    }

    /// Takes in that data have been under way until now in an operation of this kind.
    pub(super) fn pass_until_now(&mut self, kind: ActionKind, data: Alone) {
        if let Some(causes) = &mut self.causes {
            data.lengthen(causes.path_mut(), kind);
        }
    }

    /// Returns the path from which an operation beside the program begins.
    pub(super) fn branch_path(&self) -> Option<CriticalPath> {
        self.causes.is_some().then(|| self.path_to_now().clone())
    }

    /// Follows the path of an operation beside the program instead of the one in its place; doing it again undoes it.
    pub(super) fn swap_path(&mut self, path: &mut Option<CriticalPath>) {
        if let (Some(causes), Some(path)) = (&mut self.causes, path) {
            std::mem::swap(causes.path_mut(), path);
        }
    }

    /// Lets the program know of the path to the end of an operation beside it.
    pub(super) fn end_path(&mut self, request: RequestId, path: Option<CriticalPath>) {
        if let (Some(causes), Some(path)) = (&mut self.causes, path) {
            causes.set(request, path);
        }
    }

    /// Gathers those requests that are complete later of all that are about to be completed together.
    pub(super) fn gather_causes(&mut self, gather: impl FnOnce(&Self, &mut Vec<(SimTime, RequestId)>)) {
        let Some(causes) = &mut self.causes else { return };
        let mut due = std::mem::take(&mut causes.due);
        due.clear();
        gather(self, &mut due);
        self.causes().due = due;
    }

    /// Returns those requests that are complete after now, and when.
    pub(super) fn complete_later(
        &self,
        requests: impl Iterator<Item = RequestId>,
    ) -> impl Iterator<Item = (SimTime, RequestId)> {
        requests.filter_map(|request| match self.requests.get(request) {
            Request::Complete(Completion { at, .. }) if at > self.strand.clock => Some((at, request)),
            _ => None,
        })
    }

    /// Gathers the path to the message that a probe finds.
    pub(super) fn gather_probed(&mut self, call: CallId) {
        if self.causes.is_some()
            && let Some((lane, message)) = self.first_message(call)
        {
            let (at, path) = (message.posted, self.shelves().get(self.me, Key::of(lane, message)));
            // A probe blocks: no receive does so.
            let request = self.requests.receive();
            let causes = self.causes();
            causes.set(request, path.expect("a path comes with each message"));
            causes.due = vec![(at, request)];
        }
    }

    /// Goes over to the path because of which a request is complete at an instant, where that lies after now.
    #[inline(never)]
    pub(super) fn follow_request(&mut self, request: RequestId, at: SimTime, kind: ActionKind) {
        let Some(causes) = &mut self.causes else { return };
        let flow = causes.follow(request, self.me);
        let alone = match flow {
            None => Passage::default(),
            Some(Flow::In { port, bytes }) => {
                let port = port as usize;
                let (machine, ports) = (self.world.machine, &self.ports);
                causes.passages(port).of(bytes, || {
                    let way = ports.get(port).path;
                    way.map_or(Passage::default(), |way| machine.alone(way, bytes))
                })
            }
            Some(Flow::Out { to, bytes }) => self.passage_to(to, bytes),
        };
        self.causes().path.pass(kind, alone, at);
    }

    /// What the data of a message to another rank take alone on their way, which the receiver has found.
    #[inline(never)]
    fn passage_to(&mut self, to: Rank, bytes: Bytes) -> Passage {
        let way = self.way(to).ok();
        let machine = self.world.machine;
        let alone = || way.map_or(Passage::default(), |way| machine.alone(way, bytes));
        self.causes().to_ranks.entry(to).or_default().of(bytes, alone)
    }

    /// Goes over to the path because of which one of the requests that are completed together is complete at an instant: of
    /// several, the first.
    #[inline(never)]
    pub(super) fn follow_due(&mut self, at: SimTime, kind: ActionKind) {
        let first = self.causes().due.iter().find(|&&(complete, _)| complete == at);
        let &(_, request) = first.expect("what is complete later has a cause");
        self.follow_request(request, at, kind);
    }
}
