//! Bindings to the writing part of OTF2 version 3, as `otf2/*.h` declare it.
#![expect(unsafe_code, reason = "the library is one of C")]

use std::ffi::{c_char, c_int, c_void};

use crate::library::handles;
pub(crate) use crate::library::{
    ACCUMULATED_START, AttributeList, BASE_DECIMAL, GROUP_TYPE_COMM_GROUP, GROUP_TYPE_COMM_LOCATIONS,
    LOCATION_TYPE_CPU_THREAD, PARADIGM_MPI, SUCCESS, TYPE_UINT64, UNDEFINED_U32,
};

handles!(Archive, EvtWriter, DefWriter, GlobalDefWriter);

pub(crate) const FILEMODE_WRITE: u8 = 0;
pub(crate) const SUBSTRATE_POSIX: u8 = 1;
pub(crate) const COMPRESSION_NONE: u8 = 1;
pub(crate) const CHUNK_SIZE_EVENTS: u64 = 1 << 20;
pub(crate) const CHUNK_SIZE_DEFINITIONS: u64 = 4 << 20;
pub(crate) const FLUSH: u8 = 1;
pub(crate) const UNDEFINED_TIMESTAMP: u64 = u64::MAX;
pub(crate) const LOCATION_GROUP_TYPE_PROCESS: u8 = 1;
pub(crate) const PARADIGM_USER: u8 = 1;
pub(crate) const METRIC_TYPE_PAPI: u8 = 1;
pub(crate) const METRIC_STRICTLY_SYNCHRONOUS: u8 = 0;
pub(crate) const RECORDER_KIND_CPU: u8 = 2;
pub(crate) const IO_MODE_WRITE: u8 = 1;
pub(crate) const ROLE_FUNCTION: u8 = 1;
pub(crate) const ROLE_CODE: u8 = 4;
pub(crate) const ROLE_BARRIER: u8 = 15;
pub(crate) const ROLE_COLLECTIVE: u8 = 26;
pub(crate) const ROLE_POINT_TO_POINT: u8 = 28;
pub(crate) const ROLE_ARTIFICIAL: u8 = 31;

/// Callback before a buffer is written to its file; its result decides whether to write.
pub(crate) type PreFlush = extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8;

#[repr(C)]
pub(crate) struct FlushCallbacks {
    pub(crate) pre_flush: Option<PreFlush>,
    pub(crate) post_flush: Option<extern "C" fn(*mut c_void, u8, u64) -> u64>,
}

