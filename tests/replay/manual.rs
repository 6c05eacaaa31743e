//! Completions and manual pages.

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};

#[test]
fn completions_know_commands_flags_and_values() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let known = contains("checkpoint").and(contains("sweep")).and(contains("npb-lu"));
        command().args(["completions", shell]).assert().code(DONE).stdout(known).stderr("");
    }
    command().args(["completions", "csh"]).assert().code(MISUSE).stderr(contains("bash"));
}

/// The script is valid for bash, and completes commands.
#[test]
fn bash_completes_with_the_script() {
    let script = command().args(["completions", "bash"]).assert().code(DONE).get_output().stdout.clone();
    let folder = Folder::new();
    let path = folder.write("completions", std::str::from_utf8(&script).unwrap());
    let ask = format!(
        "source '{}'; function=$(complete -p pdes-replay); function=${{function#*-F }}; \
         COMP_WORDS=(pdes-replay trace con); COMP_CWORD=2; \
         ${{function%% *}} pdes-replay con trace; echo \"${{COMPREPLY[@]}}\"",
        path.display()
    );
    assert_cmd::Command::new("bash").args(["-c", &ask]).assert().code(0).stdout("convert\n");
}

#[test]
fn every_command_has_a_manual_page() {
    let page = command().arg("man").assert().code(DONE).get_output().stdout.clone();
    let folder = Folder::new();
    let output = folder.path("man1");
    command().args(["man", "-o"]).arg(&output).assert().code(FAILED).stderr(contains("man1"));
    std::fs::create_dir(&output).unwrap();
    command().args(["man", "-o"]).arg(&output).assert().code(DONE).stdout("");
    for name in ["pdes-replay", "pdes-replay-sweep", "pdes-replay-trace-convert", "pdes-replay-platform-show"]
    {
        let text = std::fs::read_to_string(output.join(format!("{name}.1"))).unwrap();
        assert!(text.contains(".TH "), "{text}");
    }
    let text = String::from_utf8(page).unwrap();
    assert!(text.contains(".TH pdes-replay 1"), "{text}");
    assert!(text.contains("\\-\\-checkpoint") && text.contains("Exit status"), "{text}");
}
