//! A source of actions of another crate: a token that turns back where it is told to.

use std::path::Path;
use std::sync::Arc;

use mpi_model::{ActionSource, ActionSources, Parameters, Replay, Reply};
use pdes_core::{Bytes, Ending, Engine, Process, Rank};
use trace_mmap::{
    Action, Call, CommIdx, LoadOptions, Location, RankBuilders, RankTrace, Source, TableWriter, Tag, Trace,
    TraceError, TraceSource,
};

use crate::runs::Simple;

/// Programs of three ranks, of which nothing is known before they run.
#[derive(Clone, Debug)]
struct Bounce;

impl TraceSource for Bounce {
    fn path(&self) -> &Path {
        Path::new("bounce")
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        Ok(3)
    }

    fn grows(&self) -> bool {
        true
    }

    fn read(&self, _: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        Ok(())
    }

    fn locate(&self, rank: Rank, action: u64) -> Result<Location, TraceError> {
        Err(TraceError::NoSuchAction { rank, action })
    }

    fn fingerprint(&self) -> Result<u64, TraceError> {
        Ok(0)
    }
}

impl ActionSources for Bounce {
    fn source<'t>(&self, rank: Rank, trace: &'t RankTrace) -> Box<dyn ActionSource + 't> {
        let writer = TableWriter::new(trace).expect("the tables grow");
        Box::new(BouncingRank { me: rank, writer, actions: 0 })
    }
}

/// Ranks 1 and 2 send a message to rank 0, which answers whoever is first, with as many bytes as it was told of, and the other with one.
struct BouncingRank<'t> {
    me: Rank,
    writer: TableWriter<'t>,
    actions: u32,
}

impl BouncingRank<'_> {
    fn send(&mut self, to: Rank, bytes: u64) -> Action {
        let to = self.writer.outgoing(to, Tag::new(3), CommIdx::WORLD);
        Action::Send { to, bytes: Bytes::new(bytes) }
    }

    fn receive_from_any(&mut self) -> Action {
        let from = Source::Any { tag: None, communicator: CommIdx::WORLD, recorded: None };
        Action::Call(self.writer.call(Call::Recv { from, bytes: Bytes::new(1000) }))
    }
}

impl ActionSource for BouncingRank<'_> {
    fn next(&mut self, reply: Reply<'_>) -> Result<Option<Action>, Box<str>> {
        self.actions += 1;
        let told = reply.received();
        Ok(match (self.me.get(), self.actions) {
            (0, 1 | 3) => Some(self.receive_from_any()),
            (0, 2) => told.map(|status| self.send(status.source, status.bytes.get())),
            (0, 4) => told.map(|status| self.send(status.source, 1)),
            (me @ 1.., 1) => Some(Action::Compute { flops: f64::from(3 - me) * 1e6 }),
            (me @ 1.., 2) => Some(self.send(Rank::new(0), 100 * u64::from(me))),
            (1.., 3) => Some(self.receive_from_any()),
            (1.., 4) if reply.received().is_none_or(|status| status.source != Rank::new(0)) => {
                return Err("the answer is from another rank".into());
            }
            _ => None,
        })
    }

    fn slots(&self) -> u32 {
        0
    }
}

#[test]
fn a_source_decides_by_what_it_is_told() {
    let trace = Trace::read(Box::new(Bounce), &LoadOptions::default()).unwrap();
    let parameters = Parameters { envelope: Bytes::ZERO, ..Parameters::default() };
    let messages = [1, 2, 3].map(|threads| {
        let replay = Replay::new(&trace, &Simple, &parameters).with_sources(Arc::new(Bounce));
        let run = Engine::new(threads).run(replay.processes().unwrap());
        assert!(matches!(run.ending, Ending::Completed));
        let of_rank = |process: &mpi_model::RankProcess<'_, Simple>| {
            let statistics = process.statistics();
            (process.clock(), process.actions(), statistics.messages, statistics.bytes.get())
        };
        run.processes.iter().map(of_rank).collect::<Vec<_>>()
    });
    assert!(messages.iter().all(|run| *run == messages[0]), "{messages:?}");
    // Rank 2 computes for half as long, and so is answered with its 200 bytes.
    let sent: Vec<_> =
        messages[0].iter().map(|&(_, actions, messages, bytes)| (actions, messages, bytes)).collect();
    assert_eq!(sent, [(4, 2, 201), (3, 1, 100), (3, 1, 200)]);
}
