//! Crates that the profile of tests leaves without optimisation.

use std::collections::BTreeSet;
use std::process::Command;

use crate::reference::repository;

/// Crates above take the instances of functions, small inline ones too, of a crate that is not optimised, and run them as they are.
#[test]
fn what_simulates_is_optimised_with_all_that_it_depends_on() {
    let manifest = std::fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let packages = manifest["profile"]["dev"]["package"].as_table().unwrap();
    let is_slow = |profile: &toml::Value| profile.get("opt-level") == Some(&0.into());
    let slow: BTreeSet<_> =
        packages.iter().filter(|(_, profile)| is_slow(profile)).map(|(name, _)| name.as_str()).collect();
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--package", "replay", "--edges", "normal,no-proc-macro"])
        .args(["--prefix", "none", "--features", "replay/mpi,replay/otf2,replay/parquet"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let below: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(below.contains("pdes-core") && below.contains("schemars") && slow.contains("pdes-replay"));
    let both: Vec<_> = slow.intersection(&below).collect();
    assert!(both.is_empty(), "not optimised in [profile.dev.package], but below `replay`: {both:?}");
}
