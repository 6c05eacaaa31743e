//! Links of a region, their flows, and the rates of these.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pdes_core::{SimTime, State};
use serde::{Deserialize, Serialize};

use super::meter::Meter;
use super::route::RegionUsage;
use super::unit::{self, FULL_WEIGHT, UNLIMITED, filling_level, rate_at};
use crate::link_load::load_integrator::LoadIntegrator;

/// The links of a region and the flows that use them.
///
/// The level of a link is the greatest level of those of its flows that no other link holds further back. The rule that
/// defines it, the *fixed point*, is that of [`crate::epoch`]; `fixed_point.rs` solves it.
///
/// The *open* flows of a link are those that it is the bottleneck of, and new ones: the link may change their rates.
#[derive(Debug)]
pub(super) struct RegionSolver {
    pub(super) links: Vec<Link>,
    pub(super) flows: Vec<Flow>,
    pub(super) free_slots: Vec<u32>,
    /// Flows that began since the last solve, some of which may have ended.
    pub(super) new_flows: Vec<u32>,
    /// Number of those that have not ended.
    pub(super) new_alive: u32,
    /// Number of full links.
    pub(super) full_links: u32,
    /// Links whose levels may be wrong, by the least level at which something changed; also stale entries with former
    /// such levels.
    pub(super) dirty_links: BinaryHeap<Reverse<(u64, u32)>>,
    /// Flows whose rates changed since the last solve, each once.
    pub(super) changed_flows: Vec<u32>,
    /// Links whose levels changed since the last exchange, each once.
    pub(super) changed_links: Vec<u32>,
    pub(super) candidates: Vec<super::fixed_point::Candidate>,
    /// Present time, for the meters.
    pub(super) now: SimTime,
    /// Length of an epoch [ps].
    pub(super) epoch: u64,
    /// Links with reserves or possible debts, each once.
    pub(super) reserve_links: Vec<u32>,
    /// Those of them that are not full and have no open flow, during a solve.
    pub(super) spare_links: Vec<u32>,
    /// Number of link evaluations.
    pub(super) evaluations: u64,
}

#[derive(Debug, State)]
#[state(in_place)]
pub(super) struct Link {
    /// Capacity, in 1/20 of a rate, as all loads.
    #[state(skip = "a parameter")]
    pub(super) capacity: u64,
    #[state(skip = "a parameter")]
    pub(super) is_fat_pipe: bool,
    /// Least level at which something changed since the last evaluation; [`UNLIMITED`] if nothing did.
    pub(super) dirty_from: u64,
    /// The link is in `changed_links`.
    pub(super) has_changed: bool,
    /// Level of the link; [`UNLIMITED`] if it is the bottleneck of no flow.
    pub(super) level: u64,
    pub(super) load: u64,
    /// Load of the open flows.
    pub(super) open_load: u64,
    /// Sum of the shares of the open flows, each times its weight.
    pub(super) open_shares: u64,
    /// Sums over all flows of their weights, and of their shares times their weights.
    pub(super) weights: u64,
    pub(super) shares: u64,
    #[state(plain)]
    pub(super) members: Vec<Member>,
    pub(super) meter: Meter,
    /// Recorder of the load, if enabled; not for fat pipes.
    pub(super) integrator: Option<Box<LoadIntegrator>>,
    /// Reserve: mean load in this epoch, beyond the load at the boundary, of flows that will begin, of flows that
    /// will end (negative), and of the debt.
    pub(super) reserve: i64,
    /// Reserve for the coming epoch, as far as it is known.
    pub(super) planned_reserve: i64,
    pub(super) has_reserve_entry: bool,
    /// Mean load over the coming epoch of the flows that end in it, during the offers of rates.
    pub(super) ending_load: u64,
    /// First announced flow on the link, during the offers of rates.
    pub(super) first_arrival: Option<u32>,
}

/// A flow as a link sees it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) flow: u32,
    /// Position of this link in [`Flow::uses`].
    pub(super) place: u32,
    pub(super) weight: u32,
    /// Share of the flow times its weight.
    pub(super) shares: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Flow {
    pub(super) share: u64,
    pub(super) bound: u64,
    /// Level at which the flow reaches its bound.
    pub(super) ceiling: u64,
    /// Least level that other regions allow the flow.
    pub(super) cap: u64,
    pub(super) level: u64,
    pub(super) rate: u64,
    pub(super) bottleneck: Bottleneck,
    pub(super) has_changed: bool,
    pub(super) is_alive: bool,
    pub(super) uses: Vec<Use>,
}

