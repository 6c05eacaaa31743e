//! The project: its files, and its communicators.

use std::path::{Path, PathBuf};

use pdes_core::Rank;
use trace_mmap::{MAX_RANKS, TraceError};

use super::HdtraceError;
use super::element::{Elements, Next};

/// What a project lists.
pub(super) struct Project {
    /// The file of the first thread of each rank.
    pub(super) files: Vec<PathBuf>,
    /// Number of further threads of each rank.
    pub(super) other_threads: Vec<u64>,
    /// The members of each communicator, in the order of their ranks in it.
    pub(super) communicators: Vec<Vec<Member>>,
}

/// A member of a communicator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) rank: Rank,
    position: u64,
    /// The number of the communicator on this rank.
    pub(super) number: u64,
}

impl Project {
    pub(super) fn read(path: &Path) -> Result<Self, TraceError> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut elements = Elements::open(path)?;
        let mut threads: Vec<(u64, PathBuf)> = Vec::new();
        let mut communicators: Vec<Vec<Member>> = Vec::new();
        // Names of the open elements, and of the nodes among them.
        let (mut open, mut nodes): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        loop {
            match elements.next()? {
                Next::Eof => break,
                Next::End => {
                    if open.pop().is_some_and(|name| is_node(&name)) {
                        nodes.pop();
                    }
                }
                Next::Begin(element) => {
                    let in_list = open.iter().any(|name| name == "CommunicatorList");
                    if is_node(&element.name) {
                        let node = element.optional("name").or_else(|| element.optional("value"));
                        nodes.push(node.unwrap_or_default().to_owned());
                        if let [host, rank, thread] = &nodes[..] {
                            let file = path.with_file_name(format!("{name}_{host}_{rank}_{thread}.trc"));
                            // Other nodes, such as those of servers, have names.
                            threads.extend(rank.parse().ok().map(|rank| (rank, file)));
                        }
                    } else if element.name == "Communicator" && in_list {
                        communicators.push(Vec::new());
                    } else if element.name == "Rank" && in_list {
                        let member = element.number("global").and_then(|rank| {
                            let (position, number) = (element.number("local")?, element.number("cid")?);
                            let rank = Rank::new(u32::try_from(rank).unwrap_or(u32::MAX));
                            Ok(Member { rank, position, number })
                        });
                        let member = member.map_err(|error| elements.error(error))?;
                        if let Some(communicator) = communicators.last_mut() {
                            communicator.push(member);
                        }
                    }
                    open.push(element.name);
                }
            }
        }
        threads.sort_by_key(|(rank, _)| *rank);
        let mut project = Self { files: Vec::new(), other_threads: Vec::new(), communicators };
        for (rank, file) in threads {
            let expected = project.files.len() as u64;
            if rank == expected && expected < MAX_RANKS.into() {
                project.files.push(file);
                project.other_threads.push(0);
            } else if rank + 1 == expected {
                *project.other_threads.last_mut().expect("the rank has a thread") += 1;
            } else {
                return Err(no_thread(path, expected));
            }
        }
        let ranks = project.files.len();
        if ranks == 0 {
            return Err(no_thread(path, 0));
        }
        for communicator in &mut project.communicators {
            communicator.sort_by_key(|member| member.position);
            if let Some(member) = communicator.iter().find(|member| member.rank.index() >= ranks) {
                return Err(no_thread(path, member.rank.get().into()));
            }
        }
        // A program on MPI_COMM_WORLD alone may have no list.
        if project.communicators.is_empty() {
            let member = |rank| Member { rank: Rank::new(rank), position: rank.into(), number: 0 };
            project.communicators.push((0..ranks as u32).map(member).collect());
        }
        Ok(project)
    }
}

/// Returns whether an element is a node of the topology; older projects have labels.
fn is_node(name: &str) -> bool {
    matches!(name, "Node" | "Label")
}

fn no_thread(path: &Path, rank: u64) -> TraceError {
    TraceError::Source(HdtraceError::NoThread { path: path.to_path_buf(), rank }.into())
}
