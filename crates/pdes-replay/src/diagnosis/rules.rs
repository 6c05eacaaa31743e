//! Rules by which problems are found: TOML with small expressions.
//!
//! A rule is about a part of a run: its places, its links, or the run as a whole. An event is a condition on such parts, or on those
//! of another event, and may name amounts; an event may join two of them by a relation of their places; a problem is an event with a duration and advice.

mod expression;
mod join;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::variables::Variables;
use expression::Expression;
pub(super) use join::Join;
pub use join::Relation;

/// The rules that come with the program.
const OWN_RULES: &str = include_str!("rules.toml");

/// Part of a run that a rule examines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every place of the program: calls of one kind at one call site.
    Place,
    /// Every link of the network that carried something.
    Link,
    /// The whole run.
    Run,
}

impl Scope {
    /// All scopes, with their names in rules.
    pub const NAMED: [(&str, Self); 3] = [("place", Self::Place), ("link", Self::Link), ("run", Self::Run)];
}

/// A rule: a condition on parts of a run, and the time that the problem costs.
#[derive(Debug)]
pub struct Rule {
    /// Name of the problem.
    pub name: String,
    /// Part of the run that the rule examines.
    pub scope: Scope,
    /// Least share of the time with which a problem is reported.
    pub least_share: f64,
    /// The problem, in a sentence.
    pub description: String,
    /// Advice; `{sites}` stands for the call sites or links, `{NAME}` for the value of a variable of the first one.
    pub recommendation: String,
    /// Changes of the program whose simulated time is the gain; those with `places` are of the places of the problem, or of others.
    pub(super) hypothesis: Vec<toml::Table>,
    /// Values of the configuration that are other ones in the hypothesis.
    pub(super) set: Vec<String>,
    /// Pairs that the conditions are on, instead of single parts.
    join: Option<Join>,
    /// The conditions, each on what is left by the ones before it.
    conditions: Vec<Condition>,
    duration: Expression,
}

/// A condition on parts of a run, which names amounts.
#[derive(Clone, Debug)]
struct Condition {
    /// Names of the actions that are examined; all if empty.
    calls: Vec<String>,
    when: Expression,
    amounts: Vec<(String, Expression)>,
}

/// A checked event: the conditions of its members, and their variables.
#[derive(Clone)]
struct Event {
    scope: Scope,
    /// Pairs that the conditions are on, instead of single parts.
    join: Option<Join>,
    conditions: Vec<Condition>,
    /// Names that expressions about members may use.
    names: Vec<String>,
}

/// A condition as written, in events and problems alike.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEvent {
    name: String,
    #[serde(default = "place")]
    of: String,
    #[serde(default)]
    calls: Vec<String>,
    /// Event of the other side, and its relation.
    with: Option<String>,
    by: Option<String>,
    when: String,
    #[serde(default)]
    amounts: BTreeMap<String, String>,
}

/// A problem as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenProblem {
    name: String,
    #[serde(default = "place")]
    of: String,
    #[serde(default)]
    calls: Vec<String>,
    when: String,
    duration: String,
    #[serde(default = "one_percent")]
    least_share: f64,
    description: String,
    recommendation: String,
    #[serde(default)]
    hypothesis: Vec<toml::Table>,
    #[serde(default)]
    set: Vec<String>,
}

fn place() -> String {
    "place".to_owned()
}

