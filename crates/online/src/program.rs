//! A program that runs online.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use mpi_model::{ActionSource, ActionSources, Reply, Selection};
use pdes_core::Rank;
use replay::RunningProgram;
use rustix::process::{Pid, Signal, kill_process};
use trace_mmap::{Action, RankTrace, WorkMetric};

use crate::binary::{self, BinaryError};
use crate::describe::Places;
use crate::exchange::Exchange;
use crate::extrapolate::{Extrapolation, ExtrapolationRule};
use crate::memory::{HeaderSettings, Memory};
use crate::polling::Polling;
use crate::record::Recording;
use crate::run::{Run, RunSettings};
use crate::samples::{SampledBlock, Samples};
use crate::shim::{ShimError, shim};
use crate::source::RankSource;
use crate::turns::Turns;

/// Time of the computations between calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Computation {
    /// The processor time that they take here.
    #[default]
    Measured,
    /// None.
    None,
    /// The instructions that they take here.
    Instructions,
    /// The same time for each of them \[s\].
    Fixed(f64),
}

/// Clocks that show simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clocks {
    /// `MPI_Wtime`.
    #[default]
    Wtime,
    /// Also those of the C library, and its sleeps.
    All,
}

/// Settings of an online run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time of computations.
    pub computation: Computation,
    /// Clocks that show simulated time.
    pub clocks: Clocks,
    /// Speed of this machine [flop/s]: a second of computation is so many flops of the simulated one.
    pub speed: f64,
    /// Rank that waits in `MPI_Init` for a debugger.
    pub debugged: Option<u32>,
    /// Smallest allocation \[B\] that is folded: the k-th such one of a rank is the same memory as that of each other rank; `None` for none.
    pub fold_bytes: Option<u64>,
    /// Part of the time since the first failed poll of a row, at most 1 ms, during which further ones fail unasked; 0 for none.
    pub poll_tolerance: f64,
    /// Buffers of nonblocking messages are compared with what they were when they were posted.
    pub checks_buffers: bool,
    /// Number of threads of the simulation.
    pub threads: usize,
    /// One of many runs in all orders: what the program prints is dropped, and a blocking probe is one, and not many that do not block.
    pub explores: bool,
}

