//! Programs of transformers on an ideal machine: messages take no time, and a send ends when its receive is posted. Programs end in any
//! protocol if they end there, and what remains of their time is the pipeline's.

use std::collections::HashMap;

use pdes_core::Rank;
use trace_mmap::{CallOp, CommId, Op, Peer, RequestName, flatten};
use trace_tools::generate::Generator as _;
use training::{Model, Recomputation, Transformer, TransformerParameters};

const MODEL: Model = Model {
    layers: 8,
    hidden: 256,
    heads: 4,
    kv_heads: 4,
    feed_forward: 1024,
    is_gated: false,
    // Without a vocabulary all stages have equal work.
    vocabulary: 1,
    is_tied: true,
    sequence: 128,
    experts: 1,
    experts_per_token: 1,
};
const EXPERTS: Model = Model { experts: 8, experts_per_token: 2, is_tied: false, ..MODEL };

/// Something for which a rank waits.
#[derive(Clone, Copy)]
enum Event {
    /// A message: source, target, tag, and number among these.
    Message((u32, u32, i32), usize),
    /// A collective operation, and its number on its communicator.
    Collective(CommId, usize),
}

/// A persistent request: source, target and tag, and whether it sends.
type Persistent = ((u32, u32, i32), bool);

#[derive(Default)]
struct IdealRank {
    at: usize,
    clock: f64,
    persistent: HashMap<RequestName, Persistent>,
    pending: HashMap<RequestName, Event>,
    collectives: HashMap<CommId, usize>,
}

#[derive(Default)]
struct Machine {
    /// Times at which sends and receives are posted.
    posts: HashMap<(u32, u32, i32), [Vec<f64>; 2]>,
    members: HashMap<CommId, u32>,
    arrivals: HashMap<(CommId, usize), Vec<f64>>,
}

impl Machine {
    /// Returns the end of an event, once all sides are there.
    fn end(&self, event: Event) -> Option<f64> {
        match event {
            Event::Message(channel, number) => {
                let [sends, receives] = self.posts.get(&channel)?;
                Some(sends.get(number)?.max(*receives.get(number)?))
            }
            Event::Collective(communicator, number) => {
                let arrivals = &self.arrivals[&(communicator, number)];
                let is_complete = arrivals.len() == self.members[&communicator] as usize;
                is_complete.then(|| arrivals.iter().copied().fold(0.0, f64::max))
            }
        }
    }

    /// Does an operation of a rank; returns false if it waits.
    fn step(&mut self, me: u32, rank: &mut IdealRank, op: &Op) -> bool {
        let Op::Call(call) = op else {
            if let Op::Compute { flops } = op {
                rank.clock += flops;
            }
            return true;
        };
        match call {
            CallOp::NewCommunicator { new: Some((id, group)), .. } => {
                self.members.insert(*id, group.len());
            }
            CallOp::SendInit { to, request, .. } => {
                let channel = (me, to.peer.unwrap().get(), to.tag.get());
                rank.persistent.insert(*request, (channel, true));
            }
            CallOp::RecvInit { from, request, .. } => {
                let Peer::Rank(peer) = from.peer else { panic!("{from:?}") };
                rank.persistent.insert(*request, ((peer.get(), me, from.tag.unwrap().get()), false));
            }
            CallOp::Start { requests } => {
                for request in requests {
                    let (channel, is_send) = rank.persistent[request];
                    let posts = &mut self.posts.entry(channel).or_default()[usize::from(!is_send)];
                    posts.push(rank.clock);
                    let event = Event::Message(channel, posts.len() - 1);
                    assert!(rank.pending.insert(*request, event).is_none(), "rank {me}: {request} is active");
                }
            }
            CallOp::Waitall { requests } => {
                let pending = || requests.iter().filter_map(|request| rank.pending.get(request));
                let Some(ends) = pending().map(|event| self.end(*event)).collect::<Option<Vec<f64>>>() else {
                    return false;
                };
                rank.clock = ends.into_iter().fold(rank.clock, f64::max);
                for request in requests {
                    rank.pending.remove(request);
                }
            }
            CallOp::Collective { communicator, request, .. } => {
                // A blocking one is begun once, with a name that no other request has.
                let name = request.unwrap_or(RequestName::new(u32::MAX));
                if !rank.pending.contains_key(&name) {
                    let number = rank.collectives.entry(*communicator).or_default();
                    self.arrivals.entry((*communicator, *number)).or_default().push(rank.clock);
                    rank.pending.insert(name, Event::Collective(*communicator, *number));
                    *number += 1;
                } else {
                    assert!(request.is_none(), "rank {me}: {name} is active");
                }
                if request.is_none() {
                    let Some(end) = self.end(rank.pending[&name]) else { return false };
                    rank.clock = rank.clock.max(end);
                    rank.pending.remove(&name);
                }
            }
            CallOp::Free { request } => assert!(!rank.pending.contains_key(request)),
            other => panic!("{other:?}"),
        }
        true
    }
}

