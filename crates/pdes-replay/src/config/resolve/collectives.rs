//! Selection of the algorithms of collective operations.

use mpi_model::collective::{Bounds, MeasuredTimes, Operation, Selection, SelectionError, Selector};

use super::{ConfigError, measured, value_error};
use crate::config::sections::MpiSection;

/// Returns the selection: the selector, overridden by the choices for single operations and by the rows of tables.
pub(super) fn selection(section: &MpiSection) -> Result<Selection, ConfigError> {
    let mut selection = Selection::new(selector(section.collectives.as_deref())?);
    for operation in Operation::ALL {
        if let Some(algorithm) = chosen(section, operation) {
            let refused = |error: SelectionError| value_error("mpi", operation.name(), error.to_string());
            selection.choose(operation, algorithm).map_err(refused)?;
        }
    }
    for (name, rows) in &section.table {
        let operation = Operation::ALL.into_iter().find(|operation| operation.name() == name);
        let Some(operation) = operation else {
            let names = Operation::ALL.map(|operation| format!("{:?}", operation.name())).join(", ");
            return Err(value_error("mpi", "table", format!("found {name:?}, expected {names}")));
        };
        for row in rows {
            let bounds = Bounds { ranks_below: row.ranks_below, bytes_below: row.bytes_below };
            let refused =
                |error: SelectionError| value_error("mpi.table", operation.name(), error.to_string());
            selection.add_row(operation, bounds, &row.algorithm).map_err(refused)?;
        }
    }
    measure(&mut selection, section)?;
    Ok(selection)
}

/// Reads the measured times of operations.
fn measure(selection: &mut Selection, section: &MpiSection) -> Result<(), ConfigError> {
    for (name, files) in &section.measured {
        let refused = |message| value_error("mpi", "measured", message);
        let known = measured::PROGRAMS.map(|(operation, _)| operation);
        let operation = known.into_iter().find(|operation| operation.name() == name).ok_or_else(|| {
            let names = known.map(|operation| format!("{:?}", operation.name())).join(", ");
            refused(format!("found {name:?}, expected {names}"))
        })?;
        if selection.chosen(operation).is_some() {
            return Err(refused(format!("{name} has an algorithm, too (mpi.{name}): leave one of them out")));
        }
        let mut times = MeasuredTimes::default();
        files.iter().try_for_each(|file| measured::add(&mut times, operation, file)).map_err(refused)?;
        selection.measure(operation, times);
    }
    Ok(())
}

fn selector(name: Option<&str>) -> Result<Selector, ConfigError> {
    let Some(name) = name else { return Ok(Selector::default()) };
    Selector::from_name(name).ok_or_else(|| {
        let names = Selector::ALL.map(|selector| format!("{:?}", selector.name())).join(", ");
        value_error("mpi", "collectives", format!("found {name:?}, expected one of {names}"))
    })
}

fn chosen(section: &MpiSection, operation: Operation) -> Option<&str> {
    let key = match operation {
        Operation::Barrier => &section.barrier,
        Operation::Bcast => &section.bcast,
        Operation::Reduce => &section.reduce,
        Operation::Allreduce => &section.allreduce,
        Operation::Gather => &section.gather,
        Operation::Scatter => &section.scatter,
        Operation::Allgather => &section.allgather,
        Operation::Allgatherv => &section.allgatherv,
        Operation::Alltoall => &section.alltoall,
        Operation::Alltoallv => &section.alltoallv,
        Operation::ReduceScatter => &section.reduce_scatter,
    };
    key.as_deref()
}
