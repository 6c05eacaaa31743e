//! What folding a rank costs whoever reads it, and what it is worth.
//!
//! A cursor over folded records has less to check than one over flat ones, and more to do for amounts: they are unpacked. Where a rank has
//! many amounts and hardly any loops, that takes longer than to read what flat records take more.

use crate::archive::encode::Encoded;
use crate::column::{AHEAD, Place};

/// Actions of the shortest rank of which this is asked: there may be many that are shorter, and share a program.
const MIN_ACTIONS: u64 = 1024;

/// Picoseconds to read a byte: 10 GB/s, what a core reads from memory.
const BYTE: u64 = 100;

/// Picoseconds that a folded action takes less than a flat one: on traces that hardly fold, elsewhere twice that. This and what follows is
/// fitted to acquired traces of NPB.
const ACTION: u64 = 300;

/// Picoseconds to unpack an amount.
const VALUE: u64 = 900;

/// Picoseconds to begin unpacking.
const REFILL: u64 = 70_000;

/// Picoseconds that an insertion takes more than an action.
const INSERTION: u64 = 8_000;

/// Picoseconds to make a cursor, for each column.
const COLUMN: u64 = 25_000;

/// Picoseconds to make a cursor, beside its columns.
const RANK: u64 = 400_000;

/// Returns whether a rank should be folded that then takes so many bytes.
pub(crate) fn is_paid(encoded: &Encoded, folded: u64, flat: u64) -> bool {
    let actions = encoded.actions();
    if actions < MIN_ACTIONS || folded <= flat / 2 {
        return true;
    }
    let bytes = flat.saturating_sub(folded).saturating_mul(BYTE);
    amounts(encoded) <= bytes.saturating_add(actions.saturating_mul(ACTION))
}

/// Returns what a cursor takes for the amounts of a rank, in picoseconds.
fn amounts(encoded: &Encoded) -> u64 {
    let columns = encoded.columns.iter().map(|column| match column.place {
        Place::Constant(_) => COLUMN,
        Place::Blocks(_) => {
            let refills = column.len.div_ceil(AHEAD as u64).saturating_mul(REFILL);
            column.len.saturating_mul(VALUE).saturating_add(refills).saturating_add(COLUMN)
        }
    });
    let inserted = encoded.columns.last().filter(|_| encoded.inserts).map_or(0, |column| column.len);
    columns.fold(RANK.saturating_add(inserted.saturating_mul(INSERTION)), u64::saturating_add)
}
