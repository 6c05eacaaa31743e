//! Where the time of a rank goes, by call site and kind of action.

use std::num::NonZeroU32;

use pdes_core::{SimDuration, Wire};
use serde::{Deserialize, Serialize};
use trace_mmap::LocationId;

use crate::statistics::{ActionKind, Totals, extrapolate, extrapolate_time};
use crate::wait_state::WaitState;

/// Where the time of a rank goes.
///
/// # Laws
/// The times of all kinds in all regions add up to the end of the rank, to the picosecond; the waiting and the transfer of a
/// kind never exceed its time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Breakdown {
    /// The first one is what comes before any call site is named.
    regions: Vec<Region>,
    /// The regions of call sites, by the numbers of these.
    of_site: Vec<Option<NonZeroU32>>,
    /// The region in which the rank is.
    current: usize,
    /// What the rank had done when it came there.
    since: Totals,
}

/// What a rank does from one call site that the trace names to the next.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    from = "(Option<LocationId>, Vec<(ActionKind, Share)>)",
    into = "(Option<LocationId>, Vec<(ActionKind, Share)>)"
)]
pub struct Region {
    site: Option<LocationId>,
    /// The places of kinds among the shares.
    places: [Option<Place>; ActionKind::ALL.len()],
    /// In the order in which kinds first occurred.
    shares: Vec<(ActionKind, Share)>,
}

/// The place of a share, one more than its index: there are fewer kinds than that.
type Place = std::num::NonZeroU8;

/// What the time of one kind of action is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Actions that have ended.
    pub count: u64,
    /// Their time, all that follows included.
    pub time: SimDuration,
    /// Waiting for ranks that were not there, by [`WaitState`].
    pub waiting: [SimDuration; WaitState::COUNT],
    /// Waiting for data to arrive where both sides were there.
    pub transfer: SimDuration,
}

/// Returns a region of the program by its name, of a location of the trace: a tracer writes it as line 0 of its name. Other call
/// sites keep their line.
pub fn region_name(location: &str) -> &str {
    location.strip_suffix(":0").unwrap_or(location)
}

impl Default for Breakdown {
    fn default() -> Self {
        Self { regions: vec![Region::new(None)], of_site: Vec::new(), current: 0, since: Totals::default() }
    }
}

/// Equal breakdowns say that times went to the same.
impl PartialEq for Breakdown {
    fn eq(&self, other: &Self) -> bool {
        self.regions == other.regions
    }
}

impl Eq for Breakdown {}

impl Breakdown {
    /// Returns the regions, in the order in which the rank first came to them.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter()
    }

    /// Returns what the time of a kind is made of, in all regions.
    pub fn total(&self, kind: ActionKind) -> Share {
        let mut total = Share::default();
        self.regions.iter().filter_map(|region| region.share(kind)).for_each(|share| total.add(share));
        total
    }

    /// Returns what all time is made of.
    pub fn all(&self) -> Share {
        let mut total = Share::default();
        self.regions.iter().flat_map(Region::shares).for_each(|(_, share)| total.add(share));
        total
    }

    /// Goes to another call site, with what the rank has done so far.
    pub(crate) fn enter(&mut self, site: LocationId, totals: &Totals) {
        self.account_for(totals);
        self.go_to(site);
    }

    /// Puts what the rank has done since it came to the present call site down to that.
    pub(crate) fn account_for(&mut self, totals: &Totals) {
        let region = &mut self.regions[self.current];
        for (kind, count, time) in totals.since(&self.since) {
            let share = region.share_mut(kind);
            share.count += count;
            share.time += time;
        }
        self.since.clone_from(totals);
    }

    /// Returns what this is with all that the rank has done.
    pub(crate) fn up_to(&self, totals: &Totals) -> Self {
        let mut all = self.clone();
        all.account_for(totals);
        all
    }

    fn go_to(&mut self, site: LocationId) {
        if self.of_site.len() <= site.index() {
            self.of_site.resize(site.index() + 1, None);
        }
        let known = self.of_site[site.index()];
        self.current = known.map_or(self.regions.len(), |region| region.get() as usize);
        if known.is_none() {
            self.of_site[site.index()] = NonZeroU32::new(self.regions.len() as u32);
            self.regions.push(Region::new(Some(site)));
        }
    }

    /// Takes in that an action of this kind waits for another rank, then for data.
    #[inline(always)]
    pub(crate) fn block(
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

    /// Where the rank is; it matters to what comes next.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Returns what this is after what was added since `before` is added so many times more; `None` where a sum leaves its
    /// range.
    pub(crate) fn extrapolate(&self, before: &Self, times: u64) -> Option<Self> {
        let mut later = self.clone();
        for (index, region) in later.regions.iter_mut().enumerate() {
            let earlier = before.regions.get(index);
            for (kind, share) in &mut region.shares {
                let earlier = earlier.and_then(|region| region.share(*kind)).copied().unwrap_or_default();
                *share = share.extrapolate(&earlier, times)?;
            }
        }
        later.since = self.since.extrapolate(&before.since, times)?;
        Some(later)
    }

    /// Writes what a rank has found for another process of the operating system.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        (self.regions.len() as u32).write(bytes);
        for region in &self.regions {
            (region.site.map(LocationId::get), region.shares.len() as u8).write(bytes);
            for (kind, share) in region.shares() {
                kind.write(bytes);
                share.write(bytes);
            }
        }
    }

    /// Reads what [`write`](Breakdown::write) wrote; `None` where the bytes are something else.
    pub(crate) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let mut breakdown = Self::default();
        for _ in 0..u32::read(bytes)? {
            let (site, shares): (Option<u32>, u8) = Wire::read(bytes)?;
            match site {
                Some(site) => breakdown.go_to(LocationId::new(site)),
                None => breakdown.current = 0,
            }
            for _ in 0..shares {
                let kind = ActionKind::read(bytes)?;
                *breakdown.regions[breakdown.current].share_mut(kind) = Share::read(bytes)?;
            }
        }
        Some(breakdown)
    }
}

