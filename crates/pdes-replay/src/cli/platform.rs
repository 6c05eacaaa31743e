//! The commands that describe and check a platform.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use figures::quantity::metric;
use netmodel::measures::Measures;
use netmodel::{ContentionFree, HostId, LinkId, NetworkParameters, Platform, Preset, Sharing};
use pdes_replay::{MODELS, Model, read_platform};
use serde_json::{Value, json};

use super::Misuse;
use super::arguments::PlatformCommand;

/// Runs one of the platform commands.
pub(crate) fn run(command: &PlatformCommand) -> Result<()> {
    let text = match command {
        PlatformCommand::Show { platform, route, json } => show(platform, route.as_deref(), *json)?,
        PlatformCommand::Check { platform } => check(platform)?,
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn load(path: &Path) -> Result<Platform> {
    let platform = read_platform(path).context("the platform")?;
    platform.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(platform)
}

fn show(path: &Path, route: Option<&[String]>, as_json: bool) -> Result<String> {
    let platform = load(path)?;
    let ends = match route {
        Some([from, to]) => Some((host(&platform, from)?, host(&platform, to)?)),
        _ => None,
    };
    if as_json {
        let route = ends.map(|(from, to)| route_json(&platform, from, to)).transpose()?;
        return Ok(serde_json::to_string_pretty(&to_json(&platform, route))? + "\n");
    }
    let mut text = String::new();
    describe(&platform, &mut text)?;
    if let Some((from, to)) = ends {
        writeln!(text)?;
        describe_route(&platform, from, to, &mut text)?;
    }
    Ok(text)
}

/// Describes a platform as JSON: times in seconds, bandwidths in bytes per second, speeds in flops per second.
fn to_json(platform: &Platform, route: Option<Value>) -> Value {
    let Measures { hosts, links, diameter, bisection } = Measures::of(platform);
    let speeds = || platform.hosts().iter().map(|host| host.speed);
    let (slowest, fastest) = (speeds().reduce(f64::min), speeds().reduce(f64::max));
    json!({
        "topology": platform.topology().to_string(),
        "hosts": hosts,
        "cores": platform.hosts().iter().map(|host| u64::from(host.cores)).sum::<u64>(),
        "slowest_flops_per_s": slowest,
        "fastest_flops_per_s": fastest,
        "links": links,
        "diameter_links": diameter.links,
        "diameter_latency_s": diameter.latency,
        "followed": diameter.coverage.to_string(),
        "pairs_without_route": diameter.missing,
        "bisection_bytes_per_s": bisection,
        "route": route,
    })
}

/// Describes the links of a route as JSON.
fn route_json(platform: &Platform, from: HostId, to: HostId) -> Result<Value> {
    let mut links = Vec::new();
    platform.route(from, to, &mut links)?;
    let link = |&link: &LinkId| {
        let link = platform.link(link);
        json!({ "name": link.name, "bandwidth_bytes_per_s": link.bandwidth, "latency_s": link.latency, "is_shared": link.sharing == Sharing::Shared })
    };
    Ok(json!({
        "from": platform.host(from).name,
        "to": platform.host(to).name,
        "links": links.iter().map(link).collect::<Vec<_>>(),
    }))
}

fn check(path: &Path) -> Result<String> {
    let platform = load(path)?;
    let measures = Measures::of(&platform);
    let missing = measures.diameter.missing;
    anyhow::ensure!(
        missing == 0,
        "{}: {missing} pair(s) of hosts have no route between them",
        path.display()
    );
    let mut text = format!(
        "{}: {} hosts, {} links, routes followed: {}\n",
        path.display(),
        measures.hosts,
        measures.links,
        measures.diameter.coverage
    );
    for Model { key, check, .. } in &MODELS {
        if let Some(check) = check {
            let found =
                check(&platform).map_err(|found| anyhow::anyhow!("{}: {key}: {found}", path.display()))?;
            writeln!(text, "{key}: {found}")?;
        }
    }
    Ok(text)
}

fn host(platform: &Platform, name: &str) -> Result<HostId> {
    platform.host_by_name(name).ok_or_else(|| {
        let hosts = platform.hosts();
        let ends = hosts.first().zip(hosts.last());
        let ends = ends.map_or(String::new(), |(first, last)| {
            format!("; its hosts are {} ... {}", first.name, last.name)
        });
        Misuse(format!("the platform has no host {name:?}{ends}")).into()
    })
}

fn describe(platform: &Platform, text: &mut String) -> std::fmt::Result {
    let measures = Measures::of(platform);
    writeln!(text, "topology:  {}", platform.topology())?;
    let hosts = platform.hosts();
    write!(text, "hosts:     {}", measures.hosts)?;
    if let (Some(first), Some(last)) = (hosts.first(), hosts.last()) {
        let speeds = hosts.iter().map(|host| host.speed);
        let (slowest, fastest) = (speeds.clone().fold(f64::INFINITY, f64::min), speeds.fold(0.0, f64::max));
        let cores: u64 = hosts.iter().map(|host| u64::from(host.cores)).sum();
        write!(text, " ({} ... {}), {cores} cores of {}", first.name, last.name, metric(slowest, "flop/s"))?;
        if fastest > slowest {
            write!(text, " to {}", metric(fastest, "flop/s"))?;
        }
    }
    writeln!(text)?;
    writeln!(text, "links:     {}", measures.links)?;
    writeln!(
        text,
        "diameter:  {} links, {} of latency ({})",
        measures.diameter.links,
        metric(measures.diameter.latency, "s"),
        measures.diameter.coverage
    )?;
    if measures.diameter.missing > 0 {
        writeln!(text, "no route:  {} pair(s) of hosts", measures.diameter.missing)?;
    }
    match measures.bisection {
        Some(bandwidth) => writeln!(text, "bisection: {}", metric(bandwidth, "B/s")),
        None => writeln!(text, "bisection: not known for this topology"),
    }
}

fn describe_route(platform: &Platform, from: HostId, to: HostId, text: &mut String) -> Result<()> {
    let mut links = Vec::new();
    platform.route(from, to, &mut links)?;
    let latency: f64 = links.iter().map(|&link| platform.link(link).latency).sum();
    let bandwidth = links.iter().map(|&link| platform.link(link).bandwidth).fold(f64::INFINITY, f64::min);
    writeln!(
        text,
        "route {} -> {}: {} link(s), {} of latency, {} at the narrowest link",
        platform.host(from).name,
        platform.host(to).name,
        links.len(),
        metric(latency, "s"),
        metric(bandwidth, "B/s")
    )?;
    let width = links.iter().map(|&link| platform.link(link).name.len()).max().unwrap_or(0);
    for &link in &links {
        let link = platform.link(link);
        let sharing = match link.sharing {
            Sharing::Shared => "shared",
            Sharing::FatPipe => "fat pipe",
        };
        let (bandwidth, latency) = (metric(link.bandwidth, "B/s"), metric(link.latency, "s"));
        writeln!(text, "  {:<width$} {bandwidth:>12} {latency:>10}  {sharing}", link.name)?;
    }
    let alone =
        ContentionFree::new(&NetworkParameters::preset(Preset::Smpi)).path_cost(platform, from, to)?;
    writeln!(
        text,
        "a message alone on it gets {} before the preset's factors",
        metric(alone.bandwidth(), "B/s")
    )?;
    Ok(())
}
