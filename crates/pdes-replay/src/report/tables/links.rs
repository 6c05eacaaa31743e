//! The most contended links of a run as a table.

use std::fmt::Write as _;

use super::{MAX_LISTED, seconds};
use crate::report::{ContendedLink, Links};

/// Writes the links that held messages back longest, if any link carried a message.
pub(in crate::report) fn write(links: &Links, text: &mut String) -> std::fmt::Result {
    if links.top.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "\n{:<32} {:>20} {:>16} {:>9} {:>9}",
        "most contended links", "held messages back", "bytes", "mean load", "peak"
    )?;
    for link in links.top.iter().take(MAX_LISTED) {
        let ContendedLink { name, connects, bytes, utilisation, saturated_ps, peak, .. } = link;
        let name = connects.as_ref().unwrap_or(name);
        writeln!(
            text,
            "{name:<32} {:>18.9} s {bytes:>16} {:>7.1} % {:>7.1} %",
            seconds(*saturated_ps),
            100.0 * utilisation,
            100.0 * peak
        )?;
    }
    let bin = figures::quantity::seconds(seconds(links.bin_ps));
    writeln!(
        text,
        "peak: highest mean load of an interval of {bin}; a link that is full for less time has less"
    )
}
