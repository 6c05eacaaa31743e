//! Figures: charts as SVG and PNG, and pages of HTML that need no network and no other file.
//!
//! A chart is a struct with its data, such as [`Bars`] or [`Lines`]; its `draw` returns an [`Svg`] of any width. A
//! [`Figure`] is a chart with a name and a title. A [`Page`] shows [`Section`]s with figures, each of which it draws twice,
//! for wide and for narrow screens, in the colours of a light or a dark background; [`write_figures`] writes them as
//! files. An [`Explorer`] is a page whose scripts show data by charts of Apache ECharts and by tables that sort and filter.
//! The module [`quantity`] formats quantities with units, and needs no feature.
//!
//! Drawings depend on their data only: equal data give equal bytes on every machine.
//!
//! # Features
//! - `pictures` (default): charts and pages. Without it only [`quantity`] is left, and no dependency.
//!
//! # Example
//! ```
//! # #[cfg(feature = "pictures")] {
//! use figures::quantity::seconds;
//! use figures::{Bar, Bars, COLOURS, Figure, Page, Section, table};
//!
//! let times = [("reading", 0.25), ("solving", 1.5)];
//! let figure = Figure::new("times", "Time of each phase", move |width| {
//!     let bar = |(label, time): (&str, f64)| Bar { label: label.into(), parts: vec![time], note: seconds(time) };
//!     let parts = vec![("time".into(), COLOURS[0])];
//!     Bars { axis: "time", parts, bars: times.map(bar).into() }.draw(width)
//! });
//! let mut section = Section::new("phases", "Phases");
//! section.rest = table(&["phase", "time"], 1, &times.map(|(name, time)| vec![name.into(), seconds(time)]));
//! section.figures.push(figure);
//! let page =
//!     Page { title: "A run", lead: Default::default(), sections: &[section], footer: "example 1.0" };
//! let text = page.text()?;
//! assert!(text.starts_with("<!DOCTYPE html>") && text.contains("<td class=\"number\">1.500 s</td>"));
//! assert_eq!(text.matches("<svg").count(), 2);
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
#[cfg(feature = "pictures")]
mod page;
pub mod quantity;

#[cfg(feature = "pictures")]
pub use drawing::{
    AxisScale, Bar, Bars, Bins, COLOURS, Columns, DrawingError, Edge, Figure, GraphDrawing, Layer, Line,
    LineKind, Lines, LogChart, Map, Maps, Mark, Node, RGBColor, Scale, Strips, Svg, WIDE,
};
#[cfg(feature = "pictures")]
pub use explorer::Explorer;
#[cfg(feature = "pictures")]
pub use file::{PictureFormat, WriteError, write_figures, write_file};
#[cfg(feature = "pictures")]
pub use page::{Page, Section, table};
