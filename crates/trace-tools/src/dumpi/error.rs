//! Errors of DUMPI traces.

/// A file of a DUMPI trace is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpiError {
    /// The file does not end with its index.
    #[error(
        "its index is not at the end, where the offsets of its parts follow \\xff\\xaa\\xddDUMPI: the file is cut short, or still written"
    )]
    NoIndex,
    /// A part is outside of the file, or does not begin as it should.
    #[error("the {part} is at byte {offset}, where there is none")]
    Part {
        /// The part.
        part: &'static str,
        /// Its offset by the index \[B\].
        offset: u64,
    },
    /// The records end too early.
    #[error("byte {at}: the records end before the {what}")]
    Truncated {
        /// Position \[B\].
        at: u64,
        /// What is expected there.
        what: &'static str,
    },
    /// A record has an unknown kind.
    #[error(
        "byte {at}: a record is of function {found}, expected 0 to 292 other than MPI_Pcontrol, or 293 at the end"
    )]
    Function {
        /// Position \[B\].
        at: u64,
        /// The number found.
        found: u16,
    },
    /// A number of elements is negative, or larger than the rest of the records.
    #[error("byte {at}: {name} has an array of {found} elements, of which there are none in the file")]
    Length {
        /// Position \[B\].
        at: u64,
        /// The function.
        name: &'static str,
        /// The number found.
        found: i32,
    },
    /// A record has no time.
    #[error("byte {at}: {name} has no time; record with timestamps, which dumpi.conf switches")]
    NoTime {
        /// Position \[B\].
        at: u64,
        /// The function.
        name: &'static str,
    },
    /// A count of elements is negative.
    #[error("{name} has {found} elements")]
    Count {
        /// The function.
        name: &'static str,
        /// The number found.
        found: i64,
    },
    /// The size of a datatype is in no table.
    #[error(
        "{name} has elements of datatype {datatype}, whose size neither the file nor a recorded call tells"
    )]
    Datatype {
        /// The function.
        name: &'static str,
        /// The datatype.
        datatype: i64,
    },
    /// A vector does not have a count for each rank.
    #[error("{name} has {found} counts on a communicator of {ranks} ranks")]
    Counts {
        /// The function.
        name: &'static str,
        /// Number of counts.
        found: usize,
        /// Number of ranks.
        ranks: u32,
    },
}
