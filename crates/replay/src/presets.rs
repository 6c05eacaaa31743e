//! The registry of presets: named parameters of a network and of the MPI library on it.
//!
//! A preset is one row: its parameters, where they come from, and the links for which they hold.

use std::fmt;
use std::ops::RangeInclusive;

use mpi_model::{Overhead, Parameters};
use netmodel::{FactorTable, NetworkParameters, Preset};
use pdes_core::Bytes;
use serde::{Serialize, Serializer};

/// A row of the registry.
pub struct NetworkPreset {
    /// Name in configurations and reports.
    pub key: &'static str,
    /// Description in one sentence, with the source of the parameters.
    pub description: &'static str,
    /// The parameters of the network, before the factors below.
    network: Preset,
    /// Factors of the latency of a route by the size of messages \[B\], and factor of the rate of a message; `None` leaves those of the network.
    factors: Option<(&'static [(u64, f64)], f64)>,
    /// Sizes \[B\] below which messages are eager and detached; `None` leaves SimGrid's.
    eager_below: Option<u64>,
    /// Overhead of a send and of a receive, as in configurations.
    overhead: Option<&'static str>,
    /// Bandwidths of links \[B/s\] for which the parameters hold.
    bandwidths: RangeInclusive<f64>,
    /// Latency of the route on which the factors were measured \[s\].
    route_latency: Option<f64>,
}

/// Largest ratio of the latency of a route and that on which the factors were measured, either way, without a warning.
const MAX_LATENCY_RATIO: f64 = 3.0;

/// Links as they are written: the row that others change.
const LINKS: NetworkPreset = NetworkPreset {
    key: "links",
    description: "Links as they are written; messages up to 16 KiB are eager, as over libfabric (FI_CXI_RDZV_THRESHOLD of fi_cxi(7)).",
    network: Preset::Raw,
    factors: None,
    eager_below: Some(16385),
    overhead: None,
    bandwidths: 0.0..=f64::INFINITY,
    route_latency: None,
};

/// SimGrid's presets, whose thresholds are SMPI's.
const SIMGRID: NetworkPreset = NetworkPreset { eager_below: None, ..LINKS };

/// Preset of platforms in SimGrid's XML.
pub static SIMGRID_DEFAULT: &NetworkPreset = &PRESETS[1];
/// Preset of platforms of our own, whose links say what they are.
pub static OWN_DEFAULT: &NetworkPreset = &PRESETS[0];

/// All presets. Those of real networks reproduce `osu_latency` and `osu_bw` of a pair of processes on the named system; docs/model.md has
/// sources and errors.
#[expect(clippy::approx_constant, reason = "a measured factor is near a multiple of pi by chance")]
pub static PRESETS: [NetworkPreset; 10] = [
    LINKS,
    NetworkPreset {
        key: "smpi",
        description: "SimGrid's factors by message size, measured with MPI on Gigabit Ethernet (SimGrid 3.32, sg_config.cpp).",
        network: Preset::Smpi,
        // Factors of a measurement are extrapolated without a warning up to ten times its bandwidth.
        bandwidths: 0.0..=1.25e9,
        ..SIMGRID
    },
    NetworkPreset {
        key: "lv08",
        description: "SimGrid's constant factors for TCP (Velho and Legrand, SIMUTools 2009).",
        network: Preset::Lv08,
        bandwidths: 0.0..=1.25e9,
        ..SIMGRID
    },
    NetworkPreset {
        key: "cm02",
        description: "No factors; SimGrid's TCP window and cross traffic (Casanova and Marchal, 2002).",
        network: Preset::Cm02,
        ..SIMGRID
    },
    NetworkPreset {
        key: "raw",
        description: "Links as they are written, with SimGrid's thresholds of messages.",
        ..SIMGRID
    },
    NetworkPreset {
        key: "infiniband-edr",
        description: "InfiniBand EDR with Open MPI and UCX, measured on Cascade Lake nodes of CSD3 in 2020.",
        factors: Some((
            &[
                (0, 1.0),
                (50, 1.17),
                (150, 1.55),
                (600, 1.79),
                (1100, 2.57),
                (2100, 3.53),
                (4200, 4.85),
                (8300, 6.28),
                (16500, 8.18),
                (33000, 8.8),
                (70000, 9.5),
            ],
            0.986,
        )),
        eager_below: Some(17298),
        overhead: Some("0:150ns:0"),
        bandwidths: 10e9..=15e9,
        route_latency: Some(680e-9),
        ..LINKS
    },
    NetworkPreset {
        key: "infiniband-hdr",
        description: "InfiniBand HDR with Open MPI and UCX, measured on virtual machines HBv3 of Azure in 2025.",
        factors: Some((
            &[
                (0, 1.02),
                (50, 1.17),
                (150, 1.71),
                (600, 1.86),
                (1100, 1.99),
                (2100, 2.63),
                (4200, 2.97),
                (8300, 3.85),
                (16500, 5.18),
                (33000, 6.24),
                (70000, 7.37),
            ],
            0.985,
        )),
        eager_below: Some(17298),
        overhead: Some("0:260ns:0"),
        bandwidths: 20e9..=30e9,
        route_latency: Some(1090e-9),
        ..LINKS
    },
    NetworkPreset {
        key: "slingshot-11",
        description: "Slingshot 11 over libfabric: bandwidth measured on Alps, latency by the acceptance tests of LUMI and Alps (coarse).",
        factors: Some((&[(0, 1.0), (150, 1.27), (18449, 3.06)], 0.961)),
        eager_below: Some(18434),
        bandwidths: 20e9..=30e9,
        route_latency: Some(1.8e-6),
        ..LINKS
    },
    NetworkPreset {
        key: "omni-path-100",
        description: "Omni-Path 100 with PSM2, measured on two systems in 2016 and later; above 64 kB an estimate.",
        factors: Some((
            &[(0, 1.07), (150, 1.14), (1100, 2.29), (8300, 5.15), (20000, 7.06), (64016, 28.0)],
            0.99,
        )),
        eager_below: Some(64000),
        overhead: Some("0:310ns:0"),
        bandwidths: 10e9..=15e9,
        route_latency: Some(690e-9),
        ..LINKS
    },
    NetworkPreset {
        key: "roce-100",
        description: "RoCE v2 of 100 Gb/s with Open MPI and UCX, measured on Oracle Cloud; its dependence on size is that of 50 Gb/s on CSD3.",
        factors: Some((
            &[
                (0, 1.01),
                (50, 1.08),
                (150, 1.29),
                (600, 1.41),
                (1100, 1.71),
                (2100, 1.97),
                (4200, 2.44),
                (8300, 2.54),
                (16500, 2.70),
                (33000, 2.77),
                (70000, 3.49),
                (300000, 4.48),
            ],
            0.98,
        )),
        eager_below: Some(27308),
        overhead: Some("0:160ns:0"),
        bandwidths: 10e9..=15e9,
        route_latency: Some(1350e-9),
        ..LINKS
    },
];

impl NetworkPreset {
    /// Returns the preset with a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.key == name)
    }

