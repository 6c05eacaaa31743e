//! Any text is a platform or an error; the routes of a small platform can be followed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netmodel::Platform;
use netmodel::measures::Measures;

fuzz_target!(|text: &str| {
    if let Ok(platform) = Platform::from_xml(text, "text")
        && platform.hosts().len() < 64
    {
        let _ = Measures::of(&platform);
    }
});
