//! Validity of the values of side tables. References to other tables are [`TableRequirements`](super::TableRequirements).

use pdes_core::Bytes;

use crate::call::{
    Call, FileCall, FileName, FileView, Indexed, MAX_OFFSET, RequestUse, Source, Visit, WindowCall,
};
use crate::channel::Slot;
use crate::collective::Collective;
use crate::datatype::Datatype;
use crate::record::{MAX_AMOUNT_BITS, MAX_BYTES};
use crate::side_tables::SideTables;
use crate::unmodelled::Unmodelled;

impl SideTables {
    /// Returns whether a writer may have stored these tables for a rank among `ranks`: each value is in the range of its field.
    pub(crate) fn is_valid(&self, ranks: u32) -> bool {
        let has_a_count_per_rank =
            |operation: &Collective| operation.vectors().iter().all(|vector| vector.len() == ranks as usize);
        let mut collectives = self.collectives.iter().chain(&self.group_collectives);
        collectives.all(|operation| is_valid_collective(operation, ranks))
            && self.collectives.iter().all(has_a_count_per_rank)
            && self.send_recvs.iter().all(|both| is_size(both.send_bytes) && is_size(both.recv_bytes))
            && self.calls.iter().all(|call| is_valid_call(call, ranks))
    }
}

fn is_size(bytes: Bytes) -> bool {
    bytes.get() <= MAX_BYTES
}

fn is_valid_collective(operation: &Collective, ranks: u32) -> bool {
    operation.root().is_none_or(|root| root.get() < ranks)
        && operation.flops().is_none_or(|flops| flops.to_bits() <= MAX_AMOUNT_BITS)
        && has_legal_sizes(operation)
}

/// Returns whether all datatypes exist and no count amounts to more bytes than a message may have.
pub(crate) fn has_legal_sizes(collective: &Collective) -> bool {
    let fits = |count: &u64, datatype: &Datatype| {
        *count <= MAX_BYTES
            && datatype.is_known()
            && datatype.size().checked_mul(*count).is_some_and(|bytes| bytes.get() <= MAX_BYTES)
    };
    // A datatype is checked without counts, too.
    let all_fit = |counts: &[u64], datatype: &Datatype| {
        fits(&0, datatype) && counts.iter().all(|count| fits(count, datatype))
    };
    match collective {
        Collective::Barrier => true,
        Collective::Bcast { count, datatype, .. }
        | Collective::Reduce { count, datatype, .. }
        | Collective::Allreduce { count, datatype, .. }
        | Collective::Scan { count, datatype, .. }
        | Collective::Exscan { count, datatype, .. } => fits(count, datatype),
        Collective::Alltoall { send_count, recv_count, send_type, recv_type }
        | Collective::Allgather { send_count, recv_count, send_type, recv_type }
        | Collective::Gather { send_count, recv_count, send_type, recv_type, .. }
        | Collective::Scatter { send_count, recv_count, send_type, recv_type, .. } => {
            fits(send_count, send_type) && fits(recv_count, recv_type)
        }
        Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type } => {
            all_fit(send_counts, send_type) && all_fit(recv_counts, recv_type)
        }
        Collective::Gatherv { send_count, recv_counts, send_type, recv_type, .. }
        | Collective::Allgatherv { send_count, recv_counts, send_type, recv_type } => {
            fits(send_count, send_type) && all_fit(recv_counts, recv_type)
        }
        Collective::Scatterv { send_counts, recv_count, send_type, recv_type, .. } => {
            all_fit(send_counts, send_type) && fits(recv_count, recv_type)
        }
        Collective::ReduceScatter { recv_counts, datatype, .. } => all_fit(recv_counts, datatype),
    }
}

fn is_valid_call(call: &Call, ranks: u32) -> bool {
    let mut values = CallValues { ranks, listed: Vec::new(), are_valid: true };
    call.visit(&mut values);
    values.are_valid
        && match call {
            Call::Unmodelled(call) => Unmodelled::new(call.as_str()).is_ok(),
            Call::File { call, slot: Some(_), .. } => call.may_have_request(),
            Call::Window { call, slot: Some(_), .. } => call.may_have_request(),
            _ => true,
        }
}

