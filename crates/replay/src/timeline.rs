//! Recording of timelines: the events of all processes are merged into one file.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ::timeline::{
    Counter, CounterWriter, Format, Merge, Record, RecordStreams, SiteNames, SortedRecords, Spool,
    TimelineError, Writer,
};
use mpi_model::{Excerpt, Recording, region_name};
use netmodel::Platform;
use netmodel::storage::Series;
use pdes_core::{Cluster, Rank, SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use trace_mmap::{PairTraffic, RankTrace, Trace, TraceError};

use crate::checkpoint::CheckpointPlan;
use crate::simulation::{Outcome, RunError, ServerUse, Simulation, agree};

/// Number of events that a process sends to the first one at a time: 688 kB.
const BATCH_EVENTS: usize = 1 << 14;

/// File, format and content of the timeline of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelinePlan {
    /// Path of the file, or of the first of the files.
    pub path: PathBuf,
    /// File format.
    pub format: Format,
    /// Ranks and times that it covers.
    pub excerpt: Excerpt,
}

impl TimelinePlan {
    /// Creates the spool that collects the events of this process, beside the timeline, or where it is saved with checkpoints.
    fn spool(&self, checkpoints: Option<&CheckpointPlan>) -> Spool {
        let beside = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
        match checkpoints {
            Some(plan) => Spool::in_checkpoints(self.format.order(), &plan.directory),
            None => Spool::new(self.format.order(), beside.unwrap_or(Path::new("."))),
        }
    }

    /// Returns the instruction to record events in `sink`.
    pub(crate) fn recording<'a>(&'a self, sink: &'a Spool) -> Recording<'a> {
        Recording { excerpt: &self.excerpt, sink }
    }

    /// Adds counters of the I/O servers of a platform to the events: the rates of their devices, within the window of time.
    pub(crate) fn add_servers(&self, spool: &Spool, platform: &Platform, servers: &[ServerUse]) {
        let systems = platform.storage().file_systems();
        for (number, ServerUse { system, host, usage }) in servers.iter().enumerate() {
            let (host, directory) = (&platform.host(*host).name, &systems[system.index()].directory);
            let part = format!("I/O server {number} of {directory} on {host}");
            for (name, series) in [("read [B/s]", &usage.read), ("write [B/s]", &usage.written)] {
                let values = rates(series, &self.excerpt.window);
                if !values.is_empty() {
                    spool.add_counter(Counter { part: part.clone(), name: name.into(), values });
                }
            }
        }
    }

    /// Writes the events of a run on one process, but does not complete the file.
    fn write(&self, spool: &Spool, trace: &Trace) -> Result<CounterWriter, RunError> {
        tracing::info!("sorting and writing the timeline {}", self.path.display());
        let mut sorted = spool.finish()?;
        let mut writer = self.writer(sorted.ranks(), trace)?;
        while let Some(record) = sorted.next()? {
            writer.write(&record)?;
        }
        let mut writer = writer.end_events()?;
        sorted.counters().iter().try_for_each(|counter| writer.write(counter))?;
        Ok(writer)
    }

    /// Writes the events of a run on all processes of a cluster. The first process writes the file, and does not complete it.
    fn write_distributed(
        &self,
        spool: &Spool,
        trace: &Trace,
        cluster: &mut Cluster,
    ) -> Result<Option<CounterWriter>, RunError> {
        let own = agree(cluster, spool.finish().map_err(RunError::from))?;
        let ranks = cluster.gather(own.ranks().collect::<Vec<_>>())?;
        if cluster.member() > 0 {
            let sent = send_batches(own, cluster)?;
            return agree(cluster, sent.map(|()| None).map_err(RunError::from));
        }
        let written = self.collect(own, ranks.into_iter().flatten(), trace, cluster);
        // The other processes wait for requests, whatever has happened here.
        cluster.broadcast(Some(Request::End))?;
        agree(cluster, written.map(Some))
    }

