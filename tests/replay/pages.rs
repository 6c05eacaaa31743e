//! Pages and pictures of reports, in a browser if there is one.

#[path = "pages/browser.rs"]
mod browser;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::reference::repository;
use browser::Browser;

/// Rank 1 waits for rank 0, in two call sites.
const TRACE: &str =
    "0 init\n1 init\n0 location a.c 1\n0 compute 1e6\n0 send 1 0 984\n1 location a.c 2\n1 recv 0 0 984\n";

const TORUS: &str = "platform.topology={ kind = 'torus', dims = [4, 4, 4], speed = '1Gf', bandwidth = '1GBps', latency = '1us', loopback = { bandwidth = '1GBps', latency = '1us' } }";
const TREE: &str = "platform.topology={ kind = 'fat_tree', levels = [{ children = 8, parents = 4 }, { children = 8, parents = 4 }], speed = '1Gf', bandwidth = '2GBps', latency = '1us', loopback = { bandwidth = '1GBps', latency = '1us' } }";

/// A timeline of two ranks with a message, as trace events.
const TIMELINE: &str = r#"{"traceEvents":[
    {"ph":"X","name":"compute","pid":0,"tid":0,"ts":0,"dur":1000},
    {"ph":"X","name":"recv","pid":0,"tid":1,"ts":0,"dur":1003},
    {"ph":"X","name":"send","pid":0,"tid":0,"ts":1000,"dur":3},
    {"ph":"s","name":"message","id":1,"pid":0,"tid":0,"ts":1000},
    {"ph":"f","name":"message","id":1,"bp":"e","pid":0,"tid":1,"ts":1003}]}"#;

/// Replays a trace and returns the path of the report.
fn report(folder: &Folder, name: &str, trace: &Path, settings: &[&str]) -> PathBuf {
    let path = folder.path(name);
    let mut replay = command();
    replay.arg("--quiet").arg("--trace").arg(trace).arg("--report").arg(&path);
    for setting in [&["network.model='contention-free'", "analysis.histograms=true"], settings].concat() {
        replay.args(["--set", setting]);
    }
    replay.assert().code(DONE);
    path
}

