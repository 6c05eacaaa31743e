//! Bindings to the reading part of OTF2 version 3, as `otf2/*.h` declare it.
#![expect(unsafe_code, reason = "the library is one of C")]

use std::ffi::{c_char, c_int, c_void};

use crate::library::handles;
pub(crate) use crate::library::{
    ACCUMULATED_START, AttributeList, BASE_DECIMAL, GROUP_TYPE_COMM_GROUP, GROUP_TYPE_COMM_LOCATIONS,
    LOCATION_TYPE_CPU_THREAD, PARADIGM_MPI, SUCCESS, TYPE_INT64, TYPE_UINT64, UNDEFINED_U32,
};

handles!(Reader, GlobalDefReader, DefReader, EvtReader, DefCallbacks, EvtCallbacks);

pub(crate) const INTERRUPT: c_int = 1;
pub(crate) const GROUP_TYPE_COMM_SELF: u8 = 6;
pub(crate) const MEASUREMENT_ON: u8 = 1;
pub(crate) const IO_NON_BLOCKING: u32 = 1;
pub(crate) const LOCK_EXCLUSIVE: u8 = 0;

/// Callback for errors, whose last argument is a list of arguments for the message.
pub(crate) type OnError =
    extern "C" fn(*mut c_void, *const c_char, u64, *const c_char, c_int, *const c_char, *mut c_void) -> c_int;

/// Declares the callbacks of events: their arguments after location, time, position, user data and attributes, and the function that
/// sets them.
macro_rules! events {
    ($($type:ident $set:ident ($($argument:ty),*);)*) => {
        $(pub(crate) type $type =
            extern "C" fn(u64, u64, u64, *mut c_void, *mut AttributeList $(, $argument)*) -> c_int;)*

        #[link(name = "otf2")]
        unsafe extern "C" {
            $(pub(crate) fn $set(callbacks: *mut EvtCallbacks, callback: $type) -> c_int;)*
        }
    };
}

events! {
    OnRegion OTF2_EvtReaderCallbacks_SetEnterCallback(u32);
    OnLeave OTF2_EvtReaderCallbacks_SetLeaveCallback(u32);
    OnMeasurement OTF2_EvtReaderCallbacks_SetMeasurementOnOffCallback(u8);
    OnMetric OTF2_EvtReaderCallbacks_SetMetricCallback(u32, u8, *const u8, *const u64);
    OnPut OTF2_EvtReaderCallbacks_SetRmaPutCallback(u32, u32, u64, u64);
    OnGet OTF2_EvtReaderCallbacks_SetRmaGetCallback(u32, u32, u64, u64);
    OnAtomic OTF2_EvtReaderCallbacks_SetRmaAtomicCallback(u32, u32, u8, u64, u64, u64);
    OnWindowCreate OTF2_EvtReaderCallbacks_SetRmaWinCreateCallback(u32);
    OnWindowDestroy OTF2_EvtReaderCallbacks_SetRmaWinDestroyCallback(u32);
    OnWindowCollective OTF2_EvtReaderCallbacks_SetRmaCollectiveEndCallback(u8, u32, u32, u32, u64, u64);
    OnWindowGroup OTF2_EvtReaderCallbacks_SetRmaGroupSyncCallback(u32, u32, u32);
    OnLockRequest OTF2_EvtReaderCallbacks_SetRmaRequestLockCallback(u32, u32, u64, u8);
    OnLock OTF2_EvtReaderCallbacks_SetRmaAcquireLockCallback(u32, u32, u64, u8);
    OnUnlock OTF2_EvtReaderCallbacks_SetRmaReleaseLockCallback(u32, u32, u64);
    OnIoBegin OTF2_EvtReaderCallbacks_SetIoOperationBeginCallback(u32, u8, u32, u64, u64);
    OnIoComplete OTF2_EvtReaderCallbacks_SetIoOperationCompleteCallback(u32, u64, u64);
    OnSend OTF2_EvtReaderCallbacks_SetMpiSendCallback(u32, u32, u32, u64);
    OnRecv OTF2_EvtReaderCallbacks_SetMpiRecvCallback(u32, u32, u32, u64);
    OnIsend OTF2_EvtReaderCallbacks_SetMpiIsendCallback(u32, u32, u32, u64, u64);
    OnIrecv OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(u32, u32, u32, u64, u64);
    OnIsendComplete OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(u64);
    OnIrecvRequest OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(u64);
    OnRequestTest OTF2_EvtReaderCallbacks_SetMpiRequestTestCallback(u64);
    OnRequestCancelled OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback(u64);
    OnCollective OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(u8, u32, u32, u64, u64);
    OnCollectiveRequest OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(u64);
    OnCollectiveComplete OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(u8, u32, u32, u64, u64, u64);
}