/// Checks the values of a call by their roles.
struct CallValues {
    ranks: u32,
    /// The last list of requests, sorted: a row has those that completed after those that the call waits for or tests.
    listed: Vec<Slot>,
    are_valid: bool,
}

impl Visit<'_, Indexed> for CallValues {
    fn source(&mut self, from: &Source) {
        self.are_valid &= is_valid_source(*from, self.ranks);
    }

    fn bytes(&mut self, bytes: Bytes) {
        self.are_valid &= is_size(bytes);
    }

    fn file(&mut self, file: &FileName) {
        self.are_valid &= FileName::new(file.as_str()).is_some();
    }

    fn file_call(&mut self, call: FileCall) {
        if let Some((_, bytes)) = call.access() {
            self.bytes(bytes);
        }
        self.are_valid &= call.offset().is_none_or(|offset| offset <= MAX_OFFSET);
        if let FileCall::Open { hints, .. } = call {
            self.are_valid &= hints.is_valid();
        }
    }

    fn window_call(&mut self, call: WindowCall) {
        self.are_valid &= call.bytes().is_none_or(is_size);
        if let WindowCall::Sync { kind, target } = call {
            self.are_valid &= kind.has_target() == target.is_some();
        }
    }

    fn file_view(&mut self, view: &FileView) {
        self.are_valid &= view.is_valid();
    }

    fn neighbors(&mut self, list: &[(u32, Bytes)]) {
        self.are_valid &= list.iter().all(|(rank, bytes)| *rank < self.ranks && is_size(*bytes));
    }

    fn requests(&mut self, used: RequestUse, slots: &[Slot]) {
        let mut sorted = slots.to_vec();
        sorted.sort_unstable();
        let is_listed = |slot: &Slot| self.listed.binary_search(slot).is_ok();
        self.are_valid &= sorted.windows(2).all(|pair| pair[0] != pair[1])
            && (used != RequestUse::Done || slots.iter().all(is_listed));
        self.listed = sorted;
    }
}

