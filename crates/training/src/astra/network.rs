//! Networks of one dimension.

use std::collections::BTreeMap;

use super::AstraError;

/// Form of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Each NPU has a link to the next one and to the previous one.
    Ring,
    /// Each NPU has a link to each other one.
    FullyConnected,
    /// Each NPU has a link to and from a switch.
    Switch,
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bandwidth \[B/ns\].
    bandwidth: f64,
    /// Latency \[ns\].
    latency: f64,
}

impl Link {
    /// Returns the time after which a chunk has arrived at the other end \[ns\], truncated.
    pub fn delivery(self, bytes: u64) -> u64 {
        (self.latency + bytes as f64 / self.bandwidth) as u64
    }

    /// Returns the time for which a chunk occupies the link \[ns\], truncated.
    fn occupation(self, bytes: u64) -> u64 {
        (bytes as f64 / self.bandwidth) as u64
    }
}

/// A network of one dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    topology: Topology,
    npus: u32,
    link: Link,
}

/// A chunk on a network: source, target, size \[B\] and time of departure \[ns\].
pub type Chunk = (u32, u32, u64, u64);

impl Network {
    /// Reads a file of lines `key: [ value ]`.
    ///
    /// # Errors
    /// Fails if a key is missing, or the network has several dimensions.
    pub fn from_yaml(text: &str) -> Result<Self, AstraError> {
        let line = |line: &str| {
            let (key, value) = line.split('#').next()?.split_once(':')?;
            Some((key.trim().to_owned(), value.trim().trim_matches(['[', ']']).trim().to_owned()))
        };
        let values: BTreeMap<String, String> = text.lines().filter_map(line).collect();
        let value = |key: &'static str| values.get(key).map_or("", String::as_str);
        let error = |key: &'static str, expected| AstraError::Network {
            key,
            found: format!("{:?}", value(key)),
            expected,
        };
        let number = |key: &'static str| {
            let number = value(key).parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
            number.ok_or_else(|| error(key, "one number above 0"))
        };
        let topology = match value("topology") {
            "Ring" => Topology::Ring,
            "FullyConnected" => Topology::FullyConnected,
            "Switch" => Topology::Switch,
            _ => return Err(error("topology", "Ring, FullyConnected or Switch, in one dimension")),
        };
        // A GB is 2^30 B here.
        let link =
            Link { bandwidth: number("bandwidth")? * f64::from(1 << 30) / 1e9, latency: number("latency")? };
        let npus = value("npus_count").parse().ok().filter(|npus| *npus >= 2);
        let npus = npus.ok_or_else(|| error("npus_count", "one whole number, 2 or more"))?;
        Ok(Self { topology, npus, link })
    }

    /// Returns the form.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// Returns the number of NPUs.
    pub fn npus(&self) -> u32 {
        self.npus
    }

    /// Returns a link, all of which are alike.
    pub fn link(&self) -> Link {
        self.link
    }

    /// Returns the devices that a chunk passes, both ends included; the switch has the number after the last NPU.
    fn route(&self, from: u32, to: u32) -> Vec<u32> {
        match self.topology {
            _ if from == to => vec![from],
            Topology::FullyConnected => vec![from, to],
            Topology::Switch => vec![from, self.npus, to],
            Topology::Ring => {
                let clockwise = (to + self.npus - from) % self.npus;
                let (hops, step) = match self.npus - clockwise {
                    // The shorter way, clockwise at a tie.
                    other if other < clockwise => (other, self.npus - 1),
                    _ => (clockwise, 1),
                };
                (0..=hops)
                    .map(|hop| {
                        ((u64::from(from) + u64::from(hop) * u64::from(step)) % u64::from(self.npus)) as u32
                    })
                    .collect()
            }
        }
    }

    /// Returns the time that a chunk takes if links are shared by none \[ns\].
    pub fn unaware(&self, from: u32, to: u32, bytes: u64) -> u64 {
        let hops = self.route(from, to).len() - 1;
        (hops as f64 * self.link.latency + bytes as f64 / self.link.bandwidth) as u64
    }

    /// Returns the arrivals of chunks \[ns\], which are stored and forwarded at each hop and occupy a link one after the other, first come
    /// first served. Chunks that come at the same time go in the order of their numbers.
    pub fn aware(&self, chunks: &[Chunk]) -> Vec<u64> {
        let routes: Vec<Vec<u32>> = chunks.iter().map(|(from, to, ..)| self.route(*from, *to)).collect();
        let mut free: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut arrivals: Vec<u64> = chunks.iter().map(|(.., departure)| *departure).collect();
        let mut events: BTreeMap<(u64, usize), usize> =
            chunks.iter().enumerate().map(|(number, (.., departure))| ((*departure, number), 0)).collect();
        while let Some(((now, number), hop)) = events.pop_first() {
            arrivals[number] = now;
            let Some([here, there]) = routes[number].get(hop..hop + 2) else { continue };
            let bytes = chunks[number].2;
            let link = (*here, *there);
            let begin = now.max(free.get(&link).copied().unwrap_or(0));
            free.insert(link, begin + self.link.occupation(bytes));
            events.insert((begin + self.link.delivery(bytes), number), hop + 1);
        }
        arrivals
    }
}
