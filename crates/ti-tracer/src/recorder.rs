//! Recorder: turns the MPI calls of one process into records of its shard.

mod collectives;
mod completion;
mod file_type;
mod files;
mod messages;
mod process;
mod regions;
mod unmodelled;
mod windows;

pub use completion::{Completion, Status};
pub use unmodelled::{Argument, Object};

use std::io;

use rustc_hash::FxHashMap;
use ti_shard::{Deferred, Kind, Phrase, ProcessState, UNIT, Unit};

use crate::clock::queued_time;
use crate::communicators::Communicators;
use crate::phrases::{Channel, Phrases};
use crate::requests::{RequestEntry, Requests};
use crate::shard::ShardFile;
pub use collectives::CollectiveForm;
use collectives::Template;
use file_type::FileType;
use files::OpenFile;
pub use process::CallRecord;
use process::Process;
use unmodelled::{Objects, function};
use windows::OpenWindow;

/// The peer `MPI_PROC_NULL`.
pub const PROC_NULL: i32 = -666;

/// The peer `MPI_ANY_SOURCE`.
pub const ANY_SOURCE: i32 = -555;

/// The tag `MPI_ANY_TAG`.
pub const ANY_TAG: i32 = -444;

/// Maximum duration \[ns\]: eleven days.
const MAX_NANOS: u64 = 999_999_999_999_999;

/// Position in the shard of the duration of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationSlot(u64);

/// State of timing.
#[derive(Debug, Default)]
struct Times {
    /// Time since the last call ended \[ns\].
    elapsed: u64,
    last: Option<DurationSlot>,
}

/// Recorder of a process: writes one record per call, preceded by one for the computation since the call before.
///
/// Handles of communicators and requests are numbers that the caller derives from those of the MPI library. Peers are ranks
/// of the communicator, [`PROC_NULL`] or [`ANY_SOURCE`]; sizes are in bytes.
#[derive(Debug)]
pub struct Recorder {
    file: ShardFile,
    rank: u32,
    world: u32,
    /// Amount of computation per count of the counter \[flop\].
    scale: f64,
    /// Count since the last record.
    pending_count: u64,
    /// Timing, if durations are recorded.
    times: Option<Times>,
    communicators: Communicators,
    /// Handle of `MPI_COMM_SELF`, which is added to the trace on first use.
    comm_self: Option<i64>,
    requests: Requests,
    /// Requests of unmodelled calls, numbered separately.
    unmodelled_requests: Requests,
    objects: Objects,
    /// Files on which calls are recorded as actions, by handle.
    files: FxHashMap<i64, OpenFile>,
    /// Windows on which calls are recorded as actions, by handle.
    windows: FxHashMap<i64, OpenWindow>,
    /// Files that calls of POSIX have opened, by their descriptors.
    descriptors: FxHashMap<i32, OpenFile>,
    /// Hints of the file that is opened next, as named fields.
    hints: Vec<(String, String)>,
    /// File type of the view that is set next.
    file_type: FileType,
    /// Source, tag, size and communicator of matched messages by handle (`MPI_Mprobe`).
    matched: FxHashMap<i64, (i32, i32, i64, i64)>,
    /// Names of the current regions, outermost first.
    regions: Vec<String>,
    /// Operations of persistent requests that are recorded at each start, by the numbers of the requests.
    templates: FxHashMap<u32, Template>,
    /// State of the process.
    process: Process,
    /// The last record of a call, until it is taken.
    call_record: Option<CallRecord>,
    /// True while records are those of an action that begins.
    is_announcing: bool,
    /// Phrase of the call that is being recorded.
    phrase: Phrase,
    phrases: Phrases,
}

impl Recorder {
    /// Returns the recorder of process `rank` of `world`.
    pub fn new(file: ShardFile, rank: u32, world: u32) -> Self {
        Self {
            file,
            rank,
            world,
            scale: 1.0,
            pending_count: 0,
            times: None,
            communicators: Communicators::default(),
            comm_self: None,
            requests: Requests::default(),
            unmodelled_requests: Requests::default(),
            objects: Objects::default(),
            files: FxHashMap::default(),
            windows: FxHashMap::default(),
            descriptors: FxHashMap::default(),
            hints: Vec::new(),
            file_type: FileType::default(),
            matched: FxHashMap::default(),
            regions: Vec::new(),
            templates: FxHashMap::default(),
            process: Process::default(),
            call_record: None,
            is_announcing: false,
            phrase: Phrase::default(),
            phrases: Phrases::default(),
        }
    }

