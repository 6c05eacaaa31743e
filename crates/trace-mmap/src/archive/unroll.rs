//! Programs with their loops unrolled.
//!
//! A cursor steps through consecutive records at full speed and takes longer at the begin of a loop and at the end of
//! an iteration. So loops of few records are written out, and bodies are repeated until they are long. This is done once
//! for all ranks that share the program, when the first one is read.

use crate::archive::{Damage, MAX_DEPTH};
use crate::record::{LOOP_BEGIN, LOOP_END, Limits, Needs, Record};

/// Records up to which bodies of loops are repeated.
const RUN: usize = 128;

/// Records that a program may gain: 16 KiB.
const MAX_GAIN: usize = 1024;

/// A program with its loops unrolled.
#[derive(Debug)]
pub(crate) struct Unrolled {
    records: Box<[Record]>,
    needs: Needs,
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
    pub(crate) fn new(records: impl Iterator<Item = Result<Record, Damage>>) -> Option<Self> {
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
                    let is_loop = end(open.pop()?, &mut out, &mut gain);
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
fn end(Open { begin, count, is_flat }: Open, out: &mut Vec<Record>, gain: &mut usize) -> bool {
    let body = begin + 1..out.len();
    if body.is_empty() {
        out.pop();
        return false;
    }
    let copies = if is_flat { copies(body.len(), count, *gain) } else { 1 };
    *gain -= (copies - 1) * body.len();
    let passes = count.div_ceil(copies as u64);
    let skipped = (passes * copies as u64 - count) as usize * body.len();
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
