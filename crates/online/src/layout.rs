//! Memory that the simulator and the ranks share, as `shim/layout.h` has it.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// Version of the layout.
pub(crate) const VERSION: u32 = 8;
/// Core of ranks that compute on cores of their own.
pub(crate) const APART: u32 = u32::MAX;
/// Number of operations of a turn.
pub(crate) const OPERATIONS: usize = 256;
/// Number of requests of a rank.
pub(crate) const REQUESTS: usize = 1 << 18;
/// Size of the header.
pub(crate) const PAGE: u64 = 4096;
/// No request.
pub(crate) const NONE: u32 = u32::MAX;
/// Any source, any tag.
pub(crate) const ANY: i32 = -1;

/// Number of the omission of accesses to files by the shared pointer; the other one is that of all accesses to files.
pub(crate) const OMITS_SHARED_POINTERS: u32 = 1;

/// Flag of a test that was not asked, because it fails.
pub(crate) const UNASKED: u32 = 1;

/// States of a rank whose last call has not ended in simulated time: it has gone on, and it waits for the clock.
pub(crate) const AHEAD: u32 = 1;
pub(crate) const CLOCK_AWAITED: u32 = 2;

/// Who owns a slot; another number: its rank has ended.
pub(crate) mod turn {
    pub(crate) const RANK: u32 = 0;
    pub(crate) const SIMULATOR: u32 = 1;
}

/// Makes an enum of the numbers in shared memory, from which other numbers are refused.
macro_rules! numbered {
    ($(#[$meta:meta])* pub(crate) enum $name:ident { $($variant:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),+ }

        impl $name {
            const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the one with a number.
            pub(crate) fn from_number(number: u32) -> Option<Self> {
                Self::ALL.get(number as usize).copied()
            }
        }
    };
}

numbered! {
    /// Kind of an operation.
    pub(crate) enum OperationKind {
        Init, Send, Isend, Recv, Irecv, SendRecv, SendInit, RecvInit, Start, Free, Waitall, Waitany, Waitsome, Testall, Testany, Testsome,
        GetStatus, Probe, Iprobe, Cancel, Collective, Join, Clock, Sleep, Region, Sync, Finalize, Abort, Omit, Window, Yield, Warn,
        Sampled, File,
    }
}

numbered! {
    /// Kind of a collective operation.
    pub(crate) enum CollectiveKind {
        Barrier, Bcast, Reduce, Allreduce, Alltoall, Alltoallv, Gather, Scatter, Allgather, Gatherv, Scatterv, Allgatherv, ReduceScatter,
        Scan, Exscan, Neighbor, Window, File,
    }
}

numbered! {
    /// Kind of a call on a file.
    pub(crate) enum FileKind { Open, Close, Sync, View, Read, Write }
}

/// The header.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) version: AtomicU32,
    pub(crate) ranks: AtomicU32,
    pub(crate) computation: AtomicU32,
    pub(crate) clocks: AtomicU32,
    pub(crate) fixed_s: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) slot: AtomicU64,
    pub(crate) slot_bytes: AtomicU64,
    pub(crate) arena: AtomicU64,
    pub(crate) arena_bytes: AtomicU64,
    pub(crate) zygote: AtomicI32,
    pub(crate) debugged: AtomicU32,
    pub(crate) has_storage: AtomicU32,
    pub(crate) checks_buffers: AtomicU32,
    pub(crate) fold_bytes: AtomicU64,
    pub(crate) poll_tolerance: AtomicU64,
    pub(crate) core: AtomicU32,
    pub(crate) keeps_polls: AtomicU32,
    pub(crate) bell: AtomicU32,
    pub(crate) listeners: AtomicU32,
}

/// An operation of a rank.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Operation {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) peer: i32,
    pub(crate) tag: i32,
    pub(crate) source: i32,
    pub(crate) source_tag: i32,
    pub(crate) communicator: u32,
    pub(crate) request: u32,
    pub(crate) bytes: u64,
    pub(crate) source_bytes: u64,
    pub(crate) block: u64,
    pub(crate) count: u64,
    pub(crate) recv_count: u64,
    pub(crate) vector: u64,
    pub(crate) computed: f64,
    pub(crate) seconds: f64,
    pub(crate) polled: f64,
    pub(crate) site: u64,
    pub(crate) call: [u8; 32],
}

impl Operation {
    /// Returns the name of the call of the program.
    pub(crate) fn name(&self) -> String {
        let name = self.call.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }
}

/// The end of a request, a blocking receive or a probe.
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Completion {
    pub(crate) is_complete: u32,
    pub(crate) is_receive: u32,
    pub(crate) source: i32,
    pub(crate) tag: i32,
    pub(crate) bytes: u64,
    pub(crate) block: u64,
}

/// The slot of a rank: the parts before its lists.
#[repr(C)]
pub(crate) struct Slot {
    pub(crate) turn: AtomicU32,
    pub(crate) operations: AtomicU32,
    pub(crate) clock: AtomicU64,
    pub(crate) process: AtomicI32,
    pub(crate) status: AtomicI32,
    pub(crate) has_ended: AtomicU32,
    pub(crate) is_attached: AtomicU32,
    pub(crate) is_finalized: AtomicU32,
    pub(crate) flag: AtomicU32,
    pub(crate) quiet_until: AtomicU64,
    pub(crate) quiet_unit_s: AtomicU64,
    pub(crate) poll_s: AtomicU64,
    pub(crate) table: AtomicU64,
    pub(crate) turn_s: AtomicU64,
    pub(crate) posted: AtomicU32,
    pub(crate) calls: AtomicU32,
    pub(crate) thread: AtomicI32,
    pub(crate) core: AtomicU32,
    pub(crate) is_awaited: AtomicU32,
    pub(crate) is_ahead: AtomicU32,
    pub(crate) computed: AtomicU64,
    pub(crate) spent: AtomicU64,
    received: [u8; size_of::<Completion>()],
    pub(crate) call: [u8; 40],
    pub(crate) site: AtomicU64,
}

/// Head of a block in an arena.
#[repr(C)]
pub(crate) struct Block {
    pub(crate) is_free: AtomicU32,
    pub(crate) size_class: AtomicU32,
    pub(crate) bytes: AtomicU64,
    reserved: [u64; 6],
}

/// Size of the head of a block.
pub(crate) const BLOCK_HEAD: u64 = size_of::<Block>() as u64;

/// Offset of the message of the last blocking receive in a slot.
pub(crate) const RECEIVED: u64 = std::mem::offset_of!(Slot, received) as u64;
/// Offset of the operations of a turn in a slot.
pub(crate) const OPERATION: u64 = size_of::<Slot>() as u64;
/// Offset of the list of requests.
pub(crate) const LIST: u64 = OPERATION + (OPERATIONS * size_of::<Operation>()) as u64;
/// Offset of the ends of requests.
pub(crate) const COMPLETION: u64 = LIST + (REQUESTS * size_of::<u32>()) as u64;
/// Size of a slot, in whole pages.
pub(crate) const SLOT_BYTES: u64 =
    (COMPLETION + (REQUESTS * size_of::<Completion>()) as u64).next_multiple_of(PAGE);

const _: () = assert!(size_of::<Header>() == 112 && size_of::<Operation>() == 144);
const _: () = assert!(size_of::<Completion>() == 32 && size_of::<Block>() == 64 && size_of::<Slot>() == 200);
