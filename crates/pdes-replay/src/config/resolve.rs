//! Resolution of the sections of a configuration to the specification of a run.

mod checkpoints;
mod collectives;
mod epochs;
mod jobs;
mod measured;
mod profiles;
mod timeline;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use mpi_model::{ChargedCall, CollectiveIo, Outcomes, Overhead, OverheadError, Parameters, Progress};
use netmodel::quantity::{Bandwidth, Seconds, Size, Speed};
use netmodel::{FactorTable, NetworkParameters, Platform};
use pdes_core::{Bytes, RunAhead, SimDuration, SimTime};
use replay::file_kind::other_suffix;
use replay::{
    LinkScale, MODELS, Model, NetworkPreset, OWN_DEFAULT, PartitionSource, PlacementPolicy, PlatformSource,
    Polling, RunSpec, SIMGRID_DEFAULT, TraceFile,
};

use super::ConfigError;
use super::registries::{EXTENSIONS, Extension};
use super::sections::{
    AnalysisSection, CollectiveIoName, ComputeSection, EngineSection, MpiSection, NetworkSection,
    OutcomesName, PlatformSection, ProgressName, Sections,
};
use super::value_schemas::read_seconds_or_auto;
use crate::generate::ProgramError;

/// Largest number of threads that can be requested.
const MAX_THREADS: usize = 1024;
/// Largest number of rows of a communication matrix.
const MAX_MATRIX_GROUPS: u32 = 16384;

/// Maker of the trace of a program from the arguments of `trace generate`.
pub(super) type Generate = fn(&str) -> Result<TraceFile, ProgramError>;

pub(super) fn spec(sections: Sections, generate: Generate) -> Result<RunSpec, ConfigError> {
    let Sections {
        trace,
        job,
        jobs,
        platform,
        profile,
        network,
        mpi,
        mut compute,
        engine,
        parallel,
        // The command `online` reads it.
        online: _,
        analysis,
        checkpoint,
        timeline,
        output,
        mut named,
    } = sections;
    jobs::check(&job, &trace, &platform)?;
    let file = trace_file(("trace", "path"), trace.path, trace.generate.as_deref(), generate)?;
    let Some(file) = file.or_else(|| job.first().map(|_| TraceFile::default())) else {
        return Err(value_error(
            "trace",
            "path",
            "is missing: name a trace with --trace or in the configuration, or a program in trace.generate",
        ));
    };
    if trace.ranks == Some(0) {
        return Err(value_error("trace", "ranks", "found 0, expected at least one rank"));
    }
    let trace_speed = trace.speed.map(|Speed(speed)| speed);
    if let Some(speed) = trace_speed.filter(|speed| *speed <= 0.0) {
        return Err(value_error("trace", "speed", format!("found {speed}, expected more than zero")));
    }
    let (waits, histograms) = (analysis.waits, analysis.histograms.unwrap_or_default());
    if histograms && waits == Some(false) {
        let message = "found true, but waits are not analysed: expected analysis.waits = true beside it";
        return Err(value_error("analysis", "histograms", message));
    }
    let critical_path = analysis.critical_path.unwrap_or_default();
    let matrix_groups = matrix_groups(&analysis)?;
    let model = model(&network)?;
    let extensions = EXTENSIONS.iter().filter_map(|extension| named.remove_entry(extension.name));
    let extensions: BTreeMap<String, toml::Value> = extensions.collect();
    if let Some(name) = named.keys().find(|name| *name != model.key) {
        let message = format!("this section is for the model {name:?}, not for {:?}", model.key);
        return Err(ConfigError::Section { section: name.clone(), message });
    }
    let is_simgrid = platform.file.as_deref().is_some_and(Platform::is_xml_file);
    let preset = network.preset.unwrap_or(if is_simgrid { SIMGRID_DEFAULT } else { OWN_DEFAULT });
    let default_placement = if is_simgrid { PlacementPolicy::Cyclic } else { PlacementPolicy::Block };
    if platform.hosts.is_some() && platform.placement.is_some() {
        let message =
            "stands beside platform.hosts, which says where each rank runs; expected one of the two";
        return Err(value_error("platform", "placement", message));
    }
    let epoch = epochs::epoch(&network, model)?;
    let fast_forward = engine.fast_forward.unwrap_or_default();
    let checkpoints = checkpoints::checkpoints(checkpoint)?;
    let timeline = timeline::timeline(timeline)?;
    let spec = RunSpec {
        ranks: trace.ranks,
        trace_speed,
        memory_budget: trace.memory_budget_bytes.map(|Size(bytes)| bytes as u64),
        hosts: platform.hosts.clone(),
        placement: platform.placement.unwrap_or(default_placement),
        link_scale: link_scale(&network)?,
        profiles: profiles::profiles(profile)?,
        routing: platform.routing.unwrap_or_default(),
        model_parameters: model_parameters(model, named.remove(model.key))?,
        model,
        epoch,
        regions: epochs::regions(&network, epoch, model)?,
        replaced_factors: replaced_factors(&network, preset),
        network: network_parameters(network, preset)?,
        polling: polling(&mpi)?,
        offloads: std::mem::take(&mut compute.offload).into_iter().map(Into::into).collect(),
        mpi: mpi_parameters(mpi, checked_computations(compute)?, preset)?,
        threads: threads(&engine)?,
        // The number of threads that read cannot change a result, and reading takes longer than many a replay.
        reading_threads: engine.threads.unwrap_or_else(available_threads),
        partition: match parallel.partition.as_deref() {
            None | Some("blocks") => PartitionSource::Blocks,
            Some("auto") => PartitionSource::Auto,
            Some(path) => PartitionSource::File(path.into()),
        },
        region_costs: parallel.region_costs,
        oversubscribe: parallel.oversubscribe.unwrap_or_default(),
        run_ahead: run_ahead(&engine)?,
        fast_forward,
        waits,
        histograms,
        matrix_groups,
        critical_path,
        links: analysis.links,
        ideal_machines: analysis.ideal_machines,
        checkpoints,
        timeline,
        report: json_output("report", output.report)?,
        profile: json_output("profile", output.profile)?,
        certificate: output.certificate,
        delays: jobs.slowdown,
        seed: jobs.seed,
        ..RunSpec::new(file, platform_source(platform)?, preset)
    };
    let mut spec = RunSpec { extensions, ..jobs::with_jobs(spec, job, generate)? };
    for Extension { name, apply, .. } in &EXTENSIONS {
        let Some(section) = spec.extensions.get(*name).cloned() else { continue };
        let failed = |error: Box<dyn Error>| ConfigError::Section {
            section: (*name).to_owned(),
            message: error.to_string(),
        };
        apply(section, &mut spec).map_err(failed)?;
    }
    Ok(spec)
}

