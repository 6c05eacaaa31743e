//! States of machines, for comparison.

use super::FoldedSequence;

/// Visitor of the state of a machine, which describes itself part by part: as it observes states, or as it repeats what has
/// happened between two of them.
pub struct State<'m>(Phase<'m>);

enum Phase<'m> {
    Observe(&'m mut Mark),
    /// The same at the begin of a loop, by its depth.
    Begin(usize, &'m mut Mark),
    Repeat(Repetition<'m>),
    End(usize),
}

/// The changes between two equal states, to be repeated.
struct Repetition<'m> {
    depth: usize,
    earlier: &'m Mark,
    now: &'m Mark,
    times: u64,
    /// Numbers of the next counter and of the next output.
    next: (usize, usize),
}

/// An observed state.
#[derive(Debug, Default)]
pub(super) struct Mark {
    words: Vec<u64>,
    counters: Vec<Counter>,
    /// Number of parts of each output.
    outputs: Vec<usize>,
    is_unknown: bool,
}

/// A counter that grows.
#[derive(Clone, Copy, Debug)]
struct Counter {
    value: u64,
    /// Number by which it may grow before something changes.
    left: u64,
    group: Group,
}

/// Relation of a counter to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// The first one of a group.
    First,
    /// Only one counter of the group grows.
    Exclusive,
    /// All counters of the group that grow do so by the same number.
    Alike,
}

impl State<'_> {
    /// Describes a part that is equal in equal states.
    pub fn word(&mut self, word: u64) {
        if let Some(mark) = self.mark() {
            mark.words.push(word);
        }
    }

    /// Describes a counter that grows, by equal numbers in equal iterations, and makes no difference until it has grown by `left`.
    pub fn counter(&mut self, value: &mut u64, left: u64) {
        self.count(value, left, Group::First);
    }

    /// Describes counters of which only one grows, as those of nested loops. Each comes with the number by which it may grow.
    pub fn exclusive_counters<'c>(&mut self, counters: impl Iterator<Item = (&'c mut u64, u64)>) {
        for (number, (value, left)) in counters.enumerate() {
            self.count(value, left, if number == 0 { Group::First } else { Group::Exclusive });
        }
    }

    /// Describes counters that are compared with each other: those that grow do so by the same number.
    pub fn compared_counters<'c>(&mut self, counters: impl Iterator<Item = &'c mut u64>) {
        for (number, value) in counters.enumerate() {
            self.count(value, u64::MAX, if number == 0 { Group::First } else { Group::Alike });
        }
    }

    fn count(&mut self, value: &mut u64, left: u64, group: Group) {
        match &mut self.0 {
            Phase::Observe(mark) | Phase::Begin(_, mark) => {
                mark.counters.push(Counter { value: *value, left, group });
            }
            Phase::Repeat(Repetition { earlier, now, times, next: (next, _), .. }) => {
                let growth = now.counters[*next].value - earlier.counters[*next].value;
                *value += growth * *times;
                *next += 1;
            }
            Phase::End(_) => {}
        }
    }

    /// Describes a sequence to which the machine appends.
    pub fn output<T: PartialEq + Clone>(&mut self, output: &mut FoldedSequence<T>) {
        match &mut self.0 {
            Phase::Observe(mark) => mark.outputs.push(output.seal()),
            Phase::Begin(depth, mark) => mark.outputs.push(output.begin_loop(*depth)),
            Phase::Repeat(Repetition { depth, earlier, times, next: (_, next), .. }) => {
                output.repeat(*depth, earlier.outputs[*next], *times);
                *next += 1;
            }
            Phase::End(depth) => output.end_loop(*depth),
        }
    }

    /// Says that the state does not come again.
    pub fn unknown(&mut self) {
        if let Some(mark) = self.mark() {
            mark.is_unknown = true;
        }
    }

    fn mark(&mut self) -> Option<&mut Mark> {
        match &mut self.0 {
            Phase::Observe(mark) | Phase::Begin(_, mark) => Some(mark),
            Phase::Repeat(_) | Phase::End(_) => None,
        }
    }

    /// Ends a loop.
    pub(super) fn end(depth: usize, visit: impl FnOnce(&mut State<'_>)) {
        visit(&mut State(Phase::End(depth)));
    }
}

impl Mark {
    pub(super) fn of(visit: impl FnOnce(&mut State<'_>)) -> Self {
        let mut mark = Self::default();
        visit(&mut State(Phase::Observe(&mut mark)));
        mark
    }

    pub(super) fn at_begin(depth: usize, visit: impl FnOnce(&mut State<'_>)) -> Self {
        let mut mark = Self::default();
        visit(&mut State(Phase::Begin(depth, &mut mark)));
        mark
    }

    /// Returns whether the state may come again.
    pub(super) fn can_recur(&self) -> bool {
        !self.is_unknown
    }

    /// Returns how often what has happened since an earlier state happens again; 0 if the states differ.
    pub(super) fn repetitions(&self, earlier: &Self) -> u64 {
        let is_known = self.can_recur() && earlier.can_recur();
        if !is_known
            || self.words != earlier.words
            || self.counters.len() != earlier.counters.len()
            || self.outputs.len() != earlier.outputs.len()
        {
            return 0;
        }
        // Growth of the counters of a group.
        let (mut times, mut of_group) = (u64::MAX, 0);
        for (now, before) in self.counters.iter().zip(&earlier.counters) {
            if now.group == Group::First {
                of_group = 0;
            }
            match now.value.checked_sub(before.value) {
                Some(0) => {}
                Some(growth) if of_group == 0 || (now.group == Group::Alike && growth == of_group) => {
                    of_group = growth;
                    times = times.min(now.left / growth);
                }
                _ => return 0,
            }
        }
        times
    }

    /// Repeats what has happened since an earlier state.
    pub(super) fn repeat(
        &self,
        depth: usize,
        earlier: &Self,
        times: u64,
        visit: impl FnOnce(&mut State<'_>),
    ) {
        let repetition = Repetition { depth, earlier, now: self, times, next: (0, 0) };
        visit(&mut State(Phase::Repeat(repetition)));
    }
}
