//! Selection of the operations that a transformation changes.

mod tracker;

pub(super) use tracker::{Select, Tracker};

use std::borrow::Cow;
use std::collections::BTreeSet;

use pdes_core::Rank;
use trace_mmap::table::CallKind;
use trace_mmap::{CallOp, CommId, FileCall, Op};

use super::key::Key;
use super::keys::{Keys, Numbers, Patterns, nearest};
use super::messages::{Endpoints, Event, Sent};
use super::{Program, Refusal};

/// Largest number of names that an error lists.
const MAX_LISTED: usize = 4;

/// The operations that a kind of transformation selects from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Computations of the program.
    Computations,
    /// Messages between two ranks, selected by their sends.
    Messages,
    /// Collective operations.
    Collectives,
    /// Tests of requests, and probes that do not wait.
    Polls,
    /// Blocking receives.
    Receives,
    /// Creations of communicators.
    Creations,
    /// Accesses to files that a rank makes on its own.
    Accesses,
    /// Visits of a region or a call site, on all ranks.
    Visits,
    /// All ranks.
    Ranks,
}

impl Subject {
    /// Returns the name, in plural.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Computations => "computations",
            Self::Messages => "messages",
            Self::Collectives => "collective operations",
            Self::Polls => "tests and probes",
            Self::Receives => "blocking receives",
            Self::Creations => "creations of communicators",
            Self::Accesses => "independent accesses to files",
            Self::Visits => "visits",
            Self::Ranks => "ranks",
        }
    }

    /// Returns the descriptions of the keys of a selector.
    pub fn described_keys(self) -> impl Iterator<Item = Key> {
        self.keys().iter().map(|name| Key::of_selector(name))
    }

    /// Returns the keys of a selector.
    pub const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Computations => &["region", "site", "iterations", "ranks"],
            Self::Messages => {
                &["region", "site", "iterations", "ranks", "call", "tag", "bytes", "communicator"]
            }
            Self::Collectives => &["region", "site", "iterations", "ranks", "call", "communicator"],
            Self::Polls | Self::Receives => &["region", "site", "iterations", "ranks", "call"],
            Self::Creations => &["region", "site", "iterations", "call", "communicator"],
            Self::Accesses => &["region", "site", "iterations", "call", "bytes", "communicator"],
            Self::Visits => &["region", "site", "iterations"],
            Self::Ranks => &[],
        }
    }
}

/// A selection of operations: those that match all its keys; all operations of the subject if it has none.
#[derive(Clone, Debug)]
pub struct Selector {
    pub(super) subject: Subject,
    /// Paths of regions, which are locations with line 0.
    region: Option<Patterns>,
    /// Call sites, `file:line`.
    site: Option<Patterns>,
    /// Visits of the place on each rank, from 0.
    iterations: Option<Numbers>,
    ranks: Option<Numbers>,
    call: Option<Patterns>,
    tag: Option<Numbers>,
    bytes: Option<Numbers>,
    communicator: Option<Numbers>,
}

/// An operation as selectors see it, beside its place.
struct Facts<'o> {
    call: Option<&'o str>,
    tag: Option<u64>,
    bytes: Option<u64>,
    communicator: Option<u64>,
}

impl Selector {
    /// Reads the keys of a selector.
    pub(super) fn read(subject: Subject, keys: &Keys<'_>) -> Result<Self, String> {
        let patterns = |key| keys.get(key, Patterns::read);
        let numbers = |key| keys.get(key, Numbers::read);
        let selector = Self {
            subject,
            region: patterns("region")?,
            site: patterns("site")?,
            iterations: numbers("iterations")?,
            ranks: numbers("ranks")?,
            call: patterns("call")?,
            tag: numbers("tag")?,
            bytes: numbers("bytes")?,
            communicator: numbers("communicator")?,
        };
        if selector.region.is_some() && selector.site.is_some() {
            return Err("a place is either a region or a call site: leave out region or site".to_owned());
        }
        if selector.iterations.is_some() && !selector.has_place() {
            return Err("iterations are visits of a region or of a call site: add region or site".to_owned());
        }
        Ok(selector)
    }