/// The reason why a program does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program cannot run online.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// There is no library to preload.
    #[error(transparent)]
    Shim(#[from] ShimError),
    /// The system has no shared memory.
    #[error("the memory that {ranks} ranks share: {source}")]
    Memory {
        /// Number of ranks.
        ranks: u32,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The program cannot be started.
    #[error("{program}: {source}")]
    NotStarted {
        /// Command.
        program: String,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// A program that has been started.
#[derive(Clone, Debug)]
pub struct Program {
    name: PathBuf,
    run: Arc<Run>,
    recording: Option<Recording>,
    extrapolation: Option<Extrapolation>,
    /// Ends with the command.
    watcher: Arc<Mutex<Option<JoinHandle<i32>>>>,
    command: u32,
}

impl Program {
    /// Starts a command with `ranks` ranks. The thread that calls it must outlive the program.
    ///
    /// # Errors
    /// The command cannot be started or run online, or there is no library to preload.
    pub fn start(command: &[OsString], ranks: u32, settings: Settings) -> Result<Self, StartError> {
        let mpi = command.first().map_or(Ok(None), |program| binary::check(program))?;
        let library = shim(settings.fold_bytes.is_some(), mpi)?;
        let (computation, fixed_s) = match settings.computation {
            Computation::None => (0, 0.0),
            Computation::Measured => (1, 0.0),
            Computation::Instructions => (2, 0.0),
            Computation::Fixed(seconds) => (3, seconds),
        };
        let (clocks, debugged) = (u32::from(settings.clocks == Clocks::All), settings.debugged);
        let Settings { fold_bytes, poll_tolerance, checks_buffers, .. } = settings;
        let header = HeaderSettings {
            computation,
            clocks,
            fixed_s,
            debugged,
            fold_bytes,
            poll_tolerance,
            checks_buffers,
            keeps_polls: !matches!(settings.computation, Computation::Measured | Computation::Instructions),
        };
        let memory = Memory::create(ranks, header).map_err(|source| StartError::Memory { ranks, source })?;
        let child = spawn(command, &library, &memory, settings.explores)?;
        let (name, pid) =
            (PathBuf::from(command.first().map_or(OsStr::new(""), OsString::as_os_str)), child.id());
        let run = Arc::new(Run {
            exchange: Exchange::new(ranks),
            memory,
            settings: RunSettings {
                flops_per_unit: match settings.computation {
                    Computation::Instructions => 1.0,
                    _ => settings.speed,
                },
                work_metric: match settings.computation {
                    Computation::Measured => Some(WorkMetric::CpuTime { rate: settings.speed }),
                    Computation::Instructions => Some(WorkMetric::Instructions),
                    Computation::Fixed(_) => Some(WorkMetric::Time { rate: settings.speed }),
                    Computation::None => None,
                },
                threads: settings.threads,
                blocking_probes: settings.explores,
                is_measured: matches!(settings.computation, Computation::Measured),
            },
            progress: (0..ranks).map(|_| Mutex::default()).collect(),
            places: Places::default(),
            turns: Turns::new(ranks),
            polling: Polling::default(),
            has_files: AtomicBool::new(false),
            samples: Samples::default(),
            warnings: Mutex::default(),
            has_ended: AtomicBool::new(false),
            abort_code: Mutex::default(),
            watches_computations: AtomicBool::new(false),
            is_taken: AtomicBool::new(false),
        });
        let watched = Arc::clone(&run);
        let watcher = std::thread::spawn(move || watch(child, &watched));
        let watcher = Arc::new(Mutex::new(Some(watcher)));
        Ok(Self { name, run, recording: None, extrapolation: None, watcher, command: pid })
    }

    /// Records the run as a trace, which is written after its end. Computations are amounts at the speed of this machine in the
    /// settings, unless they are instructions or none.
    pub fn record(&mut self) -> Recording {
        self.run.memory.header().keeps_polls.store(1, Ordering::Relaxed);
        let RunSettings { work_metric, .. } = self.run.settings;
        self.recording.insert(Recording::new(&self.name, work_metric, self.ranks())).clone()
    }

    /// Leaves the program once its calls repeat: the run ends with an error then, and an archive has its calls, and as many iterations as
    /// the rule says. Measured computations of an iteration are means. Takes the memory of a [recording](Self::record).
    pub fn extrapolate(&mut self, rule: ExtrapolationRule, output: &Path) -> Extrapolation {
        if self.recording.is_none() {
            self.record();
        }
        let of_program = Extrapolation::new(rule, self.ranks(), self.run.settings.work_metric, output);
        self.extrapolation.insert(of_program).clone()
    }

    /// Says, before the run, whether the platform has devices for files, whose time accesses take then.
    pub fn set_storage(&self, has_storage: bool) {
        self.run.memory.header().has_storage.store(has_storage.into(), Ordering::Relaxed);
    }

    /// Says, before the run, whether ranks wait for what others compute: measured computations are told while they last then.
    pub fn watch_computations(&self, waits: bool) {
        let is_measured = self.run.settings.is_measured;
        self.run.watches_computations.store(waits && is_measured, Ordering::Relaxed);
    }

    /// Waits for the end of the command; returns its exit status.
    pub fn wait(&self) -> i32 {
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).take();
        let of_command = watcher.map_or(1, |watcher| watcher.join().unwrap_or(1));
        self.run.exit_code().unwrap_or(of_command)
    }

    /// Ends all processes of the program, whose core the calling thread no longer shares; returns the exit status.
    pub fn kill(&self) -> i32 {
        let ended = self.run.exit_code();
        self.run.turns.leave(&self.run.memory);
        // The ranks end with the process that has forked them.
        let zygote = self.run.memory.header().zygote.load(Ordering::Acquire);
        // A number is that of its process until this has been waited for.
        let is_there = !self.run.has_ended.load(Ordering::Acquire);
        for process in [zygote, self.command.cast_signed()] {
            if let Some(pid) = Pid::from_raw(process).filter(|_| is_there) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let waited = self.wait();
        ended.unwrap_or(if waited == 0 || waited >= 128 { 1 } else { waited })
    }

    /// Returns what the simulated time of the program leaves out.
    pub fn omissions(&self) -> impl Iterator<Item = &'static str> {
        let has_files = self.run.has_files.load(Ordering::Relaxed);
        has_files.then_some("accesses to files took no time: a real run takes longer").into_iter()
    }

    /// Returns the sampled blocks, after the run.
    pub fn sampled_blocks(&self) -> Vec<SampledBlock> {
        self.run.samples.blocks()
    }

    /// Returns what the program has left at its end: requests, communicators and datatypes that it has not completed or freed.
    pub fn warnings(&self) -> Vec<String> {
        self.run.warnings()
    }

    /// Returns whether a rank has ended the program by `MPI_Abort`, or by a mistake that it has reported.
    pub fn has_aborted(&self) -> bool {
        self.run.abort_code.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns the calls of MPI in which ranks are, each with the place in the program.
    pub fn calls(&self) -> Vec<String> {
        self.run.calls()
    }
}

/// Starts the command, with the library among those that are preloaded.
fn spawn(
    command: &[OsString],
    library: &Path,
    memory: &Memory,
    is_silent: bool,
) -> Result<Child, StartError> {
    let (program, arguments) =
        command.split_first().map_or((OsStr::new(""), command), |(first, rest)| (first.as_os_str(), rest));
    let others = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    // Tools for MPI, which call the profiling names, see the calls of the program only before this library, but one that allocates would hide
    // its allocations.
    let folds = memory.header().fold_bytes.load(Ordering::Relaxed) != 0;
    let libraries = if folds { [library.as_os_str(), &others] } else { [&others, library.as_os_str()] };
    let preload =
        libraries.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(OsStr::new(":"));
    let mut child = Command::new(program);
    child.args(arguments).env("LD_PRELOAD", preload).env("PDES_ONLINE_PRELOAD", others);
    child.env("PDES_ONLINE_MEMORY", memory.file().as_raw_fd().to_string());
    if is_silent {
        child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    }
    child
        .spawn()
        .map_err(|source| StartError::NotStarted { program: program.to_string_lossy().into_owned(), source })
}

/// Waits for the end of the command.
fn watch(mut child: Child, run: &Run) -> i32 {
    let status = child.wait();
    run.has_ended.store(true, Ordering::Release);
    status.map_or(1, |status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
}

impl RunningProgram for Program {
    fn name(&self) -> &Path {
        &self.name
    }

    fn ranks(&self) -> u32 {
        self.run.memory.ranks()
    }

    fn work_metric(&self) -> Option<WorkMetric> {
        self.run.settings.work_metric
    }

    fn accesses_files(&self) -> bool {
        true
    }

    fn sources(&self, _: u32, selection: &Selection) -> Arc<dyn ActionSources> {
        let is_first = !self.run.is_taken.swap(true, Ordering::AcqRel);
        Arc::new(Sources {
            run: Arc::clone(&self.run),
            recording: self.recording.clone(),
            extrapolation: self.extrapolation.clone(),
            selection: selection.clone(),
            is_first,
        })
    }
}

/// The sources of the ranks of a run.
#[derive(Debug)]
struct Sources {
    run: Arc<Run>,
    recording: Option<Recording>,
    extrapolation: Option<Extrapolation>,
    selection: Selection,
    /// False in a run that begins anew: the program runs once.
    is_first: bool,
}

impl ActionSources for Sources {
    fn source<'t>(&self, rank: Rank, trace: &'t RankTrace) -> Box<dyn ActionSource + 't> {
        if !self.is_first {
            return Box::new(RunAgain);
        }
        if rank.get() >= self.run.memory.ranks() {
            return Box::new(Idle);
        }
        let source = Box::new(RankSource::new(rank, trace, self.selection.clone(), Arc::clone(&self.run)));
        match &self.recording {
            Some(recording) => {
                let search = self.extrapolation.as_ref().map(|extrapolation| extrapolation.of_rank(rank));
                recording.of_source(rank, trace, source, search)
            }
            None => source,
        }
    }

    /// The library in the ranks raises the error, which the program may handle.
    fn truncates(&self) -> bool {
        true
    }
}

/// A rank beyond those of the program.
struct Idle;

impl ActionSource for Idle {
    fn next(&mut self, _: Reply<'_>) -> Result<Option<Action>, Box<str>> {
        Ok(None)
    }

    fn slots(&self) -> u32 {
        0
    }
}

/// A rank of a run that begins anew.
struct RunAgain;

impl ActionSource for RunAgain {
    fn next(&mut self, _: Reply<'_>) -> Result<Option<Action>, Box<str>> {
        Err("the run would have to begin anew, and the program runs once: set engine.threads = 1".into())
    }

    fn slots(&self) -> u32 {
        0
    }
}
