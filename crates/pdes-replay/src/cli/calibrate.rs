//! The command `calibrate`: creates a machine from measurements.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use calibration::{Computations, Machine, Measurements, write_observations};
use clap::Args;
use outputs::{AtomicFile, FileRoles, is_stdout};
use pdes_replay::{CallFit, Config, Prediction, fit_calls, measured_computations};
use trace_mmap::LoadOptions;

use super::{Misuse, files, processes};

/// Largest message size that MPI's counts allow in every library \[B\].
const MAX_MESSAGE_BYTES: u64 = 1 << 30;

#[derive(Debug, Args)]
#[command(
    after_help = "Run by two processes, as in `mpirun -np 2 pdes-replay calibrate -o machine.toml`, it measures; with --from it \
    reads."
)]
pub(crate) struct CalibrateArguments {
    /// Machine: a configuration for --config. A page of the same name (.html) shows data, fits and residuals.
    #[arg(short, long, value_name = "FILE", required_unless_present = "program")]
    output: Option<PathBuf>,
    /// Files of measurements to read: output of osu_latency, osu_bw, IMB or SKaMPI, CSV or JSON of SimGrid's calibration, or
    /// observations of --data.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    from: Vec<PathBuf>,
    /// Writes all observations into this directory (observations.csv).
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Trace that was recorded on this machine with `trace acquire --with-times`: its computations provide the speed of hosts, and the
    /// differences between the regions of the program.
    #[arg(long, value_name = "TRACE")]
    computations: Option<PathBuf>,
    /// Traces that were recorded on this machine with `trace acquire --with-times`: the costs of calls (mpi.call_overhead) are fitted to
    /// their calls. With several, each is also predicted by the others.
    #[arg(long, num_args = 1.., value_name = "TRACE")]
    calls: Vec<PathBuf>,
    /// Measures nothing, but runs a program of typical calls, to be recorded for --calls: so many exchanges and operations, 4000 if
    /// no number is given.
    #[arg(long, num_args = 0..=1, default_missing_value = "4000", value_name = "STEPS",
        conflicts_with_all = ["output", "from", "data", "calls", "computations"])]
    program: Option<u32>,
    /// Speed of a core in flops per second, instead of the measured one.
    #[arg(long, value_name = "FLOPS")]
    speed: Option<f64>,
    /// Quantile of the observations of a size that represents them: 0.5 is the median; use less if other work on the machine makes
    /// many of them longer.
    #[arg(long, value_name = "PART", default_value_t = 0.5)]
    quantile: f64,
    #[command(flatten)]
    plan: PlanArguments,
}

/// The extent of the measurements.
#[derive(Debug, Args)]
struct PlanArguments {
    /// Largest message in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 22, conflicts_with = "from")]
    largest: u64,
    /// Number of sizes above 16 B.
    #[arg(long, value_name = "N", default_value_t = 120, conflicts_with = "from")]
    sizes: u32,
    /// Number of visits of each experiment, in random order; each visit makes four observations.
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "from")]
    visits: u32,
    /// Seed of sizes and order.
    #[arg(long, value_name = "SEED", default_value_t = 1, conflicts_with = "from")]
    seed: u64,
}

/// Measures or reads, fits, and writes the machine.
pub(crate) fn run(arguments: &CalibrateArguments) -> Result<()> {
    check(arguments)?;
    if let Some(steps) = arguments.program {
        return run_program(steps, arguments.plan.seed);
    }
    if arguments.from.is_empty() {
        // The second of the two measuring processes has nothing to write.
        return measure(&arguments.plan)?.map_or(Ok(()), |measurements| write(arguments, measurements));
    }
    // Files are read by one process, however many there are.
    if processes::is_not_first() {
        return Ok(());
    }
    write(arguments, calibration::read_all(&arguments.from)?)
}

