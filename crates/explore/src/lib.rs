//! All orders of a program: MPI leaves open which message a receive from any source takes, which request `MPI_Waitany` completes, and
//! whether a test or a probe succeeds. This crate runs a program once for each way in which that may go.
//!
//! - A [`Schedule`] says how calls end that may end in several ways. A program [under a schedule](Scheduled) makes the calls that leave
//!   nothing open: a receive from any source becomes one from the source that is prescribed. So a schedule holds on any model of the
//!   network, and for any number of threads.
//! - Calls of which a schedule says nothing end as they do without contention, where a choice is made when no rank can go on otherwise. All
//!   messages are there then that can be sent without it, so that the order of everything else makes no difference: the partial-order
//!   reduction of ISP (Vakkalanka, *Efficient Dynamic Verification Algorithms for MPI Applications*, 2010). The run
//!   [notes](Run) the choices, and the other ends that each had.
//! - The [search](search()) runs the program again for each other end, depth first. A message that is sent after a choice, but not because of it
//!   (Lamport's order, as in dynamic partial-order reduction: Flanagan and Godefroid 2005), is another end as well: the choice waits for
//!   it. Where that cannot come about, the run ends in a deadlock of its own, and is not counted.
#![forbid(unsafe_code)]

mod program;
mod recorded;
mod run;
mod schedule;
mod search;

pub use program::Scheduled;
pub use recorded::Recorded;
pub use run::Run;
pub use schedule::{ChoicePoint, End, Schedule, ScheduleError};
pub use search::{Ending, Failure, FailureKind, Findings, Found, Timed, search};
