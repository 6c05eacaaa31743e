//! Collective operations, and communicators that ranks make.

use pdes_core::{Bytes, Rank};
use trace_mmap::{Action, Call, CommId, CommIdx, Communicator, CommunicatorCall, Group};

use super::{Awaited, RankSource};
use crate::agreement::Agreement;
use crate::collective::collective;
use crate::layout::{CollectiveKind, NONE, Operation};

impl RankSource<'_> {
    pub(super) fn collective(&mut self, operation: Operation) -> Result<Action, String> {
        let on = self.communicator(operation)?;
        let communicator = self.trace.communicator(on);
        let (id, member, size) = (communicator.id, communicator.rank, communicator.group.len());
        let number = self.contributions.entry(on).or_default();
        *number += 1;
        let (run, key) = (&self.run, (id, *number - 1));
        let part = Agreement::of(&operation, (self.me, member));
        let shared = (&run.memory, &run.places);
        let table = run.exchange.contribute(shared, key, (member, size), (part, operation.block))?;
        let Operation { request, count, recv_count, .. } = operation;
        let kind = CollectiveKind::from_number(operation.flags);
        let is_neighbor = kind == Some(CollectiveKind::Neighbor);
        let length = match kind {
            _ if operation.vector == 0 => 0,
            Some(CollectiveKind::Neighbor) => count.saturating_add(recv_count).saturating_mul(2),
            Some(CollectiveKind::Alltoallv) => 2 * u64::from(size),
            _ => size.into(),
        };
        let vectors: Vec<u64> = run.memory.numbers(operation.vector, length);
        if operation.vector != 0 {
            run.memory.free(operation.vector);
        }
        if request == NONE {
            self.awaited = Awaited::Table { table, key };
        } else {
            self.receives.remove(&request);
            self.requests.insert(request);
            self.tables.insert(request, (table, key));
        }
        if kind == Some(CollectiveKind::Window) {
            return self.create_window(on);
        }
        if kind == Some(CollectiveKind::File) {
            return self.exchange_on_file();
        }
        let slot = (request != NONE).then(|| self.slot(request));
        if is_neighbor {
            let pairs = |numbers: &[u64]| {
                numbers.chunks_exact(2).map(|pair| (pair[0] as u32, Bytes::new(pair[1]))).collect()
            };
            let (to, from) = vectors.split_at(2 * count as usize);
            return Ok(self.call(Call::NeighborAlltoall {
                communicator: on,
                to: pairs(to),
                from: pairs(from),
                slot,
            }));
        }
        let called = collective(&operation, &vectors, size)
            .ok_or("a collective operation has a root that is no member, or no such kind")?;
        let id = self.writer.collective(called, on).map_err(|error| error.to_string())?;
        Ok(match (on, slot) {
            (CommIdx::WORLD, None) => Action::Collective(id),
            _ => self.call(Call::Collective { operation: id, communicator: on, slot }),
        })
    }

    /// Adds a communicator that the rank has made, by messages of its own.
    pub(super) fn join(&mut self, operation: Operation) -> Result<Action, String> {
        let members: Vec<i32> = self.run.memory.numbers(operation.block, operation.count);
        self.run.memory.free(operation.block);
        let members =
            members.into_iter().map(|member| self.peer(member)).collect::<Result<Vec<Rank>, _>>()?;
        let group = Group::new(members).map_err(|rank| format!("rank {rank} is twice in a communicator"))?;
        self.selection.check(group.len()).map_err(|error| format!("a communicator: {error}"))?;
        let id = CommId::new(operation.tag as u32);
        let group = self.run.exchange.join(id, group).ok_or(
            "two communicators have one number, by chance: run the program with another number of ranks",
        )?;
        let rank = operation.peer as u32;
        let index = self.writer.communicator(Communicator { id, rank, group });
        self.communicators.insert(operation.communicator, index);
        let (kind, parent) = (CommunicatorCall::Define, CommIdx::WORLD);
        Ok(self.call(Call::NewCommunicator { kind, parent, new: Some(index) }))
    }
}
