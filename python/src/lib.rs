//! The native part of the Python module `pdes_replay`: what it computes, with results as JSON, and programs in Python.

mod program;

use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;

use calibration::Machine;
use pdes_core::Cluster;
use pdes_replay::{
    Config, DiagnosedRun, Diagnosis, DiagnosisError, Presentation, Report, Rule, SavedReport, Sweep, WhatIf,
    WhatIfError,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use trace_tools::transform::{Hypothesis, TransformError};

/// A file, sections as JSON, and settings `section.key=value`.
type Configuration = (Option<PathBuf>, String, Vec<String>);

create_exception!(
    pdes_replay,
    ReplayError,
    PyException,
    "A run failed: a bad trace, a deadlock of the program, a file that cannot be read."
);

fn failed(error: impl std::error::Error) -> PyErr {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if !message.contains(&error.to_string()) {
            message = format!("{message}: {error}");
        }
        cause = error.source();
    }
    ReplayError::new_err(message)
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(failed)
}

fn misuse(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Returns a configuration: a file, or sections as JSON, with settings `section.key=value`.
fn config((path, sections, settings): Configuration) -> PyResult<Config> {
    let mut config = match path {
        Some(path) => Config::from_path(&path).map_err(misuse)?,
        None => Config::default(),
    };
    let sections: toml::Table = serde_json::from_str(&sections).map_err(misuse)?;
    for (section, value) in sections {
        match value {
            toml::Value::Table(keys) => {
                keys.into_iter().for_each(|(key, value)| config.insert(&section, &key, value));
            }
            toml::Value::Array(_) => config.insert_section(&section, value),
            _ => return Err(misuse(format!("{section}: expected a dict of keys, or a list of dicts"))),
        }
    }
    for setting in &settings {
        config.set(setting).map_err(misuse)?;
    }
    Ok(config)
}

/// Replays a configuration. Returns the report as JSON.
#[pyfunction]
fn run(py: Python<'_>, configuration: Configuration) -> PyResult<String> {
    let spec = config(configuration)?.resolve().map_err(misuse)?;
    py.detach(|| json(&Report::of(&spec).map_err(failed)?))
}

/// Runs a program in place of a trace: a function that returns the generator of a rank. Returns the report as JSON.
#[pyfunction]
fn simulate(
    py: Python<'_>,
    function: Py<PyAny>,
    name: &str,
    ranks: u32,
    configuration: Configuration,
) -> PyResult<String> {
    let mut config = config(configuration)?;
    if ranks == 0 {
        return Err(misuse("ranks: found 0, expected at least one"));
    }
    if let Some(key) = ["path", "generate"]
        .into_iter()
        .find(|key| config.section("trace").is_some_and(|trace| trace.contains_key(*key)))
    {
        return Err(misuse(format!("trace.{key}: the ranks are functions: leave the trace out")));
    }
    config.set_path("trace", "path", name.as_ref());
    let spec = config.resolve().map_err(misuse)?;
    let (program, exceptions) = program::program(name, ranks, function);
    let report = py.detach(|| json(&Report::of(&spec.with_code(program)).map_err(failed)?));
    let exception = exceptions.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
    match exception {
        // Such as KeyboardInterrupt.
        Some((_, exception)) if !exception.is_instance_of::<PyException>(py) => Err(exception),
        Some((rank, exception)) => {
            let error = ReplayError::new_err(format!("{name}: rank {rank}: {exception}"));
            error.set_cause(py, Some(exception));
            Err(error)
        }
        None => report,
    }
}

/// Diagnoses a run. Returns the diagnosis as JSON.
#[pyfunction]
fn diagnose(py: Python<'_>, configuration: Configuration, gain: bool) -> PyResult<String> {
    let mut config = config(configuration)?;
    let explain = |error| match error {
        DiagnosisError::Config(_) | DiagnosisError::NoTimes => misuse(error),
        error => failed(error),
    };
    py.detach(|| {
        let run = DiagnosedRun::of(&mut config).map_err(explain)?;
        let diagnosis = Diagnosis::of(&mut Cluster::alone(), &run, &Rule::own()).map_err(explain)?;
        let mut diagnosis = diagnosis.expect("this process is the first one");
        if gain {
            diagnosis.simulate_gains(&config).map_err(explain)?;
        }
        json(&diagnosis)
    })
}

/// Replays hypotheses, a file or its content as JSON, with their results in a directory. Returns the results as JSON.
#[pyfunction]
fn what_if(
    py: Python<'_>,
    configuration: Configuration,
    hypotheses: (Option<PathBuf>, String),
    output: PathBuf,
    at_once: usize,
) -> PyResult<String> {
    let config = config(configuration)?;
    let explain = |error: TransformError| if error.is_misuse() { misuse(error) } else { failed(error) };
    let hypotheses = match hypotheses {
        (Some(path), _) => Hypothesis::from_path(&path),
        (None, content) => {
            let table: toml::Table = serde_json::from_str(&content).map_err(misuse)?;
            Hypothesis::from_text(&table.to_string(), "hypotheses".as_ref())
        }
    };
    let hypotheses = hypotheses.map_err(explain)?;
    py.detach(|| {
        let what_if = WhatIf::new(&config, &hypotheses, None, &output).map_err(|error| match error {
            WhatIfError::Transform(error) => explain(error),
            error @ WhatIfError::Config(_) => misuse(error),
            error if error.is_misuse() => misuse(error),
            error => failed(error),
        })?;
        let results = what_if.run(at_once.max(1), &AtomicU64::new(0)).map_err(failed)?;
        results.write_pages("what-if", &output).map_err(failed)?;
        json(&results)
    })
}

/// Fits a machine to measurements. Returns its configuration as TOML and as JSON, and warnings.
#[pyfunction]
fn calibrate(
    py: Python<'_>,
    files: Vec<PathBuf>,
    speed: Option<f64>,
    quantile: f64,
) -> PyResult<(String, String, Vec<String>)> {
    if !(0.0..=1.0).contains(&quantile) {
        return Err(misuse(format!("quantile: found {quantile}, expected a number from 0 to 1")));
    }
    if let Some(speed) = speed.filter(|speed| !(speed.is_finite() && *speed > 0.0)) {
        return Err(misuse(format!("speed: found {speed}, expected a number of flops above 0")));
    }
    py.detach(|| {
        let measurements = calibration::read_all(&files).map_err(failed)?;
        let mut machine = Machine::fit_quantile(&measurements, quantile).map_err(failed)?;
        machine.speed = speed.or(machine.speed);
        let text = machine.to_toml(&measurements.notes);
        let sections: toml::Table = text.parse().map_err(failed)?;
        Ok((text, json(&sections)?, machine.warnings()))
    })
}

/// Runs a sweep, with its journal in a directory. Returns the axes and the rows as JSON.
#[pyfunction]
fn sweep(py: Python<'_>, path: PathBuf, output: PathBuf, at_once: usize, afresh: bool) -> PyResult<String> {
    let sweep = Sweep::from_path(&path).map_err(misuse)?;
    py.detach(|| {
        let found = sweep.run(&output, at_once.max(1), afresh, &AtomicU64::new(0)).map_err(failed)?;
        json(&serde_json::json!({ "axes": found.axes, "rows": found.rows }))
    })
}

/// Writes the page of a report, or of the difference between two.
#[pyfunction]
fn page(report: PathBuf, other: Option<PathBuf>, output: PathBuf) -> PyResult<()> {
    let read = |path: PathBuf| SavedReport::from_path(&path).map_err(failed);
    let presentation = match other {
        Some(other) => Presentation::comparison(read(report)?, read(other)?),
        None => Presentation::new(read(report)?),
    };
    presentation.write_page(&output).map_err(failed)
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ReplayError", module.py().get_type::<ReplayError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<program::Mpi>()?;
    module.add_class::<program::Call>()?;
    module.add_class::<program::Request>()?;
    module.add_class::<program::Message>()?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(diagnose, module)?)?;
    module.add_function(wrap_pyfunction!(what_if, module)?)?;
    module.add_function(wrap_pyfunction!(calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(sweep, module)?)?;
    module.add_function(wrap_pyfunction!(page, module)?)
}