    /// Sets the amount of computation per count of the counter \[flop\].
    pub fn with_scale(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    /// Enables durations, which are reported with [`add_elapsed`](Self::add_elapsed) and
    /// [`record_duration`](Self::record_duration).
    pub fn with_durations(self) -> Self {
        Self { times: Some(Times::default()), ..self }
    }

    /// Returns whether durations are recorded.
    pub fn records_durations(&self) -> bool {
        self.times.is_some()
    }

    /// Records that the process has entered MPI, with the handles of `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
    pub fn init(&mut self, world: i64, own: i64) {
        self.communicators.add(world, 0, None);
        self.comm_self = Some(own);
        self.process.queued = queued_time();
        self.write(Unit::of_kind(Kind::Init), false);
    }

    /// Adds a count of computation between two calls.
    pub fn add_computation(&mut self, count: u64) {
        self.pending_count += count;
    }

    /// Adds the time between two calls \[ns\].
    pub fn add_elapsed(&mut self, nanos: u64) {
        if let Some(times) = &mut self.times {
            times.elapsed += nanos;
        }
    }

    /// Takes the slot for the duration of the last recorded call, if it was not taken yet.
    pub fn take_duration_slot(&mut self) -> Option<DurationSlot> {
        self.times.as_mut()?.last.take()
    }

    /// Fills in the duration of a call \[ns\].
    pub fn record_duration(&mut self, DurationSlot(place): DurationSlot, nanos: u64) {
        self.file.patch(place, Deferred::encode_duration(nanos.min(MAX_NANOS)));
    }

    /// Records that the process leaves MPI, and ends the shard.
    ///
    /// # Errors
    /// If the file could not be written at some time.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_computation();
        self.file.set_state(ProcessState::QUEUED, &[queued_time().saturating_sub(self.process.queued)]);
        self.file.set_state(ProcessState::CALL, &[0]);
        self.write(Unit::of_kind(Kind::Finalize), false);
        self.file.finish()
    }

    /// Returns a number for a communicator that this process makes and whose first rank it is.
    pub fn next_communicator(&mut self) -> u32 {
        self.communicators.next_number(self.rank, self.world)
    }

    /// Records a call that makes a communicator: `comm_split`, `comm_dup` or `comm_create` on a parent, or
    /// `comm_create_group`. `new` has its handle, its number, on which all members agree, and its world ranks; it is `None`
    /// if the process got `MPI_COMM_NULL`.
    pub fn new_communicator(&mut self, verb: &str, parent: i64, new: Option<(i64, u32, Box<[u32]>)>) {
        let parent = match verb {
            "comm_create_group" => Some(0),
            _ => self.communicator(parent),
        };
        // Members of a communicator with an unknown parent, such as an intercommunicator, can still communicate: it is
        // recorded by its group.
        let (verb, parent) = parent.map_or(("comm_create_group", 0), |parent| (verb, parent));
        if verb == "comm_create_group" && new.is_none() {
            return;
        }
        self.begin_call(verb);
        // Without `comm=`, the line of a rank that gets no communicator would be SimGrid's action of the same name.
        self.phrase.named("comm", parent.into());
        if let Some((handle, number, members)) = new {
            self.phrase.named("new", number.into());
            if verb != "comm_dup" {
                self.phrase.list("members", &members);
            }
            self.communicators.add(handle, number, Some(members));
        }
        self.write_call();
    }

    /// Records `MPI_Comm_free`, or another function that frees a communicator.
    pub fn free_communicator(&mut self, name: &str, handle: i64) {
        match self.communicators.remove(handle) {
            Some(number) => {
                self.forget_files_of(number);
                self.begin_call("comm_free");
                self.phrase.named("comm", number.into());
                self.write_call();
            }
            None => {
                self.unmodelled(name, &[("comm", Argument::Communicator(handle))]);
                self.free_object(Object::Communicator, handle);
            }
        }
    }

    /// Returns the number of a communicator, if it is registered.
    fn communicator(&mut self, handle: i64) -> Option<u32> {
        if self.comm_self == Some(handle) {
            self.comm_self = None;
            let is_announcing = std::mem::take(&mut self.is_announcing);
            let (number, me) = (self.next_communicator(), self.rank);
            self.new_communicator("comm_create_group", 0, Some((handle, number, Box::new([me]))));
            self.is_announcing = is_announcing;
            // It is not the record of the call.
            self.call_record = None;
        }
        self.communicators.number(handle)
    }

