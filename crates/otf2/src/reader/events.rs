//! Events of a location.
#![expect(unsafe_code, reason = "the library is one of C")]

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::slice;

use super::archive::{Otf2Error, Reader};
use super::ending::Kind;
use super::ffi::{self, AttributeList};

/// An event. Ranks are those of the communicator; sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the records of OTF2")]
pub enum Event {
    /// A region begins.
    Enter { region: u32 },
    /// A region ends.
    Leave { region: u32 },
    /// The measurement is switched on or off.
    Measurement { is_on: bool },
    /// A value of a metric: its number, and the index of the value among those of the metric.
    Metric { metric: u32, index: u8, value: u64 },
    /// An access to the memory of a rank of a window, with the larger of its sizes in both directions.
    Access { window: u32, target: u32, bytes: u64 },
    /// A window is created or destroyed, or the end of a collective operation on it.
    Window { window: u32 },
    /// A synchronisation with a group of a window.
    WindowGroup { window: u32, group: u32 },
    /// A rank of a window is locked or unlocked.
    WindowLock { window: u32, target: u32, is_exclusive: bool },
    /// An operation on a file begins.
    IoBegin { bytes: u64, is_nonblocking: bool, operation: u64 },
    /// The end of an operation on a file.
    IoComplete { operation: u64 },
    /// A blocking send.
    Send { receiver: u32, communicator: u32, tag: u32, bytes: u64 },
    /// A blocking receive.
    Recv { sender: u32, communicator: u32, tag: u32, bytes: u64 },
    /// A nonblocking send.
    Isend { receiver: u32, communicator: u32, tag: u32, bytes: u64, request: u64 },
    /// The end of a nonblocking receive.
    Irecv { sender: u32, communicator: u32, tag: u32, bytes: u64, request: u64 },
    /// The end of a nonblocking send.
    IsendComplete { request: u64 },
    /// A nonblocking receive is posted.
    IrecvRequest { request: u64 },
    /// A request is tested, and not complete.
    RequestTest { request: u64 },
    /// A request is cancelled.
    RequestCancelled { request: u64 },
    /// The end of a collective operation.
    Collective { operation: u8, communicator: u32, root: Option<u32>, sent: u64, received: u64 },
    /// A nonblocking collective operation is posted.
    CollectiveRequest { request: u64 },
    /// The end of a nonblocking collective operation.
    CollectiveComplete {
        operation: u8,
        communicator: u32,
        root: Option<u32>,
        sent: u64,
        received: u64,
        request: u64,
    },
}

/// Takes events in their order, with their times \[ticks\]; false ends the reading.
type Take<'a> = &'a mut dyn FnMut(u64, Event) -> bool;

/// Reads the events of a location in their order, with identifiers of the definitions and times of the common clock, until `take`
/// returns false. Other kinds of events are skipped.
///
/// # Errors
/// Fails if the library cannot read them.
pub fn read_events(
    anchor: &Path,
    location: u64,
    take: &mut dyn FnMut(u64, Event) -> bool,
) -> Result<(), Otf2Error> {
    const DEFINITIONS: &str = "the definitions of a location";
    const EVENTS: &str = "the events of a location";
    let reader = Reader::open(anchor)?;
    let file = |extension| anchor.with_extension("").join(format!("{location}.{extension}"));
    reader.check_whole(DEFINITIONS, Kind::Definitions, &file("def"))?;
    reader.check_whole(EVENTS, Kind::Events, &file("evt"))?;
    let (mut take, mut read) = (Handler { take, is_interrupted: false }, 0);
    // SAFETY: reader, its parts and callbacks live until the last call; the callbacks get a pointer to the handler, which nothing
    // else uses meanwhile.
    unsafe {
        let raw = reader.raw();
        reader.check(DEFINITIONS, ffi::OTF2_Reader_SelectLocation(raw, location))?;
        // Archives without local definitions have global identifiers, and a clock that needs no correction.
        if ffi::OTF2_Reader_OpenDefFiles(raw) == ffi::SUCCESS {
            let definitions = ffi::OTF2_Reader_GetDefReader(raw, location);
            if !definitions.is_null() {
                let read = ffi::OTF2_Reader_ReadAllLocalDefinitions(raw, definitions, &raw mut read);
                reader.check(DEFINITIONS, read)?;
                reader.check(DEFINITIONS, ffi::OTF2_Reader_CloseDefReader(raw, definitions))?;
            }
            reader.check(DEFINITIONS, ffi::OTF2_Reader_CloseDefFiles(raw))?;
        }
        reader.check(EVENTS, ffi::OTF2_Reader_OpenEvtFiles(raw))?;
        let events = reader.handle(EVENTS, ffi::OTF2_Reader_GetEvtReader(raw, location))?;
        let callbacks = reader.handle(EVENTS, ffi::OTF2_EvtReaderCallbacks_New())?;
        set_callbacks(callbacks);
        ffi::OTF2_EvtReaderCallbacks_SetMetricCallback(callbacks, on_metric);
        let registered =
            ffi::OTF2_Reader_RegisterEvtCallbacks(raw, events, callbacks, (&raw mut take).cast());
        ffi::OTF2_EvtReaderCallbacks_Delete(callbacks);
        reader.check(EVENTS, registered)?;
        let result = ffi::OTF2_Reader_ReadAllLocalEvents(raw, events, &raw mut read);
        if !take.is_interrupted {
            reader.check(EVENTS, result)?;
        }
        reader.check(EVENTS, ffi::OTF2_Reader_CloseEvtReader(raw, events))?;
        reader.check(EVENTS, ffi::OTF2_Reader_CloseEvtFiles(raw))
    }
}

