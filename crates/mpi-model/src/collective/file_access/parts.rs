//! The parts of a file that the members of a communicator access together.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use trace_mmap::{FileHints, FileView};

/// Part of a file, or of the data of a view \[B\]: begin and end.
pub(crate) type Part = (u64, u64);

/// The parts of a file that the members of a communicator access together.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileParts {
    /// The part of each member, from its first byte to its last one.
    parts: Vec<Part>,
    /// Data of the members that leave out holes: their view, and the part of its data.
    with_holes: BTreeMap<u32, (Arc<FileView>, Part)>,
    /// The parts without overlaps, sorted.
    union: Vec<Part>,
    /// Hints with which the file was opened.
    pub(super) hints: FileHints,
    /// The parts of aggregators, once they are known.
    pub(super) domains: OnceLock<Vec<Part>>,
}

impl FileParts {
    /// Creates the parts of the members, in their order, with the views of those that have one, of whose data the parts are.
    pub(crate) fn new(mut parts: Vec<Part>, views: &BTreeMap<u32, Arc<FileView>>, hints: FileHints) -> Self {
        let mut with_holes = BTreeMap::new();
        for (&member, view) in views {
            let part = &mut parts[member as usize];
            let data = *part;
            *part = span(view, data);
            if !view.is_contiguous(data.0, data.1) {
                with_holes.insert(member, (Arc::clone(view), data));
            }
        }
        let mut sorted: Vec<Part> = parts.iter().copied().filter(|(begin, end)| begin < end).collect();
        sorted.sort_unstable();
        let mut union: Vec<Part> = Vec::new();
        for (begin, end) in sorted {
            match union.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => union.push((begin, end)),
            }
        }
        Self { parts, with_holes, union, hints, domains: OnceLock::new() }
    }

    /// Returns the number of members.
    pub(crate) fn members(&self) -> u32 {
        self.parts.len() as u32
    }

    /// Returns the part of a member, with its holes.
    pub(crate) fn of(&self, member: u32) -> Part {
        self.parts[member as usize]
    }

    /// Returns the view of a member and the part of its data that it accesses, unless these have no holes.
    pub(super) fn with_holes(&self, member: u32) -> Option<(&FileView, Part)> {
        self.with_holes.get(&member).map(|(view, data)| (&**view, *data))
    }

    /// Returns whether the members want nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.union.is_empty()
    }

    /// Returns begin and end of the whole, empty parts included.
    pub(super) fn whole(&self) -> Part {
        let begin = self.parts.iter().map(|part| part.0).min();
        let end = self.parts.iter().map(|part| part.1).max();
        begin.zip(end).unwrap_or_default()
    }

    /// Returns begin and end of all that anybody wants.
    pub(super) fn wanted(&self) -> Part {
        let ends = self.union.first().zip(self.union.last());
        ends.map(|(first, last)| (first.0, last.1)).unwrap_or_default()
    }

    /// Returns how much of its part a member wants \[B\].
    fn data(&self, member: u32) -> u64 {
        let (begin, end) = self.with_holes.get(&member).map_or(self.of(member), |(_, data)| *data);
        end - begin
    }

    /// Returns whether the parts lie side by side, at least by their sizes.
    pub(super) fn are_side_by_side(&self) -> bool {
        let (begin, end) = self.whole();
        let wanted: u64 = (0..self.members()).map(|member| self.data(member)).sum();
        self.parts.len() == 1 || (self.with_holes.is_empty() && end - begin == wanted)
    }

    /// Returns whether the part of a member begins before that of the one before it ends, as ROMIO compares them.
    pub(super) fn are_interleaved(&self) -> bool {
        let is_behind = |pair: &[Part]| pair[1].0 < pair[1].1 && pair[1].0 + 1 < pair[0].1;
        self.parts.windows(2).any(is_behind)
    }

    /// Returns how much a member wants of a range \[B\].
    pub(super) fn wanted_by(&self, member: u32, (begin, end): Part) -> u64 {
        let part = self.of(member);
        let (begin, end) = (begin.max(part.0), end.min(part.1));
        match self.with_holes.get(&member) {
            _ if begin >= end => 0,
            Some((view, _)) => view.data_before(end) - view.data_before(begin),
            None => end - begin,
        }
    }

    /// Returns how much anybody wants of a range \[B\]. Parts with holes are taken for disjoint, as those of a write are.
    pub(super) fn wanted_by_all(&self, (begin, end): Part) -> u64 {
        let common = |part: &Part| part.1.min(end).saturating_sub(part.0.max(begin));
        let first = self.union.partition_point(|part| part.1 <= begin);
        let of_union = self.union[first..].iter().take_while(|part| part.0 < end).map(common).sum();
        if self.with_holes.is_empty() {
            return of_union;
        }
        let each: u64 = (0..self.members()).map(|member| self.wanted_by(member, (begin, end))).sum();
        each.min(of_union)
    }

    /// Returns the first and the last position that a member wants of a range, if it wants any.
    pub(super) fn range_wanted_by(&self, member: u32, (begin, end): Part) -> Option<Part> {
        let part = self.of(member);
        let (begin, end) = (begin.max(part.0), end.min(part.1));
        if begin >= end {
            return None;
        }
        let Some((view, _)) = self.with_holes.get(&member) else { return Some((begin, end)) };
        let data = (view.data_before(begin), view.data_before(end));
        (data.0 < data.1).then(|| span(view, data))
    }

    /// Returns the number of pieces without holes that a member wants of a range.
    pub(super) fn pieces_wanted_by(&self, member: u32, range: Part) -> u64 {
        let Some((begin, end)) = self.range_wanted_by(member, range) else { return 0 };
        let Some((view, _)) = self.with_holes.get(&member) else { return 1 };
        view.blocks_before(view.data_before(end) - 1) - view.blocks_before(view.data_before(begin)) + 1
    }
}