    /// Returns the selector with this call if it has none.
    pub(super) fn with_default_call(mut self, call: &str) -> Self {
        self.call.get_or_insert_with(|| Patterns::from(call));
        self
    }

    /// Returns the selector of the same operations on all ranks.
    pub(super) fn on_all_ranks(self) -> Self {
        Self { ranks: None, ..self }
    }

    /// Returns the selector of all visits of other places, on the same ranks.
    pub(super) fn at_place(&self, place: Patterns) -> Self {
        let (region, site) = (Some(place.clone()), Some(place));
        Self { subject: Subject::Visits, region, site, iterations: None, ..self.clone() }
    }

    pub(super) fn has_iterations(&self) -> bool {
        self.iterations.is_some()
    }

    pub(super) fn has_place(&self) -> bool {
        self.region.is_some() || self.site.is_some()
    }

    /// Returns whether a location is that of the region or call site.
    fn selects_place(&self, file: &str, line: u32) -> bool {
        let (name, place) = if line == 0 {
            (Cow::Borrowed(file), &self.region)
        } else {
            (Cow::Owned(format!("{file}:{line}")), &self.site)
        };
        !self.has_place() || place.as_ref().is_some_and(|place| place.matches(&name))
    }

    /// Returns whether computations at a call site, `file:line`, or before the first one, are selected; `None` if that differs between
    /// visits.
    pub(super) fn selects_site(&self, rank: Rank, site: Option<&str>) -> Option<bool> {
        if self.iterations.is_some() {
            return None;
        }
        let parts = site.and_then(|site| site.rsplit_once(':'));
        let is_place = match parts.and_then(|(file, line)| Some((file, line.parse().ok()?))) {
            Some((file, line)) => self.selects_place(file, line),
            None => !self.has_place(),
        };
        Some(self.selects_rank(rank) && is_place)
    }

