//! Tags of the messages of collective operations.
//!
//! | bits | |
//! |---|---|
//! | 0 to 5 | kind of the operation |
//! | 6 and 7 | class of the message within the operation, see [`MessageClass`] |
//! | 8 to 31 | number of the operation on its communicator, modulo 2^24 |

use crate::statistics::ActionKind;

const KIND_BITS: u32 = 6;
const KIND_MASK: u32 = (1 << KIND_BITS) - 1;
const NUMBER_SHIFT: u32 = KIND_BITS + 2;

const _: () = assert!(ActionKind::ALL.len() <= 1 << KIND_BITS);

/// Returns the tag of the data of an operation.
pub(crate) fn operation_tag(number: u32, kind: ActionKind) -> u32 {
    number << NUMBER_SHIFT | kind as u32
}

/// Class of messages of one operation; classes never match each other's receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageClass {
    Data,
    Announcement,
    Put,
}

impl MessageClass {
    /// Returns the tag of a message of this class, from the tag of the operation.
    #[inline]
    pub(crate) fn tag_of(self, tag: u32) -> u32 {
        tag | (self as u32) << KIND_BITS
    }

    /// Returns whether a tag belongs to this class.
    #[inline]
    pub(crate) fn has_tag(self, tag: u32) -> bool {
        tag >> KIND_BITS & 3 == self as u32
    }
}

/// Largest number of an operation.
const MAX_NUMBER: u32 = u32::MAX >> NUMBER_SHIFT;

/// Tag of the messages on a window that no operation of all its ranks sends, and by which origins end their accesses. Its number, and
/// the next one, are those of operations only after 2^24 others.
pub(crate) const ONE_SIDED: u32 = MAX_NUMBER << NUMBER_SHIFT | ActionKind::WindowComplete as u32;

/// Tag of the messages on a window by which targets expose their memory.
pub(crate) const EXPOSURE: u32 = (MAX_NUMBER - 1) << NUMBER_SHIFT | ActionKind::WindowPost as u32;

/// Returns the number of the operation of a message, modulo 2^24.
pub(crate) fn number_of(tag: u32) -> u32 {
    tag >> NUMBER_SHIFT
}

/// Returns a tag with the number of its operation, if it has one, relative to another one.
pub(crate) fn relative_to(tag: u32, number: u32) -> u32 {
    if tag >= (MAX_NUMBER - 1) << NUMBER_SHIFT { tag } else { tag.wrapping_sub(number << NUMBER_SHIFT) }
}

/// Returns the kind of the operation of a message.
pub(crate) fn kind_of(tag: u32) -> ActionKind {
    ActionKind::from_number(tag & KIND_MASK).unwrap_or(ActionKind::Marker)
}

/// Returns whether two tags have the same operation number but different kinds: their ranks call different operations.
#[inline]
pub(crate) fn mismatched(one: u32, other: u32) -> bool {
    let difference = one ^ other;
    difference >> NUMBER_SHIFT == 0 && difference & KIND_MASK != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_tell_operations_and_sides_apart() {
        let [bcast, barrier] = [ActionKind::Bcast, ActionKind::Barrier].map(|kind| operation_tag(7, kind));
        let announcement = MessageClass::Announcement.tag_of(bcast);
        assert!(
            MessageClass::Data.has_tag(bcast)
                && MessageClass::Announcement.has_tag(announcement)
                && !MessageClass::Put.has_tag(announcement)
        );
        assert_eq!((kind_of(announcement), number_of(announcement)), (ActionKind::Bcast, 7));
        assert!(mismatched(announcement, barrier) && !mismatched(announcement, bcast));
        assert!(!mismatched(bcast, operation_tag(8, ActionKind::Barrier)));
    }
}
