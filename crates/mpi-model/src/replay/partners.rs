//! Readiness of the peers of requests: separates waiting for a rank (wait states) from waiting for data (transfer).

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use super::RankProcess;
use super::times::Alone;
use crate::distribution::{Quantity, Samples};
use crate::machine::Machine;
use crate::request::{Completion, Request, RequestId};
use crate::statistics::ActionKind;
use crate::wait_state::WaitState;

/// Peers of the requests of a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Partners {
    of_program: Box<[Partner]>,
    of_parts: Vec<Partner>,
    scope: Scope,
    /// Buffered values of histograms, if requested; not part of the saved state of a rank.
    #[serde(skip)]
    samples: Option<Box<Samples>>,
}

/// Peer of a request. The greatest is the last one to be ready, which counts where several requests are completed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Partner {
    /// Time at which it was ready.
    pub(super) ready: SimTime,
    /// Wait state of waiting for it.
    pub(super) state: WaitState,
}

/// Attribution of waits: `None` attributes those of the program at once; a non-blocking operation only keeps its last peer, for
/// which the program will wait.
pub(super) type Scope = Option<Partner>;

impl Partner {
    /// A peer that has always been ready.
    pub(super) const NOBODY: Self = Self { ready: SimTime::ZERO, state: WaitState::LateSender };
}

impl Default for Partner {
    fn default() -> Self {
        Self::NOBODY
    }
}

impl Partners {
    /// Creates the table for this many requests of the program; with histograms of messages and waits, or not.
    pub(super) fn new(requests: usize, counts: bool) -> Self {
        let samples = counts.then(Box::default);
        Self {
            samples,
            of_program: vec![Partner::NOBODY; requests].into(),
            of_parts: Vec::new(),
            scope: None,
        }
    }

    /// Sets the peer of a request.
    #[inline(always)]
    pub(super) fn meet(&mut self, request: RequestId, partner: Partner) {
        match request.place() {
            Ok(slot) => self.of_program[slot] = partner,
            Err(part) => self.meet_part(part, partner),
        }
    }

    #[cold]
    fn meet_part(&mut self, part: usize, partner: Partner) {
        if self.of_parts.len() <= part {
            self.of_parts.resize(part + 1, Partner::NOBODY);
        }
        self.of_parts[part] = partner;
    }

    /// Returns the peer of a complete request.
    #[inline]
    pub(super) fn of(&self, request: RequestId) -> Partner {
        match request.place() {
            Ok(slot) => self.of_program[slot],
            // A request without a match has no peer.
            Err(part) => self.of_parts.get(part).copied().unwrap_or_default(),
        }
    }

    /// Shifts the peers of the program's requests in time.
    pub(super) fn delay(&mut self, time: SimDuration) {
        self.of_program.iter_mut().for_each(|partner| partner.ready = partner.ready.saturating_add(time));
    }
}

