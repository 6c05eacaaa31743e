//! Calls as a whole: the call in progress, calls that fail, threads, and the time between calls.

use ti_shard::{Kind, ProcessState, Unit};

use super::Recorder;
use crate::requests::RequestEntry;

/// Record of a call in the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRecord {
    pub(super) start: u64,
    pub(super) has_deferred: bool,
}

impl CallRecord {
    /// Offset of the second word \[B\].
    const AMOUNT: u64 = 8;

    /// Returns the offset of the amount.
    pub(super) fn amount(self) -> u64 {
        self.start + Self::AMOUNT
    }
}

/// State of the process, as far as it is not in the shard alone.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// Words of the name of the current call.
    call: [u64; 4],
    /// True if the current call was counted as failed.
    has_failed: bool,
    /// The thread that made the first call.
    first_thread: Option<usize>,
    /// Time between calls \[ns\].
    elapsed: u64,
    /// Computation between calls \[ns of processor time, or instructions\].
    computed: u64,
    /// Time of waiting for a processor before the first call \[ns\].
    pub(super) queued: u64,
    failed: u64,
    unknown_requests: u64,
}

impl Recorder {
    /// Begins a call of a function, named as in [`ProcessState`], by a thread; returns false for the first thread alone. Between
    /// calls time has passed and the thread has computed \[ns of processor time, or instructions\].
    pub fn enter_call(&mut self, function: &[u8], thread: usize, elapsed: u64, computed: u64) {
        let process = &mut self.process;
        process.call = ProcessState::name_words(function);
        process.has_failed = false;
        process.elapsed += elapsed;
        process.computed += computed;
        self.file.set_state(ProcessState::ELAPSED, &[process.elapsed, process.computed]);
        // Programs may let one thread make all calls but the last one.
        if !function.ends_with(b"inalize") && *process.first_thread.get_or_insert(thread) != thread {
            self.file.set_state(ProcessState::THREADS, &[1]);
        }
        self.file.set_state(ProcessState::CALL, &process.call);
    }

    /// Ends the call.
    pub fn leave_call(&mut self) {
        self.file.retract();
        self.file.set_state(ProcessState::CALL, &[0]);
    }

    /// Runs what records a call before the call is made: its record stays only if the process ends within the call.
    pub fn announce<T>(&mut self, record: impl FnOnce(&mut Self) -> T) -> T {
        self.is_announcing = true;
        let result = record(self);
        self.is_announcing = false;
        result
    }

    /// Takes the last record of a call.
    pub fn take_call_record(&mut self) -> Option<CallRecord> {
        self.call_record.take()
    }

    /// Records that the current call has returned an error and done nothing. If it was recorded before it was made, the record
    /// becomes void, and the request that it posted is forgotten.
    pub fn fail_call(&mut self, record: Option<CallRecord>, posted: Option<RequestEntry>) {
        if let Some(CallRecord { start, has_deferred }) = record {
            self.file.patch(start, Unit::of_kind(Kind::Failed).words(has_deferred)[0]);
        }
        if let Some(entry) = posted {
            if entry.is_recorded_at_start {
                self.templates.remove(&entry.number);
            }
            self.requests_like(entry).release_number(entry.number);
        }
        self.count_failed();
    }

    /// Counts the current call as failed, once.
    pub(super) fn count_failed(&mut self) {
        if !std::mem::replace(&mut self.process.has_failed, true) {
            self.process.failed += 1;
            self.count(ProcessState::FAILED, self.process.failed);
        }
    }

    /// Counts the current call as one on a request that no recorded call has made.
    pub(super) fn count_unknown_request(&mut self) {
        self.process.unknown_requests += 1;
        self.count(ProcessState::UNKNOWN, self.process.unknown_requests);
    }

    fn count(&mut self, first_word: usize, calls: u64) {
        if calls == 1 {
            self.file.set_state(first_word + 1, &self.process.call);
        }
        self.file.set_state(first_word, &[calls]);
    }
}
