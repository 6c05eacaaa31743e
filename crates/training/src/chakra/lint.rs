//! Lints: what is suspicious in an execution trace, though it has a schedule, and may make its answer wrong.

use trace_tools::Suspicion;

use super::{ExecutionTrace, Node, NodeKind, ScheduleOptions, Stream};

/// Names of all lints of execution traces, in the order of their output.
pub static CHAKRA_LINTS: [&str; 6] = ["violation", "left-out", "instant", "early", "late", "overlap"];

/// Part of the recorded time of a rank for which a kernel that could begin waits suspiciously long.
const LONG: f64 = 0.1;

impl ExecutionTrace {
    /// Finds what is suspicious. Cost: that of a [schedule](Self::schedule), and O((nodes + dependencies) log nodes).
    pub fn lint(&self) -> Vec<Suspicion> {
        let (violation, left_out) = match self.schedule(&ScheduleOptions::default()) {
            Ok(schedule) => (None, schedule.omissions().collect()),
            Err(error) => (Some(error.to_string()), Vec::new()),
        };
        let [early, late, overlap] = times(self);
        let found = [Vec::from_iter(violation), left_out, instant(self), early, late, overlap];
        let of_lint = |(lint, texts): (&'static str, Vec<String>)| {
            texts.into_iter().map(move |text| Suspicion { lint, text })
        };
        CHAKRA_LINTS.into_iter().zip(found).flat_map(of_lint).collect()
    }
}

/// Nodes of some kind: how many there are, and the worst one.
#[derive(Default)]
struct Worst {
    count: u64,
    micros: u64,
    text: String,
}

impl Worst {
    fn add(&mut self, micros: u64, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.count == 1 || micros > self.micros {
            (self.micros, self.text) = (micros, text());
        }
    }

    fn text(self, what: &str, follows: &str) -> Vec<String> {
        let Self { count, text, .. } = self;
        if count == 0 {
            Vec::new()
        } else {
            vec![format!("{count} operation(s) {what}, most {text}: {follows}")]
        }
    }
}

/// Returns the recorded begin and end of a node \[us\]; `None` for one without work.
fn recorded(node: &Node) -> Option<(u64, u64)> {
    (node.kind != NodeKind::Nothing).then(|| (node.start, node.start.saturating_add(node.micros)))
}

/// Returns whether the nodes of a rank have instants: all are 0 where the recording kept none.
fn has_instants(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| node.start > 0)
}

fn instant(trace: &ExecutionTrace) -> Vec<String> {
    let nodes = || trace.ranks.iter().flatten();
    let is_instant = |node: &&Node| node.kind == NodeKind::Compute && node.micros == 0 && node.work.is_none();
    let mut found = Vec::new();
    match nodes().filter(is_instant).count() {
        0 => {}
        count => found
            .push(format!("{count} computation(s) have neither a duration nor num_ops: they take no time")),
    }
    if !trace.ranks.iter().any(|nodes| has_instants(nodes)) && nodes().next().is_some() {
        found
            .push("no operation has an instant: whether kernels began early or late is not known".to_owned());
    }
    found
}

/// Describes what begins before its dependencies have ended, what begins long after these and the operation before it on its stream, and
/// what begins before that has ended.
fn times(trace: &ExecutionTrace) -> [Vec<String>; 3] {
    let [mut early, mut late, mut overlap] = [(); 3].map(|()| Worst::default());
    for (rank, nodes) in trace.ranks.iter().enumerate().filter(|(_, nodes)| has_instants(nodes)) {
        let before = before_on_stream(nodes);
        let times = || nodes.iter().filter_map(recorded);
        let first = times().map(|(begin, _)| begin).min().unwrap_or(0);
        let long = LONG * times().map(|(_, end)| end).max().unwrap_or(first).saturating_sub(first) as f64;
        for (index, node) in nodes.iter().enumerate() {
            let Some((begin, _)) = recorded(node) else { continue };
            let end = |earlier: &u32| Some((recorded(&nodes[*earlier as usize])?.1, *earlier));
            let last = node.after.iter().filter_map(end).max();
            if let Some((end, earlier)) = last.filter(|(end, _)| *end > begin) {
                let needed = nodes[earlier as usize].id;
                early.add(end - begin, || {
                    format!(
                        "node {} of rank {rank} at {begin} us, where node {needed} ends at {end} us",
                        node.id
                    )
                });
            }
            let ready = last.map(|(end, _)| end).into_iter().chain(before[index]).max().unwrap_or(first);
            let wait = begin.saturating_sub(ready);
            if Stream::of(node).is_some() && wait as f64 > long {
                late.add(wait, || {
                    format!("node {} of rank {rank}, ready at {ready} us, at {begin} us", node.id)
                });
            }
            if let Some(end) = before[index].filter(|end| *end > begin) {
                overlap.add(end - begin, || format!("node {} of rank {rank} at {begin} us", node.id));
            }
        }
    }
    let early = early.text(
        "begin before what they depend on has ended",
        "dependencies or clocks are wrong, and the replay takes longer than what was recorded",
    );
    let follows =
        "something that the trace does not have kept them, and the replay is faster than what was recorded";
    let late = late.text("begin more than a tenth of the recorded time after all was ready", follows);
    let overlap = overlap.text(
        "begin while another one of the same kind goes on",
        "the replay does one of the processor, one computation and one communication at a time",
    );
    [early, late, overlap]
}

/// Returns the nodes of each stream in the order of their recorded begin.
fn by_begin(nodes: &[Node]) -> [Vec<(u64, u64, usize)>; Stream::COUNT] {
    let mut streams: [Vec<_>; Stream::COUNT] = Default::default();
    for (index, node) in nodes.iter().enumerate() {
        if let (Some(stream), Some((begin, end))) = (Stream::of(node), recorded(node)) {
            streams[stream as usize].push((begin, end, index));
        }
    }
    streams.iter_mut().for_each(|stream| stream.sort_unstable());
    streams
}

/// Returns when the operations before each one on its stream have ended \[us\].
fn before_on_stream(nodes: &[Node]) -> Vec<Option<u64>> {
    let mut before = vec![None; nodes.len()];
    for stream in by_begin(nodes) {
        let mut last = None;
        for (_, end, index) in stream {
            before[index] = last;
            last = last.max(Some(end));
        }
    }
    before
}
