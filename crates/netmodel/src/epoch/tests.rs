//! Properties of the fixed point, and of its solution in regions.

use proptest::prelude::*;

use super::route::RegionUsage;
use super::solver::RegionSolver;
use super::unit::{FULL_WEIGHT, UNLIMITED};
use super::*;
use crate::Preset;

mod exchange;
mod state;

/// A whole unit of share, as of the routes with the least penalty.
const SHARE: u64 = 1 << 32;

/// Rate of a flow without limit on an idle link of this bandwidth [B/s].
fn full_rate(bandwidth: f64) -> u64 {
    unit::capacity(bandwidth) / u64::from(FULL_WEIGHT)
}

/// Links of these capacities [B/s].
fn links(capacities: &[f64]) -> RegionSolver {
    RegionSolver::new(capacities.iter().map(|&capacity| (capacity, false)), 1)
}

fn whole(links: &[u32]) -> Vec<RegionUsage> {
    links.iter().map(|&link| RegionUsage { link, weight: FULL_WEIGHT }).collect()
}

/// Adds a flow, whose initial rate is the offered one.
fn add(solver: &mut RegionSolver, usages: &[RegionUsage], share: u64, bound: u64) -> u32 {
    let flow = solver.allocate(share, bound, unit::level_of(bound, share));
    let rate = solver.offered_rate(usages, share, bound, 0);
    solver.begin(flow, usages, rate);
    flow
}

fn rate(solver: &RegionSolver, flow: u32) -> u64 {
    solver.flows[flow as usize].rate
}

#[test]
fn one_flow_alone_has_the_least_capacity() {
    let mut solver = links(&[3e9, 2e9, 5e9]);
    let flow = add(&mut solver, &whole(&[0, 1, 2]), SHARE, unit::rate(9e9));
    solver.solve();
    assert_eq!(rate(&solver, flow), full_rate(2e9));
}

#[test]
fn flows_of_one_link_have_equal_parts() {
    for count in 1..20_u64 {
        let mut solver = links(&[1e9]);
        let flows: Vec<u32> =
            (0..count).map(|_| add(&mut solver, &whole(&[0]), SHARE, unit::rate(1e12))).collect();
        solver.solve();
        assert!(flows.iter().all(|&flow| rate(&solver, flow) == full_rate(1e9) / count));
    }
}

/// A flow over all links of a row and one over each: on links of capacity 1, .., n the long one has 1/2.
#[test]
fn a_parking_lot_has_its_closed_form() {
    let mut solver = links(&[1e9, 2e9, 3e9, 4e9]);
    let bound = unit::rate(1e12);
    let long = add(&mut solver, &whole(&[0, 1, 2, 3]), SHARE, bound);
    let short: Vec<u32> = (0..4).map(|link| add(&mut solver, &whole(&[link]), SHARE, bound)).collect();
    solver.solve();
    let half = full_rate(1e9) / 2;
    assert_eq!(rate(&solver, long), half);
    for (number, &flow) in (1..).zip(&short) {
        let expected = full_rate(f64::from(number) * 1e9) - half;
        assert!(rate(&solver, flow).abs_diff(expected) <= 1, "flow {number}");
    }
}

/// The counter-example to the least of the advertised parts: link 0 carries f, link 1 carries f and g; g ends.
#[test]
fn a_flow_rises_when_its_rival_ends() {
    let mut solver = links(&[1e9, 1e9]);
    let flow = add(&mut solver, &whole(&[0, 1]), SHARE, unit::rate(1e9));
    let rival = add(&mut solver, &whole(&[1]), SHARE, unit::rate(1e9));
    solver.solve();
    assert_eq!(rate(&solver, flow), full_rate(1e9) / 2);
    solver.end(rival);
    solver.solve();
    assert_eq!(rate(&solver, flow), unit::rate(1e9));
}

#[test]
fn a_pipe_holds_each_flow_back_and_not_their_sum() {
    let mut solver = RegionSolver::new([(1e9, true)].into_iter(), 1);
    let flows: Vec<u32> = (0..5).map(|_| add(&mut solver, &whole(&[0]), SHARE, unit::rate(3e9))).collect();
    solver.solve();
    assert!(flows.iter().all(|&flow| rate(&solver, flow) == full_rate(1e9)));
}

/// Specification of a flow: its links, share, and bound [MB/s].
type FlowSpec = (Vec<u32>, u64, u32);

fn specs(links: u32) -> impl Strategy<Value = Vec<FlowSpec>> {
    let uses = proptest::collection::btree_set(0..links, 1..4).prop_map(|set| set.into_iter().collect());
    let share = prop_oneof![Just(SHARE), SHARE / 16..SHARE];
    let bound = prop_oneof![Just(100_000_u32), 1..1000_u32];
    proptest::collection::vec((uses, share, bound), 1..40)
}

