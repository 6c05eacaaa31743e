//! Variables of the expressions of rules: the numbers that are known of each part of a run.

use std::collections::BTreeMap;

use mpi_model::{ActionKind, WaitState};
use netmodel::LinkClass;
use pdes_core::{Rank, SimDuration};
use replay::{Outcome, Simulation};
use trace_mmap::Trace;

use super::imbalance::{imbalances, is_work};
use super::pop::Pop;
use super::rules::Scope;
use super::structure::{PROPERTIES, Property, RankStructure};
use crate::report::site_name;

/// Values by name.
pub(super) type Variables = BTreeMap<String, f64>;

/// Name of a variable, and its meaning.
type Named = (&'static str, &'static str);

/// Variables of all scopes: of the run as a whole.
const RUN: [Named; 19] = [
    ("all_ranks", "Number of ranks."),
    ("run_time", "Run time [s]."),
    ("ideal_time", "Run time on an ideal network [s]."),
    ("all_messages", "Messages received, also inside collective operations."),
    ("mean_bytes", "Their mean payload [B]."),
    ("compute_max", "Time of computation of the rank that computes longest [s]."),
    ("compute_second", "That of the next one [s]."),
    ("compute_mean", "Mean over ranks [s]."),
    ("slowest_rank", "Number of the rank that computes longest."),
    ("all_library", "Time of all ranks in the MPI library [s]."),
    ("all_transfer", "Time in which ranks are blocked by data under way [s]."),
    ("all_waiting", "Time in which ranks wait for others [s]."),
    ("parallel_efficiency", "Efficiency of the run."),
    ("load_balance", "Efficiency of the run."),
    ("communication_efficiency", "Efficiency of the run."),
    ("serialization_efficiency", "Efficiency of the run."),
    ("transfer_efficiency", "Efficiency of the run."),
    ("nodes", "Number of hosts with ranks."),
    ("saturated_max", "Longest time that a link is full [s]."),
];

/// Variables of a place, beside the wait states and the properties of its calls.
const PLACE: [Named; 11] = [
    ("time", "Time of all ranks in the calls [s]."),
    ("waiting", "The part of it in wait states [s]."),
    ("transfer", "The part of it with data under way [s]."),
    ("own", "The rest: in the library, or of computations [s]."),
    ("count", "Number of calls."),
    ("ranks", "Number of ranks that make them."),
    ("max_time", "Longest time of a rank in the calls [s]."),
    (
        "imbalance",
        "Of computations and sleeps: time that equal work here would save all ranks, without that of ranks that work elsewhere meanwhile [s].",
    ),
    ("least_waiting", "Shortest time that a rank with such calls waits in them [s]."),
    (
        "wrong_order",
        "The part of `late_sender` in which a message that the rank receives later, before it computes, had been sent already [s].",
    ),
    ("has_site", "1 if the calls have a call site or region, else 0."),
];

/// Returns the names of the variables of a pair of places, beside those of both: the time in which ranks wait at the first one because
/// of what late ranks did at the second one \[s\], and its parts in the wait states.
pub(super) fn delay_variables() -> impl Iterator<Item = String> {
    let parts = WaitState::ALL.map(|state| format!("delay_{}", state.name()));
    std::iter::once("delay".to_owned()).chain(parts)
}

/// Variables of a link.
const LINK: [Named; 7] = [
    ("saturated", "Time that the link is full and limits messages [s]."),
    ("link_bytes", "Payload and envelopes that it carries [B]."),
    ("capacity", "Its bandwidth [B/s]."),
    ("utilisation", "Its mean load as a part of its capacity."),
    (
        "like_utilisation",
        "Mean load of all links of the same class (of hosts, others), bandwidth and latency.",
    ),
    ("like_links", "Number of these links."),
    ("is_host_link", "1 if routes of a host begin or end with the link, or it is inside a host, else 0."),
];

impl Scope {
    /// Returns the variables that expressions about parts of this scope may use, with their meanings.
    pub fn variables(self) -> Vec<(&'static str, &'static str)> {
        let waiting = WaitState::ALL.map(|state| (state.name(), "Time in the wait state [s]."));
        let of_scope: Vec<Named> = match self {
            Self::Place => PLACE.into_iter().chain(waiting).chain(Property::NAMED).collect(),
            Self::Link => LINK.into(),
            Self::Run => Vec::new(),
        };
        of_scope.into_iter().chain(RUN).collect()
    }
}