/// A report of 64 ranks that exchange halos, to which a critical path and links are added.
fn full_report(folder: &Folder, name: &str, topology: &str) -> PathBuf {
    let trace = folder.path("halo.pdt");
    let generate =
        ["trace", "generate", "halo3d", "--processes", "4,4,4", "--iterations", "3", "--jitter", "0.3"];
    command().args(generate).arg("-o").arg(&trace).assert().code(DONE);
    let path = report(folder, name, &trace, &[topology]);
    let mut text: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    text["critical_path"] = json!({
        "rank": 7, "time_ps": 4_000_000, "time_s": 4e-6, "hops": 2,
        "parts": { "compute_ps": 2_000_000, "sleep_ps": 0, "library_ps": 0, "latency_ps": 1_500_000, "bandwidth_ps": 500_000, "waiting_ps": 0 },
        "calls": [{ "call": "recv", "time_ps": 2_000_000 }], "ranks": [{ "rank": 7, "time_ps": 3_000_000 }],
        "segments": [{ "from_ps": 0, "to_ps": 1_000_000, "rank": 3 }, { "from_ps": 1_000_000, "to_ps": 4_000_000, "rank": 7 }],
    });
    // As many as there are cables and loopbacks, at most: two per cable.
    let used: Vec<f64> = (0..2000).map(|link| f64::from(link % 17) / 20.0).collect();
    text["links"] = json!({
        "bin_ps": 1_000_000,
        "top": [{ "name": "link_a", "capacity_bytes_per_s": 1e9, "bytes": 4000, "utilisation": 0.5, "saturated_ps": 1_000_000, "peak": 1.0, "series": [0.25, 1.0, 0.5, 0.25] }],
        "all": { "bytes": used.iter().map(|_| 1).collect::<Vec<_>>(), "utilisation": used },
    });
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

fn page(folder: &Folder, name: &str, arguments: &[&Path]) -> PathBuf {
    let path = folder.path(name);
    command().arg("report").args(arguments).arg("-o").arg(&path).assert().code(DONE);
    path
}

/// Returns the identifiers of the sections.
fn sections(text: &str) -> Vec<&str> {
    text.split("<section id=\"").skip(1).map(|part| part.split('"').next().unwrap()).collect()
}

/// Checks that nothing is fetched: every address is an anchor on the page, or a data URI.
fn assert_self_contained(text: &str) {
    for name in [" src=\"", " href=\""] {
        for address in text.split(name).skip(1) {
            assert!(
                address.starts_with('#') || address.starts_with("data:"),
                "{}",
                &address[..60.min(address.len())]
            );
        }
    }
    assert!(!text.contains("<link") && !text.contains("@import") && !text.contains("url("));
}

#[test]
fn a_page_has_what_the_report_has() {
    let folder = Folder::new();
    let small = report(&folder, "small.json", &folder.write("trace.txt", TRACE), &[TORUS]);
    let text = std::fs::read_to_string(page(&folder, "small.html", &[&small])).unwrap();
    assert_self_contained(&text);
    assert_eq!(sections(&text), ["summary", "time", "ranks", "waits", "sites", "histograms", "parameters"]);
    assert!(text.contains("late sender") && text.contains("a.c:2"));
    // 1 ms of computation, 1000 bytes at 1 GB/s, 1 us for a link, and the factors of the preset.
    assert!(text.contains("<b>1.0"), "the simulated time in milliseconds");
    let without = report(
        &folder,
        "bare.json",
        &folder.path("trace.txt"),
        &[TORUS, "analysis.histograms=false", "analysis.waits=false"],
    );
    let text = std::fs::read_to_string(page(&folder, "bare.html", &[&without])).unwrap();
    assert_eq!(sections(&text), ["summary", "time", "parameters"]);
    assert!(text.contains("analysis.waits = true"));
}

#[test]
fn a_comparison_shows_changes() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let one = report(&folder, "a.json", &trace, &[TORUS]);
    let two =
        report(&folder, "b.json", &trace, &[TORUS, "network.latency_factor=100", "mpi.envelope_bytes=0"]);
    let text = std::fs::read_to_string(page(&folder, "ab.html", &[&one, &two])).unwrap();
    assert_self_contained(&text);
    assert_eq!(sections(&text), ["summary", "time", "calls", "ranks", "parameters"]);
    assert!(text.contains("A is shorter"));
    let differing = text.split("<section id=\"parameters\"").nth(1).unwrap();
    assert!(differing.contains("mpi.envelope_bytes") && differing.contains("network.latency_factor"));
    assert!(!differing.contains("network.tcp_gamma"), "it is the same");
    let text = std::fs::read_to_string(page(&folder, "aa.html", &[&one, &one])).unwrap();
    assert!(
        text.contains("All results of all ranks are the same.")
            && text.contains("None: both runs have the same parameters.")
    );
    let table = command().arg("report").arg(&one).arg(&two).assert().code(DONE).get_output().stdout.clone();
    let table = String::from_utf8(table).unwrap();
    let line = table.lines().find(|line| line.starts_with("compute")).unwrap();
    assert!(line.contains("0.001000000 s") && line.ends_with("+0.00 %"), "{table}");
}