/// Bottleneck of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Bottleneck {
    /// Unknown until the next solve: the flow is new.
    New,
    /// Its own bound.
    Bound,
    /// A link of another region.
    OtherRegion,
    /// None: the flow keeps its rate, because it ends in the epoch.
    Ending,
    /// None: a short flow, which ends in the epoch in which it begins. Links count it in their sums only; `is_open`
    /// tells whether among the open flows.
    Short { is_open: bool },
    /// A link of this region.
    Link(u32),
}

/// A link as a flow sees it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Use {
    pub(super) link: u32,
    /// Position of the flow in [`Link::members`].
    pub(super) place: u32,
    pub(super) weight: u32,
}

impl Link {
    /// Counts the load up to now, before it changes.
    #[inline]
    pub(super) fn count_load(&mut self, now: SimTime, epoch: u64) {
        if !self.is_fat_pipe {
            self.meter.count(self.load, self.capacity, now, epoch);
            self.record_load(now);
        }
    }

    /// Records the load up to now, before it or the level changes, if recording is enabled.
    #[inline]
    pub(super) fn record_load(&mut self, now: SimTime) {
        if let Some(gauge) = &mut self.integrator {
            gauge.count(self.load, self.capacity, self.level != UNLIMITED, now);
        }
    }

    /// Returns the capacity for the present flows that makes the mean load of the epoch the capacity of the link.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        self.capacity.saturating_add_signed(-self.reserve)
    }

    /// Returns whether the link has no flows, and thus room for one regardless of its reserve.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.weights == 0 && self.level == UNLIMITED
    }

    /// Returns whether the load alone shows that the link is not full.
    #[inline]
    pub(super) fn has_spare_capacity(&self) -> bool {
        // There is room for one more level of all flows.
        !self.is_fat_pipe && self.load + 2 * self.weights <= self.room()
    }

    /// Returns the rate that a flow may have that joins now: the spare capacity, or its part of the capacity of the
    /// open flows.
    #[inline]
    pub(super) fn offered_rate(&self, share: u64, weight: u32, bound: u64) -> u64 {
        let spare = self.capacity.saturating_sub(self.load);
        if u128::from(bound) * u128::from(weight) <= u128::from(spare) || self.is_fat_pipe {
            return bound;
        }
        let spare = spare / u64::from(weight);
        let level = self.joining_level(share * u64::from(weight));
        spare.max(rate_at(level, share, bound)).max(1)
    }

    /// Returns the level that new flows of these shares, each times its weight, may have together when they join now.
    #[inline]
    pub(super) fn joining_level(&self, shares: u64) -> u64 {
        if self.is_fat_pipe {
            return UNLIMITED;
        }
        let spare = filling_level(self.capacity.saturating_sub(self.load), shares);
        let held = self.capacity.saturating_sub(self.load - self.open_load);
        spare
            .max(filling_level(held, self.open_shares + shares))
            .max(filling_level(self.capacity, self.shares + shares))
    }
}

impl RegionSolver {
    pub(super) fn new(links: impl Iterator<Item = (f64, bool)>, epoch: u64) -> Self {
        let link = |(bandwidth, is_pipe): (f64, bool)| Link {
            capacity: unit::capacity(bandwidth),
            is_fat_pipe: is_pipe,
            dirty_from: UNLIMITED,
            has_changed: false,
            level: UNLIMITED,
            load: 0,
            open_load: 0,
            open_shares: 0,
            weights: 0,
            shares: 0,
            members: Vec::new(),
            meter: Meter::default(),
            integrator: None,
            reserve: 0,
            planned_reserve: 0,
            has_reserve_entry: false,
            ending_load: 0,
            first_arrival: None,
        };
        Self {
            links: links.map(link).collect(),
            flows: Vec::new(),
            free_slots: Vec::new(),
            new_flows: Vec::new(),
            new_alive: 0,
            full_links: 0,
            dirty_links: BinaryHeap::new(),
            changed_flows: Vec::new(),
            changed_links: Vec::new(),
            candidates: Vec::new(),
            now: SimTime::ZERO,
            epoch,
            reserve_links: Vec::new(),
            spare_links: Vec::new(),
            evaluations: 0,
        }
    }