    /// Writes the events of all processes.
    fn collect(
        &self,
        own: SortedRecords,
        ranks: impl Iterator<Item = Rank>,
        trace: &Trace,
        cluster: &mut Cluster,
    ) -> Result<CounterWriter, RunError> {
        tracing::info!("merging the timeline {} from {} processes", self.path.display(), cluster.members());
        let mut writer = self.writer(ranks, trace)?;
        let counters = own.counters().to_vec();
        let members = cluster.members();
        let mut merge = Merge::new(ProcessStreams { own, cluster }, members)?;
        while let Some(record) = merge.next()? {
            writer.write(&record)?;
        }
        let mut writer = writer.end_events()?;
        counters.iter().try_for_each(|counter| writer.write(counter))?;
        Ok(writer)
    }

    /// Creates the writer for the events of these ranks, of which each may occur several times. Ranks of other processes are read for
    /// the names of their call sites.
    fn writer(&self, ranks: impl Iterator<Item = Rank>, trace: &Trace) -> Result<Writer, RunError> {
        let ranks: BTreeSet<Rank> = ranks.collect();
        let mut sites = SiteNames::default();
        for &rank in ranks.iter().filter(|rank| self.excerpt.includes(**rank)) {
            let names = |trace: &RankTrace| trace.locations().map(region_name).map(str::to_owned).collect();
            sites.add(rank, trace.with_rank(rank, names).map_err(TraceError::from)?);
        }
        Ok(Writer::create(self.format, &self.path, &ranks.into_iter().collect::<Vec<_>>(), sites)?)
    }
}

/// Values over time that are known when a run has ended, for its timeline.
pub trait TimelineCounters: fmt::Debug + Send + Sync {
    /// Returns the counters of a run with this outcome, on the first process.
    fn counters(&self, simulation: &Simulation, outcome: &Outcome) -> Vec<Counter>;
}

/// A timeline that lacks its counters and its end. One that is dropped leaves no file.
#[derive(Clone, Debug, Default)]
pub struct OpenTimeline(Arc<Mutex<Option<CounterWriter>>>);

/// Returns values within a window; the first one may have begun before.
fn within(values: &[(SimTime, f64)], window: &Range<SimTime>) -> Vec<(SimTime, f64)> {
    let first = values.partition_point(|(from, _)| *from <= window.start).saturating_sub(1);
    let shown = values[first..].iter().take_while(|(from, _)| *from < window.end);
    shown.map(|&(from, value)| (from.max(window.start), value)).collect()
}

/// Returns the rates of a series [B/s], from each instant on at which they change, within a window; none if they are all zero.
fn rates(series: &Series, window: &Range<SimTime>) -> Vec<(SimTime, f64)> {
    let width = series.width_ps();
    let begin = |interval: u64| SimTime::from_picos(interval.saturating_mul(width));
    let amounts = series.amounts().iter().copied().chain([0]);
    let mut values: Vec<(SimTime, f64)> = Vec::new();
    for (interval, amount) in (0..).zip(amounts) {
        let rate = amount as f64 / SimDuration::from_picos(width).as_secs_f64();
        let from = begin(interval).max(window.start);
        let is_new = values.last().map_or(rate > 0.0, |last| last.1 != rate);
        if is_new && begin(interval + 1) > window.start && from < window.end {
            values.push((from, rate));
        }
    }
    values
}

/// Size of a timeline that is not yet written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimelineEstimate {
    /// Number of states.
    pub states: u64,
    /// Number of messages, without those inside collective operations.
    pub messages: u64,
    /// Size of its files \[B\].
    pub bytes: f64,
}

impl Simulation {
    /// Returns the size that the timeline of this run will have at most, about, if one is requested: a state for each action of its ranks, and the
    /// messages from them and to them, whatever the window of time. The cost is linear in the pairs of ranks that send messages; text is read as
    /// a whole.
    ///
    /// # Errors
    /// Fails if the trace is damaged.
    pub fn timeline_estimate(&self) -> Result<Option<TimelineEstimate>, RunError> {
        let Some(plan) = &self.spec().timeline else { return Ok(None) };
        let (trace, excerpt) = (self.trace(), &plan.excerpt);
        let included = excerpt.ranks.end.min(trace.ranks()).saturating_sub(excerpt.ranks.start);
        let states =
            (u128::from(trace.actions()) * u128::from(included) / u128::from(trace.ranks().max(1))) as u64;
        let pairs = PairTraffic::all(trace).map_err(TraceError::from)?;
        let is_shown = |pair: &&PairTraffic| excerpt.includes(pair.from) || excerpt.includes(pair.to);
        let messages = pairs.iter().filter(is_shown).map(|pair| pair.messages).sum();
        let (state, message) = plan.format.event_bytes(&plan.path);
        Ok(Some(TimelineEstimate {
            states,
            messages,
            bytes: states as f64 * state + messages as f64 * message,
        }))
    }