struct Handler<'a> {
    take: Take<'a>,
    is_interrupted: bool,
}

/// Defines the callback of each kind of event: the arguments of the library, and the event.
macro_rules! callbacks {
    ($($name:ident $set:ident ($($argument:ident: $type:ty),*) => $event:expr;)*) => {
        $(extern "C" fn $name(
            _: u64, time: u64, _: u64, data: *mut c_void, _: *mut AttributeList $(, $argument: $type)*
        ) -> c_int {
            take(time, data, $event)
        })*

        /// Sets all callbacks.
        ///
        /// # Safety
        /// `callbacks` are those of the library.
        unsafe fn set_callbacks(callbacks: *mut ffi::EvtCallbacks) {
            // SAFETY: by the caller; the callbacks have the types of the library.
            unsafe {
                $(ffi::$set(callbacks, $name);)*
            }
        }
    };
}

callbacks! {
    on_enter OTF2_EvtReaderCallbacks_SetEnterCallback(region: u32) => Event::Enter { region };
    on_leave OTF2_EvtReaderCallbacks_SetLeaveCallback(region: u32) => Event::Leave { region };
    on_measurement OTF2_EvtReaderCallbacks_SetMeasurementOnOffCallback(mode: u8) =>
        Event::Measurement { is_on: mode == ffi::MEASUREMENT_ON };
    on_put OTF2_EvtReaderCallbacks_SetRmaPutCallback(window: u32, target: u32, bytes: u64, _operation: u64) =>
        Event::Access { window, target, bytes };
    on_get OTF2_EvtReaderCallbacks_SetRmaGetCallback(window: u32, target: u32, bytes: u64, _operation: u64) =>
        Event::Access { window, target, bytes };
    on_atomic OTF2_EvtReaderCallbacks_SetRmaAtomicCallback(
        window: u32, target: u32, _kind: u8, sent: u64, received: u64, _operation: u64
    ) => Event::Access { window, target, bytes: sent.max(received) };
    on_window_create OTF2_EvtReaderCallbacks_SetRmaWinCreateCallback(window: u32) => Event::Window { window };
    on_window_destroy OTF2_EvtReaderCallbacks_SetRmaWinDestroyCallback(window: u32) => Event::Window { window };
    on_window_collective OTF2_EvtReaderCallbacks_SetRmaCollectiveEndCallback(
        _operation: u8, _level: u32, window: u32, _root: u32, _sent: u64, _received: u64
    ) => Event::Window { window };
    on_window_group OTF2_EvtReaderCallbacks_SetRmaGroupSyncCallback(_level: u32, window: u32, group: u32) =>
        Event::WindowGroup { window, group };
    on_lock_request OTF2_EvtReaderCallbacks_SetRmaRequestLockCallback(
        window: u32, target: u32, _lock: u64, kind: u8
    ) => Event::WindowLock { window, target, is_exclusive: kind == ffi::LOCK_EXCLUSIVE };
    on_lock OTF2_EvtReaderCallbacks_SetRmaAcquireLockCallback(window: u32, target: u32, _lock: u64, kind: u8) =>
        Event::WindowLock { window, target, is_exclusive: kind == ffi::LOCK_EXCLUSIVE };
    on_unlock OTF2_EvtReaderCallbacks_SetRmaReleaseLockCallback(window: u32, target: u32, _lock: u64) =>
        Event::WindowLock { window, target, is_exclusive: false };
    on_io_begin OTF2_EvtReaderCallbacks_SetIoOperationBeginCallback(
        _file: u32, _mode: u8, flags: u32, bytes: u64, operation: u64
    ) => Event::IoBegin { bytes, is_nonblocking: flags & ffi::IO_NON_BLOCKING != 0, operation };
    on_io_complete OTF2_EvtReaderCallbacks_SetIoOperationCompleteCallback(_file: u32, _bytes: u64, operation: u64) =>
        Event::IoComplete { operation };
    on_send OTF2_EvtReaderCallbacks_SetMpiSendCallback(receiver: u32, communicator: u32, tag: u32, bytes: u64) =>
        Event::Send { receiver, communicator, tag, bytes };
    on_recv OTF2_EvtReaderCallbacks_SetMpiRecvCallback(sender: u32, communicator: u32, tag: u32, bytes: u64) =>
        Event::Recv { sender, communicator, tag, bytes };
    on_isend OTF2_EvtReaderCallbacks_SetMpiIsendCallback(
        receiver: u32, communicator: u32, tag: u32, bytes: u64, request: u64
    ) => Event::Isend { receiver, communicator, tag, bytes, request };
    on_irecv OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(
        sender: u32, communicator: u32, tag: u32, bytes: u64, request: u64
    ) => Event::Irecv { sender, communicator, tag, bytes, request };
    on_isend_complete OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(request: u64) =>
        Event::IsendComplete { request };
    on_irecv_request OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(request: u64) =>
        Event::IrecvRequest { request };
    on_request_test OTF2_EvtReaderCallbacks_SetMpiRequestTestCallback(request: u64) =>
        Event::RequestTest { request };
    on_request_cancelled OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback(request: u64) =>
        Event::RequestCancelled { request };
    on_collective OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(
        operation: u8, communicator: u32, root: u32, sent: u64, received: u64
    ) => Event::Collective { operation, communicator, root: defined(root), sent, received };
    on_collective_request OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(request: u64) =>
        Event::CollectiveRequest { request };
    on_collective_complete OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(
        operation: u8, communicator: u32, root: u32, sent: u64, received: u64, request: u64
    ) => Event::CollectiveComplete { operation, communicator, root: defined(root), sent, received, request };
}