/// Returns the parameters of a model in its section of the configuration.
fn model_parameters(model: &'static Model, section: Option<toml::Value>) -> Result<toml::Table, ConfigError> {
    match section {
        None => Ok(toml::Table::new()),
        Some(toml::Value::Table(table)) => Ok(table),
        Some(_) => {
            let message = format!("found a list of sections, expected one, [{}]", model.key);
            Err(ConfigError::Section { section: model.key.to_owned(), message })
        }
    }
}

fn value_error(section: &'static str, key: &'static str, message: impl Into<String>) -> ConfigError {
    ConfigError::Value { section, key, message: message.into() }
}

fn platform_source(section: PlatformSection) -> Result<PlatformSource, ConfigError> {
    let inline = section
        .inline()
        .map_err(|error| value_error("platform", "topology", error.to_string().trim_end().to_owned()))?;
    match (section.file, inline) {
        (Some(file), None) => Ok(PlatformSource::File(file)),
        (None, Some(description)) => Ok(PlatformSource::Inline(Box::new(description), None)),
        (Some(_), Some(_)) => {
            Err(value_error("platform", "topology", "stands beside a file; expected one of the two"))
        }
        (None, None) => Err(value_error(
            "platform",
            "file",
            "is missing: name a platform with --platform, or describe one under [platform] topology",
        )),
    }
}

fn model(section: &NetworkSection) -> Result<&'static Model, ConfigError> {
    let model = section.model.unwrap_or(&MODELS[0]);
    if model.network.is_none() {
        let names = Model::names_with(|_| true);
        let message = format!("found {:?}, which is for GOAL schedules: a trace needs {names}", model.key);
        return Err(value_error("network", "model", message));
    }
    Ok(model)
}

