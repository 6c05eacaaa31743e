//! Makes sure that the library has the functions in the form in which they are declared.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_LIBRARY").is_none() {
        return;
    }
    // Without the command the linker tells what is missing.
    let Ok(output) = Command::new("otf2-config").arg("--version").output() else { return };
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let major = told.rsplit(' ').next().and_then(|version| version.split('.').next());
    if major.and_then(|major| major.trim().parse().ok()) != Some(3) {
        println!(
            "cargo::error=found {}, expected version 3 of OTF2 (Debian: libotf2-trace-dev)",
            told.trim()
        );
    }
}
