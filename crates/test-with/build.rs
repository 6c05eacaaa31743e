//! Finds out whether `../shared` is beside the repository.

use std::path::Path;

const TRACES: &str = "../../../shared/traces";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(shared)");
    let is_there = Path::new(TRACES).is_dir();
    // Cargo would run this, and compile all tests, at every call if it watched what is absent; the test of this crate watches instead.
    if is_there {
        println!("cargo::rerun-if-changed={TRACES}");
    } else {
        println!("cargo::rerun-if-env-changed=PDES_REQUIRE_SHARED");
    }
    if is_there || std::env::var_os("PDES_REQUIRE_SHARED").is_some_and(|value| value == "1") {
        println!("cargo::rustc-cfg=shared");
    }
}