/// A part of a run, with what is known of it.
pub(super) struct Part {
    /// Call site, or name of the link.
    pub(super) site: Option<String>,
    /// Kind of the calls, of a place.
    pub(super) call: Option<&'static str>,
    pub(super) variables: Variables,
}

/// Sums of the calls of one kind at one call site.
#[derive(Clone, Copy, Default)]
struct PlaceSum {
    count: u64,
    time: u128,
    transfer: u128,
    waiting: [u128; WaitState::COUNT],
    wrong_order: u128,
    ranks: u32,
    max_time: SimDuration,
    imbalance_s: f64,
    least_waiting: Option<SimDuration>,
    properties: [u64; PROPERTIES],
}

impl PlaceSum {
    fn variables(&self, run: &Variables, has_site: bool) -> Variables {
        let seconds = |picos: u128| picos as f64 / 1e12;
        let waiting: u128 = self.waiting.iter().sum();
        let own = self.time - waiting - self.transfer;
        let values = [
            seconds(self.time),
            seconds(waiting),
            seconds(self.transfer),
            seconds(own),
            self.count as f64,
            f64::from(self.ranks),
            self.max_time.as_secs_f64(),
            self.imbalance_s,
            self.least_waiting.map_or(0.0, SimDuration::as_secs_f64),
            seconds(self.wrong_order),
            f64::from(has_site),
        ];
        let states = WaitState::ALL.map(WaitState::name).into_iter().zip(self.waiting.map(seconds));
        let properties = names(Property::NAMED).zip(self.properties.map(|count| count as f64));
        with_run(run, names(PLACE).zip(values).chain(states).chain(properties))
    }
}

/// Returns the names of variables.
fn names<const N: usize>(variables: [Named; N]) -> impl Iterator<Item = &'static str> {
    variables.into_iter().map(|(name, _)| name)
}

