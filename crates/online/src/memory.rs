//! The shared memory, and access to it.
//!
//! Whoever has the turn on a slot owns its plain data; the hand-over is by the atomic `turn`. A rank that breaks this, which a program
//! that writes everywhere may do, changes numbers here, and never memory of the simulator: all offsets are checked.
#![allow(unsafe_code, reason = "memory that is shared with other processes")]

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

use bytemuck::Pod;
use memmap2::{MmapOptions, MmapRaw};
use pdes_core::SimTime;
use rustix::process::Pid;
use rustix::thread::{CpuSet, futex, sched_setaffinity, set_current_timer_slack};

use crate::layout::{
    BLOCK_HEAD, Block, CLOCK_AWAITED, COMPLETION, Completion, Header, LIST, NONE, OPERATION, OPERATIONS,
    Operation, PAGE, RECEIVED, REQUESTS, SLOT_BYTES, Slot, VERSION, turn,
};

/// Virtual memory for all arenas together \[B\]; the system gives pages where they are used.
const ARENAS: u64 = 16 << 40;
/// Largest arena \[B\].
const LARGEST_ARENA: u64 = 64 << 30;
/// Interval at which a wait looks whether the run is to end.
const PATIENCE: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Interval at which a wait looks at what ranks have computed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// A core is free.
    Short,
    Long,
    /// It does not matter.
    Endless,
}

/// The shared memory of a run.
#[derive(Debug)]
pub(crate) struct Memory {
    file: File,
    map: MmapRaw,
    ranks: u32,
    arena_bytes: u64,
}

/// Settings that the ranks read from the header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderSettings {
    pub(crate) computation: u32,
    pub(crate) clocks: u32,
    pub(crate) fixed_s: f64,
    pub(crate) debugged: Option<u32>,
    pub(crate) fold_bytes: Option<u64>,
    pub(crate) poll_tolerance: f64,
    pub(crate) checks_buffers: bool,
    pub(crate) keeps_polls: bool,
}

impl Memory {
    /// Creates the memory of a run of `ranks` ranks.
    ///
    /// # Errors
    /// The system has no such memory.
    pub(crate) fn create(ranks: u32, settings: HeaderSettings) -> io::Result<Self> {
        // Its descriptor is inherited by the processes of the program.
        let file = File::from(rustix::fs::memfd_create("pdes-replay", rustix::fs::MemfdFlags::empty())?);
        let arena_bytes = (ARENAS / (u64::from(ranks) + 1)).min(LARGEST_ARENA) / PAGE * PAGE;
        let arena = PAGE + u64::from(ranks) * SLOT_BYTES;
        let bytes = arena + (u64::from(ranks) + 1) * arena_bytes;
        file.set_len(bytes)?;
        let map = MmapOptions::new().no_reserve_swap().map_raw(&file)?;
        let memory = Self { file, map, ranks, arena_bytes };
        let header = memory.header();
        header.ranks.store(ranks, Ordering::Relaxed);
        header.computation.store(settings.computation, Ordering::Relaxed);
        header.clocks.store(settings.clocks, Ordering::Relaxed);
        header.fixed_s.store(settings.fixed_s.to_bits(), Ordering::Relaxed);
        header.debugged.store(settings.debugged.map_or(0, |rank| rank + 1), Ordering::Relaxed);
        header.poll_tolerance.store(settings.poll_tolerance.to_bits(), Ordering::Relaxed);
        header.keeps_polls.store(settings.keeps_polls.into(), Ordering::Relaxed);
        header.checks_buffers.store(settings.checks_buffers.into(), Ordering::Relaxed);
        header.fold_bytes.store(settings.fold_bytes.unwrap_or(0), Ordering::Relaxed);
        header.bytes.store(bytes, Ordering::Relaxed);
        header.slot.store(PAGE, Ordering::Relaxed);
        header.slot_bytes.store(SLOT_BYTES, Ordering::Relaxed);
        header.arena.store(arena, Ordering::Relaxed);
        header.arena_bytes.store(arena_bytes, Ordering::Relaxed);
        header.version.store(VERSION, Ordering::Release);
        Ok(memory)
    }

