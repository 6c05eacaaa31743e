//! Traces of Extrae with published metrics, beside the repository.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;

use pdes_core::Rank;
use trace_mmap::{Action, CallOp, LoadOptions, Op, Peer, Tag, Trace, check, nanos};

use crate::shared::shared;

/// The expected values of a sample by their names.
struct Expected(BTreeMap<String, String>);

impl Expected {
    fn read(file: &Path, sample: &str) -> Self {
        let text = fs::read_to_string(file).expect("the table is there");
        let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let of_sample = rows.filter(|row| row[0] == sample);
        Self(of_sample.map(|row| (row[1].to_owned(), row[2].to_owned())).collect())
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("{name} is no row"))
    }

    fn number(&self, name: &str) -> f64 {
        self.text(name).parse().expect("a number")
    }
}

/// The sums of a trace.
#[derive(Default)]
struct Sums {
    /// Number of calls by the name of the function.
    calls: BTreeMap<&'static str, u64>,
    messages: u64,
    message_bytes: u64,
    /// The times of each rank.
    ranks: Vec<Times>,
}

/// The times of a rank [ns].
#[derive(Default)]
struct Times {
    computed: u64,
    slept: u64,
    all: u64,
}

/// The functions that are read as one action that only asks for objects or makes them.
const LOCAL: [&str; 5] =
    ["MPI_Cart_create", "MPI_Comm_dup", "MPI_Comm_free", "MPI_Comm_rank", "MPI_Comm_size"];

impl Sums {
    fn of(trace: &Trace) -> Self {
        let mut sums = Self::default();
        for rank in (0..trace.ranks()).map(Rank::new) {
            for op in trace.ops(rank) {
                sums.add(&op);
            }
            let mut times = Times::default();
            for (action, time) in trace.rank(rank).measured().expect("it has measured times") {
                let time = nanos(time.expect("every action has a time"));
                times.all += time;
                match action {
                    Action::Compute { .. } => times.computed += time,
                    Action::Sleep { .. } => times.slept += time,
                    _ => {}
                }
            }
            sums.ranks.push(times);
        }
        sums
    }

    fn add(&mut self, op: &Op) {
        let (name, sent) = match op {
            Op::Init => ("MPI_Init", None),
            Op::Finalize => ("MPI_Finalize", None),
            Op::Communicator => ("local", None),
            Op::Send { peer, bytes, .. } => ("MPI_Send", peer.map(|_| bytes)),
            Op::Recv { .. } => ("MPI_Recv", None),
            Op::SendRecv { to, send_bytes, .. } => ("MPI_Sendrecv", to.map(|_| send_bytes)),
            Op::Call(CallOp::SendRecv { to, send_bytes, .. }) => {
                ("MPI_Sendrecv", to.peer.map(|_| send_bytes))
            }
            Op::Collective(operation) => match operation.name() {
                "allreduce" => ("MPI_Allreduce", None),
                "barrier" => ("MPI_Barrier", None),
                "bcast" => ("MPI_Bcast", None),
                name => panic!("{name} is no call of the samples"),
            },
            Op::Compute { .. } | Op::Sleep { .. } => return,
            other => panic!("{other:?} is no operation of the samples"),
        };
        *self.calls.entry(name).or_default() += 1;
        self.messages += u64::from(sent.is_some());
        self.message_bytes += sent.map_or(0, |bytes| bytes.get());
    }
}

/// Next event of a rank in an ideal replay.
enum Step {
    /// Computes or sleeps [ns].
    Time(f64),
    /// Sends at once, then waits for a message.
    Messages { to: Option<(Rank, Tag)>, from: Option<(Rank, Tag)> },
    /// Waits for all ranks.
    Barrier,
}

impl Step {
    fn of(op: &Op) -> Self {
        match op {
            Op::Compute { flops } => Self::Time(*flops),
            Op::Sleep { seconds } => Self::Time(seconds * 1e9),
            Op::Send { peer, tag, .. } => Self::Messages { to: peer.map(|peer| (peer, *tag)), from: None },
            Op::Recv { peer, tag, .. } => Self::Messages { to: None, from: peer.zip(*tag) },
            Op::SendRecv { to, from, .. } => {
                let tag = Tag::new(0);
                Self::Messages { to: to.map(|peer| (peer, tag)), from: from.map(|peer| (peer, tag)) }
            }
            Op::Call(CallOp::SendRecv { to, from, .. }) => {
                let source = match from.peer {
                    Peer::Rank(peer) => Some(peer),
                    _ => None,
                };
                Self::Messages { to: to.peer.map(|peer| (peer, to.tag)), from: source.zip(from.tag) }
            }
            Op::Collective(_) => Self::Barrier,
            _ => Self::Time(0.0),
        }
    }
}