fn add_spec(solver: &mut RegionSolver, (links, share, bound): &FlowSpec) -> u32 {
    add(solver, &whole(links), *share, unit::rate(f64::from(*bound) * 1e6))
}

fn capacities(links: u32) -> Vec<f64> {
    (0..links).map(|link| 1e8 * f64::from(1 + link % 3)).collect()
}

/// Rates solved from scratch.
fn from_scratch(links: u32, specs: &[&FlowSpec]) -> Vec<u64> {
    let mut solver = self::links(&capacities(links));
    let flows: Vec<u32> = specs.iter().map(|spec| add_spec(&mut solver, spec)).collect();
    solver.solve();
    flows.iter().map(|&flow| rate(&solver, flow)).collect()
}

proptest! {
    #[test]
    fn incremental_solves_equal_solves_from_scratch(
        specs in specs(8),
        batches in proptest::collection::vec((1_usize..6, 0_usize..6, any::<u64>()), 1..20),
    ) {
        let mut solver = links(&capacities(8));
        let mut present: Vec<(u32, &FlowSpec)> = Vec::new();
        let mut next = specs.iter().cycle();
        for (begin, end, seed) in batches {
            for _ in 0..begin {
                let spec = next.next().expect("a cycle has no end");
                present.push((add_spec(&mut solver, spec), spec));
            }
            for number in 0..end as u64 {
                if !present.is_empty() {
                    let place = seed.wrapping_mul(number + 1) as usize % present.len();
                    solver.end(present.swap_remove(place).0);
                }
            }
            solver.solve();
            let kept: Vec<u64> = present.iter().map(|&(flow, _)| rate(&solver, flow)).collect();
            let present: Vec<&FlowSpec> = present.iter().map(|&(_, spec)| spec).collect();
            prop_assert_eq!(kept, from_scratch(8, &present));
        }
    }

    #[test]
    fn the_order_of_addition_does_not_matter(specs in specs(6)) {
        let forth: Vec<&FlowSpec> = specs.iter().collect();
        let back: Vec<&FlowSpec> = specs.iter().rev().collect();
        let mut found = from_scratch(6, &back);
        found.reverse();
        prop_assert_eq!(from_scratch(6, &forth), found);
    }

    #[test]
    fn ended_flows_leave_no_trace(specs in specs(6), guests in specs(6)) {
        let mut solver = links(&capacities(6));
        let flows: Vec<u32> = specs.iter().map(|spec| add_spec(&mut solver, spec)).collect();
        solver.solve();
        let guests: Vec<u32> = guests.iter().map(|spec| add_spec(&mut solver, spec)).collect();
        solver.solve();
        guests.into_iter().for_each(|flow| solver.end(flow));
        solver.solve();
        let rates: Vec<u64> = flows.iter().map(|&flow| rate(&solver, flow)).collect();
        prop_assert_eq!(rates, from_scratch(6, &specs.iter().collect::<Vec<_>>()));
        flows.into_iter().for_each(|flow| solver.end(flow));
        for link in &solver.links {
            prop_assert_eq!((link.load, link.open_load, link.open_shares, link.weights, link.shares), (0, 0, 0, 0, 0));
        }
        solver.solve();
        prop_assert!(solver.links.iter().all(|link| link.level == UNLIMITED));
    }

    /// Links of another component do not matter.
    #[test]
    fn a_separate_part_changes_nothing(one in specs(4), other in specs(4)) {
        let moved: Vec<FlowSpec> = other
            .iter()
            .map(|(links, share, bound)| (links.iter().map(|link| link + 6).collect(), *share, *bound))
            .collect();
        let both: Vec<&FlowSpec> = one.iter().chain(&moved).collect();
        let mut found = from_scratch(10, &both);
        let second = found.split_off(one.len());
        prop_assert_eq!(found, from_scratch(4, &one.iter().collect::<Vec<_>>()));
        prop_assert_eq!(second, from_scratch(4, &other.iter().collect::<Vec<_>>()));
    }

    #[test]
    fn rates_scale_with_capacities(specs in specs(6)) {
        let rates = |scale: f64| {
            let capacities: Vec<f64> = capacities(6).iter().map(|capacity| capacity * scale).collect();
            let mut solver = links(&capacities);
            let bound = |bound: u32| unit::rate(f64::from(bound) * 1e6 * scale);
            let flows: Vec<u32> = specs
                .iter()
                .map(|(links, share, limit)| add(&mut solver, &whole(links), *share, bound(*limit)))
                .collect();
            solver.solve();
            flows.iter().map(|&flow| rate(&solver, flow)).collect::<Vec<_>>()
        };
        for (one, eight) in rates(1.0).into_iter().zip(rates(8.0)) {
            // Each of up to 40 flows of a link may have lost a unit, and another one gained it.
            prop_assert!((8 * one).abs_diff(eight) <= 8 * 80, "{one} and {eight}");
        }
    }
}