    /// Enables the recording of link loads; `has_changed` tells whether links may have other capacities than on the platform.
    pub(super) fn record_loads(&mut self, has_changed: bool) {
        for link in self.links.iter_mut().filter(|link| !link.is_fat_pipe) {
            let mut integrator = LoadIntegrator::default();
            if has_changed {
                integrator.change_capacity(link.capacity, link.capacity);
            }
            link.integrator = Some(Box::new(integrator));
        }
    }

    /// Counts the bytes of a message on the links of its route.
    pub(super) fn count_bytes(&mut self, usages: &[RegionUsage], bytes: u64) {
        for usage in usages {
            if let Some(gauge) = &mut self.links[usage.link as usize].integrator {
                // Weights are truncated to whole crossings: acknowledgements on the reverse route do not count as
                // bytes of messages.
                gauge.bytes += bytes * u64::from(usage.weight / FULL_WEIGHT);
            }
        }
    }

    /// Returns the rate at which the links of this region let an unannounced flow of a volume begin.
    #[inline]
    pub(super) fn offered_rate(
        &mut self,
        usages: &[RegionUsage],
        share: u64,
        bound: u64,
        volume: u128,
    ) -> u64 {
        let (now, epoch) = (self.now, self.epoch);
        let time = epoch - now.as_picos() % epoch;
        let mut rate = bound;
        for &RegionUsage { link, weight } in usages {
            let link = &mut self.links[link as usize];
            if link.is_fat_pipe {
                continue;
            }
            link.count_load(now, epoch);
            rate = link.offered_rate(share, weight, rate);
            let is_too_much =
                || link.load + rate * u64::from(weight) > link.capacity || link.meter.expects_more();
            // The meter has no forecast of the epoch at the instant at which that begins.
            if time < epoch && is_too_much() {
                rate = link.limit_rate(rate, weight, (volume, time, epoch), link.meter.expected_load(epoch));
            }
        }
        let mean = unit::mean_rate((u128::from(rate) * u128::from(time)).min(volume), epoch);
        for &RegionUsage { link, weight } in usages {
            let link = &mut self.links[link as usize];
            if !link.is_fat_pipe {
                link.meter.add_unannounced(mean * u64::from(weight));
            }
        }
        rate
    }

    /// Allocates a flow that will begin.
    pub(super) fn allocate(&mut self, share: u64, bound: u64, ceiling: u64) -> u32 {
        let index = self.free_slots.pop().unwrap_or(self.flows.len() as u32);
        if index as usize == self.flows.len() {
            self.flows.push(Flow {
                share,
                bound,
                ceiling: 0,
                cap: 0,
                level: 0,
                rate: 0,
                bottleneck: Bottleneck::New,
                has_changed: false,
                is_alive: false,
                uses: Vec::new(),
            });
        }
        let flow = &mut self.flows[index as usize];
        (flow.share, flow.bound, flow.ceiling, flow.cap) = (share, bound, ceiling, UNLIMITED);
        (flow.level, flow.rate) = (0, 0);
        // Not `New` before it begins, because `new_flows` may still hold the number.
        (flow.is_alive, flow.bottleneck) = (true, Bottleneck::Bound);
        index
    }

    /// Begins a short flow, at a rate that it has until it ends before the next solve.
    pub(super) fn begin_short(&mut self, index: u32, usages: &[RegionUsage], rate: u64) {
        let (share, bound) = (self.flows[index as usize].share, self.flows[index as usize].bound);
        let mut is_settled = rate == bound;
        for &RegionUsage { link: number, weight } in usages {
            self.add_load(number, weight, share, rate);
            let link = &self.links[number as usize];
            is_settled &= link.level == UNLIMITED && link.has_spare_capacity();
        }
        let flow = &mut self.flows[index as usize];
        (flow.rate, flow.bottleneck) = (rate, Bottleneck::Short { is_open: !is_settled });
        if is_settled {
            self.remove_from_open(share, rate, usages);
        }
    }

    /// Ends a [short](RegionSolver::begin_short) flow.
    pub(super) fn end_short(&mut self, index: u32, usages: &[RegionUsage]) {
        let flow = &mut self.flows[index as usize];
        flow.is_alive = false;
        let (share, rate, is_open) =
            (flow.share, flow.rate, flow.bottleneck == Bottleneck::Short { is_open: true });
        for &RegionUsage { link: number, weight } in usages {
            let (load, shares) = (rate * u64::from(weight), share * u64::from(weight));
            let link = &mut self.links[number as usize];
            link.count_load(self.now, self.epoch);
            link.load -= load;
            link.weights -= u64::from(weight);
            link.shares -= shares;
            if is_open {
                (link.open_load, link.open_shares) = (link.open_load - load, link.open_shares - shares);
            }
        }
        self.free_slots.push(index);
    }