/// Returns the change of all links.
fn link_scale(section: &NetworkSection) -> Result<LinkScale, ConfigError> {
    let scale = |key, found: Option<f64>| match found {
        Some(scale) if !(scale.is_finite() && scale > 0.0) => {
            Err(value_error("network", key, format!("found {scale}, expected a number above 0")))
        }
        found => Ok(found.unwrap_or(1.0)),
    };
    Ok(LinkScale {
        latency: scale("latency_scale", section.latency_scale)?,
        bandwidth: scale("bandwidth_scale", section.bandwidth_scale)?,
    })
}

/// Returns a warning for each constant factor that takes the place of other ones of the preset: it looks like a multiple.
fn replaced_factors(section: &NetworkSection, preset: &NetworkPreset) -> Vec<String> {
    let NetworkParameters { latency_factor, bandwidth_factor, .. } = preset.network();
    let pairs = [
        ("latency", &section.latency_factor, latency_factor),
        ("bandwidth", &section.bandwidth_factor, bandwidth_factor),
    ];
    let replaced = |(what, found, replaced): (&str, &Option<FactorTable>, FactorTable)| {
        let found = found.as_ref().filter(|found| found.is_constant() && !replaced.is_constant_of(1.0))?;
        let key = preset.key;
        Some(format!(
            "network.{what}_factor = {found} replaces the factors of the preset {key:?}, {replaced}: network.{what}_scale multiplies the \
             {what} of all links"
        ))
    };
    pairs.into_iter().filter_map(replaced).collect()
}

fn network_parameters(
    section: NetworkSection,
    preset: &NetworkPreset,
) -> Result<NetworkParameters, ConfigError> {
    let mut parameters = preset.network();
    if let Some(table) = section.latency_factor {
        parameters.latency_factor = table;
    }
    if let Some(table) = section.bandwidth_factor {
        parameters.bandwidth_factor = table;
    }
    if let Some(weight) = section.weight_s {
        parameters.weight_s = non_negative("network", "weight_s", weight)?;
    }
    if let Some(gamma) = section.tcp_gamma {
        parameters.tcp_gamma = non_negative("network", "tcp_gamma", gamma)?;
    }
    if let Some(cross_traffic) = section.cross_traffic {
        parameters.cross_traffic = cross_traffic;
    }
    if let Some(fat_pipes) = section.fat_pipes {
        parameters.fat_pipes = fat_pipes;
    }
    if let Some(Bandwidth(bandwidth)) = section.loopback_bandwidth {
        parameters.loopback_bandwidth = non_negative("network", "loopback_bandwidth", bandwidth)?;
        if bandwidth == 0.0 {
            return Err(value_error("network", "loopback_bandwidth", "found 0, expected more than zero"));
        }
    }
    if let Some(Seconds(latency)) = section.loopback_latency_s {
        parameters.loopback_latency_s = non_negative("network", "loopback_latency_s", latency)?;
    }
    if let Some(scope) = section.solve_scope {
        parameters.solve_scope = scope;
    }
    if let Some(routing) = section.routing {
        parameters.routing = routing;
    }
    if let Some(seed) = section.routing_seed {
        parameters.routing_seed = seed;
    }
    if let Some(parts) = section.routing_parts {
        if !(1..=64).contains(&parts) {
            return Err(value_error(
                "network",
                "routing_parts",
                format!("found {parts}, expected a number from 1 to 64"),
            ));
        }
        parameters.routing_parts = parts;
    }
    if let Some(Seconds(precision)) = section.precision_s {
        let expected = "expected a time from 0 to 1 s";
        if !(0.0..=1.0).contains(&precision) {
            return Err(value_error("network", "precision_s", format!("found {precision}, {expected}")));
        }
        parameters.precision_s = precision;
    }
    Ok(parameters)
}

fn non_negative(section: &'static str, key: &'static str, number: f64) -> Result<f64, ConfigError> {
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err(value_error(section, key, format!("found {number}, expected a number from 0")))
    }
}

