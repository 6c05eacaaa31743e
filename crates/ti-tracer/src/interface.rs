//! C interface: the functions that the shim calls, the recorder of this process, and the clock of each thread.
//!
//! A recorded call of the program is `ti_enter`, the call of the library before or after the functions that record it, and
//! `ti_leave`. The time between the two is no computation. C makes at most one call at a time per thread, and calls the
//! other functions only if `ti_enter` has returned 1.
#![expect(unsafe_code, reason = "the functions are called from C, with pointers")]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::{env, slice};

use crate::clock::coarse_clock;
use crate::recorder::{
    Argument, CallRecord, CollectiveForm, Completion, DurationSlot, Object, Recorder, Status,
};
use crate::requests::RequestEntry;
use crate::{Clock, Counter, ShardFile, wall_clock};
use ti_shard::Header;

/// The recorder, from `MPI_Init` to `MPI_Finalize`.
static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

/// True if there is a recorder: calls of programs that are not recorded cost no more than this load. Relaxed, as it orders
/// nothing: recorded data passes through the mutex.
static IS_RECORDING: AtomicBool = AtomicBool::new(false);

/// Counter of computation, the same in all threads.
static COUNTER: OnceLock<Counter> = OnceLock::new();

/// True if durations are recorded. Relaxed, as it is set before anything is recorded.
static KEEPS_TIMES: AtomicBool = AtomicBool::new(false);

/// State of a thread that calls MPI.
#[derive(Default)]
struct ThreadState {
    clock: Option<Clock>,
    /// Counter when the last call ended.
    resumed: u64,
    /// Coarse clock when the last call ended; 0 before the first.
    left: u64,
    /// Record of the current call.
    record: Option<CallRecord>,
    /// Requests of the current call.
    completion: Completion,
    /// Request that the current call posts.
    posted: Option<RequestEntry>,
    times: CallTimes,
}

/// Wall-clock times of the calls of a thread \[ns\].
#[derive(Default)]
struct CallTimes {
    /// End of the last call; 0 before the first.
    resumed: u64,
    /// Begin of the current call.
    entered: u64,
    /// Time spent recording during the current call, which is no part of its duration.
    recording: u64,
    /// Slot for its duration.
    slot: Option<DurationSlot>,
}

thread_local! {
    static THREAD: RefCell<ThreadState> = RefCell::default();
}

impl ThreadState {
    fn now(&mut self) -> u64 {
        if self.clock.is_none() {
            let counter = COUNTER.get().copied().unwrap_or(Counter::CpuTime);
            self.clock = Clock::start(counter).or_else(|| Clock::start(Counter::CpuTime));
        }
        self.clock.as_mut().map_or(0, Clock::read)
    }
}

/// Runs `work` with the recorder, if there is one, and the thread; the time that this takes is no part of the call.
fn with_recorder<T>(work: impl FnOnce(&mut Recorder, &mut ThreadState) -> T) -> Option<T> {
    let begun = if KEEPS_TIMES.load(Ordering::Relaxed) { wall_clock() } else { 0 };
    let mut recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
    THREAD.with(|thread| {
        let (recorder, thread) = (recorder.as_mut()?, &mut *thread.borrow_mut());
        let result = work(recorder, thread);
        thread.record = recorder.take_call_record().or(thread.record);
        if recorder.records_durations() {
            thread.times.slot = recorder.take_duration_slot().or(thread.times.slot);
            thread.times.recording += wall_clock().saturating_sub(begun);
        }
        Some(result)
    })
}

/// Reads a string constant of the C code.
///
/// # Safety
/// The pointer is that of a NUL-terminated string.
unsafe fn read_str<'a>(text: *const c_char) -> &'a str {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("?")
}

/// Reads an array.
///
/// # Safety
/// The pointer is that of `len` elements, or `len` is not positive.
unsafe fn read_slice<'a, T>(first: *const T, len: c_int) -> &'a [T] {
    match usize::try_from(len) {
        // SAFETY: as the caller promises.
        Ok(len @ 1..) => unsafe { slice::from_raw_parts(first, len) },
        _ => &[],
    }
}

#[expect(clippy::print_stderr, reason = "there is no other way to tell the user")]
fn report(message: &str) {
    eprintln!("ti-tracer: {message}");
}

