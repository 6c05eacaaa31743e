//! The interface of network models: work with tags goes in at an instant, tags come out on its completion.

use std::ops::Range;

use pdes_core::{Bytes, LpId, SimDuration, SimTime, State, StateVisitor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{HostId, HostTotals, LinkLoads, RouteError};

/// Abilities of a network model, on which the execution of a replay depends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The state can be saved and loaded: see [`visit`](NetworkModel::visit).
    pub checkpoint: bool,
    /// The state can be observed and repeated, so that iterations which only shift all ranks in time can be counted instead
    /// of replayed.
    pub fast_forward: bool,
    /// Links have loads, which can be recorded.
    pub links: bool,
    /// Computations share the cores of their host.
    pub cores: bool,
    /// Hosts have loads, which can be recorded.
    pub host_loads: bool,
    /// Resources [change](crate::ResourceChanges) as the platform says.
    pub changes: bool,
    /// Factors of latency and rate, the TCP window and cross traffic of [`NetworkParameters`](crate::NetworkParameters) have an effect.
    pub factors: bool,
    /// Rates are max-min fair at every event, or those of the message alone, so that a certificate of them can be verified.
    pub certificate: bool,
    /// No event depends on a [change](Capabilities::changes) of resources after it: until a change, states are those of a machine that does
    /// not change.
    pub foresees_no_changes: bool,
    /// Work that is in progress can be [abandoned](NetworkModel::abandon).
    pub abandonment: bool,
    /// Switches carry out [operations](NetworkModel::operate).
    pub switch_operations: bool,
}

impl Capabilities {
    /// The capabilities of a model that only does what [`NetworkModel`] requires.
    pub const NONE: Self = Self {
        checkpoint: false,
        fast_forward: false,
        links: false,
        cores: false,
        host_loads: false,
        changes: false,
        factors: false,
        certificate: false,
        foresees_no_changes: false,
        abandonment: false,
        switch_operations: false,
    };
}

/// A message from one host to another, with its place in the order of messages.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub struct Message<T> {
    /// Sending time.
    pub at: SimTime,
    /// Order number among the messages of that instant.
    pub order: u64,
    /// Logical process that submits it. Messages of one process with one time and one order number stay in the order of submission.
    pub submitter: LpId,
    /// Host at which it is submitted: not the sending one if a rendezvous waited for its receiver.
    pub origin: HostId,
    /// The host that sends it.
    pub src: HostId,
    /// The host that receives it.
    pub dst: HostId,
    /// Its size on the wire.
    pub size: Bytes,
    /// Tag of the caller.
    pub tag: T,
}

impl<T> Message<T> {
    /// Makes a message whose order is that of its submission.
    pub fn new(at: SimTime, src: HostId, dst: HostId, size: Bytes, tag: T) -> Self {
        Self { at, order: 0, submitter: LpId::new(0), origin: src, src, dst, size, tag }
    }
}

/// An operation of the hosts of a communicator that switches carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchOperation {
    /// Number of the communicator, below 2^31.
    pub communicator: u32,
    /// Number of the operation among those on the communicator, the same at all hosts.
    pub number: u32,
    /// Kind of the operation.
    pub kind: SwitchOperationKind,
}

/// Kind of an operation of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SwitchOperationKind {
    /// All hosts send, switches combine the vectors, and all hosts receive the result.
    Allreduce,
    /// All hosts send, and one of them receives the result.
    Reduce {
        /// That host.
        to: HostId,
    },
    /// One host sends, and switches copy its vector to the others.
    Bcast {
        /// That host.
        from: HostId,
    },
}

impl SwitchOperationKind {
    /// Returns whether a host sends.
    pub fn sends(self, host: HostId) -> bool {
        match self {
            Self::Allreduce | Self::Reduce { .. } => true,
            Self::Bcast { from } => from == host,
        }
    }

    /// Returns whether a host receives.
    pub fn receives(self, host: HostId) -> bool {
        match self {
            Self::Allreduce => true,
            Self::Reduce { to } => to == host,
            Self::Bcast { from } => from != host,
        }
    }
}

/// A region of a machine, with the computations and messages of its hosts, driven event by event; the whole machine is one region.
///
/// `T` is the tag that the caller attaches to a message, a computation or a timer, and gets back on its completion. Callers
/// are generic over the model, so that an event costs no indirect call.
///
/// Where there are several regions, time is divided into spans of one length, epochs or windows. During a span a region depends on
/// nothing outside; at the boundary before it, regions exchange messages. The methods for this do nothing unless a model has them.
///
/// # Laws
/// 1. Work is submitted at an instant that is not before the last [`advance`](NetworkModel::advance).
/// 2. [`advance`](NetworkModel::advance) moves [`now`](NetworkModel::now) to the instant that
///    [`next_event`](NetworkModel::next_event) returned, or further in its span, never back.
/// 3. Each tag is completed once, unless it is [abandoned](NetworkModel::abandon); that of a message between two regions, once in each, or in that of the receiver if it has
///    [left](NetworkModel::take_left) in that of the sender.
/// 4. Times and the order of completions depend on the sequence of calls only.
/// 5. What a region sends to another one takes effect at the next boundary at the earliest.
pub trait NetworkModel<T: Copy> {
    /// Message between regions; `()` if the model has one region only.
    type Message: Send + Serialize + DeserializeOwned;
    /// Maximum number of rounds of each exchange at a boundary.
    const MAX_ROUNDS: &'static [u32] = &[];
    /// Spans may begin at any instant, and be shorter: results do not depend on it.
    const BEGINS_ANYWHERE: bool = false;
    /// The last byte of a message leaves its sender before it arrives, and [that](NetworkModel::take_left) is reported apart. Otherwise
    /// one completion is that of both ends.
    const ENDS_APART: bool = false;

