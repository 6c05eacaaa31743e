//! Side tables: what the actions of a rank refer to, apart from channels.

mod codec;

pub(crate) use codec::is_of_legal_size;

use crate::action::SendRecv;
use crate::collective::Collective;

/// The side tables of a rank; ranks of an archive share equal ones.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Side {
    pub(crate) collectives: Vec<Collective>,
    pub(crate) send_recvs: Vec<SendRecv>,
    pub(crate) locations: Vec<String>,
}