    /// Adds a flow that begins to the sums of a link, as an open one.
    #[inline]
    fn add_load(&mut self, number: u32, weight: u32, share: u64, rate: u64) {
        let (load, shares) = (rate * u64::from(weight), share * u64::from(weight));
        let link = &mut self.links[number as usize];
        link.count_load(self.now, self.epoch);
        link.load += load;
        if link.load > link.capacity
            && !link.is_fat_pipe
            && !std::mem::replace(&mut link.has_reserve_entry, true)
        {
            // There may be a debt at the next boundary.
            self.reserve_links.push(number);
        }
        link.open_load += load;
        link.open_shares += shares;
        link.weights += u64::from(weight);
        link.shares += shares;
    }

    /// Removes a flow from the open flows of its links.
    fn remove_from_open(&mut self, share: u64, rate: u64, usages: &[RegionUsage]) {
        for &RegionUsage { link, weight } in usages {
            let link = &mut self.links[link as usize];
            link.open_load -= rate * u64::from(weight);
            link.open_shares -= share * u64::from(weight);
        }
    }

    /// Begins a flow at a rate that holds until the next solve. If the flow is at its bound and no link is full, that
    /// rate is final.
    pub(super) fn begin(&mut self, index: u32, usages: &[RegionUsage], rate: u64) {
        let flow = &mut self.flows[index as usize];
        (flow.rate, flow.level, flow.bottleneck) = (rate, flow.ceiling, Bottleneck::New);
        let (share, bound) = (flow.share, flow.bound);
        debug_assert!(flow.uses.is_empty());
        let mut is_settled = rate == bound;
        for (place, &RegionUsage { link: number, weight }) in (0..).zip(usages) {
            self.add_load(number, weight, share, rate);
            let link = &mut self.links[number as usize];
            is_settled &= link.level == UNLIMITED && link.has_spare_capacity();
            self.flows[index as usize].uses.push(Use {
                link: number,
                place: link.members.len() as u32,
                weight,
            });
            link.members.push(Member { flow: index, place, weight, shares: share * u64::from(weight) });
        }
        if is_settled {
            self.flows[index as usize].bottleneck = Bottleneck::Bound;
            self.remove_from_open(share, rate, usages);
        } else {
            self.new_flows.push(index);
            self.new_alive += 1;
        }
    }

    /// Ends a flow.
    pub(super) fn end(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        flow.is_alive = false;
        let (level, rate, bottleneck) = (flow.level, flow.rate, flow.bottleneck);
        if bottleneck == Bottleneck::New {
            self.new_alive -= 1;
            if self.new_alive == 0 {
                self.new_flows.clear();
            }
        }
        let uses = std::mem::take(&mut flow.uses);
        for &Use { link: number, place, weight } in &uses {
            let load = rate * u64::from(weight);
            let link = &mut self.links[number as usize];
            link.count_load(self.now, self.epoch);
            link.load -= load;
            link.weights -= u64::from(weight);
            let shares = link.members.swap_remove(place as usize).shares;
            link.shares -= shares;
            if bottleneck == Bottleneck::New || bottleneck == Bottleneck::Link(number) {
                link.open_load -= load;
                link.open_shares -= shares;
            }
            if let Some(&moved) = link.members.get(place as usize) {
                self.flows[moved.flow as usize].uses[moved.place as usize].place = place;
            }
            // A flow that came and went between two solves is in no level.
            if bottleneck != Bottleneck::New && self.links[number as usize].level != UNLIMITED {
                let at = level.min(self.links[number as usize].level);
                self.mark(number, at);
            }
        }
        self.flows[index as usize].uses = uses;
        self.flows[index as usize].uses.clear();
        self.free_slots.push(index);
    }

    /// Marks the level of a link as possibly wrong from level `at` on.
    #[inline]
    pub(super) fn mark(&mut self, number: u32, at: u64) {
        let from = &mut self.links[number as usize].dirty_from;
        if at < *from {
            *from = at;
            self.dirty_links.push(Reverse((at, number)));
        }
    }

    /// Returns whether rates may have to change.
    pub(super) fn needs_solve(&self) -> bool {
        !self.dirty_links.is_empty() || self.new_alive > 0 || !self.reserve_links.is_empty()
    }
}
