//! Parameters of a machine that are multiplied, to learn what depends on them.

use std::ops::Deref;
use std::sync::Arc;

use mpi_model::Parameters;
use netmodel::{LinkId, Platform};
use pdes_core::SimDuration;
use replay::{PlatformChange, Polling, RunSpec};
use tempfile::TempPath;

use crate::link_group::LinkGroup;
use crate::messages::{MessageError, MessageGroup};

/// A time of a machine that can be multiplied: a run time is a sum of such times, each so many times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The latencies of some links.
    Latency(LinkGroup),
    /// The times per byte of some links: the reciprocals of their bandwidths.
    TimePerByte(LinkGroup),
    /// The time per flop of all hosts: the reciprocal of their speed.
    TimePerFlop,
    /// The computations in a region of the program, or at a call site.
    Work(String),
    /// The sizes of messages between two ranks, collective operations aside.
    Messages(MessageGroup),
    /// The costs of calls in the MPI library.
    Library,
}

/// A run with a changed parameter.
#[derive(Debug)]
pub struct ScaledRun {
    spec: RunSpec,
    /// The factor that the parameter has: sizes of messages are whole bytes.
    pub(crate) factor: f64,
    /// Keeps the changed trace as long as the run.
    _trace: Option<TempPath>,
}

impl Deref for ScaledRun {
    type Target = RunSpec;

    fn deref(&self) -> &RunSpec {
        &self.spec
    }
}

impl Parameter {
    /// Returns the parameters of a run on a platform: those of all links, and, where there are several, of each group of links; of hosts;
    /// of the work in `regions` of the program, and of its messages; of the MPI library.
    pub fn all(platform: &Platform, regions: Vec<String>, messages: Vec<MessageGroup>) -> Vec<Self> {
        let mut groups = LinkGroup::groups(platform);
        if groups.len() == 1 {
            groups.clear();
        }
        groups.insert(0, LinkGroup::all());
        let latencies = groups.iter().cloned().map(Self::Latency);
        let times_per_byte = groups.iter().cloned().map(Self::TimePerByte);
        let messages = messages.into_iter().map(Self::Messages);
        let of_program = regions.into_iter().map(Self::Work).chain(messages).chain([Self::Library]);
        latencies.chain(times_per_byte).chain([Self::TimePerFlop]).chain(of_program).collect()
    }

    /// Returns the name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Latency(_) => "latency",
            Self::TimePerByte(_) => "time per byte",
            Self::TimePerFlop => "time per flop",
            Self::Work(_) => "work",
            Self::Messages(_) => "messages",
            Self::Library => "costs of the library",
        }
    }

    /// Returns the links, or the region of the program, that have the parameter; `None` if it is of the whole machine.
    pub fn place(&self) -> Option<&str> {
        match self {
            Self::Latency(links) | Self::TimePerByte(links) => Some(&links.name),
            Self::Work(region) => Some(region),
            Self::Messages(messages) => messages.place(),
            Self::TimePerFlop | Self::Library => None,
        }
    }

    /// Returns the number of links or hosts that have the parameter; 1 if it is of the program or of the library.
    pub fn count(&self, platform: &Platform) -> usize {
        match self {
            Self::Latency(links) | Self::TimePerByte(links) => links.of(platform).count(),
            Self::TimePerFlop => platform.hosts().len(),
            Self::Work(_) | Self::Messages(_) | Self::Library => 1,
        }
    }

    /// Returns the value \[s, s/B or s/flop\]; `None` unless all links or hosts have the same.
    pub fn value(&self, platform: &Platform) -> Option<f64> {
        match self {
            Self::Latency(links) => links.value(platform, |link| link.latency),
            Self::TimePerByte(links) => links.value(platform, |link| link.bandwidth.recip()),
            Self::TimePerFlop => {
                let speed = platform.hosts().first()?.speed;
                platform.hosts().iter().all(|host| host.speed == speed).then_some(speed.recip())
            }
            Self::Work(_) | Self::Messages(_) | Self::Library => None,
        }
    }

    /// Returns whether the parameter is one of all links of the platform.
    pub(crate) fn is_of_all_links(&self) -> bool {
        matches!(self, Self::Latency(links) | Self::TimePerByte(links) if links.links.is_none())
    }

    /// Returns whether the parameter has whole values, so that not all factors are possible.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Self::Messages(_))
    }

    /// Returns a run in which the parameter is multiplied by a factor above 0.
    ///
    /// # Errors
    /// Returns an error if the sizes of messages cannot be changed.
    pub fn scaled(&self, spec: &RunSpec, factor: f64) -> Result<ScaledRun, MessageError> {
        let mut spec = spec.clone();
        match self {
            Self::Latency(LinkGroup { links, .. }) => {
                let links = links.clone();
                spec.platform_changes.push(Arc::new(ScaledLinks {
                    links,
                    latency: factor,
                    time_per_byte: 1.0,
                }));
            }
            Self::TimePerByte(LinkGroup { links, .. }) => {
                let links = links.clone();
                spec.platform_changes.push(Arc::new(ScaledLinks {
                    links,
                    latency: 1.0,
                    time_per_byte: factor,
                }));
            }
            Self::TimePerFlop => spec.platform_changes.push(Arc::new(ScaledHosts { time_per_flop: factor })),
            Self::Work(region) => {
                *spec.mpi.region_speeds.entry(region.clone()).or_insert(1.0) /= factor;
            }
            Self::Library => scale_library(&mut spec, factor),
            Self::Messages(messages) => {
                let (trace, factor) = messages.resized(&spec, factor)?;
                spec.trace = trace.to_path_buf().into();
                return Ok(ScaledRun { spec, factor, _trace: Some(trace) });
            }
        }
        Ok(ScaledRun { spec, factor, _trace: None })
    }
}

/// Links whose latencies and times per byte are multiplied.
#[derive(Debug)]
struct ScaledLinks {
    /// The links, in ascending order; `None` stands for all.
    links: Option<Arc<[LinkId]>>,
    latency: f64,
    time_per_byte: f64,
}

impl PlatformChange for ScaledLinks {
    fn apply(&self, platform: &mut Platform) {
        let is_scaled = |link| self.links.as_ref().is_none_or(|links| links.binary_search(&link).is_ok());
        platform.scale_links(is_scaled, self.latency, self.time_per_byte.recip());
    }
}

/// Hosts whose times per flop are multiplied.
#[derive(Debug)]
struct ScaledHosts {
    time_per_flop: f64,
}

impl PlatformChange for ScaledHosts {
    fn apply(&self, platform: &mut Platform) {
        platform.scale_speeds(self.time_per_flop.recip());
    }
}

/// Multiplies the costs of calls in the library.
fn scale_library(spec: &mut RunSpec, factor: f64) {
    let scaled = |time: SimDuration| SimDuration::from_picos_f64(time.as_picos() as f64 * factor);
    let mpi = &spec.mpi;
    spec.mpi = Parameters {
        send: mpi.send.scaled(factor),
        isend: mpi.isend.scaled(factor),
        receive: mpi.receive.scaled(factor),
        irecv: scaled(mpi.irecv),
        call_overheads: mpi.call_overheads.iter().map(|(&call, cost)| (call, cost.scaled(factor))).collect(),
        ..mpi.clone()
    };
    spec.polling = Polling {
        test: spec.polling.test.map(scaled),
        iprobe: spec.polling.iprobe.map(scaled),
        ..spec.polling
    };
}
