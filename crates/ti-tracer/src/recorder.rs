//! Turning the calls of one process into lines of its shard.

mod collectives;
mod completion;
mod messages;
mod regions;
mod unmodelled;

pub use completion::{Completion, Status};
pub use unmodelled::{Argument, Object};

use std::fmt::Write as _;
use std::io;

use rustc_hash::FxHashMap;

use crate::communicators::Communicators;
use crate::lists::List;
use crate::requests::{Entry, Requests};
use crate::shard::ShardFile;
use unmodelled::{Objects, function};

/// The peer `MPI_PROC_NULL`.
pub const NOBODY: i32 = -666;

/// The peer `MPI_ANY_SOURCE`.
pub const ANY_SOURCE: i32 = -555;

/// The tag `MPI_ANY_TAG`.
pub const ANY_TAG: i32 = -444;

/// The key of a time, the last field of its line.
const TIME: &str = " time=";

/// The longest time \[ns\]: eleven days.
const MOST_NANOS: u64 = 999_999_999_999_999;

/// Room for a time that is not known yet.
const TIME_ROOM: &str = "                     ";

const _: () = assert!(TIME_ROOM.len() == TIME.len() + MOST_NANOS.ilog10() as usize + 1);

/// Where the time of a call goes in the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPlace(u64);

/// What is known of times.
#[derive(Debug, Default)]
struct Times {
    /// Nanoseconds since the last call ended.
    elapsed: u64,
    last: Option<CallPlace>,
}

/// Writes what a process does to its shard, one line per call, and one for what it computed since the call before.
///
/// Handles of communicators and requests are numbers that the caller makes from those of the MPI library. Peers are ranks of the
/// communicator, or one of [`NOBODY`] and [`ANY_SOURCE`]; sizes are in bytes.
#[derive(Debug)]
pub struct Recorder {
    file: ShardFile,
    rank: u32,
    world: u32,
    /// What a unit of the counter stands for in the trace.
    scale: f64,
    /// What was counted since the last line.
    computed: u64,
    /// Nanoseconds that passed meanwhile, and the place for those of the last call, where times are kept.
    times: Option<Times>,
    communicators: Communicators,
    /// The handle of `MPI_COMM_SELF`, which the trace gets once it is used.
    own: Option<i64>,
    requests: Requests,
    /// Requests of calls that no replay models, with numbers of their own.
    others: Requests,
    objects: Objects,
    /// Source, tag and communicator of the messages that were matched, by their handles.
    matched: FxHashMap<i64, (i32, i32, i64)>,
    /// The names of the regions in which the program is, the outermost first.
    regions: Vec<String>,
    line: String,
}

impl Recorder {
    /// Starts for a process of so many.
    pub fn new(file: ShardFile, rank: u32, world: u32) -> Self {
        Self {
            file,
            rank,
            world,
            scale: 1.0,
            computed: 0,
            times: None,
            communicators: Communicators::default(),
            own: None,
            requests: Requests::default(),
            others: Requests::default(),
            objects: Objects::default(),
            matched: FxHashMap::default(),
            regions: Vec::new(),
            line: String::new(),
        }
    }

