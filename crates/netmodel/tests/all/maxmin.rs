//! The sharing solver: closed forms, its certificate, and equality with progressive filling by definition.

use netmodel::maxmin::{FlowIndex, LinkIndex};
use netmodel::{MaxMin, Sharing, Usage};
use proptest::prelude::*;

fn whole(link: LinkIndex) -> Usage {
    Usage { link, weight: 1.0 }
}

fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected, "{found} instead of {expected}");
}

/// Solves and returns those of the flows whose rates may have changed.
fn solve(sharing: &mut MaxMin, flows: &[FlowIndex]) -> Vec<FlowIndex> {
    sharing.solve();
    let links: Vec<LinkIndex> = sharing.changed_links().collect();
    let moved: Vec<FlowIndex> = sharing.moved_flows().collect();
    let changes =
        |flow| moved.contains(&flow) || sharing.bottleneck(flow).is_some_and(|at| links.contains(&at));
    flows.iter().copied().filter(|&flow| changes(flow)).collect()
}

#[test]
fn flows_on_one_link_share_it_equally() {
    let mut sharing = MaxMin::default();
    let link = sharing.add_link(120.0, Sharing::Shared);
    let mut flows = Vec::new();
    for count in 1..=40 {
        flows.push(sharing.add_flow(&[whole(link)], 1.0, f64::INFINITY));
        assert_eq!(solve(&mut sharing, &flows), flows, "every flow slows down");
        flows.iter().for_each(|&flow| assert_close(sharing.rate(flow), 120.0 / count as f64));
    }
}

/// `n` links in a row, one flow over all and one on each: the long one gets half of a link whatever `n` is, because
/// the measure is the flow's rate and not the links it takes.
#[test]
fn the_parking_lot() {
    let mut sharing = MaxMin::default();
    let links: Vec<LinkIndex> = (0..9).map(|_| sharing.add_link(10.0, Sharing::Shared)).collect();
    let usages: Vec<Usage> = links.iter().copied().map(whole).collect();
    let long = sharing.add_flow(&usages, 1.0, f64::INFINITY);
    let short: Vec<FlowIndex> =
        links.iter().map(|&link| sharing.add_flow(&[whole(link)], 1.0, f64::INFINITY)).collect();
    sharing.solve();
    assert_close(sharing.rate(long), 5.0);
    short.iter().for_each(|&flow| assert_close(sharing.rate(flow), 5.0));
}

#[test]
fn penalties_divide_a_link_in_inverse_proportion() {
    let mut sharing = MaxMin::default();
    let link = sharing.add_link(100.0, Sharing::Shared);
    let near = sharing.add_flow(&[whole(link)], 1.0, f64::INFINITY);
    let far = sharing.add_flow(&[whole(link)], 4.0, f64::INFINITY);
    sharing.solve();
    assert_close(sharing.rate(near), 80.0);
    assert_close(sharing.rate(far), 20.0);
}

#[test]
fn capacity_left_by_a_bounded_flow_goes_to_the_others() {
    let mut sharing = MaxMin::default();
    let link = sharing.add_link(90.0, Sharing::Shared);
    let slow = sharing.add_flow(&[whole(link)], 1.0, 10.0);
    let free = sharing.add_flow(&[whole(link)], 1.0, f64::INFINITY);
    sharing.solve();
    assert_eq!((sharing.rate(slow), sharing.rate(free)), (10.0, 80.0));
    sharing.remove_flow(free);
    sharing.solve();
    assert_eq!(sharing.rate(slow), 10.0);
}