/// Starts the recorder, as configured by the environment: `PDES_TRACE_DIR`, `PDES_TRACE_JOB`, `PDES_TRACE_COUNTER`,
/// `PDES_TRACE_RATE`, `PDES_TRACE_TIMES`; `PDES_TRACE_FILES` is read in `shim/posix.c`.
///
/// # Safety
/// `library` is a NUL-terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_start(
    rank: c_int,
    world: c_int,
    comm_world: i64,
    comm_self: i64,
    library: *const c_char,
) {
    let (Some(dir), Ok(rank), Ok(world)) =
        (env::var_os("PDES_TRACE_DIR"), u32::try_from(rank), u32::try_from(world))
    else {
        return;
    };
    let counter = match env::var("PDES_TRACE_COUNTER").as_deref() {
        Ok("cpu-time") => Counter::CpuTime,
        _ => Counter::best(),
    };
    let counter = *COUNTER.get_or_init(|| counter);
    let rate = env::var("PDES_TRACE_RATE").ok().and_then(|rate| rate.parse().ok()).unwrap_or(1e9);
    let (rate, scale) = if counter == Counter::CpuTime { (rate, rate / 1e9) } else { (0.0, 1.0) };
    let job = env::var("PDES_TRACE_JOB").unwrap_or_else(|_| "unnamed".to_owned());
    let path = Path::new(&dir).join(format!("{rank}.shard"));
    // SAFETY: as the caller promises.
    let library = unsafe { read_str(library) };
    let header = Header { job: &job, world, rank, counter: counter.name(), rate, library };
    let file = match ShardFile::create(&path, &header) {
        Ok(file) => file,
        Err(error) => {
            return report(&format!("rank {rank} is not recorded: {}: {error}", path.display()));
        }
    };
    let mut recorder = Recorder::new(file, rank, world).with_scale(scale);
    if env::var_os("PDES_TRACE_TIMES").is_some_and(|value| value == "1") {
        KEEPS_TIMES.store(true, Ordering::Relaxed);
        recorder = recorder.with_durations();
    }
    recorder.init(comm_world, comm_self);
    // The duration of `MPI_Init` is unknown: its slot is dropped.
    recorder.take_duration_slot();
    *RECORDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(recorder);
    IS_RECORDING.store(true, Ordering::Relaxed);
}

/// Finishes the recorder: the program leaves MPI.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_finish() {
    IS_RECORDING.store(false, Ordering::Relaxed);
    let recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Err(error)) = recorder.map(Recorder::finish) {
        report(&format!("a shard is not complete: {error}"));
    }
}

/// Ends a computation, and begins a call of a function; returns 1 if the call is to be recorded.
///
/// # Safety
/// `function` is the pointer of `len` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_enter(function: *const u8, len: c_int) -> c_int {
    if !IS_RECORDING.load(Ordering::Relaxed) {
        return 0;
    }
    // SAFETY: as the caller promises.
    let function = unsafe { read_slice(function, len) };
    let keeps_times = KEEPS_TIMES.load(Ordering::Relaxed);
    let entered = if keeps_times { wall_clock() } else { 0 };
    let (computed, elapsed, coarse) = THREAD.with(|thread| {
        let thread = &mut *thread.borrow_mut();
        let now = thread.now();
        thread.completion.clear();
        thread.posted = None;
        thread.record = None;
        let coarse = if thread.left > 0 { coarse_clock().saturating_sub(thread.left) } else { 0 };
        let elapsed = match thread.times.resumed {
            0 => 0,
            resumed => entered.saturating_sub(resumed),
        };
        let counted = thread.clock.as_ref().map_or(0, |clock| {
            // Two readings of the clock of a thread take long beside short computations, which cannot exceed the time that passed.
            let most = if clock.counts_time() && thread.times.resumed > 0 { elapsed } else { u64::MAX };
            clock.between(thread.resumed, now).min(most)
        });
        (counted, elapsed, coarse)
    });
    let recorded = with_recorder(|recorder, thread| {
        recorder.enter_call(function, std::ptr::from_mut(thread).addr(), coarse, computed);
        recorder.add_computation(computed);
        recorder.add_elapsed(elapsed);
    });
    if keeps_times {
        THREAD.with(|thread| {
            // Read again: the time since the first reading was spent recording.
            thread.borrow_mut().times = CallTimes { entered: wall_clock(), ..CallTimes::default() };
        });
    }
    c_int::from(recorded.is_some())
}