    /// Sets what a unit of the counter stands for in the trace, in flops.
    pub fn with_scale(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    /// Keeps times: those that are told with [`elapse`](Self::elapse) and [`end_call`](Self::end_call).
    pub fn with_times(self) -> Self {
        Self { times: Some(Times::default()), ..self }
    }

    /// Returns whether times are kept.
    pub fn keeps_times(&self) -> bool {
        self.times.is_some()
    }

    /// Writes a comment.
    pub fn comment(&mut self, text: &str) {
        self.file.append(text);
    }

    /// Records that the process has entered MPI; takes the handles of `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
    pub fn init(&mut self, world: i64, own: i64) {
        self.communicators.add(world, 0, None);
        self.own = Some(own);
        self.begin("init");
        self.end();
    }

    /// Adds what was counted between two calls.
    pub fn compute(&mut self, count: u64) {
        self.computed += count;
    }

    /// Adds the time between two calls \[ns\].
    pub fn elapse(&mut self, nanos: u64) {
        if let Some(times) = &mut self.times {
            times.elapsed += nanos;
        }
    }

    /// Takes the place where the time of the call goes whose line was written last, if it is not taken yet.
    pub fn take_call(&mut self) -> Option<CallPlace> {
        self.times.as_mut()?.last.take()
    }

    /// Fills in how long a call has taken \[ns\].
    pub fn end_call(&mut self, CallPlace(place): CallPlace, nanos: u64) {
        self.file.patch(place, &format!("{TIME}{}", nanos.min(MOST_NANOS)));
    }

    /// Records that the process leaves MPI, and ends the shard.
    ///
    /// # Errors
    /// Where the file could not be written at some time.
    pub fn finish(mut self) -> io::Result<()> {
        self.begin("finalize");
        self.end();
        if self.file.failure().is_none() {
            self.comment("# end");
        }
        self.file.finish()
    }

    /// Returns the number of a communicator that this process makes and whose first rank it is.
    pub fn next_communicator(&mut self) -> u32 {
        self.communicators.next_number(self.rank, self.world)
    }

    /// Records a call that makes a communicator, `comm_split`, `comm_dup` or `comm_create`, on a parent, or `comm_create_group`;
    /// `new` has its handle, its number, on which all members agree, and its ranks of the world. Without, the process got none.
    pub fn new_communicator(&mut self, verb: &str, parent: i64, new: Option<(i64, u32, Box<[u32]>)>) {
        let parent = match verb {
            "comm_create_group" => Some(0),
            _ => self.communicator(parent),
        };
        // The members of one whose parent is unknown, as of an intercommunicator, can still talk to each other.
        let (verb, parent) = parent.map_or(("comm_create_group", 0), |parent| (verb, parent));
        if verb == "comm_create_group" && new.is_none() {
            return;
        }
        self.begin(verb);
        // Without its parent, the line of a rank that gets none would be one of SimGrid's.
        self.push(format_args!(" comm={parent}"));
        if let Some((handle, number, members)) = new {
            self.push(format_args!(" new={number}"));
            if verb != "comm_dup" {
                self.push(format_args!(" members={}", List(&members)));
            }
            self.communicators.add(handle, number, Some(members));
        }
        self.end();
    }

    /// Records `MPI_Comm_free`, or another function that does the same.
    pub fn free_communicator(&mut self, name: &str, handle: i64) {
        match self.communicators.remove(handle) {
            Some(number) => {
                self.begin("comm_free");
                self.push(format_args!(" comm={number}"));
                self.end();
            }
            None => {
                self.unmodelled(name, &[("comm", Argument::Communicator(handle))]);
                self.forget(Object::Communicator, handle);
            }
        }
    }

    /// Returns the number of a communicator, if it is known.
    fn communicator(&mut self, handle: i64) -> Option<u32> {
        if self.own == Some(handle) {
            self.own = None;
            let (number, me) = (self.next_communicator(), self.rank);
            self.new_communicator("comm_create_group", 0, Some((handle, number, Box::new([me]))));
        }
        self.communicators.number(handle)
    }

    /// Returns the number of the communicator of a call, or records the call as one that no replay models.
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

    /// The same of a call that posts a request.
    fn communicator_of_request(
        &mut self,
        verb: &str,
        handle: i64,
        arguments: &[(&str, Argument<'_>)],
    ) -> Result<u32, Entry> {
        let known = self.communicator(handle);
        known.ok_or_else(|| {
            let on = ("comm", Argument::Communicator(handle));
            self.unmodelled_request(&function(verb), &[arguments, &[on]].concat())
        })
    }

    /// Begins a line, after one with what was computed before.
    fn begin(&mut self, verb: &str) {
        let elapsed = self.times.as_mut().map_or(0, |times| std::mem::take(&mut times.elapsed));
        if self.computed > 0 || elapsed > 0 {
            // Rounded, and exact up to 2^53.
            let flops = (self.computed as f64 * self.scale).round() as i64;
            self.computed = 0;
            self.start_line("compute");
            self.field(flops);
            if self.times.is_some() {
                self.push(format_args!("{TIME}{}", elapsed.min(MOST_NANOS)));
            }
            self.file.append(&self.line);
        }
        self.start_line(verb);
    }

    fn start_line(&mut self, verb: &str) {
        self.line.clear();
        self.digits(self.rank.into());
        self.line.push(' ');
        self.line.push_str(verb);
    }

    /// Adds a number behind a space.
    fn field(&mut self, number: i64) {
        self.line.push(' ');
        self.digits(number);
    }

    /// Adds a number behind a name such as ` req=`.
    fn named_field(&mut self, name: &str, number: u32) {
        self.line.push_str(name);
        self.digits(number.into());
    }

    fn digits(&mut self, number: i64) {
        self.line.push_str(itoa::Buffer::new().format(number));
    }

    /// Adds what is less frequent.
    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.line.write_fmt(text);
    }

    fn named_communicator(&mut self, number: u32) {
        if number != 0 {
            self.named_field(" comm=", number);
        }
    }

    /// Ends the line of a call; returns where it begins in the file.
    fn end(&mut self) -> Option<u64> {
        let Some(times) = &mut self.times else { return self.file.append(&self.line) };
        let at = self.line.len() as u64;
        self.line.push_str(TIME_ROOM);
        let start = self.file.append(&self.line);
        times.last = start.map(|start| CallPlace(start + at));
        start
    }
}