fn one_percent() -> f64 {
    0.01
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRules {
    #[serde(default)]
    event: Vec<toml::Table>,
    #[serde(default)]
    problem: Vec<toml::Table>,
}

/// A file of rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// The file cannot be read.
    #[error("cannot read the rules {path}")]
    Read {
        /// The file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not TOML, or has no problem.
    #[error("{origin}: {message}")]
    Format {
        /// The file.
        origin: String,
        /// Error, with its place.
        message: String,
    },
    /// An event or a problem is not valid.
    #[error("{origin}: [[{kind}]] {name:?}: {message}")]
    Rule {
        /// The file.
        origin: String,
        /// `event` or `problem`.
        kind: &'static str,
        /// Name of the rule, or its number from 1.
        name: String,
        /// The key, what was found and what was expected.
        message: String,
    },
}

/// Rules of all files that have been read.
#[derive(Default)]
struct KnownRules {
    events: BTreeMap<String, WrittenEvent>,
    problems: Vec<Rule>,
}

impl KnownRules {
    /// Adds the rules of a text, whose names occur once in it; those that are known by the same name are replaced.
    fn add(&mut self, text: &str, origin: &str) -> Result<(), RuleError> {
        let format = |error: toml::de::Error| RuleError::Format {
            origin: origin.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        };
        let written: WrittenRules = toml::from_str(text).map_err(format)?;
        if written.problem.is_empty() {
            let found = match written.event.len() {
                0 => "no rule".to_owned(),
                1 => "1 [[event]], but no [[problem]]".to_owned(),
                events => format!("{events} [[event]]s, but no [[problem]]"),
            };
            let message = format!(
                "found {found}; add a [[problem]], which names an event with `of` and has `name`, `when`, `duration`, `description` and \
                 `recommendation`"
            );
            return Err(RuleError::Format { origin: origin.to_owned(), message });
        }
        let fail = |kind, name: &str, message| RuleError::Rule {
            origin: origin.to_owned(),
            kind,
            name: name.to_owned(),
            message,
        };
        let mut names: Vec<String> = Scope::NAMED.iter().map(|(scope, _)| (*scope).to_owned()).collect();
        for (number, table) in (1..).zip(written.event) {
            let name = name_of(&table, number);
            let event: WrittenEvent = read(table).map_err(|message| fail("event", &name, message))?;
            if names.contains(&name) {
                return Err(fail("event", &name, "the name occurs twice".to_owned()));
            }
            names.push(name);
            self.events.insert(event.name.clone(), event);
        }
        for name in self.events.keys() {
            resolve(name, &self.events, &mut Vec::new()).map_err(|message| fail("event", name, message))?;
        }
        names.clear();
        for (number, table) in (1..).zip(written.problem) {
            let name = name_of(&table, number);
            let rule = Rule::new(table, &self.events).map_err(|message| fail("problem", &name, message))?;
            if names.contains(&name) {
                return Err(fail("problem", &name, "the name occurs twice".to_owned()));
            }
            names.push(name);
            match self.problems.iter_mut().find(|known| known.name == rule.name) {
                Some(known) => *known = rule,
                None => self.problems.push(rule),
            }
        }
        Ok(())
    }
}

impl Rule {
    /// Returns the rules that come with the program.
    pub fn own() -> Vec<Self> {
        Self::from_text(OWN_RULES, "rules.toml").expect("the rules of the program are valid")
    }

    /// Reads a file of rules, and adds them to those that come with the program: they may be about events of the program, and one with
    /// the name of one of the program takes its place.
    ///
    /// # Errors
    /// If the file cannot be read or a rule is not valid.
    pub fn own_and_from_path(path: &Path) -> Result<Vec<Self>, RuleError> {
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| RuleError::Read { path: origin.clone(), source })?;
        let mut rules = KnownRules::default();
        rules.add(OWN_RULES, "rules.toml")?;
        rules.add(&text, &origin)?;
        Ok(rules.problems)
    }

    /// Reads rules; `origin` is the name of the text in messages.
    ///
    /// # Errors
    /// If a rule is not valid.
    pub fn from_text(text: &str, origin: &str) -> Result<Vec<Self>, RuleError> {
        let mut rules = KnownRules::default();
        rules.add(text, origin)?;
        Ok(rules.problems)
    }

    fn new(table: toml::Table, events: &BTreeMap<String, WrittenEvent>) -> Result<Self, String> {
        let written: WrittenProblem = read(table)?;
        let least_share = written.least_share;
        if !(0.0..=1.0).contains(&least_share) {
            return Err(format!("least_share is {least_share}, expected 0 to 1"));
        }
        let Event { scope, join, mut conditions, names } = resolve(&written.of, events, &mut Vec::new())?;
        conditions.push(Condition::new(written.calls, &written.when, &BTreeMap::new(), scope, &names)?);
        let duration =
            Expression::new(&written.duration, &names).map_err(|why| format!("duration: {why}"))?;
        let braces = written.recommendation.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
        if let Some((name, _)) = braces.into_iter().find(|(name, _)| {
            *name != "sites"
                && (join.is_none() || *name != "other_sites")
                && !names.iter().any(|known| known == name)
        }) {
            return Err(format!(
                "recommendation: there is no variable {name:?}; expected sites, or of {}",
                names.join(", ")
            ));
        }
        let rule = Self {
            name: written.name,
            scope,
            least_share,
            description: written.description,
            recommendation: written.recommendation,
            hypothesis: written.hypothesis,
            set: written.set,
            join,
            conditions,
            duration,
        };
        // A mistake in a hypothesis is found here, not when the problem is.
        super::gain::mending(&rule, super::gain::MendedPlaces::default())?;
        Ok(rule)
    }

    /// Returns the names of the variables of the duration, and after them those of the conditions, of a pair of its first side.
    pub(super) fn variables(&self) -> [Vec<&String>; 2] {
        let first = self.join.iter().flat_map(Join::variables_of_first);
        let conditions = self.conditions.iter().flat_map(|condition| condition.when.variables());
        [self.duration.variables().iter().collect(), first.chain(conditions).collect()]
    }

    /// Returns the relation of the members, if they are pairs.
    pub(super) fn join(&self) -> Option<&Join> {
        self.join.as_ref()
    }

    /// Returns the duration of the problem in a part of a run \[s\], and adds the amounts that events name; `None` where it has none.
    ///
    /// # Errors
    /// If the duration is not a number.
    pub(super) fn examine(
        &self,
        call: Option<&str>,
        variables: &mut Variables,
    ) -> Result<Option<f64>, String> {
        if !all_hold(&self.conditions, call, variables)? {
            return Ok(None);
        }
        self.duration.amount(variables).map(Some)
    }
}

