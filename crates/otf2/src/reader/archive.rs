//! An opened archive.
#![expect(unsafe_code, reason = "the library is one of C")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::Once;

use super::ending::{Kind, is_complete, is_complete_anchor};
use super::ffi;
use crate::library::describe;

/// The library cannot read an archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: OTF2 cannot read {what}: {reason}", anchor.display())]
pub struct Otf2Error {
    /// The anchor of the archive.
    pub anchor: PathBuf,
    /// The part of the archive.
    pub what: &'static str,
    /// The description of the library.
    pub reason: String,
}

/// An opened archive.
pub(crate) struct Reader {
    anchor: PathBuf,
    reader: NonNull<ffi::Reader>,
}

/// Leaves errors to whoever checks the result, in place of printing them.
extern "C" fn ignore(
    _: *mut c_void,
    _: *const c_char,
    _: u64,
    _: *const c_char,
    error: c_int,
    _: *const c_char,
    _: *mut c_void,
) -> c_int {
    error
}

impl Reader {
    pub(crate) fn open(anchor: &Path) -> Result<Self, Otf2Error> {
        static QUIET: Once = Once::new();
        // SAFETY: the callback has the type of the library, and uses none of its arguments but one number.
        QUIET.call_once(|| unsafe {
            ffi::OTF2_Error_RegisterCallback(ignore, ptr::null_mut());
        });
        let what = "the anchor";
        let wrong =
            |reason: &str| Otf2Error { anchor: anchor.to_path_buf(), what, reason: reason.to_owned() };
        // What cannot be read is left to the library, too.
        if is_complete_anchor(anchor).is_ok_and(|is_complete| !is_complete) {
            return Err(wrong("it is no anchor, or was cut"));
        }
        let path = CString::new(anchor.as_os_str().as_encoded_bytes())
            .map_err(|_| wrong("its name has a zero byte"))?;
        // SAFETY: the path is a string of C.
        let reader = NonNull::new(unsafe { ffi::OTF2_Reader_Open(path.as_ptr()) });
        let reader = reader.ok_or_else(|| {
            wrong("it is no anchor, damaged, or of a version that the library does not know")
        })?;
        let opened = Self { anchor: anchor.to_path_buf(), reader };
        // SAFETY: the reader is open.
        opened.check(what, unsafe { ffi::OTF2_Reader_SetSerialCollectiveCallbacks(opened.raw()) })?;
        Ok(opened)
    }

    pub(crate) fn raw(&self) -> *mut ffi::Reader {
        self.reader.as_ptr()
    }

    /// Makes an error of a code of the library.
    pub(crate) fn check(&self, what: &'static str, code: c_int) -> Result<(), Otf2Error> {
        if code == ffi::SUCCESS {
            return Ok(());
        }
        Err(Otf2Error { anchor: self.anchor.clone(), what, reason: describe(code) })
    }

    /// Checks that a file of the archive ends with its records.
    pub(crate) fn check_whole(&self, what: &'static str, kind: Kind, file: &Path) -> Result<(), Otf2Error> {
        let (mut events, mut definitions) = (0, 0);
        // SAFETY: the reader is open, and both numbers live until the call returns.
        self.check(what, unsafe {
            ffi::OTF2_Reader_GetChunkSize(self.raw(), &raw mut events, &raw mut definitions)
        })?;
        let chunk_bytes = if kind == Kind::Events { events } else { definitions };
        let reason = match is_complete(file, kind, chunk_bytes) {
            Ok(true) => return Ok(()),
            Ok(false) => format!("{} was cut", file.display()),
            Err(error) => format!("{}: {error}", file.display()),
        };
        Err(Otf2Error { anchor: self.anchor.clone(), what, reason })
    }

    /// Checks that a handle is none of an error.
    pub(crate) fn handle<T>(&self, what: &'static str, handle: *mut T) -> Result<*mut T, Otf2Error> {
        if handle.is_null() {
            let (anchor, reason) = (self.anchor.clone(), "it is missing or damaged".to_owned());
            return Err(Otf2Error { anchor, what, reason });
        }
        Ok(handle)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: the reader is open, and not used any more. It closes its parts.
        unsafe { ffi::OTF2_Reader_Close(self.raw()) };
    }
}
