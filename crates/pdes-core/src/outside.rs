//! Processes that are outside: they have begun what takes real time alone.

use std::collections::VecDeque;

use crate::Process;

/// Number of processes that are asked whether they have decided: those that went first.
const ASKED: usize = 16;

/// The processes of a queue that are [outside](crate::Pause::Outside), by their local indices, in the order in which they went.
#[derive(Debug, Default)]
pub(crate) struct Outside(VecDeque<u32>);

impl Outside {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, local: u32) {
        self.0.push_back(local);
    }

    /// Removes and returns a process that has decided what it does next, for which it waits where processes tell; else the first one.
    #[cold]
    pub(crate) fn next(&mut self, processes: &[impl Process]) -> Option<u32> {
        loop {
            let &first = self.0.front()?;
            let mut asked = self.0.iter().take(ASKED);
            if let Some(index) = asked.position(|&local| processes[local as usize].has_decided()) {
                return self.0.remove(index);
            }
            if !processes[first as usize].await_decision() {
                return self.0.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;
    use crate::{Fault, Outbox, Pause, SimTime, Turn, Wake};

    /// A process that decides after some waits for anyone, or does not tell.
    struct Absent {
        waits: Option<Cell<u32>>,
    }

    impl Process for Absent {
        type Token = ();
        type WorkRequest = Infallible;
        type Error = Infallible;

        fn deliver(&mut self, (): (), _: &mut Outbox<()>) -> Result<Wake, Fault<Infallible>> {
            Ok(Wake::No)
        }

        fn resume(&mut self, _: &mut Turn, _: &mut Outbox<()>) -> Result<Pause, Fault<Infallible>> {
            Ok(Pause::Finished)
        }

        fn clock(&self) -> SimTime {
            SimTime::ZERO
        }

        fn has_decided(&self) -> bool {
            self.waits.as_ref().is_some_and(|waits| {
                let left = waits.get();
                waits.set(left.saturating_sub(1));
                left == 0
            })
        }

        fn await_decision(&self) -> bool {
            self.waits.is_some()
        }
    }

    fn order(waits: [Option<u32>; 3]) -> Vec<u32> {
        let processes = waits.map(|waits| Absent { waits: waits.map(Cell::new) });
        let mut outside = Outside::default();
        (0..3).for_each(|local| outside.add(local));
        std::iter::from_fn(|| outside.next(&processes)).collect()
    }

    #[test]
    fn those_that_have_decided_come_first_where_processes_tell() {
        assert_eq!(order([None, None, None]), [0, 1, 2]);
        assert_eq!(order([None, None, Some(0)]), [2, 0, 1]);
        assert_eq!(order([Some(5), Some(1), Some(2)]), [1, 2, 0]);
    }
}
