//! Imbalance of the work of ranks: the waiting that equal work at each place would remove.

use std::collections::{BTreeMap, HashMap};

use mpi_model::{ActionKind, WaitState};
use pdes_core::Rank;
use replay::Outcome;
use trace_mmap::Trace;

use super::pop::Useful;
use crate::report::site_name;

/// A place: a call site, and the kind of its actions.
type PlaceKey = (Option<String>, ActionKind);

/// Returns whether actions of a kind are work.
pub(super) fn is_work(kind: ActionKind) -> bool {
    matches!(kind, ActionKind::Compute | ActionKind::Sleep)
}

/// Returns the time of all ranks that equal work at each place would save \[s\], for the places where that is some.
///
/// Ranks that work longer at one place may work less at another one. So it is the larger one of two times:
/// - over the run, what the work of all ranks is less than that of the rank that works longest, if all worked as long. Its parts are those of
///   the places at which this rank works longer than the mean;
/// - between collective operations, the time in which ranks wait there for others that are late by their work at the place, up to the work
///   that they have less of there. Ranks that themselves waited for messages are late by that, up to that time.
///
/// All of them together are no longer than what ranks do not work on an ideal network: there the messages of collective operations, which no
/// balance removes, take no time.
pub(super) fn imbalances(trace: &Trace, outcome: &Outcome, ideal: &Outcome) -> HashMap<PlaceKey, f64> {
    let mut keys: HashMap<PlaceKey, usize> = HashMap::new();
    // Work of each rank by place, and of all ranks together \[ps\].
    let mut work: Vec<BTreeMap<usize, u128>> = Vec::new();
    for (rank, statistics) in (0..).map(Rank::new).zip(&outcome.program().statistics) {
        let mut of_rank = BTreeMap::new();
        for region in statistics.breakdown().into_iter().flat_map(|breakdown| breakdown.regions()) {
            for (kind, share) in region.shares().filter(|(kind, share)| is_work(*kind) && share.count > 0) {
                let next = keys.len();
                let place = (region.site().map(|site| site_name(trace, rank, site)), kind);
                let place = *keys.entry(place).or_insert(next);
                *of_rank.entry(place).or_default() += u128::from(share.time.as_picos());
            }
        }
        work.push(of_rank);
    }
    let (mut sums, mut longest) = (vec![0; keys.len()], vec![0; keys.len()]);
    for (&place, &time) in work.iter().flatten() {
        sums[place] += time;
        longest[place] = time.max(longest[place]);
    }
    let over_run = over_run(&work, &sums);
    let between = between_collectives(trace, outcome, (&work, &longest), &keys);
    let longest = |place: usize| over_run[place].max(between[place] as f64);
    let useful = Useful::of_outcome(ideal);
    let idle = (useful.ranks.len() as u128 * u128::from(useful.time))
        .saturating_sub(useful.ranks.iter().map(|&time| u128::from(time)).sum());
    let all: f64 = (0..keys.len()).map(longest).sum();
    let part = if all > idle as f64 { idle as f64 / all } else { 1.0 };
    let seconds = |place: usize| longest(place) * part / 1e12;
    keys.into_iter().map(|(key, place)| (key, seconds(place))).filter(|(_, time)| *time > 0.0).collect()
}

/// Returns the imbalance over the run by place \[ps\].
fn over_run(work: &[BTreeMap<usize, u128>], sums: &[u128]) -> Vec<f64> {
    let of_rank = |work: &BTreeMap<usize, u128>| work.values().sum::<u128>();
    // At a tie, the lowest rank.
    let Some(slowest) = work.iter().rev().max_by_key(|work| of_rank(work)) else { return Vec::new() };
    let ranks = work.len() as u128;
    let missing = ranks * of_rank(slowest) - sums.iter().sum::<u128>();
    let excess = |(place, &sum): (usize, &u128)| {
        (ranks * slowest.get(&place).copied().unwrap_or_default()).saturating_sub(sum)
    };
    let excesses: Vec<u128> = sums.iter().enumerate().map(excess).collect();
    let all = excesses.iter().sum::<u128>().max(1) as f64;
    excesses.into_iter().map(|excess| missing as f64 * (excess as f64 / all)).collect()
}

/// Returns the waiting in collective operations for work, by place \[ps\].
fn between_collectives(
    trace: &Trace,
    outcome: &Outcome,
    (work, longest): (&[BTreeMap<usize, u128>], &[u128]),
    keys: &HashMap<PlaceKey, usize>,
) -> Vec<u128> {
    let is_of_messages = |state| matches!(state, WaitState::LateSender | WaitState::LateReceiver);
    let waits = |rank: Rank| {
        let statistics = outcome.program().statistics.get(rank.get() as usize);
        let waiting = statistics.and_then(|rank| rank.breakdown()).map(|breakdown| breakdown.all().waiting);
        let of_messages = WaitState::ALL.into_iter().zip(waiting.unwrap_or_default());
        let times = of_messages.filter(|(state, _)| is_of_messages(*state)).map(|(_, time)| time.as_picos());
        times.map(u128::from).sum::<u128>()
    };
    let messages: Vec<u128> = (0..work.len() as u32).map(|rank| waits(Rank::new(rank))).collect();
    let mut known: HashMap<_, Option<usize>> = HashMap::new();
    let mut found = vec![0; longest.len()];
    for (work, statistics) in work.iter().zip(&outcome.program().statistics) {
        let mut waiting: BTreeMap<(usize, Rank), u128> = BTreeMap::new();
        let delays = statistics.breakdown().into_iter().flat_map(|breakdown| breakdown.delays());
        for delay in delays.filter(|delay| !is_of_messages(delay.state)) {
            let Some(cause) = delay.cause.place() else { continue };
            let place = known.entry(cause).or_insert_with(|| {
                let (rank, site, kind) = cause;
                keys.get(&(site.map(|site| site_name(trace, rank, site)), kind)).copied()
            });
            let Some(place) = *place else { continue };
            *waiting.entry((place, cause.0)).or_default() += u128::from(delay.time.as_picos());
        }
        let mut at_places: BTreeMap<usize, u128> = BTreeMap::new();
        for ((place, late), time) in waiting {
            *at_places.entry(place).or_default() +=
                time.saturating_sub(messages.get(late.get() as usize).copied().unwrap_or_default());
        }
        for (place, time) in at_places {
            let less = longest[place] - work.get(&place).copied().unwrap_or_default();
            found[place] += time.min(less);
        }
    }
    found
}