/// The reverse route carries 0.05 of the rate: two opposite flows on one link have `1.05 x = 100` each.
#[test]
fn weights_count_by_the_rate() {
    let mut sharing = MaxMin::default();
    let (up, down) = (sharing.add_link(100.0, Sharing::Shared), sharing.add_link(100.0, Sharing::Shared));
    let usages = |there, back| [whole(there), Usage { link: back, weight: 0.05 }];
    let one = sharing.add_flow(&usages(up, down), 1.0, f64::INFINITY);
    let other = sharing.add_flow(&usages(down, up), 1.0, f64::INFINITY);
    sharing.solve();
    assert_close(sharing.rate(one), 100.0 / 1.05);
    assert_close(sharing.rate(other), 100.0 / 1.05);
}

/// One flow that reaches its own limit where it fills the pipe keeps a faster one down, which does not fill it itself.
#[test]
fn a_flow_that_just_fills_a_fat_pipe_keeps_others_down() {
    for solves_between in [false, true] {
        let mut sharing = MaxMin::default();
        let pipe = sharing.add_link(10.0, Sharing::FatPipe);
        let usage = [Usage { link: pipe, weight: 1.0 }];
        let filling = sharing.add_flow(&usage, 1.0, 10.0);
        if solves_between {
            sharing.solve();
        }
        let other = sharing.add_flow(&usage, 2.0, 8.0);
        sharing.solve();
        assert_eq!((sharing.rate(filling), sharing.rate(other)), (10.0, 5.0));
        sharing.remove_flow(filling);
        sharing.solve();
        assert_eq!(sharing.rate(other), 8.0);
    }
}

/// A link that seems to fill below a pipe, before a flow of it is at its limit, does not keep a flow that the pipe freezes.
#[test]
fn a_pipe_freezes_a_flow_of_a_link_that_fills_later() {
    let mut sharing = MaxMin::default();
    let pipe = sharing.add_link(25.0, Sharing::FatPipe);
    let (wide, narrow) = (sharing.add_link(12.5, Sharing::Shared), sharing.add_link(11.25, Sharing::Shared));
    let fast = 3.7e-5;
    sharing.add_flow(&[whole(wide), whole(narrow)], fast, 7.5);
    let filling = sharing.add_flow(&[whole(wide), whole(pipe)], fast, f64::INFINITY);
    let frozen = sharing.add_flow(&[whole(narrow), whole(pipe)], 1.0, f64::INFINITY);
    let ending = sharing.add_flow(&[whole(wide), whole(pipe)], 1.0, f64::INFINITY);
    sharing.solve_from_scratch();
    sharing.remove_flow(ending);
    sharing.set_capacity(wide, 91.25);
    sharing.solve();
    assert_eq!(sharing.check(), Ok(()));
    assert_close(sharing.rate(filling), 25.0);
    assert_close(sharing.rate(frozen), 25.0 * fast);
}

/// Flows of equal penalty have the whole pipe each; one of a higher penalty freezes at the level of the others, as in
/// SimGrid.
#[test]
fn a_fat_pipe_freezes_all_its_flows_at_one_level() {
    let mut sharing = MaxMin::default();
    let pipe = sharing.add_link(100.0, Sharing::FatPipe);
    let one = sharing.add_flow(&[whole(pipe)], 1.0, f64::INFINITY);
    let two = sharing.add_flow(&[whole(pipe)], 1.0, f64::INFINITY);
    let far = sharing.add_flow(&[whole(pipe)], 4.0, f64::INFINITY);
    sharing.solve();
    assert_eq!(sharing.rate(one), 100.0);
    assert_eq!(sharing.rate(two), 100.0);
    assert_eq!(sharing.rate(far), 25.0);
}

#[test]
fn a_solve_without_changes_changes_nothing() {
    let mut sharing = MaxMin::default();
    let link = sharing.add_link(10.0, Sharing::Shared);
    let flow = sharing.add_flow(&[whole(link)], 1.0, f64::INFINITY);
    assert!(sharing.needs_solve());
    assert_eq!(solve(&mut sharing, &[flow]), [flow]);
    assert!(!sharing.needs_solve());
    assert_eq!(solve(&mut sharing, &[flow]), []);
}

