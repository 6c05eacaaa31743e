//! Breakdown of the time of a rank by call site, kind of action and wait state.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use pdes_core::SimDuration;
use serde::{Deserialize, Serialize};
use trace_mmap::LocationId;

use crate::cause::Cause;
use crate::statistics::{ActionKind, Totals, extrapolate, extrapolate_time};
use crate::wait_state::WaitState;

/// Breakdown of the time of a rank.
///
/// # Laws
/// The times of all kinds in all regions add up to the end of the rank, to the picosecond; waiting plus transfer of a kind
/// never exceed its time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Breakdown {
    /// Regions in the order of first entry. The first one precedes all call sites.
    regions: Vec<Region>,
    /// Index of the region of each call site.
    region_of_site: Vec<Option<NonZeroU32>>,
    /// Waiting by region, kind of action, wait state, and what the late rank did, on request.
    delays: Option<BTreeMap<(u32, DelayKind), SimDuration>>,
    /// Index of the current region.
    current: usize,
    /// Totals of the rank when it entered the current region.
    totals_at_entry: Totals,
}

/// Time of a rank from one call site that the trace names to the next, summed over all visits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    from = "(Option<LocationId>, Vec<(ActionKind, Share)>)",
    into = "(Option<LocationId>, Vec<(ActionKind, Share)>)"
)]
pub struct Region {
    site: Option<LocationId>,
    /// Position of each kind in `shares`.
    share_of_kind: [Option<ShareNumber>; ActionKind::ALL.len()],
    /// Shares in the order in which kinds first occurred.
    shares: Vec<(ActionKind, Share)>,
}

/// Waiting of a rank at one call site in actions of one kind for ranks that were late by one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Call site of the actions that waited; `None` before the first one.
    pub site: Option<LocationId>,
    /// Kind of these actions.
    pub kind: ActionKind,
    /// Wait state.
    pub state: WaitState,
    /// Cause of the lateness of the other ranks.
    pub cause: Cause,
    /// Time of waiting.
    pub time: SimDuration,
}

/// Kind of action that waits, its wait state, and what the late rank did.
type DelayKind = (ActionKind, WaitState, Cause);

/// Number of combinations of a wait and its cause that a rank tells apart.
const MAX_DELAYS: usize = 256;

/// One more than the index of a share; there are fewer than 255 kinds.
type ShareNumber = std::num::NonZeroU8;

/// Composition of the time of one kind of action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Number of completed actions.
    pub count: u64,
    /// Their time, the following parts included.
    pub time: SimDuration,
    /// Time spent waiting for ranks that were not ready, by [`WaitState`].
    pub waiting: [SimDuration; WaitState::COUNT],
    /// Time spent waiting for data while both sides were ready.
    pub transfer: SimDuration,
    /// The part of [`WaitState::LateSender`] in which a message that the rank received later had been sent already.
    pub wrong_order: SimDuration,
}

/// Returns the name of the region of a location of the trace. A tracer writes a named region as line 0 of its name; other call
/// sites keep their line.
pub fn region_name(location: &str) -> &str {
    location.strip_suffix(":0").unwrap_or(location)
}

impl Default for Breakdown {
    fn default() -> Self {
        Self {
            regions: vec![Region::new(None)],
            region_of_site: Vec::new(),
            delays: None,
            current: 0,
            totals_at_entry: Totals::default(),
        }
    }
}

/// Compares the sums only, not the state of an unfinished rank.
impl PartialEq for Breakdown {
    fn eq(&self, other: &Self) -> bool {
        self.regions == other.regions && self.delays == other.delays
    }
}

impl Eq for Breakdown {}

impl Breakdown {
    pub(crate) fn new(has_causes: bool) -> Self {
        Self { delays: has_causes.then(BTreeMap::new), ..Self::default() }
    }

