//! Workloads of SimAI: text with the computations and collective operations of each layer of a transformer in a training iteration.
//!
//! All ranks have the same program, in groups of their own. `docs/training.md` says what is kept.
//!
//! # Format
//! ```text
//! HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 64 checkpoints: 0 checkpoint_initiates: 0
//! <number of layers>
//! <layer> <-1> <forward> <input gradient> <weight gradient> <update>
//! ```
//! Each of the three phases is a time in nanoseconds, a collective operation with its group, and the bytes of the whole vector.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{
    CallOp, Collective, CommId, CommunicatorCall, Datatype, Group, Location, MAX_RANKS, Op, RankBuilders,
    RankRange, RequestName, TraceError, TraceSource, Warning, WorkMetric,
};

use crate::files::fingerprint;
use crate::text::Lines;

/// Start of a workload.
pub(crate) const MAGIC: &[u8] = b"HYBRID_TRANSFORMER";

/// Flops of a second of computation.
const SPEED: f64 = 1e9;

/// Longest computation \[ns\].
const MAX_NANOS: u64 = 1_000_000_000_000_000;

/// Largest vector of a collective operation \[B\].
const MAX_BYTES: u64 = 1 << 48;

/// An error in a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimaiError {
    /// A value is not what it should be.
    #[error("the {field} is \"{found}\", expected {expected}")]
    Value {
        /// The value.
        field: &'static str,
        /// The text found.
        found: String,
        /// Description of the expected text.
        expected: &'static str,
    },
    /// A value is missing.
    #[error("found no {field}")]
    Missing {
        /// The value.
        field: &'static str,
    },
    /// The groups do not divide the ranks.
    #[error(
        "{ranks} GPUs in tensor groups of {tensor}, {pipeline} pipeline stages and expert groups of {expert}: tensor times pipeline must \
         divide the GPUs, and the expert groups the rest"
    )]
    Groups {
        /// Number of ranks.
        ranks: u64,
        /// Size of the tensor groups.
        tensor: u64,
        /// Number of stages.
        pipeline: u64,
        /// Size of the expert groups.
        expert: u64,
    },
    /// There are fewer layers than the workload says.
    #[error("the workload ends after {found} layers, expected {expected}")]
    Layers {
        /// Number of layers.
        found: usize,
        /// Number of layers in the second line.
        expected: u64,
    },
}

/// A workload.
#[derive(Debug)]
struct Workload {
    path: PathBuf,
    mesh: Mesh,
    layers: Vec<Layer>,
    /// Layers whose inputs are kept, and layers before whose backward pass the forward pass since then is repeated.
    checkpoints: Vec<usize>,
    repeats: Vec<usize>,
    has_pipeline: bool,
}

