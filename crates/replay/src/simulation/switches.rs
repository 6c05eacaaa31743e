//! What operations of switches need of a platform.

use mpi_model::collective::{Selection, SelectionError};
use netmodel::{Layout, NetworkShape, Platform};

use super::RunError;

/// Checks that the switches of the platform form a tree, if they carry out operations.
pub(super) fn check_switch_tree(selection: &Selection, platform: &Platform) -> Result<(), RunError> {
    let Some(operation) = selection.needs_switch_tree() else { return Ok(()) };
    match Layout::of(platform).map(|layout| layout.shape) {
        Some(NetworkShape::Star { .. } | NetworkShape::FatTree { .. }) => Ok(()),
        Some(NetworkShape::Switches(shape)) if shape.has_levels() => Ok(()),
        _ => Err(SelectionError::NoSwitchTree { operation }.into()),
    }
}
