//! Any bytes are a schedule in text, in either binary form, or an error; a schedule written as text reads as one.
#![no_main]

use goal::{Schedule, read_text, write_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("schedule.goal");
    std::fs::write(&file, bytes).expect("the file is written");
    if let Ok(schedule) = Schedule::load(&file, 1) {
        let mut text = Vec::new();
        write_text(&schedule, &mut text).expect("memory takes all");
        read_text(&text).expect("what was written");
    }
});
