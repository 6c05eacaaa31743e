//! Checks that the installed OTF2 has version 3, whose functions `ffi.rs` declares.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_LIBRARY").is_none() {
        return;
    }
    // Without the command, the linker reports what is missing.
    let Ok(output) = Command::new("otf2-config").arg("--version").output() else { return };
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let major = printed.rsplit(' ').next().and_then(|version| version.split('.').next());
    if major.and_then(|major| major.trim().parse().ok()) != Some(3) {
        println!(
            "cargo::error=found {}, expected version 3 of OTF2 (Debian: libotf2-trace-dev)",
            printed.trim()
        );
    }
}