    pub(super) fn selects_rank(&self, rank: Rank) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.contains(rank.get().into()))
    }

    /// Returns whether a message is selected, apart from its place and sender.
    pub(super) fn accepts_message(&self, sent: &Sent) -> bool {
        self.accepts(&Facts::of_message(sent))
    }

    /// Returns whether an operation of the subject is selected, apart from its place and rank; false for messages.
    pub(super) fn accepts_call(&self, op: &Op) -> bool {
        facts(self.subject, op).is_some_and(|facts| self.accepts(&facts))
    }

    fn accepts(&self, facts: &Facts<'_>) -> bool {
        let number = |numbers: &Option<Numbers>, value: Option<u64>| match (numbers, value) {
            (Some(numbers), Some(value)) => numbers.contains(value),
            (wanted, _) => wanted.is_none(),
        };
        let call = match (&self.call, facts.call) {
            (Some(patterns), Some(call)) => patterns.matches(call),
            (wanted, _) => wanted.is_none(),
        };
        call && number(&self.tag, facts.tag)
            && number(&self.bytes, facts.bytes)
            && number(&self.communicator, facts.communicator)
    }

    /// Checks that something is selected.
    ///
    /// # Errors
    /// Names the key that matches nothing, with the nearest names.
    pub(super) fn check(&self, program: &Program<'_>) -> Result<(), Refusal> {
        let subject = self.subject.name();
        self.ranks.as_ref().map_or(Ok(()), |numbers| self.check_ranks("ranks", numbers, program))?;
        if self.subject == Subject::Ranks || self.matches_any(program) {
            return Ok(());
        }
        if self.single_keys().next().is_none() {
            return Err(Refusal::Nothing { subject });
        }
        let (key, nearest) = match self.single_keys().find(|(_, _, alone)| !alone.matches_any(program)) {
            Some((key, value, alone)) => (Some((key, value)), alone.alternatives(key, program)),
            None => (None, Vec::new()),
        };
        Err(Refusal::NoMatch { subject, key, nearest })
    }

    /// Checks that the numbers of a key are those of ranks.
    pub(super) fn check_ranks(
        &self,
        key: &'static str,
        numbers: &Numbers,
        program: &Program<'_>,
    ) -> Result<(), Refusal> {
        let ranks = program.ranks().count() as u64;
        let is_any = (0..ranks).any(|rank| numbers.contains(rank));
        if is_any && numbers.last().is_none_or(|last| last < ranks) {
            return Ok(());
        }
        let nearest = vec![format!("ranks 0 to {}", ranks.saturating_sub(1))];
        Err(Refusal::NoMatch { subject: self.subject.name(), key: Some((key, numbers.to_string())), nearest })
    }

    fn matches_any(&self, program: &Program<'_>) -> bool {
        let selects = |rank: Rank| {
            let values = &mut (Tracker::new(self, rank), Endpoints::default());
            let found = program.walk(rank, values, |(tracker, endpoints), step| {
                tracker.follow(&step.op);
                let mut is_selected = false;
                self.each(&step.op, endpoints, |facts| is_selected |= self.accepts(&facts));
                if is_selected && tracker.is_here() { Err(()) } else { Ok(()) }
            });
            found.is_err()
        };
        program.ranks().filter(|rank| self.selects_rank(*rank)).any(selects)
    }

    /// Calls a function with what an operation does of the subject.
    fn each(&self, op: &Op, endpoints: &mut Endpoints, mut f: impl FnMut(Facts<'_>)) {
        match self.subject {
            Subject::Messages => endpoints.events(op, |event| {
                if let Event::Send(sent, _) = event {
                    f(Facts::of_message(&sent));
                }
            }),
            subject => facts(subject, op).into_iter().for_each(f),
        }
    }

    /// Returns the selectors that have one of the keys only, with that key and its value.
    fn single_keys(&self) -> impl Iterator<Item = (&'static str, String, Self)> {
        let none = Self {
            subject: self.subject,
            region: None,
            site: None,
            iterations: None,
            ranks: None,
            call: None,
            tag: None,
            bytes: None,
            communicator: None,
        };
        let of = |key, value: Option<String>, alone: Self| value.map(|value| (key, value, alone));
        let patterns = |patterns: &Option<Patterns>| patterns.as_ref().map(Patterns::to_string);
        let numbers = |numbers: &Option<Numbers>| numbers.as_ref().map(Numbers::to_string);
        let place = Self { region: self.region.clone(), site: self.site.clone(), ..none.clone() };
        [
            of("region", patterns(&self.region), place.clone()),
            of("site", patterns(&self.site), place.clone()),
            of(
                "iterations",
                numbers(&self.iterations),
                Self { iterations: self.iterations.clone(), ..place },
            ),
            of("ranks", numbers(&self.ranks), Self { ranks: self.ranks.clone(), ..none.clone() }),
            of("call", patterns(&self.call), Self { call: self.call.clone(), ..none.clone() }),
            of("tag", numbers(&self.tag), Self { tag: self.tag.clone(), ..none.clone() }),
            of("bytes", numbers(&self.bytes), Self { bytes: self.bytes.clone(), ..none.clone() }),
            of(
                "communicator",
                numbers(&self.communicator),
                Self { communicator: self.communicator.clone(), ..none },
            ),
        ]
        .into_iter()
        .flatten()
    }

    /// Returns what a key could match: names, the nearest first, or the range of numbers.
    fn alternatives(&self, key: &str, program: &Program<'_>) -> Vec<String> {
        let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for rank in program.ranks() {
            program.walk_all(rank, &mut Endpoints::default(), |endpoints, step| {
                if let Op::Location { file, line } = &step.op {
                    match (key, *line) {
                        ("region", 0) => names.extend([file.clone()]),
                        ("site", 1..) => names.extend([format!("{file}:{line}")]),
                        _ => {}
                    }
                }
                self.each(&step.op, endpoints, |facts| match key {
                    "call" => names.extend(facts.call.map(str::to_owned)),
                    "tag" => numbers.extend(facts.tag),
                    "bytes" => numbers.extend(facts.bytes),
                    "communicator" => numbers.extend(facts.communicator),
                    _ => {}
                });
            });
        }
        if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
            let range = if first == last { first.to_string() } else { format!("{first} to {last}") };
            return vec![format!("{key} {range}")];
        }
        let wanted = self.region.as_ref().or(self.site.as_ref()).or(self.call.as_ref());
        let wanted = wanted.map_or("", Patterns::first);
        let names = nearest(wanted, names.iter().map(String::as_str));
        let quoted = |name: &&str| format!("{name:?}");
        match names.len() {
            0 if ["region", "site"].contains(&key) => vec![format!("no {key}s")],
            _ => names.iter().take(MAX_LISTED).map(quoted).collect(),
        }
    }
}

