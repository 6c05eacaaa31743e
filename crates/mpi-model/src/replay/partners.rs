//! Since when the other sides of requests have been there: what tells waiting for a rank from waiting for data.

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use super::RankProcess;
use super::times::Alone;
use crate::distribution::{Quantity, Samples};
use crate::machine::Machine;
use crate::request::{Completion, Request, RequestId};
use crate::statistics::ActionKind;
use crate::wait_state::WaitState;

/// The other sides of the requests of a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Partners {
    of_program: Box<[Partner]>,
    of_parts: Vec<Partner>,
    scope: Scope,
    /// What has not been counted yet, where messages and waits are counted; that is not kept with the state of a rank.
    #[serde(skip)]
    samples: Option<Box<Samples>>,
}

/// The other side of a request. Of several the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Partner {
    /// When it was there.
    pub(super) ready: SimTime,
    /// What waiting for it is.
    pub(super) state: WaitState,
}

/// Whose waiting is accounted for: that of the program, or else of an operation beside it, of which only the last partner
/// matters, for whom the program will wait.
pub(super) type Scope = Option<Partner>;

impl Partner {
    /// A side that has always been there.
    pub(super) const NOBODY: Self = Self { ready: SimTime::ZERO, state: WaitState::LateSender };
}

impl Default for Partner {
    fn default() -> Self {
        Self::NOBODY
    }
}

impl Partners {
    /// Makes the table for so many requests of the program, and counts messages and waits, or does not.
    pub(super) fn new(requests: usize, counts: bool) -> Self {
        let samples = counts.then(Box::default);
        Self {
            samples,
            of_program: vec![Partner::NOBODY; requests].into(),
            of_parts: Vec::new(),
            scope: None,
        }
    }

    /// Takes in who is on the other side of a request.
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

    /// Returns who is on the other side of a request that is complete.
    #[inline]
    pub(super) fn of(&self, request: RequestId) -> Partner {
        match request.place() {
            Ok(slot) => self.of_program[slot],
            // Nobody may ever have been on the other side.
            Err(part) => self.of_parts.get(part).copied().unwrap_or_default(),
        }
    }

    /// Moves the partners of the program's requests on in time.
    pub(super) fn delay(&mut self, time: SimDuration) {
        self.of_program.iter_mut().for_each(|partner| partner.ready = partner.ready.saturating_add(time));
    }
}

impl<M: Machine> RankProcess<'_, M> {
    /// Takes in since when the other side of a request has been there.
    #[inline(always)]
    pub(super) fn meet(&mut self, request: RequestId, state: WaitState, ready: SimTime) {
        if let Some(partners) = &mut self.partners {
            partners.meet(request, Partner { ready, state });
        }
    }

    /// Accounts for what an operation waits from now on, instead of what has been in its place; doing it again undoes it.
    pub(super) fn swap_scope(&mut self, scope: &mut Scope) {
        if let Some(partners) = &mut self.partners {
            std::mem::swap(&mut partners.scope, scope);
        }
    }

    /// Lets the program know of an operation that has ended beside it for whom that waited last.
    pub(super) fn meet_operation(&mut self, request: RequestId, scope: Scope) {
        if let (Some(partners), Some(last)) = (&mut self.partners, scope) {
            partners.meet(request, last);
        }
    }

    /// Returns the last partner of those requests that are complete after now; `None` where nobody asks.
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

    /// Waits until this instant, if it has not passed, until then or earlier for the other side of a request.
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

    /// Waits until this instant, if it has not passed, until then or earlier for this partner.
    pub(super) fn wait_until(&mut self, at: SimTime, kind: ActionKind, partner: Partner) {
        if at > self.strand.clock {
            self.account_for(at, kind, partner);
            if self.causes.is_some() {
                self.follow_due(at, kind);
            }
            self.strand.clock = at;
        }
    }

    // Out of the way of replays that do not ask.
    #[inline(never)]
    fn account_for_request(&mut self, request: RequestId, at: SimTime, kind: ActionKind) {
        if let Some(partners) = self.partners.as_deref() {
            self.account_for(at, kind, partners.of(request));
        }
    }

    /// Accounts for a wait from now on until this instant.
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

    /// Counts a message that arrives at this instant, and records it, where messages are counted and recorded.
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

    /// Counts a value, where values are counted.
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

    /// Has all values counted.
    pub(super) fn flush_samples(&mut self) {
        if let Some(Partners { samples: Some(samples), .. }) = self.partners.as_deref_mut()
            && let Some(pool) = &self.world.pool
        {
            samples.flush(pool);
        }
    }

    /// Takes in that time passes in an action of this kind in which data are under way.
    pub(super) fn add_transfer(&mut self, kind: ActionKind, data: Alone) {
        if self.partners.as_deref().is_some_and(|partners| partners.scope.is_none()) {
            self.statistics.block(kind, WaitState::LateSender, SimDuration::ZERO, data.time);
        }
        self.pass_until_now(kind, data);
    }
}
