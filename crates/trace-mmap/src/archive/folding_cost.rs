//! Cost model that decides whether folding a rank pays for its readers.
//!
//! A cursor over folded records has fewer records to check than one over flat records, but has to unpack amounts. If a rank has
//! many amounts and hardly any loops, unpacking takes longer than reading the additional bytes of flat records.

use crate::archive::encode::Encoded;
use crate::column::{ColumnStorage, PREFETCHED_VALUES};

/// Ranks with fewer actions are always folded: there may be many of them that share a program.
const MIN_ACTIONS: u64 = 1024;

/// Time to read a byte [ps]: a core reads 10 GB/s from memory.
const BYTE_PS: u64 = 100;

/// Time that a folded action saves over a flat one [ps] in traces that hardly fold; twice that elsewhere. This and the following
/// constants are fitted to acquired traces of NPB.
const ACTION_SAVING_PS: u64 = 300;

/// Time to unpack an amount [ps].
const UNPACK_PS: u64 = 900;

/// Time to begin unpacking a buffer [ps].
const REFILL_PS: u64 = 70_000;

/// Additional time of an inserted computation over another action [ps].
const INSERTION_PS: u64 = 8_000;

/// Time to create a cursor, per column [ps].
const COLUMN_SETUP_PS: u64 = 25_000;

/// Time to create a cursor, without its columns [ps].
const CURSOR_SETUP_PS: u64 = 400_000;

/// Returns whether to fold a rank, given its sizes `folded` and `flat` [B].
pub(crate) fn folding_pays(encoded: &Encoded, folded: u64, flat: u64) -> bool {
    let actions = encoded.actions();
    if actions < MIN_ACTIONS || folded <= flat / 2 {
        return true;
    }
    let bytes = flat.saturating_sub(folded).saturating_mul(BYTE_PS);
    amounts_ps(encoded) <= bytes.saturating_add(actions.saturating_mul(ACTION_SAVING_PS))
}

/// Returns the time of a cursor for the amounts of a rank [ps].
fn amounts_ps(encoded: &Encoded) -> u64 {
    let columns = encoded.columns.iter().map(|column| match column.storage {
        ColumnStorage::Constant(_) => COLUMN_SETUP_PS,
        ColumnStorage::Blocks(_) => {
            let refills = column.len.div_ceil(PREFETCHED_VALUES as u64).saturating_mul(REFILL_PS);
            column.len.saturating_mul(UNPACK_PS).saturating_add(refills).saturating_add(COLUMN_SETUP_PS)
        }
    });
    let inserted = encoded.columns.last().filter(|_| encoded.has_inserts).map_or(0, |column| column.len);
    columns.fold(CURSOR_SETUP_PS.saturating_add(inserted.saturating_mul(INSERTION_PS)), u64::saturating_add)
}