    /// Sends a message, or forwards it to the region of the sending host.
    ///
    /// # Errors
    /// If there is no route.
    fn send(&mut self, message: Message<T>) -> Result<(), RouteError>;

    /// Lets a host of the region take part in an operation of switches: at the sending time of the message, with a vector of its size. The
    /// tag is completed when the host has received the last byte or, if it receives nothing, when the last byte has left it. Only models
    /// that [have switches](Capabilities::switch_operations) are asked.
    fn operate(&mut self, _message: Message<T>, _operation: SwitchOperation)
    where
        Self: Sized,
    {
        unreachable!("the model has no switches, and says so")
    }

    /// Runs a computation of `flops` floating-point operations on a host of the region.
    fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: T);

    /// Completes `tag` at an instant.
    fn schedule(&mut self, at: SimTime, tag: T);

    /// Drops the work whose tags these are, at an instant before which no event is left: its messages leave the network, its computations
    /// free their cores, and nothing of it is completed. Only models that [can](Capabilities::abandonment) are asked.
    fn abandon(&mut self, _at: SimTime, _is_dropped: impl Fn(T) -> bool)
    where
        Self: Sized,
    {
        unreachable!("the model cannot abandon work, and says so")
    }

    /// Returns the time of the next event; [`SimTime::MAX`] if that is beyond the range of simulated time.
    fn next_event(&mut self) -> Option<SimTime>;

    /// Returns an instant before which no message arrives nor a timer ends, if work is submitted from `submission` on, and after the next
    /// event; a computation may end before.
    fn undisturbed_until(&mut self, submission: SimTime) -> SimTime {
        self.next_event().map_or(submission, |next| next.min(submission))
    }

    /// Advances to the next event, perhaps further in its span until anything completes or leaves, and appends the tags completed by then,
    /// possibly none.
    fn advance(&mut self, done: &mut Vec<T>);

    /// Appends the tags of messages of which the last byte left the sender at the last event; their completions are those of the receivers.
    fn take_left(&mut self, _left: &mut Vec<T>) {}

    /// Returns the instant of the last event, or of the last boundary.
    fn now(&self) -> SimTime;

    /// Returns the tags of all work that is submitted and not complete.
    fn unfinished(&self) -> impl Iterator<Item = T> + '_;

    /// Appends the messages to regions that were sent since the last call, each with its receiver.
    fn take_messages(&mut self, _messages: &mut Vec<(u32, Self::Message)>) {}

    /// Receives a message of another region, or of this one.
    fn receive(&mut self, _message: Self::Message) {}

    /// Returns the next boundary at which the region has work or messages to send.
    fn next_boundary(&self) -> Option<SimTime> {
        None
    }

    /// Takes part in a round of an exchange at the boundary before a span.
    fn exchange_round(&mut self, _span: Range<SimTime>, _exchange: u32, _round: u32) {}

    /// Begins the span after a boundary, when all exchanges are over.
    fn begin_span(&mut self, _span: Range<SimTime>) {}

    /// Counts spans from an instant at which none is in progress.
    fn count_spans_from(&mut self, _origin: SimTime) {}

    /// Returns whether work came too late to be simulated in the order of time.
    fn is_late(&self) -> bool {
        false
    }

    /// Enables the recording of link loads, if the model has [links](Capabilities::links).
    #[must_use]
    fn with_link_loads(self) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// Returns the link loads up to an instant that is not before the last [`advance`](NetworkModel::advance); `None` or
    /// no loads unless they were [recorded](NetworkModel::with_link_loads).
    fn link_loads(&mut self, _end: SimTime) -> Option<LinkLoads> {
        None
    }

    /// Enables the recording of host loads, if the model has [them](Capabilities::host_loads).
    #[must_use]
    fn with_host_loads(self) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// Returns the loads of hosts so far; none unless they were [recorded](NetworkModel::with_host_loads).
    fn host_totals(&self) -> Vec<HostTotals> {
        Vec::new()
    }

    /// Visits everything on which the future of the model depends, after [`next_event`](NetworkModel::next_event), or at the begin of a
    /// span. A model whose state cannot be [saved](Capabilities::checkpoint), or cannot [recur](Capabilities::fast_forward), refuses; so
    /// does one on another platform, or with other parameters, than that of the state to be loaded.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>)
    where
        T: State + Serialize + DeserializeOwned,
    {
        visitor.refuse();
    }

    /// Announces that the interval of length `period` which begins now may be repeated so many times.
    fn watch_period(&mut self, _now: SimTime, _period: SimDuration, _repetitions: u64) {}

    /// Adds the loads of the interval that was [announced](NetworkModel::watch_period) last and ends now, as often as it is repeated;
    /// called before the state is repeated.
    fn repeat_loads(&mut self, _now: SimTime) {}
}