    /// Returns the file of the memory.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns a pointer to `bytes` bytes.
    ///
    /// # Panics
    /// They are not in the memory, or not aligned.
    fn at(&self, offset: u64, bytes: u64, alignment: usize) -> *mut u8 {
        let end = offset.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.map.len() as u64) && offset.is_multiple_of(alignment as u64),
            "a rank gave an offset that is not in the shared memory: {offset}, of {bytes} bytes; the program has overwritten it"
        );
        // SAFETY: the offset is within the map.
        unsafe { self.map.as_mut_ptr().add(offset as usize) }
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the header is in the first page, and has atomics only.
        unsafe { &*self.at(0, size_of::<Header>() as u64, align_of::<Header>()).cast() }
    }

    pub(crate) fn slot(&self, rank: u32) -> &Slot {
        let offset = self.slot_offset(rank, 0);
        // SAFETY: the memory of a slot lives as long as the map. Its fields are atomics, but for bytes that are read by copies of any
        // value.
        unsafe { &*self.at(offset, size_of::<Slot>() as u64, align_of::<Slot>()).cast() }
    }

    fn slot_offset(&self, rank: u32, offset: u64) -> u64 {
        PAGE + u64::from(rank) * SLOT_BYTES + offset
    }

    /// Reads a value.
    fn read<T: Pod>(&self, offset: u64) -> T {
        let pointer = self.at(offset, size_of::<T>() as u64, align_of::<T>());
        // SAFETY: the pointer is in the map and aligned, and all bit patterns are values. Its owner does not write meanwhile.
        unsafe { pointer.cast::<T>().read_volatile() }
    }

    /// Writes a value.
    fn write<T: Pod>(&self, offset: u64, value: T) {
        let pointer = self.at(offset, size_of::<T>() as u64, align_of::<T>());
        // SAFETY: as in `read`; the owner of the memory is this thread.
        unsafe { pointer.cast::<T>().write_volatile(value) }
    }

    /// Returns an operation of the turn of a rank.
    pub(crate) fn operation(&self, rank: u32, index: u32) -> Operation {
        let index = u64::from(index) % OPERATIONS as u64;
        self.read(self.slot_offset(rank, OPERATION + index * size_of::<Operation>() as u64))
    }

    /// Returns the call of a rank that has the turn, and its return address; `None` if it is in none.
    pub(crate) fn call(&self, rank: u32) -> Option<(String, u64)> {
        let slot = self.slot(rank);
        let name = slot.call.split(|byte| *byte == 0).next().unwrap_or_default();
        let is_in_call = !name.is_empty();
        is_in_call.then(|| (String::from_utf8_lossy(name).into_owned(), slot.site.load(Ordering::Relaxed)))
    }

    /// Returns the process of a rank.
    pub(crate) fn process(&self, rank: u32) -> i32 {
        self.slot(rank).process.load(Ordering::Relaxed)
    }

    /// Returns the first `count` listed requests of a rank.
    pub(crate) fn list(&self, rank: u32, count: u64) -> Vec<u32> {
        let count = count.min(REQUESTS as u64);
        (0..count).map(|index| self.read(self.slot_offset(rank, LIST + 4 * index))).collect()
    }

    /// Tells a rank of the end of a request, or of a blocking receive or a probe without a request.
    pub(crate) fn complete(&self, rank: u32, request: u32, completion: Completion) {
        let offset = match request {
            NONE => RECEIVED,
            request => COMPLETION + (u64::from(request) % REQUESTS as u64) * size_of::<Completion>() as u64,
        };
        self.write(self.slot_offset(rank, offset), completion);
    }

    /// Returns `count` numbers of the payload of a block.
    pub(crate) fn numbers<T: Pod>(&self, block: u64, count: u64) -> Vec<T> {
        let bytes = count.saturating_mul(size_of::<T>() as u64);
        self.at(block, bytes, align_of::<T>());
        (0..count).map(|index| self.read(block + index * size_of::<T>() as u64)).collect()
    }

    pub(crate) fn block(&self, block: u64) -> &Block {
        let offset = block.checked_sub(BLOCK_HEAD).unwrap_or(u64::MAX);
        // SAFETY: the head of a block has atomics only.
        unsafe { &*self.at(offset, BLOCK_HEAD, align_of::<Block>()).cast() }
    }

    /// Frees a block that the simulator has read.
    pub(crate) fn free(&self, block: u64) {
        self.block(block).is_free.store(1, Ordering::Release);
    }

    /// Returns the arena of the simulator: its begin and its size.
    pub(crate) fn own_arena(&self) -> (u64, u64) {
        let first = PAGE + u64::from(self.ranks) * SLOT_BYTES;
        (first + u64::from(self.ranks) * self.arena_bytes, self.arena_bytes)
    }

    /// Writes a number that others may read at any time.
    pub(crate) fn store(&self, offset: u64, value: u64) {
        let pointer = self.at(offset, 8, 8);
        // SAFETY: the place is aligned, within the map, and accessed by atomic operations only.
        unsafe { std::sync::atomic::AtomicU64::from_ptr(pointer.cast()) }.store(value, Ordering::Release);
    }

    /// Tells a rank that is ahead the instant at which its last operation has ended.
    pub(crate) fn tell_clock(&self, rank: u32, clock: SimTime) {
        let Slot { clock: of_rank, is_ahead, .. } = self.slot(rank);
        of_rank.store(clock.as_picos(), Ordering::Relaxed);
        if is_ahead.swap(0, Ordering::AcqRel) == CLOCK_AWAITED {
            let _ = futex::wake(is_ahead, futex::Flags::empty(), 1);
        }
    }

    /// Gives the turn to a rank that waits for it, on a core of its own if there is one.
    pub(crate) fn release_turn(&self, rank: u32, core: Option<u32>) {
        let Slot { turn, posted, thread, core: of_rank, .. } = self.slot(rank);
        posted.store(0, Ordering::Relaxed);
        let keep_on = |core: u32| {
            let thread = Pid::from_raw(thread.load(Ordering::Relaxed))?;
            let mut only = CpuSet::new();
            only.set(core as usize);
            sched_setaffinity(Some(thread), &only).ok().map(|()| core + 1)
        };
        of_rank.store(core.and_then(keep_on).unwrap_or(0), Ordering::Relaxed);
        let given = turn.compare_exchange(turn::SIMULATOR, turn::RANK, Ordering::AcqRel, Ordering::Acquire);
        if given.is_ok() {
            let _ = futex::wake(turn, futex::Flags::empty(), 1);
        }
    }

    /// Returns whether a rank that got the turn computes: it has not given it back, nor does it wait for the clock.
    pub(crate) fn is_computing(&self, rank: u32) -> bool {
        !self.has_given_back(rank) && self.slot(rank).is_ahead.load(Ordering::SeqCst) != CLOCK_AWAITED
    }

    /// Returns whether a rank that got the turn has given it back, or has ended.
    pub(crate) fn has_given_back(&self, rank: u32) -> bool {
        self.slot(rank).turn.load(Ordering::SeqCst) != turn::RANK
    }

    /// Waits until a rank gives a turn back after the bell was `heard`, or for some time.
    pub(crate) fn await_bell(&self, heard: u32, patience: Patience) {
        let patience = match patience {
            Patience::Short => &futex::Timespec { tv_sec: 0, tv_nsec: 20_000 },
            Patience::Long => &futex::Timespec { tv_sec: 0, tv_nsec: 50_000 },
            Patience::Endless => &PATIENCE,
        };
        // Else the system adds as much as a short time.
        let _ = set_current_timer_slack(NonZeroU64::new(1_000));
        let _ = futex::wait(&self.header().bell, futex::Flags::empty(), heard, Some(patience));
    }

    /// Waits until a rank gives the turn back, or has ended, or `is_over`. At its begin it has the turn. Returns whether the simulator has
    /// the turn.
    pub(crate) fn await_turn(&self, rank: u32, shares_core: bool, is_over: impl Fn() -> bool) -> bool {
        let Slot { turn, is_awaited, .. } = self.slot(rank);
        // On its core, the rank runs before this thread does again: one that does not sleep needs no call to be woken.
        if shares_core && !self.has_given_back(rank) {
            std::thread::yield_now();
        }
        loop {
            match turn.load(Ordering::Acquire) {
                turn::SIMULATOR => return true,
                turn::RANK if !is_over() => {
                    is_awaited.store(1, Ordering::SeqCst);
                    let _ = futex::wait(turn, futex::Flags::empty(), turn::RANK, Some(&PATIENCE));
                    is_awaited.store(0, Ordering::Relaxed);
                }
                _ => return false,
            }
        }
    }
}
