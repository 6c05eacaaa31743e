//! Reading of the files of a trace.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use prost::Message as _;
use rustc_hash::FxHashMap;

use super::message::{AttributeMessage, JsonFile, JsonNode, NodeMessage};
use super::{ChakraError, CollectiveKind, ExecutionTrace, Node, NodeKind};

/// Number of bytes of a JSON file in which its key has to be.
const HEAD: u64 = 4096;

/// The parts of a name, `PREFIX.RANK.et`.
struct Name {
    prefix: String,
    rank: u32,
    end: String,
}

impl Name {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let (rest, end) = name.rsplit_once('.')?;
        let (prefix, rank) = rest.rsplit_once('.')?;
        let (prefix, end) = (prefix.to_owned(), end.to_owned());
        Some(Self { prefix, rank: rank.parse().ok()?, end })
    }
}

pub(super) fn knows(path: &Path) -> bool {
    let has_key = || {
        let mut head = Vec::new();
        let read = fs::File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
        read.is_ok() && String::from_utf8_lossy(&head).contains("\"workload_graph\"")
    };
    match path.extension().and_then(|end| end.to_str()) {
        Some("et") => true,
        Some("json") => has_key(),
        _ => false,
    }
}

pub(super) fn read(path: &Path) -> Result<ExecutionTrace, ChakraError> {
    let named = Name::of(path).ok_or_else(|| ChakraError::Name { path: path.to_path_buf() })?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let error = |source| ChakraError::Io { path: parent.to_path_buf(), source };
    let mut files: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir(parent).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let name = Name::of(&path).filter(|name| name.prefix == named.prefix && name.end == named.end);
        files.extend(name.map(|name| (name.rank, path)));
    }
    files.sort();
    for (expected, (rank, _)) in (0..).zip(&files) {
        if expected != *rank {
            let path = path.to_path_buf();
            return Err(ChakraError::Missing { path, files: files.len(), rank: expected });
        }
    }
    let ranks = files.iter().map(|(rank, file)| read_rank(file, *rank, &named.end));
    Ok(ExecutionTrace { ranks: ranks.collect::<Result<_, _>>()? })
}

/// Reads the graph of a rank.
fn read_rank(path: &Path, rank: u32, end: &str) -> Result<Vec<Node>, ChakraError> {
    let bytes = fs::read(path).map_err(|source| ChakraError::Io { path: path.to_path_buf(), source })?;
    let mut messages = if end == "json" { decode_json(path, &bytes)? } else { decode(path, &bytes)? };
    messages.sort_by_key(|message| message.id);
    let error = |id, what| ChakraError::Node { path: path.to_path_buf(), id, what };
    if let Some(pair) = messages.windows(2).find(|pair| pair[0].id == pair[1].id) {
        return Err(error(pair[0].id, "is there twice".to_owned()));
    }
    let indices: FxHashMap<u64, u32> = messages.iter().map(|message| message.id).zip(0..).collect();
    let nodes: Vec<Node> = messages
        .into_iter()
        .map(|message| {
            let id = message.id;
            node(message, rank, &indices).map_err(|what| error(id, what))
        })
        .collect::<Result<_, _>>()?;
    match find_cycle(&nodes) {
        Some(index) => {
            Err(error(nodes[index].id, "depends on itself by data dependencies of others".to_owned()))
        }
        None => Ok(nodes),
    }
}

/// Decodes messages, each after its length; the first has metadata of the whole.
fn decode(path: &Path, bytes: &[u8]) -> Result<Vec<NodeMessage>, ChakraError> {
    let mut rest = bytes;
    let mut messages = Vec::new();
    let mut is_first = true;
    while !rest.is_empty() {
        let offset = bytes.len() - rest.len();
        let error = |source| ChakraError::Protobuf { path: path.to_path_buf(), offset, source };
        if std::mem::take(&mut is_first) {
            <()>::decode_length_delimited(&mut rest).map_err(error)?;
        } else {
            messages.push(NodeMessage::decode_length_delimited(&mut rest).map_err(error)?);
        }
    }
    Ok(messages)
}