#[test]
fn pictures_are_files() {
    let folder = Folder::new();
    let full = full_report(&folder, "full.json", TORUS);
    for format in ["svg", "png"] {
        let output = folder.path(format);
        command().arg("report").arg(&full).args(["--format", format, "-o"]).arg(&output).assert().code(DONE);
        let mut names: Vec<_> = std::fs::read_dir(&output)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let expected = [
            "calls",
            "latencies",
            "link-use",
            "links",
            "network",
            "parts",
            "path-calls",
            "path-parts",
            "path-ranks",
            "rank-maps",
            "ranks",
            "sizes",
            "waits",
        ];
        assert_eq!(names, expected.map(|name| format!("{name}.{format}")));
        for name in names {
            let bytes = std::fs::read(output.join(&name)).unwrap();
            let head: &[u8] = if format == "png" { b"\x89PNG" } else { b"<svg" };
            assert!(bytes.starts_with(head) && bytes.len() > 1000, "{name}");
        }
    }
}

#[test]
fn invalid_inputs_are_reported() {
    let folder = Folder::new();
    let small = report(&folder, "small.json", &folder.write("trace.txt", TRACE), &[TORUS]);
    let timeline = folder.write("timeline.json", "[]");
    let expect = |arguments: &[&str], code: i32, words: &'static str| {
        let mut shown = command();
        shown
            .arg("report")
            .arg(&small)
            .args(arguments)
            .assert()
            .code(code)
            .stderr(predicates::str::contains(words));
    };
    let (page, timeline) = (folder.path("page.html"), timeline.to_str().unwrap());
    let page = page.to_str().unwrap();
    expect(&["--format", "svg"], MISUSE, "--output");
    expect(&["-o", page, "--timeline", timeline], FAILED, "has no state of a rank");
    expect(&["-o", page, "--timeline", timeline, "--format", "png"], MISUSE, "leave --format out");
    let below = small.join("page.html");
    expect(&["-o", below.to_str().unwrap()], FAILED, "small.json/page.html");
}

#[test]
#[cfg_attr(feature = "pictures", ignore = "the program has pictures")]
fn a_program_without_pictures_says_so() {
    let folder = Folder::new();
    let small = report(&folder, "small.json", &folder.write("trace.txt", TRACE), &[TORUS]);
    let refusal = "built without pictures: build it with --features pictures";
    let mut page = command();
    page.arg("report").arg(&small).arg("-o").arg(folder.path("page.html"));
    page.assert().code(MISUSE).stderr(predicates::str::contains(refusal));
    let mut sweep = command();
    sweep.arg("sweep").arg(repository().join("configs/machines.toml")).args(["--pictures", "svg", "-o"]);
    sweep.arg(folder.path("out")).assert().code(MISUSE).stderr(predicates::str::contains(refusal));
    assert!(!folder.path("page.html").exists() && !folder.path("out").exists());
}

#[test]
fn browser_errors_are_detected() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    let wrong = folder.write("wrong.html", "<!DOCTYPE html><p>text</p><script>nothing.there()</script>");
    let shown = browser.show(&wrong);
    assert!(shown.dom.contains("<p>text</p>"));
    assert!(
        shown.complaints.iter().any(|line| line.contains("nothing is not defined")),
        "{:?}",
        shown.complaints
    );
}

