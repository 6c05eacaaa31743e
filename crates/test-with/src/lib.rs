//! Attributes of tests that need what is not in the repository. Nothing but tests depends on this crate.

use proc_macro::TokenStream;

/// Makes a function a test that compares with data of `../shared` beside the repository.
///
/// The test is ignored, with a reason, if the data are absent when the tests are compiled. With the environment variable
/// `PDES_REQUIRE_SHARED=1` it fails instead.
#[proc_macro_attribute]
pub fn shared(_: TokenStream, function: TokenStream) -> TokenStream {
    let attributes = if cfg!(shared) { "#[test]" } else { "#[test] #[ignore = \"../shared is absent\"]" };
    let mut test: TokenStream = attributes.parse().expect("attributes");
    test.extend(function);
    test
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// A test that was compiled without `../shared` stays ignored when the data come, and no run that requires them may pass without.
    #[test]
    fn no_comparison_is_ignored_unless_it_may() {
        let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
        let (is_there, traces) = (traces.is_dir(), traces.display());
        let is_required = std::env::var_os("PDES_REQUIRE_SHARED").is_some_and(|value| value == "1");
        assert!(is_there || !is_required, "PDES_REQUIRE_SHARED=1, and there is no {traces}");
        assert!(
            cfg!(shared) || !is_there,
            "{traces} came after the tests were compiled: `cargo clean -p test-with` makes them compare"
        );
    }
}
