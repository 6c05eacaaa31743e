//! Because of which paths the requests of a rank are complete when they are.

use std::collections::BTreeMap;

use pdes_core::{Bytes, Rank, SimTime};
use rustc_hash::FxHashMap;

use crate::critical_path::CriticalPath;
use crate::replay::passages::Passages;
use crate::replay::shelf::{Key, Shelves, ToPort};
use crate::request::RequestId;

/// The critical paths of a rank.
pub(in crate::replay) struct Causes {
    /// To the clock of the strand that runs, but for what that has done since it was last looked at.
    pub(super) path: CriticalPath,
    of_program: Box<[Cause]>,
    of_parts: Vec<Cause>,
    /// Requests that have been posted at the end of the path, and perhaps others.
    posted: Vec<RequestId>,
    /// Of the requests that are being completed together, those that are complete later, and when.
    pub(super) due: Vec<(SimTime, RequestId)>,
    /// What messages take to each port of this rank, and to other ranks.
    to_ports: Vec<Passages>,
    pub(super) to_ranks: FxHashMap<Rank, Passages>,
    /// Messages to ports because of which nothing goes on: their paths are still on the shelf.
    passed: Vec<ToPort>,
    /// Pieces from ranks of other processes of the operating system.
    pub(super) incoming: BTreeMap<Rank, Vec<u8>>,
}

/// The most messages that are passed over together.
const PASSED: usize = 32;

/// Why something happens later: after a path, the flow of a message, if there is one.
#[derive(Default)]
pub(super) struct Cause {
    /// `None` for the path of the rank itself while that ends there: most receives go on with it.
    pub(super) path: Option<CriticalPath>,
    pub(super) flow: Option<Flow>,
}

/// The data of a message on their way.
#[derive(Clone, Copy)]
pub(super) enum Flow {
    /// To a port of this rank.
    In { port: u32, bytes: Bytes },
    /// To another rank.
    Out { to: Rank, bytes: Bytes },
}

impl Causes {
    pub(in crate::replay) fn new(me: Rank, requests: usize) -> Self {
        Self {
            path: CriticalPath::new(me),
            of_program: (0..requests).map(|_| Cause::default()).collect(),
            of_parts: Vec::new(),
            posted: Vec::new(),
            due: Vec::new(),
            to_ports: Vec::new(),
            to_ranks: FxHashMap::default(),
            passed: Vec::new(),
            incoming: BTreeMap::new(),
        }
    }

    #[inline]
    pub(super) fn of(&mut self, request: RequestId) -> &mut Cause {
        match request.place() {
            Ok(slot) => &mut self.of_program[slot],
            Err(part) => self.of_part(part),
        }
    }

    #[cold]
    fn of_part(&mut self, part: usize) -> &mut Cause {
        if self.of_parts.len() <= part {
            self.of_parts.resize_with(part + 1, Cause::default);
        }
        &mut self.of_parts[part]
    }

    /// Takes in that a request has been posted at the end of the path.
    #[inline]
    pub(super) fn post(&mut self, request: RequestId, flow: Option<Flow>) {
        let cause = self.of(request);
        cause.path = None;
        cause.flow = flow;
        self.posted.push(request);
    }

    pub(super) fn set(&mut self, request: RequestId, path: CriticalPath) {
        *self.of(request) = Cause { path: Some(path), flow: None };
    }

    /// Returns the path of the strand that runs, to let it go on: what has been posted at its end keeps it as it is.
    #[inline]
    pub(super) fn path_mut(&mut self) -> &mut CriticalPath {
        if !self.posted.is_empty() {
            self.keep_posted();
        }
        &mut self.path
    }

    #[inline(never)]
    fn keep_posted(&mut self) {
        while let Some(request) = self.posted.pop() {
            if self.of(request).path.is_none() {
                let path = self.path.clone();
                self.of(request).path = Some(path);
            }
        }
    }

    /// Goes over to the path because of which a request of this rank is complete later; returns the flow that follows.
    #[inline(always)]
    pub(super) fn follow(&mut self, request: RequestId, me: Rank) -> Option<Flow> {
        // Mostly it is the only one.
        if self.posted.last() == Some(&request) {
            self.posted.pop();
        }
        self.path_mut();
        let cause = self.of(request);
        let flow = cause.flow;
        if let Some(path) = cause.path.take() {
            self.path = path;
            self.path.enter(me);
        }
        flow
    }

    #[inline]
    pub(super) fn passages(&mut self, port: usize) -> &mut Passages {
        if self.to_ports.len() <= port {
            self.to_ports.resize_with(port + 1, Passages::default);
        }
        &mut self.to_ports[port]
    }

    /// Takes the path that has come with a message to this rank from its shelf.
    pub(super) fn take_sent(&mut self, me: Rank, key: Key, shelves: &Shelves) -> Option<CriticalPath> {
        shelves.clear(me, self.passed.drain(..));
        shelves.take(me, key)
    }

    /// Leaves the path of a message to a port on the shelf: many are taken off at once.
    #[inline(always)]
    pub(super) fn pass_over(&mut self, me: Rank, message: ToPort, shelves: &Shelves) {
        self.passed.push(message);
        if self.passed.len() == PASSED {
            shelves.clear(me, self.passed.drain(..));
        }
    }
}