    /// Returns the number of the communicator of a call; otherwise records the call as unmodelled.
    fn communicator_of(
        &mut self,
        verb: &str,
        handle: i64,
        arguments: &[(&str, Argument<'_>)],
    ) -> Option<u32> {
        let known = self.communicator(handle);
        if known.is_none() {
            let on = ("comm", Argument::Communicator(handle));
            self.unmodelled(&function(verb), &[arguments, &[on]].concat());
        }
        known
    }

    /// Returns the same for a call that posts a request.
    fn communicator_of_request(
        &mut self,
        verb: &str,
        handle: i64,
        arguments: &[(&str, Argument<'_>)],
    ) -> Result<u32, RequestEntry> {
        let known = self.communicator(handle);
        known.ok_or_else(|| {
            let on = ("comm", Argument::Communicator(handle));
            self.unmodelled_request(&function(verb), &[arguments, &[on]].concat())
        })
    }

    /// Writes a record of the computation since the last record, if any.
    fn write_computation(&mut self) {
        let elapsed = self.times.as_mut().map_or(0, |times| std::mem::take(&mut times.elapsed));
        if self.pending_count > 0 || elapsed > 0 {
            // Rounded, and exact up to 2^53.
            let flops = (self.pending_count as f64 * self.scale).round();
            self.pending_count = 0;
            let unit = Unit { amount: flops.to_bits(), ..Unit::of_kind(Kind::Compute) };
            let later = Deferred { nanos: Some(elapsed.min(MAX_NANOS)), ..Deferred::default() }.to_bytes();
            let has_deferred = self.times.is_some();
            self.file.append(unit.words(has_deferred), if has_deferred { &later } else { &[] });
        }
    }

    /// Begins the phrase of a call, after the record of the computation before it.
    fn begin_call(&mut self, verb: &str) {
        self.write_computation();
        self.phrase.begin(verb);
    }

    fn named_communicator(&mut self, number: u32) {
        if number != 0 {
            self.phrase.named("comm", number.into());
        }
    }

    /// Writes the record of the call whose phrase is complete.
    fn write_call(&mut self) {
        self.write_call_deferred(false);
    }

    /// Writes the record, with a deferred unit if it has an outcome; returns the offset of that unit.
    fn write_call_deferred(&mut self, has_outcome: bool) -> Option<u64> {
        let index = self.phrase_number();
        self.write(Unit { index, ..Unit::of_kind(Kind::Call) }, has_outcome)
    }

    /// Returns the number of the current phrase, which is defined in the shard if it is new.
    fn phrase_number(&mut self) -> u32 {
        self.phrases.find(self.phrase.bytes()).unwrap_or_else(|| {
            let index = self.phrases.add(self.phrase.bytes());
            self.define(index);
            index
        })
    }

    /// Returns the number of a channel, which is defined in the shard if it is new.
    fn channel_number(&mut self, channel: Channel) -> u32 {
        self.phrases.channel(channel).unwrap_or_else(|| {
            let (index, (peer, tag, communicator)) = (self.phrases.add_channel(channel), channel);
            self.phrase.begin(Phrase::CHANNEL);
            [peer.into(), tag.into(), communicator.into()]
                .into_iter()
                .for_each(|field| self.phrase.number(field));
            self.define(index);
            index
        })
    }

    #[cold]
    fn define(&mut self, index: u32) {
        let unit = Unit { index, amount: self.phrase.bytes().len() as u64, ..Unit::of_kind(Kind::Phrase) };
        self.file.append(unit.words(false), &self.phrase.padded());
    }

    /// Writes a record; returns the offset of its deferred unit.
    #[inline]
    fn write(&mut self, unit: Unit, has_outcome: bool) -> Option<u64> {
        if self.is_announcing {
            self.file.announce(unit.begun_words());
            return None;
        }
        let has_deferred = has_outcome || self.times.is_some();
        if unit.slot >= Unit::MAX_SLOTS {
            self.file.fail(io::Error::other("more than 16777216 requests are pending"));
        }
        let start = self.file.append(unit.words(has_deferred), if has_deferred { &[0; UNIT] } else { &[] });
        let later = start.filter(|_| has_deferred).map(|start| start + UNIT as u64);
        self.call_record = start.map(|start| CallRecord { start, has_deferred });
        if let Some(times) = &mut self.times {
            times.last = later.map(DurationSlot);
        }
        later
    }
}