/// Begins a computation.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_leave() {
    if !IS_RECORDING.load(Ordering::Relaxed) {
        return;
    }
    let keeps_times = KEEPS_TIMES.load(Ordering::Relaxed);
    let left = if keeps_times { wall_clock() } else { 0 };
    with_recorder(|recorder, ThreadState { times, .. }| {
        recorder.leave_call();
        if let Some(place) = times.slot.take() {
            let duration = left.saturating_sub(times.entered).saturating_sub(times.recording);
            recorder.record_duration(place, duration);
        }
    });
    THREAD.with(|thread| {
        let thread = &mut *thread.borrow_mut();
        thread.resumed = thread.now();
        thread.left = coarse_clock();
        if keeps_times {
            thread.times.resumed = wall_clock();
        }
    });
}

/// An argument of an unmodelled call; its kinds are those of `shim/unmodelled.h`.
#[repr(C)]
pub(crate) struct RawArgument {
    key: *const c_char,
    kind: c_int,
    len: c_int,
    number: i64,
    pointer: *const c_void,
}

impl RawArgument {
    /// # Safety
    /// The key is a constant of the C code, and the pointer that of `len` bytes, ranks or NUL-terminated strings, according to the kind.
    unsafe fn read<'a>(&self) -> (&'a str, Vec<&'a str>) {
        // SAFETY: as the caller promises.
        let key = unsafe { read_str(self.key) };
        let flags: &[*const c_char] = match self.kind {
            // SAFETY: as the caller promises.
            FLAGS => unsafe { read_slice(self.pointer.cast(), self.len) },
            _ => &[],
        };
        // SAFETY: as the caller promises.
        (key, flags.iter().map(|flag| unsafe { read_str(*flag) }).collect())
    }

    /// # Safety
    /// As of [`read`](Self::read).
    unsafe fn value<'a>(&'a self, flags: &'a [&'a str]) -> Argument<'a> {
        match self.kind {
            // SAFETY: as the caller promises.
            TEXT => Argument::Text(unsafe { read_slice(self.pointer.cast(), self.len) }),
            // SAFETY: as the caller promises.
            LIST => Argument::List(unsafe { read_slice(self.pointer.cast(), self.len) }),
            FLAGS => Argument::Flags(flags),
            WINDOW => Argument::Window(self.number),
            FILE => Argument::File(self.number),
            COMMUNICATOR => Argument::Communicator(self.number),
            NOTHING => Argument::Nothing,
            _ => Argument::Number(self.number),
        }
    }
}

const TEXT: c_int = 1;
const LIST: c_int = 2;
const FLAGS: c_int = 3;
const WINDOW: c_int = 4;
const FILE: c_int = 5;
const COMMUNICATOR: c_int = 6;
const NOTHING: c_int = 7;

/// Records an unmodelled call, which posts a request or not.
///
/// # Safety
/// `function` is a NUL-terminated string, and there are `len` arguments, whose pointers match their kinds.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_unmodelled(
    function: *const c_char,
    arguments: *const RawArgument,
    len: c_int,
    posts: c_int,
) {
    // SAFETY: as the caller promises.
    let (function, arguments) = unsafe { (read_str(function), read_slice(arguments, len)) };
    // SAFETY: as the caller promises.
    let read: Vec<_> = arguments.iter().map(|argument| unsafe { argument.read() }).collect();
    let values = arguments.iter().zip(&read);
    // SAFETY: as the caller promises.
    let values: Vec<_> = values.map(|(raw, (key, flags))| (*key, unsafe { raw.value(flags) })).collect();
    with_recorder(|recorder, thread| match posts {
        0 => recorder.unmodelled(function, &values),
        _ => thread.posted = Some(recorder.unmodelled_request(function, &values)),
    });
}

/// Frees the number of a window (4), a file (5) or a communicator (6).
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_forget(kind: c_int, handle: i64) {
    let object = match kind {
        WINDOW => Object::Window,
        FILE => Object::File,
        _ => Object::Communicator,
    };
    with_recorder(|recorder, _| recorder.free_object(object, handle));
}

