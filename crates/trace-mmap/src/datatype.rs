//! MPI datatypes and the identifiers that traces use for them.

use std::fmt;

use pdes_core::Bytes;

/// A predefined MPI datatype: identifier, name and size.
///
/// Identifiers and sizes are those of SimGrid's SMPI on x86-64. Four of the sizes differ from the MPI standard (SMPI's
/// `COMPLEX32` has 16 bytes, its `INTEGER1` 4) and are kept because traces are written and replayed with them.
///
/// ```
/// use pdes_core::Bytes;
/// use trace_mmap::Datatype;
/// assert_eq!(Datatype::from_id(6), Some(Datatype::BYTE));
/// assert_eq!(Datatype::DOUBLE.size(), Bytes::new(8));
/// assert_eq!(Datatype::from_id(60), None);
/// ```
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
pub struct Datatype(u8);

/// Name and size of each datatype; the index is the identifier plus one.
const TABLE: [(&str, u8); 61] = [
    ("DATATYPE_NULL", 0),
    ("DOUBLE", 8),
    ("INT", 4),
    ("CHAR", 1),
    ("SHORT", 2),
    ("LONG", 8),
    ("FLOAT", 4),
    ("BYTE", 1),
    ("LONG_LONG", 8),
    ("SIGNED_CHAR", 1),
    ("UNSIGNED_CHAR", 1),
    ("UNSIGNED_SHORT", 2),
    ("UNSIGNED", 4),
    ("UNSIGNED_LONG", 8),
    ("UNSIGNED_LONG_LONG", 8),
    ("LONG_DOUBLE", 16),
    ("WCHAR", 4),
    ("C_BOOL", 1),
    ("INT8_T", 1),
    ("INT16_T", 2),
    ("INT32_T", 4),
    ("INT64_T", 8),
    ("UINT8_T", 1),
    ("UINT16_T", 2),
    ("UINT32_T", 4),
    ("UINT64_T", 8),
    ("C_FLOAT_COMPLEX", 8),
    ("C_DOUBLE_COMPLEX", 16),
    ("C_LONG_DOUBLE_COMPLEX", 32),
    ("AINT", 8),
    ("OFFSET", 8),
    ("FLOAT_INT", 8),
    ("LONG_INT", 16),
    ("DOUBLE_INT", 16),
    ("SHORT_INT", 8),
    ("2INT", 8),
    ("2FLOAT", 8),
    ("2DOUBLE", 16),
    ("2LONG", 16),
    ("REAL", 4),
    ("REAL4", 4),
    ("REAL8", 8),
    ("REAL16", 16),
    ("COMPLEX8", 8),
    ("COMPLEX16", 16),
    ("COMPLEX32", 16),
    ("INTEGER1", 4),
    ("INTEGER2", 2),
    ("INTEGER4", 4),
    ("INTEGER8", 8),
    ("INTEGER16", 16),
    ("LONG_DOUBLE_INT", 32),
    ("CXX_BOOL", 1),
    ("CXX_FLOAT_COMPLEX", 8),
    ("CXX_DOUBLE_COMPLEX", 16),
    ("CXX_LONG_DOUBLE_COMPLEX", 32),
    ("UB", 0),
    ("LB", 0),
    ("PACKED", 1),
    ("PTR", 8),
    ("COUNT", 8),
];

impl Datatype {
    /// `MPI_DOUBLE`, the default type of a rank whose `init` has an argument.
    pub const DOUBLE: Self = Self(1);
    /// `MPI_BYTE`, the default type of a rank whose `init` has no argument.
    pub const BYTE: Self = Self(7);

    /// Returns the datatype with this identifier (-1 for `MPI_DATATYPE_NULL`, then 0 to 59), or `None`.
    pub fn from_id(id: i32) -> Option<Self> {
        let index = u8::try_from(i64::from(id) + 1).ok()?;
        (usize::from(index) < TABLE.len()).then_some(Self(index))
    }

    /// Returns the identifier, -1 to 59.
    pub const fn id(self) -> i32 {
        self.0 as i32 - 1
    }

    /// Returns whether the datatype exists: one of a forged archive may not.
    pub(crate) fn is_known(self) -> bool {
        usize::from(self.0) < TABLE.len()
    }

    /// Returns the size of one element.
    pub const fn size(self) -> Bytes {
        Bytes::new(TABLE[self.0 as usize].1 as u64)
    }

    /// Returns the MPI name without its prefix, such as `DOUBLE`.
    pub const fn name(self) -> &'static str {
        TABLE[self.0 as usize].0
    }
}

impl fmt::Debug for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_keep_their_place_in_the_table() {
        for (id, name, size) in [(0, "DOUBLE", 8), (14, "LONG_DOUBLE", 16), (27, "C_LONG_DOUBLE_COMPLEX", 32)]
            .into_iter()
            .chain([
                (43, "COMPLEX16", 16),
                (50, "LONG_DOUBLE_INT", 32),
                (59, "COUNT", 8),
                (-1, "DATATYPE_NULL", 0),
            ])
        {
            let datatype = Datatype::from_id(id).expect("the identifier is in the table");
            assert_eq!((datatype.id(), datatype.name(), datatype.size()), (id, name, Bytes::new(size)));
        }
        assert_eq!(Datatype::from_id(-2), None);
        assert_eq!(Datatype::from_id(i32::MAX), None);
        assert_eq!(Datatype::DOUBLE.id(), 0);
        assert_eq!(Datatype::BYTE.id(), 6);
    }
}
