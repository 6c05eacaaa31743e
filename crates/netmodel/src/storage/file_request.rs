//! Requests of clients to the servers of a file system, and their consequences.

use std::num::NonZeroU64;

use pdes_core::Bytes;
use serde::{Deserialize, Serialize};

use crate::{FileSystemId, HostId};

/// Operation on a file of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileOperation {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Reads what exists of a range, which may be nothing.
    ReadExisting,
    /// Opens the file, at the metadata server. If it has no data yet, hints stripe it.
    Open {
        /// Size of its stripes \[B\].
        stripe: Option<NonZeroU64>,
        /// Number of its servers; more than there are stand for all.
        servers: Option<NonZeroU64>,
    },
    /// Waits until all data that were written before are on the devices.
    Sync,
}

/// Request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRequest {
    /// File system.
    pub system: FileSystemId,
    /// Host of the client.
    pub client: HostId,
    /// Number of the file; different files may have one number, with a probability of 2^-32.
    pub file: u32,
    /// Operation.
    pub operation: FileOperation,
    /// First position in the file \[B\].
    pub offset: u64,
    /// Size \[B\].
    pub bytes: u64,
}

/// A message that the caller has to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerMessage<T> {
    /// Host that sends it.
    pub from: HostId,
    /// Host that receives it.
    pub to: HostId,
    /// Its size.
    pub bytes: Bytes,
    /// Its number, with which its arrival is reported.
    pub number: u32,
    /// Tag of the access.
    pub tag: T,
}

/// A read goes beyond the end of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeyondEnd {
    /// The read.
    pub request: FileRequest,
    /// Size of the file at that time \[B\].
    pub size: u64,
}

/// Consequences of an event.
#[derive(Debug)]
pub struct Consequences<T> {
    /// Messages to send now.
    pub messages: Vec<ServerMessage<T>>,
    /// Tags of operations that end now.
    pub ended: Vec<T>,
    /// Reads beyond the end of their files.
    pub failed: Vec<(T, BeyondEnd)>,
}

impl<T> Default for Consequences<T> {
    fn default() -> Self {
        Self { messages: Vec::new(), ended: Vec::new(), failed: Vec::new() }
    }
}
