//! Traces of Dimemas, the simulator beside Paraver: text with the computations and calls of each task, without instants.
//!
//! A rank is the first thread of a task. `docs/traces.md` says what is kept.
//!
//! # Format
//! ```text
//! #DIMEMAS:"name":0:tasks(threads,...),communicators
//! d:1:communicator:size:task:...                                a communicator
//! 1:task:thread:seconds                                         computation
//! 2:task:thread:to:thread:bytes:tag:communicator:mode           send; bit 0 of the mode: synchronous, bit 1: immediate
//! 3:task:thread:from:thread:bytes:tag:communicator:kind         receive; 0: MPI_Recv, 1: MPI_Irecv, 2: the wait for one
//! 10:task:thread:operation:communicator:root:thread:sent:received:kind   collective; 0: nonblocking, 1: blocking, 2: the wait for one,
//!                                                                        3: blocking, with the task of the root
//! 20:task:thread:type:value                                     event: begin of a call of MPI, or its end (value 0)
//! ```
//! Tasks count from 0; -1 is any task or tag. Most tracers write the task of the peer's thread, older ones leave it out. The root is a
//! flag, but the task of the root for `MPI_Reduce`, unless its kind is 1. `0` and `11` are nothing and the computation of a GPU; offsets
//! of threads (`s`) at the end of the file are not needed.

mod program;
mod record;
pub(in crate::paraver) mod writer;

use std::path::{Path, PathBuf};

use pdes_core::Rank;
use trace_mmap::{CommId, Location, Op, RankBuilders, TraceError, TraceSource, Warning, WorkMetric};

use self::program::Task;
use self::record::{CollectiveKindOfCall, Content, Line, Record};
pub(crate) use self::writer::write;
use super::collectives::{RoundCall, Rounds};
use super::labels::Labels;
use super::recording::Communicators;
use super::{LineError, ParaverError};
use crate::error::InputError;
use crate::files::fingerprint;
use crate::text::Lines;

/// First bytes of a trace.
pub(crate) const MAGIC: &[u8] = b"#DIMEMAS:";

/// Flops of a second of computation.
const SPEED: f64 = 1e9;

/// Number of a communicator that needs no definition: the world.
const UNDEFINED: u64 = 0;

/// Type under which [`labels`] has the operations of records of collective operations.
const OPERATIONS: u64 = 10;

/// Types of the events of calls: point-to-point, collective, other.
pub(in crate::paraver) const POINT_TO_POINT: u64 = 50_000_001;
pub(in crate::paraver) const COLLECTIVE: u64 = 50_000_002;
pub(in crate::paraver) const OTHER: u64 = 50_000_003;

/// Functions of MPI without `MPI_`, by the values of events from 1 on.
pub(in crate::paraver) const FUNCTIONS: &str = "\
    Send Recv Isend Irecv Wait Waitall Bcast Barrier Reduce Allreduce Alltoall Alltoallv Gather Gatherv Scatter Scatterv Allgather \
    Allgatherv Comm_rank Comm_size Comm_create Comm_dup Comm_split Comm_group Comm_free Comm_remote_group Comm_remote_size \
    Comm_test_inter Comm_compare Scan Init Finalize Bsend Ssend Rsend Ibsend Issend Irsend Test Cancel Sendrecv Sendrecv_replace \
    Cart_create Cart_shift Cart_coords Cart_get Cart_map Cart_rank Cart_sub Cartdim_get Dims_create Graph_get Graph_map Graph_create \
    Graph_neighbors Graphdims_get Graph_neighbors_count Topo_test Waitany Waitsome Probe Iprobe Win_create Win_free Put Get Accumulate \
    Win_fence Win_start Win_complete Win_post Win_wait Win_test Win_lock Win_unlock Pack Unpack Op_create Op_free Reduce_scatter \
    Attr_delete Attr_get Attr_put Group_difference Group_excl Group_free Group_incl Group_intersection Group_rank Group_range_excl \
    Group_range_incl Group_size Group_translate_ranks Group_union Group_compare Intercomm_create Intercomm_merge Keyval_free \
    Keyval_create Abort Error_class Errhandler_create Errhandler_free Errhandler_get Error_string Errhandler_set Get_processor_name \
    Initialized Wtick Wtime Address Bsend_init Buffer_attach Buffer_detach Request_free Recv_init Send_init Get_count Get_elements \
    Pack_size Rsend_init Ssend_init Start Startall Testall Testany Test_cancelled Testsome Type_commit Type_contiguous Type_extent \
    Type_free Type_hindexed Type_hvector Type_indexed Type_lb Type_size Type_struct Type_ub Type_vector File_open File_close File_read \
    File_read_all File_write File_write_all File_read_at File_read_at_all File_write_at File_write_at_all Comm_spawn \
    Comm_spawn_multiple Request_get_status Ireduce Iallreduce Ibarrier Ibcast Ialltoall Ialltoallv Iallgather Iallgatherv Igather \
    Igatherv Iscatter Iscatterv Ireduce_scatter Iscan Reduce_scatter_block Ireduce_scatter_block Alltoallw Ialltoallw Get_accumulate \
    Dist_graph_create Neighbor_allgather Ineighbor_allgather Neighbor_allgatherv Ineighbor_allgatherv Neighbor_alltoall \
    Ineighbor_alltoall Neighbor_alltoallv Ineighbor_alltoallv Neighbor_alltoallw Ineighbor_alltoallw Fetch_and_op Compare_and_swap \
    Win_flush Win_flush_all Win_flush_local Win_flush_local_all Mprobe Improbe Mrecv Imrecv Init_thread";

