//! The critical paths of a rank: to its clock, and to what its requests wait for.
//!
//! The path to the clock of the strand that runs grows with it. Whatever may become the cause of a later instant keeps the path as it is then: a message,
//! for its receiver; a post of this rank, for the request and, where the other side waits, for that.

use std::collections::BTreeMap;

use pdes_core::{Bytes, Outbox, Rank, SimTime};
use trace_mmap::{CallId, PortId};

use super::RankProcess;
use super::shelf::{Key, Shelves, cut, join};
use super::times::Alone;
use crate::critical_path::CriticalPath;
use crate::machine::{Machine, Passage};
use crate::matching::{Departure, Port};
use crate::request::{Completion, Request, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Lane, Message, Piece, Token};

/// The critical paths of a rank.
pub(super) struct Causes<P> {
    /// To the clock of the strand that runs, but for what that has done since it was last looked at.
    path: CriticalPath,
    of_program: Box<[Option<Cause<P>>]>,
    of_parts: Vec<Option<Cause<P>>>,
    /// Requests that have been posted at the end of the path, and perhaps others.
    posted: Vec<RequestId>,
    /// Of the requests that are being completed together, by when they were complete.
    due: Vec<(SimTime, Cause<P>)>,
    /// Pieces from ranks of other processes of the operating system.
    incoming: BTreeMap<Rank, Vec<u8>>,
}

/// Why something happens later: after a path, the flow of a message, if there is one.
struct Cause<P> {
    /// `None` for the path of the rank itself while that ends there: most receives go on with it.
    path: Option<CriticalPath>,
    flow: Option<Flow<P>>,
}

/// The data of a message on their way.
enum Flow<P> {
    /// To this rank.
    In { way: P, bytes: Bytes },
    /// To another one.
    Out { to: Rank, bytes: Bytes },
}

impl<P> Causes<P> {
    pub(super) fn new(me: Rank, requests: usize) -> Self {
        Self {
            path: CriticalPath::new(me),
            of_program: (0..requests).map(|_| None).collect(),
            of_parts: Vec::new(),
            posted: Vec::new(),
            due: Vec::new(),
            incoming: BTreeMap::new(),
        }
    }

    fn of(&mut self, request: RequestId) -> &mut Option<Cause<P>> {
        match request.place() {
            Ok(slot) => &mut self.of_program[slot],
            Err(part) => {
                if self.of_parts.len() <= part {
                    self.of_parts.resize_with(part + 1, || None);
                }
                &mut self.of_parts[part]
            }
        }
    }

    fn set(&mut self, request: RequestId, path: CriticalPath, flow: Option<Flow<P>>) {
        *self.of(request) = Some(Cause { path: Some(path), flow });
    }

    /// Returns the path of the strand that runs, to let it go on: what has been posted at its end keeps it as it is.
    fn path_mut(&mut self) -> &mut CriticalPath {
        while let Some(request) = self.posted.pop() {
            let path = &self.path;
            let cause = match request.place() {
                Ok(slot) => self.of_program[slot].as_mut(),
                Err(part) => self.of_parts[part].as_mut(),
            };
            if let Some(Cause { path: kept @ None, .. }) = cause {
                *kept = Some(path.clone());
            }
        }
        &mut self.path
    }
}

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