/// Returns whether conditions hold, each after the ones before it, and adds their amounts.
fn all_hold(conditions: &[Condition], call: Option<&str>, variables: &mut Variables) -> Result<bool, String> {
    for condition in conditions {
        if !condition.holds(call, variables)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the name of a rule, or its number.
fn name_of(table: &toml::Table, number: usize) -> String {
    table.get("name").and_then(toml::Value::as_str).map_or_else(|| number.to_string(), str::to_owned)
}

fn read<T: serde::de::DeserializeOwned>(table: toml::Table) -> Result<T, String> {
    table.try_into().map_err(|error: toml::de::Error| error.message().to_owned())
}

/// Resolves the name of a scope or an event, whose chain of events `within` is on the way.
fn resolve(
    name: &str,
    events: &BTreeMap<String, WrittenEvent>,
    within: &mut Vec<String>,
) -> Result<Event, String> {
    if let Some((_, scope)) = Scope::NAMED.iter().find(|(known, _)| *known == name) {
        let names = scope.variables().into_iter().map(|(name, _)| name.to_owned()).collect();
        return Ok(Event { scope: *scope, join: None, conditions: Vec::new(), names });
    }
    let Some(written) = events.get(name) else {
        let known = Scope::NAMED.iter().map(|(name, _)| *name).chain(events.keys().map(String::as_str));
        return Err(format!(
            "of: there is no event {name:?}; expected of {}",
            known.collect::<Vec<_>>().join(", ")
        ));
    };
    if within.iter().any(|other| other == name) {
        return Err(format!("of: the event depends on itself: {} of {name}", within.join(" of ")));
    }
    within.push(name.to_owned());
    let of = resolve(&written.of, events, within)?;
    let mut event = match (&written.with, &written.by) {
        (None, None) => of,
        (Some(with), Some(by)) => {
            let with = resolve(with, events, within).map_err(|why| why.replacen("of:", "with:", 1))?;
            Event::joined(of, with, by)?
        }
        (Some(_), None) => return Err("by: a relation is needed with the other event".to_owned()),
        (None, Some(_)) => return Err("with: an event is needed that is in the relation".to_owned()),
    };
    within.pop();
    let condition =
        Condition::new(written.calls.clone(), &written.when, &written.amounts, event.scope, &event.names)?;
    event.names.extend(condition.amounts.iter().map(|(name, _)| name.clone()));
    event.conditions.push(condition);
    Ok(event)
}

impl Condition {
    fn new(
        calls: Vec<String>,
        when: &str,
        amounts: &BTreeMap<String, String>,
        scope: Scope,
        names: &[String],
    ) -> Result<Self, String> {
        if !calls.is_empty() && scope != Scope::Place {
            return Err("calls: places have calls, links and runs have none".to_owned());
        }
        let known: Vec<&str> = mpi_model::ActionKind::ALL.map(mpi_model::ActionKind::name).into();
        if let Some(name) = calls.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("calls: there is no action {name:?}; expected of {}", known.join(", ")));
        }
        let when = Expression::new(when, names).map_err(|why| format!("when: {why}"))?;
        let amount = |(name, text): (&String, &String)| {
            if names.contains(name) {
                return Err(format!("amounts: there is a variable {name:?} already"));
            }
            let amount = Expression::new(text, names).map_err(|why| format!("amounts.{name}: {why}"))?;
            Ok((name.clone(), amount))
        };
        let amounts = amounts.iter().map(amount).collect::<Result<_, String>>()?;
        Ok(Self { calls, when, amounts })
    }

    /// Returns whether the condition holds, and adds its amounts.
    fn holds(&self, call: Option<&str>, variables: &mut Variables) -> Result<bool, String> {
        let is_examined = self.calls.is_empty() || self.calls.iter().any(|name| Some(name.as_str()) == call);
        if !is_examined || !self.when.holds(variables)? {
            return Ok(false);
        }
        for (name, amount) in &self.amounts {
            let amount = amount.amount(variables)?;
            variables.insert(name.clone(), amount);
        }
        Ok(true)
    }
}
