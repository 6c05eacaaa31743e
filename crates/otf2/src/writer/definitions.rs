//! OTF2 definitions: strings, regions, locations and the communicator that events refer to.
#![expect(unsafe_code, reason = "the library is one of C")]

use std::ptr::NonNull;

use super::archive::{Archive, Otf2Error, c_string, check};
use super::ffi;

/// Role of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Code of the program.
    User,
    /// A part of another region that corresponds to no code.
    Artificial,
    /// Any other MPI call.
    Call,
    /// An MPI call for messages between two ranks, or for requests.
    PointToPoint,
    /// A barrier.
    Barrier,
    /// Another collective operation.
    Collective,
}

/// Writer of an archive's definitions.
#[derive(Debug)]
pub struct Definitions {
    archive: Archive,
    raw: NonNull<ffi::GlobalDefWriter>,
    strings: u32,
    /// Number of the empty string.
    empty: Option<u32>,
}

impl Definitions {
    pub(crate) fn new(archive: Archive, raw: NonNull<ffi::GlobalDefWriter>) -> Self {
        Self { archive, raw, strings: 0, empty: None }
    }

    /// Defines the clock: ticks per second, and an instant after the last event \[ticks\].
    ///
    /// # Errors
    /// Fails if the library fails.
    pub fn clock(&mut self, resolution: u64, end: u64) -> Result<(), Otf2Error> {
        let raw = self.raw.as_ptr();
        // SAFETY: the writer is one of the archive, which is open as long as `self` is, here and below.
        let code = unsafe {
            ffi::OTF2_GlobalDefWriter_WriteClockProperties(raw, resolution, 0, end, ffi::UNDEFINED_TIMESTAMP)
        };
        check("OTF2_GlobalDefWriter_WriteClockProperties", code)
    }

    /// Defines a string and returns its number.
    ///
    /// # Errors
    /// Fails if the library fails, or the string contains a zero byte.
    pub fn string(&mut self, string: &str) -> Result<u32, Otf2Error> {
        let (number, string) = (self.strings, c_string(string)?);
        // SAFETY: the text ends in zero; the library copies it.
        let code =
            unsafe { ffi::OTF2_GlobalDefWriter_WriteString(self.raw.as_ptr(), number, string.as_ptr()) };
        check("OTF2_GlobalDefWriter_WriteString", code)?;
        self.strings += 1;
        Ok(number)
    }

    fn empty(&mut self) -> Result<u32, Otf2Error> {
        if let Some(empty) = self.empty {
            return Ok(empty);
        }
        let empty = self.string("")?;
        self.empty = Some(empty);
        Ok(empty)
    }

    /// Defines the machine that has all locations; `name` is the number of a string.
    ///
    /// # Errors
    /// Fails if the library fails.
    pub fn machine(&mut self, name: u32) -> Result<(), Otf2Error> {
        let raw = self.raw.as_ptr();
        // SAFETY: as above.
        let code =
            unsafe { ffi::OTF2_GlobalDefWriter_WriteSystemTreeNode(raw, 0, name, name, ffi::UNDEFINED_U32) };
        check("OTF2_GlobalDefWriter_WriteSystemTreeNode", code)
    }

    /// Defines a region by its number, the number of its name, and its role.
    ///
    /// # Errors
    /// Fails if the library fails.
    pub fn region(&mut self, number: u32, name: u32, role: Role) -> Result<(), Otf2Error> {
        let (role, paradigm) = match role {
            Role::User => (ffi::ROLE_CODE, ffi::PARADIGM_USER),
            Role::Artificial => (ffi::ROLE_ARTIFICIAL, ffi::PARADIGM_MPI),
            Role::Call => (ffi::ROLE_FUNCTION, ffi::PARADIGM_MPI),
            Role::PointToPoint => (ffi::ROLE_POINT_TO_POINT, ffi::PARADIGM_MPI),
            Role::Barrier => (ffi::ROLE_BARRIER, ffi::PARADIGM_MPI),
            Role::Collective => (ffi::ROLE_COLLECTIVE, ffi::PARADIGM_MPI),
        };
        let (raw, empty) = (self.raw.as_ptr(), self.empty()?);
        // SAFETY: as above.
        let code = unsafe {
            ffi::OTF2_GlobalDefWriter_WriteRegion(
                raw, number, name, name, empty, role, paradigm, 0, empty, 0, 0,
            )
        };
        check("OTF2_GlobalDefWriter_WriteRegion", code)
    }