impl<M: Machine> RankProcess<'_, M> {
    /// Returns the critical path to the end of the rank, where that was [asked for](crate::World::with_critical_paths).
    pub fn critical_path(&self) -> Option<&CriticalPath> {
        self.causes.as_deref().map(|causes| &causes.path)
    }

    fn causes(&mut self) -> &mut Causes<M::Path> {
        self.causes.as_mut().expect("critical paths are followed")
    }

    fn shelves(&self) -> &Shelves {
        self.world.shelves.as_ref().expect("critical paths are followed")
    }

    /// Takes in that the rank has been busy until now with an action of this kind.
    #[inline(always)]
    pub(super) fn spend(&mut self, kind: ActionKind) {
        if_followed!(self, spend_until_now(kind));
    }

    #[inline(never)]
    fn spend_until_now(&mut self, kind: ActionKind) {
        let now = self.strand.clock;
        let causes = self.causes();
        if causes.path.end() < now {
            causes.path_mut().spend(kind, now);
        }
    }

    /// Keeps the path to a post of this rank.
    #[inline(always)]
    pub(super) fn keep_post(&mut self, request: RequestId) {
        if_followed!(self, keep_path(request));
    }

    #[inline(never)]
    fn keep_path(&mut self, request: RequestId) {
        self.path_to_now();
        let causes = self.causes();
        *causes.of(request) = Some(Cause { path: None, flow: None });
        causes.posted.push(request);
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
        self.put(to, Key::of(lane, message), self.path_to_now(), outbox);
        if message.reply.is_some() {
            let bytes = message.bytes + self.world.parameters.envelope;
            let path = self.path_to_now().clone();
            self.causes().set(request, path, Some(Flow::Out { to, bytes }));
        }
    }

    fn put(&self, to: Rank, key: Key, path: &CriticalPath, outbox: &mut Outbox<Token, M::Order>) {
        if !self.shelves().put(to, key, path) {
            let from = self.me;
            cut(key, path).into_iter().for_each(|piece| outbox.send(to, Token::Piece { from, piece }));
        }
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
        receive: (RequestId, SimTime),
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        if_followed!(self, find_cause(port, (message, departure), receive, outbox));
    }

    #[inline(never)]
    fn find_cause(
        &mut self,
        port: usize,
        (message, departure): (&Message, Departure),
        receive: (RequestId, SimTime),
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let Port { peer, path: way, .. } = *self.ports.get(port);
        let bytes = message.bytes + self.world.parameters.envelope;
        let flow = way.map(|way| Flow::In { way, bytes });
        let (request, ready) = receive;
        let is_awaited = departure == Departure::Received && message.posted <= ready;
        if !is_awaited {
            let sent = self.shelves().take(self.me, self.key_at(port, message));
            self.causes().set(request, sent.expect("a path comes with each message"), flow);
            return;
        }
        self.drop_path(port, message);
        let causes = self.causes();
        let cause = causes.of(request).as_mut().expect("the receive has been posted");
        cause.flow = flow;
        if let Some(send) = message.reply
            && message.posted < ready
        {
            let posted = cause.path.clone();
            let posted = posted.unwrap_or_else(|| causes.path.clone());
            self.put(peer, Key::Arrival(send), &posted, outbox);
        }
    }

    fn key_at(&self, port: usize, message: &Message) -> Key {
        let of_trace = u32::try_from(port).ok().filter(|&port| port < self.trace.ports());
        let other = || Lane::Collective(self.ports.get(port).peer.get());
        Key::of(of_trace.map_or_else(other, |port| Lane::Port(PortId::new(port))), message)
    }

    /// Takes in that nothing goes on because of a message, or that nobody will receive it.
    pub(super) fn drop_path(&self, port: usize, message: &Message) {
        if self.causes.is_some() {
            let was_there = self.shelves().discard(self.me, self.key_at(port, message));
            debug_assert!(was_there, "a path comes with each message");
        }
    }

    /// Finds out why what a request has sent has arrived: because of the receive, if that was posted later.
    #[inline(always)]
    pub(super) fn hear_of_receive(&mut self, request: RequestId) {
        if_followed!(self, take_path_of_receive(request));
    }

    #[inline(never)]
    fn take_path_of_receive(&mut self, request: RequestId) {
        let path = self.shelves().take(self.me, Key::Arrival(request));
        if let (Some(path), Some(cause)) = (path, self.causes().of(request)) {
            cause.path = Some(path);
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
                self.causes().set(request, path, None);
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
            causes.set(request, path, None);
        }
    }

    /// Gathers the causes of those requests that are complete after now, which are about to be completed together.
    pub(super) fn gather_causes(&mut self, requests: impl FnOnce(&Self) -> Vec<RequestId>) {
        if self.causes.is_none() {
            return;
        }
        let (requests, now) = (requests(self), self.strand.clock);
        self.causes().due.clear();
        for request in requests {
            if let Request::Complete(Completion { at, .. }) = self.requests.get(request)
                && at > now
            {
                let causes = self.causes();
                let mut cause = causes.of(request).take().expect("what is complete later has a cause");
                cause.path.get_or_insert_with(|| causes.path.clone());
                causes.due.push((at, cause));
            }
        }
    }

    /// Gathers the path to the message that a probe finds.
    pub(super) fn gather_probed(&mut self, call: CallId) {
        if self.causes.is_some()
            && let Some((lane, message)) = self.first_message(call)
        {
            let (at, path) = (message.posted, self.shelves().get(self.me, Key::of(lane, message)));
            debug_assert!(path.is_some(), "a path comes with each message");
            self.causes().due = vec![(at, Cause { path, flow: None })];
        }
    }

    /// Goes over to the path because of which a request is complete at an instant, where that lies after now.
    #[inline(never)]
    pub(super) fn follow_request(&mut self, request: RequestId, at: SimTime, kind: ActionKind) {
        let cause = self.causes().of(request).take();
        self.follow(cause.expect("what is complete later has a cause"), at, kind);
    }

    /// Goes over to the path because of which one of the requests that are completed together is complete at an instant: of
    /// several, the first.
    #[inline(never)]
    pub(super) fn follow_due(&mut self, at: SimTime, kind: ActionKind) {
        let due = &mut self.causes().due;
        let place = due.iter().position(|&(complete, _)| complete == at);
        let (_, cause) = due.swap_remove(place.expect("what is complete later has a cause"));
        self.follow(cause, at, kind);
    }

    fn follow(&mut self, Cause { path, flow }: Cause<M::Path>, at: SimTime, kind: ActionKind) {
        let me = self.me;
        let own = self.causes().path_mut();
        if let Some(path) = path {
            *own = path;
            own.enter(me);
        }
        let taken = at - own.end();
        let alone = match flow {
            None => Passage::default(),
            Some(Flow::In { way, bytes }) => self.world.machine.passage(way, bytes, taken),
            Some(Flow::Out { to, bytes }) => {
                // The receiver has found the way.
                let way = self.way(to).ok();
                way.map_or(Passage::default(), |way| self.world.machine.passage(way, bytes, taken))
            }
        };
        self.causes().path.pass(kind, alone, at);
    }
}
