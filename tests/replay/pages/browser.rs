//! A headless browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command_line::skip;

/// Chromium.
pub(super) struct Browser(PathBuf);

/// The state of a page after its scripts have run.
pub(super) struct Shown {
    /// Document after its scripts have run.
    pub(super) dom: String,
    /// Output of the console.
    pub(super) complaints: Vec<String>,
}

impl Browser {
    /// Finds the browser; prints a note if there is none.
    pub(super) fn find() -> Option<Self> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let found = std::env::split_paths(&folders)
            .flat_map(|folder| names.map(|name| folder.join(name)))
            .find(|path| path.is_file());
        if found.is_none() {
            skip("there is no chromium: no page is shown");
        }
        found.map(Self)
    }

    /// Shows a page, with the time that its scripts may take passing at once.
    pub(super) fn show(&self, page: &Path) -> Shown {
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Command::new(&self.0);
        browser.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
        ]);
        browser.args([
            "--window-size=1280,900",
            "--virtual-time-budget=10000",
            "--enable-logging=stderr",
            "--v=0",
        ]);
        browser.arg(format!("--user-data-dir={}", profile.path().display()));
        browser.arg("--dump-dom").arg(format!("file://{}", page.display()));
        let output = browser.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let complaints = errors.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
        Shown { dom: String::from_utf8(output.stdout).unwrap(), complaints }
    }

    /// Shows a copy of a page with a function's body at its end, whose result is kept.
    pub(super) fn run(&self, page: &Path, body: &str) -> Shown {
        let text = std::fs::read_to_string(page).unwrap();
        let script = format!(
            "<script>(async () => {{{body}}})().then((result) => \
             document.body.setAttribute('data-result', encodeURIComponent(JSON.stringify(result))));</script></body>"
        );
        let copy = page.with_extension("probed.html");
        std::fs::write(&copy, text.replace("</body>", &script)).unwrap();
        self.show(&copy)
    }
}

impl Shown {
    /// Returns the result of the script.
    pub(super) fn result(&self) -> Value {
        let text = self.dom.split(" data-result=\"").nth(1).expect("the script has come to its end");
        let text = text.split('"').next().unwrap();
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            let digit = |byte: Option<u8>| (byte.unwrap() as char).to_digit(16).unwrap() as u8;
            bytes.push(if byte == b'%' { 16 * digit(rest.next()) + digit(rest.next()) } else { byte });
        }
        serde_json::from_slice(&bytes).unwrap()
    }
}