/// Returns the part of the file from the first byte of a part of the data of a view to the last one.
fn span(view: &FileView, (begin, end): Part) -> Part {
    let first = view.position(begin);
    (first, if end > begin { view.position(end - 1) + 1 } else { first })
}

#[cfg(test)]
mod tests {
    use trace_mmap::BlockRun;

    use super::*;

    fn parts(parts: Vec<Part>) -> FileParts {
        FileParts::new(parts, &BTreeMap::new(), FileHints::default())
    }

    #[test]
    fn unions_have_no_overlaps() {
        let all = parts(vec![(0, 10), (5, 30), (30, 30), (40, 41)]);
        assert_eq!(all.union, [(0, 30), (40, 41)]);
        assert!(all.are_interleaved() && !parts(vec![(0, 10), (9, 30)]).are_interleaved());
        assert!(parts(vec![(10, 20), (0, 10)]).are_side_by_side());
        assert!(parts(vec![(7, 7); 3]).is_empty());
    }

    /// Two members have every second block of 4 bytes: 0..4, 8..12, ... and 4..8, 12..16, ...
    #[test]
    fn members_leave_out_holes() {
        let view = |displacement| {
            let run = BlockRun { offset: 0, bytes: 4, stride: 4, count: 1 };
            Arc::new(FileView::new(displacement, 8, &[run]).expect("a view"))
        };
        let views = BTreeMap::from([(0, view(0)), (1, view(4))]);
        let parts = FileParts::new(vec![(0, 12), (4, 12)], &views, FileHints::default());
        assert_eq!((parts.of(0), parts.of(1), parts.wanted()), ((0, 20), (12, 24), (0, 24)));
        assert!(!parts.are_side_by_side() && parts.are_interleaved());
        let of = |member| {
            (
                parts.wanted_by(member, (6, 18)),
                parts.range_wanted_by(member, (6, 18)),
                parts.pieces_wanted_by(member, (6, 18)),
            )
        };
        assert_eq!((of(0), of(1)), ((6, Some((8, 18)), 2), (4, Some((12, 16)), 1)));
        assert_eq!((parts.wanted_by_all((6, 18)), parts.wanted_by_all((4, 8))), (10, 0));
        // A single block has no holes.
        let parts = FileParts::new(vec![(1, 4), (4, 4)], &views, FileHints::default());
        assert_eq!((parts.of(0), parts.with_holes(0), parts.of(1)), ((1, 4), None, (12, 12)));
    }
}
