//! The order in which a rank opens, uses and closes a file.

use serde::{Deserialize, Serialize};

use crate::call::{Call, FileCall, FileName};

/// Effect of a call on the open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// The call opens the file.
    Open,
    /// The call needs an open file.
    Access,
    /// The call closes the file.
    Close,
}

impl FileUse {
    /// Returns the file of a call and the effect on it; `None` for a call on no file.
    pub fn of(call: &Call) -> Option<(&FileName, Self)> {
        match call {
            Call::File { file, call: FileCall::Open { .. }, .. } => Some((file, Self::Open)),
            Call::File { file, call: FileCall::Close, .. } => Some((file, Self::Close)),
            Call::File { file, .. } | Call::SetView { file, .. } => Some((file, Self::Access)),
            _ => None,
        }
    }
}

/// State of a file, by its name, in the program of a rank.
///
/// A program that never opens a file may use it, and close it once: it was open before the trace begins. A file may be opened again
/// while it is open, as by two communicators, and is open until each of them has closed it.
///
/// ```
/// use trace_mmap::{FileMisuse, FileState, FileUse};
/// let mut state = FileState::default();
/// for call in [FileUse::Open, FileUse::Access, FileUse::Close] {
///     state.follow(call)?;
/// }
/// assert_eq!(state.follow(FileUse::Access), Err(FileMisuse::UsedAfterClose));
/// # Ok::<(), FileMisuse>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FileState {
    /// No call has used the file.
    #[default]
    Unused,
    /// Calls have used the file, and none has opened it.
    NotOpened,
    /// The file was opened so many times more often than closed, at least once.
    Open(u32),
    /// The file is closed.
    Closed,
}

/// A call on a file in the wrong state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileMisuse {
    /// The file is opened for the first time, and was used before.
    #[error("is opened here for the first time, but an earlier call uses it; open it before its first use")]
    OpenedAfterUse,
    /// The file is used after it was closed.
    #[error("is used after it was closed; open it again before")]
    UsedAfterClose,
    /// The file is closed more often than opened.
    #[error("is closed here, but is closed already; each close needs an open of its own")]
    ClosedTwice,
}

impl FileState {
    /// Follows the next call on the file.
    ///
    /// # Errors
    /// If the file must not be used in this way now; the state is that before the call.
    pub fn follow(&mut self, call: FileUse) -> Result<(), FileMisuse> {
        *self = match (*self, call) {
            (Self::Unused | Self::Closed, FileUse::Open) => Self::Open(1),
            (Self::Open(count), FileUse::Open) => Self::Open(count.saturating_add(1)),
            (Self::NotOpened, FileUse::Open) => return Err(FileMisuse::OpenedAfterUse),
            (Self::Unused | Self::NotOpened, FileUse::Access) => Self::NotOpened,
            (Self::Open(count), FileUse::Access) => Self::Open(count),
            (Self::Closed, FileUse::Access) => return Err(FileMisuse::UsedAfterClose),
            (Self::Open(count), FileUse::Close) if count > 1 => Self::Open(count - 1),
            (Self::Unused | Self::NotOpened | Self::Open(_), FileUse::Close) => Self::Closed,
            (Self::Closed, FileUse::Close) => return Err(FileMisuse::ClosedTwice),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileUse::{Access, Close, Open};

    fn first_misuse(calls: &[FileUse]) -> Option<(usize, FileMisuse)> {
        let mut state = FileState::default();
        let mut found = calls.iter().map(|call| state.follow(*call)).enumerate();
        found.find_map(|(index, result)| result.err().map(|misuse| (index, misuse)))
    }

    #[test]
    fn files_are_used_while_they_are_open() {
        for calls in [
            &[Open, Access, Close, Open, Close][..],
            // Two communicators have the file open.
            &[Open, Open, Close, Access, Close],
            // The trace begins after the open.
            &[Access, Access],
            &[Access, Close, Open, Access, Close],
            &[Close, Open],
        ] {
            assert_eq!(first_misuse(calls), None, "{calls:?}");
        }
        for (calls, misuse) in [
            (&[Access, Open][..], FileMisuse::OpenedAfterUse),
            (&[Open, Close, Access], FileMisuse::UsedAfterClose),
            (&[Access, Close, Access], FileMisuse::UsedAfterClose),
            (&[Open, Close, Close], FileMisuse::ClosedTwice),
            (&[Close, Close], FileMisuse::ClosedTwice),
            (&[Open, Open, Close, Close, Close], FileMisuse::ClosedTwice),
        ] {
            assert_eq!(first_misuse(calls), Some((calls.len() - 1, misuse)), "{calls:?}");
        }
    }
}
