//! Pending MPI sends: the one place of the engines with unsafe code.
#![allow(unsafe_code)]

use std::slice;

use mpi::request::{Request, StaticScope};
use mpi::traits::Destination;

/// A pending send, which owns its bytes for as long as MPI may read them.
pub(super) struct PendingSend {
    /// MPI request; `None` if the send is complete.
    request: Option<Request<'static, [u8]>>,
    _bytes: Vec<u8>,
}

impl PendingSend {
    pub(super) fn new(to: &impl Destination, bytes: Vec<u8>) -> Self {
        // SAFETY: the bytes lie on the heap, where they stay when the vector is moved. Nobody can change them, and they
        // are freed after the request is completed: in `drop`, or never, if that is not called.
        let lasting: &'static [u8] = unsafe { slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        Self { request: Some(to.immediate_send(StaticScope, lasting)), _bytes: bytes }
    }

    pub(super) fn is_done(&mut self) -> bool {
        self.request = self.request.take().and_then(|request| request.test().err());
        self.request.is_none()
    }
}

impl Drop for PendingSend {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            request.wait_without_status();
        }
    }
}
