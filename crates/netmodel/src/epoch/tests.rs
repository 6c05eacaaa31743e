//! Properties of the fixed point, and of its solution in regions.

use proptest::prelude::*;

use super::sharing::Sharing;
use super::unit::{FREE, WHOLE};
use super::way::Usage;
use super::*;
use crate::Preset;

mod exchange;

/// A whole unit of share, as of the routes with the least penalty.
const SHARE: u64 = 1 << 32;

/// Rate of a flow without limit on an idle link of this bandwidth [B/s].
fn all_of(bandwidth: f64) -> u64 {
    unit::capacity(bandwidth) / u64::from(WHOLE)
}

/// Links of these capacities [B/s].
fn links(capacities: &[f64]) -> Sharing {
    Sharing::new(capacities.iter().map(|&capacity| (capacity, false)), 1)
}

fn whole(links: &[u32]) -> Vec<Usage> {
    links.iter().map(|&link| Usage { link, weight: WHOLE }).collect()
}

/// Adds a flow, whose initial rate is the offered one.
fn add(sharing: &mut Sharing, usages: &[Usage], share: u64, bound: u64) -> u32 {
    let flow = sharing.allot(share, bound, unit::level_of(bound, share));
    let rate = sharing.offer(usages, share, bound, 0);
    sharing.begin(flow, usages, rate);
    flow
}

fn rate(sharing: &Sharing, flow: u32) -> u64 {
    sharing.flows[flow as usize].rate
}

#[test]
fn one_flow_alone_has_the_least_capacity() {
    let mut sharing = links(&[3e9, 2e9, 5e9]);
    let flow = add(&mut sharing, &whole(&[0, 1, 2]), SHARE, unit::rate(9e9));
    sharing.settle();
    assert_eq!(rate(&sharing, flow), all_of(2e9));
}

#[test]
fn flows_of_one_link_have_equal_parts() {
    for count in 1..20_u64 {
        let mut sharing = links(&[1e9]);
        let flows: Vec<u32> =
            (0..count).map(|_| add(&mut sharing, &whole(&[0]), SHARE, unit::rate(1e12))).collect();
        sharing.settle();
        assert!(flows.iter().all(|&flow| rate(&sharing, flow) == all_of(1e9) / count));
    }
}

/// A flow over all links of a row and one over each: on links of capacity 1, .., n the long one has 1/2.
#[test]
fn a_parking_lot_has_its_closed_form() {
    let mut sharing = links(&[1e9, 2e9, 3e9, 4e9]);
    let bound = unit::rate(1e12);
    let long = add(&mut sharing, &whole(&[0, 1, 2, 3]), SHARE, bound);
    let short: Vec<u32> = (0..4).map(|link| add(&mut sharing, &whole(&[link]), SHARE, bound)).collect();
    sharing.settle();
    let half = all_of(1e9) / 2;
    assert_eq!(rate(&sharing, long), half);
    for (number, &flow) in (1..).zip(&short) {
        let expected = all_of(f64::from(number) * 1e9) - half;
        assert!(rate(&sharing, flow).abs_diff(expected) <= 1, "flow {number}");
    }
}

/// The counter-example to the least of the advertised parts: link 0 carries f, link 1 carries f and g; g ends.
#[test]
fn a_flow_rises_when_its_rival_ends() {
    let mut sharing = links(&[1e9, 1e9]);
    let flow = add(&mut sharing, &whole(&[0, 1]), SHARE, unit::rate(1e9));
    let rival = add(&mut sharing, &whole(&[1]), SHARE, unit::rate(1e9));
    sharing.settle();
    assert_eq!(rate(&sharing, flow), all_of(1e9) / 2);
    sharing.end(rival);
    sharing.settle();
    assert_eq!(rate(&sharing, flow), unit::rate(1e9));
}

#[test]
fn a_pipe_holds_each_flow_back_and_not_their_sum() {
    let mut sharing = Sharing::new([(1e9, true)].into_iter(), 1);
    let flows: Vec<u32> = (0..5).map(|_| add(&mut sharing, &whole(&[0]), SHARE, unit::rate(3e9))).collect();
    sharing.settle();
    assert!(flows.iter().all(|&flow| rate(&sharing, flow) == all_of(1e9)));
}

/// Specification of a flow: its links, share, and bound [MB/s].
type Draft = (Vec<u32>, u64, u32);

fn drafts(links: u32) -> impl Strategy<Value = Vec<Draft>> {
    let uses = proptest::collection::btree_set(0..links, 1..4).prop_map(|set| set.into_iter().collect());
    let share = prop_oneof![Just(SHARE), SHARE / 16..SHARE];
    let bound = prop_oneof![Just(100_000_u32), 1..1000_u32];
    proptest::collection::vec((uses, share, bound), 1..40)
}

