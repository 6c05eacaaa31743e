//! Events of two places that are in a relation.

use super::{Condition, Event, Scope, all_hold};
use crate::diagnosis::variables::{Part, Variables, delay_variables};

/// Prefix of the variables of the second side.
const OTHER: &str = "other_";

/// Relation of two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Ranks wait at the first place for ranks that are late by what they, or ranks that they waited for, did at the second one.
    DelayedBy,
    /// Calls of two kinds at one call site or region.
    SameSite,
}

impl Relation {
    /// All relations, with their names in rules.
    pub const NAMED: [(&str, Self); 2] = [("delayed_by", Self::DelayedBy), ("same_site", Self::SameSite)];
}

/// A join: the conditions of both sides, and their relation.
#[derive(Clone, Debug)]
pub(in crate::diagnosis) struct Join {
    pub(in crate::diagnosis) relation: Relation,
    first: Vec<Condition>,
    second: Vec<Condition>,
    /// Variables of the second side.
    others: Vec<String>,
}

impl Event {
    /// Joins two events of places.
    pub(super) fn joined(one: Self, other: Self, by: &str) -> Result<Self, String> {
        let Some((_, relation)) = Relation::NAMED.iter().find(|(name, _)| *name == by) else {
            let known = Relation::NAMED.map(|(name, _)| name).join(", ");
            return Err(format!("by: there is no relation {by:?}; expected of {known}"));
        };
        if [&one, &other].iter().any(|event| event.scope != Scope::Place || event.join.is_some()) {
            return Err("with: only events of places are joined, not of links, runs or pairs".to_owned());
        }
        // The run is the same on both sides.
        let of_run: Vec<&str> = Scope::Run.variables().into_iter().map(|(name, _)| name).collect();
        let others: Vec<String> =
            other.names.into_iter().filter(|name| !of_run.contains(&name.as_str())).collect();
        let mut names = one.names;
        names.extend(others.iter().map(|name| format!("{OTHER}{name}")));
        names.extend(delay_variables());
        let join = Join { relation: *relation, first: one.conditions, second: other.conditions, others };
        Ok(Self { scope: Scope::Place, join: Some(join), conditions: Vec::new(), names })
    }
}

impl Join {
    /// Returns the variables of the first side; `None` if the place is not in its event.
    pub(in crate::diagnosis) fn first(&self, place: &Part) -> Result<Option<Variables>, String> {
        let mut variables = place.variables.clone();
        Ok(all_hold(&self.first, place.call, &mut variables)?.then_some(variables))
    }

    /// Returns the variables of the second side, all 0 where the place is not known; `None` if it is not in its event.
    pub(in crate::diagnosis) fn second(&self, place: Option<&Part>) -> Result<Option<Variables>, String> {
        let Some(place) = place else {
            let zeros = || self.others.iter().map(|name| (format!("{OTHER}{name}"), 0.0)).collect();
            return Ok(self.second.is_empty().then(zeros));
        };
        let mut variables = place.variables.clone();
        if !all_hold(&self.second, place.call, &mut variables)? {
            return Ok(None);
        }
        let other = |name: &String| Some((format!("{OTHER}{name}"), *variables.get(name)?));
        Ok(Some(self.others.iter().filter_map(other).collect()))
    }

    /// Returns the names of the variables of the conditions of the first side.
    pub(super) fn variables_of_first(&self) -> impl Iterator<Item = &String> {
        self.first.iter().flat_map(|condition| condition.when.variables())
    }
}