#[link(name = "otf2")]
unsafe extern "C" {
    pub(crate) fn OTF2_Archive_Open(
        path: *const c_char,
        name: *const c_char,
        mode: u8,
        chunk_size_events: u64,
        chunk_size_definitions: u64,
        substrate: u8,
        compression: u8,
    ) -> *mut Archive;
    pub(crate) fn OTF2_Archive_SetFlushCallbacks(
        archive: *mut Archive,
        callbacks: *const FlushCallbacks,
        data: *mut c_void,
    ) -> c_int;
    pub(crate) fn OTF2_Archive_SetSerialCollectiveCallbacks(archive: *mut Archive) -> c_int;
    pub(crate) fn OTF2_Archive_OpenEvtFiles(archive: *mut Archive) -> c_int;
    pub(crate) fn OTF2_Archive_CloseEvtFiles(archive: *mut Archive) -> c_int;
    pub(crate) fn OTF2_Archive_GetEvtWriter(archive: *mut Archive, location: u64) -> *mut EvtWriter;
    pub(crate) fn OTF2_Archive_CloseEvtWriter(archive: *mut Archive, writer: *mut EvtWriter) -> c_int;
    pub(crate) fn OTF2_Archive_OpenDefFiles(archive: *mut Archive) -> c_int;
    pub(crate) fn OTF2_Archive_CloseDefFiles(archive: *mut Archive) -> c_int;
    pub(crate) fn OTF2_Archive_GetDefWriter(archive: *mut Archive, location: u64) -> *mut DefWriter;
    pub(crate) fn OTF2_Archive_CloseDefWriter(archive: *mut Archive, writer: *mut DefWriter) -> c_int;
    pub(crate) fn OTF2_Archive_GetGlobalDefWriter(archive: *mut Archive) -> *mut GlobalDefWriter;
    pub(crate) fn OTF2_Archive_Close(archive: *mut Archive) -> c_int;

    pub(crate) fn OTF2_EvtWriter_GetNumberOfEvents(writer: *mut EvtWriter, events: *mut u64) -> c_int;
    pub(crate) fn OTF2_EvtWriter_Enter(
        writer: *mut EvtWriter,
        attributes: *mut AttributeList,
        time: u64,
        region: u32,
    ) -> c_int;
    pub(crate) fn OTF2_EvtWriter_Leave(
        writer: *mut EvtWriter,
        attributes: *mut AttributeList,
        time: u64,
        region: u32,
    ) -> c_int;
    pub(crate) fn OTF2_EvtWriter_Metric(
        writer: *mut EvtWriter,
        attributes: *mut AttributeList,
        time: u64,
        metric: u32,
        count: u8,
        types: *const u8,
        values: *const u64,
    ) -> c_int;
    pub(crate) fn OTF2_EvtWriter_IoOperationBegin(
        writer: *mut EvtWriter,
        attributes: *mut AttributeList,
        time: u64,
        file: u32,
        mode: u8,
        flags: u32,
        bytes: u64,
        operation: u64,
    ) -> c_int;
    pub(crate) fn OTF2_EvtWriter_IoOperationComplete(
        writer: *mut EvtWriter,
        attributes: *mut AttributeList,
        time: u64,
        file: u32,
        bytes: u64,
        operation: u64,
    ) -> c_int;
    pub(crate) fn OTF2_EvtWriter_MpiSend(
        writer: *mut EvtWriter,
        attributes: *mut AttributeList,
        time: u64,
        receiver: u32,
        communicator: u32,
        tag: u32,
        length: u64,
    ) -> c_int;
    pub(crate) fn OTF2_EvtWriter_MpiRecv(
        writer: *mut EvtWriter,
        attributes: *mut AttributeList,
        time: u64,
        sender: u32,
        communicator: u32,
        tag: u32,
        length: u64,
    ) -> c_int;

    pub(crate) fn OTF2_GlobalDefWriter_WriteClockProperties(
        writer: *mut GlobalDefWriter,
        resolution: u64,
        offset: u64,
        length: u64,
        realtime: u64,
    ) -> c_int;
    pub(crate) fn OTF2_GlobalDefWriter_WriteString(
        writer: *mut GlobalDefWriter,
        own: u32,
        string: *const c_char,
    ) -> c_int;
    pub(crate) fn OTF2_GlobalDefWriter_WriteSystemTreeNode(
        writer: *mut GlobalDefWriter,
        own: u32,
        name: u32,
        class: u32,
        parent: u32,
    ) -> c_int;
    pub(crate) fn OTF2_GlobalDefWriter_WriteLocationGroup(
        writer: *mut GlobalDefWriter,
        own: u32,
        name: u32,
        kind: u8,
        parent: u32,
        creator: u32,
    ) -> c_int;
    pub(crate) fn OTF2_GlobalDefWriter_WriteLocation(
        writer: *mut GlobalDefWriter,
        own: u64,
        name: u32,
        kind: u8,
        events: u64,
        group: u32,
    ) -> c_int;
    pub(crate) fn OTF2_GlobalDefWriter_WriteRegion(
        writer: *mut GlobalDefWriter,
        own: u32,
        name: u32,
        canonical_name: u32,
        description: u32,
        role: u8,
        paradigm: u8,
        flags: u32,
        source_file: u32,
        first_line: u32,
        last_line: u32,
    ) -> c_int;
    pub(crate) fn OTF2_GlobalDefWriter_WriteGroup(
        writer: *mut GlobalDefWriter,
        own: u32,
        name: u32,
        kind: u8,
        paradigm: u8,
        flags: u32,
        count: u32,
        members: *const u64,
    ) -> c_int;
    pub(crate) fn OTF2_GlobalDefWriter_WriteMetricMember(
        writer: *mut GlobalDefWriter,
        own: u32,
        name: u32,
        description: u32,
        kind: u8,
        mode: u8,
        value_type: u8,
        base: u8,
        exponent: i64,
        unit: u32,
    ) -> c_int;
    pub(crate) fn OTF2_GlobalDefWriter_WriteMetricClass(
        writer: *mut GlobalDefWriter,
        own: u32,
        count: u8,
        members: *const u32,
        occurrence: u8,
        recorder_kind: u8,
    ) -> c_int;
    pub(crate) fn OTF2_GlobalDefWriter_WriteRmaWin(
        writer: *mut GlobalDefWriter,
        own: u32,
        name: u32,
        communicator: u32,
        flags: u32,
    ) -> c_int;
    pub(crate) fn OTF2_GlobalDefWriter_WriteComm(
        writer: *mut GlobalDefWriter,
        own: u32,
        name: u32,
        group: u32,
        parent: u32,
        flags: u32,
    ) -> c_int;
}