    /// Returns the parameters of the network.
    ///
    /// # Panics
    /// Panics if the factors of the row are invalid, which a test excludes.
    pub fn network(&self) -> NetworkParameters {
        let parameters = NetworkParameters::preset(self.network);
        let Some((latency, bandwidth)) = self.factors else { return parameters };
        let valid = "the factors of presets are valid";
        NetworkParameters {
            latency_factor: FactorTable::try_new(latency).expect(valid),
            bandwidth_factor: FactorTable::try_constant(bandwidth).expect(valid),
            ..parameters
        }
    }

    /// Returns the parameters of the MPI library, those that the preset does not know with SMPI's values.
    ///
    /// # Panics
    /// Panics if the overhead of the row is invalid, which a test excludes.
    pub fn mpi(&self) -> Parameters {
        let defaults = Parameters::default();
        let below = |default| self.eager_below.map_or(default, Bytes::new);
        let overhead = || {
            self.overhead
                .map_or(Overhead::default(), |text| text.parse().expect("overheads of presets are valid"))
        };
        Parameters {
            eager_below: below(defaults.eager_below),
            detached_below: below(defaults.detached_below),
            send: overhead(),
            isend: overhead(),
            receive: overhead(),
            ..defaults
        }
    }

    /// Returns warnings if the preset does not hold for a route with a bandwidth \[B/s\] and a latency \[s\].
    pub(crate) fn mismatches(&self, bandwidth: f64, latency: f64) -> Vec<String> {
        let Self { key, bandwidths, route_latency, .. } = self;
        let gigabits = |bandwidth: f64| {
            format!("{:.3}", bandwidth * 8e-9).trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let beyond = (!bandwidths.contains(&bandwidth)).then(|| {
            let expected = match bandwidths.start() {
                0.0 => format!("up to {} Gb/s", gigabits(*bandwidths.end())),
                start => format!("{} to {} Gb/s", gigabits(*start), gigabits(*bandwidths.end())),
            };
            format!(
                "network.preset = {key:?} holds for links of {expected}, and the links between the ranks have {} Gb/s: take {:?} for links \
                 as they are written, or parameters of this network (pdes-replay calibrate)",
                gigabits(bandwidth),
                OWN_DEFAULT.key
            )
        });
        let far = route_latency.filter(|measured| {
            !(measured / MAX_LATENCY_RATIO..=measured * MAX_LATENCY_RATIO).contains(&latency)
        });
        let far = far.map(|measured| {
            format!(
                "network.preset = {key:?} has factors of the latency of a route of {:.0} ns, adapters included, and the route between the \
                 first ranks has {:.0} ns: they make too {} of the sizes of messages",
                measured * 1e9,
                latency * 1e9,
                if latency > measured { "much" } else { "little" }
            )
        });
        beyond.into_iter().chain(far).collect()
    }
}

/// Prints the name: processes compare the text of their specifications.
impl fmt::Debug for NetworkPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

impl Serialize for NetworkPreset {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_str(self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_says_where_it_does_not_hold() {
        let find = |key| NetworkPreset::find(key).unwrap();
        assert_eq!(find("smpi").mismatches(125e6, 50e-6), [""; 0]);
        assert_eq!(find("links").mismatches(50e9, 1e-9), [""; 0]);
        let warning = find("smpi").mismatches(50e9, 1e-6).concat();
        assert!(warning.contains("up to 10 Gb/s") && warning.contains("400 Gb/s"), "{warning}");
        let warning = find("infiniband-edr").mismatches(25e9, 1e-6).concat();
        assert!(warning.contains("80 to 120 Gb/s") && warning.contains("200 Gb/s"), "{warning}");
        let warning = find("infiniband-edr").mismatches(12.5e9, 4e-6).concat();
        assert!(warning.contains("680 ns") && warning.contains("too much"), "{warning}");
        assert_eq!((SIMGRID_DEFAULT.key, OWN_DEFAULT.key), ("smpi", "links"));
    }

    /// Latencies of `osu_latency` \[us\] by size \[B\] are those of the sources, within the errors that the documentation states.
    #[test]
    fn presets_reproduce_the_measured_latencies() {
        let measured = [
            (
                "infiniband-edr",
                12.5e9,
                [(0_u64, 0.98), (128, 1.12), (4096, 3.03), (65536, 11.29), (1 << 20, 91.71)],
            ),
            ("infiniband-hdr", 25e9, [(0, 1.61), (128, 1.82), (4096, 3.55), (65536, 9.46), (1 << 20, 49.98)]),
        ];
        for (key, bandwidth, latencies) in measured {
            let preset = NetworkPreset::find(key).unwrap();
            let (network, mpi) = (preset.network(), preset.mpi());
            let route = preset.route_latency.unwrap();
            for (bytes, expected) in latencies {
                let size = Bytes::new(bytes + 16);
                let overheads = if bytes < mpi.detached_below.get() {
                    2.0 * mpi.send.cost(Bytes::new(bytes)).as_secs_f64()
                } else {
                    0.0
                };
                let time = route * network.latency_factor.factor(size)
                    + size.get() as f64 / (network.bandwidth_factor.factor(size) * bandwidth)
                    + overheads;
                assert!((time * 1e6 / expected - 1.0).abs() < 0.08, "{key}, {bytes} B: {time} s");
            }
        }
    }

    #[test]
    fn all_presets_are_valid() {
        for preset in &PRESETS {
            assert!(preset.network().bandwidth_factor.factor(Bytes::new(1 << 20)) > 0.0, "{}", preset.key);
            assert!(preset.mpi().eager_below <= preset.mpi().detached_below, "{}", preset.key);
        }
    }
}
