//! Synchronisation on windows, as in SMPI (`smpi_win.cpp`).
//!
//! A fence is a barrier, the completion of the puts into the memory of the member and of its own gets, and a barrier. A member
//! exposes its memory by an empty message to each origin, and origins end their accesses by an empty message to each target.
//!
//! Who puts how often is told out of band, which takes no time: in SMPI the lists of requests are in the memory of one process. Each member
//! tells all others when it enters a fence, and learns from them after the first barrier, when all have entered: to wait for numbers before
//! would let it send the messages of the barrier in the past of others.

use std::collections::BTreeMap;
use std::ops::Range;

use pdes_core::{Bytes, Rank};
use trace_mmap::{Slot, WindowFetch, WindowSync};

use super::operation::Selectable;
use super::{Answer, Barrier, Member, OneSided, Schedule, Step, Steps, concatenate, irecv, isend};
use crate::locks::{LockCall, LockName};

/// Size of the room for a put: as much as any message has.
const ROOM: Bytes = Bytes::new(1 << 48);

/// Ranks of a window, with sizes.
type Targets = [(u32, Bytes)];

fn expect_put(from: u32) -> Step {
    Step::ExpectPut { from: Rank::new(from), bytes: ROOM }
}

fn complete(completed: &[Slot]) -> impl Iterator<Item = Step> + Send + '_ {
    completed.iter().map(|&slot| Step::Complete { slot })
}

/// Returns the steps of a fence, or of the end of a window, which ends the `puts` of the member and completes its requests. Cost: P - 1
/// tokens of each member, which take no simulated time.
pub(crate) fn fence<'a>(member: Member<'a>, puts: &'a Targets, completed: &'a [Slot]) -> Schedule<'a> {
    let tell = teller(puts);
    let told: Schedule<'a> = Box::new(member.others().map(tell));
    let expected = ExpectTold { group: member.others().collect(), asked: 0, expected: 0 };
    let ended: Schedule<'a> = Box::new(expected.then(complete(completed)));
    let barrier = move || Barrier::selected(member, ());
    concatenate([told, barrier(), ended, barrier()].into_iter())
}

/// Returns a function that returns the step that tells a rank how often this one puts into its memory.
fn teller(puts: &Targets) -> impl Fn(u32) -> Step + Send {
    let mut counts = BTreeMap::<u32, u32>::new();
    puts.iter().for_each(|(target, _)| *counts.entry(*target).or_default() += 1);
    move |to| Step::SendOutOfBand {
        to: Rank::new(to),
        numbers: [counts.get(&to).copied().unwrap_or_default(), 0],
    }
}

/// Returns the steps of an access that fetches from the memory of a rank, alone among those to it. The put of a comparison is not waited
/// for, unless it completes a request of the program.
pub(crate) fn fetch<'a>(
    (kind, writes): (WindowFetch, bool),
    (target, is_own): (u32, bool),
    bytes: Bytes,
    completes: Option<Slot>,
) -> Schedule<'a> {
    let write = match kind {
        WindowFetch::CompareAndSwap => (!is_own).then_some(OneSided::Put { bytes, completes }),
        WindowFetch::GetAccumulate | WindowFetch::FetchAndOp => Some(OneSided::Accumulate(bytes)),
    };
    let accesses = [
        Some(OneSided::Lock { lock: LockName::Fetches, call: LockCall::Take { is_exclusive: true } }),
        (!is_own).then_some(OneSided::Get(bytes)),
        write.filter(|_| writes),
        Some(OneSided::Lock { lock: LockName::Fetches, call: LockCall::GiveBack }),
    ];
    let of = Rank::new(target);
    Box::new(accesses.into_iter().flatten().map(move |access| Step::OneSided { of, access }))
}

/// Returns the steps of a call on the locks of some ranks, one after the other.
fn call_locks<'a>(targets: Range<u32>, call: LockCall) -> impl Iterator<Item = Step> + Send + 'a {
    let access = OneSided::Lock { lock: LockName::Memory, call };
    targets.map(move |target| Step::OneSided { of: Rank::new(target), access })
}

/// Returns the steps of a call that begins or ends accesses to the ranks of a group, or the exposure to them, or that locks or unlocks ranks
/// in the order of time; `None` for other calls.
pub(crate) fn epoch<'a>(
    sync: WindowSync,
    targets: Range<u32>,
    group: &'a Targets,
    (puts, completed): (&'a Targets, &'a [Slot]),
) -> Option<Schedule<'a>> {
    let peers = move || group.iter().map(|&(peer, _)| peer);
    Some(match sync {
        WindowSync::Post => Box::new(peers().map(|to| isend(to, Bytes::ZERO)).chain([Step::WaitAll])),
        WindowSync::Start => Box::new(peers().map(|from| irecv(from, Bytes::ZERO)).chain([Step::WaitAll])),
        WindowSync::Complete => {
            let tell = teller(puts);
            let end = move |peer: u32| [tell(peer), isend(peer, Bytes::ZERO)];
            Box::new(peers().flat_map(end).chain([Step::WaitAll]).chain(complete(completed)))
        }
        WindowSync::Wait => {
            let ended = peers().map(|from| irecv(from, Bytes::ZERO)).chain([Step::WaitAll]);
            Box::new(ended.then(ExpectTold { group: peers().collect(), asked: 0, expected: 0 }))
        }
        WindowSync::Lock | WindowSync::LockAll | WindowSync::LockExclusive => {
            let is_exclusive = sync == WindowSync::LockExclusive;
            Box::new(call_locks(targets, LockCall::Take { is_exclusive }))
        }
        WindowSync::Unlock | WindowSync::UnlockAll => {
            Box::new(complete(completed).chain(call_locks(targets, LockCall::GiveBack)))
        }
        _ => return None,
    })
}

/// The puts into the memory of a member from the ranks of a group, each of which tells how many.
struct ExpectTold {
    group: Vec<u32>,
    /// Number of ranks that have been asked.
    asked: usize,
    /// Number of puts of the last one that are still to be expected.
    expected: u32,
}

impl Steps for ExpectTold {
    fn next_step(&mut self, answer: Answer) -> Option<Step> {
        if let Answer::Numbers([puts, _]) = answer {
            self.expected = puts;
        }
        if self.expected > 0 {
            self.expected -= 1;
            return Some(expect_put(self.group[self.asked - 1]));
        }
        self.asked += 1;
        match self.group.get(self.asked - 1) {
            Some(&from) => Some(Step::RecvOutOfBand { from: Rank::new(from) }),
            None => (self.asked == self.group.len() + 1).then_some(Step::WaitAll),
        }
    }
}