/// Returns an operation of a subject other than messages as selectors see it.
fn facts(subject: Subject, op: &Op) -> Option<Facts<'_>> {
    let nothing = Facts { call: None, tag: None, bytes: None, communicator: None };
    match (subject, op) {
        (Subject::Computations, Op::Compute { .. }) | (Subject::Visits, Op::Location { .. }) => Some(nothing),
        (Subject::Collectives, op) => {
            collective(op).map(|(name, communicator)| Facts::of_call(name, communicator))
        }
        (Subject::Polls, op) => Some(Facts { call: Some(poll(op)?), ..nothing }),
        (Subject::Receives, op) => Some(Facts { call: Some(blocking_receive(op)?), ..nothing }),
        (Subject::Creations, Op::Call(call @ CallOp::NewCommunicator { parent, .. })) => {
            Some(Facts::of_call(call.name(), *parent))
        }
        (
            Subject::Accesses,
            Op::Call(call @ CallOp::File { communicator, request: None, call: access, .. }),
        ) => {
            let FileCall::Access { is_collective: false, bytes, .. } = access else { return None };
            Some(Facts { bytes: Some(bytes.get()), ..Facts::of_call(call.name(), *communicator) })
        }
        _ => None,
    }
}

/// Returns the name of a test or a probe that does not wait; `None` for other operations.
fn poll(op: &Op) -> Option<&'static str> {
    match op {
        Op::Test(_) => Some(CallKind::Test.names()[0]),
        Op::Call(
            call @ (CallOp::Test { .. }
            | CallOp::Testall { .. }
            | CallOp::Testany { .. }
            | CallOp::Testsome { .. }
            | CallOp::GetStatus { .. }
            | CallOp::Iprobe { .. }),
        ) => Some(call.name()),
        _ => None,
    }
}

/// Returns the name of a blocking receive; `None` for other operations.
pub(super) fn blocking_receive(op: &Op) -> Option<&'static str> {
    match op {
        Op::Recv { .. } => Some(CallKind::Recv.names()[0]),
        Op::Call(call @ CallOp::Recv { .. }) => Some(call.name()),
        _ => None,
    }
}

impl<'o> Facts<'o> {
    fn of_message(sent: &Sent) -> Self {
        let tag = u64::try_from(sent.tag.get()).ok();
        let communicator = Some(sent.communicator.get().into());
        Self { call: Some(sent.call), tag, bytes: Some(sent.bytes.get()), communicator }
    }

    fn of_call(call: &'o str, communicator: CommId) -> Self {
        Self { call: Some(call), tag: None, bytes: None, communicator: Some(communicator.get().into()) }
    }
}

/// Returns the name and the communicator of a collective operation; `None` for other operations, and for those on communicators
/// themselves.
pub(super) fn collective(op: &Op) -> Option<(&'static str, CommId)> {
    match op {
        Op::Collective(operation) => Some((operation.name(), CommId::WORLD)),
        Op::Call(
            call @ (CallOp::Collective { communicator, .. } | CallOp::NeighborAlltoall { communicator, .. }),
        ) => Some((call.name(), *communicator)),
        _ => None,
    }
}