/// Adds a hint to those of the file that is opened next.
///
/// # Safety
/// Both are NUL-terminated strings.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_hint(name: *const c_char, value: *const c_char) {
    // SAFETY: as the caller promises.
    let (name, value) = unsafe { (read_str(name), read_str(value)) };
    with_recorder(|recorder, _| recorder.add_hint(name, value));
}

/// Adds a block to the file type of the view that is set next.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_block(offset: i64, bytes: i64) {
    with_recorder(|recorder, _| recorder.add_block(offset, bytes));
}

/// Records a call of POSIX on a file: `open`, `close`, `sync`, `read_at` or `write_at`.
///
/// # Safety
/// `call` and `name` are NUL-terminated strings.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_posix(
    call: *const c_char,
    descriptor: c_int,
    name: *const c_char,
    offset: i64,
    bytes: i64,
    own: i64,
) {
    // SAFETY: as the caller promises.
    let (call, name) = unsafe { (read_str(call), CStr::from_ptr(name)) };
    with_recorder(|recorder, _| match call {
        "open" => recorder.open_descriptor(descriptor, name.to_bytes(), own),
        _ => recorder.call_on_descriptor(call, descriptor, offset, bytes),
    });
}

/// Records a blocking send.
///
/// # Safety
/// `verb` is a NUL-terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_send(
    verb: *const c_char,
    to: c_int,
    tag: c_int,
    bytes: i64,
    communicator: i64,
) {
    // SAFETY: as the caller promises.
    let verb = unsafe { read_str(verb) };
    with_recorder(|recorder, _| recorder.send(verb, to, tag, bytes, communicator));
}

/// Records a non-blocking or persistent send.
///
/// # Safety
/// `verb` is a NUL-terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_isend(
    verb: *const c_char,
    to: c_int,
    tag: c_int,
    bytes: i64,
    communicator: i64,
) {
    // SAFETY: as the caller promises.
    let verb = unsafe { read_str(verb) };
    with_recorder(|recorder, thread| thread.posted = recorder.isend(verb, to, tag, bytes, communicator));
}

/// Records a non-blocking or persistent receive.
///
/// # Safety
/// `verb` is a NUL-terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_irecv(
    verb: *const c_char,
    from: c_int,
    tag: c_int,
    bytes: i64,
    communicator: i64,
) {
    // SAFETY: as the caller promises.
    let verb = unsafe { read_str(verb) };
    with_recorder(|recorder, thread| thread.posted = recorder.irecv(verb, from, tag, bytes, communicator));
}

/// Registers the request that the call has posted under its handle.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_bind(handle: i64, address: usize, is_persistent: c_int) {
    with_recorder(|recorder, thread| {
        recorder.bind(thread.posted.take(), handle, address, is_persistent != 0)
    });
}

/// Records that the current call has returned an error and done nothing.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_failed() {
    with_recorder(|recorder, thread| recorder.fail_call(thread.record.take(), thread.posted.take()));
}

/// Records that a blocking receive has begun.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_begin_recv(from: c_int, tag: c_int, bytes: i64, communicator: i64) {
    with_recorder(|recorder, _| {
        recorder.announce(|recorder| recorder.recv(from, tag, bytes, communicator, (from, tag)));
    });
}

/// Records a blocking receive.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_recv(
    from: c_int,
    tag: c_int,
    bytes: i64,
    communicator: i64,
    actual_source: c_int,
    actual_tag: c_int,
) {
    with_recorder(|recorder, _| recorder.recv(from, tag, bytes, communicator, (actual_source, actual_tag)));
}

/// Arguments of a combined send and receive.
#[repr(C)]
pub(crate) struct Exchange {
    to: c_int,
    send_tag: c_int,
    send_bytes: i64,
    from: c_int,
    recv_tag: c_int,
    recv_bytes: i64,
    communicator: i64,
    actual_source: c_int,
    actual_tag: c_int,
}

/// Records a combined send and receive.
///
/// # Safety
/// `verb` is a NUL-terminated string, `exchange` is a valid pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_send_recv(verb: *const c_char, exchange: *const Exchange) {
    // SAFETY: as the caller promises.
    let (verb, exchange) = unsafe { (read_str(verb), &*exchange) };
    let Exchange { to, send_tag, send_bytes, from, recv_tag, recv_bytes, communicator, .. } = *exchange;
    let actual = (exchange.actual_source, exchange.actual_tag);
    with_recorder(|recorder, _| {
        let (out, back) = ((to, send_tag, send_bytes), (from, recv_tag, recv_bytes));
        recorder.send_recv(verb, out, back, communicator, actual);
    });
}

