//! The trait of all answers, which are written as text, as JSON and as a page.

use std::fmt;
use std::path::Path;

use outputs::write_json;
use serde::Serialize;
use serde_json::Value;

use crate::caveat::Caveat;

/// Last line of pages.
#[cfg(feature = "pictures")]
const FOOTER: &str = concat!("pdes-replay ", env!("CARGO_PKG_VERSION"));

/// An answer to a question about a run.
pub trait Answer: Serialize + Sized {
    /// Script of the page. It finds the answer as `data.found`, [`words`](Answer::words) as `data.words`, and the caveat as `data.caveat`.
    const SCRIPT: &'static str;

    /// Returns the title of the page.
    fn title(&self) -> String;

    /// Returns texts that the page shows beside the answer itself.
    fn words(&self) -> Value;

    /// Returns what is known of the difference between the model and the machine.
    fn caveat(&self) -> &Caveat;

    /// Returns warnings that a user should know before trusting the runs.
    fn warnings(&self) -> &[String];

    /// Writes tables for a terminal; the last line is the caveat.
    ///
    /// # Errors
    /// If the text cannot be written.
    fn write_text(&self, text: &mut String) -> fmt::Result;

    /// Writes the answer as JSON.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    fn write_json(&self, path: &Path) -> std::io::Result<()> {
        write_json(self, path)
    }

    /// Writes the answer as a page that needs no other file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    #[cfg(feature = "pictures")]
    fn write_page(&self, path: &Path) -> Result<(), figures::WriteError> {
        use serde_json::value::to_raw_value;

        let failed = |error: serde_json::Error| figures::WriteError::Write {
            path: path.to_owned(),
            source: error.into(),
        };
        let data = [
            ("found", to_raw_value(self).map_err(failed)?),
            ("words", to_raw_value(&self.words()).map_err(failed)?),
            ("caveat", to_raw_value(&self.caveat().sentence()).map_err(failed)?),
        ];
        let page =
            figures::Explorer { title: &self.title(), data: &data, scripts: &[Self::SCRIPT], footer: FOOTER };
        page.write(path)
    }
}
