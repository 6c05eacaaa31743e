//! Pages that are explored: scripts show data by charts and tables.

use std::path::Path;

use maud::{DOCTYPE, PreEscaped, html};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::file::{WriteError, write_file};
use crate::{COLOURS, RGBColor, RUNS, Scale};

/// Apache ECharts; `vendor/echarts/README.md` says how it is built.
const ECHARTS: &str = include_str!("../vendor/echarts/echarts.min.js");
/// Styles of a page, and of its controls.
const STYLES: [&str; 2] = [include_str!("explorer/page.css"), include_str!("explorer/controls.css")];
/// Functions for scripts of pages: quantities, tables, charts.
const TOOLS: [&str; 3] = [
    include_str!("explorer/quantity.js"),
    include_str!("explorer/table.js"),
    include_str!("explorer/chart.js"),
];

/// A page on which scripts show data. It needs no network and no other file.
///
/// The scripts are classic ones that share their names. They find the data as `data`, and the functions of `explorer/*.js`, such as
/// `section`, `table` and `chart`.
pub struct Explorer<'a> {
    /// Title.
    pub title: &'a str,
    /// Data, each part under its name, as JSON.
    pub data: &'a [(&'a str, Box<RawValue>)],
    /// Scripts of the page, in order.
    pub scripts: &'a [&'a str],
    /// Text at the end, such as the program that wrote the page.
    pub footer: &'a str,
}

impl Explorer<'_> {
    /// Returns the text of the page.
    fn text(&self) -> String {
        let parts = self.data.iter().map(|(name, part)| format!("{}:{}", Value::from(*name), part.get()));
        let hex = |colour: RGBColor| format!("#{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2);
        let scale =
            |scale: Scale| (0..=8).map(|step| hex(scale.colour(f64::from(step) / 8.0))).collect::<Vec<_>>();
        let colours = serde_json::json!({
            "series": COLOURS.map(hex), "runs": RUNS.map(hex), "sequential": scale(Scale::Sequential), "diverging": scale(Scale::Diverging),
        });
        let parts = parts.chain([format!("\"colours\":{colours}")]);
        // The data must not contain a tag that ends the script element.
        let data = format!("{{{}}}", parts.collect::<Vec<_>>().join(",")).replace('<', "\\u003c");
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) }
                    @for style in STYLES { style { (PreEscaped(style)) } }
                }
                body {
                    header { h1 { (self.title) } }
                    nav {}
                    noscript { p.warning { "This page is drawn by scripts: allow them to see it." } }
                    main {}
                    footer { p.note { (self.footer) } }
                    script type="application/json" id="data" { (PreEscaped(data)) }
                    script { (PreEscaped(ECHARTS)) }
                    @for script in TOOLS.iter().chain(self.scripts) { script { (PreEscaped(script)) } }
                }
            }
        };
        page.into_string()
    }

    /// Writes the page to a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), WriteError> {
        write_file(path, self.text().as_bytes())
    }
}
