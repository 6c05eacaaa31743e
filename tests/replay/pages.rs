//! Pages and pictures of reports, in a browser if there is one.

#[path = "pages/browser.rs"]
mod browser;
#[path = "pages/explored.rs"]
mod explored;

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
    let path = report(folder, name, &trace, &[topology, "analysis.matrix=true"]);
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

/// Shows a page in the browser, if there is one, and returns its document; checks that its scripts run.
fn shown(path: &Path) -> Option<String> {
    let shown = Browser::find()?.show(path);
    assert_eq!(shown.complaints, Vec::<String>::new());
    Some(shown.dom)
}

#[test]
fn a_page_has_what_the_report_has() {
    let folder = Folder::new();
    let small = report(&folder, "small.json", &folder.write("trace.txt", TRACE), &[TORUS]);
    let path = page(&folder, "new/small.html", &[&small]);
    assert_self_contained(&std::fs::read_to_string(&path).unwrap());
    let settings = [TORUS, "analysis.histograms=false", "analysis.waits=false"];
    let without = report(&folder, "bare.json", &folder.path("trace.txt"), &settings);
    let bare = page(&folder, "bare.html", &[&without]);
    let (Some(full), Some(bare)) = (shown(&path), shown(&bare)) else { return };
    let expected = ["summary", "time", "ranks", "calls", "waits", "histograms", "parameters"];
    assert_eq!(sections(&full), expected);
    assert!(full.contains("late sender") && full.contains("a.c:2"));
    // 1 ms of computation, 1000 bytes at 1 GB/s, 1 us for a link, and the factors of the preset.
    assert!(full.contains("<b>1.0"), "the simulated time in milliseconds");
    assert_eq!(sections(&bare), ["summary", "time", "parameters"]);
    assert!(bare.contains("analysis.waits = true"));
}

#[test]
fn a_comparison_shows_changes() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let one = report(&folder, "a.json", &trace, &[TORUS, "analysis.matrix=true"]);
    let changed = ["analysis.matrix=true", "network.latency_factor=100", "mpi.envelope_bytes=0"];
    let two = report(&folder, "b.json", &trace, &[&[TORUS], &changed[..]].concat());
    let path = page(&folder, "ab.html", &[&one, &two]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_self_contained(&text);
    let title = "<title>trace.txt on inline with mpi.envelope_bytes 16 and 0, network.latency_factor ";
    assert!(text.contains(title), "{}", text.split("</title>").next().unwrap());
    let table = command().arg("report").arg(&one).arg(&two).assert().code(DONE).get_output().stdout.clone();
    let table = String::from_utf8(table).unwrap();
    let line = table.lines().find(|line| line.starts_with("compute")).unwrap();
    assert!(line.contains("0.001000000 s") && line.ends_with("+0.00 %"), "{table}");
    let same = page(&folder, "aa.html", &[&one, &one]);
    let (Some(text), Some(same)) = (shown(&path), shown(&same)) else { return };
    assert_eq!(sections(&text), ["summary", "parameters", "time", "ranks", "calls", "matrix"]);
    assert!(text.contains("A is shorter"));
    let differing =
        text.split("<section id=\"parameters\"").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(differing.contains("mpi.envelope_bytes") && differing.contains("network.latency_factor"));
    assert!(!differing.contains("network.tcp_gamma"), "it is the same");
    assert!(
        same.contains("All results of all ranks are the same.")
            && same.contains("None: both runs have the same parameters.")
    );
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
    expect(&["-o", page, "--timeline", timeline, "--timeline", timeline], MISUSE, "2 timelines of 1 reports");
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
    let probe = r##"
        const wait = () => new Promise((done) => setTimeout(done, 100));
        while (!document.querySelector("#timeline output")?.textContent) await wait();
        const told = () => document.querySelector("#timeline .controls output").textContent;
        const canvas = document.querySelector("#timeline canvas");
        const seen = [];
        const note = async () => { await wait(); seen.push([told(), canvas.toDataURL()]); };
        await note();
        document.querySelector("#timeline button[title=closer]").click(); await note();
        const box = canvas.getBoundingClientRect();
        const at = { clientX: box.right - 1, clientY: box.top + 5, cancelable: true };
        canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -1000, ctrlKey: true, ...at })); await note();
        canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "+", shiftKey: true })); await note();
        canvas.dispatchEvent(new MouseEvent("dblclick")); await note();
        canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 100, clientY: box.top + 5 }));
        const hint = document.querySelector("#timeline output[aria-live]").textContent;
        return [seen.map(([text]) => text), seen.map(([, image]) => seen.findIndex(([, other]) => other === image)), hint];
    "##;
    let shown = browser.run(&path, probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    let [texts, images, hint] = serde_json::from_value::<[Value; 3]>(shown.result()).unwrap();
    let texts: Vec<String> = serde_json::from_value(texts).unwrap();
    assert_eq!(texts[0], "0 s to 1.003 ms, rank 0 to rank 1");
    assert_eq!(texts[1], "250.75 us to 752.25 us, rank 0 to rank 1");
    // Around the right end of what was shown.
    assert!(texts[2].contains("to 75") && !texts[2].starts_with("250.75"), "{}", texts[2]);
    let range = texts[2].split(',').next().unwrap();
    assert!(texts[3].starts_with(range) && texts[3].ends_with("rank 0 to rank 1"), "{}", texts[3]);
    assert_eq!(texts[4], texts[0]);
    let images: Vec<usize> = serde_json::from_value(images).unwrap();
    assert_eq!((images[1], images[4]), (1, 0), "zooming draws something else, and all is as it was before");
    assert_eq!(hint, "rank 0: compute, 1 ms from 0 s (computation of the program)");
}