/// A flow of a random instance.
#[derive(Clone, Debug)]
struct Demand {
    links: Vec<usize>,
    weights: Vec<f64>,
    penalty: f64,
    bound: f64,
}

#[derive(Clone, Debug)]
struct Instance {
    links: Vec<(f64, Sharing)>,
    /// A flow to add, or the position of one to remove.
    steps: Vec<(Demand, Option<prop::sample::Index>)>,
}

fn demand(links: usize) -> impl Strategy<Value = Demand> {
    let routes = prop::sample::subsequence((0..links).collect::<Vec<_>>(), 1..=links.min(5));
    let weight = prop::sample::select(vec![1.0, 1.0, 1.0, 0.05, 2.0, 1.05]);
    let weights = prop::collection::vec(weight, 5);
    // Few values, so that many levels are equal.
    let penalty = prop::sample::select(vec![1.0, 1.0, 1.0, 2.0, 3.7e-5, 4.1e-5]);
    let bound = prop::sample::select(vec![f64::INFINITY, f64::INFINITY, 30.0, 7.5]);
    (routes, weights, penalty, bound).prop_map(|(links, weights, penalty, bound)| Demand {
        links,
        weights,
        penalty,
        bound,
    })
}

fn instance() -> impl Strategy<Value = Instance> {
    let shared = prop::sample::select(vec![100.0, 100.0, 50.0, 12.5, 33.3]);
    // If a pipe and another link fill at one level, the set of flows that the pipe freezes depends on rounding: not here.
    let pipe = (5.0..200.0).prop_map(|capacity| (capacity, Sharing::FatPipe));
    let link = prop_oneof![3 => shared.prop_map(|capacity| (capacity, Sharing::Shared)), 1 => pipe];
    prop::collection::vec(link, 2..12).prop_flat_map(|links| {
        let removal = prop::option::weighted(0.4, any::<prop::sample::Index>());
        let steps = prop::collection::vec((demand(links.len()), removal), 1..40);
        (Just(links), steps).prop_map(|(links, steps)| Instance { links, steps })
    })
}

/// A link whose capacity changes, and the factor of its first one; or none.
fn scaled() -> impl Strategy<Value = Option<(prop::sample::Index, f64)>> {
    let factor = prop::sample::select(vec![0.0, 0.5, 0.9, 2.0, 7.3]);
    prop::option::weighted(0.3, (any::<prop::sample::Index>(), factor))
}

/// A flow between two of twelve hosts, from the first one's link upward to the other one's downward, with acknowledgements
/// the other way; those to one of the hosts are slower, and one is bounded.
fn cross(pair: usize) -> Demand {
    let (src, dst) = (pair / 12, pair % 12);
    let links = vec![2 * src, 2 * dst + 1, 2 * dst, 2 * src + 1];
    let penalty = if dst == 3 { 40.0 } else { 1.0 };
    // A bound that holds makes a filling take all links into account, another one does not.
    let bound = if pair == 5 { 2.0 } else { 1e4 };
    Demand { links, weights: vec![1.0, 1.0, 0.05, 0.05], penalty, bound }
}

