//! Loop unrolling of programs.
//!
//! A cursor is fastest on consecutive records and slower at loop begins and ends. So short loops are written out, and
//! short bodies are replicated until they are long. This is done once for all ranks that share the program, when the first
//! of them is read.

use crate::archive::{Damage, MAX_DEPTH};
use crate::record::{FieldMaxima, LOOP_BEGIN, LOOP_END, Limits, Record};

/// Number of records up to which loop bodies are replicated.
const TARGET_BODY_RECORDS: usize = 256;

/// Largest number of records that unrolling adds to a program: 16 KiB.
const MAX_ADDED_RECORDS: usize = 1024;

/// A program with its loops unrolled.
#[derive(Debug)]
pub(crate) struct Unrolled {
    records: Box<[Record]>,
    maxima: FieldMaxima,
}

/// Treatment of the bodies of outermost loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutermostLoops {
    /// They are replicated like others.
    Replicated,
    /// They are not replicated, so that each pass is one iteration.
    Kept,
}

/// A loop whose end has not been reached.
struct OpenLoop {
    /// Index of its begin.
    begin: usize,
    count: u64,
    /// True if the body has no loop.
    is_flat: bool,
}

impl Unrolled {
    /// Unrolls a program; returns `None` if it is damaged or its loops do not nest properly.
    pub(crate) fn new(
        records: impl Iterator<Item = Result<Record, Damage>>,
        outermost: OutermostLoops,
    ) -> Option<Self> {
        let (mut out, mut open, mut needs) = (Vec::new(), Vec::<OpenLoop>::new(), FieldMaxima::default());
        let mut gain = MAX_ADDED_RECORDS;
        for record in records {
            let record = record.ok()?;
            match record.kind() {
                LOOP_BEGIN => {
                    let begun = OpenLoop { begin: out.len(), count: record.amount(), is_flat: true };
                    if begun.count == 0 || open.len() == MAX_DEPTH {
                        return None;
                    }
                    open.push(begun);
                    out.push(record);
                }
                LOOP_END => {
                    let ended = open.pop()?;
                    let repeats = outermost == OutermostLoops::Replicated || !open.is_empty();
                    let is_loop = close_loop(ended, repeats, &mut out, &mut gain);
                    if let Some(outer) = open.last_mut().filter(|_| is_loop) {
                        outer.is_flat = false;
                    }
                }
                _ => {
                    needs.add(record)?;
                    out.push(record);
                }
            }
        }
        open.is_empty().then(|| Self { records: out.into(), maxima: needs })
    }

    /// Returns the records. The index field of a loop begin is the number of records that the first pass skips.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns whether all actions are within the limits.
    pub(crate) fn fits(&self, limits: &Limits) -> bool {
        self.maxima.are_within(limits)
    }
}

/// Ends a loop after its body; returns whether a loop remains.
fn close_loop(
    OpenLoop { begin, count, is_flat }: OpenLoop,
    repeats: bool,
    out: &mut Vec<Record>,
    gain: &mut usize,
) -> bool {
    let body = begin + 1..out.len();
    if body.is_empty() {
        out.pop();
        return false;
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
        return false;
    }
    out[begin] = Record::unrolled_loop(passes, skipped as u32);
    out.push(Record::loop_end());
    true
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
        Unrolled::new(records.iter().copied().map(Ok), OutermostLoops::Replicated)
    }

    proptest! {
        #[test]
        fn unrolling_keeps_the_actions(nodes in prop::collection::vec(node(), 0..5)) {
            let records = records(&nodes);
            let unrolled = unroll(&records).expect("loops that nest");
            prop_assert_eq!(walk(unrolled.records()), actions_of(&nodes));
            prop_assert!(unrolled.records().len() <= records.len() + MAX_ADDED_RECORDS);
            let single = Unrolled::new(records.iter().copied().map(Ok), OutermostLoops::Kept).expect("loops that nest");
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
        let single = Unrolled::new(program.into_iter().map(Ok), OutermostLoops::Kept).expect("loops");
        assert_eq!((single.records().len(), single.records()[0]), (6, Record::unrolled_loop(100, 0)));
        // Loops without actions vanish.
        let nothing = [Record::loop_begin(u64::MAX), begin, end, end];
        assert!(unroll(&nothing).expect("loops").records().is_empty());
    }
}
