//! Parsing of epochs and regions.

use pdes_core::SimDuration;
use replay::{Epoch, Model, Parallelism, RegionSource};

use super::value_error;
use crate::config::ConfigError;
use crate::config::sections::NetworkSection;
use crate::config::value_schemas::read_seconds_or_auto;

/// Parses `epoch_s`.
pub(super) fn epoch(section: &NetworkSection, model: &Model) -> Result<Epoch, ConfigError> {
    let found = match &section.epoch_s {
        None => return Ok(Epoch::Exact),
        Some(found) => found,
    };
    let expected = "expected \"auto\", or a time in seconds of a picosecond or more, or 0, which is exact";
    let seconds = read_seconds_or_auto(found)
        .map_err(|_| value_error("network", "epoch_s", format!("found {found}, {expected}")))?;
    let epoch = match seconds {
        None => Epoch::Auto,
        Some(0.0) => return Ok(Epoch::Exact),
        Some(seconds) => match SimDuration::try_from_secs_f64(seconds) {
            Some(epoch) if epoch > SimDuration::ZERO => Epoch::Fixed(epoch),
            _ => return Err(value_error("network", "epoch_s", format!("found {found}, {expected}"))),
        },
    };
    if model.with_epochs.is_none() {
        let message = format!("found {found}, but the model {:?} has no epochs; remove the key", model.key);
        return Err(value_error("network", "epoch_s", message));
    }
    Ok(epoch)
}

/// Parses `regions`, which have no meaning for exact contention.
pub(super) fn regions(
    section: &NetworkSection,
    epoch: Epoch,
    model: &Model,
) -> Result<RegionSource, ConfigError> {
    let Some(found) = &section.regions else { return Ok(RegionSource::Natural) };
    let regions = match found {
        toml::Value::String(auto) if auto == "auto" => RegionSource::Natural,
        toml::Value::String(path) => RegionSource::File(path.into()),
        toml::Value::Integer(count @ 1..=0xFFFF_FFFF) => RegionSource::Count(*count as u32),
        _ => {
            let message = format!("found {found}, expected \"auto\", a number from 1, or the name of a file");
            return Err(value_error("network", "regions", message));
        }
    };
    let has_regions = epoch != Epoch::Exact || model.parallelism == Parallelism::Regions;
    if !has_regions && regions != RegionSource::Natural && regions != RegionSource::Count(1) {
        let message =
            format!("found {found}, but without epochs there is one region; set epoch_s to \"auto\"");
        return Err(value_error("network", "regions", message));
    }
    Ok(regions)
}
