//! Reading of calls by the roles of their fields.

use pdes_core::Bytes;

use super::{CallOp, FileName, FileView, RequestUse, SendMode};
use crate::communicator::CommId;
use crate::structure::{RecvFrom, RequestName, SendTo};

/// Reads the fields of a call by their roles, in the order of its row: `names`, then `values`, then `requests`. The last functions
/// read whole calls whose fields in text are not those of the row in their order.
#[expect(missing_docs, reason = "the functions are the roles of the table, and calls")]
pub trait ReadCall {
    /// A field is missing or invalid.
    type Error;
    fn destination(&mut self) -> Result<SendTo, Self::Error>;
    fn source(&mut self) -> Result<RecvFrom, Self::Error>;
    fn communicator(&mut self) -> Result<CommId, Self::Error>;
    fn freed_communicator(&mut self) -> Result<CommId, Self::Error>;
    fn mode(&mut self) -> Result<SendMode, Self::Error>;
    fn bytes(&mut self) -> Result<Bytes, Self::Error>;
    fn buffer(&mut self) -> Result<Bytes, Self::Error>;
    fn file(&mut self) -> Result<FileName, Self::Error>;
    fn file_view(&mut self) -> Result<FileView, Self::Error>;
    fn outcome(&mut self) -> Result<bool, Self::Error>;
    fn have_completed(&mut self) -> Result<bool, Self::Error>;
    fn request(&mut self, used: RequestUse) -> Result<RequestName, Self::Error>;
    fn optional_request(&mut self, used: RequestUse) -> Result<Option<RequestName>, Self::Error>;
    fn requests(&mut self, used: RequestUse) -> Result<Vec<RequestName>, Self::Error>;
    fn send_recv(&mut self) -> Result<CallOp, Self::Error>;
    fn start(&mut self) -> Result<CallOp, Self::Error>;
    fn test(&mut self) -> Result<CallOp, Self::Error>;
    fn neighbor_alltoall(&mut self) -> Result<CallOp, Self::Error>;
    fn new_communicator(&mut self) -> Result<CallOp, Self::Error>;
    fn file_call(&mut self) -> Result<CallOp, Self::Error>;
    fn window_call(&mut self) -> Result<CallOp, Self::Error>;
    /// Never called: collective operations and unmodelled calls are not read by their fields.
    fn elsewhere(&mut self) -> Result<CallOp, Self::Error> {
        unreachable!("collective operations and unmodelled calls are not read by their fields")
    }
}

/// A field of requests, as its type has it: a new or an old one, perhaps one, or several old ones.
pub(super) trait RequestField: Sized {
    fn read<R: ReadCall>(reader: &mut R, used: RequestUse) -> Result<Self, R::Error>;
    /// Removes requests; returns false if the call had requests here, needs one, and none is left.
    fn keep(&mut self, used: RequestUse, is_kept: impl Fn(RequestName) -> bool) -> bool;
}

impl RequestField for RequestName {
    fn read<R: ReadCall>(reader: &mut R, used: RequestUse) -> Result<Self, R::Error> {
        reader.request(used)
    }

    fn keep(&mut self, used: RequestUse, is_kept: impl Fn(RequestName) -> bool) -> bool {
        used == RequestUse::Created || is_kept(*self)
    }
}

impl RequestField for Option<RequestName> {
    fn read<R: ReadCall>(reader: &mut R, used: RequestUse) -> Result<Self, R::Error> {
        reader.optional_request(used)
    }

    fn keep(&mut self, used: RequestUse, is_kept: impl Fn(RequestName) -> bool) -> bool {
        if used == RequestUse::Done {
            *self = self.filter(|request| is_kept(*request));
        }
        true
    }
}

impl RequestField for Vec<RequestName> {
    fn read<R: ReadCall>(reader: &mut R, used: RequestUse) -> Result<Self, R::Error> {
        reader.requests(used)
    }

    fn keep(&mut self, used: RequestUse, is_kept: impl Fn(RequestName) -> bool) -> bool {
        let had_none = self.is_empty();
        self.retain(|request| is_kept(*request));
        had_none || used == RequestUse::Done || !self.is_empty()
    }
}