    /// Returns the regions, in the order of first entry.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter()
    }

    /// Returns the waiting for other ranks where [requested](crate::Replay::with_causes). Of more than 256 combinations, the later ones
    /// are counted without their causes.
    pub fn delays(&self) -> impl Iterator<Item = Delay> {
        self.delays.iter().flatten().map(|(&(region, (kind, state, cause)), &time)| {
            let site = self.regions[region as usize].site;
            Delay { site, kind, state, cause, time }
        })
    }

    /// Returns the composition of the time of a kind, over all regions.
    pub fn total(&self, kind: ActionKind) -> Share {
        let mut total = Share::default();
        self.regions.iter().filter_map(|region| region.share(kind)).for_each(|share| total.add(share));
        total
    }

    /// Returns the composition of the whole time.
    pub fn all(&self) -> Share {
        let mut total = Share::default();
        self.regions.iter().flat_map(Region::shares).for_each(|(_, share)| total.add(share));
        total
    }

    /// Goes to another call site; attributes the growth of `totals` to the one before.
    pub(crate) fn enter_region(&mut self, site: LocationId, totals: &Totals) {
        self.attribute(totals);
        self.set_site(site);
    }

    /// Attributes the growth of `totals` since the entry of the current region to that region.
    pub(crate) fn attribute(&mut self, totals: &Totals) {
        let region = &mut self.regions[self.current];
        for (kind, count, time) in totals.growth_since(&self.totals_at_entry) {
            let share = region.share_mut(kind);
            share.count += count;
            share.time += time;
        }
        self.totals_at_entry.clone_from(totals);
    }

    /// Returns a copy that includes all of `totals`.
    pub(crate) fn including(&self, totals: &Totals) -> Self {
        let mut all = self.clone();
        all.attribute(totals);
        all
    }

    fn set_site(&mut self, site: LocationId) {
        if self.region_of_site.len() <= site.index() {
            self.region_of_site.resize(site.index() + 1, None);
        }
        let known = self.region_of_site[site.index()];
        self.current = known.map_or(self.regions.len(), |region| region.get() as usize);
        if known.is_none() {
            self.region_of_site[site.index()] = NonZeroU32::new(self.regions.len() as u32);
            self.regions.push(Region::new(Some(site)));
        }
    }

    /// Adds a wait of an action of this kind: first for another rank, then for data.
    #[inline(always)]
    pub(crate) fn add_wait(
        &mut self,
        kind: ActionKind,
        state: WaitState,
        waiting: SimDuration,
        transfer: SimDuration,
    ) {
        let share = self.regions[self.current].share_mut(kind);
        if waiting > SimDuration::ZERO {
            share.waiting[state as usize] += waiting;
        }
        share.transfer += transfer;
    }

    /// Adds a wait of an action of this kind for a rank that was late by something.
    #[inline(always)]
    pub(crate) fn add_delay(&mut self, wait: DelayKind, waiting: SimDuration) {
        if self.delays.is_some() {
            self.count_delay(wait, waiting);
        }
    }

    #[cold]
    fn count_delay(&mut self, (kind, state, cause): DelayKind, waiting: SimDuration) {
        let Some(delays) = &mut self.delays else { return };
        let key = |cause| (self.current as u32, (kind, state, cause));
        let is_full = delays.len() >= MAX_DELAYS && !delays.contains_key(&key(cause));
        *delays.entry(key(if is_full { Cause::default() } else { cause })).or_default() += waiting;
    }

    /// Adds to the time of a region in which messages were received in the wrong order.
    #[cold]
    pub(crate) fn add_wrong_order(&mut self, region: usize, kind: ActionKind, time: SimDuration) {
        self.regions[region].share_mut(kind).wrong_order += time;
    }

    /// Returns the index of the current region, to which later time is attributed.
    pub(crate) fn current_region(&self) -> usize {
        self.current
    }

    /// Returns the breakdown after `times` more repetitions of what was added since `before`; `None` where a sum overflows.
    pub(crate) fn extrapolate(&self, before: &Self, times: u64) -> Option<Self> {
        let mut later = self.clone();
        for (index, region) in later.regions.iter_mut().enumerate() {
            let earlier = before.regions.get(index);
            for (kind, share) in &mut region.shares {
                let earlier = earlier.and_then(|region| region.share(*kind)).copied().unwrap_or_default();
                *share = share.extrapolate(&earlier, times)?;
            }
        }
        for (key, time) in later.delays.iter_mut().flatten() {
            let earlier =
                before.delays.as_ref().and_then(|delays| delays.get(key)).copied().unwrap_or_default();
            *time = extrapolate_time(*time, earlier, times)?;
        }
        later.totals_at_entry = self.totals_at_entry.extrapolate(&before.totals_at_entry, times)?;
        Some(later)
    }
}

/// The positions of kinds follow from the shares.
impl From<(Option<LocationId>, Vec<(ActionKind, Share)>)> for Region {
    fn from((site, shares): (Option<LocationId>, Vec<(ActionKind, Share)>)) -> Self {
        let mut region = Self::new(site);
        for (kind, share) in shares {
            *region.share_mut(kind) = share;
        }
        region
    }
}

impl From<Region> for (Option<LocationId>, Vec<(ActionKind, Share)>) {
    fn from(region: Region) -> Self {
        (region.site, region.shares)
    }
}

impl PartialEq for Region {
    fn eq(&self, other: &Self) -> bool {
        self.site == other.site && self.shares().eq(other.shares())
    }
}

impl Eq for Region {}

impl Region {
    fn new(site: Option<LocationId>) -> Self {
        Self { site, share_of_kind: [None; ActionKind::ALL.len()], shares: Vec::new() }
    }

    /// Returns the call site; `None` for the time before the trace names any.
    pub fn site(&self) -> Option<LocationId> {
        self.site
    }

    /// Returns the shares by kind of action, in the order of kinds.
    pub fn shares(&self) -> impl Iterator<Item = (ActionKind, &Share)> {
        ActionKind::ALL.into_iter().filter_map(|kind| Some((kind, self.share(kind)?)))
    }

