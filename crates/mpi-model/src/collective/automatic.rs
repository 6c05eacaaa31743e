//! The selector `automatic`: all algorithms of an operation, one after the other.

use pdes_core::Bytes;

use super::member::Elements;
use super::operation::Selectable;
use super::steps::concatenate;
use super::{Member, Schedule, Selection, Steps, barrier, reduce};

/// Returns the schedule of all algorithms: for each a linear barrier, the algorithm, and a linear reduction of its time to
/// rank 0. An algorithm that does not support these members is skipped after its barrier. SimGrid has no closed forms, so
/// `analytic` and `in_network` are left out.
///
/// The cost is the sum of all, and 3 alpha for each. Source: SimGrid's `automatic`; the order is that of the table.
pub(super) fn run_all<'a, O: Selectable>(member: Member<'a>, args: O::Args<'a>) -> Schedule<'a> {
    let time = Elements { count: 1, element_size: Bytes::new(8) };
    let left_out = ["default", "automatic", "analytic", Selection::IN_NETWORK];
    let tried = O::ALGORITHMS.iter().filter(move |entry| !left_out.contains(&entry.name));
    concatenate(tried.map(move |entry| {
        let together = barrier::linear(member);
        if !entry.requirement.is_met(member.size) || !(entry.is_tried)(member) {
            return together;
        }
        let measured = reduce::linear(member, reduce::Args { root: 0, data: time });
        Box::new(together.then(O::by_choice(&entry.choice, member, args)).then(measured))
    }))
}

/// Returns whether the number of members is a power of two.
pub(super) fn power_of_two(member: Member<'_>) -> bool {
    member.size.is_power_of_two()
}

/// Returns whether all nodes have the same number of members, with block mapping.
pub(super) fn uniform_and_blocked(member: Member<'_>) -> bool {
    member.layout.is_uniform() && member.layout.is_blocked()
}
