//! Cost model that decides whether folding a rank pays for its readers.
//!
//! A cursor over folded records has fewer records to check than one over flat records, but has to unpack amounts. If a rank has
//! many amounts and hardly any loops, unpacking takes longer than reading the additional bytes of flat records.

use crate::archive::encode::Encoded;
use crate::column::{AHEAD, Place};

/// Ranks with fewer actions are always folded: there may be many of them that share a program.
const MIN_ACTIONS: u64 = 1024;

/// Time to read a byte [ps]: a core reads 10 GB/s from memory.
const BYTE: u64 = 100;

/// Time that a folded action saves over a flat one [ps] in traces that hardly fold; twice that elsewhere. This and the following
/// constants are fitted to acquired traces of NPB.
const ACTION: u64 = 300;

/// Time to unpack an amount [ps].
const VALUE: u64 = 900;

/// Time to begin unpacking a buffer [ps].
const REFILL: u64 = 70_000;

/// Additional time of an inserted computation over another action [ps].
const INSERTION: u64 = 8_000;

/// Time to create a cursor, per column [ps].
const COLUMN: u64 = 25_000;

/// Time to create a cursor, without its columns [ps].
const RANK: u64 = 400_000;

/// Returns whether to fold a rank, given its sizes `folded` and `flat` [B].
pub(crate) fn is_paid(encoded: &Encoded, folded: u64, flat: u64) -> bool {
    let actions = encoded.actions();
    if actions < MIN_ACTIONS || folded <= flat / 2 {
        return true;
    }
    let bytes = flat.saturating_sub(folded).saturating_mul(BYTE);
    amounts(encoded) <= bytes.saturating_add(actions.saturating_mul(ACTION))
}

/// Returns the time of a cursor for the amounts of a rank [ps].
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
