//! Schedulers: the order in which an I/O server hands the requests in its queue to its device.
//!
//! A scheduler is one file, with a function of type [`Pick`], and one row of [`SCHEDULERS`].

mod by_offset;
mod in_order;
mod merging;

use std::collections::VecDeque;

use super::Access;

/// Takes the accesses out of a queue that the device does next, as one; the queue is not empty. The accesses are neighbours in one file,
/// with one direction. `last` is the file and the position at which the last access ended.
pub type Pick = fn(queue: &mut VecDeque<Queued>, last: Option<(u32, u64)>) -> Vec<Queued>;

/// An access in the queue of a server, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, pdes_core::State)]
pub struct Queued {
    /// The access, with its position in the part of the file that the server has.
    #[state(plain)]
    pub access: Access,
    /// Number that the server gives it.
    pub number: u64,
}

/// A row of the table of schedulers.
#[derive(Debug)]
pub struct Scheduler {
    /// Name in platforms.
    pub key: &'static str,
    /// Description in one sentence.
    pub description: &'static str,
    /// Chooses what is next.
    pub pick: Pick,
}

/// All schedulers, the default first.
pub static SCHEDULERS: [Scheduler; 3] = [
    Scheduler {
        key: "in-order",
        description: "One request after the other, in the order of arrival.",
        pick: in_order::pick,
    },
    Scheduler {
        key: "by-offset",
        description: "The next request of the file by its position, and from the begin again after the last one.",
        pick: by_offset::pick,
    },
    Scheduler {
        key: "merging",
        description: "In the order of arrival; neighbours of a request in the queue go with it.",
        pick: merging::pick,
    },
];

impl Scheduler {
    /// Returns the scheduler with a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        SCHEDULERS.iter().find(|row| row.key == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Direction;

    fn queue(places: &[(u32, u64, u64)]) -> VecDeque<Queued> {
        let queued = |(number, &(file, offset, bytes)): (u64, &(u32, u64, u64))| Queued {
            access: Access { file, direction: Direction::Write, offset, bytes },
            number,
        };
        (0..).zip(places).map(queued).collect()
    }

    /// Empties the queue; returns the numbers of each pick.
    fn order(key: &str, places: &[(u32, u64, u64)]) -> Vec<Vec<u64>> {
        let (mut queue, mut last, mut picks) = (queue(places), None, Vec::new());
        while !queue.is_empty() {
            let picked = (Scheduler::find(key).unwrap().pick)(&mut queue, last);
            let end = picked.iter().max_by_key(|queued| queued.access.end()).unwrap().access;
            last = Some((end.file, end.end()));
            picks.push(picked.iter().map(|queued| queued.number).collect());
        }
        picks
    }

    #[test]
    fn schedulers_choose_the_next_request() {
        let places = [(1, 50, 10), (2, 0, 10), (1, 10, 10), (1, 60, 10), (1, 20, 10), (1, 70, 5)];
        assert_eq!(order("in-order", &places), [[0], [1], [2], [3], [4], [5]]);
        // Sorted by file and position, from the last end on.
        assert_eq!(order("by-offset", &places), [[2], [4], [0], [3], [5], [1]]);
        assert_eq!(order("merging", &places), [vec![0, 3, 5], vec![1], vec![2, 4]]);
        assert!(Scheduler::find("random").is_none());
    }

    /// Requests of different directions are no neighbours, and one pick has a largest size.
    #[test]
    fn merging_has_limits() {
        let mut mixed = queue(&[(1, 0, 10), (1, 10, 10)]);
        mixed[1].access.direction = Direction::Read;
        assert_eq!((Scheduler::find("merging").unwrap().pick)(&mut mixed, None).len(), 1);
        let half = merging::MAX_BYTES / 2;
        assert_eq!(
            order("merging", &[(1, 0, half), (1, half, half), (1, 2 * half, 1)]),
            [vec![0, 1], vec![2]]
        );
    }
}