/// Reads the time in a cell of a table \[s\].
fn time(cell: &Value) -> f64 {
    let (number, unit) = cell.as_str().unwrap().split_once(' ').unwrap_or(("0", "s"));
    let unit = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        "ps" => 1e-12,
        _ => panic!("the time {cell}"),
    };
    number.replace(',', "").parse::<f64>().unwrap() * unit
}

/// Compares the tables and charts of a page with the report: ranks, call tree, matrix, links; and follows a rank by the keyboard.
#[test]
fn a_page_shows_the_numbers_of_its_report() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    let full = full_report(&folder, "full.json", TREE);
    let path = page(&folder, "page.html", &[&full]);
    let probe = r##"
        const cells = (body) => [...body.rows].map((row) => [...row.cells].map((cell) => cell.textContent));
        const table = (selector) => document.querySelectorAll(`${selector} tbody`)[0];
        charts.forEach((box) => box.draw());
        const matrix = document.getElementById("matrix-map");
        const tiles = () => matrix.instance.getOption().series[0].data.map(([to, from, bytes]) => [from, to, 10 ** bytes]);
        const all = tiles();
        matrix.dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
        const closer = tiles().length;
        const sort = document.querySelectorAll("#ranks th button")[1];
        sort.click();
        const row = table("#ranks").rows[0];
        row.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
        const panel = document.querySelector("#rank h3").textContent;
        const point = (box, index) => { box.instance.dispatchAction({ type: "showTip", seriesIndex: 0, dataIndex: index }); return box.textContent; };
        const tips = [point(document.querySelector("#ranks figure div"), 9), point(document.getElementById("strips"), 1)];
        const tree = cells(table("#calls"));
        const press = (key) => table("#calls").querySelector("[tabindex='0']").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        press("ArrowDown"); press("ArrowLeft");
        const closed = table("#calls").rows.length;
        return { tips, all, closer, ranks: cells(table("#ranks")), panel, tree, closed, sorted: document.querySelectorAll("#ranks th")[1].getAttribute("aria-sort"),
            strip: document.getElementById("strips").instance.getOption().series[0].data, links: cells(table("#links")) };
    "##;
    let shown = browser.run(&path, probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    let expected = [
        "summary",
        "time",
        "ranks",
        "calls",
        "matrix",
        "waits",
        "path",
        "links",
        "network",
        "machine",
        "histograms",
        "parameters",
    ];
    assert_eq!(sections(&shown.dom), expected);
    let (found, text) = (shown.result(), std::fs::read_to_string(&full).unwrap());
    let report: Value = serde_json::from_str(&text).unwrap();
    let is_close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-3;
    // Ranks, sorted by their ends.
    let ends = report["breakdown"]["ranks"]["end_ps"].as_array().unwrap();
    assert_eq!(found["sorted"], "descending");
    let latest = ends.iter().map(|end| end.as_f64().unwrap()).fold(0.0, f64::max);
    let row = &found["ranks"][0];
    let rank: usize = row[0].as_str().unwrap().parse().unwrap();
    assert!(is_close(time(&row[1]), latest / 1e12), "{row}");
    assert_eq!(ends[rank].as_f64(), Some(latest));
    assert_eq!(found["panel"], format!("Rank {rank}"));
    // Pointing at rank 9, and at the second bin of a link.
    let tip = found["tips"][0].as_str().unwrap();
    assert!(tip.starts_with("9: ") && tip.contains("compute: ") && tip.contains("transfer: "), "{tip}");
    let of_rank = time(&json!(tip.split("compute").next().unwrap().trim_start_matches("9: ")));
    assert!(is_close(of_rank, ends[9].as_f64().unwrap() / 1e12), "{tip}");
    assert_eq!(found["tips"][1], "link_a1 us to 2 us: 100.0 % used");
    // The call tree.
    let total = report["breakdown"]["total"]["time_s"].as_f64().unwrap();
    assert!(is_close(time(&found["tree"][0][1]), total), "{}", found["tree"][0]);
    let calls = report["call_tree"]["nodes"].as_array().unwrap();
    assert_eq!(found["tree"].as_array().unwrap().len(), calls.len() + 2, "the program, and one site");
    let longest = calls.iter().map(|call| call["time_s"].as_f64().unwrap()).fold(0.0, f64::max);
    assert!(is_close(time(&found["tree"][2][1]), longest), "{}", found["tree"][2]);
    assert_eq!(found["closed"], 2, "the site is closed");
    // The matrix: each of 64 ranks has up to 6 neighbours.
    let matrix = &report["communication"];
    let cell = |name: &str, pair: usize| matrix[name][pair].as_f64().unwrap();
    let tiles = found["all"].as_array().unwrap();
    assert_eq!(tiles.len(), matrix["from"].as_array().unwrap().len());
    assert_eq!((tiles.len(), matrix["groups"].as_u64()), (288, Some(64)));
    let pair = (0..tiles.len()).find(|&pair| (cell("from", pair), cell("to", pair)) == (17.0, 33.0)).unwrap();
    let tile = tiles.iter().find(|tile| tile[0] == 17 && tile[1] == 33).unwrap();
    assert!(is_close(tile[2].as_f64().unwrap(), cell("bytes", pair)), "{tile}");
    let sent: f64 = (0..tiles.len()).map(|pair| cell("messages", pair)).sum();
    assert_eq!(Some(sent), report["messages"].as_f64());
    assert!(found["closer"].as_u64().unwrap() < 288);
    // Links over time: the second bin is full.
    assert_eq!(found["strip"][1], json!([1, 0, 1, 1]));
    assert_eq!((&found["links"][0][0], &found["links"][0][4]), (&json!("link_a"), &json!("100.0 %")));
}