/// Runs all ranks; returns the last end [flop].
fn run(model: Model, parameters: TransformerParameters) -> f64 {
    let transformer = Transformer::new(model, parameters).unwrap();
    let programs: Vec<Vec<Op>> = (0..transformer.ranks())
        .map(|rank| flatten(&transformer.rank(Rank::new(rank))).cloned().collect())
        .collect();
    let mut machine = Machine::default();
    let mut ranks: Vec<IdealRank> = programs.iter().map(|_| IdealRank::default()).collect();
    loop {
        let mut has_moved = false;
        for (me, (rank, program)) in (0..).zip(ranks.iter_mut().zip(&programs)) {
            while let Some(op) = program.get(rank.at)
                && machine.step(me, rank, op)
            {
                rank.at += 1;
                has_moved = true;
            }
        }
        if !has_moved {
            break;
        }
    }
    for (rank, program) in ranks.iter().zip(&programs) {
        assert!(rank.at == program.len() && rank.pending.is_empty(), "a deadlock: {parameters:?}");
    }
    ranks.iter().map(|rank| rank.clock).fold(0.0, f64::max)
}

/// The idle share of a stage is (p - 1) / (v m + p - 1).
#[test]
fn bubbles_of_pipelines_are_those_of_the_closed_form() {
    for (pipeline, interleave, batch) in
        [(2, 1, 4), (4, 1, 2), (4, 1, 8), (8, 1, 8), (4, 2, 8), (2, 4, 6), (2, 2, 2), (4, 2, 16)]
    {
        for overlap in [false, true] {
            let plain = TransformerParameters { batch, overlap, ..TransformerParameters::default() };
            let staged = run(MODEL, TransformerParameters { pipeline, interleave, ..plain });
            let work = run(MODEL, plain) / f64::from(pipeline);
            let bubble = f64::from(pipeline - 1) / f64::from(interleave * batch + pipeline - 1);
            let found = 1.0 - work / staged;
            assert!((found - bubble).abs() < 1e-3, "{pipeline} {interleave} {batch}: {found} {bubble}");
        }
    }
}

#[test]
fn all_layouts_end() {
    let plain = TransformerParameters { batch: 16, iterations: 2, ..TransformerParameters::default() };
    let mut layouts = 0;
    for (tensor, context, data, pipeline, interleave) in
        [(1, 1, 8, 1, 1), (4, 1, 2, 2, 1), (2, 2, 2, 4, 2), (1, 4, 1, 2, 4), (2, 1, 4, 4, 1), (1, 2, 2, 2, 2)]
    {
        for zero in 0..=3 {
            for overlap in [false, true] {
                let recomputation = [Recomputation::None, Recomputation::Full][usize::from(zero % 2 == 1)];
                let layout = TransformerParameters { tensor, context, data, pipeline, interleave, ..plain };
                let layout = TransformerParameters { zero, overlap, recomputation, ..layout };
                run(MODEL, TransformerParameters { sequence_parallel: zero > 1, ..layout });
                run(EXPERTS, TransformerParameters { expert: data, ..layout });
                layouts += 2;
            }
        }
    }
    assert_eq!(layouts, 6 * 4 * 2 * 2);
}
