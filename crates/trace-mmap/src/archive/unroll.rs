//! Loop unrolling of programs.
//!
//! A cursor is fastest on consecutive records and slower at loop begins and ends. So short loops are written out, and
//! short bodies are replicated until they are long. This is done once for all ranks that share the program, when the first
//! of them is read.

use crate::archive::{Damage, MAX_DEPTH, MIN_SHARE_INVERSE};
use crate::record::{FieldMaxima, LOOP_BEGIN, LOOP_END, Limits, Record};

/// Number of records up to which loop bodies are replicated.
const TARGET_BODY_RECORDS: usize = 256;

/// Largest number of records that unrolling adds to a program: 16 KiB.
const MAX_ADDED_RECORDS: usize = 1024;

/// A nested loop can have boundaries if it has so many iterations for each iteration around it: then a dozen that are replayed in
/// each run cost less than two iterations of the outermost loop.
///
/// Counts decide, because ranks with more neighbours and fewer have them in common.
const MIN_NESTED_RATIO: u64 = 16;

/// A program with its loops unrolled.
#[derive(Debug)]
pub(crate) struct Unrolled {
    records: Box<[Record]>,
    maxima: FieldMaxima,
    has_nested_boundaries: bool,
}

/// Treatment of loops whose iterations may have boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopBodies {
    /// They are replicated like others.
    Replicated,
    /// They are not replicated, so that each pass is one iteration.
    ///
    /// These are the outermost loops, and long loops in short ones if most of the actions of the outermost loop are in them: the begins of
    /// these nested loops [have boundaries](Record::has_boundaries).
    Kept,
}

/// A loop whose end has not been reached.
struct OpenLoop {
    /// Index of its begin; if it has one iteration, it has none in the unrolled program.
    begin: usize,
    count: u64,
    /// True if the body has no loop.
    is_flat: bool,
    /// Number of actions of an iteration, optional ones included.
    actions: u64,
    /// Number of these that are in nested loops with boundaries.
    nested_actions: u64,
}

impl OpenLoop {
    /// Returns whether nested loops with boundaries hold most of the actions.
    fn is_mostly_nested(&self) -> bool {
        self.nested_actions > self.actions / 2
    }

    /// Returns whether the loop can have boundaries if it is nested in loops that run `runs` iterations together.
    fn can_have_boundaries_in(&self, runs: u64) -> bool {
        // With more runs none of them has the share of the actions for which boundaries pay.
        let is_long = runs < MIN_SHARE_INVERSE && self.count >= runs * MIN_NESTED_RATIO;
        is_long && self.nested_actions == 0
    }
}

impl Unrolled {
    /// Unrolls a program; returns `None` if it is damaged or its loops do not nest properly.
    pub(crate) fn new(
        records: impl Iterator<Item = Result<Record, Damage>>,
        bodies: LoopBodies,
    ) -> Option<Self> {
        let mut unroller = Unroller::new(bodies);
        for record in records {
            let record = record.ok()?;
            match record.kind() {
                LOOP_BEGIN => unroller.begin_loop(record.amount())?,
                LOOP_END => unroller.end_loop()?,
                _ => unroller.push(record)?,
            }
        }
        let Unroller { out, open, maxima, has_nested_boundaries, .. } = unroller;
        open.is_empty().then(|| Self { records: out.into(), maxima, has_nested_boundaries })
    }

    /// Returns the records. The index field of a loop begin is the number of records that the first pass skips.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns whether nested loops have boundaries.
    pub(crate) fn has_nested_boundaries(&self) -> bool {
        self.has_nested_boundaries
    }

    /// Returns whether all actions are within the limits.
    pub(crate) fn fits(&self, limits: &Limits) -> bool {
        self.maxima.are_within(limits)
    }
}

/// A program that is being unrolled.
struct Unroller {
    bodies: LoopBodies,
    out: Vec<Record>,
    open: Vec<OpenLoop>,
    maxima: FieldMaxima,
    /// Number of records that may still be added.
    gain: usize,
    has_nested_boundaries: bool,
}

impl Unroller {
    fn new(bodies: LoopBodies) -> Self {
        Self {
            bodies,
            out: Vec::new(),
            open: Vec::new(),
            maxima: FieldMaxima::default(),
            gain: MAX_ADDED_RECORDS,
            has_nested_boundaries: false,
        }
    }