    /// Returns the time in actions of a kind, waiting included.
    pub fn time(&self, kind: ActionKind) -> SimDuration {
        self.share(kind).map_or(SimDuration::ZERO, |share| share.time)
    }

    fn share(&self, kind: ActionKind) -> Option<&Share> {
        let index = self.share_of_kind[kind as usize]?;
        Some(&self.shares[usize::from(index.get()) - 1].1)
    }

    #[inline]
    fn share_mut(&mut self, kind: ActionKind) -> &mut Share {
        let index = match self.share_of_kind[kind as usize] {
            Some(index) => usize::from(index.get()) - 1,
            None => self.add_share(kind),
        };
        &mut self.shares[index].1
    }

    #[cold]
    fn add_share(&mut self, kind: ActionKind) -> usize {
        // Exact capacity: there may be millions of ranks.
        self.shares.reserve_exact(1);
        self.shares.push((kind, Share::default()));
        self.share_of_kind[kind as usize] = ShareNumber::new(self.shares.len() as u8);
        self.shares.len() - 1
    }
}

impl Share {
    /// Returns the time spent waiting for ranks that were not ready.
    pub fn waited(&self) -> SimDuration {
        self.waiting.into_iter().sum()
    }

    /// Returns the time that is neither waiting nor transfer: the computation itself, or work of the library.
    pub fn own(&self) -> SimDuration {
        let blocked = self.waited() + self.transfer;
        SimDuration::from_picos(self.time.as_picos() - blocked.as_picos())
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.time += other.time;
        self.waiting.iter_mut().zip(other.waiting).for_each(|(sum, more)| *sum += more);
        self.transfer += other.transfer;
        self.wrong_order += other.wrong_order;
    }

    fn extrapolate(&self, before: &Self, times: u64) -> Option<Self> {
        let mut later = Self {
            count: extrapolate(self.count, before.count, times)?,
            time: extrapolate_time(self.time, before.time, times)?,
            transfer: extrapolate_time(self.transfer, before.transfer, times)?,
            wrong_order: extrapolate_time(self.wrong_order, before.wrong_order, times)?,
            ..*self
        };
        for (waiting, before) in later.waiting.iter_mut().zip(before.waiting) {
            *waiting = extrapolate_time(*waiting, before, times)?;
        }
        Some(later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picos(picos: u64) -> SimDuration {
        SimDuration::from_picos(picos)
    }

    /// Computes, then receives at a call site.
    fn iteration(breakdown: &mut Breakdown, totals: &mut Totals) {
        totals.add(ActionKind::Compute, 1, picos(10));
        breakdown.enter_region(LocationId::new(3), totals);
        breakdown.add_wait(ActionKind::Recv, WaitState::LateSender, picos(4), picos(2));
        breakdown.add_wait(ActionKind::Recv, WaitState::LateSender, picos(1), picos(0));
        totals.add(ActionKind::Recv, 1, picos(9));
    }

    #[test]
    fn shares_add_up() {
        let (mut breakdown, mut totals) = (Breakdown::default(), Totals::default());
        iteration(&mut breakdown, &mut totals);
        iteration(&mut breakdown, &mut totals);
        breakdown.attribute(&totals);
        breakdown.attribute(&totals);
        let sites: Vec<_> = breakdown.regions().map(Region::site).collect();
        assert_eq!(sites, [None, Some(LocationId::new(3))]);
        let recv = breakdown.total(ActionKind::Recv);
        assert_eq!((recv.count, recv.time, recv.transfer), (2, picos(18), picos(4)));
        assert_eq!((recv.waited(), recv.own()), (picos(10), picos(4)));
        assert_eq!(breakdown.total(ActionKind::Compute).time, picos(20), "before the site, and after it");
        assert_eq!(breakdown.all().time, picos(38));
    }

    #[test]
    fn breakdowns_grow_by_what_was_added() {
        let (mut before, mut totals) = (Breakdown::default(), Totals::default());
        iteration(&mut before, &mut totals);
        let mut now = before.clone();
        iteration(&mut now, &mut totals);
        let mut later = now.extrapolate(&before, 3).unwrap();
        let mut expected = now.clone();
        (0..3).for_each(|_| iteration(&mut expected, &mut totals));
        assert_eq!(later, expected);
        for breakdown in [&mut later, &mut expected] {
            iteration(breakdown, &mut totals.clone());
        }
        assert_eq!(later, expected, "both continue from the same totals");
        assert_eq!(now.extrapolate(&before, u64::MAX / 2), None);
    }

    #[test]
    fn breakdowns_survive_a_round_trip() {
        let (mut breakdown, mut totals) = (Breakdown::default(), Totals::default());
        iteration(&mut breakdown, &mut totals);
        breakdown.attribute(&totals);
        crate::round_trip::assert_round_trip(&breakdown);
    }
}
