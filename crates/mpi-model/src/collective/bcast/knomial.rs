//! Broadcast down a k-nomial tree.

use super::Args;
use crate::collective::schedule_builder::build_schedule;
use crate::collective::{Member, Schedule};

/// Factor by which the number of ranks with the vector grows in each round.
const DEGREE: u64 = 4;

/// In each round, every rank with the vector sends it to three others at once.
///
/// Cost: log4 P (alpha + 3 n beta). Source: MVAPICH2's `Knomial_Bcast_intra_node`, of degree 4 in all of its tables.
pub(in crate::collective) fn knomial<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let (size, bytes) = (u64::from(member.size), args.data.bytes());
    let root = u64::from(args.root);
    let vrank = (u64::from(member.rank) + size - root) % size;
    let at = move |vrank: u64| ((vrank + root) % size) as u32;
    build_schedule(move |steps| {
        let mut distance = 1;
        while distance < size && vrank % (DEGREE * distance) == 0 {
            distance *= DEGREE;
        }
        if distance < size {
            steps.recv(at(vrank / (DEGREE * distance) * (DEGREE * distance)), bytes);
        }
        while distance > 1 {
            distance /= DEGREE;
            for child in (1..DEGREE).map(|k| vrank + k * distance).filter(|&child| child < size) {
                steps.isend(at(child), bytes);
            }
            steps.wait_all();
        }
    })
}