fn decode_json(path: &Path, bytes: &[u8]) -> Result<Vec<NodeMessage>, ChakraError> {
    let file: JsonFile = serde_json::from_slice(bytes)
        .map_err(|source| ChakraError::Json { path: path.to_path_buf(), source })?;
    let message = |node: JsonNode| {
        let JsonNode { id, name, kind, ctrl_deps, data_deps, start, runtime, attributes } = node;
        let attributes = attributes.into_iter().map(|(name, value)| AttributeMessage {
            name,
            int64: value.as_i64(),
            bool: value.as_bool(),
            string: value.as_str().map(str::to_owned),
            ..AttributeMessage::default()
        });
        let attributes = attributes.collect();
        let (start_micros, duration_micros) = (start, runtime);
        NodeMessage { id, name, kind, ctrl_deps, data_deps, start_micros, duration_micros, attributes }
    };
    Ok(file.workload_graph.into_iter().map(message).collect())
}

/// Makes a node of a message; fails with what is wrong.
fn node(message: NodeMessage, rank: u32, indices: &FxHashMap<u64, u32>) -> Result<Node, String> {
    let NodeMessage { id, name, kind, ctrl_deps, data_deps, start_micros, duration_micros, attributes } =
        message;
    let attribute = |name: &str| attributes.iter().find(|attribute| attribute.name == name);
    let integer = |name: &str| -> Result<Option<u64>, String> {
        let Some(value) = attribute(name).and_then(AttributeMessage::integer) else { return Ok(None) };
        u64::try_from(value).map(Some).map_err(|_| format!("has {name} = {value}, expected 0 or more"))
    };
    let small = |name: &str| {
        let value = integer(name)?.unwrap_or(0);
        u32::try_from(value).map_err(|_| format!("has {name} = {value}, expected less than 2^32"))
    };
    let kind = match kind {
        1..=3 => NodeKind::Nothing,
        4 => NodeKind::Compute,
        5 => NodeKind::Send,
        6 => NodeKind::Receive,
        7 => NodeKind::Collective,
        other => return Err(format!("has the type {other}, expected 1 to 7")),
    };
    let mut after: Vec<u32> = Vec::with_capacity(data_deps.len());
    for dependency in data_deps {
        let found = indices.get(&dependency);
        after.push(*found.ok_or_else(|| format!("depends on node {dependency}, which is not in the file"))?);
    }
    after.sort_unstable();
    after.dedup();
    let (peer, own) =
        if kind == NodeKind::Send { ("comm_dst", "comm_src") } else { ("comm_src", "comm_dst") };
    if let (NodeKind::Send | NodeKind::Receive, Some(found)) = (kind, integer(own)?)
        && found != u64::from(rank)
    {
        return Err(format!("has {own} = {found}, expected the rank of the file, {rank}"));
    }
    Ok(Node {
        id,
        name,
        kind,
        after,
        control: ctrl_deps.len() as u32,
        start: start_micros,
        micros: duration_micros,
        // Chakra's default.
        is_cpu: integer("is_cpu_op")?.unwrap_or(1) != 0,
        collective: integer("comm_type")?.map(collective).transpose()?,
        bytes: integer("comm_size")?.unwrap_or(0),
        peer: small(peer)?,
        tag: small("comm_tag")?,
        group: attribute("pg_name").and_then(|name| name.string.clone()).unwrap_or_default(),
        work: integer("num_ops")?.zip(integer("tensor_size")?),
    })
}

fn collective(number: u64) -> Result<CollectiveKind, String> {
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    let kinds = [
        AllReduce,
        Reduce,
        AllGather,
        Gather,
        Scatter,
        Broadcast,
        AllToAll,
        ReduceScatter,
        ReduceScatter,
        Barrier,
    ];
    kinds.get(number as usize).copied().ok_or_else(|| format!("has comm_type = {number}, expected 0 to 9"))
}

/// Finds a node that depends on itself.
fn find_cycle(nodes: &[Node]) -> Option<usize> {
    let (mut left, dependents) = super::order::dependents(nodes);
    let mut ready: Vec<u32> = (0..nodes.len() as u32).filter(|node| left[*node as usize] == 0).collect();
    while let Some(node) = ready.pop() {
        for dependent in &dependents[node as usize] {
            left[*dependent as usize] -= 1;
            if left[*dependent as usize] == 0 {
                ready.push(*dependent);
            }
        }
    }
    left.iter().position(|left| *left > 0)
}
