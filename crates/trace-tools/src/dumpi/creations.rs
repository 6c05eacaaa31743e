//! Records that make communicators and groups.

use rustc_hash::FxHashMap;

use super::file::Record;
use crate::timed::{GroupOf, Handle, Made, Split};

/// `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
pub(super) const PREDEFINED: [Handle; 2] = [2, 3];

/// The largest number of no communicator: `MPI_COMM_NULL`.
const NULL: i64 = 1;

/// The functions of these records.
pub(super) const FUNCTIONS: [&str; 6] = [
    "MPI_Comm_dup",
    "MPI_Comm_create",
    "MPI_Comm_split",
    "MPI_Cart_create",
    "MPI_Graph_create",
    "MPI_Cart_sub",
];

/// The extents of the Cartesian communicators of a rank.
pub(super) type Grids = FxHashMap<i64, Vec<u64>>;

/// Returns what a record makes, if it makes a communicator or a group.
pub(super) fn made(record: &Record, grids: &mut Grids) -> Option<Made> {
    let (numbers, arrays) = (&record.numbers[..], &record.arrays[..]);
    let by = match (record.name, numbers, arrays) {
        ("MPI_Comm_dup", [..], []) => Split::Dup,
        ("MPI_Comm_split", &[_, color, key, _], []) => Split::Color { color, key },
        ("MPI_Comm_create", &[_, group, _], []) => Split::Group(group as Handle),
        ("MPI_Cart_create", &[.., new], [extents, _]) => {
            grids.insert(new, extents.iter().map(|extent| *extent as u64).collect());
            Split::SameOrder
        }
        ("MPI_Graph_create", [..], [_, _]) => Split::SameOrder,
        ("MPI_Cart_sub", &[_, parent, new], [remain]) => {
            let remain: Vec<bool> = remain.iter().map(|remains| *remains != 0).collect();
            let extents = grids.get(&parent).cloned().unwrap_or_default();
            let kept = extents.iter().zip(&remain).filter(|(_, remains)| **remains);
            let kept = kept.map(|(extent, _)| *extent).collect();
            grids.insert(new, kept);
            Split::Grid { extents, remain }
        }
        _ => return group(record),
    };
    let place = usize::from(matches!(record.name, "MPI_Graph_create" | "MPI_Cart_sub"));
    let (parent, new) = (numbers[place] as Handle, *numbers.last()?);
    Some(Made::Communicator { parent, new: (new > NULL).then_some(new as Handle), by })
}

fn group(record: &Record) -> Option<Made> {
    let (first, numbers) = record.numbers.split_first()?;
    let (&second, new) = (numbers.first()?, *numbers.last()? as Handle);
    let (first, second) = (*first as Handle, second as Handle);
    let ranks = || record.arrays.first().into_iter().flatten().map(|rank| *rank as u32).collect();
    // A group has at most 2^20 ranks: more are there twice.
    let ranges =
        || record.arrays.iter().filter_map(|range| range_of(range)).flatten().take((1 << 20) + 1).collect();
    let of = match record.name {
        "MPI_Comm_group" => GroupOf::Communicator(first),
        "MPI_Group_incl" => GroupOf::Included(first, ranks()),
        "MPI_Group_excl" => GroupOf::Excluded(first, ranks()),
        "MPI_Group_range_incl" => GroupOf::Included(first, ranges()),
        "MPI_Group_range_excl" => GroupOf::Excluded(first, ranges()),
        "MPI_Group_union" => GroupOf::Union(first, second),
        "MPI_Group_intersection" => GroupOf::Intersection(first, second),
        "MPI_Group_difference" => GroupOf::Difference(first, second),
        _ => return None,
    };
    Some(Made::Group { new, of })
}

/// Returns the ranks of a range: first, last, stride.
fn range_of(range: &[i64]) -> Option<impl Iterator<Item = u32>> {
    let &[first, last, stride] = range else { return None };
    let steps = (last - first).checked_div(stride)?;
    // Ranks are below 2^20: a longer range is wrong, and refused for its first rank outside of the group.
    Some((0..=steps.min(1 << 20)).map(move |step| (first + step * stride) as u32))
}