/// Checks the name of a file that is written as JSON.
fn json_output(key: &'static str, path: Option<PathBuf>) -> Result<Option<PathBuf>, ConfigError> {
    match path.as_deref().and_then(|path| other_suffix(path, &["json"])) {
        Some(why) => {
            let advice = if key == "report" {
                "; pdes-replay report FILE.json -o FILE.html writes its page"
            } else {
                ""
            };
            Err(value_error("output", key, format!("{why}: the {key} is JSON{advice}")))
        }
        None => Ok(path),
    }
}

/// Checks the properties of computations.
fn checked_computations(section: ComputeSection) -> Result<ComputeSection, ConfigError> {
    let error = |key, (region, number): (&String, &f64), expected| {
        value_error("compute", key, format!("{region:?}: found {number}, expected a number {expected}"))
    };
    if let Some(entry) = section.region_speeds.iter().find(|(_, speed)| !(speed.is_finite() && **speed > 0.0))
    {
        return Err(error("region_speeds", entry, "above 0"));
    }
    let is_negative = |traffic: f64| !(traffic.is_finite() && traffic >= 0.0);
    if let Some(entry) = section.region_bytes_per_flop.iter().find(|(_, traffic)| is_negative(**traffic)) {
        return Err(error("region_bytes_per_flop", entry, "from 0"));
    }
    non_negative("compute", "bytes_per_flop", section.bytes_per_flop)?;
    Ok(section)
}

fn mpi_parameters(
    section: MpiSection,
    ComputeSection { region_speeds, bytes_per_flop, region_bytes_per_flop, .. }: ComputeSection,
    preset: &NetworkPreset,
) -> Result<Parameters, ConfigError> {
    let defaults = preset.mpi();
    let detached_below = bytes("detached_below_bytes", section.detached_below_bytes)?;
    let eager_below = bytes("eager_below_bytes", section.eager_below_bytes)?;
    // The sender of an eager message does not wait: the limit that is set moves the preset's other one.
    let (eager_below, detached_below) = match (eager_below, detached_below) {
        (Some(eager), Some(detached)) => (eager, detached),
        (Some(eager), None) => (eager, defaults.detached_below.max(eager)),
        (None, Some(detached)) => (defaults.eager_below.min(detached), detached),
        (None, None) => (defaults.eager_below, defaults.detached_below),
    };
    if eager_below > detached_below {
        let message = format!("found {eager_below}, expected at most detached_below_bytes, {detached_below}");
        return Err(value_error("mpi", "eager_below_bytes", message));
    }
    let selection = collectives::selection(&section)?;
    Ok(Parameters {
        envelope: bytes("envelope_bytes", section.envelope_bytes)?.unwrap_or(defaults.envelope),
        detached_below,
        eager_below,
        send: overhead("send_overhead", section.send_overhead)?,
        isend: overhead("isend_overhead", section.isend_overhead)?,
        receive: overhead("receive_overhead", section.receive_overhead)?,
        irecv: duration("irecv_s", section.irecv_s)?.unwrap_or(defaults.irecv),
        call_overheads: call_overheads(section.call_overhead)?,
        test: defaults.test,
        test_grows: defaults.test_grows,
        iprobe: defaults.iprobe,
        outcomes: match section.outcomes {
            None => Outcomes::default(),
            Some(OutcomesName::Reenact) => Outcomes::Reenact,
            Some(OutcomesName::Recorded) => Outcomes::Recorded,
        },
        progress: match section.progress {
            None => Progress::default(),
            Some(ProgressName::Asynchronous) => Progress::Asynchronous,
            Some(ProgressName::Calls) => Progress::Calls,
        },
        communicators_cost: section.communicators_cost.unwrap_or(defaults.communicators_cost),
        collectives: selection,
        collective_io: match section.collective_io {
            None => CollectiveIo::default(),
            Some(CollectiveIoName::Smpi) => CollectiveIo::Smpi,
            Some(CollectiveIoName::Romio) => CollectiveIo::Romio,
        },
        region_speeds,
        bytes_per_flop,
        region_bytes_per_flop,
    })
}

fn call_overheads(section: BTreeMap<String, String>) -> Result<BTreeMap<ChargedCall, Overhead>, ConfigError> {
    let entry = |(name, text): (String, String)| {
        let error = |message: String| value_error("mpi", "call_overhead", format!("{name:?}: {message}"));
        let Some(call) = ChargedCall::from_name(&name) else {
            let names: Vec<&str> = ChargedCall::all().map(ChargedCall::name).collect();
            return Err(error(format!("found no such call, expected one of {}", names.join(", "))));
        };
        Ok((call, text.parse().map_err(|problem: OverheadError| error(problem.to_string()))?))
    };
    section.into_iter().map(entry).collect()
}

