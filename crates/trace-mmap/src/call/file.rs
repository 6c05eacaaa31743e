//! Calls on files: MPI-IO.

use pdes_core::Bytes;

use super::file_hints::FileHints;
use super::visit::Number;

/// Name of a file, as the program has it: printable ASCII without blanks.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
pub struct FileName(Box<str>);

impl FileName {
    /// Returns the name; `None` if it is empty or has other characters.
    pub fn new(name: &str) -> Option<Self> {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        is_name.then(|| Self(name.into()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A call on a file of a communicator. Positions are from the begin of the file, or amounts of the data of the [view](super::FileView)
/// of the rank if it has set one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum FileCall {
    /// `MPI_File_open`, collective.
    Open {
        /// The flags `amode`, which have no effect.
        mode: u32,
        /// Hints to the library.
        hints: FileHints,
    },
    /// `MPI_File_close`, collective.
    Close,
    /// `MPI_File_sync`, collective.
    Sync,
    /// `MPI_File_seek` of the individual pointer.
    Seek {
        /// Position \[B\].
        offset: u64,
    },
    /// `MPI_File_read` or `MPI_File_write`, and with an offset `MPI_File_read_at` or `MPI_File_write_at`; collective ones end in `_all`.
    Access {
        /// True if all ranks of the communicator access the file together.
        is_collective: bool,
        /// Direction of the data.
        direction: FileDirection,
        /// Position \[B\]; `None` for that of the individual pointer, which moves.
        offset: Option<u64>,
        /// Size.
        bytes: Bytes,
    },
    /// `MPI_File_read_shared` or `MPI_File_write_shared`, at the pointer that all ranks share and one moves after the other; or
    /// `MPI_File_read_ordered` or `MPI_File_write_ordered`, collective, in the order of ranks.
    SharedAccess {
        /// True if all ranks of the communicator access the file together, in their order.
        is_ordered: bool,
        /// Direction of the data.
        direction: FileDirection,
        /// Size.
        bytes: Bytes,
    },
}

/// Direction of an access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum FileDirection {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

/// Largest position in a file \[B\]: text has numbers of up to 18 digits.
pub const MAX_OFFSET: u64 = 999_999_999_999_999_999;

impl FileCall {
    /// Returns whether all ranks of the communicator make the call.
    pub fn is_collective(self) -> bool {
        match self {
            Self::Open { .. } | Self::Close | Self::Sync => true,
            Self::Seek { .. } => false,
            Self::Access { is_collective, .. } => is_collective,
            Self::SharedAccess { is_ordered, .. } => is_ordered,
        }
    }

    /// Returns direction and size of an access.
    pub fn access(self) -> Option<(FileDirection, Bytes)> {
        match self {
            Self::Access { direction, bytes, .. } | Self::SharedAccess { direction, bytes, .. } => {
                Some((direction, bytes))
            }
            _ => None,
        }
    }

    /// Moves the individual pointer of a rank in the file; returns the first position of an access that is not at a shared pointer.
    pub fn move_pointer(self, pointer: &mut u64) -> Option<u64> {
        match self {
            Self::Open { .. } => *pointer = 0,
            Self::Seek { offset } => *pointer = offset,
            Self::Access { offset: Some(offset), .. } => return Some(offset),
            Self::Access { offset: None, bytes, .. } => {
                let begin = *pointer;
                *pointer = begin.saturating_add(bytes.get());
                return Some(begin);
            }
            Self::Close | Self::Sync | Self::SharedAccess { .. } => {}
        }
        None
    }

    /// Returns whether there is a nonblocking form of the call.
    pub fn may_have_request(self) -> bool {
        self.access().is_some()
    }

    /// Returns the position that the call names.
    pub(crate) fn offset(self) -> Option<u64> {
        match self {
            Self::Open { .. } | Self::Close | Self::Sync | Self::SharedAccess { .. } => None,
            Self::Seek { offset } => Some(offset),
            Self::Access { offset, .. } => offset,
        }
    }
}

impl Number for FileCall {
    /// Accesses have even numbers, behind each of which is that of its nonblocking form.
    fn number(&self) -> usize {
        match *self {
            Self::Access { is_collective, direction, offset, .. } => {
                let bits = [direction == FileDirection::Write, offset.is_some(), is_collective];
                (1..).zip(bits).map(|(bit, is_set)| usize::from(is_set) << bit).sum::<usize>()
            }
            Self::SharedAccess { is_ordered, direction, .. } => {
                16 + 4 * usize::from(is_ordered) + 2 * usize::from(direction == FileDirection::Write)
            }
            Self::Open { .. } => 24,
            Self::Close => 25,
            Self::Sync => 26,
            Self::Seek { .. } => 27,
        }
    }
}
