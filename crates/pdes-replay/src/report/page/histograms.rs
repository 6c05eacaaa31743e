//! Histograms of messages and waits.

use figures::quantity::{bytes, seconds};
use figures::{Bins, Figure};

use super::super::{Histogram, Histograms};

pub(in crate::report) fn figures(histograms: &Histograms) -> Vec<Figure> {
    let Histograms { message_bytes, latency_ps, waiting_ps } = histograms.clone();
    let latency = "Time of messages from the send to the arrival";
    let waits = "Waits for others, where there is any";
    vec![
        figure("sizes", "Size of messages", "payload", message_bytes, short_bytes, 1.0),
        figure("latencies", latency, "time", latency_ps, short_time, 1e-12),
        figure("waits", waits, "time", waiting_ps, short_time, 1e-12),
    ]
}

fn figure(
    name: &'static str,
    title: &'static str,
    axis: &'static str,
    histogram: Histogram,
    label: fn(f64) -> String,
    unit: f64,
) -> Figure {
    Figure::new(name, title, move |width| {
        let values = histogram.values.iter().zip(histogram.counts.iter());
        let bins = Bins::new(values.map(|(&value, &count)| (value as f64 * unit, count as f64)));
        bins.draw(width, axis, label)
    })
}

/// Shortens a value on an axis of powers of ten to its significant digits.
fn shortened(text: String) -> String {
    let Some((number, unit)) = text.split_once(' ') else { return text };
    match number.contains('.') {
        true => format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.')),
        false => format!("{number} {unit}"),
    }
}

fn short_bytes(value: f64) -> String {
    shortened(bytes(value))
}

fn short_time(time: f64) -> String {
    shortened(seconds(time))
}
