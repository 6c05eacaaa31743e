//! Power of hosts and links by their names.

use std::collections::BTreeMap;
use std::error::Error;

use netmodel::{HostId, HostPower, LinkId, LinkLoad, LinkLoads, LinkPower, Platform, name_matches};
use replay::PlatformChange;
use schemars::JsonSchema;
use serde::Deserialize;

/// Sets the power of hosts and links, and has the energy of their messages. `*` in a name stands for any text; where several are about a host, the
/// longest one counts. It takes the place of what the platform says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PowerByName {
    /// Power of hosts.
    pub hosts: BTreeMap<String, HostPower>,
    /// Power of links; a split-duplex link `X` has the halves `X_UP` and `X_DOWN`.
    pub links: BTreeMap<String, LinkPower>,
    /// Energy of the messages that ranks on hosts send.
    pub messages: BTreeMap<String, MessageEnergy>,
    /// Energy of the bytes that cross links \[J/B\].
    pub traffic: BTreeMap<String, f64>,
}

/// Energy of messages: of the adapters at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MessageEnergy {
    /// Energy of a message \[J\].
    #[schemars(extend("default" = 0, "minimum" = 0, "x-unit" = "J"))]
    pub per_message: f64,
    /// Energy of a byte of payload \[J/B\].
    #[schemars(extend("default" = 0, "minimum" = 0, "x-unit" = "J/B"))]
    pub per_byte: f64,
}

/// Error in the power of hosts and links.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PowerError {
    /// The platform has nothing of a name.
    #[error(
        "[energy.{section}] {name:?}: the platform has no such {kind}; a * in a name stands for any text"
    )]
    Unknown {
        /// Section of the configuration.
        section: &'static str,
        /// The name.
        name: String,
        /// Kind of part that the name should be of.
        kind: &'static str,
    },
    /// A power or an energy is not 0 or more.
    #[error("[energy.{section}] {name:?}: expected watts of 0 or more, and joules of 0 or more")]
    Value {
        /// Section of the configuration.
        section: &'static str,
        /// The name.
        name: String,
    },
}

impl PlatformChange for PowerByName {
    fn apply(&self, platform: &mut Platform) {
        let hosts = (0..).map(HostId::new).zip(platform.hosts());
        let hosts: Vec<_> =
            hosts.filter_map(|(id, host)| Some((id, *find(&self.hosts, &host.name)?))).collect();
        let links = (0..).map(LinkId::new).zip(platform.links());
        let links: Vec<_> =
            links.filter_map(|(id, link)| Some((id, *find(&self.links, &link.name)?))).collect();
        let power = platform.power_mut();
        power.hosts.extend(hosts);
        power.links.extend(links);
    }

    fn check(&self, platform: &Platform) -> Result<(), Box<dyn Error + Send + Sync>> {
        let hosts = || platform.hosts().iter().map(|host| host.name.as_str());
        let links = || platform.links().iter().map(|link| link.name.as_str());
        check(("hosts", "host"), &self.hosts, HostPower::is_valid, hosts)?;
        let is_valid = |joules: &f64| joules.is_finite() && *joules >= 0.0;
        let are_valid = |energy: &MessageEnergy| is_valid(&energy.per_message) && is_valid(&energy.per_byte);
        check(("links", "link"), &self.links, LinkPower::is_valid, links)?;
        check(("messages", "host"), &self.messages, are_valid, hosts)?;
        check(("traffic", "link"), &self.traffic, is_valid, links)?;
        Ok(())
    }
}

impl PowerByName {
    /// Returns the name of hosts that is about a host; `None` if none is.
    pub(crate) fn host_pattern(&self, host: &str) -> Option<&str> {
        find_pattern(&self.hosts, host).map(|(pattern, _)| pattern.as_str())
    }

    /// Returns the energy of the messages that ranks have sent: numbers and payloads \[B\] of each host \[J\].
    pub fn messages_j(&self, platform: &Platform, sent: &BTreeMap<HostId, (u64, u64)>) -> f64 {
        let of_host = |(host, (messages, bytes)): (&HostId, &(u64, u64))| {
            let MessageEnergy { per_message, per_byte } = find(&self.messages, &platform.host(*host).name)?;
            Some(per_message * *messages as f64 + per_byte * *bytes as f64)
        };
        sent.iter().filter_map(of_host).fold(0.0, |sum, joules| sum + joules)
    }