/// Returns the trace of a section, which is named or generated; `None` if it is neither.
fn trace_file(
    (section, key): (&'static str, &'static str),
    path: Option<PathBuf>,
    recipe: Option<&str>,
    generate: Generate,
) -> Result<Option<TraceFile>, ConfigError> {
    match (path, recipe) {
        (Some(_), Some(_)) => Err(value_error(
            section,
            "generate",
            format!("stands beside {section}.{key}: leave one of them out"),
        )),
        (None, Some(recipe)) => match generate(recipe) {
            Ok(generated) => Ok(Some(generated)),
            Err(error) => Err(value_error(section, "generate", error.to_string())),
        },
        (path, None) => Ok(path.map(TraceFile::from)),
    }
}

/// Resolves the costs of polls that the configuration sets; the others depend on the trace.
fn polling(section: &MpiSection) -> Result<Polling, ConfigError> {
    Ok(Polling {
        test: duration("test_s", section.test_s)?,
        grows: section.test_grows,
        iprobe: duration("iprobe_s", section.iprobe_s)?,
    })
}

fn duration(key: &'static str, time: Option<Seconds>) -> Result<Option<SimDuration>, ConfigError> {
    let Some(Seconds(seconds)) = time else { return Ok(None) };
    let message =
        || format!("found {seconds}, expected a time from 0 to {:.0} s", SimTime::MAX.as_secs_f64());
    SimDuration::try_from_secs_f64(seconds).map(Some).ok_or_else(|| value_error("mpi", key, message()))
}

/// Checks a size, which must stay below 2^48 bytes as in traces, so that no sum of two overflows.
fn bytes(key: &'static str, size: Option<Size>) -> Result<Option<Bytes>, ConfigError> {
    match size.map(|Size(bytes)| bytes as u64) {
        Some(size) if size > 1 << 48 => {
            Err(value_error("mpi", key, format!("found {size}, expected 0 to 2^48 bytes")))
        }
        size => Ok(size.map(Bytes::new)),
    }
}

fn overhead(key: &'static str, text: Option<String>) -> Result<Overhead, ConfigError> {
    let Some(text) = text else { return Ok(Overhead::default()) };
    text.parse().map_err(|error: mpi_model::OverheadError| value_error("mpi", key, error.to_string()))
}

/// Returns the number of threads that can run at the same time; 1 if the system does not report it.
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(super) fn threads(section: &EngineSection) -> Result<usize, ConfigError> {
    match section.threads {
        None => Ok(1),
        Some(threads @ 1..=MAX_THREADS) => Ok(threads),
        Some(other) => Err(value_error(
            "engine",
            "threads",
            format!("found {other}, expected a whole number from 1 to {MAX_THREADS}"),
        )),
    }
}

/// Returns the number of groups of the communication matrix, if it is requested.
fn matrix_groups(section: &AnalysisSection) -> Result<Option<u32>, ConfigError> {
    let groups = section.matrix_groups.unwrap_or(512);
    if !(1..=MAX_MATRIX_GROUPS).contains(&groups) {
        let message = format!("found {groups}, expected a whole number from 1 to {MAX_MATRIX_GROUPS}");
        return Err(value_error("analysis", "matrix_groups", message));
    }
    Ok(section.matrix.unwrap_or_default().then_some(groups))
}

fn run_ahead(section: &EngineSection) -> Result<RunAhead, ConfigError> {
    let Some(found) = &section.run_ahead_s else { return Ok(RunAhead::Auto) };
    let window = match read_seconds_or_auto(found) {
        Ok(None) => return Ok(RunAhead::Auto),
        Ok(Some(seconds)) => SimDuration::try_from_secs_f64(seconds),
        Err(_) => None,
    };
    window.map(RunAhead::Window).ok_or_else(|| {
        let message =
            format!("found {found}, expected \"auto\" or a time such as 0.5 (seconds) or \"100us\"");
        value_error("engine", "run_ahead_s", message)
    })
}
