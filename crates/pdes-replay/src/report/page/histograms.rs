//! Histograms of messages and waits.

use figures::quantity::{bytes, count, seconds};
use figures::{Bins, Figure, Section, table};

use super::super::{Histogram, Histograms};

pub(in crate::report) fn section(histograms: &Histograms) -> Section {
    let histograms = histograms.clone();
    let time = |picos: f64| seconds(picos / 1e12);
    let row = |name: &str, histogram: &Histogram, text: fn(f64) -> String| {
        let values = [histogram.min, histogram.p50, histogram.p90, histogram.p99, histogram.max];
        let values = values.iter().map(|&value| text(value as f64));
        [name.to_owned(), count(histogram.count)].into_iter().chain(values).collect::<Vec<_>>()
    };
    let mut section = Section::new("histograms", "Messages and waits");
    let rows = [
        row("size of messages", &histograms.message_bytes, bytes),
        row("time of messages", &histograms.latency_ps, time),
        row("waits for others", &histograms.waiting_ps, time),
    ];
    section.rest = table(&["", "count", "least", "median", "90 %", "99 %", "most"], 1, &rows);
    section.figures = vec![
        figure("sizes", "Size of messages", "payload", histograms.message_bytes, short_bytes, 1.0),
        figure(
            "latencies",
            "Time of messages from the send to the arrival",
            "time",
            histograms.latency_ps,
            short_time,
            1e-12,
        ),
        figure(
            "waits",
            "Waits for others, where there is any",
            "time",
            histograms.waiting_ps,
            short_time,
            1e-12,
        ),
    ];
    section
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
