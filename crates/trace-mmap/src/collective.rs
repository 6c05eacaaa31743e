//! Collective operations with their arguments.

use std::fmt;

use pdes_core::Rank;

use crate::call::text;
use crate::datatype::Datatype;

/// Makes an operation of each row of the table: documentation, names of the blocking and the nonblocking action in a trace, and
/// arguments in the order of the text, each read by the method of [`ReadCollective`] of the same name.
macro_rules! collectives {
    (
        $(#[$meta:meta])*
        pub enum Collective;
        $(
            $(#[$doc:meta])*
            $variant:ident $name:literal $nonblocking:literal $({ $($field:ident: $type:ty),+ })?;
        )*
    ) => {
        $(#[$meta])*
        pub enum Collective {
            $($(#[$doc])* $variant $({ $($field: $type),+ })?,)*
        }

        /// The operation of a row of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the operations are those of `Collective`")]
        pub enum CollectiveKind {
            $($variant,)*
        }

        impl CollectiveKind {
            /// All operations.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Finds the operation with this name, and whether it is the nonblocking one.
            #[inline]
            pub fn find(name: &[u8]) -> Option<(Self, bool)> {
                match name {
                    $($name => Some((Self::$variant, false)), $nonblocking => Some((Self::$variant, true)),)*
                    _ => None,
                }
            }

            /// Returns the names of the blocking and the nonblocking action in a trace.
            pub fn names(self) -> [&'static str; 2] {
                match self {
                    $(Self::$variant => const { [text($name), text($nonblocking)] },)*
                }
            }
        }

        impl Collective {
            fn kind(&self) -> CollectiveKind {
                match self {
                    $(Self::$variant { .. } => CollectiveKind::$variant,)*
                }
            }

            /// Returns the root, if the operation has one.
            pub fn root(&self) -> Option<Rank> {
                match self {
                    $(Self::$variant $({ $($field),+ })? => None$($(.or($field.as_root()))+)?,)*
                }
            }

            /// Returns the computation of a reduction on this rank \[flop\].
            pub fn flops(&self) -> Option<f64> {
                match self {
                    $(Self::$variant $({ $($field),+ })? => None$($(.or($field.as_flops()))+)?,)*
                }
            }

            /// Returns the vectors of counts, each with one count per rank.
            pub fn vectors(&self) -> Vec<&[u64]> {
                match self {
                    $(Self::$variant $({ $($field),+ })? => {
                        None::<&[u64]>.into_iter()$($(.chain($field.as_counts()))+)?.collect()
                    })*
                }
            }

            fn restrict_arguments(&mut self, group_ranks: &[u32]) {
                match self {
                    $(Self::$variant $({ $($field),+ })? => { $($($field.restrict(group_ranks);)+)? })*
                }
            }

            /// Reads the arguments of an operation.
            ///
            /// # Errors
            /// Returns the first error of the reader.
            pub fn read<R: ReadCollective>(kind: CollectiveKind, reader: &mut R) -> Result<Self, R::Error> {
                Ok(match kind {
                    $(CollectiveKind::$variant => Self::$variant $({ $($field: reader.$field()?),+ })?,)*
                })
            }

            /// Writes the arguments as text, each after a space.
            ///
            /// # Errors
            /// Returns errors of the formatter.
            pub fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // Each vector stands after the size of its buffer, which the replay ignores.
                if let Self::Alltoallv { send_counts, recv_counts, send_type, recv_type } = self {
                    write_buffer(send_counts, f)?;
                    write_buffer(recv_counts, f)?;
                    send_type.write(f)?;
                    return recv_type.write(f);
                }
                match self {
                    $(Self::$variant $({ $($field),+ })? => { $($($field.write(f)?;)+)? Ok(()) })*
                }
            }
        }
    };
}

collectives! {
    /// A collective operation, as one rank calls it.
    ///
    /// Counts are in elements; a boxed slice has one count per rank of the communicator. The root is a rank of the communicator.
    /// `flops` is the computation of a reduction on this rank \[flop\]. A count times the size of its datatype is at most 2^48 bytes.
    #[derive(Clone, Debug, PartialEq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
    #[expect(missing_docs, reason = "the fields are the arguments of the MPI function that each variant names")]
    pub enum Collective;

    /// `MPI_Barrier`.
    Barrier b"barrier" b"ibarrier";
    /// `MPI_Bcast`.
    Bcast b"bcast" b"ibcast" { count: u64, root: Rank, datatype: Datatype };
    /// `MPI_Reduce`.
    Reduce b"reduce" b"ireduce" { count: u64, flops: f64, root: Rank, datatype: Datatype };
    /// `MPI_Allreduce`.
    Allreduce b"allreduce" b"iallreduce" { count: u64, flops: f64, datatype: Datatype };
    /// `MPI_Alltoall`: the counts are per peer.
    Alltoall b"alltoall" b"ialltoall" {
        send_count: u64, recv_count: u64, send_type: Datatype, recv_type: Datatype
    };
    /// `MPI_Alltoallv`.
    Alltoallv b"alltoallv" b"ialltoallv" {
        send_counts: Box<[u64]>, recv_counts: Box<[u64]>, send_type: Datatype, recv_type: Datatype
    };
    /// `MPI_Gather`: the receive count is per rank.
    Gather b"gather" b"igather" {
        send_count: u64, recv_count: u64, root: Rank, send_type: Datatype, recv_type: Datatype
    };
    /// `MPI_Scatter`: the send count is per rank.
    Scatter b"scatter" b"iscatter" {
        send_count: u64, recv_count: u64, root: Rank, send_type: Datatype, recv_type: Datatype
    };
    /// `MPI_Allgather`: the receive count is per rank.
    Allgather b"allgather" b"iallgather" {
        send_count: u64, recv_count: u64, send_type: Datatype, recv_type: Datatype
    };
    /// `MPI_Gatherv`.
    Gatherv b"gatherv" b"igatherv" {
        send_count: u64, recv_counts: Box<[u64]>, root: Rank, send_type: Datatype, recv_type: Datatype
    };
    /// `MPI_Scatterv`.
    Scatterv b"scatterv" b"iscatterv" {
        send_counts: Box<[u64]>, recv_count: u64, root: Rank, send_type: Datatype, recv_type: Datatype
    };
    /// `MPI_Allgatherv`.
    Allgatherv b"allgatherv" b"iallgatherv" {
        send_count: u64, recv_counts: Box<[u64]>, send_type: Datatype, recv_type: Datatype
    };
    /// `MPI_Reduce_scatter`.
    ReduceScatter b"reducescatter" b"ireducescatter" { recv_counts: Box<[u64]>, flops: f64, datatype: Datatype };
    /// `MPI_Scan`.
    Scan b"scan" b"iscan" { count: u64, flops: f64, datatype: Datatype };
    /// `MPI_Exscan`.
    Exscan b"exscan" b"iexscan" { count: u64, flops: f64, datatype: Datatype };
}

/// Reads the arguments of a collective operation, in the order of the text.
#[expect(missing_docs, reason = "the functions are the arguments of the table")]
pub trait ReadCollective {
    /// An argument is missing or invalid.
    type Error;
    fn count(&mut self) -> Result<u64, Self::Error>;
    fn send_count(&mut self) -> Result<u64, Self::Error>;
    fn recv_count(&mut self) -> Result<u64, Self::Error>;
    fn send_counts(&mut self) -> Result<Box<[u64]>, Self::Error>;
    fn recv_counts(&mut self) -> Result<Box<[u64]>, Self::Error>;
    fn flops(&mut self) -> Result<f64, Self::Error>;
    fn root(&mut self) -> Result<Rank, Self::Error>;
    fn datatype(&mut self) -> Result<Datatype, Self::Error>;
    fn send_type(&mut self) -> Result<Datatype, Self::Error>;
    fn recv_type(&mut self) -> Result<Datatype, Self::Error>;
}

/// An amount, formatted with the fewest digits that parse to the same bits.
pub struct Amount(pub f64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0.0 || (1e-5..1e16).contains(&self.0) {
            write!(f, "{}", self.0)
        } else {
            write!(f, "{:e}", self.0)
        }
    }
}

impl Collective {
    /// Returns the size of the buffers that a rank passes to the operation, without those that only a root has \[B\]; `None` for a
    /// barrier.
    pub fn payload(&self) -> Option<u64> {
        let sum = |counts: &[u64]| counts.iter().fold(0, |sum: u64, &count| sum.saturating_add(count));
        let (count, datatype) = match self {
            Self::Barrier => return None,
            Self::Bcast { count, datatype, .. }
            | Self::Reduce { count, datatype, .. }
            | Self::Allreduce { count, datatype, .. }
            | Self::Scan { count, datatype, .. }
            | Self::Exscan { count, datatype, .. } => (*count, datatype),
            Self::Alltoall { send_count, send_type, .. }
            | Self::Allgather { send_count, send_type, .. }
            | Self::Gather { send_count, send_type, .. }
            | Self::Gatherv { send_count, send_type, .. } => (*send_count, send_type),
            Self::Scatter { recv_count, recv_type, .. } | Self::Scatterv { recv_count, recv_type, .. } => {
                (*recv_count, recv_type)
            }
            Self::Allgatherv { recv_counts, recv_type, .. } => (sum(recv_counts), recv_type),
            Self::ReduceScatter { recv_counts, datatype, .. } => (sum(recv_counts), datatype),
            Self::Alltoallv { send_counts, recv_counts, send_type, recv_type } => {
                let received = sum(recv_counts).saturating_mul(recv_type.size().get());
                return Some(
                    sum(send_counts).saturating_mul(send_type.size().get()).saturating_add(received),
                );
            }
        };
        Some(count.saturating_mul(datatype.size().get()))
    }

    /// Restricts the operation to the ranks `group_ranks` of its communicator; a removed root is replaced by the first rank.
    pub(crate) fn restrict(&mut self, group_ranks: &[u32]) {
        let is_kept = self.root().is_none_or(|root| group_ranks.binary_search(&root.get()).is_ok());
        match self {
            // A rank that becomes the root may have no count of what it receives, or sends, as such.
            Self::Gather { send_count, recv_count, send_type, recv_type, .. } if !is_kept => {
                (*recv_count, *recv_type) = (*send_count, *send_type);
            }
            Self::Scatter { send_count, recv_count, send_type, recv_type, .. } if !is_kept => {
                (*send_count, *send_type) = (*recv_count, *recv_type);
            }
            _ => {}
        }
        self.restrict_arguments(group_ranks);
    }

    /// Returns the name of the action in a trace, such as `bcast`.
    pub fn name(&self) -> &'static str {
        self.kind().names()[0]
    }

    /// Returns the name of the nonblocking action, such as `ibcast`.
    pub fn nonblocking_name(&self) -> &'static str {
        self.kind().names()[1]
    }
}

/// An argument of a collective operation.
trait Argument {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    fn restrict(&mut self, _group_ranks: &[u32]) {}

    fn as_root(&self) -> Option<Rank> {
        None
    }

    fn as_flops(&self) -> Option<f64> {
        None
    }

    fn as_counts(&self) -> Option<&[u64]> {
        None
    }
}

impl Argument for u64 {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {self}")
    }
}

impl Argument for f64 {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {}", Amount(*self))
    }

    fn as_flops(&self) -> Option<f64> {
        Some(*self)
    }
}

impl Argument for Rank {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {self}")
    }

    fn restrict(&mut self, group_ranks: &[u32]) {
        *self = Rank::new(group_ranks.binary_search(&self.get()).unwrap_or(0) as u32);
    }

    fn as_root(&self) -> Option<Rank> {
        Some(*self)
    }
}

impl Argument for Datatype {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.id())
    }
}

impl Argument for Box<[u64]> {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|count| count.write(f))
    }

    fn restrict(&mut self, group_ranks: &[u32]) {
        *self = group_ranks.iter().map(|group_rank| self[*group_rank as usize]).collect();
    }

    fn as_counts(&self) -> Option<&[u64]> {
        Some(self)
    }
}

/// The largest count.
const MAX_COUNT: u64 = 1 << 48;

/// Writes the size of a buffer, in elements, and the counts in it.
fn write_buffer(counts: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
    size.min(MAX_COUNT).write(f)?;
    counts.iter().try_for_each(|count| count.write(f))
}