fn add_draft(sharing: &mut Sharing, (links, share, bound): &Draft) -> u32 {
    add(sharing, &whole(links), *share, unit::rate(f64::from(*bound) * 1e6))
}

fn capacities(links: u32) -> Vec<f64> {
    (0..links).map(|link| 1e8 * f64::from(1 + link % 3)).collect()
}

/// Rates solved from scratch.
fn afresh(links: u32, drafts: &[&Draft]) -> Vec<u64> {
    let mut sharing = self::links(&capacities(links));
    let flows: Vec<u32> = drafts.iter().map(|draft| add_draft(&mut sharing, draft)).collect();
    sharing.settle();
    flows.iter().map(|&flow| rate(&sharing, flow)).collect()
}

proptest! {
    #[test]
    fn what_is_kept_up_to_date_is_what_is_found_afresh(
        drafts in drafts(8),
        batches in proptest::collection::vec((1_usize..6, 0_usize..6, any::<u64>()), 1..20),
    ) {
        let mut sharing = links(&capacities(8));
        let mut present: Vec<(u32, &Draft)> = Vec::new();
        let mut next = drafts.iter().cycle();
        for (begin, end, seed) in batches {
            for _ in 0..begin {
                let draft = next.next().expect("a cycle has no end");
                present.push((add_draft(&mut sharing, draft), draft));
            }
            for number in 0..end as u64 {
                if !present.is_empty() {
                    let place = seed.wrapping_mul(number + 1) as usize % present.len();
                    sharing.end(present.swap_remove(place).0);
                }
            }
            sharing.settle();
            let kept: Vec<u64> = present.iter().map(|&(flow, _)| rate(&sharing, flow)).collect();
            let present: Vec<&Draft> = present.iter().map(|&(_, draft)| draft).collect();
            prop_assert_eq!(kept, afresh(8, &present));
        }
    }

    #[test]
    fn the_order_of_addition_does_not_matter(drafts in drafts(6)) {
        let forth: Vec<&Draft> = drafts.iter().collect();
        let back: Vec<&Draft> = drafts.iter().rev().collect();
        let mut found = afresh(6, &back);
        found.reverse();
        prop_assert_eq!(afresh(6, &forth), found);
    }

    #[test]
    fn what_came_and_went_leaves_no_trace(drafts in drafts(6), guests in drafts(6)) {
        let mut sharing = links(&capacities(6));
        let flows: Vec<u32> = drafts.iter().map(|draft| add_draft(&mut sharing, draft)).collect();
        sharing.settle();
        let guests: Vec<u32> = guests.iter().map(|draft| add_draft(&mut sharing, draft)).collect();
        sharing.settle();
        guests.into_iter().for_each(|flow| sharing.end(flow));
        sharing.settle();
        let rates: Vec<u64> = flows.iter().map(|&flow| rate(&sharing, flow)).collect();
        prop_assert_eq!(rates, afresh(6, &drafts.iter().collect::<Vec<_>>()));
        flows.into_iter().for_each(|flow| sharing.end(flow));
        for link in &sharing.links {
            prop_assert_eq!((link.load, link.open_load, link.open_shares, link.weights, link.shares), (0, 0, 0, 0, 0));
        }
        sharing.settle();
        prop_assert!(sharing.links.iter().all(|link| link.level == FREE));
    }

    /// Links of another component do not matter.
    #[test]
    fn a_separate_part_changes_nothing(one in drafts(4), other in drafts(4)) {
        let moved: Vec<Draft> = other
            .iter()
            .map(|(links, share, bound)| (links.iter().map(|link| link + 6).collect(), *share, *bound))
            .collect();
        let both: Vec<&Draft> = one.iter().chain(&moved).collect();
        let mut found = afresh(10, &both);
        let second = found.split_off(one.len());
        prop_assert_eq!(found, afresh(4, &one.iter().collect::<Vec<_>>()));
        prop_assert_eq!(second, afresh(4, &other.iter().collect::<Vec<_>>()));
    }

    #[test]
    fn rates_scale_with_capacities(drafts in drafts(6)) {
        let rates = |scale: f64| {
            let capacities: Vec<f64> = capacities(6).iter().map(|capacity| capacity * scale).collect();
            let mut sharing = links(&capacities);
            let bound = |bound: u32| unit::rate(f64::from(bound) * 1e6 * scale);
            let flows: Vec<u32> = drafts
                .iter()
                .map(|(links, share, limit)| add(&mut sharing, &whole(links), *share, bound(*limit)))
                .collect();
            sharing.settle();
            flows.iter().map(|&flow| rate(&sharing, flow)).collect::<Vec<_>>()
        };
        for (one, eight) in rates(1.0).into_iter().zip(rates(8.0)) {
            // Each of up to 40 flows of a link may have lost a unit, and another one gained it.
            prop_assert!((8 * one).abs_diff(eight) <= 8 * 80, "{one} and {eight}");
        }
    }
}