/// Replays a trace on a network without latency and with any bandwidth, where collective operations are barriers, and returns the run
/// time [ns].
fn ideal_run_time(trace: &Trace) -> f64 {
    let ranks = || (0..trace.ranks()).map(Rank::new);
    let mut programs: Vec<_> =
        ranks().map(|rank| trace.ops(rank).map(|op| Step::of(&op)).peekable()).collect();
    let mut now = vec![0.0_f64; programs.len()];
    // Times of the messages of each sender, receiver and tag; and whether a rank has sent that of its current step.
    let mut messages = BTreeMap::<_, VecDeque<f64>>::new();
    let mut has_sent = vec![false; programs.len()];
    loop {
        let mut is_stuck = true;
        for me in ranks() {
            let place = me.index();
            while let Some(step) = programs[place].peek() {
                match step {
                    Step::Time(time) => now[place] += time,
                    Step::Barrier => break,
                    Step::Messages { to, from } => {
                        if let Some((peer, tag)) = to.filter(|_| !has_sent[place]) {
                            messages.entry((me, peer, tag)).or_default().push_back(now[place]);
                        }
                        has_sent[place] = true;
                        if let Some((peer, tag)) = *from {
                            let queue = messages.entry((peer, me, tag)).or_default();
                            let Some(sent) = queue.pop_front() else { break };
                            now[place] = now[place].max(sent);
                        }
                    }
                }
                has_sent[place] = false;
                is_stuck = false;
                programs[place].next();
            }
        }
        let last = now.iter().copied().fold(0.0, f64::max);
        if is_stuck {
            let are_all_there =
                programs.iter_mut().all(|program| matches!(program.peek(), Some(Step::Barrier)));
            if !are_all_there {
                assert!(programs.iter_mut().all(|program| program.peek().is_none()), "the replay is stuck");
                return last;
            }
            now.fill(last);
            for program in &mut programs {
                program.next();
            }
        }
    }
}

/// Asserts that a value is that of the table to all of its digits.
fn assert_digits(expected: &Expected, name: &str, found: f64, what: &str) {
    let digits = expected.text(name).split_once('.').map_or(0, |(_, fraction)| fraction.len());
    assert_eq!(format!("{found:.digits$}"), expected.text(name), "{what}: {name}");
}

#[test_with::shared]
fn traces_of_extrae_have_the_published_counts_and_metrics() {
    let samples = shared("samples/paraver");
    for (sample, ranks) in [("epoch_1proc", 1), ("epoch_2proc", 2), ("epoch_8proc", 8)] {
        let expected = Expected::read(&samples.join("expected.csv"), sample);
        let file = samples.join("data").join(sample).with_extension("prv.gz");
        let trace = trace_tools::load(&file, &LoadOptions::default()).expect("the trace loads");
        assert_eq!(trace.ranks(), ranks);
        assert_eq!(trace.unreceived(), None, "{sample}");
        let sums = Sums::of(&trace);

        let local: f64 = LOCAL.iter().map(|name| expected.number(&format!("calls_{name}"))).sum();
        assert_eq!(sums.calls["local"] as f64, local, "{sample}");
        for (row, value) in &expected.0 {
            if let Some(name) = row.strip_prefix("calls_").filter(|name| !LOCAL.contains(name)) {
                assert_eq!(sums.calls[name].to_string(), *value, "{sample}: {name}");
            }
        }
        assert_eq!(sums.messages.to_string(), expected.text("messages"), "{sample}");
        assert_eq!(sums.message_bytes.to_string(), expected.text("message_bytes"), "{sample}");

        let largest = |time: fn(&Times) -> u64| sums.ranks.iter().map(time).max().expect("it has ranks");
        let duration = largest(|times| times.all);
        assert_eq!(duration.to_string(), expected.text("trace_duration"), "{sample}");
        let total: u64 = sums.ranks.iter().map(|times| times.computed).sum();
        let most = largest(|times| times.computed) as f64;
        let mean = total as f64 / f64::from(ranks);
        let (balance, communication) = (mean / most, most / duration as f64);
        assert_digits(&expected, "load_balance", balance, sample);
        assert_digits(&expected, "communication_efficiency", communication, sample);
        assert_digits(&expected, "parallel_efficiency", balance * communication, sample);
        assert_digits(&expected, "useful_average", mean / 1e3, sample);
        assert_digits(&expected, "useful_maximum", most / 1e3, sample);
        assert_digits(&expected, "useful_total", total as f64 / 1e3, sample);
        // All time outside MPI is useful in Dimemas.
        let outside = largest(|times| times.computed + times.slept) as f64;
        assert_digits(&expected, "useful_maximum_in_ideal_replay", outside / 1e3, sample);
        assert_eq!(check(&trace, None).findings, [], "{sample}");
        let (found, dimemas) = (ideal_run_time(&trace) / 1e3, expected.number("runtime_ideal_network"));
        let tolerance = if ranks < 8 { 0.005 } else { 6e-4 * dimemas };
        assert!((found - dimemas).abs() <= tolerance, "{sample}: {found} us, in Dimemas {dimemas} us");
    }
}