#[test]
fn tables_are_files() {
    let folder = Folder::new();
    let full = full_report(&folder, "full.json", TORUS);
    let output = folder.path("tables");
    command().arg("report").arg(&full).args(["--format", "csv", "-o"]).arg(&output).assert().code(DONE);
    let read = |name: &str| std::fs::read_to_string(output.join(name)).unwrap();
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&full).unwrap()).unwrap();
    let matrix = read("matrix.csv");
    let mut lines = matrix.lines();
    assert_eq!(lines.next(), Some("from,to,bytes,messages,transfer_ps"));
    let first = &report["communication"];
    let expected = ["from", "to", "bytes", "messages", "transfer_ps"].map(|name| first[name][0].to_string());
    assert_eq!(lines.next(), Some(expected.join(",").as_str()));
    assert!(
        read("ranks.csv").starts_with("rank,end_ps,compute_ps,") && read("ranks.csv").lines().count() == 65
    );
    assert!(
        read("calls.csv").starts_with("site,action,count,time_s,") && read("links.csv").lines().count() > 64
    );
}

#[test]
fn the_page_of_a_sweep_is_self_contained() {
    let folder = Folder::new();
    let machines = repository().join("configs/machines.toml");
    command().arg("sweep").arg(&machines).arg("-q").arg("-o").arg(folder.path("out")).assert().code(DONE);
    let path = folder.path("out/sweep.html");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_self_contained(&text);
    assert!(std::fs::read(folder.path("out/sweep.parquet")).unwrap().starts_with(b"PAR1"));
    let Some(dom) = shown(&path) else { return };
    assert_eq!(sections(&dom), ["times", "costs", "over-1", "map", "runs"]);
}