    /// Returns the energy of the bytes on the wire that links have carried \[J\].
    pub fn traffic_j(&self, platform: &Platform, loads: &LinkLoads) -> f64 {
        let of_link =
            |load: &LinkLoad| Some(find(&self.traffic, &platform.link(load.link).name)? * load.bytes as f64);
        let joules = loads.links.iter().chain(&loads.fat_pipes).filter_map(of_link);
        // A sum of nothing would be -0.
        joules.fold(0.0, |sum, joules| sum + joules)
    }
}

/// Returns the power under the longest name that is about another one.
fn find<'p, P>(by_name: &'p BTreeMap<String, P>, name: &str) -> Option<&'p P> {
    find_pattern(by_name, name).map(|(_, power)| power)
}

fn find_pattern<'p, P>(by_name: &'p BTreeMap<String, P>, name: &str) -> Option<(&'p String, &'p P)> {
    let known = by_name.iter().filter(|(pattern, _)| name_matches(pattern, name));
    known.max_by_key(|(pattern, _)| (!pattern.contains('*'), pattern.len()))
}

fn check<'n, P, N: Iterator<Item = &'n str>>(
    (section, kind): (&'static str, &'static str),
    by_name: &BTreeMap<String, P>,
    is_valid: impl Fn(&P) -> bool,
    names: impl Fn() -> N,
) -> Result<(), PowerError> {
    for (pattern, power) in by_name {
        let name = || pattern.clone();
        if !is_valid(power) {
            return Err(PowerError::Value { section, name: name() });
        }
        if !names().any(|name| name_matches(pattern, name)) {
            return Err(PowerError::Unknown { section, name: name(), kind });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLATFORM: &str = "topology = { kind = \"graph\" }\n\
        host = [{ name = \"a1\", speed = \"1Gf\" }, { name = \"a10\", speed = \"1Gf\" }, { name = \"b\", speed = \"1Gf\" }]\n\
        link = [{ name = \"up\", bandwidth = \"1GBps\", sharing = \"split_duplex\" }]\n";

    fn change(hosts: &[(&str, f64)], links: &[&str]) -> PowerByName {
        let host = |idle: f64| toml::from_str(&format!("idle = {idle}\nall_cores = 300")).unwrap();
        let hosts = hosts.iter().map(|&(name, idle)| (name.to_owned(), host(idle))).collect();
        let link = LinkPower { idle: 1.0, busy: 3.0 };
        let links = links.iter().map(|&name| (name.to_owned(), link)).collect();
        PowerByName { hosts, links, ..PowerByName::default() }
    }

    #[test]
    fn the_longest_name_counts() {
        let mut platform = Platform::from_toml(PLATFORM, "p.toml").unwrap();
        let change = change(&[("*", 10.0), ("a1*", 20.0), ("a1", 30.0)], &["up*"]);
        change.check(&platform).unwrap();
        change.apply(&mut platform);
        let idle = |host| platform.power().hosts[&HostId::new(host)].idle;
        assert_eq!([idle(0), idle(1), idle(2)], [30.0, 20.0, 10.0]);
        assert_eq!(platform.power().links.len(), 2);
    }

    #[test]
    fn unknown_names_and_negative_watts_are_refused() {
        let platform = Platform::from_toml(PLATFORM, "p.toml").unwrap();
        let refuse = |change: PowerByName| change.check(&platform).unwrap_err().to_string();
        assert!(
            refuse(change(&[("c", 1.0)], &[]))
                .starts_with("[energy.hosts] \"c\": the platform has no such host")
        );
        assert!(
            refuse(change(&[], &["up"])).starts_with("[energy.links] \"up\": the platform has no such link")
        );
        assert_eq!(
            refuse(change(&[("b", -1.0)], &[])),
            "[energy.hosts] \"b\": expected watts of 0 or more, and joules of 0 or more"
        );
    }
}
