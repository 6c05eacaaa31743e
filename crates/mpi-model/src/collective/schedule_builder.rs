//! Builder of schedules that are written as straight-line code, round by round.

use std::collections::VecDeque;

use pdes_core::Bytes;

use super::{Schedule, Step, exchange, irecv, isend, recv, send};

/// Steps of the rounds that have been built and not yet taken.
#[derive(Debug, Default)]
pub(super) struct ScheduleBuilder {
    steps: VecDeque<Step>,
    /// Number of requests posted since the last [`wait_all`](Self::wait_all).
    requests: u32,
}

/// A request of a [`ScheduleBuilder`].
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestHandle(u32);

impl RequestHandle {
    /// Returns the `n`-th request since the last [`wait_all`](ScheduleBuilder::wait_all), from 0.
    pub(super) fn nth(n: u32) -> Self {
        Self(n)
    }
}

impl ScheduleBuilder {
    pub(super) fn send(&mut self, to: u32, bytes: Bytes) {
        self.steps.push_back(send(to, bytes));
    }

    pub(super) fn recv(&mut self, from: u32, bytes: Bytes) {
        self.steps.push_back(recv(from, bytes));
    }

    pub(super) fn isend(&mut self, to: u32, bytes: Bytes) -> RequestHandle {
        self.steps.push_back(isend(to, bytes));
        self.handle()
    }

    pub(super) fn irecv(&mut self, from: u32, bytes: Bytes) -> RequestHandle {
        self.steps.push_back(irecv(from, bytes));
        self.handle()
    }

    /// Appends a combined send and receive.
    pub(super) fn exchange(&mut self, to: u32, send_bytes: Bytes, from: u32, recv_bytes: Bytes) {
        self.steps.push_back(exchange(to, send_bytes, from, recv_bytes));
    }

    pub(super) fn wait(&mut self, RequestHandle(request): RequestHandle) {
        self.steps.push_back(Step::Wait { request });
    }

    /// Completes all requests; their handles are invalid afterwards.
    pub(super) fn wait_all(&mut self) {
        self.requests = 0;
        self.steps.push_back(Step::WaitAll);
    }

    fn handle(&mut self) -> RequestHandle {
        self.requests += 1;
        RequestHandle(self.requests - 1)
    }
}

/// Returns a schedule of rounds, each of which is built when the steps of the one before it have been taken.
pub(super) fn build_rounds<'a>(
    rounds: u64,
    mut round: impl FnMut(u64, &mut ScheduleBuilder) + Send + 'a,
) -> Schedule<'a> {
    let mut script = ScheduleBuilder::default();
    let mut written = 0;
    Box::new(std::iter::from_fn(move || {
        while script.steps.is_empty() && written < rounds {
            round(written, &mut script);
            written += 1;
        }
        script.steps.pop_front()
    }))
}

/// Returns a schedule of few steps, all built when the first is taken.
pub(super) fn build_schedule<'a>(write: impl Fn(&mut ScheduleBuilder) + Send + 'a) -> Schedule<'a> {
    build_rounds(1, move |_, script| write(script))
}