    /// Creates the spool that collects the events of this process, if a timeline is requested.
    pub(crate) fn spool(&self) -> Option<Spool> {
        let spec = self.spec();
        spec.timeline.as_ref().map(|timeline| timeline.spool(spec.checkpoints.as_ref()))
    }

    /// Returns the instruction to record events, if a timeline is requested or the events have another consumer.
    pub(crate) fn recording<'a>(&'a self, spool: Option<&'a Spool>) -> Option<Recording<'a>> {
        if let Some((excerpt, sink)) = self.event_sink() {
            return Some(Recording { excerpt, sink });
        }
        Some(self.spec().timeline.as_ref()?.recording(spool?))
    }

    /// Writes the recorded events of a run on all processes of a cluster.
    pub(crate) fn write_timeline(
        &self,
        spool: Option<&Spool>,
        cluster: &mut Cluster,
    ) -> Result<OpenTimeline, RunError> {
        let Some((plan, spool)) = self.spec().timeline.as_ref().zip(spool) else {
            return Ok(OpenTimeline::default());
        };
        let writer = match cluster.members() {
            1 => Some(plan.write(spool, self.trace())?),
            _ => plan.write_distributed(spool, self.trace(), cluster)?,
        };
        Ok(OpenTimeline(Arc::new(Mutex::new(writer))))
    }

    /// Adds the counters that the specification asks for to the timeline of a run, and completes it.
    pub(crate) fn finish_timeline(&self, mut outcome: Outcome) -> Result<Outcome, RunError> {
        let writer = outcome.open_timeline.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((plan, mut writer)) = self.spec().timeline.as_ref().zip(writer) else { return Ok(outcome) };
        for source in &self.spec().timeline_counters {
            for mut counter in source.counters(self, &outcome) {
                counter.values = within(&counter.values, &plan.excerpt.window);
                writer.write(&counter)?;
            }
        }
        outcome.programs[0].timeline = Some(writer.finish()?);
        Ok(outcome)
    }
}

/// The event streams of all processes, merged on the first one.
struct ProcessStreams<'c> {
    own: SortedRecords,
    cluster: &'c mut Cluster,
}

impl RecordStreams for ProcessStreams<'_> {
    type Error = RunError;

    fn next_batch(&mut self, member: usize) -> Result<Vec<Record>, RunError> {
        if member == 0 {
            return Ok(self.own.next_batch(BATCH_EVENTS)?);
        }
        self.cluster.broadcast(Some(Request::Batch { member }))?;
        let parts = self.cluster.gather(Vec::<u8>::new())?;
        Ok(Record::from_bytes(&parts[member]))
    }
}

/// A request of the first process to all others.
#[derive(Serialize, Deserialize)]
enum Request {
    /// The next events of a process.
    Batch { member: usize },
    /// No more events.
    End,
}

/// Sends events of this process as long as the first process requests them. A process that fails reports it after the last request.
fn send_batches(
    mut own: SortedRecords,
    cluster: &mut Cluster,
) -> Result<Result<(), TimelineError>, RunError> {
    let mut failure = Ok(());
    loop {
        let Request::Batch { member } = cluster.broadcast(None)? else { return Ok(failure) };
        let mut bytes = Vec::new();
        if member == cluster.member() && failure.is_ok() {
            match own.next_batch(BATCH_EVENTS) {
                Ok(piece) => piece.iter().for_each(|record| bytes.extend_from_slice(record.as_bytes())),
                Err(error) => failure = Err(error),
            }
        }
        cluster.gather(bytes)?;
    }
}
