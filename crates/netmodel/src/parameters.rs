//! Parameters of the network model, and SimGrid's named sets of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FactorTable;
use crate::maxmin::Scope;

/// Bandwidth factors of the preset `smpi` (sg_config.cpp of SimGrid 3.32, lines 357-366).
const SMPI_BANDWIDTH: [(u64, f64); 9] = [
    (0, 0.812084),
    (257, 0.338112),
    (732, 0.341987),
    (1426, 0.608902),
    (3484, 0.77493),
    (5776, 1.08739),
    (9376, 0.58729),
    (15424, 0.697866),
    (65472, 0.940694),
];

/// Latency factors of the preset `smpi` (sg_config.cpp, as above).
const SMPI_LATENCY: [(u64, f64); 9] = [
    (0, 2.01467),
    (257, 1.95341),
    (732, 1.9503),
    (1426, 1.61075),
    (3484, 1.88101),
    (5776, 2.18796),
    (9376, 2.59299),
    (15424, 3.48845),
    (65472, 11.6436),
];

/// Largest TCP window [B], SimGrid's `network/TCP-gamma` (NetworkModel.cpp, lines 27-31).
const TCP_GAMMA: f64 = 4_194_304.0;

/// Bandwidth of the built-in loopback link [B/s] (network/loopback-bw; sg_config.cpp, lines 288-298).
pub(crate) const LOOPBACK_BANDWIDTH: f64 = 1e10;

/// Interval [s] within which SimGrid completes events together (surf/precision; network_cm02.cpp:155).
const PRECISION_S: f64 = 1e-9;

/// SimGrid's named sets of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Factors by message size, measured with MPI on Gigabit Ethernet: the default of smpirun (network_smpi.cpp).
    #[default]
    Smpi,
    /// Constant factors (Velho and Legrand, "Accuracy Study and Improvement of Network Simulation in the SimGrid
    /// Framework", 2009; network_cm02.cpp).
    Lv08,
    /// No factors (Casanova and Marchal, "A Network Model for Simulation of Grid Application", 2002).
    Cm02,
    /// No factors, no TCP window, no cross traffic, and none of SimGrid's peculiarities: latency plus size over
    /// bandwidth.
    Raw,
}

/// Choice of the routes of messages between two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageRouting {
    /// The route of the platform.
    #[default]
    Minimal,
    /// A way over a third group of a dragonfly, a third switch of other networks of switches, or any host of a torus (Valiant, "A Scheme for
    /// Fast Parallel Communication", 1982).
    Valiant,
    /// The route of the platform or such a way: that with the smaller product of links and messages for each unit of bandwidth, where the two
    /// differ, when the message begins (Singh, "Load-Balanced Routing in Interconnection Networks", 2005).
    Ugal,
    /// Several routes at once: the message is split into [equal parts](NetworkParameters::routing_parts), each of which is a flow of its own. The
    /// first takes the route of the platform, the others take other shortest ones of a fat tree or rail-optimised fabric, elsewhere ways as
    /// with [`Self::Valiant`]. As packets that are sprayed do (Dixit et al., "On the Impact of Packet Spraying in Data Center Networks", 2013).
    Spray,
}

/// Parameters of the network model beside the latencies and bandwidths of links.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkParameters {
    /// Factor of the latency of a route.
    pub latency_factor: FactorTable,
    /// Factor of the rate of a flow, applied after sharing.
    pub bandwidth_factor: FactorTable,
    /// Weight S \[B\]: each link adds `weight_s / bandwidth` to the penalty of a flow in the sharing of its links. No
    /// effect on a flow that is alone (network/weight-S).
    pub weight_s: f64,
    /// TCP window \[B\]: no flow exceeds the window over twice its latency. Zero removes the limit.
    pub tcp_gamma: f64,
    /// Cross traffic: a flow also takes 0.05 of its rate from each link of the reverse route, for acknowledgements.
    pub cross_traffic: bool,
    /// Rule by which flows of different penalties share a fat pipe. Models with contention only.
    pub fat_pipes: FatPipes,
    /// Set of links that are solved again when flows begin or end. Models with contention only.
    pub solve_scope: Scope,
    /// Interval \[s\]: events that lie less than this after another one happen with it. Models with contention only.
    pub precision_s: f64,
    /// Bandwidth of the built-in loopback link [B/s], through which hosts send to themselves if the platform lists no
    /// other route.
    pub loopback_bandwidth: f64,
    /// Latency of the built-in loopback link \[s\].
    pub loopback_latency_s: f64,
    /// Choice of the routes of messages. Exact contention only.
    pub routing: MessageRouting,
    /// Seed of the routes beside that of the platform.
    pub routing_seed: u64,
    /// Number of parts of a sprayed message. One that has fewer bytes, or fewer routes, has fewer.
    pub routing_parts: u8,
}

