//! `place`: ranks run on other hosts.

use toml::Value;

use super::key::{Key, KeyValues};
use super::keys::Keys;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};
use pdes_core::Rank;

pub(super) const KIND: TransformKind = TransformKind {
    key: "place",
    subject: Subject::Ranks,
    keys: &[
        Key::optional("order", KeyValues::Ranks, "For each rank the one on whose host it runs."),
        Key::optional("mapping", KeyValues::Choice(&["greedy", "bisection"]), "Method of the mapping."),
        Key::optional(
            "traffic",
            KeyValues::Choice(&["messages", "all"]),
            "What a mapping counts, by default messages between two ranks.",
        ),
        Key::optional("per_host", KeyValues::Whole(1, u32::MAX as u64), "Number of ranks on each host."),
    ],
    semantics: "Ranks run elsewhere. `order`, a list of all ranks: rank i on the host where the i-th rank of the list was. `mapping = \"greedy\"` or \
                `\"bisection\"`: on the same hosts, as many on each, so that bytes of messages between two ranks, times links of their route, add up to \
                little. Greedy places the rank with most bytes to placed ranks where it adds least; bisection halves the ranks, with few bytes between the \
                halves, and the hosts in their order, and so on. `traffic = \"all\"` also counts the messages inside collective operations, in a replay. \
                `per_host`: so many ranks on each host, in the order of ranks and of the platform.",
    read,
};

/// A change of the hosts of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Each rank runs where another one did.
    Order(Vec<u32>),
    /// The rank with most bytes to placed ranks is placed next, where it adds least to bytes times links.
    Greedy(CountedTraffic),
    /// Ranks and hosts are halved, with few bytes between the halves.
    Bisection(CountedTraffic),
    /// So many consecutive ranks on each host of the platform.
    PerHost(u32),
}

/// The messages that a mapping counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountedTraffic {
    /// Messages between two ranks that the program sends.
    #[default]
    Messages,
    /// All messages, those inside collective operations included.
    All,
}

#[derive(Debug)]
struct Place {
    selector: Selector,
    placement: Placement,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let order = keys.get("order", |value| {
        let number = |value: &Value| u32::try_from(value.as_integer()?).ok();
        let order = value.as_array()?.iter().map(number).collect::<Option<Vec<u32>>>()?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..order.len() as u32).then_some(Placement::Order(order))
    })?;
    let traffic = keys.get("traffic", |value| match value.as_str()? {
        "messages" => Some(CountedTraffic::Messages),
        "all" => Some(CountedTraffic::All),
        _ => None,
    })?;
    let counted = traffic.unwrap_or_default();
    let mapping = keys.get("mapping", |value| match value.as_str()? {
        "greedy" => Some(Placement::Greedy(counted)),
        "bisection" => Some(Placement::Bisection(counted)),
        _ => None,
    })?;
    let per_host =
        keys.get("per_host", |value| u32::try_from(value.as_integer()?).ok().map(Placement::PerHost))?;
    if traffic.is_some() && mapping.is_none() {
        return Err("place: traffic is what a mapping counts: add mapping".to_owned());
    }
    let mut given = [order, mapping, per_host].into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(placement), None) => Ok(Box::new(Place { selector, placement })),
        _ => Err("place: expected one of order, mapping and per_host".to_owned()),
    }
}

impl Transform for Place {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn placement(&self) -> Option<&Placement> {
        Some(&self.placement)
    }

    fn plan(&self, _: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        Ok(Box::new(Same))
    }
}

/// The operations stay.
#[derive(Debug)]
struct Same;

impl Plan for Same {
    fn rewrite<'a>(&'a self, _: Program<'a>, _: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(Self)
    }
}

impl Rewrite for Same {
    fn apply(&mut self, step: Step, out: &mut Vec<Step>) {
        out.push(step);
    }
}