/// The places follow from the shares.
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
        Self { site, places: [None; ActionKind::ALL.len()], shares: Vec::new() }
    }

    /// Returns the call site; `None` for what comes before the trace names any.
    pub fn site(&self) -> Option<LocationId> {
        self.site
    }

    /// Returns what the rank did there, by kind of action, in the order of kinds.
    pub fn shares(&self) -> impl Iterator<Item = (ActionKind, &Share)> {
        ActionKind::ALL.into_iter().filter_map(|kind| Some((kind, self.share(kind)?)))
    }

    fn share(&self, kind: ActionKind) -> Option<&Share> {
        let place = self.places[kind as usize]?;
        Some(&self.shares[usize::from(place.get()) - 1].1)
    }

    #[inline]
    fn share_mut(&mut self, kind: ActionKind) -> &mut Share {
        let place = match self.places[kind as usize] {
            Some(place) => usize::from(place.get()) - 1,
            None => self.make(kind),
        };
        &mut self.shares[place].1
    }

    #[cold]
    fn make(&mut self, kind: ActionKind) -> usize {
        // No room for more: there are many ranks.
        self.shares.reserve_exact(1);
        self.shares.push((kind, Share::default()));
        self.places[kind as usize] = Place::new(self.shares.len() as u8);
        self.shares.len() - 1
    }
}

impl Share {
    /// Returns the time spent waiting for ranks that were not there.
    pub fn waited(&self) -> SimDuration {
        self.waiting.into_iter().sum()
    }

    /// Returns what is neither waiting nor transfer: the computation itself, or what the library does.
    pub fn own(&self) -> SimDuration {
        let blocked = self.waited() + self.transfer;
        SimDuration::from_picos(self.time.as_picos() - blocked.as_picos())
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.time += other.time;
        self.waiting.iter_mut().zip(other.waiting).for_each(|(sum, more)| *sum += more);
        self.transfer += other.transfer;
    }

    fn extrapolate(&self, before: &Self, times: u64) -> Option<Self> {
        let mut later = Self {
            count: extrapolate(self.count, before.count, times)?,
            time: extrapolate_time(self.time, before.time, times)?,
            transfer: extrapolate_time(self.transfer, before.transfer, times)?,
            ..*self
        };
        for (waiting, before) in later.waiting.iter_mut().zip(before.waiting) {
            *waiting = extrapolate_time(*waiting, before, times)?;
        }
        Some(later)
    }
}

/// All numbers, in the order of the fields.
impl Wire for Share {
    const SIZE: usize = (3 + WaitState::COUNT) * u64::SIZE;

    fn write(&self, bytes: &mut Vec<u8>) {
        (self.count, self.time.as_picos(), self.transfer.as_picos()).write(bytes);
        self.waiting.iter().for_each(|waiting| waiting.as_picos().write(bytes));
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (count, time, transfer) = Wire::read(bytes)?;
        let mut waiting = [SimDuration::ZERO; WaitState::COUNT];
        for sum in &mut waiting {
            *sum = SimDuration::from_picos(Wire::read(bytes)?);
        }
        let [time, transfer] = [time, transfer].map(SimDuration::from_picos);
        Some(Self { count, time, waiting, transfer })
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
        breakdown.enter(LocationId::new(3), totals);
        breakdown.block(ActionKind::Recv, WaitState::LateSender, picos(4), picos(2));
        breakdown.block(ActionKind::Recv, WaitState::LateSender, picos(1), picos(0));
        totals.add(ActionKind::Recv, 1, picos(9));
    }

    #[test]
    fn shares_add_up() {
        let (mut breakdown, mut totals) = (Breakdown::default(), Totals::default());
        iteration(&mut breakdown, &mut totals);
        iteration(&mut breakdown, &mut totals);
        breakdown.account_for(&totals);
        breakdown.account_for(&totals);
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
        assert_eq!(later, expected, "they go on from the same totals");
        assert_eq!(now.extrapolate(&before, u64::MAX / 2), None);
    }

    #[test]
    fn breakdowns_come_back() {
        let (mut breakdown, mut totals) = (Breakdown::default(), Totals::default());
        iteration(&mut breakdown, &mut totals);
        breakdown.account_for(&totals);
        let mut bytes = Vec::new();
        breakdown.write(&mut bytes);
        assert_eq!(Breakdown::read(&mut &bytes[..bytes.len() - 1]), None, "too short");
        let rest = &mut bytes.as_slice();
        assert_eq!(Breakdown::read(rest), Some(breakdown));
        assert!(rest.is_empty());
    }
}
