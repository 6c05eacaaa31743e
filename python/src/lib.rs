//! The native part of the Python module `pdes_replay`: runs and sweeps, whose results are JSON.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use pdes_replay::{Config, Presentation, Report, SavedReport, Sweep};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

create_exception!(pdes_replay, ReplayError, PyException, "A run failed: a bad trace, a deadlock of the program, a file that cannot be read.");

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

fn misuse(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Replays a configuration: a file, or sections as JSON, with settings `section.key=value`. Returns the report as JSON.
#[pyfunction]
fn run(py: Python<'_>, path: Option<PathBuf>, sections: &str, settings: Vec<String>) -> PyResult<String> {
    let mut config = match path {
        Some(path) => Config::from_path(&path).map_err(misuse)?,
        None => Config::default(),
    };
    let sections: toml::Table = serde_json::from_str(sections).map_err(misuse)?;
    for (section, keys) in sections {
        let toml::Value::Table(keys) = keys else {
            return Err(misuse(format!("{section}: expected a dict of keys")));
        };
        for (key, value) in keys {
            config.insert(&section, &key, value);
        }
    }
    for setting in &settings {
        config.set(setting).map_err(misuse)?;
    }
    let spec = config.resolve().map_err(misuse)?;
    py.detach(|| {
        let report = Report::of(&spec).map_err(failed)?;
        serde_json::to_string(&report).map_err(failed)
    })
}

/// Runs a sweep, with its journal in a directory. Returns the axes and the rows as JSON.
#[pyfunction]
fn sweep(py: Python<'_>, path: PathBuf, output: PathBuf, at_once: usize, afresh: bool) -> PyResult<String> {
    let sweep = Sweep::from_path(&path).map_err(misuse)?;
    py.detach(|| {
        let found = sweep.run(&output, at_once.max(1), afresh, &AtomicU64::new(0)).map_err(failed)?;
        serde_json::to_string(&serde_json::json!({ "axes": found.axes, "rows": found.rows })).map_err(failed)
    })
}

/// Writes the page of a report, or of the difference between two.
#[pyfunction]
fn page(report: PathBuf, other: Option<PathBuf>, output: PathBuf) -> PyResult<()> {
    let read = |path: PathBuf| SavedReport::from_path(&path).map_err(failed);
    let presentation = match other {
        Some(other) => Presentation::comparison(read(report)?, read(other)?),
        None => Presentation::new(read(report)?, None),
    };
    presentation.write_page(&output).map_err(failed)
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ReplayError", module.py().get_type::<ReplayError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(sweep, module)?)?;
    module.add_function(wrap_pyfunction!(page, module)?)
}
