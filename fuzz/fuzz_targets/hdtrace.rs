//! Any calls of a rank of HDTrace, in a project of two ranks, are a trace or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pdes_replay_fuzz::{file, read};

const PROJECT: &str = "<Application name='a'><Topology><Node name='h'><Node name='0'><Node name='0'/></Node><Node name='1'><Node name='0'/>\
                       </Node></Node></Topology></Application>";
const OTHER: &str = "<Program><Init time='0' end='0'/><Recv fromRank='0' fromTag='1' cid='0' time='1' end='2'/>\
                     <Barrier cid='0' time='3' end='4'/><Gatherv cid='0' size='4' root='0' time='4' end='5'/></Program>";

fuzz_target!(|bytes: &[u8]| {
    file("a_h_0_0.trc", &[b"<Program><Init time='0' end='0'/>", bytes, b"</Program>"].concat());
    file("a_h_1_0.trc", OTHER.as_bytes());
    read(&file("a.proj", PROJECT.as_bytes()));
});
