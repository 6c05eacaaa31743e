//! Programs with their loops unrolled.
//!
//! A cursor steps through consecutive records at full speed and takes longer at the begin of a loop and at the end of
//! an iteration. So loops of few records are written out, and bodies are repeated until they are long. This is done once
//! for all ranks that share the program, when the first one is read.

use crate::archive::{Damage, MAX_DEPTH};
use crate::record::{LOOP_BEGIN, LOOP_END, Limits, Needs, Record};

/// Records up to which bodies of loops are repeated.
const RUN: usize = 256;

/// Records that a program may gain: 16 KiB.
const MAX_GAIN: usize = 1024;

/// A program with its loops unrolled.
#[derive(Debug)]
pub(crate) struct Unrolled {
    records: Box<[Record]>,
    needs: Needs,
}

/// What becomes of the bodies of loops that are in no other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outermost {
    /// They are repeated as others are.
    Repeated,
    /// They stay as they are, so that each pass is an iteration.
    Single,
}

/// A loop whose end is not reached yet.
struct Open {
    /// The place of its begin.
    begin: usize,
    count: u64,
    /// Whether there is no loop within.
    is_flat: bool,
}

impl Unrolled {
    /// Unrolls a program; `None` where it is damaged, or its loops do not nest as they should.
    pub(crate) fn new(
        records: impl Iterator<Item = Result<Record, Damage>>,
        outermost: Outermost,
    ) -> Option<Self> {
        let (mut out, mut open, mut needs) = (Vec::new(), Vec::<Open>::new(), Needs::default());
        let mut gain = MAX_GAIN;
        for record in records {
            let record = record.ok()?;
            match record.kind() {
                LOOP_BEGIN => {
                    let begun = Open { begin: out.len(), count: record.amount(), is_flat: true };
                    if begun.count == 0 || open.len() == MAX_DEPTH {
                        return None;
                    }
                    open.push(begun);
                    out.push(record);
                }
                LOOP_END => {
                    let ended = open.pop()?;
                    let repeats = outermost == Outermost::Repeated || !open.is_empty();
                    let is_loop = end(ended, repeats, &mut out, &mut gain);
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
        open.is_empty().then(|| Self { records: out.into(), needs })
    }

    /// Returns the records. The index of the begin of a loop is the number of records that its first iteration leaves out.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns whether the limits admit all actions.
    pub(crate) fn fits(&self, limits: &Limits) -> bool {
        self.needs.fit(limits)
    }
}

/// Ends a loop behind its body; returns whether a loop is left.
fn end(Open { begin, count, is_flat }: Open, repeats: bool, out: &mut Vec<Record>, gain: &mut usize) -> bool {
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

/// Returns how often a body is repeated: as long as it is short, and at most as a whole.
fn copies(len: usize, count: u64, gain: usize) -> usize {
    let copies = (RUN / len).clamp(1, gain / len + 1);
    usize::try_from(count).map_or(copies, |count| copies.min(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A program: the numbers of columns stand for actions.
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
        Unrolled::new(records.iter().copied().map(Ok), Outermost::Repeated)
    }

    proptest! {
        #[test]
        fn unrolled_programs_are_the_same_program(nodes in prop::collection::vec(node(), 0..5)) {
            let records = records(&nodes);
            let unrolled = unroll(&records).expect("loops that nest");
            prop_assert_eq!(walk(unrolled.records()), actions_of(&nodes));
            prop_assert!(unrolled.records().len() <= records.len() + MAX_GAIN);
            let single = Unrolled::new(records.iter().copied().map(Ok), Outermost::Single).expect("loops that nest");
            prop_assert_eq!(walk(single.records()), actions_of(&nodes));
        }
    }

    #[test]
    fn bodies_are_repeated_and_their_remainder_is_left_out_at_first() {
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
    fn what_is_no_program_is_not_unrolled() {
        let (begin, act, end) = (Record::loop_begin(2), Record::column(0), Record::loop_end());
        let deep = [[begin].repeat(MAX_DEPTH + 1), vec![act], [end].repeat(MAX_DEPTH + 1)].concat();
        for records in [&[begin, act][..], &[act, end], &[Record::loop_begin(0), act, end], &deep] {
            assert!(unroll(records).is_none(), "{records:?}");
        }
        // Each iteration of a loop in no other one has its pass, where that is wanted.
        let program = records(&[Node::Loop(100, vec![Node::Act(1), Node::Loop(3, vec![Node::Act(2)])])]);
        let single = Unrolled::new(program.into_iter().map(Ok), Outermost::Single).expect("loops");
        assert_eq!((single.records().len(), single.records()[0]), (6, Record::unrolled_loop(100, 0)));
        // However often nothing is repeated, it is nothing.
        let nothing = [Record::loop_begin(u64::MAX), begin, end, end];
        assert!(unroll(&nothing).expect("loops").records().is_empty());
    }
}
