//! Files of tables and of routes: a line for each entry, whose words commas or blanks divide. Empty lines and text after a `#` are ignored.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use netmodel::{HostId, LinkId, NetworkGraph, NodeId, Platform};
use rustc_hash::FxHashMap;

use crate::parameters::TableEntry;
use crate::{PacketError, PacketParameters, PacketRouting};

/// Place of an entry of a table of ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TablePlace {
    /// Number in the configuration, from 1.
    Entry(usize),
    /// A file, and a line of it, from 1.
    Line(String, usize),
}

impl Display for TablePlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(number) => write!(f, "packets.table, entry {number}"),
            Self::Line(file, line) => write!(f, "{file}, line {line}"),
        }
    }
}

/// Reads a file: its lines that say something, in words.
fn read(path: &Path) -> Result<Vec<(TablePlace, Vec<String>)>, PacketError> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|source| PacketError::Unreadable { file: file.clone(), reason: source.to_string() })?;
    let words = |line: &str| -> Vec<String> {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line.contains(',') {
            true => line.split(',').map(|word| word.trim().to_owned()).collect(),
            false => line.split_whitespace().map(str::to_owned).collect(),
        }
    };
    let lines =
        (1..).zip(text.lines()).map(|(line, text)| (TablePlace::Line(file.clone(), line), words(text)));
    Ok(lines.filter(|(_, words)| !words.is_empty()).collect())
}

/// Returns the numbers of the channels by the names of their links.
pub(super) fn channels_by_name<'p>(platform: &'p Platform, graph: &NetworkGraph) -> FxHashMap<&'p str, u32> {
    let name = |link: LinkId| platform.link(link).name.as_str();
    (0..).zip(graph.channels()).map(|(number, channel)| (name(channel.link), number)).collect()
}

/// Lists the entries of the table of a configuration and of its file, a link for each line of that, with their places.
pub(super) fn table_entries(
    PacketParameters { table, table_file, .. }: &PacketParameters,
) -> Result<Vec<(TablePlace, TableEntry)>, PacketError> {
    let mut entries: Vec<_> =
        (1..).map(TablePlace::Entry).zip(table).map(|(place, entry)| (place, entry.clone())).collect();
    for (place, words) in table_file.as_deref().map_or_else(|| Ok(Vec::new()), read)? {
        let weight = words.get(2).map_or(Some(1.0), |word| word.parse().ok());
        let (Some(weight), [to, link] | [to, link, _]) = (weight, &words[..]) else {
            return Err(PacketError::BadTableLine { place, found: words.join(",") });
        };
        let (to, links) = (to.clone(), vec![link.clone()]);
        entries.push((place, TableEntry { to, links, weights: vec![weight] }));
    }
    Ok(entries)
}

/// Routes of pairs of hosts, in place of those of the platform.
#[derive(Debug, Default)]
pub(crate) struct GivenRoutes(FxHashMap<(HostId, HostId), Box<[LinkId]>>);

impl GivenRoutes {
    /// Reads the file of routes of a configuration, if there is one. `rates` has what is left of the bandwidth of each link.
    ///
    /// # Errors
    /// If a line names what the platform does not have, or is no way from one host to the other, or if packets take no routes.
    pub(super) fn new(
        (platform, graph, rates): (&Platform, &NetworkGraph, &[f64]),
        parameters: &PacketParameters,
    ) -> Result<Self, PacketError> {
        let mut routes = FxHashMap::default();
        let Some(path) = &parameters.route_file else { return Ok(Self::default()) };
        if parameters.routing != PacketRouting::Minimal {
            return Err(PacketError::UnusedRoutes { routing: parameters.routing.name().to_owned() });
        }
        let channels = channels_by_name(platform, graph);
        for (place, words) in read(path)? {
            let unknown =
                |name: &str| PacketError::UnknownInTable { place: place.clone(), name: name.to_owned() };
            let host = |name: &String| platform.host_by_name(name).ok_or_else(|| unknown(name));
            let [src, dst, names @ ..] = &words[..] else {
                return Err(PacketError::BadRouteLine { place, found: words.join(",") });
            };
            let (from, to) = (host(src)?, host(dst)?);
            let (mut at, mut links) = (NodeId::from(from), Vec::with_capacity(names.len()));
            for name in names {
                let channel = graph.channel(*channels.get(name.as_str()).ok_or_else(|| unknown(name))?);
                if rates[channel.link.index()] == 0.0 {
                    return Err(PacketError::FailedInTable { place, link: name.clone() });
                }
                if channel.from != at {
                    return Err(PacketError::GapInRoute { place, link: name.clone() });
                }
                at = channel.to;
                links.push(channel.link);
            }
            if at != to.into() || from == to {
                return Err(PacketError::UnfinishedRoute { place, src: src.clone(), dst: dst.clone() });
            }
            if routes.insert((from, to), links.into()).is_some() {
                return Err(PacketError::RepeatedRoute { place, src: src.clone(), dst: dst.clone() });
            }
        }
        Ok(Self(routes))
    }

    /// Returns the links from one host to another, if they are given.
    pub(super) fn links(&self, src: HostId, dst: HostId) -> Option<&[LinkId]> {
        self.0.get(&(src, dst)).map(|links| &**links)
    }

    /// Returns whether no route is given.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of links of the longest route.
    pub(super) fn longest(&self) -> usize {
        self.0.values().map(|links| links.len()).max().unwrap_or(0)
    }
}