impl<M: Machine> RankProcess<'_, M> {
    /// Records the time at which the peer of a request was ready, if a breakdown is requested.
    #[inline(always)]
    pub(super) fn meet(&mut self, request: RequestId, state: WaitState, ready: SimTime) {
        if let Some(partners) = &mut self.partners {
            partners.meet(request, Partner { ready, state });
        }
    }

    /// Swaps the attribution of waits with that of an operation; a second call undoes the first.
    pub(super) fn swap_scope(&mut self, scope: &mut Scope) {
        if let Some(partners) = &mut self.partners {
            std::mem::swap(&mut partners.scope, scope);
        }
    }

    /// Makes the last peer of a non-blocking operation that has ended the peer of its request.
    pub(super) fn meet_operation(&mut self, request: RequestId, scope: Scope) {
        if let (Some(partners), Some(last)) = (&mut self.partners, scope) {
            partners.meet(request, last);
        }
    }

    /// Returns the last peer of those requests that are complete after now; `None` without a breakdown.
    pub(super) fn last_partner(&self, requests: impl Iterator<Item = RequestId>) -> Option<Partner> {
        let partners = self.partners.as_deref()?;
        let later = requests.filter_map(|request| match self.requests.get(request) {
            Request::Complete(Completion { at, .. }) if at > self.strand.clock => {
                let partner = partners.of(request);
                Some(Partner { ready: partner.ready.min(at), ..partner })
            }
            _ => None,
        });
        later.max()
    }

    /// Advances the clock to `at`, unless it has passed; the wait is first for the peer of a request, then for data.
    #[inline(always)]
    pub(super) fn wait_for(&mut self, request: RequestId, at: SimTime, kind: ActionKind) {
        if at > self.strand.clock {
            if self.partners.is_some() {
                self.account_for_request(request, at, kind);
            }
            if self.causes.is_some() {
                self.follow_request(request, at, kind);
            }
            self.strand.clock = at;
        }
    }

    /// Advances the clock to `at`, unless it has passed; the wait is first for this peer, then for data.
    pub(super) fn wait_until(&mut self, at: SimTime, kind: ActionKind, partner: Partner) {
        if at > self.strand.clock {
            self.account_for(at, kind, partner);
            if self.causes.is_some() {
                self.follow_due(at, kind);
            }
            self.strand.clock = at;
        }
    }

    // Out of line: most replays have no breakdown.
    #[inline(never)]
    fn account_for_request(&mut self, request: RequestId, at: SimTime, kind: ActionKind) {
        if let Some(partners) = self.partners.as_deref() {
            self.account_for(at, kind, partners.of(request));
        }
    }

    /// Attributes a wait from now until `at`.
    #[inline(always)]
    fn account_for(&mut self, at: SimTime, kind: ActionKind, Partner { ready, state }: Partner) {
        let now = self.strand.clock;
        let (ready, state) = (ready.max(now).min(at), state.inside(kind));
        match self.partners.as_deref_mut().and_then(|partners| partners.scope.as_mut()) {
            None => {
                self.statistics.block(kind, state, ready - now, at - ready);
                if ready > now {
                    self.sample(Quantity::Waiting, (ready - now).as_picos());
                    self.record_wait(kind, state, now, ready);
                }
            }
            Some(last) if ready > now => *last = (*last).max(Partner { ready, state }),
            Some(_) => {}
        }
    }

    /// Records the arrival of a message at `at`, in the timeline and the histograms, where requested.
    #[inline(always)]
    pub(super) fn take_arrival(&mut self, request: RequestId, at: SimTime) {
        self.record_arrival(request, at);
        if self.world.pool.is_some() {
            self.count_arrival(request, at);
        }
    }

    #[cold]
    #[inline(never)]
    fn count_arrival(&mut self, request: RequestId, at: SimTime) {
        let sent = self.partners.as_deref().map(|partners| partners.of(request).ready);
        if let Some(latency) = sent.and_then(|sent| at.checked_since(sent)) {
            self.count(Quantity::Latency, latency.as_picos());
        }
    }

    /// Adds a value to the histograms, where requested.
    #[inline(always)]
    pub(super) fn sample(&mut self, quantity: Quantity, value: u64) {
        if self.world.pool.is_some() {
            self.count(quantity, value);
        }
    }

    #[cold]
    #[inline(never)]
    fn count(&mut self, quantity: Quantity, value: u64) {
        if let Some(Partners { samples: Some(samples), .. }) = self.partners.as_deref_mut()
            && let Some(pool) = &self.world.pool
        {
            samples.keep(quantity, value, pool);
        }
    }

    /// Moves buffered values to the histograms.
    pub(super) fn flush_samples(&mut self) {
        if let Some(Partners { samples: Some(samples), .. }) = self.partners.as_deref_mut()
            && let Some(pool) = &self.world.pool
        {
            samples.flush(pool);
        }
    }

    /// Attributes time in an action of this kind to the transfer of data.
    pub(super) fn add_transfer(&mut self, kind: ActionKind, data: Alone) {
        if self.partners.as_deref().is_some_and(|partners| partners.scope.is_none()) {
            self.statistics.block(kind, WaitState::LateSender, SimDuration::ZERO, data.time);
        }
        self.pass_until_now(kind, data);
    }
}
