//! Rows of the tables of an archive, archived by rkyv: plain data, which are used as they lie in the file.

use bytemuck::{Pod, Zeroable};
use rkyv::api::high::{HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Failure;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;

use crate::archive::layout::Section;
use crate::archive::tally::Traffic;
use crate::provenance::Provenance;
use crate::record::ACTION_KINDS;
use crate::warning::Unreceived;

/// A row of a table.
///
/// Any bytes are a row in memory, so that an archive that is written to while it is mapped cannot make a reader leave the map.
pub(crate) trait Row:
    rkyv::Archive<Archived: Pod + rkyv::Portable + for<'a> CheckBytes<HighValidator<'a, Failure>>>
{
    /// The table.
    const SECTION: Section;
}

/// Defines rows and their tables.
macro_rules! rows {
    ($($(#[$doc:meta])* $section:ident: $row:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => { $(
        $(#[$doc])*
        #[derive(Default, rkyv::Archive, rkyv::Serialize)]
        #[rkyv(derive(Clone, Copy, Pod, Zeroable))]
        pub(crate) struct $row {
            $($(#[$field_doc])* pub(crate) $field: $type,)*
        }

        impl Row for $row {
            const SECTION: Section = Section::$section;
        }
    )* };
}

/// Rows of another table: the first one and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize)]
#[rkyv(derive(Clone, Copy, Pod, Zeroable))]
pub(crate) struct Span {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl ArchivedSpan {
    pub(crate) fn to_native(self) -> Span {
        Span { first: self.first.to_native(), count: self.count.to_native() }
    }
}

rows! {
    /// The data of a shard.
    Shards: ShardRow {
        /// Offset in the file [B].
        offset: u64,
        /// Length [B].
        len: u64,
    }
    /// A program.
    Programs: ProgramRow {
        /// Offset of the records in the data of the shard [B].
        offset: u64,
        /// Number of records.
        records: u64,
        /// Number of executed actions, optional computations included.
        actions: u64,
        /// Number of columns that the records refer to.
        columns: u64,
        /// Number of executed actions of each kind.
        by_kind: [u64; ACTION_KINDS],
        shard: u32,
        /// Deepest nesting of loops.
        depth: u32,
    }
    /// A rank.
    Ranks: RankRow {
        program: u32,
        side_table: u32,
        ports: u32,
        slots: u32,
        /// Offset of the column blocks in the data of the shard [B].
        blocks_offset: u64,
        outgoing: Span,
        incoming: Span,
        pending: Span,
        columns: Span,
        communicators: Span,
        /// Sum of `HAS_NAMED_REQUESTS` and `HAS_INSERTS`.
        flags: u64,
    }
    /// An outgoing channel.
    Outgoing: OutgoingRow {
        peer: u32,
        tag: u32,
        communicator: u32,
        /// The encoded [`Arrival`](crate::Arrival): 0 is `Unmatched`, 1 `AnySource`, else the port plus 2.
        arrival: u32,
        messages: u64,
        /// Size of all messages [B].
        bytes: u64,
    }
    /// An incoming channel.
    Incoming: IncomingRow {
        peer: u32,
        /// The tag plus 1; 0 for any.
        tag: u32,
        communicator: u32,
        port: u32,
        receives: u64,
    }
    /// A request that is pending at the end of its rank.
    Pending: PendingRow {
        slot: u32,
    }
    /// A column.
    Columns: ColumnRow {
        /// Number of values.
        len: u64,
        /// Number of absent values.
        absent: u64,
        /// 0 if `word` holds the bits of the one value, 1 if it is the offset of the directory of blocks in the data [B].
        kind: u64,
        word: u64,
    }
    /// A communicator of a rank that is not the world.
    Communicators: CommunicatorRow {
        id: u32,
        /// The rank in the communicator.
        rank: u32,
        group: u32,
    }
    /// A group, by its runs.
    Groups: GroupRow {
        runs: Span,
    }
    /// A run of ranks of a group.
    Runs: RunRow {
        first: u32,
        len: u32,
        stride: i32,
    }
    /// A side table, by its bytes in the section of side tables.
    SideIndex: SideIndexRow {
        offset: u64,
        len: u64,
    }
    /// The measured times of a rank.
    Times: TimesRow {
        /// Offset of the column blocks in the data of the shard [B].
        blocks_offset: u64,
        /// One column for each kind of action; none if the rank has no times.
        columns: Span,
    }
    /// A page of data.
    PageSums: PageSumRow {
        checksum: u64,
    }
}

impl ArchivedOutgoingRow {
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic { messages: self.messages.to_native(), bytes: self.bytes.to_native() }
    }
}

/// Flag of a rank whose requests have names.
pub(crate) const HAS_NAMED_REQUESTS: u64 = 1;

/// Flag of a rank whose last two columns hold inserted computations.
pub(crate) const HAS_INSERTS: u64 = 2;

/// Facts about the whole trace.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Overview {
    /// Number of ranks.
    pub(crate) ranks: u32,
    /// Number of actions of all ranks.
    pub(crate) actions: u64,
    pub(crate) unreceived: Option<Unreceived>,
    pub(crate) provenance: Provenance,
}

/// Archives a value.
pub(crate) fn archived<T>(value: &T) -> AlignedVec
where
    T: for<'a> rkyv::Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, Failure>>,
{
    rkyv::to_bytes(value).expect("archiving to memory cannot fail")
}