#[test]
fn scripts_run_and_timelines_zoom() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    let small = report(&folder, "small.json", &folder.write("trace.txt", TRACE), &[TORUS]);
    let timeline = folder.write("timeline.json", TIMELINE);
    let path = page(&folder, "page.html", &[&small, Path::new("--timeline"), &timeline]);
    let probe = r#"
        const told = () => document.querySelector(".timeline output").textContent;
        const canvas = document.querySelector(".timeline canvas");
        const seen = [[told(), canvas.toDataURL()]];
        const note = () => seen.push([told(), canvas.toDataURL()]);
        document.querySelector("[data-key=in]").click(); note();
        const box = canvas.getBoundingClientRect();
        const at = { clientX: box.right - 1, clientY: box.top + 5, cancelable: true };
        canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -1000, ...at })); note();
        canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -1000, shiftKey: true, ...at })); note();
        canvas.dispatchEvent(new MouseEvent("dblclick")); note();
        canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 100, clientY: box.top + 5 }));
        return [seen.map(([text]) => text), seen.map(([, image]) => seen.findIndex(([, other]) => other === image)), document.getElementById("hint").textContent];
    "#;
    let shown = browser.run(&path, probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    assert_eq!(sections(&shown.dom).len(), 8);
    let [texts, images, hint] = serde_json::from_value::<[Value; 3]>(shown.result()).unwrap();
    let texts: Vec<String> = serde_json::from_value(texts).unwrap();
    assert_eq!(texts[0], "0 s to 1.003 ms, rank 0 to rank 1");
    assert_eq!(texts[1], "250.75 us to 752.25 us, rank 0 to rank 1");
    // Around the right end of what was shown.
    assert!(texts[2].contains("to 75") && !texts[2].starts_with("250.75"), "{}", texts[2]);
    assert!(
        texts[3].ends_with("rank 0 to rank 1") && texts[3].starts_with(texts[2].split(',').next().unwrap())
    );
    assert_eq!(texts[4], texts[0]);
    let images: Vec<usize> = serde_json::from_value(images).unwrap();
    assert_eq!((images[1], images[4]), (1, 0), "zooming draws something else, and all is as it was before");
    assert_eq!(hint, "rank 0: compute, 1 ms from 0 s");
}

/// Points at rank 9 of each map, whose values are in the report.
#[test]
fn map_pixels_show_their_values() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    let full = full_report(&folder, "full.json", TREE);
    let path = page(&folder, "page.html", &[&full]);
    // The values of a map are read asynchronously, when its picture has been decoded.
    let probe = r#"
        const hint = () => document.getElementById("hint").textContent;
        const point = async (image, right, down, is_told) => {
            for (let tries = 0; tries < 80 && !is_told(hint()); tries += 1) {
                const box = image.getBoundingClientRect();
                const [clientX, clientY] = [box.left + right * box.width, box.top + down * box.width];
                image.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY }));
                await new Promise((done) => setTimeout(done, 50));
            }
            return hint();
        };
        const map = document.querySelector(".wide image[data-map='transfer']");
        const strip = document.querySelector(".wide image[data-strips]");
        return [
            await point(map, 1.5 / 8, 1.5 / 8, (text) => text.startsWith("rank 9")),
            await point(strip, 0.3, 0.001, (text) => text.includes("used")),
        ];
    "#;
    let shown = browser.run(&path, probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    let expected =
        ["summary", "time", "ranks", "waits", "path", "links", "network", "histograms", "parameters"];
    let found = sections(&shown.dom);
    assert!(expected.iter().all(|section| found.contains(section) || *section == "waits"), "{found:?}");
    let [map, strip] = serde_json::from_value::<[String; 2]>(shown.result()).unwrap();
    let text: Value = serde_json::from_str(&std::fs::read_to_string(&full).unwrap()).unwrap();
    let time = text["breakdown"]["ranks"]["transfer_ps"][9].as_f64().unwrap() / 1e6;
    let told: f64 = map
        .strip_prefix("rank 9: transfer about ")
        .and_then(|rest| rest.strip_suffix(" us"))
        .unwrap()
        .parse()
        .unwrap();
    assert!((told / time - 1.0).abs() < 0.02, "{map}, and not {time} us");
    assert_eq!(strip, "1.00 us to 2.00 us: 100 % used");
}

#[test]
fn the_page_of_a_sweep_is_self_contained() {
    let folder = Folder::new();
    let machines = repository().join("configs/machines.toml");
    command().arg("sweep").arg(&machines).arg("-q").arg("-o").arg(folder.path("out")).assert().code(DONE);
    let path = folder.path("out/sweep.html");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_self_contained(&text);
    assert_eq!(sections(&text), ["times", "runs"]);
    assert!(std::fs::read(folder.path("out/sweep.parquet")).unwrap().starts_with(b"PAR1"));
    let Some(browser) = Browser::find() else { return };
    assert_eq!(browser.show(&path).complaints, Vec::<String>::new());
}