fn check(arguments: &CalibrateArguments) -> Result<(), Misuse> {
    let CalibrateArguments { speed, quantile, plan, .. } = arguments;
    if !(0.0..=1.0).contains(quantile) {
        return Err(Misuse(format!("--quantile: found {quantile}, expected a number from 0 to 1")));
    }
    if let Some(speed) = speed.filter(|speed| !(speed.is_finite() && *speed > 0.0)) {
        return Err(Misuse(format!("--speed: found {speed}, expected a number of flops above 0")));
    }
    if !(1..=MAX_MESSAGE_BYTES).contains(&plan.largest) {
        return Err(Misuse(format!(
            "--largest: found {}, expected 1 to {MAX_MESSAGE_BYTES} bytes",
            plan.largest
        )));
    }
    let mut roles = FileRoles::default();
    arguments.from.iter().for_each(|path| roles.input("file of measurements", path));
    arguments.calls.iter().chain(&arguments.computations).for_each(|path| files::add_trace(&mut roles, path));
    if let Some(output) = &arguments.output {
        roles.output("machine", output);
        page(output).iter().for_each(|page| roles.output("page", page));
    }
    roles.check()?;
    if plan.sizes == 0 || plan.visits == 0 {
        return Err(Misuse("--sizes and --visits: found 0, expected at least 1".to_owned()));
    }
    Ok(())
}

#[cfg(feature = "mpi")]
fn measure(plan: &PlanArguments) -> Result<Option<Measurements>> {
    use std::sync::atomic::AtomicU64;
    use std::time::SystemTime;

    use super::progress;

    let plan =
        calibration::Plan { seed: plan.seed, largest: plan.largest, sizes: plan.sizes, visits: plan.visits };
    let (done, all) = (AtomicU64::new(0), plan.experiments().len() as u64);
    let measured = match processes::is_not_first() {
        true => calibration::measure(&plan, &done),
        false => progress::watch_count(&done, all, "experiments", || calibration::measure(&plan, &done)),
    };
    let mut measured = match measured {
        // The first process reports the error; an earlier failure there would have stopped this one.
        Err(calibration::MeasureError::Processes { .. }) if processes::is_not_first() => None,
        measured => measured?,
    };
    if let Some(measurements) = &mut measured {
        let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        measurements.notes.insert(0, ("date".to_owned(), date));
        if cfg!(debug_assertions) {
            const UNOPTIMISED: &str =
                "calls were measured by a build without optimisation, and take up to three times as long";
            tracing::warn!("{UNOPTIMISED}: calibrate by a release build");
            measurements.notes.push(("warning".to_owned(), UNOPTIMISED.to_owned()));
        }
    }
    Ok(measured)
}

#[cfg(not(feature = "mpi"))]
fn measure(_: &PlanArguments) -> Result<Option<Measurements>> {
    processes::join()?;
    anyhow::bail!(
        "this program was built without MPI and cannot measure; build it with `cargo build --release --features mpi`, or read \
         measurements with --from FILE"
    )
}

#[cfg(feature = "mpi")]
fn run_program(steps: u32, seed: u64) -> Result<()> {
    match calibration::run_program(steps, seed) {
        Err(calibration::MeasureError::Processes { .. }) if processes::is_not_first() => Ok(()),
        done => Ok(done?),
    }
}

#[cfg(not(feature = "mpi"))]
fn run_program(_: u32, _: u64) -> Result<()> {
    anyhow::bail!(
        "this program was built without MPI and cannot send messages; build it with `cargo build --release --features mpi`"
    )
}