/// Progressive filling by its definition, without any bookkeeping.
fn fill(links: &[(f64, Sharing)], flows: &[Demand]) -> Vec<f64> {
    let mut levels: Vec<Option<f64>> = vec![None; flows.len()];
    let share = |flow: &Demand, link: usize| {
        let place = flow.links.iter().position(|&other| other == link);
        place.map_or(0.0, |place| flow.weights[place] / flow.penalty)
    };
    while levels.contains(&None) {
        let full_at = |index: usize| {
            let (capacity, sharing) = links[index];
            let rising = || flows.iter().zip(&levels).filter(|(_, level)| level.is_none());
            let shares = rising().map(|(flow, _)| share(flow, index));
            match sharing {
                Sharing::FatPipe => match shares.fold(0.0, f64::max) {
                    0.0 => f64::INFINITY,
                    most => capacity / most,
                },
                Sharing::Shared => {
                    let frozen = flows.iter().zip(&levels);
                    let taken: f64 =
                        frozen.filter_map(|(flow, level)| Some(share(flow, index) * (*level)?)).sum();
                    let sum: f64 = shares.sum();
                    if sum == 0.0 { f64::INFINITY } else { (capacity - taken) / sum }
                }
            }
        };
        let next = (0..links.len()).map(|link| (full_at(link), Some(link)));
        let ceilings = flows.iter().zip(&levels).filter(|(_, level)| level.is_none());
        let ceilings = ceilings.map(|(flow, _)| (flow.penalty * flow.bound, None));
        let (level, link) = next.chain(ceilings).min_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
        for (flow, frozen) in flows.iter().zip(&mut levels) {
            let stops = match link {
                Some(link) => share(flow, link) > 0.0,
                None => flow.penalty * flow.bound == level,
            };
            if stops && frozen.is_none() {
                *frozen = Some(level);
            }
        }
    }
    flows.iter().zip(&levels).map(|(flow, level)| level.unwrap() / flow.penalty).collect()
}

fn solver(links: &[(f64, Sharing)]) -> (MaxMin, Vec<LinkIndex>) {
    let mut sharing = MaxMin::default();
    let indices = links.iter().map(|&(capacity, kind)| sharing.add_link(capacity, kind)).collect();
    (sharing, indices)
}

fn add(sharing: &mut MaxMin, links: &[LinkIndex], flow: &Demand) -> FlowIndex {
    let usage = |(&link, &weight): (&usize, &f64)| Usage { link: links[link], weight };
    let usages: Vec<Usage> = flow.links.iter().zip(&flow.weights).map(usage).collect();
    sharing.add_flow(&usages, flow.penalty, flow.bound)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// After any sequence of changes, repaired or solved afresh, in any order of insertion, the rates are those of
    /// progressive filling; each flow is at the level of its bottleneck or at its bound; and only the flows that the solver names have other rates.
    #[test]
    fn repair_equals_progressive_filling(
        instance in instance(),
        grouped in any::<bool>(),
        scaled in prop::collection::vec(scaled(), 40),
    ) {
        let (mut sharing, links) = solver(&instance.links);
        let mut capacities = instance.links.clone();
        let mut flows: Vec<(FlowIndex, Demand)> = Vec::new();
        for (step, (demand, removal)) in instance.steps.iter().enumerate() {
            // Later solves use groups, as otherwise in dense traffic only.
            if grouped && step % 10 == 0 {
                sharing.solve_from_scratch();
            }
            let before: Vec<(FlowIndex, f64)> =
                flows.iter().map(|(flow, _)| (*flow, sharing.rate(*flow))).collect();
            match removal {
                Some(position) if !flows.is_empty() => {
                    let (flow, _) = flows.swap_remove(position.index(flows.len()));
                    sharing.remove_flow(flow);
                }
                _ => flows.push((add(&mut sharing, &links, demand), demand.clone())),
            }
            if let Some((link, factor)) = &scaled[step] {
                let link = link.index(links.len());
                let (initial, kind) = instance.links[link];
                // A pipe without capacity and another such link would fill at one level.
                let factor = if kind == Sharing::FatPipe { factor.max(0.1) } else { *factor };
                capacities[link].0 = initial * factor;
                sharing.set_capacity(links[link], initial * factor);
            }
            let all: Vec<FlowIndex> = flows.iter().map(|(flow, _)| *flow).collect();
            let changed = solve(&mut sharing, &all);
            prop_assert_eq!(sharing.check(), Ok(()));
            let demands: Vec<Demand> = flows.iter().map(|(_, demand)| demand.clone()).collect();
            let expected = fill(&capacities, &demands);
            for ((flow, demand), expected) in flows.iter().zip(&expected) {
                let rate = sharing.rate(*flow);
                prop_assert!((rate - expected).abs() <= 1e-9 * expected, "{:?}: {} not {}", demand, rate, expected);
            }
            for (flow, rate) in before {
                if flows.iter().any(|(other, _)| *other == flow) && !changed.contains(&flow) {
                    prop_assert_eq!(sharing.rate(flow), rate);
                }
            }
        }
        for (flow, demand) in &flows {
            let level = sharing.rate(*flow) * demand.penalty;
            match sharing.bottleneck(*flow) {
                Some(link) => {
                    prop_assert!(demand.links.iter().any(|&used| links[used] == link));
                    assert_close(level, sharing.link_level(link));
                }
                None => assert_close(sharing.rate(*flow), demand.bound),
            }
        }
        let repaired: Vec<f64> = flows.iter().map(|(flow, _)| sharing.rate(*flow)).collect();
        sharing.solve_from_scratch();
        let (mut reverse, links) = solver(&capacities);
        let reversed: Vec<FlowIndex> =
            flows.iter().rev().map(|(_, demand)| add(&mut reverse, &links, demand)).collect();
        reverse.solve();
        for (((flow, _), other), repaired) in flows.iter().zip(reversed.iter().rev()).zip(repaired) {
            for rate in [sharing.rate(*flow), reverse.rate(*other)] {
                prop_assert!((rate - repaired).abs() <= 1e-9 * repaired, "{} not {}", rate, repaired);
            }
        }
    }

    /// Capacities and bounds times a power of two: rates times the same, to the bit.
    #[test]
    fn rates_scale_with_capacities(instance in instance()) {
        let (mut sharing, links) = solver(&instance.links);
        let scaled: Vec<(f64, Sharing)> = instance.links.iter().map(|&(c, kind)| (4.0 * c, kind)).collect();
        let (mut large, large_links) = solver(&scaled);
        for (demand, _) in &instance.steps {
            let small = add(&mut sharing, &links, demand);
            let bound = 4.0 * demand.bound;
            let big = add(&mut large, &large_links, &Demand { bound, ..demand.clone() });
            sharing.solve();
            large.solve();
            prop_assert_eq!(4.0 * sharing.rate(small), large.rate(big));
        }
    }
}

