//! A run of a program: its memory, and the processes that are its ranks.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use pdes_core::Rank;
use trace_mmap::WorkMetric;

use crate::describe::{Places, Progress};
use crate::exchange::Exchange;
use crate::layout::{Operation, turn};
use crate::memory::Memory;
use crate::polling::Polling;
use crate::samples::Samples;
use crate::turns::Turns;

/// Resources of a run that its ranks share.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) memory: Memory,
    pub(crate) exchange: Exchange,
    pub(crate) settings: RunSettings,
    pub(crate) turns: Turns,
    pub(crate) polling: Polling,
    /// Call of each rank that is in progress.
    pub(crate) progress: Box<[Mutex<Progress>]>,
    pub(crate) places: Places,
    /// Flag: there has been a file.
    pub(crate) has_files: AtomicBool,
    pub(crate) samples: Samples,
    /// Warnings, each with the ranks that it is about.
    pub(crate) warnings: Mutex<BTreeMap<String, BTreeSet<Rank>>>,
    /// The command has ended.
    pub(crate) has_ended: AtomicBool,
    /// Exit status that the program asked for by `MPI_Abort`.
    pub(crate) abort_code: Mutex<Option<i32>>,
    /// Flag: what a rank has computed is told while it computes.
    pub(crate) watches_computations: AtomicBool,
    /// Flag: a run has taken the program; another one would have to start it again.
    pub(crate) is_taken: AtomicBool,
}

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSettings {
    /// Flops of a unit of computation: of a second here, or of an instruction.
    pub(crate) flops_per_unit: f64,
    /// Metric that the flops of a recorded trace count.
    pub(crate) work_metric: Option<WorkMetric>,
    /// Number of threads of the simulation.
    pub(crate) threads: usize,
    /// A blocking probe waits at once.
    pub(crate) blocking_probes: bool,
    /// Computations take the processor time of this machine.
    pub(crate) is_measured: bool,
}

impl Run {
    /// Waits until a rank to which a turn was given has posted operations.
    ///
    /// # Errors
    /// The rank has ended.
    pub(crate) fn take_turn(&self, rank: u32) -> Result<(), Box<str>> {
        match self.turns.take(&self.memory, rank, || self.has_ended.load(Ordering::Acquire)) {
            true => Ok(()),
            false => Err(self.describe_end(rank).into()),
        }
    }

    /// Lets a rank go on that has called `MPI_Finalize`.
    pub(crate) fn end_turn(&self, rank: u32) {
        self.progress[rank as usize].lock().unwrap_or_else(PoisonError::into_inner).operation = None;
        self.turns.end(&self.memory, rank);
    }

    /// Notes that a rank ends the program, and why; returns the message.
    pub(crate) fn abort(&self, rank: u32, code: i32, why: &str) -> String {
        self.abort_code.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(code);
        format!("rank {rank} ended the program with code {code}: {why}")
    }

    /// Notes the next operation of a rank.
    pub(crate) fn begin(&self, rank: u32, operation: Operation) {
        self.places.learn(self.memory.process(rank));
        self.progress[rank as usize].lock().unwrap_or_else(PoisonError::into_inner).begin(operation);
    }

    /// Notes a failed poll; warns if ranks have only polled for long.
    pub(crate) fn fail_poll(&self) {
        let now = Instant::now();
        // A rank that has the turn may compute.
        let are_all_in_calls = || {
            (0..self.memory.ranks())
                .all(|rank| self.memory.slot(rank).turn.load(Ordering::Acquire) != turn::RANK)
        };
        if self.polling.fail(now) && are_all_in_calls() {
            let (seconds, calls) = (self.polling.said(now).as_secs(), self.calls().join("; "));
            tracing::warn!(
                "ranks have only polled or waited for {seconds} s of real time, perhaps for ever: {calls}"
            );
        }
    }

    /// Adds a warning about a rank.
    pub(crate) fn warn(&self, rank: Rank, text: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.entry(text).or_default().insert(rank);
    }

    /// Returns the warnings, each of which names a rank, and how many others it is about.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.exchange.leftovers(&self.places).into_iter().for_each(|(rank, text)| self.warn(rank, text));
        let warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let describe = |(text, ranks): (&String, &BTreeSet<Rank>)| {
            let others = match ranks.len() {
                0 | 1 => String::new(),
                number => format!(" and {} other(s)", number - 1),
            };
            ranks.first().map(|first| format!("rank {first}{others}: {text}"))
        };
        warnings.iter().filter_map(describe).collect()
    }

    /// Returns whether what a rank has computed is told while it computes.
    pub(crate) fn watches_computations(&self) -> bool {
        self.watches_computations.load(Ordering::Relaxed)
    }

    fn describe_end(&self, rank: u32) -> String {
        let slot = self.memory.slot(rank);
        let is_attached = slot.is_attached.load(Ordering::Relaxed) == 1;
        if slot.has_ended.load(Ordering::Acquire) == 0 {
            return match self.memory.header().zygote.load(Ordering::Acquire) {
                0 => "the command ended, and no process of it was an MPI program: none uses MPI, or the loader did not load the library of \
                      pdes-replay before the MPI library, as it says then (it never does for programs with the rights of another user)"
                    .to_owned(),
                _ => "the program has ended".to_owned(),
            };
        }
        let status = ExitStatus::from_raw(slot.status.load(Ordering::Relaxed));
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit status {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}{}", signal_name(signal)),
            (None, None) => "ended".to_owned(),
        };
        match is_attached {
            true => format!("the process {how} before MPI_Finalize"),
            false => format!("the process {how} before MPI_Init"),
        }
    }

    /// Returns the exit status of the program: that of `MPI_Abort`, or of the first rank with one.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        let aborted = *self.abort_code.lock().unwrap_or_else(PoisonError::into_inner);
        aborted.or_else(|| {
            let codes = (0..self.memory.ranks()).filter_map(|rank| {
                let slot = self.memory.slot(rank);
                let has_ended = slot.has_ended.load(Ordering::Acquire) == 1;
                let status = ExitStatus::from_raw(slot.status.load(Ordering::Relaxed));
                has_ended.then(|| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
            });
            codes.into_iter().find(|code| *code != 0)
        })
    }

    /// Returns the calls in which ranks are, with the place in the program from which each is made.
    pub(crate) fn calls(&self) -> Vec<String> {
        let call = |rank| {
            let progress = self.progress[rank as usize].lock().unwrap_or_else(PoisonError::into_inner);
            let call = match self.memory.slot(rank).turn.load(Ordering::Acquire) {
                turn::SIMULATOR => progress.describe(&self.memory, rank, &self.places)?,
                // It has not ended, and is in a call, or between two.
                _ => progress
                    .operation
                    .and(self.memory.call(rank))
                    .map(|(name, site)| format!("{name}{}", self.places.called_from(site)))?,
            };
            Some(format!("rank {rank} in {call}"))
        };
        (0..self.memory.ranks()).filter_map(call).collect()
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        8 => " (arithmetic error)",
        9 => " (killed)",
        11 => " (segmentation fault)",
        15 => " (terminated)",
        _ => "",
    }
}
