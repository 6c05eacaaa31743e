//! Any calls of a rank of HDTrace, in a project of two ranks, are a trace or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace_mmap::LoadOptions;

const PROJECT: &str = "<Application name='a'><Topology><Node name='h'><Node name='0'><Node name='0'/></Node><Node name='1'><Node name='0'/>\
                       </Node></Node></Topology></Application>";
const OTHER: &str = "<Program><Init time='0' end='0'/><Recv fromRank='0' fromTag='1' cid='0' time='1' end='2'/>\
                     <Barrier cid='0' time='3' end='4'/><Gatherv cid='0' size='4' root='0' time='4' end='5'/></Program>";

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("a.proj");
    std::fs::write(&file, PROJECT).expect("the file is written");
    std::fs::write(dir.path().join("a_h_1_0.trc"), OTHER).expect("the file is written");
    let calls = [b"<Program><Init time='0' end='0'/>", bytes, b"</Program>"].concat();
    std::fs::write(dir.path().join("a_h_0_0.trc"), calls).expect("the file is written");
    if let Ok(trace) = trace_tools::load(&file, &LoadOptions::default()) {
        trace_mmap::check(&trace, None);
    }
});
