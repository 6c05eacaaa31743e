//! Delays: places at which ranks wait, with the places at which the ranks have been for which they wait.

use std::collections::{BTreeMap, HashMap};

use mpi_model::{ActionKind, WaitState};
use pdes_core::{Rank, SimDuration};
use replay::Outcome;
use trace_mmap::{LocationId, Trace};

use super::rules::{Join, Relation, Rule};
use super::variables::{Part, Variables, delay_variables};
use crate::report::site_name;

/// Time in which ranks wait at one place because of what others did at another one.
pub(super) struct Delay {
    /// Number of the place that waits.
    pub(super) waiting: usize,
    /// Number of the place of the cause; `None` where it is not known.
    pub(super) cause: Option<usize>,
    /// Time in each wait state \[s\].
    pub(super) times_s: DelayTimes,
}

/// Times in the wait states \[s\].
pub(super) type DelayTimes = [f64; WaitState::COUNT];

/// Names of sites, each looked up once: most ranks delay others at the same ones.
struct Sites<'a> {
    trace: &'a Trace,
    known: HashMap<(Rank, LocationId), String>,
}

impl Sites<'_> {
    fn name(&mut self, rank: Rank, site: Option<LocationId>) -> Option<String> {
        let site = site?;
        Some(self.known.entry((rank, site)).or_insert_with(|| site_name(self.trace, rank, site)).clone())
    }
}

/// Returns the delays between the places of a run, in the order of the places.
pub(super) fn delays(trace: &Trace, outcome: &Outcome, places: &[Part]) -> Vec<Delay> {
    let numbers: HashMap<_, _> =
        places.iter().enumerate().map(|(number, part)| ((part.site.clone(), part.call), number)).collect();
    let mut sites = Sites { trace, known: HashMap::new() };
    let mut number =
        |rank, site, kind: ActionKind| numbers.get(&(sites.name(rank, site), Some(kind.name()))).copied();
    let mut sums: BTreeMap<(usize, Option<usize>), [u128; WaitState::COUNT]> = BTreeMap::new();
    for (rank, statistics) in (0..).map(Rank::new).zip(&outcome.program().statistics) {
        let delays = statistics.breakdown().into_iter().flat_map(|breakdown| breakdown.delays());
        for delay in delays.filter(|delay| delay.time > SimDuration::ZERO) {
            let Some(waiting) = number(rank, delay.site, delay.kind) else { continue };
            let cause = delay.cause.place().and_then(|(rank, site, kind)| number(rank, site, kind));
            sums.entry((waiting, cause)).or_default()[delay.state as usize] +=
                u128::from(delay.time.as_picos());
        }
    }
    let seconds = |picos: u128| picos as f64 / 1e12;
    let delay =
        |((waiting, cause), picos): (_, [u128; _])| Delay { waiting, cause, times_s: picos.map(seconds) };
    sums.into_iter().map(delay).collect()
}

/// A member of a problem: a part of the run, and in a pair the other side, if it is known.
pub(super) struct Member<'a> {
    pub(super) part: &'a Part,
    pub(super) other: Option<&'a Part>,
    pub(super) duration_s: f64,
    pub(super) variables: Variables,
}

/// Returns the members of a problem among parts of a run, those of longest duration first.
///
/// # Errors
/// If an expression of the rule has no value.
pub(super) fn members<'a>(
    rule: &Rule,
    parts: &'a [Part],
    delays: &[Delay],
) -> Result<Vec<Member<'a>>, String> {
    let mut found = Vec::new();
    let mut examine = |part: &'a Part, other: Option<&'a Part>, mut variables: Variables| {
        let duration = rule.examine(part.call, &mut variables)?;
        if let Some(duration_s) = duration.filter(|duration_s| *duration_s > 0.0) {
            found.push(Member { part, other, duration_s, variables });
        }
        Ok::<_, String>(())
    };
    match rule.join() {
        None => {
            for part in parts {
                examine(part, None, part.variables.clone())?;
            }
        }
        Some(join) => {
            for (one, other, delays_s) in candidates(join.relation, parts, delays) {
                if let Some(variables) = join.variables((one, other), &delays_s)? {
                    examine(one, other, variables)?;
                }
            }
        }
    }
    // The sort is stable: members with equal times keep their order.
    found.sort_by(|one, other| other.duration_s.total_cmp(&one.duration_s));
    Ok(found)
}

/// Returns the pairs of places that are in a relation, with the times that the first one waits for the second one.
fn candidates<'a>(
    relation: Relation,
    places: &'a [Part],
    delays: &[Delay],
) -> Vec<(&'a Part, Option<&'a Part>, DelayTimes)> {
    let times_of = |one: usize, other: usize| {
        delays
            .iter()
            .find(|delay| (delay.waiting, delay.cause) == (one, Some(other)))
            .map(|delay| delay.times_s)
    };
    match relation {
        Relation::DelayedBy => {
            let pair = |delay: &Delay| {
                (&places[delay.waiting], delay.cause.map(|other| &places[other]), delay.times_s)
            };
            delays.iter().map(pair).collect()
        }
        Relation::SameSite => {
            let mut at_site: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            for (number, place) in places.iter().enumerate() {
                at_site.entry(place.site.as_deref().unwrap_or_default()).or_default().push(number);
            }
            let pairs = at_site.values().flat_map(|numbers| {
                numbers.iter().flat_map(move |&one| numbers.iter().map(move |&other| (one, other)))
            });
            let pair =
                |(one, other)| (&places[one], Some(&places[other]), times_of(one, other).unwrap_or_default());
            pairs.filter(|(one, other)| one != other).map(pair).collect()
        }
    }
}

impl Join {
    /// Returns the variables of a pair that are in the events of both sides; `None` where one is not.
    fn variables(
        &self,
        (one, other): (&Part, Option<&Part>),
        delays_s: &DelayTimes,
    ) -> Result<Option<Variables>, String> {
        let Some(mut variables) = self.first(one)? else { return Ok(None) };
        let Some(others) = self.second(other)? else { return Ok(None) };
        variables.extend(others);
        let delays_s = std::iter::once(delays_s.iter().sum()).chain(delays_s.iter().copied());
        variables.extend(delay_variables().zip(delays_s));
        Ok(Some(variables))
    }
}