/// Declares the callbacks of definitions: their arguments after user data, and the function that sets them.
macro_rules! definitions {
    ($($type:ident $set:ident ($($argument:ty),*);)*) => {
        $(pub(crate) type $type = extern "C" fn(*mut c_void $(, $argument)*) -> c_int;)*

        #[link(name = "otf2")]
        unsafe extern "C" {
            $(pub(crate) fn $set(callbacks: *mut DefCallbacks, callback: $type) -> c_int;)*
        }
    };
}

definitions! {
    OnClock OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(u64, u64, u64, u64);
    OnString OTF2_GlobalDefReaderCallbacks_SetStringCallback(u32, *const c_char);
    OnLocation OTF2_GlobalDefReaderCallbacks_SetLocationCallback(u64, u32, u8, u64, u32);
    OnRegionDefinition OTF2_GlobalDefReaderCallbacks_SetRegionCallback(u32, u32, u32, u32, u8, u8, u32, u32, u32, u32);
    OnGroup OTF2_GlobalDefReaderCallbacks_SetGroupCallback(u32, u32, u8, u8, u32, u32, *const u64);
    OnCommunicator OTF2_GlobalDefReaderCallbacks_SetCommCallback(u32, u32, u32, u32, u32);
    OnWindow OTF2_GlobalDefReaderCallbacks_SetRmaWinCallback(u32, u32, u32, u32);
    OnMetricMember OTF2_GlobalDefReaderCallbacks_SetMetricMemberCallback(u32, u32, u32, u8, u8, u8, u8, i64, u32);
    OnMetricClass OTF2_GlobalDefReaderCallbacks_SetMetricClassCallback(u32, u8, *const u32, u8, u8);
}

#[link(name = "otf2")]
unsafe extern "C" {
    pub(crate) fn OTF2_Error_RegisterCallback(callback: OnError, data: *mut c_void) -> *mut c_void;

    pub(crate) fn OTF2_Reader_Open(anchor: *const c_char) -> *mut Reader;
    pub(crate) fn OTF2_Reader_Close(reader: *mut Reader) -> c_int;
    pub(crate) fn OTF2_Reader_GetChunkSize(
        reader: *mut Reader,
        events: *mut u64,
        definitions: *mut u64,
    ) -> c_int;
    pub(crate) fn OTF2_Reader_SetSerialCollectiveCallbacks(reader: *mut Reader) -> c_int;
    pub(crate) fn OTF2_Reader_SelectLocation(reader: *mut Reader, location: u64) -> c_int;
    pub(crate) fn OTF2_Reader_OpenDefFiles(reader: *mut Reader) -> c_int;
    pub(crate) fn OTF2_Reader_CloseDefFiles(reader: *mut Reader) -> c_int;
    pub(crate) fn OTF2_Reader_OpenEvtFiles(reader: *mut Reader) -> c_int;
    pub(crate) fn OTF2_Reader_CloseEvtFiles(reader: *mut Reader) -> c_int;

    pub(crate) fn OTF2_Reader_GetGlobalDefReader(reader: *mut Reader) -> *mut GlobalDefReader;
    pub(crate) fn OTF2_GlobalDefReaderCallbacks_New() -> *mut DefCallbacks;
    pub(crate) fn OTF2_GlobalDefReaderCallbacks_Delete(callbacks: *mut DefCallbacks);
    pub(crate) fn OTF2_Reader_RegisterGlobalDefCallbacks(
        reader: *mut Reader,
        definitions: *mut GlobalDefReader,
        callbacks: *const DefCallbacks,
        data: *mut c_void,
    ) -> c_int;
    pub(crate) fn OTF2_Reader_ReadAllGlobalDefinitions(
        reader: *mut Reader,
        definitions: *mut GlobalDefReader,
        read: *mut u64,
    ) -> c_int;

    pub(crate) fn OTF2_Reader_GetDefReader(reader: *mut Reader, location: u64) -> *mut DefReader;
    pub(crate) fn OTF2_Reader_ReadAllLocalDefinitions(
        reader: *mut Reader,
        definitions: *mut DefReader,
        read: *mut u64,
    ) -> c_int;
    pub(crate) fn OTF2_Reader_CloseDefReader(reader: *mut Reader, definitions: *mut DefReader) -> c_int;

    pub(crate) fn OTF2_Reader_GetEvtReader(reader: *mut Reader, location: u64) -> *mut EvtReader;
    pub(crate) fn OTF2_EvtReaderCallbacks_New() -> *mut EvtCallbacks;
    pub(crate) fn OTF2_EvtReaderCallbacks_Delete(callbacks: *mut EvtCallbacks);
    pub(crate) fn OTF2_Reader_RegisterEvtCallbacks(
        reader: *mut Reader,
        events: *mut EvtReader,
        callbacks: *const EvtCallbacks,
        data: *mut c_void,
    ) -> c_int;
    pub(crate) fn OTF2_Reader_ReadAllLocalEvents(
        reader: *mut Reader,
        events: *mut EvtReader,
        read: *mut u64,
    ) -> c_int;
    pub(crate) fn OTF2_Reader_CloseEvtReader(reader: *mut Reader, events: *mut EvtReader) -> c_int;
}