fn is_valid_source(source: Source, ranks: u32) -> bool {
    match source {
        Source::Any { tag, recorded, .. } => {
            tag.is_none_or(|tag| tag.get() >= 0) && recorded.is_none_or(|rank| rank.get() < ranks)
        }
        Source::ProcNull | Source::Rank(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use pdes_core::Rank;
    use rkyv::rancor::Failure;

    use super::*;
    use crate::action::{CollectiveId, SendRecv};
    use crate::call::{
        BlockRun, CommunicatorCall, FileDirection, FileHints, NumberHint, SendMode, Switch, SwitchHint,
        WindowAccess, WindowSync,
    };
    use crate::channel::{InIdx, OutIdx, Tag};
    use crate::communicator::CommIdx;

    fn every_collective() -> Vec<Collective> {
        let (root, datatype, flops) = (Rank::new(2), Datatype::DOUBLE, 1.5);
        let (send_type, recv_type) = (Datatype::BYTE, Datatype::DOUBLE);
        let (send_count, recv_count) = (7, 8);
        let (send_counts, recv_counts): (Box<[u64]>, Box<[u64]>) = ([1, 2, 3].into(), [4, 5, 6].into());
        vec![
            Collective::Barrier,
            Collective::Bcast { count: 1, root, datatype },
            Collective::Reduce { count: 1, flops, root, datatype },
            Collective::Allreduce { count: 1, flops, datatype },
            Collective::Alltoall { send_count, recv_count, send_type, recv_type },
            Collective::Alltoallv {
                send_counts: send_counts.clone(),
                recv_counts: recv_counts.clone(),
                send_type,
                recv_type,
            },
            Collective::Gather { send_count, recv_count, root, send_type, recv_type },
            Collective::Scatter { send_count, recv_count, root, send_type, recv_type },
            Collective::Allgather { send_count, recv_count, send_type, recv_type },
            Collective::Gatherv { send_count, recv_counts: recv_counts.clone(), root, send_type, recv_type },
            Collective::Scatterv { send_counts, recv_count, root, send_type, recv_type },
            Collective::Allgatherv { send_count, recv_counts: recv_counts.clone(), send_type, recv_type },
            Collective::ReduceScatter { recv_counts, flops, datatype },
            Collective::Scan { count: 1, flops, datatype },
            Collective::Exscan { count: 1, flops, datatype },
        ]
    }

    fn every_call() -> Vec<Call> {
        let (mode, bytes, slot) = (SendMode::Ready, Bytes::new(9), Slot::new(2));
        let (to, communicator) = (Some(OutIdx::new(1)), CommIdx::new(1));
        let any = |tag, recorded| Source::Any { tag, communicator, recorded };
        let from = any(Some(Tag::new(i32::MAX)), Some(Rank::new(2)));
        let slots: Box<[Slot]> = [Slot::new(4), slot].into();
        let operation = CollectiveId::new(1 << 31);
        let neighbors: Box<[(u32, Bytes)]> = [(1, bytes), (1, Bytes::ZERO)].into();
        let file_name = || FileName::new("/data").expect("a name");
        let mut hints = FileHints::default();
        assert!(hints.set_number(NumberHint::CbNodes, 4));
        hints.set_switch(SwitchHint::DsWrite, Switch::Disable);
        let runs = [
            BlockRun { offset: 3, bytes: 8, stride: 16, count: 4 },
            BlockRun { offset: 80, bytes: 1, stride: 1, count: 1 },
        ];
        let view = FileView::new(7, 100, &runs).expect("a view");
        let file = |call| Call::File { communicator, file: file_name(), slot: None, call };
        vec![
            Call::Send { mode, to, bytes },
            Call::Isend { mode: SendMode::Synchronous, to, bytes, slot },
            Call::Recv { from: any(None, None), bytes },
            Call::Irecv { from: Source::Rank(InIdx::new(0)), bytes, slot },
            Call::SendRecv { to: None, send_bytes: bytes, from, recv_bytes: Bytes::ZERO },
            Call::SendInit { mode: SendMode::Buffered, to, bytes, slot },
            Call::RecvInit { from: Source::ProcNull, bytes, slot },
            Call::Start { slots: slots.clone() },
            Call::Free { slot },
            Call::Waitall { slots: slots.clone() },
            Call::Waitany { slots: slots.clone(), done: Some(slot) },
            Call::Waitany { slots: slots.clone(), done: None },
            Call::Waitsome { slots: slots.clone(), done: [slot].into() },
            Call::Test { slot, done: true },
            Call::Testall { slots: slots.clone(), done: false },
            Call::Testany { slots: slots.clone(), done: None },
            Call::Testsome { slots: slots.clone(), done: [slot, Slot::new(4)].into() },
            Call::Probe { from },
            Call::Iprobe { from: Source::Rank(InIdx::new(3)), found: true },
            Call::Cancel { slot, from, cancelled: true },
            Call::Collective { operation, communicator, slot: Some(slot) },
            Call::Collective { operation: CollectiveId::new(0), communicator: CommIdx::WORLD, slot: None },
            Call::NeighborAlltoall { communicator, to: neighbors, from: [].into(), slot: None },
            Call::NewCommunicator { kind: CommunicatorCall::Create, parent: CommIdx::WORLD, new: None },
            Call::NewCommunicator {
                kind: CommunicatorCall::Split,
                parent: CommIdx::WORLD,
                new: Some(communicator),
            },
            Call::NewCommunicator {
                kind: CommunicatorCall::CreateGroup,
                parent: CommIdx::WORLD,
                new: Some(communicator),
            },
            Call::FreeCommunicator { communicator },
            Call::GetStatus { slot, done: true },
            file(FileCall::Open { mode: 5, hints }),
            Call::SetView { communicator, file: file_name(), view },
            Call::Window {
                communicator,
                group: Box::default(),
                slot: Some(slot),
                call: WindowCall::Access { kind: WindowAccess::Get, target: 1, bytes },
                access: None,
                completed: Box::default(),
                puts: Box::default(),
            },
            Call::Window {
                communicator,
                group: [(1, Bytes::ZERO)].into(),
                slot: None,
                call: WindowCall::Sync { kind: WindowSync::Flush, target: Some(1) },
                access: None,
                completed: [slot].into(),
                puts: [(1, bytes)].into(),
            },
            file(FileCall::Sync),
            file(FileCall::Access {
                is_collective: true,
                direction: FileDirection::Write,
                offset: Some(1 << 40),
                bytes,
            }),
            file(FileCall::SharedAccess { is_ordered: true, direction: FileDirection::Read, bytes }),
            Call::File {
                communicator,
                file: file_name(),
                slot: Some(slot),
                call: FileCall::Access {
                    is_collective: false,
                    direction: FileDirection::Read,
                    offset: None,
                    bytes,
                },
            },
            Call::Unmodelled(Unmodelled::new("MPI_Put target=3 bytes=800 win=0").expect("a call")),
        ]
    }

    fn side() -> SideTables {
        let both = SendRecv {
            to: None,
            send_bytes: Bytes::ZERO,
            from: Some(InIdx::new(3)),
            recv_bytes: Bytes::new(1 << 48),
        };
        let locations = vec![String::new(), "solver.f90:12".to_owned(), "eight.c:".to_owned()];
        let group_collectives = vec![Collective::ReduceScatter {
            recv_counts: [1, 2].into(),
            flops: 0.0,
            datatype: Datatype::BYTE,
        }];
        let calls = every_call();
        SideTables {
            collectives: every_collective(),
            group_collectives,
            send_recvs: vec![both],
            locations,
            calls,
        }
    }

    #[test]
    fn side_tables_round_trip() {
        for side in [side(), SideTables::default()] {
            let bytes = rkyv::to_bytes::<Failure>(&side).expect("memory takes all");
            assert_eq!(SideTables::from_bytes(&bytes, 3), Some(side));
        }
        // A vector has an entry per rank.
        assert!(side().is_valid(3) && !side().is_valid(4));
    }

    #[test]
    fn values_out_of_range_are_not_valid() {
        let slot = Slot::new(1);
        let (mode, bytes) = (SendMode::Standard, Bytes::new(MAX_BYTES + 1));
        let any =
            |tag, rank| Source::Any { tag, communicator: CommIdx::WORLD, recorded: Some(Rank::new(rank)) };
        for call in [
            Call::Send { mode, to: None, bytes },
            Call::Recv { from: any(None, 3), bytes: Bytes::ZERO },
            Call::Waitall { slots: [slot, slot].into() },
            Call::Waitany { slots: [slot].into(), done: Some(Slot::new(2)) },
            Call::Testsome { slots: [slot].into(), done: [slot, slot].into() },
            Call::File {
                communicator: CommIdx::WORLD,
                file: FileName::new("/data").expect("a name"),
                slot: Some(slot),
                call: FileCall::Sync,
            },
            Call::NeighborAlltoall {
                communicator: CommIdx::WORLD,
                to: [(3, Bytes::ZERO)].into(),
                from: [].into(),
                slot: None,
            },
        ] {
            let side = SideTables { calls: vec![call], ..SideTables::default() };
            assert!(!side.is_valid(3), "{side:?}");
        }
        for operation in [
            Collective::Bcast { count: 1, root: Rank::new(3), datatype: Datatype::BYTE },
            Collective::Bcast { count: MAX_BYTES / 8 + 1, root: Rank::new(0), datatype: Datatype::DOUBLE },
            Collective::Allreduce { count: 1, flops: f64::NAN, datatype: Datatype::BYTE },
            Collective::ReduceScatter { recv_counts: [].into(), flops: 0.0, datatype: Datatype::BYTE },
        ] {
            let side = SideTables { collectives: vec![operation], ..SideTables::default() };
            assert!(!side.is_valid(3), "{side:?}");
        }
    }

    #[test]
    fn malformed_bytes_never_panic() {
        let bytes = rkyv::to_bytes::<Failure>(&side()).expect("memory takes all");
        let (mut refused, mut read) = (0, 0);
        for at in 0..bytes.len() {
            for value in [0, 1, 61, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                match SideTables::from_bytes(&changed, 3) {
                    // What is read can be used.
                    Some(side) => read += usize::from(!format!("{side:?}").is_empty()),
                    None => refused += 1,
                }
            }
        }
        assert!(refused > 1000 && read > 1000, "{refused} refused, {read} read");
        for len in (0..bytes.len()).step_by(8) {
            assert!(SideTables::from_bytes(&bytes[..len], 3).is_none(), "cut to {len}");
        }
    }
}