/// Records that a combined send and receive has begun.
///
/// # Safety
/// As of [`ti_send_recv`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_begin_send_recv(verb: *const c_char, exchange: *const Exchange) {
    // SAFETY: as the caller promises.
    let (verb, exchange) = unsafe { (read_str(verb), &*exchange) };
    let Exchange { to, send_tag, send_bytes, from, recv_tag, recv_bytes, communicator, .. } = *exchange;
    with_recorder(|recorder, _| {
        let (out, back) = ((to, send_tag, send_bytes), (from, recv_tag, recv_bytes));
        recorder.announce(|recorder| recorder.send_recv(verb, out, back, communicator, (from, recv_tag)));
    });
}

/// Records that a blocking probe has begun.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_begin_probe(from: c_int, tag: c_int, communicator: i64) {
    with_recorder(|recorder, _| {
        recorder.announce(|recorder| recorder.probe((from, tag), communicator, None, (from, tag)));
    });
}

/// Records a probe; `found` is 0 or 1, or -1 for a blocking one.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_probe(
    from: c_int,
    tag: c_int,
    communicator: i64,
    found: c_int,
    actual_source: c_int,
    actual_tag: c_int,
) {
    let found = (found >= 0).then_some(found == 1);
    with_recorder(|recorder, _| {
        recorder.probe((from, tag), communicator, found, (actual_source, actual_tag))
    });
}

/// Registers a matched message (`MPI_Mprobe`) with its source and size.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_matched(message: i64, from: c_int, tag: c_int, bytes: i64, communicator: i64) {
    with_recorder(|recorder, _| recorder.match_message(message, from, tag, bytes, communicator));
}

/// Records the receive of a matched message.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_receive_matched(message: i64, bytes: i64, posts: c_int) {
    with_recorder(|recorder, thread| thread.posted = recorder.receive_matched(message, bytes, posts != 0));
}

/// Returns the form of a collective operation, by the number in `shim/collectives.c`.
fn form(posts: c_int) -> CollectiveForm {
    match posts {
        0 => CollectiveForm::Blocking,
        1 => CollectiveForm::Nonblocking,
        _ => CollectiveForm::Persistent,
    }
}

/// Records a collective operation with these fields.
///
/// # Safety
/// `verb` is a NUL-terminated string, `fields` has `len` numbers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_collective(
    verb: *const c_char,
    posts: c_int,
    communicator: i64,
    fields: *const i64,
    len: c_int,
) {
    // SAFETY: as the caller promises.
    let (verb, fields) = unsafe { (read_str(verb), read_slice(fields, len)) };
    with_recorder(|recorder, thread| {
        thread.posted = recorder.collective(verb, communicator, fields, form(posts))
    });
}

/// Records a neighbourhood exchange.
///
/// # Safety
/// `to` and `send_bytes` have `outgoing` numbers, `from` and `recv_bytes` have `incoming`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_neighbors(
    posts: c_int,
    communicator: i64,
    outgoing: c_int,
    to: *const i64,
    send_bytes: *const i64,
    incoming: c_int,
    from: *const i64,
    recv_bytes: *const i64,
) {
    // SAFETY: as the caller promises.
    let (to, send_bytes) = unsafe { (read_slice(to, outgoing), read_slice(send_bytes, outgoing)) };
    // SAFETY: as the caller promises.
    let (from, recv_bytes) = unsafe { (read_slice(from, incoming), read_slice(recv_bytes, incoming)) };
    with_recorder(|recorder, thread| {
        thread.posted = recorder.neighbors(communicator, (to, send_bytes), (from, recv_bytes), form(posts));
    });
}

/// Appends a request to those of the current call.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_add_request(handle: i64, address: usize, is_null: c_int) {
    with_recorder(|recorder, thread| match is_null {
        0 => recorder.add(&mut thread.completion, handle, address),
        _ => thread.completion.add_null(),
    });
}

