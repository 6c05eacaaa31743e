//! Requests of clients to file systems, and their consequences.

use serde::{Deserialize, Serialize};

use super::packet::{Client, ServerMessage};
use crate::FileSystemId;

/// Operation on a file of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileOperation {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Reads what exists of a range, which may be nothing.
    ReadExisting,
    /// Opens the file, at the metadata server.
    Open,
    /// Waits until all data that were written before are on the devices.
    Sync,
}

/// Request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRequest {
    /// File system.
    pub system: FileSystemId,
    /// Client.
    pub client: Client,
    /// Number of the file; different files may have one number, with a probability of 2^-32.
    pub file: u32,
    /// Operation.
    pub operation: FileOperation,
    /// First position in the file \[B\].
    pub offset: u64,
    /// Size \[B\].
    pub bytes: u64,
}

/// A read goes beyond the end of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeyondEnd {
    /// The read.
    pub request: FileRequest,
    /// Size of the file, as its servers know it when the read has found its end \[B\].
    pub size: u64,
}

/// Consequences of an event.
#[derive(Debug)]
pub struct Consequences<T> {
    /// Messages to send now.
    pub messages: Vec<ServerMessage>,
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