/// Sizes of the groups of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mesh {
    ranks: u32,
    tensor: u32,
    data: u32,
    expert: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum GroupKind {
    Tensor,
    Data,
    Expert,
    /// The data group of an expert.
    ExpertData,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Layer {
    name: String,
    /// The first line with such a layer.
    line: u64,
    forward: Phase,
    input_gradient: Phase,
    weight_gradient: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Phase {
    nanos: u64,
    exchange: Option<Exchange>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Exchange {
    operation: Operation,
    group: GroupKind,
    /// Size of the whole vector \[B\].
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    Allreduce,
    Allgather,
    ReduceScatter,
    Alltoall,
}

impl GroupKind {
    const ALL: [Self; 4] = [Self::Tensor, Self::Data, Self::Expert, Self::ExpertData];
}

impl Mesh {
    /// Returns the group of a rank.
    fn group(self, rank: u32, kind: GroupKind) -> RankRange {
        let Self { ranks, tensor, data, expert } = self;
        let (place, part) = (rank / tensor, rank % tensor);
        let (first, stride, len) = match kind {
            GroupKind::Tensor => (place * tensor, 1, tensor),
            GroupKind::Data => (rank % (ranks / data), ranks / data, data),
            GroupKind::Expert => (place / expert * expert * tensor + part, tensor, expert),
            GroupKind::ExpertData => {
                let first = place / data * data + place % data % expert;
                (first * tensor + part, expert * tensor, data / expert)
            }
        };
        RankRange { first: Rank::new(first), stride: stride as i32, len }
    }
}

/// Opens a workload, which is read as a whole.
pub(crate) fn open(path: &Path) -> Result<Box<dyn TraceSource>, TraceError> {
    let mut lines = Lines::open(path)?;
    let mut layers: Vec<Layer> = Vec::new();
    let (mut header, mut expected, mut first_lines) = (None, None, FxHashMap::default());
    let mut number = 0;
    while let Some(line) = lines.next()? {
        number = line.number;
        let text = String::from_utf8_lossy(line.text);
        let words: Vec<&str> = text.split_whitespace().collect();
        // Other white space than spaces and tabs.
        if words.is_empty() {
            continue;
        }
        let read = match (&header, expected) {
            (None, _) => read_header(&words).map(|found| header = Some(found)),
            (Some(_), None) => {
                read_number("number of layers", words[0], u32::MAX.into()).map(|found| expected = Some(found))
            }
            (Some(_), Some(expected)) if layers.len() as u64 == expected => Ok(()),
            (Some(_), Some(_)) => read_layer(&words).map(|mut layer| {
                layer.line = *first_lines.entry(layer.clone()).or_insert(number);
                layers.push(layer);
            }),
        };
        read.map_err(|kind| locate(path, number, kind))?;
    }
    let missing = |field| locate(path, number, SimaiError::Missing { field });
    let Header { mesh, checkpoints, repeats, has_pipeline } = header.ok_or_else(|| missing("header"))?;
    let expected = expected.ok_or_else(|| missing("number of layers"))?;
    if layers.len() as u64 != expected {
        return Err(locate(path, number, SimaiError::Layers { found: layers.len(), expected }));
    }
    let path = path.to_path_buf();
    Ok(Box::new(Workload { path, mesh, layers, checkpoints, repeats, has_pipeline }))
}

fn locate(path: &Path, line: u64, kind: SimaiError) -> TraceError {
    TraceError::Action { location: Location { file: path.to_path_buf(), line }, kind: Box::new(kind) }
}

struct Header {
    mesh: Mesh,
    checkpoints: Vec<usize>,
    repeats: Vec<usize>,
    has_pipeline: bool,
}

fn read_header(words: &[&str]) -> Result<Header, SimaiError> {
    let values = |key: &str| {
        let place = words.iter().position(|word| word.trim_end_matches(':') == key);
        place.map_or(&[][..], |place| &words[place + 1..])
    };
    let number = |field, key: &str, default: u64| match values(key).first() {
        Some(word) => read_number(field, word, MAX_RANKS.into()),
        None => Ok(default),
    };
    let list = |field, key: &str| {
        let values = values(key);
        let Some((count, rest)) = values.split_first() else { return Ok(Vec::new()) };
        let count = read_number(field, count, u32::MAX.into())? as usize;
        let listed = rest.get(..count).ok_or(SimaiError::Missing { field })?;
        let index = |word: &&str| read_number(field, word, u32::MAX.into()).map(|index| index as usize);
        listed.iter().map(index).collect()
    };
    let ranks = number("number of GPUs", "all_gpus", 0)?;
    let tensor = number("size of the tensor groups", "model_parallel_NPU_group", 1)?;
    let expert = number("size of the expert groups", "ep", 1)?;
    let pipeline = number("number of pipeline stages", "pp", 1)?;
    let data = (tensor * pipeline != 0 && ranks.is_multiple_of(tensor * pipeline))
        .then(|| ranks / (tensor * pipeline))
        .filter(|data| *data > 0 && expert > 0 && data.is_multiple_of(expert));
    let Some(data) = data else {
        return Err(SimaiError::Groups { ranks, tensor, pipeline, expert });
    };
    Ok(Header {
        mesh: Mesh { ranks: ranks as u32, tensor: tensor as u32, data: data as u32, expert: expert as u32 },
        checkpoints: list("checkpoint", "checkpoints")?,
        repeats: list("layer that repeats the forward pass", "checkpoint_initiates")?,
        has_pipeline: pipeline > 1,
    })
}

fn read_number(field: &'static str, found: &str, largest: u64) -> Result<u64, SimaiError> {
    let number = found.parse().ok().filter(|number| *number <= largest);
    number.ok_or_else(|| SimaiError::Value {
        field,
        found: found.chars().take(80).collect(),
        expected: "a whole number in range",
    })
}

fn read_layer(words: &[&str]) -> Result<Layer, SimaiError> {
    let phase = |first: usize, time, operation, is_weight| {
        let word = |place: usize, field| words.get(place).ok_or(SimaiError::Missing { field });
        let nanos = read_number(time, word(first, time)?, MAX_NANOS)?;
        let name = word(first + 1, operation)?;
        let bytes = read_number("size", word(first + 2, "size")?, MAX_BYTES)?;
        Ok(Phase { nanos, exchange: read_exchange(operation, name, bytes, is_weight)? })
    };
    Ok(Layer {
        name: words[0].to_owned(),
        line: 0,
        forward: phase(2, "forward time", "forward operation", false)?,
        input_gradient: phase(5, "time of the input gradient", "operation of the input gradient", false)?,
        weight_gradient: phase(8, "time of the weight gradient", "operation of the weight gradient", true)?,
    })
}

/// Reads the name of an operation and its group, which without a name is that of data for gradients of weights, else that of tensors.
fn read_exchange(
    field: &'static str,
    name: &str,
    bytes: u64,
    is_weight: bool,
) -> Result<Option<Exchange>, SimaiError> {
    const OPERATIONS: [(&str, Operation); 4] = [
        ("ALLREDUCE", Operation::Allreduce),
        ("ALLGATHER", Operation::Allgather),
        ("REDUCESCATTER", Operation::ReduceScatter),
        ("ALLTOALL", Operation::Alltoall),
    ];
    if name == "NONE" {
        return Ok(None);
    }
    let found = OPERATIONS.iter().find_map(|(start, operation)| {
        let group = match name.strip_prefix(start)? {
            "" if is_weight => GroupKind::Data,
            "" => GroupKind::Tensor,
            "_EP" => GroupKind::Expert,
            "_DP_EP" => GroupKind::ExpertData,
            _ => return None,
        };
        Some(Exchange { operation: *operation, group, bytes })
    });
    let unknown = || SimaiError::Value {
        field,
        found: name.chars().take(80).collect(),
        expected: "NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, with _EP, _DP_EP or nothing behind it",
    };
    // An operation without data does nothing.
    found.map(|exchange| Some(exchange).filter(|exchange| exchange.bytes > 0)).ok_or_else(unknown)
}

/// Writer of the program of a rank.
struct Program<'w> {
    workload: &'w Workload,
    rank: u32,
    take: &'w mut dyn FnMut(&Op, u64) -> Result<(), TraceError>,
    /// Number of operations that are not complete.
    pending: u32,
}

impl Program<'_> {
    fn write(&mut self) -> Result<(), TraceError> {
        let layers = &self.workload.layers;
        (self.take)(&Op::Init, 1)?;
        for kind in GroupKind::ALL {
            let phases =
                layers.iter().flat_map(|layer| [layer.forward, layer.input_gradient, layer.weight_gradient]);
            if phases.filter_map(|phase| phase.exchange).any(|exchange| exchange.group == kind)
                && let Some((id, group)) = self.communicator(kind)
            {
                let new =
                    Some((id, Arc::new(Group::from_ranges(&[group]).expect("a range has no rank twice"))));
                let (kind, parent) = (CommunicatorCall::CreateGroup, CommId::WORLD);
                (self.take)(&Op::Call(CallOp::NewCommunicator { kind, parent, new }), 1)?;
            }
        }
        layers.iter().try_for_each(|layer| self.phase(layer, layer.forward, false))?;
        for (index, layer) in layers.iter().enumerate().rev() {
            if self.workload.repeats.contains(&index) {
                let kept = self.workload.checkpoints.iter().filter(|kept| **kept < index).max();
                let repeated = &layers[kept.copied().unwrap_or(0)..index];
                repeated.iter().try_for_each(|layer| self.phase(layer, layer.forward, false))?;
            }
            self.phase(layer, layer.input_gradient, false)?;
            self.phase(layer, layer.weight_gradient, true)?;
        }
        if self.pending > 0 {
            (self.take)(&Op::WaitAll, layers.last().map_or(1, |layer| layer.line))?;
        }
        (self.take)(&Op::Finalize, 1)
    }

    /// Returns the communicator of a group of several ranks.
    fn communicator(&self, kind: GroupKind) -> Option<(CommId, RankRange)> {
        let Mesh { ranks, .. } = self.workload.mesh;
        let group = self.workload.mesh.group(self.rank, kind);
        let id = CommId::new(1 + kind as u32 * ranks + group.first.get());
        (group.len > 1).then_some((id, group))
    }

    /// Writes a phase of a layer, whose operation is nonblocking if what follows runs beside it.
    fn phase(&mut self, layer: &Layer, phase: Phase, is_nonblocking: bool) -> Result<(), TraceError> {
        let Layer { name, line, .. } = layer;
        if phase.nanos > 0 {
            (self.take)(&Op::Compute { flops: phase.nanos as f64 }, *line)?;
        }
        let exchange =
            phase.exchange.and_then(|exchange| Some((exchange, self.communicator(exchange.group)?)));
        let Some((Exchange { operation, bytes, .. }, (communicator, group))) = exchange else {
            return Ok(());
        };
        let (datatype, flops) = (Datatype::BYTE, 0.0);
        let (send_type, recv_type) = (datatype, datatype);
        let part = bytes.div_ceil(group.len.into());
        let operation = match operation {
            Operation::Allreduce => Collective::Allreduce { count: bytes, flops, datatype },
            Operation::Allgather => {
                Collective::Allgather { send_count: part, recv_count: part, send_type, recv_type }
            }
            Operation::Alltoall => {
                Collective::Alltoall { send_count: part, recv_count: part, send_type, recv_type }
            }
            Operation::ReduceScatter => {
                let recv_counts = vec![part; group.len as usize].into();
                Collective::ReduceScatter { recv_counts, flops, datatype }
            }
        };
        let request = is_nonblocking.then(|| RequestName::new(self.pending));
        self.pending += u32::from(is_nonblocking);
        let location = Op::Location { file: name.clone(), line: u32::try_from(*line).unwrap_or(u32::MAX) };
        (self.take)(&location, *line)?;
        (self.take)(&Op::Call(CallOp::Collective { operation, communicator, request }), *line)
    }
}

impl Workload {
    fn program(
        &self,
        rank: u32,
        take: &mut dyn FnMut(&Op, u64) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        Program { workload: self, rank, take, pending: 0 }.write()
    }
}

impl TraceSource for Workload {
    fn path(&self) -> &Path {
        &self.path
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        Ok(self.mesh.ranks.into())
    }

    fn work_metric(&self) -> Option<WorkMetric> {
        Some(WorkMetric::Time { rate: SPEED })
    }

    fn read(&self, ranks: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        let (asked, found) = (ranks.ranks(), self.mesh.ranks);
        if asked < found {
            return Err(TraceError::TooFewRanks { path: self.path.clone(), asked, found });
        }
        let wanted = ranks.wanted();
        if self.has_pipeline && wanted.start == 0 {
            let first = Location { file: self.path.clone(), line: 1 };
            let what =
                "the bubble of the pipeline and the messages between its stages are not in the workload";
            ranks.warn(Warning::LeftOut { what: what.to_owned(), records: 1, first });
        }
        for rank in wanted.start..wanted.end.min(found) {
            let builder = ranks.get(rank.into()).expect("the rank is wanted");
            self.program(rank, &mut |op, line| {
                let action = builder.resolve(op).map_err(|kind| {
                    let location = Location { file: self.path.clone(), line };
                    TraceError::Action { location, kind: Box::new(kind) }
                })?;
                builder.push(action, None)
            })?;
        }
        Ok(())
    }

    fn locate(&self, rank: Rank, index: u64) -> Result<Location, TraceError> {
        let (mut actions, mut found) = (0, None);
        if rank.get() < self.mesh.ranks {
            self.program(rank.get(), &mut |_, line| {
                if actions == index {
                    found = Some(line);
                }
                actions += 1;
                Ok(())
            })?;
        }
        let line = found.ok_or(TraceError::NoSuchAction { rank, action: index })?;
        Ok(Location { file: self.path.clone(), line })
    }

    fn fingerprint(&self) -> Result<u64, TraceError> {
        fingerprint(&[&self.path])
    }
}
