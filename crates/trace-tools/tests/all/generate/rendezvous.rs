//! Checks that programs do not deadlock if every send uses the rendezvous protocol.

use std::collections::BTreeMap;

use pdes_core::Rank;
use trace_mmap::{CallOp, Op, RecvFrom, flatten};
use trace_tools::generate::Generator;

/// Source, destination, tag.
type Channel = (usize, usize, i32);

/// Numbers of sends and receives posted on a channel.
#[derive(Clone, Copy, Default)]
struct Posted {
    sends: u64,
    receives: u64,
}

/// An incomplete call: the index of its message on the channel.
type Pending = (Channel, u64);

#[derive(Default)]
struct Process {
    next: usize,
    /// Messages that the current call waits for; posted once.
    blocked: Option<Vec<Pending>>,
    requests: Vec<Pending>,
}

/// Asserts that the programs terminate if a send completes only once its receive is posted, and vice versa.
pub(crate) fn assert_runs_without_buffers(generator: &dyn Generator) {
    let programs: Vec<Vec<Op>> = (0..generator.ranks())
        .map(|rank| flatten(&generator.rank(Rank::new(rank))).cloned().collect())
        .collect();
    let mut world = World { ranks: programs.len() as u64, posted: BTreeMap::new() };
    let mut processes: Vec<Process> = programs.iter().map(|_| Process::default()).collect();
    loop {
        let mut moved = false;
        for (rank, (process, program)) in processes.iter_mut().zip(&programs).enumerate() {
            while process.next < program.len() && world.step(rank, process, &program[process.next]) {
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    for (rank, (process, program)) in processes.iter().zip(&programs).enumerate() {
        assert_eq!(process.next, program.len(), "rank {rank} is stuck at {:?}", program.get(process.next));
        assert!(process.requests.is_empty(), "rank {rank} ends with pending requests");
    }
}

struct World {
    ranks: u64,
    posted: BTreeMap<Channel, Posted>,
}

impl World {
    /// Runs a call, or returns false where it blocks.
    fn step(&mut self, rank: usize, process: &mut Process, op: &Op) -> bool {
        if let Op::Call(CallOp::Recv { from: RecvFrom { tag: Some(tag), .. }, .. }) = op {
            return self.receive_from_any(rank, process, tag.get());
        }
        if process.blocked.is_none() {
            process.blocked = Some(self.post(rank, process, op));
        }
        let waits = process.blocked.as_deref().unwrap_or_default();
        let over = waits.iter().all(|(channel, place)| {
            self.posted.get(channel).is_some_and(|posted| posted.sends > *place && posted.receives > *place)
        });
        if over {
            process.blocked = None;
            process.next += 1;
        }
        over
    }

    /// Receives the message of the lowest rank that sends one, or returns false if there is none.
    fn receive_from_any(&mut self, rank: usize, process: &mut Process, tag: i32) -> bool {
        let mut channels = self.posted.iter_mut();
        let sent = channels
            .find(|((_, to, name), posted)| (*to, *name) == (rank, tag) && posted.sends > posted.receives);
        let Some((_, posted)) = sent else { return false };
        posted.receives += 1;
        process.next += 1;
        true
    }

    /// Posts a call and returns what it waits for.
    fn post(&mut self, rank: usize, process: &mut Process, op: &Op) -> Vec<Pending> {
        match op {
            Op::Send { peer: Some(peer), tag, .. } => vec![self.send((rank, peer.index(), tag.get()))],
            Op::Isend { peer: Some(peer), tag, .. } => {
                process.requests.push(self.send((rank, peer.index(), tag.get())));
                Vec::new()
            }
            Op::Recv { peer: Some(peer), tag: Some(tag), .. } => {
                vec![self.receive((peer.index(), rank, tag.get()))]
            }
            Op::Irecv { peer: Some(peer), tag: Some(tag), .. } => {
                process.requests.push(self.receive((peer.index(), rank, tag.get())));
                Vec::new()
            }
            Op::Wait(request) => {
                let peer = request.peer.expect("no peer is null").index();
                let channel = (peer, rank, request.tag.expect("no tag is any").get());
                let place = process.requests.iter().position(|pending| pending.0 == channel);
                vec![process.requests.remove(place.expect("a wait has its request"))]
            }
            Op::WaitAll => std::mem::take(&mut process.requests),
            Op::Collective(_) => vec![self.enter_collective()],
            Op::Init | Op::Finalize | Op::Compute { .. } => Vec::new(),
            other => panic!("{other:?} is never generated"),
        }
    }

    /// Enters a collective, which completes when all ranks have entered it: no rank is ever two collectives ahead.
    fn enter_collective(&mut self) -> Pending {
        let channel = (usize::MAX, usize::MAX, 0);
        let posted = self.posted.entry(channel).or_default();
        let last_to_come = (posted.sends / self.ranks + 1) * self.ranks - 1;
        posted.sends += 1;
        posted.receives += 1;
        (channel, last_to_come)
    }

    fn send(&mut self, channel: Channel) -> Pending {
        let posted = self.posted.entry(channel).or_default();
        posted.sends += 1;
        (channel, posted.sends - 1)
    }

    fn receive(&mut self, channel: Channel) -> Pending {
        let posted = self.posted.entry(channel).or_default();
        posted.receives += 1;
        (channel, posted.receives - 1)
    }
}
