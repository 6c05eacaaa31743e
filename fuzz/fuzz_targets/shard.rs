//! Any bytes behind the header of a shard are actions or an error, and text again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ti_shard::{Header, ShardReader, TextReader};

fuzz_target!(|bytes: &[u8]| {
    let header = Header { job: "job", world: 2, rank: 0, counter: "cpu-time", rate: 1e9, library: "any" };
    let shard = [&header.to_bytes()[..], bytes].concat();
    if let Ok(mut reader) = ShardReader::new(&shard[..]) {
        while let Ok(Some(_)) = reader.read_record() {}
    }
    if let Ok(text) = TextReader::new(&shard[..]) {
        let _ = std::io::copy(&mut { text }, &mut std::io::sink());
    }
});
