//! What regions and their processes send across regions.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::RegionIndex;
use crate::Rank;

/// A piece of mail on its way.
#[derive(Debug)]
pub(super) enum Letter<T, M> {
    /// From a process to a process.
    Token(Rank, T),
    /// From a region to a region.
    Mail(M),
}

/// Letters, by the regions that sent them.
pub(super) type Letters<T, M> = Vec<(RegionIndex, Letter<T, M>)>;

/// The inboxes of all regions: one that is read in the present phase, and one that is filled meanwhile.
pub(super) struct PostOffice<T, M> {
    inboxes: [Box<[Inbox<T, M>]>; 2],
}

/// Where a worker gathers letters by the region that they are for.
pub(super) struct Bags<T, M> {
    of_region: Box<[Letters<T, M>]>,
    filled: Vec<RegionIndex>,
}

impl<T, M> Bags<T, M> {
    pub(super) fn new(regions: usize) -> Self {
        Self { of_region: (0..regions).map(|_| Vec::new()).collect(), filled: Vec::new() }
    }
}

struct Inbox<T, M> {
    /// Relaxed: phases are parted by meetings, which order all of it.
    is_filled: AtomicBool,
    letters: Mutex<Letters<T, M>>,
}

impl<T, M> PostOffice<T, M> {
    pub(super) fn new(regions: usize) -> Self {
        let inbox = |_| Inbox { is_filled: AtomicBool::new(false), letters: Mutex::new(Vec::new()) };
        Self { inboxes: [(0..regions).map(inbox).collect(), (0..regions).map(inbox).collect()] }
    }

    pub(super) fn regions(&self) -> usize {
        self.inboxes[0].len()
    }

    fn inbox(&self, phase: u64, region: RegionIndex) -> &Inbox<T, M> {
        &self.inboxes[(phase % 2) as usize][region as usize]
    }

    /// Sends letters that will be read in the next phase; returns how many.
    pub(super) fn send(
        &self,
        phase: u64,
        from: RegionIndex,
        letters: impl Iterator<Item = (RegionIndex, Letter<T, M>)>,
        bags: &mut Bags<T, M>,
    ) -> u64 {
        let mut count = 0;
        for (to, letter) in letters {
            let bag = &mut bags.of_region[to as usize];
            if bag.is_empty() {
                bags.filled.push(to);
            }
            bag.push((from, letter));
            count += 1;
        }
        for to in bags.filled.drain(..) {
            self.deliver(phase + 1, to, &mut bags.of_region[to as usize]);
        }
        count
    }

    /// Brings letters to a region that will read them in a phase.
    pub(super) fn deliver(&self, phase: u64, to: RegionIndex, letters: &mut Letters<T, M>) {
        let inbox = self.inbox(phase, to);
        inbox.is_filled.store(true, Ordering::Relaxed);
        inbox.letters.lock().expect("no worker has panicked").append(letters);
    }

    /// Returns whether a region has letters to read in a phase.
    pub(super) fn has_letters(&self, phase: u64, region: RegionIndex) -> bool {
        self.inbox(phase, region).is_filled.load(Ordering::Relaxed)
    }

    /// Takes the letters that a region has to read in a phase, in the order of the regions that sent them.
    pub(super) fn take(&self, phase: u64, region: RegionIndex, letters: &mut Letters<T, M>) {
        let inbox = self.inbox(phase, region);
        if !inbox.is_filled.swap(false, Ordering::Relaxed) {
            return;
        }
        letters.append(&mut inbox.letters.lock().expect("no worker has panicked"));
        letters.sort_by_key(|&(from, _)| from);
    }
}