fn with_run(run: &Variables, own: impl Iterator<Item = (&'static str, f64)>) -> Variables {
    let own = own.map(|(name, value)| (name.to_owned(), value));
    run.iter().map(|(name, value)| (name.clone(), *value)).chain(own).collect()
}

/// Returns the places of a program: the calls of all ranks by call site and kind.
pub(super) fn places(
    trace: &Trace,
    [outcome, ideal]: [&Outcome; 2],
    structure: &[RankStructure],
    run: &Variables,
) -> Vec<Part> {
    let mut places: BTreeMap<(Option<String>, ActionKind), PlaceSum> = BTreeMap::new();
    for (rank, statistics) in (0..).map(Rank::new).zip(&outcome.program().statistics) {
        let name = |site| site_name(trace, rank, site);
        let regions = statistics.breakdown().into_iter().flat_map(|breakdown| breakdown.regions());
        for region in regions {
            let site = region.site().map(name);
            for (kind, share) in region.shares().filter(|(_, share)| share.count > 0) {
                let place = places.entry((site.clone(), kind)).or_default();
                place.count += share.count;
                place.time += u128::from(share.time.as_picos());
                place.transfer += u128::from(share.transfer.as_picos());
                let waiting = share.waiting.map(|time| u128::from(time.as_picos()));
                place.waiting.iter_mut().zip(waiting).for_each(|(sum, more)| *sum += more);
                place.wrong_order += u128::from(share.wrong_order.as_picos());
                place.ranks += 1;
                place.max_time = place.max_time.max(share.time);
                let waited = place.least_waiting.map_or(share.waited(), |least| least.min(share.waited()));
                place.least_waiting = Some(waited);
            }
        }
        for ((site, kind), counts) in
            structure.get(rank.get() as usize).into_iter().flat_map(|rank| &rank.calls)
        {
            let place = places.entry((site.map(name), *kind)).or_default();
            place.properties.iter_mut().zip(counts).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        }
    }
    for (place, imbalance_s) in imbalances(trace, outcome, ideal) {
        if let Some(sum) = places.get_mut(&place) {
            sum.imbalance_s = imbalance_s;
        }
    }
    let part = |((site, kind), sum): ((Option<String>, ActionKind), PlaceSum)| {
        let variables = sum.variables(run, site.is_some());
        Part { site, call: Some(kind.name()), variables }
    };
    places.into_iter().map(part).collect()
}

/// Returns the sites at which some ranks compute longer than others.
pub(super) fn unequal_work(places: &[Part]) -> Vec<Option<String>> {
    let is_unequal = |place: &&Part| {
        let value = |name: &str| place.variables.get(name).copied().unwrap_or_default();
        place.call == Some(ActionKind::Compute.name())
            && value("all_ranks") * value("max_time") > value("time")
    };
    places.iter().filter(is_unequal).map(|place| place.site.clone()).collect()
}

/// Returns the links that carried something, where their loads were recorded.
pub(super) fn links(simulation: &Simulation, outcome: &Outcome, run: &Variables) -> Vec<Part> {
    let platform = simulation.platform();
    let Some(loads) = &outcome.links else { return Vec::new() };
    let classes = platform.link_classes();
    // Links of equal bandwidth and latency are alike, but for those of hosts; links that carried nothing count, too.
    let class = |number: netmodel::LinkId| {
        let link = platform.link(number);
        (link.bandwidth.to_bits(), link.latency.to_bits(), classes[number.index()])
    };
    let mut alike: BTreeMap<_, (u32, f64)> = BTreeMap::new();
    for number in (0..platform.links().len() as u32).map(netmodel::LinkId::new) {
        alike.entry(class(number)).or_default().0 += 1;
    }
    for load in &loads.links {
        alike.entry(class(load.link)).or_default().1 += load.utilisation;
    }
    let part = |load: &netmodel::LinkLoad| {
        let link = platform.link(load.link);
        let (number, sum) = alike[&class(load.link)];
        let values = [
            load.saturated.as_secs_f64(),
            load.bytes as f64,
            link.bandwidth,
            load.utilisation,
            sum / f64::from(number),
            f64::from(number),
            f64::from(classes[load.link.index()] != LinkClass::Spine),
        ];
        let variables = with_run(run, names(LINK).zip(values));
        Part { site: Some(link.name.to_string()), call: None, variables }
    };
    loads.links.iter().map(part).collect()
}

/// Returns the variables of a run.
pub(super) fn of_run(outcome: &Outcome, pop: &Pop, nodes: usize) -> Variables {
    let seconds = |picos: u128| picos as f64 / 1e12;
    let mut compute: Vec<(u64, usize)> = outcome
        .program()
        .statistics
        .iter()
        .map(|rank| rank.time(ActionKind::Compute).as_picos())
        .zip(0..)
        .collect();
    // The longest first; at a tie, the lowest rank.
    compute.sort_by_key(|&(picos, rank)| (std::cmp::Reverse(picos), rank));
    let longest = |number: usize| compute.get(number).map_or(0.0, |&(picos, _)| seconds(picos.into()));
    let all_compute: u128 = compute.iter().map(|&(picos, _)| u128::from(picos)).sum();
    let ranks = outcome.program().statistics.len() as f64;
    let messages: u128 = outcome.program().statistics.iter().map(|rank| u128::from(rank.messages)).sum();
    let bytes: u128 = outcome.program().statistics.iter().map(|rank| u128::from(rank.bytes.get())).sum();
    let (mut library, mut transfer, mut waiting) = (0, 0, 0);
    let breakdowns = outcome.program().statistics.iter().filter_map(|rank| rank.breakdown());
    for (kind, share) in breakdowns.flat_map(|rank| rank.regions()).flat_map(|region| region.shares()) {
        transfer += u128::from(share.transfer.as_picos());
        waiting += u128::from(share.waited().as_picos());
        if !is_work(kind) {
            library += u128::from(share.own().as_picos());
        }
    }
    let links = outcome.links.iter().flat_map(|loads| &loads.links);
    let values = [
        ranks,
        outcome.simulated_time().as_secs_f64(),
        pop.ideal_time_s,
        messages as f64,
        if messages > 0 { bytes as f64 / messages as f64 } else { 0.0 },
        longest(0),
        longest(1),
        seconds(all_compute) / ranks.max(1.0),
        compute.first().map_or(0.0, |&(_, rank)| rank as f64),
        seconds(library),
        seconds(transfer),
        seconds(waiting),
        pop.parallel_efficiency,
        pop.load_balance,
        pop.communication_efficiency,
        pop.serialization_efficiency,
        pop.transfer_efficiency,
        nodes as f64,
        links.map(|load| load.saturated.as_secs_f64()).fold(0.0, f64::max),
    ];
    names(RUN).map(str::to_owned).zip(values).collect()
}