extern "C" fn on_metric(
    _: u64,
    time: u64,
    _: u64,
    data: *mut c_void,
    _: *mut AttributeList,
    metric: u32,
    count: u8,
    types: *const u8,
    values: *const u64,
) -> c_int {
    if count == 0 {
        return ffi::SUCCESS;
    }
    // SAFETY: the library passes so many types and values, which are unions of 8 bytes.
    let (types, values) =
        unsafe { (slice::from_raw_parts(types, count.into()), slice::from_raw_parts(values, count.into())) };
    for (index, (kind, value)) in (0..).zip(types.iter().zip(values)) {
        // The values of other types are no counters.
        if matches!(*kind, ffi::TYPE_INT64 | ffi::TYPE_UINT64) {
            let code = take(time, data, Event::Metric { metric, index, value: *value });
            if code != ffi::SUCCESS {
                return code;
            }
        }
    }
    ffi::SUCCESS
}

fn defined(rank: u32) -> Option<u32> {
    (rank != ffi::UNDEFINED_U32).then_some(rank)
}

fn take(time: u64, data: *mut c_void, event: Event) -> c_int {
    // SAFETY: the library passes what `read_events` has registered.
    let handler: &mut Handler<'_> = unsafe { &mut *data.cast() };
    handler.is_interrupted = handler.is_interrupted || !(handler.take)(time, event);
    if handler.is_interrupted { ffi::INTERRUPT } else { ffi::SUCCESS }
}
