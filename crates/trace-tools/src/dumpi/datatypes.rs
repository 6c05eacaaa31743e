//! Sizes of datatypes.

use rustc_hash::FxHashMap;

use super::file::Record;

/// Sizes of the predefined datatypes on x86-64, for files that do not have them \[B\].
const PREDEFINED: [u32; 28] =
    [0, 0, 1, 1, 1, 1, 4, 2, 2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 8, 1, 0, 0, 8, 12, 12, 6, 8, 20];

/// The sizes of the datatypes of a rank.
pub(super) struct Datatypes<'a> {
    /// By the file, at the end of the program.
    table: &'a [u32],
    /// Of the datatypes that recorded calls have made so far.
    made: FxHashMap<i64, u64>,
}

impl<'a> Datatypes<'a> {
    pub(super) fn new(table: Option<&'a [u32]>) -> Self {
        Self { table: table.unwrap_or(&PREDEFINED), made: FxHashMap::default() }
    }

    /// Returns the size of a datatype \[B\]; `None` if nothing tells it.
    pub(super) fn size(&self, datatype: i64) -> Option<u64> {
        let of_table = || self.table.get(usize::try_from(datatype).ok()?).map(|size| u64::from(*size));
        self.made.get(&datatype).copied().or_else(of_table)
    }

    /// Notes a datatype, if the record makes one.
    pub(super) fn note(&mut self, record: &Record) {
        let Some(kind) = record.name.strip_prefix("MPI_Type_") else { return };
        let ([first, .., new], arrays) = (&record.numbers[..], &record.arrays[..]) else { return };
        let old = record.numbers[record.numbers.len() - 2];
        let elements =
            |lengths: &[i64]| lengths.iter().fold(0, |sum: u64, length| sum.saturating_add(*length as u64));
        let product =
            |extents: &[i64]| extents.iter().fold(1, |all: u64, extent| all.saturating_mul(*extent as u64));
        let times = |elements: u64| Some(self.size(old)?.saturating_mul(elements));
        let size = match (kind, arrays) {
            ("contiguous", []) => times(*first as u64),
            ("vector" | "hvector" | "create_hvector", []) | ("create_indexed_block", [_]) => {
                times(product(&record.numbers[..2]))
            }
            ("indexed" | "hindexed" | "create_hindexed", [lengths, ..]) => times(elements(lengths)),
            ("create_subarray", [_, extents, _]) => times(product(extents)),
            ("dup", []) => times(1),
            ("create_resized", []) => self.size(*first),
            ("struct" | "create_struct", [lengths, .., datatypes]) => {
                let parts = lengths.iter().zip(datatypes);
                let mut sizes =
                    parts.map(|(length, part)| Some(self.size(*part)?.saturating_mul(*length as u64)));
                sizes.try_fold(0, |sum: u64, size| Some(sum.saturating_add(size?)))
            }
            _ => None,
        };
        if let Some(size) = size {
            self.made.insert(*new, size);
        }
    }
}