/// Collective operations by their numbers in records; the nonblocking ones follow in the same order.
const COLLECTIVES: [&str; 16] = [
    "Barrier",
    "Bcast",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Alltoallv",
    "Reduce",
    "Allreduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Scan",
    "Alltoallw",
];

/// Returns the names of calls and of collective operations.
fn labels() -> Labels {
    let mut labels = Labels::default();
    for event in super::labels::MPI_EVENTS {
        for (value, name) in (1..).zip(FUNCTIONS.split_whitespace()) {
            labels.insert(event, value, format!("MPI_{name}"));
        }
    }
    for (number, name) in (0..).zip(COLLECTIVES) {
        labels.insert(OPERATIONS, number, format!("MPI_{name}"));
    }
    labels
}

/// Opens a trace, of which nothing is read yet.
pub(crate) fn open(path: &Path) -> Box<dyn TraceSource> {
    Box::new(Dimemas { path: path.to_path_buf() })
}

/// A trace.
#[derive(Debug)]
struct Dimemas {
    path: PathBuf,
}

/// What all ranks share.
struct Shared {
    labels: Labels,
    communicators: Communicators,
    /// Whether messages or collective operations are on each communicator.
    are_used: Vec<bool>,
    rounds: Rounds,
}

impl Shared {
    /// Finds the identifier of a communicator of messages.
    fn communicator(&self, number: u64) -> Result<CommId, ParaverError> {
        match self.communicators.find(number) {
            Some(index) => Ok(self.communicators.list[index].id),
            None if number == UNDEFINED => Ok(CommId::WORLD),
            None => Err(ParaverError::UnknownCommunicator { name: "a message".to_owned(), id: number }),
        }
    }
}

impl Dimemas {
    /// Opens the file behind its header, and returns the number of tasks.
    fn lines(&self) -> Result<(Lines<'_>, u32), TraceError> {
        let mut lines = Lines::open(&self.path)?;
        let tasks = match lines.next_or_comment()? {
            None => return Err(InputError::Empty { file: self.path.clone() }.into()),
            Some(line) => record::tasks(line.text).map_err(|kind| kind.at(line.number)),
        };
        Ok((lines, tasks.map_err(|error| error.locate(&self.path))?))
    }

    /// Reads all lines.
    fn each_line(&self, mut take: impl FnMut(Line, u64) -> Result<(), LineError>) -> Result<(), TraceError> {
        let (mut lines, tasks) = self.lines()?;
        while let Some(line) = lines.next()? {
            let number = line.number;
            let read = record::read(line.text, tasks).map_err(|kind| kind.at(number));
            read.and_then(|line| take(line, number)).map_err(|error| error.locate(&self.path))?;
        }
        Ok(())
    }

