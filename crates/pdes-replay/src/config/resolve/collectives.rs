//! Selection of the algorithms of collective operations.

use mpi_model::collective::{Bounds, Operation, Selection, SelectionError, Selector};

use super::{ConfigError, value_error};
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
    Ok(selection)
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
