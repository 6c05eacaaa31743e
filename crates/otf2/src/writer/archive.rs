//! OTF2 archives and their events.
#![expect(unsafe_code, reason = "the library is one of C")]

use std::ffi::{CString, c_int, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};

use super::definitions::Definitions;
use super::ffi;
use crate::library::describe;

/// Error of writing a trace. The library prints more on stderr.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Otf2Error {
    /// A call of the library failed.
    #[error("OTF2: {call}: {message}")]
    Call {
        /// Function of the library.
        call: &'static str,
        /// Description by the library.
        message: String,
    },
    /// A string contains a zero byte.
    #[error("OTF2: found a zero byte in {0:?}")]
    ZeroByte(String),
    /// A path is not UTF-8.
    #[error("OTF2: the path {0:?} is not UTF-8")]
    Path(std::path::PathBuf),
    /// An event outside a location, or a location opened while another is open.
    #[error("OTF2: found {found} open location(s), expected {expected}")]
    OpenLocations {
        /// Number of open locations.
        found: u32,
        /// Number expected.
        expected: u32,
    },
}

/// Checks the result of a library call.
pub(crate) fn check(call: &'static str, code: c_int) -> Result<(), Otf2Error> {
    if code == ffi::SUCCESS {
        return Ok(());
    }
    Err(Otf2Error::Call { call, message: describe(code) })
}

/// Checks a handle returned by a library call.
pub(crate) fn check_handle<T>(call: &'static str, raw: *mut T) -> Result<NonNull<T>, Otf2Error> {
    NonNull::new(raw).ok_or_else(|| Otf2Error::Call { call, message: "no handle".to_owned() })
}

pub(crate) fn c_string(text: &str) -> Result<CString, Otf2Error> {
    CString::new(text).map_err(|_| Otf2Error::ZeroByte(text.to_owned()))
}

/// An archive that is being written: the events of one location after the other, then the
/// [definitions](Archive::into_definitions).
///
/// Memory is bounded: a buffer of 1 MiB for the open location.
#[derive(Debug)]
pub struct Archive {
    raw: NonNull<ffi::Archive>,
    /// Event writer of the open location.
    writer: Option<NonNull<ffi::EvtWriter>>,
    /// All locations so far.
    locations: Vec<u64>,
}

/// Tells the library to write every full buffer.
extern "C" fn flush(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    ffi::FLUSH
}

/// Static, since the library keeps the address.
static CALLBACKS: ffi::FlushCallbacks = ffi::FlushCallbacks { pre_flush: Some(flush), post_flush: None };

impl Archive {
    /// Creates an archive: the files `NAME.otf2` and `NAME.def` and the subdirectory `NAME` of a directory.
    ///
    /// # Errors
    /// Fails if they cannot be created or exist already.
    pub fn create(directory: &Path, name: &str) -> Result<Self, Otf2Error> {
        let path = directory.to_str().ok_or_else(|| Otf2Error::Path(directory.to_owned()))?;
        let (path, name) = (c_string(path)?, c_string(name)?);
        // SAFETY: both are strings that end in zero, and the library copies them.
        let raw = unsafe {
            ffi::OTF2_Archive_Open(
                path.as_ptr(),
                name.as_ptr(),
                ffi::FILEMODE_WRITE,
                ffi::CHUNK_SIZE_EVENTS,
                ffi::CHUNK_SIZE_DEFINITIONS,
                ffi::SUBSTRATE_POSIX,
                ffi::COMPRESSION_NONE,
            )
        };
        let archive =
            Self { raw: check_handle("OTF2_Archive_Open", raw)?, writer: None, locations: Vec::new() };
        let raw = archive.raw.as_ptr();
        // SAFETY: the archive is open, and the callbacks live for ever.
        let code = unsafe { ffi::OTF2_Archive_SetFlushCallbacks(raw, &raw const CALLBACKS, ptr::null_mut()) };
        check("OTF2_Archive_SetFlushCallbacks", code)?;
        // SAFETY: the archive is open.
        let code = unsafe { ffi::OTF2_Archive_SetSerialCollectiveCallbacks(raw) };
        check("OTF2_Archive_SetSerialCollectiveCallbacks", code)?;
        // SAFETY: the archive is open and knows how to act together with others: there are none.
        let code = unsafe { ffi::OTF2_Archive_OpenEvtFiles(raw) };
        check("OTF2_Archive_OpenEvtFiles", code)?;
        Ok(archive)
    }

