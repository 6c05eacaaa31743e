//! The section `[timeline]`.

use std::ops::Range;
use std::path::Path;

use mpi_model::Excerpt;
use pdes_core::{SimDuration, SimTime};
use replay::TimelinePlan;
use timeline::Format;

use super::value_error;
use crate::config::ConfigError;
use crate::config::sections::TimelineSection;

/// Units of time \[ps\]; a unit comes before those that are its suffixes.
const UNITS: [(&str, f64); 7] =
    [("ms", 1e9), ("us", 1e6), ("\u{b5}s", 1e6), ("\u{3bc}s", 1e6), ("ns", 1e3), ("ps", 1.0), ("s", 1e12)];

pub(super) fn timeline(section: TimelineSection) -> Result<Option<TimelinePlan>, ConfigError> {
    let TimelineSection { file, format, window, ranks, collectives } = section;
    let asks = format.is_some() || window.is_some() || ranks.is_some() || collectives.is_some();
    let Some(path) = file else {
        let message = "is missing: name the file of the timeline with --timeline FILE";
        return if asks { Err(value_error("timeline", "file", message)) } else { Ok(None) };
    };
    let whole = Excerpt::default();
    let excerpt = Excerpt {
        window: window.as_deref().map_or(Ok(whole.window), parse_window)?,
        ranks: ranks.as_deref().map_or(Ok(whole.ranks), parse_ranks)?,
        operations: collectives.unwrap_or(whole.operations),
    };
    let format = find_format(format.as_deref(), &path)?;
    if !format.is_built() {
        let message = format!("this program was built without {format}: build it with --features {format}");
        return Err(value_error("timeline", "format", message));
    }
    Ok(Some(TimelinePlan { format, path, excerpt }))
}

fn find_format(name: Option<&str>, path: &Path) -> Result<Format, ConfigError> {
    let names = || Format::ALL.map(Format::name).join(", ");
    match name {
        Some(name) => Format::from_name(name).ok_or_else(|| {
            value_error("timeline", "format", format!("found {name:?}, expected one of {}", names()))
        }),
        None => Format::from_path(path).ok_or_else(|| {
            let ends = Format::ALL.into_iter().flat_map(Format::extensions).copied();
            let ends: Vec<&str> = ends.collect();
            let message = format!(
                "found {}, expected a name that ends in one of {}, or timeline.format (--timeline-format): one of {}",
                path.display(),
                ends.join(", "),
                names()
            );
            value_error("timeline", "file", message)
        }),
    }
}

/// Splits `A..B`, of which either part may be missing.
fn split_range(text: &str) -> Option<(Option<&str>, Option<&str>)> {
    let (start, end) = text.split_once("..")?;
    let given = |part: &str| !part.trim().is_empty();
    Some((Some(start).filter(|part| given(part)), Some(end).filter(|part| given(part))))
}

fn parse_window(text: &str) -> Result<Range<SimTime>, ConfigError> {
    let window = split_range(text).and_then(|(start, end)| {
        let start = start.map_or(Some(SimTime::ZERO), parse_instant)?;
        Some(start..end.map_or(Some(SimTime::MAX), parse_instant)?)
    });
    window.filter(|window| window.start < window.end).ok_or_else(|| {
        let expected = "expected START..END with START before END, such as 10s..12s, 1.5ms.. or ..200us";
        value_error("timeline", "window", format!("found {text:?}, {expected}"))
    })
}

fn parse_instant(text: &str) -> Option<SimTime> {
    let text = text.trim();
    let (number, picos) = UNITS.iter().find_map(|&(unit, picos)| Some((text.strip_suffix(unit)?, picos)))?;
    let number: f64 = number.trim().parse().ok()?;
    SimTime::ZERO.checked_add(SimDuration::try_from_picos_f64(number * picos)?)
}

fn parse_ranks(text: &str) -> Result<Range<u32>, ConfigError> {
    let number = |text: &str| text.trim().parse().ok();
    let ranks = split_range(text).and_then(|(first, end)| {
        let first = first.map_or(Some(0), number)?;
        Some(first..end.map_or(Some(u32::MAX), number)?)
    });
    ranks.filter(|ranks| !ranks.is_empty()).ok_or_else(|| {
        let expected =
            "expected FIRST..END with FIRST below END, which is not part of it, such as 0..64 or 128..";
        value_error("timeline", "ranks", format!("found {text:?}, {expected}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_units_and_open_ends() {
        let picos =
            |text| parse_window(text).ok().map(|Range { start, end }| (start.as_picos(), end.as_picos()));
        assert_eq!(picos("10s..12s"), Some((10_000_000_000_000, 12_000_000_000_000)));
        assert_eq!(picos("1.5us..2 ms"), Some((1_500_000, 2_000_000_000)));
        assert_eq!(picos("..7ns"), Some((0, 7000)));
        assert_eq!(picos("3ps.."), Some((3, u64::MAX)));
        for wrong in ["10s", "12s..10s", "1..2", "-1s..2s", "1s..1s", "1s...2s", "1e30s..", "nans.."] {
            assert!(parse_window(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranks_end_before_the_last_number() {
        assert_eq!(parse_ranks("0..64").ok(), Some(0..64));
        assert_eq!(parse_ranks("..3").ok(), Some(0..3));
        assert_eq!(parse_ranks("128..").ok(), Some(128..u32::MAX));
        for wrong in ["5", "3..3", "4..3", "a..b", "-1..2"] {
            assert!(parse_ranks(wrong).is_err(), "{wrong}");
        }
    }
}