    /// Adds an action; returns `None` if it is none.
    fn push(&mut self, record: Record) -> Option<()> {
        self.maxima.add(record)?;
        self.out.push(record);
        if let Some(around) = self.open.last_mut() {
            around.actions = around.actions.saturating_add(1);
        }
        Some(())
    }

    /// Begins a loop; returns `None` if it cannot begin here.
    fn begin_loop(&mut self, count: u64) -> Option<()> {
        if count == 0 || self.open.len() == MAX_DEPTH {
            return None;
        }
        let begin = self.out.len();
        self.open.push(OpenLoop { begin, count, is_flat: true, actions: 0, nested_actions: 0 });
        if count > 1 {
            self.out.push(Record::loop_begin(count));
        }
        Some(())
    }

    /// Ends the innermost loop; returns `None` if there is none.
    fn end_loop(&mut self) -> Option<()> {
        let mut ended = self.open.pop()?;
        let is_kept = self.bodies == LoopBodies::Kept && self.settle_boundaries(&mut ended);
        let is_flat = if ended.count == 1 { ended.is_flat } else { self.close(&ended, !is_kept) };
        if let Some(around) = self.open.last_mut() {
            let all = |actions: u64| actions.saturating_mul(ended.count);
            around.is_flat &= is_flat;
            around.actions = around.actions.saturating_add(all(ended.actions));
            around.nested_actions = around.nested_actions.saturating_add(all(ended.nested_actions));
        }
        Some(())
    }

    /// Decides which loops, of one that ends and those in it, have boundaries if they are nested; returns whether the body of the one
    /// that ends is kept.
    fn settle_boundaries(&mut self, ended: &mut OpenLoop) -> bool {
        if ended.count == 1 {
            return false;
        }
        if self.open.iter().all(|around| around.count == 1) {
            if ended.is_mostly_nested() {
                self.has_nested_boundaries = true;
            } else {
                let begins = self.out[ended.begin..].iter_mut().filter(|record| record.kind() == LOOP_BEGIN);
                begins.for_each(|begin| *begin = begin.with_boundaries(false));
            }
            return true;
        }
        let runs = self.open.iter().fold(1_u64, |runs, around| runs.saturating_mul(around.count));
        let has_boundaries = ended.can_have_boundaries_in(runs);
        if has_boundaries {
            ended.nested_actions = ended.actions;
            self.out[ended.begin] = self.out[ended.begin].with_boundaries(true);
        }
        has_boundaries
    }

    /// Writes a loop out after its body; returns whether no loop remains.
    fn close(&mut self, ended: &OpenLoop, repeats: bool) -> bool {
        let Self { out, gain, .. } = self;
        let &OpenLoop { begin, count, is_flat, .. } = ended;
        let body = begin + 1..out.len();
        if body.is_empty() {
            out.pop();
            return true;
        }
        let copies = if is_flat && repeats { copies(body.len(), count, *gain) } else { 1 };
        *gain -= (copies - 1) * body.len();
        let passes = count.div_ceil(copies as u64);
        let remainder = (count % copies as u64) as usize;
        let skipped = if remainder == 0 { 0 } else { (copies - remainder) * body.len() };
        for _ in 1..copies {
            out.extend_from_within(body.clone());
        }
        if passes == 1 {
            out.remove(begin);
            return true;
        }
        let has_boundaries = out[begin].has_boundaries();
        out[begin] = Record::unrolled_loop(passes, skipped as u32).with_boundaries(has_boundaries);
        out.push(Record::loop_end());
        false
    }
}

