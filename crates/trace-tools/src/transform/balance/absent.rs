//! Computations for ranks that have none.

use std::ops::Range;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CommId, Op};

use super::super::messages::{Endpoints, Event};
use super::super::selector::{Tracker, collective};
use super::super::{Program, Rewrite, Selector, Step};

/// A call site, its file and line; a region has the line 0.
type Site = (String, u32);

/// A computation for each rank that has none.
#[derive(Debug)]
struct Computation {
    flops: f64,
    /// Call site; `None` before the first one.
    site: Option<Site>,
    /// Number of collective operations on the world communicator before it.
    collectives: u64,
}

/// Computations like those of one rank, for ranks that have none.
#[derive(Debug)]
pub(super) struct Inserted {
    /// The rank.
    of: Rank,
    computations: Vec<Computation>,
    /// By source, for each receive of that rank the number of computations before it, in ascending order.
    received: FxHashMap<Rank, Vec<usize>>,
}

impl Inserted {
    /// Reads the selected computations of a rank, each of which becomes a part of its amount.
    pub(super) fn like(selector: &Selector, program: &Program<'_>, of: Rank, part: f64) -> Self {
        let mut found = Self { of, computations: Vec::new(), received: FxHashMap::default() };
        let (mut tracker, mut endpoints) = (Tracker::new(selector, of), Endpoints::default());
        let mut site = None;
        let mut collectives = 0;
        for Step { op, .. } in program.steps(of) {
            tracker.follow(&op);
            endpoints.events(&op, |event| {
                if let Event::Receive(receive, _) = event
                    && let Some(from) = receive.from
                {
                    found.received.entry(from).or_default().push(found.computations.len());
                }
            });
            collectives += u64::from(is_on_world(&op));
            match op {
                Op::Location { file, line } => site = Some((file, line)),
                Op::Compute { flops } if tracker.is_here() => {
                    let site = site.clone();
                    found.computations.push(Computation { flops: flops * part, site, collectives });
                }
                _ => {}
            }
        }
        found
    }

    /// Starts the transformation of a rank without such computations.
    pub(super) fn rewrite(&self, rank: Rank) -> Box<dyn Rewrite + '_> {
        let received = self.received.get(&rank).map_or(&[][..], Vec::as_slice);
        let endpoints = Endpoints::default();
        Box::new(Inserting { all: self, received, next: 0, sent: 0, collectives: 0, site: None, endpoints })
    }
}

fn is_on_world(op: &Op) -> bool {
    collective(op).is_some_and(|(_, communicator)| communicator == CommId::WORLD)
}

/// Transformation of a rank.
#[derive(Debug)]
struct Inserting<'a> {
    all: &'a Inserted,
    /// For each message that the other rank receives from this one, the number of computations before it.
    received: &'a [usize],
    /// Number of the next computation.
    next: usize,
    /// Number of messages sent to the other rank, and of collective operations on the world communicator.
    sent: usize,
    collectives: u64,
    site: Option<Site>,
    endpoints: Endpoints,
}

impl Inserting<'_> {
    /// Returns the computations that the rank has reached.
    fn due(&self) -> Range<usize> {
        // The other rank makes these before it receives a message that has not been sent.
        let messages = self.received.get(self.sent).copied().unwrap_or(usize::MAX);
        let is_due = |&(number, computation): &(usize, &Computation)| {
            number < messages && computation.collectives <= self.collectives
        };
        let computations = self.all.computations.iter().enumerate().skip(self.next);
        self.next..self.next + computations.take_while(is_due).count()
    }

    /// Appends computations, those that follow each other at one call site as one.
    fn insert(&mut self, due: Range<usize>, action: u64, out: &mut Vec<Step>) {
        let mut push = |op| out.push(Step { op, posted: None, awaited: None, action, nanos: None });
        let location = |(file, line): &Site| Op::Location { file: file.clone(), line: *line };
        let mut now = self.site.as_ref();
        for group in self.all.computations[due.clone()].chunk_by(|one, other| one.site == other.site) {
            // Before the first call site of the rank there is none to come back to.
            if let (Some(site), Some(_)) = (&group[0].site, &self.site)
                && now != Some(site)
            {
                push(location(site));
                now = Some(site);
            }
            push(Op::Compute { flops: group.iter().map(|computation| computation.flops).sum() });
        }
        if now != self.site.as_ref() {
            self.site.iter().for_each(|site| push(location(site)));
        }
        self.next = due.end;
    }
}

impl Rewrite for Inserting<'_> {
    fn apply(&mut self, step: Step, out: &mut Vec<Step>) {
        let action = step.action;
        match &step.op {
            Op::Finalize => self.insert(self.next..self.all.computations.len(), action, out),
            Op::Init | Op::Location { .. } => {}
            _ => self.insert(self.due(), action, out),
        }
        self.collectives += u64::from(is_on_world(&step.op));
        let (of, sent) = (self.all.of, &mut self.sent);
        self.endpoints.events(&step.op, |event| {
            *sent += usize::from(matches!(event, Event::Send(message, _) if message.to == of));
        });
        let location = match &step.op {
            Op::Location { file, line } => Some((file.clone(), *line)),
            _ => None,
        };
        out.push(step);
        if location.is_some() {
            self.site = location;
            let due = self.due();
            let here = self.all.computations[due.clone()].iter().take_while(|next| next.site == self.site);
            self.insert(due.start..due.start + here.count(), action, out);
        }
    }

    fn finish(&mut self, out: &mut Vec<Step>) {
        let action = out.last().map_or(0, |step| step.action);
        self.insert(self.next..self.all.computations.len(), action, out);
    }
}