    /// Begins the events of a location, which must come in the order of time.
    ///
    /// # Errors
    /// Fails if another location is open, or its file cannot be created.
    pub fn begin_location(&mut self, location: u64) -> Result<(), Otf2Error> {
        if self.writer.is_some() {
            return Err(Otf2Error::OpenLocations { found: 1, expected: 0 });
        }
        // SAFETY: the archive is open, and so are its files of events.
        let writer = unsafe { ffi::OTF2_Archive_GetEvtWriter(self.raw.as_ptr(), location) };
        self.writer = Some(check_handle("OTF2_Archive_GetEvtWriter", writer)?);
        self.locations.push(location);
        Ok(())
    }

    /// Ends the events of the open location and returns their number.
    ///
    /// # Errors
    /// Fails if no location is open, or its file cannot be written.
    pub fn end_location(&mut self) -> Result<u64, Otf2Error> {
        let writer = self.writer()?;
        let mut events = 0;
        // SAFETY: the writer is open, and `events` is valid for writes.
        let code = unsafe { ffi::OTF2_EvtWriter_GetNumberOfEvents(writer, &raw mut events) };
        check("OTF2_EvtWriter_GetNumberOfEvents", code)?;
        self.writer = None;
        // SAFETY: the writer is one of this open archive, and nobody uses it any more.
        let code = unsafe { ffi::OTF2_Archive_CloseEvtWriter(self.raw.as_ptr(), writer) };
        check("OTF2_Archive_CloseEvtWriter", code)?;
        Ok(events)
    }

    pub(super) fn writer(&self) -> Result<*mut ffi::EvtWriter, Otf2Error> {
        self.writer.map(NonNull::as_ptr).ok_or(Otf2Error::OpenLocations { found: 0, expected: 1 })
    }

    /// Writes that the location enters a region.
    ///
    /// # Errors
    /// Fails if no location is open, or its file cannot be written.
    pub fn enter(&mut self, time: u64, region: u32) -> Result<(), Otf2Error> {
        // SAFETY: the writer is open; there may be no attributes.
        let code = unsafe { ffi::OTF2_EvtWriter_Enter(self.writer()?, ptr::null_mut(), time, region) };
        check("OTF2_EvtWriter_Enter", code)
    }

    /// Writes that the location leaves a region.
    ///
    /// # Errors
    /// Fails if no location is open, or its file cannot be written.
    pub fn leave(&mut self, time: u64, region: u32) -> Result<(), Otf2Error> {
        // SAFETY: the writer is open; there may be no attributes.
        let code = unsafe { ffi::OTF2_EvtWriter_Leave(self.writer()?, ptr::null_mut(), time, region) };
        check("OTF2_EvtWriter_Leave", code)
    }

    /// Writes the value of a counter, by its number.
    ///
    /// # Errors
    /// Fails if no location is open, or its file cannot be written.
    pub fn counter(&mut self, time: u64, counter: u32, value: u64) -> Result<(), Otf2Error> {
        let (writer, kind) = (self.writer()?, ffi::TYPE_UINT64);
        // SAFETY: the writer is open; there may be no attributes, and there is one type and one value, a union of 8 bytes.
        let code = unsafe {
            ffi::OTF2_EvtWriter_Metric(
                writer,
                ptr::null_mut(),
                time,
                counter,
                1,
                &raw const kind,
                &raw const value,
            )
        };
        check("OTF2_EvtWriter_Metric", code)
    }

    /// Writes a blocking operation that writes to a file, from one instant to another.
    ///
    /// # Errors
    /// Fails if no location is open, or its file cannot be written.
    pub fn write_file(&mut self, times: [u64; 2], file: u32, bytes: u64) -> Result<(), Otf2Error> {
        let (writer, mode) = (self.writer()?, ffi::IO_MODE_WRITE);
        let [begin, end] = times;
        // SAFETY: the writer is open; there may be no attributes.
        let code = unsafe {
            ffi::OTF2_EvtWriter_IoOperationBegin(writer, ptr::null_mut(), begin, file, mode, 0, bytes, 0)
        };
        check("OTF2_EvtWriter_IoOperationBegin", code)?;
        // SAFETY: as above.
        let code =
            unsafe { ffi::OTF2_EvtWriter_IoOperationComplete(writer, ptr::null_mut(), end, file, bytes, 0) };
        check("OTF2_EvtWriter_IoOperationComplete", code)
    }