/// Returns whether the status of a request of the current call is needed, or with -1 that of any.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_wants_status(position: c_int) -> c_int {
    let wants = |thread: &ThreadState| match usize::try_from(position) {
        Ok(position) => thread.completion.wants_status(position),
        Err(_) => thread.completion.wants_statuses(),
    };
    THREAD.with(|thread| wants(&thread.borrow()).into())
}

/// Records the completion of a request of the current call.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_complete(position: c_int) {
    let Ok(position) = usize::try_from(position) else { return };
    with_recorder(|recorder, thread| recorder.complete(&mut thread.completion, position, None));
}

/// Records the completion of a request of the current call whose status is needed.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_complete_with(position: c_int, source: c_int, tag: c_int, is_cancelled: c_int) {
    let Ok(position) = usize::try_from(position) else { return };
    let status = Status { source, tag, is_cancelled: is_cancelled != 0 };
    with_recorder(|recorder, thread| recorder.complete(&mut thread.completion, position, Some(status)));
}

/// Fills in the size of the message of a request of the current call, which was longer than its buffer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_truncated(position: c_int, bytes: i64) {
    let (Ok(position), Ok(bytes)) = (usize::try_from(position), u64::try_from(bytes)) else { return };
    with_recorder(|recorder, thread| recorder.truncated(&thread.completion, position, bytes));
}

/// Records that the current call, one that waits for all of its requests, has begun.
///
/// # Safety
/// `verb` is a NUL-terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_begin_completion(verb: *const c_char) {
    // SAFETY: as the caller promises.
    let verb = unsafe { read_str(verb) };
    with_recorder(|recorder, thread| {
        recorder.announce(|recorder| recorder.completion(verb, &thread.completion));
    });
}

/// Records the current call, one that completes requests.
///
/// # Safety
/// `verb` is a NUL-terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_completion(verb: *const c_char) {
    // SAFETY: as the caller promises.
    let verb = unsafe { read_str(verb) };
    with_recorder(|recorder, thread| recorder.completion(verb, &thread.completion));
}

/// Records the current call, `MPI_Request_get_status`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_get_status(flag: c_int) {
    with_recorder(|recorder, thread| recorder.request_get_status(&thread.completion, flag != 0));
}

/// Records the current call: `start`, `startall`, `cancel` or `request_free`.
///
/// # Safety
/// `verb` is a NUL-terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_request(verb: *const c_char) {
    // SAFETY: as the caller promises.
    let verb = unsafe { read_str(verb) };
    with_recorder(|recorder, thread| match verb {
        "cancel" => recorder.cancel(&thread.completion),
        "request_free" => recorder.free_request(&thread.completion),
        verb => recorder.start(verb, &thread.completion),
    });
}

/// Returns a new number for a communicator whose first rank this process is.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_next_communicator() -> u32 {
    with_recorder(|recorder, _| recorder.next_communicator()).unwrap_or(0)
}

/// Records the creation of a communicator; without members it is `MPI_COMM_NULL`.
///
/// # Safety
/// `verb` is a NUL-terminated string, `members` has `len` numbers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_new_communicator(
    verb: *const c_char,
    parent: i64,
    handle: i64,
    number: u32,
    members: *const c_int,
    len: c_int,
) {
    // SAFETY: as the caller promises.
    let (verb, members) = unsafe { (read_str(verb), read_slice(members, len)) };
    let members: Box<[u32]> = members.iter().map(|&rank| rank as u32).collect();
    with_recorder(|recorder, _| {
        recorder.new_communicator(verb, parent, (!members.is_empty()).then_some((handle, number, members)));
    });
}

/// Records that a function frees a communicator.
///
/// # Safety
/// `function` is a NUL-terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_free_communicator(function: *const c_char, handle: i64) {
    // SAFETY: as the caller promises.
    let function = unsafe { read_str(function) };
    with_recorder(|recorder, _| recorder.free_communicator(function, handle));
}

/// Records the begin of a region of the program.
///
/// # Safety
/// `region` is a NUL-terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ti_begin_region(region: *const c_char) {
    // SAFETY: as the caller promises.
    let region = unsafe { read_str(region) };
    with_recorder(|recorder, _| recorder.begin_region(region));
}

/// Records the end of a region of the program.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_end_region() {
    with_recorder(|recorder, _| recorder.end_region());
}

/// Records `MPI_Pcontrol`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ti_region_level(level: c_int) {
    with_recorder(|recorder, _| recorder.region_level(level));
}
