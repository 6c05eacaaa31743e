//! The commands in the book and the README are run, and print what the pages say.

use std::path::{Path, PathBuf};
use std::time::Duration;

use answers::Costs;
use pdes_replay::Rule;
use trace_tools::transform::Hypothesis;

use crate::{pages, read, repository};

/// Files of the tutorial.
const TUTORIAL: [&str; 3] = ["run.toml", "machines.toml", "two-uplinks.toml"];

/// Blocks of `console` are run, those of `console,ignore` are not: they need other programs, other machines or minutes. `...` stands for any
/// lines, `[..]` for any text in a line.
#[test]
fn commands_print_what_the_pages_say() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Configurations name files relative to themselves, and so have to be where the examples write.
    copy(&repository().join("configs"), &folder.join("configs"));
    // Those of the tutorial, which begins in an empty folder, are on its page.
    for name in TUTORIAL {
        std::fs::copy(repository().join("configs/tutorial").join(name), folder.join(name)).unwrap();
    }
    for name in ["crates", "tests"] {
        std::os::unix::fs::symlink(repository().join(name), folder.join(name)).unwrap();
    }
    std::fs::create_dir(folder.join("target")).unwrap();
    std::env::set_current_dir(folder).unwrap();
    let cases = trycmd::TestCases::new();
    cases.register_bin("pdes-replay", PathBuf::from(env!("CARGO_BIN_EXE_pdes-replay")));
    // Notes on stderr, with times and paths, are not part of the examples.
    cases.env("RUST_LOG", "warn").timeout(Duration::from_secs(600));
    for page in pages().into_iter().chain([repository().join("README.md")]) {
        let copy = folder.join("pages").join(page.strip_prefix(repository()).unwrap());
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::write(&copy, with_ends_of_lines(&read(&page))).unwrap();
        cases.case(copy);
    }
    cases.run();
}

/// Terminates the expected output with an empty line: otherwise `trycmd` takes the last line for one without an end.
fn with_ends_of_lines(page: &str) -> String {
    let is_command = |line: &str| line.starts_with("$ ") || line.starts_with("? ");
    let is_end = |line: &str| line.starts_with("$ ") || line.starts_with("```");
    let lines: Vec<&str> = page.lines().collect();
    let next = lines.iter().skip(1).chain([&""]);
    let ends = lines.iter().zip(next).map(|(line, next)| {
        let is_last = !is_command(line) && !is_end(line) && is_end(next);
        if is_last { format!("{line}\n\n") } else { format!("{line}\n") }
    });
    ends.collect()
}

/// The tutorial shows the files that its commands read.
#[test]
fn the_tutorial_shows_its_files() {
    let shown = blocks(&read(&repository().join("docs/tutorial.md")), "toml");
    for name in TUTORIAL {
        let file = read(&repository().join("configs/tutorial").join(name));
        assert!(shown.contains(&file.trim_end().to_owned()), "docs/tutorial.md does not show {name}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Settings in the book are those of one of the files that the program reads.
#[test]
fn settings_follow_a_schema() {
    let schemas = [pdes_replay::config_schema(), pdes_replay::sweep_schema(), pdes_replay::platform_schema()];
    let validators = schemas.map(|schema| jsonschema::draft7::new(&schema).unwrap());
    for page in pages() {
        for block in blocks(&read(&page), "toml") {
            let table: toml::Table =
                toml::from_str(&block).unwrap_or_else(|error| panic!("{}: {error}\n{block}", page.display()));
            let value = serde_json::to_value(table).unwrap();
            let is_checked = Hypothesis::from_text(&block, &page).is_ok()
                || Rule::from_text(&block, "page").is_ok()
                || Costs::from_text(&block, &page).is_ok();
            let is_valid = is_checked || validators.iter().any(|validator| validator.is_valid(&value));
            assert!(is_valid, "{}: no file that the program reads:\n{block}", page.display());
        }
    }
}

/// Pages show whole files of `configs`.
#[test]
fn files_are_shown_as_they_are() {
    let shown = [
        ("what-if.md", "hypotheses.toml"),
        ("answers.md", "costs.toml"),
        ("diagnosis.md", "rules.toml"),
        ("diagnosis.md", "rules-pairs.toml"),
        ("training.md", "layouts.toml"),
    ];
    for (page, name) in shown {
        let file = read(&repository().join("configs").join(name));
        let (_, text) = file.split_once('\n').unwrap();
        let shown = format!("# configs/{name}\n{}", text.trim_end());
        assert!(blocks(&read(&repository().join("docs").join(page)), "toml").contains(&shown), "{shown}");
    }
}

/// Rust belongs into the documentation of the crates, where examples are compiled and run.
#[test]
fn pages_have_no_rust_that_nobody_compiles() {
    for page in pages() {
        assert_eq!(blocks(&read(&page), "rust"), Vec::<String>::new(), "{}", page.display());
    }
}

/// The blocks of a page that are in a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(fence) = lines.by_ref().find(|line| line.starts_with("```")) {
        let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        if fence.trim_start_matches('`') == language {
            blocks.push(block.join("\n"));
        }
    }
    blocks
}