/// Links and flows whose ceilings are what a link has for them alone, or for a few of them, but for rounding.
fn close_ceilings() -> impl Strategy<Value = Instance> {
    let capacity = prop::sample::select(vec![125e6, 150e6, 62.5e6, 41.7e6]);
    let link = capacity.prop_map(|capacity| (capacity, Sharing::Shared));
    prop::collection::vec(link, 2..8).prop_flat_map(|links| {
        let capacities: Vec<f64> = links.iter().map(|&(capacity, _)| capacity).collect();
        let parts = (prop::sample::select(capacities), 1..4u32, -3..4i32);
        let bound =
            parts.prop_map(|(all, by, off)| all / f64::from(by) * (1.0 + f64::from(off) * f64::EPSILON));
        let penalty = prop::sample::select(vec![1.0, 1.0 / 3_362.474_781_439_139_4, 1.0 / 3.0, 0.1]);
        let removal = prop::option::weighted(0.3, any::<prop::sample::Index>());
        let step = (demand(links.len()), penalty, bound, removal);
        let steps = step.prop_map(|(demand, penalty, bound, removal)| {
            (Demand { weights: vec![1.0; 5], penalty, bound, ..demand }, removal)
        });
        (Just(links), prop::collection::vec(steps, 1..40))
            .prop_map(|(links, steps)| Instance { links, steps })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Flows that reach their own limits just when their links are full have the same rates with groups as without.
    #[test]
    fn ceilings_may_be_those_of_links_but_for_rounding(instance in close_ceilings(), afresh in 1..12usize) {
        let (mut sharing, links) = solver(&instance.links);
        let mut flows: Vec<(FlowIndex, Demand)> = Vec::new();
        for (step, (demand, removal)) in instance.steps.iter().enumerate() {
            match removal {
                Some(position) if !flows.is_empty() => {
                    sharing.remove_flow(flows.swap_remove(position.index(flows.len())).0);
                }
                _ => flows.push((add(&mut sharing, &links, demand), demand.clone())),
            }
            if step % afresh == 0 { sharing.solve_from_scratch() } else { sharing.solve() }
            prop_assert_eq!(sharing.check(), Ok(()));
            let demands: Vec<Demand> = flows.iter().map(|(_, demand)| demand.clone()).collect();
            for ((flow, _), expected) in flows.iter().zip(fill(&instance.links, &demands)) {
                assert_close(sharing.rate(*flow), expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    /// Traffic so dense that each change reaches most links, then sparser again: the rates stay those of a solver
    /// that gets all flows at once.
    #[test]
    fn dense_traffic_is_shared_fairly(seed in prop::collection::vec(any::<prop::sample::Index>(), 300)) {
        const HOSTS: usize = 12;
        // Some are always full, some never, and some at times.
        let capacity = |link: usize| (60.0 + 20.0 * (link * 5 % 24) as f64, Sharing::Shared);
        let capacities: Vec<(f64, Sharing)> = (0..2 * HOSTS).map(capacity).collect();
        let (mut sharing, links) = solver(&capacities);
        let mut flows: Vec<(FlowIndex, Demand)> = Vec::new();
        for (step, choice) in seed.iter().enumerate() {
            // At first flow by flow; then all that four hosts send, which moves loads far.
            let first = choice.index(HOSTS * HOSTS);
            let chosen = if step < 200 { first..first + 1 } else { first / HOSTS * HOSTS..(first / HOSTS + 4) * HOSTS };
            for pair in chosen.map(|pair| pair % (HOSTS * HOSTS)).filter(|pair| pair / HOSTS != pair % HOSTS) {
                let demand = cross(pair);
                match flows.iter().position(|(_, other)| other.links == demand.links) {
                    Some(place) => sharing.remove_flow(flows.swap_remove(place).0),
                    None => flows.push((add(&mut sharing, &links, &demand), demand)),
                }
            }
            let all: Vec<FlowIndex> = flows.iter().map(|(flow, _)| *flow).collect();
            let before: Vec<f64> = all.iter().map(|&flow| sharing.rate(flow)).collect();
            let changed = solve(&mut sharing, &all);
            prop_assert_eq!(sharing.check(), Ok(()));
            let kept = all.iter().zip(before).filter(|(flow, _)| !changed.contains(flow));
            kept.for_each(|(&flow, before)| assert_eq!(sharing.rate(flow), before));
            if step % 5 == 0 {
                let (mut other, links) = solver(&capacities);
                let others: Vec<FlowIndex> =
                    flows.iter().map(|(_, demand)| add(&mut other, &links, demand)).collect();
                other.solve();
                all.iter().zip(others).for_each(|(&one, same)| assert_close(sharing.rate(one), other.rate(same)));
            }
        }
    }
}

/// The ceiling of the flow is what both of its links have for it, but for rounding, which takes a little from the ceiling.
#[test]
fn flows_at_the_limits_of_their_links_are_at_their_own() {
    let mut sharing = MaxMin::default();
    let links = [125e6, 125e6, 150e6].map(|capacity| sharing.add_link(capacity, Sharing::Shared));
    let penalty = 1.0 / 3_362.474_781_439_139_4;
    let fast = sharing.add_flow(&[whole(links[0]), whole(links[1])], penalty, 125e6);
    let slow: Vec<FlowIndex> =
        (0..2).map(|_| sharing.add_flow(&[whole(links[2])], penalty, f64::INFINITY)).collect();
    sharing.solve_from_scratch();
    assert_close(sharing.rate(fast), 125e6);
    slow.iter().for_each(|&flow| assert_close(sharing.rate(flow), 75e6));
}