    /// Reads communicators, and the calls of collective operations of all ranks.
    fn shared(&self) -> Result<Shared, TraceError> {
        let (_, tasks) = self.lines()?;
        let labels = labels();
        let mut communicators = Communicators::default();
        let mut calls = Vec::new();
        self.each_line(|line, number| match line {
            Line::Communicator { id, members } => {
                let has_world = communicators.list.iter().any(|known| known.id == CommId::WORLD);
                communicators.add(id, members, tasks).map_err(|kind| kind.at(number))?;
                let index = communicators.list.len();
                if let Some(new) = communicators.list.last_mut()
                    && (has_world || new.id != CommId::WORLD)
                {
                    // Messages on a duplicate of the world match each other only.
                    new.id = CommId::new(index as u32);
                }
                Ok(())
            }
            Line::Record(Record { rank, content, .. }) => {
                if let Content::Collective(collective) = content
                    && collective.kind != CollectiveKindOfCall::Wait
                {
                    let (label, fields) = collective.label(&labels, rank).map_err(|kind| kind.at(number))?;
                    calls.push((rank, RoundCall { label, fields, line: number, is_cut: false }));
                }
                Ok(())
            }
            Line::Other => Ok(()),
        })?;
        let mut are_used = vec![false; communicators.list.len()];
        let mut rounds = Rounds::without_calls(&communicators);
        let error = |error: LineError| error.locate(&self.path);
        for (rank, call) in calls {
            rounds.add(&communicators, &labels, rank, call).map_err(error)?;
        }
        rounds.check(&communicators, &labels, |_| false).map_err(error)?;
        self.each_line(|line, _| {
            let number = match line {
                Line::Record(Record { content: Content::Message { message, .. }, .. }) => {
                    message.communicator
                }
                Line::Record(Record { content: Content::Collective(collective), .. }) => {
                    collective.communicator
                }
                _ => return Ok(()),
            };
            if let Some(index) = communicators.find(number) {
                are_used[index] = true;
            }
            Ok(())
        })?;
        Ok(Shared { labels, communicators, are_used, rounds })
    }

    /// Reads the programs of all ranks.
    fn programs(
        &self,
        warn: &mut dyn FnMut(Warning),
        take: &mut dyn FnMut(Rank, &Op, u64) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        let shared = self.shared()?;
        let (mut lines, tasks) = self.lines()?;
        let mut programs: Vec<Task> = (0..tasks).map(|rank| Task::new(Rank::new(rank))).collect();
        let mut ops = Vec::new();
        while let Some(line) = lines.next()? {
            let number = line.number;
            let read = record::read(line.text, tasks).map_err(|kind| kind.at(number));
            let Line::Record(record) = read.map_err(|error| error.locate(&self.path))? else { continue };
            if let Some(what) = record.left_out() {
                let first = Location { file: self.path.clone(), line: number };
                warn(Warning::LeftOut { what: what.to_owned(), records: 1, first });
                continue;
            }
            let program = &mut programs[record.rank.index()];
            program
                .record(&shared, record.content, number, &mut ops)
                .map_err(|error| error.locate(&self.path))?;
            ops.drain(..).try_for_each(|(op, line)| take(record.rank, &op, line))?;
        }
        for mut program in programs {
            program.finish(&shared, &mut ops).map_err(|error| error.locate(&self.path))?;
            ops.drain(..).try_for_each(|(op, line)| take(program.rank(), &op, line))?;
        }
        Ok(())
    }
}

impl TraceSource for Dimemas {
    fn path(&self) -> &Path {
        &self.path
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        Ok(self.lines()?.1.into())
    }

    fn is_interleaved(&self) -> bool {
        true
    }

    fn work_metric(&self) -> Option<WorkMetric> {
        Some(WorkMetric::Time { rate: SPEED })
    }

    fn read(&self, ranks: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        let (asked, found) = (ranks.ranks(), self.lines()?.1);
        if asked < found {
            return Err(TraceError::TooFewRanks { path: self.path.clone(), asked, found });
        }
        let mut warnings = Vec::new();
        self.programs(&mut |warning| warnings.push(warning), &mut |rank, op, line| {
            let Some(builder) = ranks.get(rank.get().into()) else { return Ok(()) };
            let action = builder.resolve(op).map_err(|kind| {
                let location = Location { file: self.path.clone(), line };
                TraceError::Action { location, kind: Box::new(kind) }
            })?;
            builder.push(action, None)
        })?;
        warnings.into_iter().for_each(|warning| ranks.warn(warning));
        Ok(())
    }

    fn locate(&self, rank: Rank, index: u64) -> Result<Location, TraceError> {
        let (mut actions, mut found) = (0, None);
        self.programs(&mut |_| {}, &mut |of, _, line| {
            if of == rank {
                if actions == index {
                    found = Some(line);
                }
                actions += 1;
            }
            Ok(())
        })?;
        let line = found.ok_or(TraceError::NoSuchAction { rank, action: index })?;
        Ok(Location { file: self.path.clone(), line })
    }

    fn fingerprint(&self) -> Result<u64, TraceError> {
        fingerprint(&[&self.path])
    }
}
