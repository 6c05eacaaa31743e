//! Side tables: the data to which the actions of a rank refer, apart from channels.

mod requirements;
mod valid;

pub(crate) use requirements::TableRequirements;
pub(crate) use valid::has_legal_sizes;

use rkyv::rancor::Failure;

use crate::action::{CollectiveId, SendRecv};
use crate::call::{Call, FileCall, WindowCall};
use crate::collective::Collective;
use crate::communicator::CommIdx;

/// The side tables of a rank; ranks of an archive share equal ones.
#[derive(Debug, Default, PartialEq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct SideTables {
    /// Collective operations on the world communicator.
    pub(crate) collectives: Vec<Collective>,
    /// Collective operations on other communicators.
    pub(crate) group_collectives: Vec<Collective>,
    pub(crate) send_recvs: Vec<SendRecv>,
    pub(crate) locations: Vec<String>,
    pub(crate) calls: Vec<Call>,
}

/// Bit that is set in the numbers of collective operations on other communicators than the world, whose vectors have other
/// lengths.
const GROUP_BIT: u32 = 1 << 31;

impl SideTables {
    /// Returns whether some call is one on a file.
    pub(crate) fn has_file_calls(&self) -> bool {
        self.calls.iter().any(|call| matches!(call, Call::File { .. }))
    }

    /// Returns whether some call is an access at the shared pointer of a file in the order of time.
    pub(crate) fn has_shared_accesses(&self) -> bool {
        let is_shared = |call: &FileCall| matches!(call, FileCall::SharedAccess { is_ordered: false, .. });
        self.calls.iter().any(|call| matches!(call, Call::File { call, .. } if is_shared(call)))
    }

    /// Returns the calls on windows.
    pub(crate) fn window_calls(&self) -> impl Iterator<Item = WindowCall> {
        self.calls.iter().filter_map(|call| match call {
            Call::Window { call, .. } => Some(*call),
            _ => None,
        })
    }

    /// Reads the tables of a rank among `ranks` from their archived form; returns `None` if it is malformed.
    pub(crate) fn from_bytes(bytes: &[u8], ranks: u32) -> Option<Self> {
        rkyv::from_bytes::<Self, Failure>(bytes).ok().filter(|side| side.is_valid(ranks))
    }

    /// Adds a collective operation on a communicator.
    pub(crate) fn add_collective(&mut self, value: Collective, communicator: CommIdx) -> CollectiveId {
        let (list, bit) = match communicator {
            CommIdx::WORLD => (&mut self.collectives, 0),
            _ => (&mut self.group_collectives, GROUP_BIT),
        };
        list.push(value);
        CollectiveId::new((list.len() as u32 - 1) | bit)
    }

    /// Returns the number of the operation with this index on a communicator that is not the world.
    pub(crate) fn group_collective(index: u32) -> CollectiveId {
        CollectiveId::new(index | GROUP_BIT)
    }

    /// Returns whether a collective operation is on the world communicator.
    pub(crate) fn is_on_world(id: CollectiveId) -> bool {
        id.get() & GROUP_BIT == 0
    }

    /// Returns a collective operation; `None` if there is none of this number.
    pub(crate) fn collective(&self, id: CollectiveId) -> Option<&Collective> {
        match id.get() & GROUP_BIT {
            0 => self.collectives.get(id.index()),
            _ => self.group_collectives.get((id.get() & !GROUP_BIT) as usize),
        }
    }
}