/// Returns the number of copies of a body: at most `count`, within [`TARGET_BODY_RECORDS`] and the remaining gain.
fn copies(len: usize, count: u64, gain: usize) -> usize {
    let copies = (TARGET_BODY_RECORDS / len).clamp(1, gain / len + 1);
    usize::try_from(count).map_or(copies, |count| copies.min(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A program in which column numbers stand for actions.
    #[derive(Clone, Debug)]
    enum Node {
        Act(u32),
        Loop(u64, Vec<Node>),
    }

    fn node() -> impl Strategy<Value = Node> {
        (0_u32..100).prop_map(Node::Act).prop_recursive(3, 30, 5, |node| {
            (prop_oneof![1_u64..5, 1_u64..300], prop::collection::vec(node, 0..5))
                .prop_map(|(count, body)| Node::Loop(count, body))
        })
    }

    fn records(nodes: &[Node]) -> Vec<Record> {
        let of_node = |node: &Node| match node {
            Node::Act(number) => vec![Record::column(*number)],
            Node::Loop(count, body) => {
                [vec![Record::loop_begin(*count)], records(body), vec![Record::loop_end()]].concat()
            }
        };
        nodes.iter().flat_map(of_node).collect()
    }

    fn actions(nodes: &[Node], out: &mut Vec<u32>) {
        for node in nodes {
            match node {
                Node::Act(number) => out.push(*number),
                Node::Loop(count, body) => (0..*count).for_each(|_| actions(body, out)),
            }
        }
    }

    fn actions_of(nodes: &[Node]) -> Vec<u32> {
        let mut found = Vec::new();
        actions(nodes, &mut found);
        found
    }

    /// Reads an unrolled program as its documentation says.
    fn walk(records: &[Record]) -> Vec<u32> {
        let (mut at, mut loops, mut found) = (0, Vec::new(), Vec::new());
        while at < records.len() {
            let record = records[at];
            at += 1;
            match record.kind() {
                LOOP_BEGIN => {
                    loops.push((at, record.amount()));
                    at += record.index() as usize;
                }
                LOOP_END => {
                    let (body, left) = loops.last_mut().expect("a loop");
                    *left -= 1;
                    if *left == 0 {
                        loops.pop();
                    } else {
                        at = *body;
                    }
                }
                _ => found.push(record.index()),
            }
        }
        found
    }

    fn unroll(records: &[Record]) -> Option<Unrolled> {
        Unrolled::new(records.iter().copied().map(Ok), LoopBodies::Replicated)
    }

    proptest! {
        #[test]
        fn unrolling_keeps_the_actions(nodes in prop::collection::vec(node(), 0..5)) {
            let records = records(&nodes);
            let unrolled = unroll(&records).expect("loops that nest");
            prop_assert_eq!(walk(unrolled.records()), actions_of(&nodes));
            prop_assert!(unrolled.records().len() <= records.len() + MAX_ADDED_RECORDS);
            let single = Unrolled::new(records.iter().copied().map(Ok), LoopBodies::Kept).expect("loops that nest");
            prop_assert_eq!(walk(single.records()), actions_of(&nodes));
        }
    }

    #[test]
    fn bodies_are_replicated_and_the_first_pass_skips_the_remainder() {
        // 3 records 100 times: 85 of 256 at once, in 2 passes, of which the first leaves out 70 copies.
        let body = [1, 2, 3].map(Node::Act).to_vec();
        let unrolled = unroll(&records(&[Node::Loop(100, body)])).expect("a loop");
        assert_eq!(unrolled.records().len(), 2 + 85 * 3);
        assert_eq!(unrolled.records()[0], Record::unrolled_loop(2, 70 * 3));
        let unrolled = unroll(&records(&[Node::Loop(u64::MAX, vec![Node::Act(1)])])).expect("a loop");
        assert_eq!(unrolled.records()[0], Record::unrolled_loop(u64::MAX / 256 + 1, 1));
        // Short loops are written out; so is then the loop around them.
        let inner = Node::Loop(4, vec![Node::Act(7)]);
        let unrolled = unroll(&records(&[Node::Loop(5, vec![inner])])).expect("loops");
        assert_eq!(unrolled.records(), [Record::column(7); 20]);
    }

    #[test]
    fn malformed_programs_are_not_unrolled() {
        let (begin, act, end) = (Record::loop_begin(2), Record::column(0), Record::loop_end());
        let deep = [[begin].repeat(MAX_DEPTH + 1), vec![act], [end].repeat(MAX_DEPTH + 1)].concat();
        for records in [&[begin, act][..], &[act, end], &[Record::loop_begin(0), act, end], &deep] {
            assert!(unroll(records).is_none(), "{records:?}");
        }
        // Each iteration of an outermost loop is one pass if asked for.
        let program = records(&[Node::Loop(100, vec![Node::Act(1), Node::Loop(3, vec![Node::Act(2)])])]);
        let single = Unrolled::new(program.into_iter().map(Ok), LoopBodies::Kept).expect("loops");
        assert_eq!((single.records().len(), single.records()[0]), (6, Record::unrolled_loop(100, 0)));
        // Loops without actions vanish.
        let nothing = [Record::loop_begin(u64::MAX), begin, end, end];
        assert!(unroll(&nothing).expect("loops").records().is_empty());
    }
}
