//! Any bytes behind the first ones of a log of Darshan are accesses or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pdes_replay_fuzz::{file, read};

fuzz_target!(|bytes: &[u8]| {
    read(&file("app.darshan", &[b"3.41\0\0\0\0\x75\x35\x64\0\0\0\0\0", bytes].concat()));
});
