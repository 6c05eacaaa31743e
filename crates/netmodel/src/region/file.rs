//! Files that assign hosts to regions.

use std::collections::HashMap;
use std::path::Path;

use super::{RegionError, Regions};
use crate::Platform;

impl Regions {
    /// Reads the assignment of hosts to regions: a line for each host with its name and the name of its region. Empty
    /// lines and text after a `#` are ignored.
    ///
    /// # Errors
    /// If the file cannot be read, a line is malformed, or a host is missing, unknown or listed twice.
    pub fn from_path(platform: &Platform, path: &Path) -> Result<Self, RegionError> {
        let origin = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::from_text(platform, &text, &origin),
            Err(source) => Err(RegionError::Read { origin, source }),
        }
    }

    /// Reads the same from a text; `origin` is its name in messages.
    ///
    /// # Errors
    /// As [`Regions::from_path`].
    pub fn from_text(platform: &Platform, text: &str, origin: &str) -> Result<Self, RegionError> {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut blocks = vec![None; platform.hosts().len()];
        for (line, text) in (1..).zip(text.lines()) {
            let origin = || origin.to_owned();
            let mut words = text.split('#').next().unwrap_or_default().split_whitespace();
            let (host, region) = match (words.next(), words.next(), words.next()) {
                (None, ..) => continue,
                (Some(host), Some(region), None) => (host, region),
                _ => return Err(RegionError::Line { origin: origin(), line, found: text.trim().to_owned() }),
            };
            let Some(id) = platform.host_by_name(host) else {
                return Err(RegionError::UnknownHost { origin: origin(), line, host: host.to_owned() });
            };
            let next = numbers.len() as u32;
            let number = *numbers.entry(region).or_insert(next);
            if blocks[id.index()].replace(number).is_some() {
                return Err(RegionError::Repeated { origin: origin(), line, host: host.to_owned() });
            }
        }
        let missing = blocks.iter().position(Option::is_none);
        match missing.map(|host| platform.hosts()[host].name.clone()) {
            Some(host) => {
                Err(RegionError::Missing { origin: origin.to_owned(), host, hosts: platform.hosts().len() })
            }
            None => Ok(Self::of_blocks(platform, &blocks.into_iter().flatten().collect::<Vec<_>>())),
        }
    }
}
