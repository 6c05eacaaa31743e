//! The wrapper that profiles a logical process.

use serde::{Deserialize, Serialize};

use super::{Bins, Blocks};
use crate::{EventQueue, Fault, LpId, Outbox, Pause, Process, SimTime, Turn, Wake};

/// A process that behaves as the one that it wraps, and profiles it; see [`Profile`](super::Profile).
#[derive(Debug)]
pub struct Profiled<P: Process> {
    inner: P,
    outbox: Outbox<P::Token, P::WorkRequest>,
    blocks: Blocks,
    block: u32,
    /// Length of the longest chain of dependent steps up to the last step of the process.
    pub(super) depth: u64,
    /// Depths of tokens that were sent at or after the process's clock.
    ahead: EventQueue<u64>,
    pub(super) work: Bins,
    pub(super) tokens: u64,
    /// Number of tokens by the first level at which sender and receiver have different workers.
    pub(super) cuts: [u64; Blocks::MAX_LEVELS],
    pub(super) events: u64,
}

/// A token with its depth, the length of the longest chain of steps that led to it, and its send time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TokenWithDepth<T> {
    token: T,
    depth: u64,
    sent: SimTime,
}

impl<P: Process> Profiled<P> {
    pub(super) fn new(inner: P, blocks: Blocks, lp: u32) -> Self {
        Self {
            inner,
            outbox: Outbox::new(),
            blocks,
            block: blocks.of(lp),
            depth: 0,
            ahead: EventQueue::default(),
            work: Bins::default(),
            tokens: 0,
            cuts: [0; Blocks::MAX_LEVELS],
            events: 0,
        }
    }

    /// Returns the process inside.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Raises the depth to that of all tokens sent before the clock. A token counts as received only once the clock has
    /// passed its send time, because a transfer takes time.
    fn catch_up(&mut self) {
        let now = self.inner.clock();
        while let Some((_, depth)) = self.ahead.pop_before(now) {
            self.depth = self.depth.max(depth);
        }
    }

    /// Forwards the tokens and the work of the wrapped process, with depth `depth`.
    fn forward(&mut self, depth: u64, outbox: &mut Outbox<TokenWithDepth<P::Token>, P::WorkRequest>) {
        let sent = self.inner.clock();
        let mut next = 0;
        while let Some((to, token)) = self.outbox.token_at(next) {
            next += 1;
            self.count(to);
            outbox.send(to, TokenWithDepth { token, depth, sent });
        }
        self.outbox.clear();
        outbox.submitted.append(&mut self.outbox.submitted);
    }

    fn count(&mut self, to: LpId) {
        self.tokens += 1;
        if let Some(level) = self.blocks.first_level_apart(self.block, self.blocks.of(to.get())) {
            self.cuts[level] += 1;
        }
    }
}

impl<P: Process> Process for Profiled<P> {
    type Token = TokenWithDepth<P::Token>;
    type WorkRequest = P::WorkRequest;
    type Error = P::Error;

    fn deliver(
        &mut self,
        token: Self::Token,
        outbox: &mut Outbox<Self::Token, Self::WorkRequest>,
    ) -> Result<Wake, Fault<Self::Error>> {
        self.ahead.add(token.sent, token.depth);
        self.outbox.sender = outbox.sender;
        let wake = self.inner.deliver(token.token, &mut self.outbox);
        self.forward(self.depth.max(token.depth), outbox);
        wake
    }

    fn resume(
        &mut self,
        turn: &mut Turn,
        outbox: &mut Outbox<Self::Token, Self::WorkRequest>,
    ) -> Result<Pause, Fault<Self::Error>> {
        self.outbox.sender = outbox.sender;
        self.events += u64::from(turn.granted);
        loop {
            let granted = std::mem::take(&mut turn.granted);
            let mut one = Turn { horizon: turn.horizon, steps: turn.steps.min(1), granted, ..*turn };
            let pause = self.inner.resume(&mut one, &mut self.outbox);
            let steps = turn.steps.min(1) - one.steps;
            turn.steps -= steps;
            self.catch_up();
            self.depth += u64::from(steps);
            self.work.add(self.inner.clock(), steps);
            self.forward(self.depth, outbox);
            if !matches!(pause, Ok(Pause::OutOfSteps)) || turn.steps == 0 {
                return pause;
            }
        }
    }

    fn clock(&self) -> SimTime {
        self.inner.clock()
    }
}
