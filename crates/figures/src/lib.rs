//! Figures: charts as SVG and PNG, and pages of HTML that need no network and no other file.
//!
//! A chart is a struct with its data, such as [`Bars`] or [`Lines`]; its `draw` returns an [`Svg`] of any width. A
//! [`Figure`] is a chart with a name and a title; [`write_figures`] writes figures as files. An [`Explorer`] is a page whose
//! scripts show data by charts of Apache ECharts and by tables that sort and filter, in the colours of a light or a dark
//! background. The module [`quantity`] is that of `outputs`, and needs no feature.
//!
//! Drawings depend on their data only: equal data give equal bytes on every machine.
//!
//! # Features
//! - `pictures` (default): charts and pages. Without it only [`quantity`] is left.
//!
//! # Example
//! ```
//! # #[cfg(feature = "pictures")] {
//! use figures::quantity::seconds;
//! use figures::{Bar, Bars, COLOURS, WIDE};
//!
//! let bar = |(label, time): (&str, f64)| Bar { label: label.into(), parts: vec![time], note: seconds(time) };
//! let bars = [("reading", 0.25), ("solving", 1.5)].map(bar).into();
//! let drawing = Bars { axis: "time", parts: vec![("time".into(), COLOURS[0])], bars }.draw(WIDE)?;
//! let text = drawing.file("Time of each phase");
//! assert!(text.contains("<title>Time of each phase</title>") && text.contains("1.500 s"));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "pictures")]
mod drawing;
#[cfg(feature = "pictures")]
mod explorer;
#[cfg(feature = "pictures")]
mod file;

pub use outputs::quantity;

#[cfg(feature = "pictures")]
pub use drawing::{
    Bar, Bars, Bins, COLOURS, Columns, DrawingError, Edge, Figure, GraphDrawing, Line, LineKind, Lines, Map,
    Maps, Node, RGBColor, RUNS, Scale, Strips, Svg, WIDE,
};
#[cfg(feature = "pictures")]
pub use explorer::Explorer;
#[cfg(feature = "pictures")]
pub use file::{PictureFormat, WriteError, write_figures, write_file};