    /// Defines a counter of threads from the start of the measurement by its number, and the number of its name.
    ///
    /// # Errors
    /// Fails if the library fails.
    pub fn counter(&mut self, number: u32, name: u32) -> Result<(), Otf2Error> {
        let (raw, empty) = (self.raw.as_ptr(), self.empty()?);
        // SAFETY: as above.
        let code = unsafe {
            ffi::OTF2_GlobalDefWriter_WriteMetricMember(
                raw,
                number,
                name,
                empty,
                ffi::METRIC_TYPE_PAPI,
                ffi::ACCUMULATED_START,
                ffi::TYPE_UINT64,
                ffi::BASE_DECIMAL,
                0,
                empty,
            )
        };
        check("OTF2_GlobalDefWriter_WriteMetricMember", code)?;
        let (occurrence, kind) = (ffi::METRIC_STRICTLY_SYNCHRONOUS, ffi::RECORDER_KIND_CPU);
        // SAFETY: as above, and there is one member.
        let code = unsafe {
            ffi::OTF2_GlobalDefWriter_WriteMetricClass(raw, number, 1, &raw const number, occurrence, kind)
        };
        check("OTF2_GlobalDefWriter_WriteMetricClass", code)
    }

    /// Defines a location, which is a process of its own, by its number, the number of the process (from 0), the number
    /// of its name, and its number of events.
    ///
    /// # Errors
    /// Fails if the library fails.
    pub fn location(&mut self, number: u64, process: u32, name: u32, events: u64) -> Result<(), Otf2Error> {
        let (raw, kind) = (self.raw.as_ptr(), ffi::LOCATION_GROUP_TYPE_PROCESS);
        // SAFETY: as above.
        let code = unsafe {
            ffi::OTF2_GlobalDefWriter_WriteLocationGroup(raw, process, name, kind, 0, ffi::UNDEFINED_U32)
        };
        check("OTF2_GlobalDefWriter_WriteLocationGroup", code)?;
        let kind = ffi::LOCATION_TYPE_CPU_THREAD;
        // SAFETY: as above.
        let code =
            unsafe { ffi::OTF2_GlobalDefWriter_WriteLocation(raw, number, name, kind, events, process) };
        check("OTF2_GlobalDefWriter_WriteLocation", code)
    }

    /// Defines the world communicator, whose ranks are these locations in order.
    ///
    /// # Errors
    /// Fails if the library fails.
    pub fn communicator(&mut self, name: u32, locations: &[u64]) -> Result<(), Otf2Error> {
        let members: Vec<u64> = (0..locations.len() as u64).collect();
        self.group(0, ffi::GROUP_TYPE_COMM_LOCATIONS, locations)?;
        self.group(1, ffi::GROUP_TYPE_COMM_GROUP, &members)?;
        // SAFETY: as above.
        let code = unsafe {
            ffi::OTF2_GlobalDefWriter_WriteComm(self.raw.as_ptr(), 0, name, 1, ffi::UNDEFINED_U32, 0)
        };
        check("OTF2_GlobalDefWriter_WriteComm", code)
    }

    /// Defines a window of the world communicator, with records of its creation and its end.
    ///
    /// # Errors
    /// Fails if the library fails.
    pub fn window(&mut self, number: u32, name: u32) -> Result<(), Otf2Error> {
        // SAFETY: as above; the flag is `OTF2_RMA_WIN_FLAG_CREATE_DESTROY_EVENTS`.
        let code = unsafe { ffi::OTF2_GlobalDefWriter_WriteRmaWin(self.raw.as_ptr(), number, name, 0, 1) };
        check("OTF2_GlobalDefWriter_WriteRmaWin", code)
    }

    fn group(&mut self, number: u32, kind: u8, members: &[u64]) -> Result<(), Otf2Error> {
        let (raw, empty, count) = (self.raw.as_ptr(), self.empty()?, members.len() as u32);
        // SAFETY: as above, and there are so many members.
        let code = unsafe {
            ffi::OTF2_GlobalDefWriter_WriteGroup(
                raw,
                number,
                empty,
                kind,
                ffi::PARADIGM_MPI,
                0,
                count,
                members.as_ptr(),
            )
        };
        check("OTF2_GlobalDefWriter_WriteGroup", code)
    }

    /// Completes the archive.
    ///
    /// # Errors
    /// Fails if its files cannot be written.
    pub fn close(self) -> Result<(), Otf2Error> {
        self.archive.close()
    }
}