/// Rule by which flows share a fat pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FatPipes {
    /// When the most demanding flow fills the pipe, all flows on it freeze (lmm/maxmin.cpp): a flow of a higher
    /// penalty gets less than the capacity, as if they shared it.
    #[default]
    Joint,
    /// Each flow has the whole capacity.
    Separate,
}

impl NetworkParameters {
    /// Returns whether messages that share no links, directly or through others, have no effect on each other. SimGrid's merging of
    /// events and its marking of links are global: any message may move any other by a little.
    pub fn separates_messages(&self) -> bool {
        self.precision_s == 0.0 && self.solve_scope == Scope::Complete
    }

    /// Returns the parameters of a preset.
    pub fn preset(preset: Preset) -> Self {
        let constant = |latency, bandwidth, weight_s| Self {
            latency_factor: valid_table(FactorTable::try_constant(latency)),
            bandwidth_factor: valid_table(FactorTable::try_constant(bandwidth)),
            weight_s,
            tcp_gamma: TCP_GAMMA,
            cross_traffic: true,
            fat_pipes: FatPipes::Joint,
            solve_scope: Scope::Marked,
            precision_s: PRECISION_S,
            loopback_bandwidth: LOOPBACK_BANDWIDTH,
            loopback_latency_s: 0.0,
            routing: MessageRouting::Minimal,
            routing_seed: 1,
            routing_parts: 4,
        };
        match preset {
            Preset::Smpi => Self {
                latency_factor: valid_table(FactorTable::try_new(&SMPI_LATENCY)),
                bandwidth_factor: valid_table(FactorTable::try_new(&SMPI_BANDWIDTH)),
                ..constant(1.0, 1.0, 8775.0)
            },
            Preset::Lv08 => constant(13.01, 0.97, 20537.0),
            Preset::Cm02 => constant(1.0, 1.0, 0.0),
            Preset::Raw => Self {
                tcp_gamma: 0.0,
                cross_traffic: false,
                fat_pipes: FatPipes::Separate,
                solve_scope: Scope::Complete,
                precision_s: 0.0,
                ..constant(1.0, 1.0, 0.0)
            },
        }
    }
}

impl NetworkParameters {
    /// Returns parameters with which messages take no time without contention: latencies and times per byte are so small that no message
    /// takes a picosecond.
    pub fn ideal() -> Self {
        Self {
            latency_factor: valid_table(FactorTable::try_constant(1e-300)),
            bandwidth_factor: valid_table(FactorTable::try_constant(1e300)),
            ..Self::preset(Preset::Raw)
        }
    }
}

/// Unwraps a table of constants of this file, which the tests show to be valid.
fn valid_table(table: Result<FactorTable, crate::FactorError>) -> FactorTable {
    table.expect("the tables of the presets are valid")
}

#[cfg(test)]
mod tests {
    use pdes_core::Bytes;

    use super::*;

    #[test]
    fn presets_hold_the_constants_of_simgrid() {
        let smpi = NetworkParameters::preset(Preset::Smpi);
        assert_eq!(smpi.bandwidth_factor.factor(Bytes::new(257)), 0.812084);
        assert_eq!(smpi.bandwidth_factor.factor(Bytes::new(258)), 0.338112);
        assert_eq!(smpi.latency_factor.factor(Bytes::new(1 << 40)), 11.6436);
        assert_eq!((smpi.weight_s, smpi.tcp_gamma, smpi.cross_traffic), (8775.0, 4194304.0, true));
        let lv08 = NetworkParameters::preset(Preset::Lv08);
        assert_eq!(lv08.latency_factor.factor(Bytes::ZERO), 13.01);
        assert_eq!(lv08.bandwidth_factor.factor(Bytes::ZERO), 0.97);
        let raw = NetworkParameters::preset(Preset::Raw);
        assert_eq!((raw.weight_s, raw.tcp_gamma, raw.cross_traffic), (0.0, 0.0, false));
    }
}