    /// Writes the send of a message to rank `to` of the world communicator.
    ///
    /// # Errors
    /// Fails if no location is open, or its file cannot be written.
    pub fn send(&mut self, time: u64, to: u32, tag: u32, bytes: u64) -> Result<(), Otf2Error> {
        let writer = self.writer()?;
        // SAFETY: the writer is open; there may be no attributes.
        let code = unsafe { ffi::OTF2_EvtWriter_MpiSend(writer, ptr::null_mut(), time, to, 0, tag, bytes) };
        check("OTF2_EvtWriter_MpiSend", code)
    }

    /// Writes the receive of a message from rank `from` of the world communicator.
    ///
    /// # Errors
    /// Fails if no location is open, or its file cannot be written.
    pub fn receive(&mut self, time: u64, from: u32, tag: u32, bytes: u64) -> Result<(), Otf2Error> {
        let writer = self.writer()?;
        // SAFETY: the writer is open; there may be no attributes.
        let code = unsafe { ffi::OTF2_EvtWriter_MpiRecv(writer, ptr::null_mut(), time, from, 0, tag, bytes) };
        check("OTF2_EvtWriter_MpiRecv", code)
    }

    /// Ends the events and returns the writer of definitions.
    ///
    /// # Errors
    /// Fails if a location is open, or files cannot be written.
    pub fn into_definitions(mut self) -> Result<Definitions, Otf2Error> {
        if self.writer.is_some() {
            return Err(Otf2Error::OpenLocations { found: 1, expected: 0 });
        }
        let raw = self.raw.as_ptr();
        // SAFETY: the archive is open, and so are its files of events; none of its writers is.
        let code = unsafe { ffi::OTF2_Archive_CloseEvtFiles(raw) };
        check("OTF2_Archive_CloseEvtFiles", code)?;
        let locations = std::mem::take(&mut self.locations);
        self.create_local_definitions(&locations)?;
        // SAFETY: the archive is open.
        let writer = unsafe { ffi::OTF2_Archive_GetGlobalDefWriter(raw) };
        Ok(Definitions::new(self, check_handle("OTF2_Archive_GetGlobalDefWriter", writer)?))
    }

    /// Creates the definition file of each location. The files are empty, but tools expect them.
    fn create_local_definitions(&self, locations: &[u64]) -> Result<(), Otf2Error> {
        let raw = self.raw.as_ptr();
        // SAFETY: the archive is open.
        check("OTF2_Archive_OpenDefFiles", unsafe { ffi::OTF2_Archive_OpenDefFiles(raw) })?;
        for &location in locations {
            // SAFETY: the archive is open, and so are its files of definitions.
            let writer = unsafe { ffi::OTF2_Archive_GetDefWriter(raw, location) };
            let writer = check_handle("OTF2_Archive_GetDefWriter", writer)?;
            // SAFETY: the writer is one of this open archive, and nobody uses it any more.
            let code = unsafe { ffi::OTF2_Archive_CloseDefWriter(raw, writer.as_ptr()) };
            check("OTF2_Archive_CloseDefWriter", code)?;
        }
        // SAFETY: the archive is open, and so are its files of definitions; none of its writers is.
        check("OTF2_Archive_CloseDefFiles", unsafe { ffi::OTF2_Archive_CloseDefFiles(raw) })
    }

    /// Closes the archive, which completes its files.
    pub(crate) fn close(self) -> Result<(), Otf2Error> {
        let raw = self.raw.as_ptr();
        // The library closes it once, and nothing else is left in it.
        std::mem::forget(self);
        // SAFETY: the archive is open, and nobody uses it any more.
        check("OTF2_Archive_Close", unsafe { ffi::OTF2_Archive_Close(raw) })
    }
}

/// Closes an archive that was not completed; its files are then incomplete.
impl Drop for Archive {
    fn drop(&mut self) {
        // SAFETY: the archive is open, and nobody uses it any more. Who drops it does not care for its files.
        unsafe { ffi::OTF2_Archive_Close(self.raw.as_ptr()) };
    }
}
