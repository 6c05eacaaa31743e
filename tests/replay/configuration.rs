//! Names and values of configurations that do not exist or do not fit, with their positions.

use pdes_replay::Config;

use crate::command_line::Folder;

/// Reads a configuration; returns the error message from the position on.
fn read(text: &str) -> Result<(), String> {
    let folder = Folder::new();
    let path = folder.write("run.toml", text);
    let prefix = format!("{}:", path.display());
    let message = |error: pdes_replay::ConfigError| error.to_string().replacen(&prefix, "", 1);
    Config::from_path(&path).map(|_| ()).map_err(message)
}

fn message_for(text: &str) -> String {
    read(text).unwrap_err()
}

#[test]
fn a_typo_is_reported_with_the_nearest_name_and_its_position() {
    let cases = [
        ("[netwrk]\n", "1:2: there is no section \"netwrk\"; did you mean \"network\"?"),
        ("[trace]\npth = 'x'\n", "2:1: [trace] has no key \"pth\"; did you mean \"path\"?"),
        (
            "[network]\n  latencyfactor = 1\n",
            "2:3: [network] has no key \"latencyfactor\"; did you mean \"latency_factor\"?",
        ),
        ("network.preset = \"lv8\"\n", "1:18: [network] preset: found \"lv8\"; did you mean \"lv08\"?"),
        ("[network]\nmodel = 'Flow'\n", "2:9: [network] model: found \"Flow\"; did you mean \"flow\"?"),
        (
            "[mpi]\nallreduce = 'redbcost'\n",
            "2:13: [mpi] allreduce: found \"redbcost\"; did you mean \"redbcast\"?",
        ),
        (
            "[mpi]\ncollectives = 'mvapich'\n",
            "2:15: [mpi] collectives: found \"mvapich\"; did you mean \"mvapich2\"?",
        ),
        (
            "[platform.topology]\nkind = 'fat-tree'\n",
            "2:8: [platform.topology] kind: found \"fat-tree\"; did you mean \"fat_tree\"?",
        ),
        (
            "[platform.topology]\nlevels = [\n{ children = 2, parents = 1 },\n{ childrn = 2 }]\n",
            "4:3: [platform.topology.levels.1] has no key \"childrn\"; did you mean \"children\"?",
        ),
        (
            "[[mpi.table.bcast]]\nalgorithm = 'flatree'\n",
            "2:13: [mpi.table.bcast.0] algorithm: found \"flatree\"; did you mean \"flattree\"?",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(message_for(text), expected);
    }
}

#[test]
fn a_key_of_another_section_is_suggested() {
    assert_eq!(
        message_for("[network]\nthreads = 2\n"),
        "2:1: [network] has no key \"threads\"; did you mean \"engine.threads\"?"
    );
    assert_eq!(
        message_for("threads = 2\n"),
        "1:1: there is no section \"threads\"; did you mean \"engine.threads\"?"
    );
}

#[test]
fn all_names_are_listed_if_none_is_near() {
    assert_eq!(
        message_for("[network]\nmodel = 'fluid'\n"),
        "2:9: [network] model: found \"fluid\"; expected \"flow\", \"contention-free\", \"packets\" or \"loggops\""
    );
    assert_eq!(
        message_for("[parallel]\nzzz = 1\n"),
        "2:1: [parallel] has no key \"zzz\"; expected \"partition\", \"region_costs\" or \"oversubscribe\""
    );
}

#[test]
fn names_in_the_schema_pass() {
    let text = "[network]\nepoch_s = 'auto'\nregions = 'regions.txt'\nlatency_factor = '0:2;10:3'\n\
        [platform]\ntopology = { kind = 'graph' }\nroute = [{ src = 'a', dst = 'b', links = [{ up = 'x' }, 'y'] }]\n";
    assert_eq!(read(text), Ok(()));
}

#[test]
fn unfit_values_are_reported_with_what_fits() {
    let cases = [
        (
            "[engine]\nthreads = 'two'\n",
            "2:11: [engine] threads: found \"two\", expected a whole number from 1 to 1024",
        ),
        (
            "[engine]\nthreads = -1\n",
            "2:11: [engine] threads: found -1, expected a whole number from 1 to 1024",
        ),
        (
            "[engine]\nthreads = 1.5\n",
            "2:11: [engine] threads: found 1.5, expected a whole number from 1 to 1024",
        ),
        (
            "[trace]\nranks = 5000000000\n",
            "2:9: [trace] ranks: found 5000000000, expected a whole number from 1 to 4294967295",
        ),
        ("[network]\nweight_s = -1\n", "2:12: [network] weight_s: found -1, expected a number from 0"),
        (
            "[network]\nloopback_bandwidth = 0\n",
            "2:22: [network] loopback_bandwidth: found 0, expected a number above 0 or a string with a unit",
        ),
        (
            "[network]\npreset = 1\n",
            "2:10: [network] preset: found 1, expected \"links\" or \"smpi\" or \"lv08\" or \"cm02\" or \"raw\" or \"infiniband-edr\" or \"infiniband-hdr\" or \"slingshot-11\" or \"omni-path-100\" or \"roce-100\"",
        ),
        (
            "[platform]\nfile = ['p.toml']\n",
            "2:8: [platform] file: found [\"p.toml\"], expected the name of a file",
        ),
        (
            "[checkpoint]\ndirectory = 3\n",
            "2:13: [checkpoint] directory: found 3, expected the name of a directory",
        ),
        (
            "[parallel]\npartition = ['auto']\n",
            "2:13: [parallel] partition: found [\"auto\"], expected a string",
        ),
        ("[mpi]\ntest_grows = 'no'\n", "2:14: [mpi] test_grows: found \"no\", expected true or false"),
        ("trace = 'x'\n", "1:9: trace: found \"x\", expected a table"),
        (
            "[mpi]\ntest_s = false\n",
            "2:10: [mpi] test_s: found false, expected a number from 0 or a string with a unit",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(message_for(text), expected);
    }
}