fn write(arguments: &CalibrateArguments, mut measurements: Measurements) -> Result<()> {
    if let Some(directory) = &arguments.data {
        write_data(directory, &measurements)?;
    }
    if arguments.quantile != 0.5 {
        let quantile =
            format!("{} of the observations of a size are not longer than the fit takes", arguments.quantile);
        measurements.notes.push(("quantile".to_owned(), quantile));
    }
    measurements.notes.push(("program".to_owned(), format!("pdes-replay {}", env!("CARGO_PKG_VERSION"))));
    let mut machine = Machine::fit_quantile(&measurements, arguments.quantile)?;
    if let Some(path) = &arguments.computations {
        machine.set_computations(computations(path)?);
        measurements.notes.push(("computations".to_owned(), path.display().to_string()));
    }
    machine.speed = arguments.speed.or(machine.speed);
    machine.is_local = arguments.from.is_empty();
    let fit = calls(&machine, &arguments.calls)?;
    for trace in &arguments.calls {
        measurements.notes.push(("calls".to_owned(), trace.display().to_string()));
    }
    machine.call_costs.clone_from(&fit.costs);
    let output = arguments.output.as_ref().expect("required, unless a program runs");
    outputs::write_file(output, machine.to_toml(&measurements.notes).as_bytes())
        .with_context(|| output.display().to_string())?;
    tracing::info!("wrote {}", output.display());
    #[cfg(feature = "pictures")]
    {
        let title = output.file_stem().unwrap_or_default().to_string_lossy();
        if let Some(page) = page(output) {
            machine.write_page(&title, &measurements, &page)?;
            tracing::info!("wrote {}", page.display());
        }
    }
    fit.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    machine.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    print(&machine)?;
    print_predictions(&fit.cross_validation)
}

/// Returns the page beside a machine; there is none beside standard output, or in a program without pages.
fn page(output: &Path) -> Option<PathBuf> {
    (cfg!(feature = "pictures") && !is_stdout(output)).then(|| output.with_extension("html"))
}

/// Fits the costs of calls to programs, on a machine without such costs.
fn calls(machine: &Machine, traces: &[PathBuf]) -> Result<CallFit> {
    let Some(first) = traces.first() else { return Ok(CallFit::default()) };
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("machine.toml");
    std::fs::write(&file, machine.to_toml(&[]))?;
    let mut config = Config::from_path(&file)?;
    config.set_path("trace", "path", first);
    Ok(fit_calls(&config.resolve()?, traces)?)
}

/// Prints the errors of programs that were predicted by the calls of others.
fn print_predictions(predictions: &[Prediction]) -> Result<()> {
    let mut output = std::io::stdout().lock();
    if !predictions.is_empty() {
        writeln!(
            output,
            "error of the replay: without costs of calls, with those of the other programs, with those of all"
        )?;
    }
    for Prediction { trace, run_time, communication } in predictions {
        let percent = |errors: &[f64; 3]| errors.map(|error| format!("{:>+7.1} %", 100.0 * error)).concat();
        let name = trace.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(
            output,
            "  {name:<16} run time {}  communication {}",
            percent(run_time),
            percent(communication)
        )?;
    }
    Ok(())
}

fn computations(path: &Path) -> Result<Vec<Computations>> {
    let trace = trace_tools::load(path, &LoadOptions::default())?;
    measured_computations(&trace).with_context(|| path.display().to_string())
}

/// Writes all observations to a file.
fn write_data(directory: &Path, measurements: &Measurements) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let file = directory.join("observations.csv");
    let write = || {
        let mut output = AtomicFile::create(&file)?;
        write_observations(measurements, &mut output)?;
        output.commit()
    };
    write().with_context(|| file.display().to_string())?;
    tracing::info!("wrote {}", file.display());
    Ok(())
}

/// Prints the parameters of the machine.
fn print(machine: &Machine) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let (thresholds, segments) = (machine.thresholds, machine.one_way.curve.segments().len());
    writeln!(output, "latency: {:.3} us", machine.latency_s() * 1e6)?;
    writeln!(output, "bandwidth: {:.4} GB/s", machine.bandwidth() / 1e9)?;
    writeln!(output, "segments: {segments} of {} sizes", machine.one_way.points.len())?;
    writeln!(output, "sends wait from: {} B", thresholds.detached_below)?;
    if thresholds.progress_in_calls {
        writeln!(output, "data move: in calls of the receiver")?;
    }
    if let Some(speed) = machine.speed {
        writeln!(output, "speed: {:.4} Gflop/s", speed / 1e9)?;
    }
    for region in machine.computations.iter().filter(|region| !region.region.is_empty()) {
        let rate = region.rate().unwrap_or_default();
        writeln!(output, "  {}: {:.4} Gflop/s", region.region, rate / 1e9)?;
    }
    Ok(())
}
