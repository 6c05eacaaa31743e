//! Messages of a series that become one.

use std::collections::BTreeMap;
use std::convert::Infallible;

use trace_mmap::Tag;
use trace_mmap::folded::{FoldedCursor, FoldedSequence, Recurrent, State, walk};

use super::{Part, SentPart};
use crate::transform::state::Stateful;

/// Makes consecutive messages of a series one.
pub(super) struct Joining<'p> {
    /// Flags of the receives of each tag.
    breaks: BTreeMap<Tag, FoldedCursor<'p, bool>>,
    /// Largest number of messages that become one.
    count: Option<u64>,
    /// The last messages, which become one.
    joined: Vec<SentPart>,
    parts: FoldedSequence<Part>,
}

impl<'p> Joining<'p> {
    /// Largest number of messages by which states are compared.
    const MAX_COMPARED: usize = 64;

    pub(super) fn of(
        sent: &FoldedSequence<SentPart>,
        breaks: BTreeMap<Tag, FoldedCursor<'p, bool>>,
        count: Option<u64>,
    ) -> FoldedSequence<Part> {
        let mut joining = Self { breaks, count, joined: Vec::new(), parts: FoldedSequence::default() };
        let Ok(()) = walk(sent.parts(), &mut joining);
        joining.end();
        joining.parts
    }

    fn end(&mut self) {
        let (bytes, last) = (self.joined.iter().map(|part| part.bytes).sum(), self.joined.len());
        let Some(first) = self.joined.first().map(|part| part.tag) else { return };
        for (number, SentPart { tag, .. }) in (1..).zip(self.joined.drain(..)) {
            self.parts.push(Part { tag, is_first: number == 1, is_last: number == last, bytes, first });
        }
    }
}

impl Recurrent<SentPart> for Joining<'_> {
    type Stop = Infallible;

    fn step(&mut self, part: &SentPart) -> Result<(), Infallible> {
        let is_break = self.breaks.get_mut(&part.tag).and_then(Iterator::next);
        let is_full = self.count.is_some_and(|count| self.joined.len() as u64 >= count);
        if part.is_first || is_break == Some(&true) || is_full {
            self.end();
        }
        self.joined.push(*part);
        Ok(())
    }

    fn state(&mut self, state: &mut State<'_>) {
        if self.joined.len() > Self::MAX_COMPARED {
            state.unknown();
        }
        for part in self.joined.iter().take(Self::MAX_COMPARED) {
            (part.tag, part.bytes).state(state);
        }
        (self.joined.len() as u64, &mut self.breaks, &mut self.parts).state(state);
    }
}
