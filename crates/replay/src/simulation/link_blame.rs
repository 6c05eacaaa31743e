//! Who delays whom on which link: the time that messages of programs wait for others.

use std::collections::BTreeMap;
use std::time::Instant;

use netmodel::{FlowNetwork, HostId, HostTotals, LinkId, LinkLoads, Message, NetworkModel, RouteError};
use pdes_core::{LpId, Progress, SimTime};

use super::{OrderedReplay, RunError, Simulation};
use crate::models::MODELS;
use crate::network_tag::NetworkTag;
use crate::spec::Epoch;

/// Times that messages of programs have waited for bandwidth which those of others used, by link.
///
/// While the flow of a message has a link as its bottleneck, it waits for the flows of another program there for the share of that link's load
/// which is theirs. Waits of messages that flow at once add up, so that these times weigh links against each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkBlame {
    /// By the programs that wait and that are waited for, the link, and the time \[s\].
    pub waits_s: BTreeMap<(usize, usize), BTreeMap<LinkId, f64>>,
}

/// A network that tells how long its messages wait for each other.
#[derive(Debug)]
struct BlamedNetwork<'p> {
    network: FlowNetwork<'p, NetworkTag>,
    /// First logical process of each program.
    first_lps: Vec<LpId>,
    blame: LinkBlame,
    /// Load of links by program since the last event \[B/s\].
    loads: BTreeMap<LinkId, Vec<f64>>,
}

impl Simulation {
    /// Replays the programs on one thread, and returns which links make them wait for each other; `None` unless messages share links at every
    /// event. Takes time proportional to the messages that flow, and their links, at each event.
    ///
    /// # Errors
    /// As [`replay`](Self::replay).
    pub fn link_blame(&self) -> Result<Option<LinkBlame>, RunError> {
        let spec = self.spec();
        if spec.model.key != MODELS[0].key || spec.epoch != Epoch::Exact {
            return Ok(None);
        }
        let simulation = Self::load(&spec.without_analyses())?;
        let (started, progress) = (Instant::now(), &Progress::new(1));
        let replay =
            OrderedReplay { simulation: &simulation, started, progress, forwards: false, checkpoints: None };
        let network = BlamedNetwork {
            network: FlowNetwork::new(replay.platform(), replay.parameters()),
            first_lps: simulation.programs().iter().map(|program| program.first_lp).collect(),
            blame: LinkBlame::default(),
            loads: BTreeMap::new(),
        };
        let (_, network) = replay.on(network)?;
        Ok(Some(network.blame))
    }
}

impl BlamedNetwork<'_> {
    /// Returns the program of some work, unless it is the storage's.
    fn program(first_lps: &[LpId], tag: NetworkTag) -> Option<usize> {
        let owner = tag.owner()?;
        Some(first_lps.partition_point(|first| *first <= owner) - 1)
    }

    /// Adds the waits from the last event to the next one.
    fn add_waits(&mut self, next: SimTime) {
        let Self { network, first_lps, blame, loads } = self;
        let time_s = (next - network.now()).as_secs_f64();
        if time_s == 0.0 {
            return;
        }
        loads.values_mut().for_each(|of_programs| of_programs.fill(0.0));
        network.shares(|tag, _, links| {
            let Some(program) = Self::program(first_lps, tag) else { return };
            for (link, load) in links {
                let of_programs = loads.entry(link).or_insert_with(|| vec![0.0; first_lps.len()]);
                of_programs[program] += load;
            }
        });
        network.shares(|tag, bottleneck, _| {
            let (Some(program), Some(link)) = (Self::program(first_lps, tag), bottleneck) else { return };
            let Some(of_programs) = loads.get(&link) else { return };
            let whole: f64 = of_programs.iter().sum();
            for (other, load) in of_programs.iter().enumerate() {
                if other != program && *load > 0.0 {
                    let waits_s = blame.waits_s.entry((program, other)).or_default();
                    *waits_s.entry(link).or_default() += time_s * load / whole;
                }
            }
        });
    }
}

impl NetworkModel<NetworkTag> for BlamedNetwork<'_> {
    type Message = ();

    fn send(&mut self, message: Message<NetworkTag>) -> Result<(), RouteError> {
        self.network.send(message)
    }

    fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: NetworkTag) {
        self.network.compute(at, host, flops, tag);
    }

    fn schedule(&mut self, at: SimTime, tag: NetworkTag) {
        self.network.schedule(at, tag);
    }

    fn abandon(&mut self, at: SimTime, is_dropped: impl Fn(NetworkTag) -> bool) {
        self.network.next_event();
        self.add_waits(at);
        self.network.abandon(at, is_dropped);
    }

    fn next_event(&mut self) -> Option<SimTime> {
        self.network.next_event()
    }

    fn advance(&mut self, done: &mut Vec<NetworkTag>) {
        if let Some(next) = self.network.next_event() {
            self.add_waits(next);
        }
        self.network.advance(done);
    }

    fn now(&self) -> SimTime {
        self.network.now()
    }

    fn unfinished(&self) -> impl Iterator<Item = NetworkTag> + '_ {
        self.network.unfinished()
    }

    fn link_loads(&mut self, end: SimTime) -> Option<LinkLoads> {
        self.network.link_loads(end)
    }

    fn host_totals(&self) -> Vec<HostTotals> {
        self.network.host_totals()
    }
}
