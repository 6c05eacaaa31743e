//! Records of one-sided communication.
#![expect(unsafe_code, reason = "the library is one of C")]

use std::ffi::c_int;
use std::ptr;

use super::archive::{Archive, Otf2Error, check};
use super::ffi::{AttributeList, EvtWriter};

/// `OTF2_COLLECTIVE_OP_BARRIER`.
const BARRIER: u8 = 0;
/// `OTF2_UNDEFINED_UINT32`: there is no root.
const NO_ROOT: u32 = u32::MAX;

/// Defines the records: a method with its arguments after the time, and the function of the library with those that it gets.
macro_rules! records {
    ($($(#[$documentation:meta])* $name:ident ($($argument:ident: $type:ty),*)
        => $function:ident ($($parameter:ident: $of:ty = $value:expr),*);)*) => {
        #[link(name = "otf2")]
        unsafe extern "C" {
            $(fn $function(
                writer: *mut EvtWriter, attributes: *mut AttributeList, time: u64 $(, $parameter: $of)*
            ) -> c_int;)*
        }

        impl Archive {
            $($(#[$documentation])*
            ///
            /// # Errors
            /// Fails if no location is open, or its file cannot be written.
            pub fn $name(&mut self, time: u64 $(, $argument: $type)*) -> Result<(), Otf2Error> {
                let writer = self.writer()?;
                // SAFETY: the writer is open; there may be no attributes.
                check(stringify!($function), unsafe { $function(writer, ptr::null_mut(), time $(, $value)*) })
            })*
        }
    };
}

records! {
    /// Writes that a window is created.
    create_window(window: u32) => OTF2_EvtWriter_RmaWinCreate(number: u32 = window);
    /// Writes that a window is destroyed.
    destroy_window(window: u32) => OTF2_EvtWriter_RmaWinDestroy(number: u32 = window);
    /// Writes that a collective operation on a window ends, such as a fence.
    fence(window: u32) => OTF2_EvtWriter_RmaCollectiveEnd(
        operation: u8 = BARRIER, level: u32 = 0, number: u32 = window, root: u32 = NO_ROOT, sent: u64 = 0, received: u64 = 0
    );
    /// Writes an access that puts into the memory of rank `target` of a window.
    put(window: u32, target: u32, bytes: u64) => OTF2_EvtWriter_RmaPut(
        number: u32 = window, remote: u32 = target, size: u64 = bytes, operation: u64 = 0
    );
    /// Writes an access that gets from the memory of rank `target` of a window.
    get(window: u32, target: u32, bytes: u64) => OTF2_EvtWriter_RmaGet(
        number: u32 = window, remote: u32 = target, size: u64 = bytes, operation: u64 = 0
    );
    /// Writes that the memory of rank `target` of a window is locked, for itself alone.
    lock(window: u32, target: u32) => OTF2_EvtWriter_RmaAcquireLock(
        number: u32 = window, remote: u32 = target, own: u64 = 0, kind: u8 = 0
    );
    /// Writes that the memory of rank `target` of a window is unlocked.
    unlock(window: u32, target: u32) => OTF2_EvtWriter_RmaReleaseLock(number: u32 = window, remote: u32 = target, own: u64 = 0);
}
