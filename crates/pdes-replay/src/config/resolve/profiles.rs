//! The sections `[[profile]]`.

use netmodel::quantity::{Bandwidth, Seconds};
use netmodel::{Profile, ProfileSpec, ProfiledQuantity};
use pdes_core::{SimDuration, SimTime};
use serde::Deserialize;

use super::value_error;
use crate::config::ConfigError;
use crate::config::sections::{ProfileSection, ProfiledQuantityName};

pub(super) fn profiles(sections: Vec<ProfileSection>) -> Result<Vec<ProfileSpec>, ConfigError> {
    let mut profiles: Vec<ProfileSpec> = Vec::new();
    for section in sections {
        let spec = profile(section)?;
        let is_same = |other: &ProfileSpec| {
            (other.is_of_hosts, &other.name, other.quantity) == (spec.is_of_hosts, &spec.name, spec.quantity)
        };
        if profiles.iter().any(is_same) {
            let message =
                format!("two profiles are of the same quantity of {:?}: leave one of them out", spec.name);
            return Err(value_error("profile", "quantity", message));
        }
        profiles.push(spec);
    }
    Ok(profiles)
}

fn profile(section: ProfileSection) -> Result<ProfileSpec, ConfigError> {
    let ProfileSection { host, link, quantity, points, file, period } = section;
    let (is_of_hosts, name) = match (host, link) {
        (Some(host), None) => (true, host),
        (None, Some(link)) => (false, link),
        _ => return Err(value_error("profile", "host", "expected either host or link in each [[profile]]")),
    };
    let error = |key, message: String| value_error("profile", key, format!("{name:?}: {message}"));
    let quantity = match (quantity, is_of_hosts) {
        (Some(ProfiledQuantityName::Speed), true) => ProfiledQuantity::Speed,
        (Some(ProfiledQuantityName::Bandwidth), false) => ProfiledQuantity::Bandwidth,
        (Some(ProfiledQuantityName::Latency), false) => ProfiledQuantity::Latency,
        (Some(ProfiledQuantityName::State), _) => ProfiledQuantity::State,
        (_, true) => return Err(error("quantity", "expected \"speed\" or \"state\" of a host".to_owned())),
        (_, false) => {
            let message = "expected \"bandwidth\", \"latency\" or \"state\" of a link".to_owned();
            return Err(error("quantity", message));
        }
    };
    let instant = |key, Seconds(seconds)| {
        let time = SimDuration::try_from_secs_f64(seconds);
        time.ok_or_else(|| error(key, format!("found {seconds} s, expected a time from 0")))
    };
    let (profile, is_relative) = match (points, file) {
        (Some(points), None) => {
            let is_relative = quantity != ProfiledQuantity::State
                && points.first().is_some_and(|(_, value)| value.is_integer() || value.is_float());
            let point = |(number, (at, found)): (usize, (Seconds, toml::Value))| {
                let value = value(quantity, is_relative, &found).ok_or_else(|| {
                    let expected = match (quantity, is_relative) {
                        (ProfiledQuantity::State, _) => "0 or 1",
                        (ProfiledQuantity::Speed, _) => "a number, a factor",
                        (_, true) => "a number, as in the first point",
                        (_, false) => "a text with a unit, as in the first point",
                    };
                    error("points", format!("point {number}: found {found}, expected {expected}"))
                })?;
                Ok((SimTime::ZERO + instant("points", at)?, value))
            };
            let points = (1..).zip(points).map(point).collect::<Result<Vec<_>, ConfigError>>()?;
            let period = period.map(|period| instant("period", period)).transpose()?;
            let profile = Profile::new(points, period).map_err(|found| error("points", found.to_string()))?;
            (profile, is_relative)
        }
        (None, Some(_)) if period.is_some() => {
            let message = "stands beside a file, which says it by PERIODICITY or LOOPAFTER".to_owned();
            return Err(error("period", message));
        }
        (None, Some(file)) => {
            let profile = Profile::from_file(&file).map_err(|found| error("file", found.to_string()))?;
            (profile, quantity == ProfiledQuantity::Speed)
        }
        _ => return Err(error("points", "expected either points or file".to_owned())),
    };
    Ok(ProfileSpec { is_of_hosts, name, quantity, is_relative, profile })
}

/// Reads a value of a point.
fn value(quantity: ProfiledQuantity, is_relative: bool, found: &toml::Value) -> Option<f64> {
    let number = found.as_float().or(found.as_integer().map(|number| number as f64));
    match quantity {
        ProfiledQuantity::State => number.filter(|state| [0.0, 1.0].contains(state)),
        _ if is_relative => number,
        ProfiledQuantity::Speed => None,
        ProfiledQuantity::Bandwidth if found.is_str() => {
            Bandwidth::deserialize(found.clone()).ok().map(|Bandwidth(value)| value)
        }
        ProfiledQuantity::Latency if found.is_str() => {
            Seconds::deserialize(found.clone()).ok().map(|Seconds(value)| value)
        }
        ProfiledQuantity::Bandwidth | ProfiledQuantity::Latency => None,
    }
}
