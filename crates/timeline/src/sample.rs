//! Sample timeline for the tests of formats.

use std::path::Path;

use mpi_model::{ActionKind, Event, EventSink, WaitState};
use pdes_core::{Bytes, Rank, SimTime};
use trace_mmap::{CommId, LocationId};

use crate::format::Format;
use crate::site_names::SiteNames;
use crate::spool::Spool;
use crate::writer::{Summary, Writer};

pub(crate) fn micros(micros: u64) -> SimTime {
    SimTime::from_picos(1_000_000 * micros)
}

/// Returns the events of a sample: rank 1 waits from 1 to 5 us for a message from rank 0 and gets it at 7 us; then rank
/// 9, which has no other events, gets one.
pub(crate) fn events() -> Vec<Event> {
    use ActionKind::{Bcast, Compute, Finalize, Recv, Send};
    let state = |rank, kind, begin, end| {
        let (begin, end) = (micros(begin), micros(end));
        let site = match kind {
            Recv => Some(LocationId::new(0)),
            Bcast => Some(LocationId::new(1)),
            _ => None,
        };
        Event::State { rank: Rank::new(rank), kind, site, begin, end }
    };
    let message = |from, to, sent, arrived, operation| Event::Message {
        from: Rank::new(from),
        to: Rank::new(to),
        sent: micros(sent),
        arrived: micros(arrived),
        bytes: Bytes::new(984),
        tag: 7,
        communicator: CommId::WORLD,
        operation,
    };
    vec![
        state(0, Compute, 0, 5),
        state(0, Send, 5, 5),
        state(0, Finalize, 5, 5),
        state(1, Compute, 0, 1),
        state(1, Recv, 1, 7),
        Event::Wait {
            rank: Rank::new(1),
            kind: Recv,
            state: WaitState::LateSender,
            site: Some(LocationId::new(0)),
            begin: micros(1),
            end: micros(5),
        },
        state(1, Bcast, 7, 8),
        message(0, 1, 5, 7, None),
        message(1, 9, 7, 8, Some(Bcast)),
    ]
}

/// Says why a test does nothing: a tool is absent. Fails where all have to be there.
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
pub(crate) fn skip(tool: &str) {
    let is_required = std::env::var_os("PDES_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(!is_required, "PDES_REQUIRE_TOOLS=1, and there is no {tool} (tests/prepare installs it)");
    eprintln!("SKIPPED: there is no {tool} (tests/prepare installs it)");
}

/// Writes the sample timeline to a file.
pub(crate) fn write(format: Format, path: &Path) -> Summary {
    let spool = Spool::new(format.order(), path.parent().unwrap()).with_run_records(3);
    events().chunks(2).for_each(|events| spool.record(events));
    let mut sorted = spool.finish().unwrap();
    let ranks: Vec<Rank> = sorted.ranks().collect();
    assert_eq!(ranks, [0, 1, 9].map(Rank::new));
    let mut sites = SiteNames::default();
    for rank in [0, 1] {
        sites.add(Rank::new(rank), ["in.c:7", "out"].map(str::to_owned).into());
    }
    let mut writer = Writer::create(format, path, &ranks, sites).unwrap();
    while let Some(record) = sorted.next().unwrap() {
        writer.write(&record).unwrap();
    }
    let summary = writer.end_events().unwrap().finish().unwrap();
    assert_eq!((summary.states, summary.waits, summary.messages), (6, 1, 2));
    summary
}
