//! Any bytes are a schedule in text, in either binary form, or an error; a schedule written as text reads as one.
#![no_main]

use goal::{Schedule, read_text, write_text};
use libfuzzer_sys::fuzz_target;
use pdes_replay_fuzz::file;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(schedule) = Schedule::load(&file("schedule.goal", bytes), 1) {
        let mut text = Vec::new();
        write_text(&schedule, &mut text).expect("memory takes all");
        read_text(&text).expect("what was written");
    }
});
