//! The pages of a diagnosis, of hypotheses, of a calibration, and of a large run, with the numbers of their data.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::{Browser, TRACE, page, report, sections, time};
use crate::command_line::{DONE, Folder, command};

/// Two hosts of 1 Gflop/s, 1 us apart.
const PAIR: &str = "[trace]\npath = 'trace.txt'\n[network]\npreset = 'raw'\n[platform.topology]\nkind = 'cluster'\n\
    hosts = 2\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n";
/// Largest size of a page without its data \[B\].
const MAX_PAGE: u64 = 2_000_000;
/// A function for scripts, which returns the text of each cell of the tables in a section.
const CELLS: &str = "const cells = (selector) => [...document.querySelectorAll(`${selector} tbody tr`)].map((row) => \
    [...row.cells].map((cell) => cell.textContent)); charts.forEach((box) => box.draw());";

fn json(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Two times agree to the four digits of a page.
fn agree(cell: &Value, seconds: &Value) {
    let (cell, seconds) = (time(cell), seconds.as_f64().unwrap());
    assert!((cell - seconds).abs() <= 1e-3 * seconds.abs(), "{cell} {seconds}");
}

#[test]
fn a_diagnosis_is_explored() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    folder.write("trace.txt", TRACE);
    let run = folder.write("run.toml", PAIR);
    let [path, found] = ["page.html", "found.json"].map(|name| folder.path(name));
    let mut diagnose = command();
    diagnose.arg("diagnose").arg(&run).args(["--gain", "--tolerance", "--page"]).arg(&path);
    diagnose.arg("--json").arg(&found).assert().code(DONE);
    let probe = format!(
        "{CELLS} const problem = document.querySelector('#problems > .scroll tbody tr'); \
         document.querySelectorAll('#problems > details').forEach((panel) => {{ panel.open = false; }}); \
         problem.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter' }})); \
         const open = document.querySelector('#problems > details[open] b').textContent; \
         const before = cells('#problems > .scroll').map((row) => row[0]); \
         document.querySelectorAll('#problems > .scroll th button')[1].click(); \
         return {{ open, before, problems: cells('#problems > .scroll'), tree: cells('#efficiencies'), bars: charts[0].instance.getOption().series[0].data }};"
    );
    let shown = browser.run(&path, &probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    assert_eq!(sections(&shown.dom), ["efficiencies", "problems", "regions", "tolerance"]);
    let (shown, found) = (shown.result(), json(&found));
    let problems = found["problems"].as_array().unwrap();
    let names: Vec<&Value> = problems.iter().map(|problem| &problem["name"]).collect();
    assert_eq!(shown["before"].as_array().unwrap().iter().collect::<Vec<_>>(), names);
    assert_eq!(&shown["open"], names[0]);
    // A click on a head sorts, the longest time first.
    let mut sorted: Vec<&Value> = problems.iter().collect();
    let duration = |problem: &Value| problem["duration_s"].as_f64().unwrap();
    sorted.sort_by(|one, other| duration(other).total_cmp(&duration(one)));
    let rows = shown["problems"].as_array().unwrap();
    assert!(rows.len() == problems.len() && rows.len() > 1);
    rows.iter().zip(sorted).for_each(|(row, problem)| agree(&row[1], &problem["duration_s"]));
    let efficiency = format!("{:.1} %", 100.0 * found["pop"]["parallel_efficiency"].as_f64().unwrap());
    assert_eq!(shown["tree"][0][1], efficiency);
    let gains = problems.iter().filter_map(|problem| problem["gain_s"].as_f64()).map(|gain| gain.max(0.0));
    let bars = shown["bars"].as_array().unwrap().iter().map(|bar| bar.as_f64().unwrap());
    assert!(bars.eq(gains), "{}", shown["bars"]);
}

/// Rank 1 waits for rank 0 at two call sites, three times longer at the second one, and for a transfer at a third one.
#[test]
fn instances_of_problems_are_on_the_timeline() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    let sends: String =
        [1, 3, 0].map(|millis| format!("0 location a.c 1\n0 compute {millis}e6\n0 send 1 0 984\n")).concat();
    let receives = (2..5).map(|line| format!("1 location a.c {line}\n1 recv 0 0 984\n")).collect::<String>();
    folder.write("trace.txt", &format!("0 init\n1 init\n{sends}{receives}"));
    let run = folder.write("run.toml", PAIR);
    let [found, timeline, report] =
        ["found.json", "timeline.json", "report.json"].map(|name| folder.path(name));
    command().arg("diagnose").arg(&run).arg("--json").arg(&found).assert().code(DONE);
    let mut replay = command();
    replay.arg("--config").arg(&run).arg("--report").arg(&report).arg("--timeline").arg(&timeline);
    replay.assert().code(DONE);
    let more = [&report, Path::new("--timeline"), &timeline, Path::new("--diagnosis"), &found];
    let path = page(&folder, "page.html", &more);
    let probe = format!(
        "{CELLS} const wait = () => new Promise((done) => setTimeout(done, 100)); \
         const of = [...document.querySelectorAll('#problems > details')].find((panel) => panel.querySelector('b').textContent === 'late sender'); \
         of.open = false; await wait(); of.open = true; \
         const heading = () => [...of.querySelectorAll('p.note')].find((text) => text.textContent.includes('instances')); \
         while (!heading() || !document.querySelector('#timeline .controls output').textContent) await wait(); \
         const rows = () => [...heading().nextElementSibling.querySelectorAll('tbody tr')]; \
         const texts = rows().map((row) => [...row.cells].map((cell) => cell.textContent)); \
         const told = [], canvas = document.querySelector('#timeline canvas'); \
         const note = async () => {{ await wait(); told.push([document.querySelector('#timeline .controls output').textContent, canvas.toDataURL()]); }}; \
         await note(); of.querySelector('button[title^=let]').click(); await note(); rows()[1].click(); await note(); \
         const box = canvas.getBoundingClientRect(); \
         canvas.dispatchEvent(new PointerEvent('pointermove', {{ clientX: box.left + 76 + (box.width - 76) / 4, clientY: box.bottom - 40 }})); \
         return {{ texts, told: told.map(([text]) => text), images: new Set(told.map(([, image]) => image)).size, hint: document.querySelector('#timeline output[aria-live]').textContent }};"
    );
    let shown = browser.run(&path, &probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    let shown = shown.result();
    let texts = shown["texts"].as_array().unwrap();
    let place = |row: usize| (texts[row][0].as_str().unwrap(), texts[row][4].as_str().unwrap());
    assert_eq!([place(0), place(1)], [("rank 1", "recv at a.c:3"), ("rank 1", "recv at a.c:2")]);
    // Beside them the messages take some microseconds.
    assert!(
        (time(&texts[0][3]) - 3e-3).abs() < 1e-5 && (time(&texts[1][3]) - 1e-3).abs() < 1e-5,
        "{texts:?}"
    );
    assert!((time(&texts[0][2]) - 4e-3).abs() < 1e-5, "{texts:?}");
    assert_eq!(shown["images"], 3, "all is seen, then the problem stands out, then one instance is near");
    let told = shown["told"].as_array().unwrap();
    assert!(told[0] == told[1] && told[2] == "0 s to 2 ms, rank 0 to rank 1", "{told:?}");
    let hint = shown["hint"].as_str().unwrap();
    assert!(hint.starts_with("rank 1: late sender, recv at a.c:2, "), "{hint}");
}

#[test]
fn hypotheses_are_explored() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    folder.write("trace.txt", TRACE);
    let run = folder.write("run.toml", PAIR);
    let hypotheses = "[[hypothesis]]\nname = 'half'\ntransform = [{ kind = 'scale', factor = 0.5 }]\n\
        [[hypothesis]]\nname = 'never'\ntransform = [{ kind = 'scale', factor = 1e30 }]\n";
    let mut what_if = command();
    what_if.arg("what-if").arg(folder.write("h.toml", hypotheses)).arg("--config").arg(&run);
    what_if.arg("-o").arg(folder.path("results")).assert().code(crate::command_line::FAILED);
    let probe = format!(
        "{CELLS} return {{ times: cells('#times'), waits: cells('#waits'), sites: cells('#sites'), \
         failure: document.querySelector('#times .warning').textContent, link: document.querySelector('#times a').getAttribute('href'), bars: charts[0].instance.getOption().series[0].data }};"
    );
    let shown = browser.run(&folder.path("results/what-if.html"), &probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    assert_eq!(sections(&shown.dom)[..3], ["times", "waits", "sites"]);
    let (shown, found) = (shown.result(), json(&folder.path("results/summary.json")));
    let [original, half] = [0, 1].map(|index| &found["hypotheses"][index]);
    agree(&shown["times"][0][1], &original["simulated_time_s"]);
    agree(&shown["times"][1][1], &half["simulated_time_s"]);
    let change = format!("{:+.2} %", 100.0 * half["change"].as_f64().unwrap());
    assert_eq!((&shown["times"][1][0], &shown["times"][1][2]), (&Value::from("half"), &change.into()));
    assert_eq!(shown["times"][2][1], "failed");
    assert_eq!(
        shown["failure"],
        format!("never failed: {}", found["hypotheses"][2]["error"].as_str().unwrap())
    );
    assert_eq!(shown["link"], "reports/half.html");
    assert_eq!(shown["bars"], serde_json::json!([original["simulated_time_s"], half["simulated_time_s"]]));
    let waits = shown["waits"].as_array().unwrap();
    let late = waits.iter().find(|row| row[0] == "late sender").unwrap();
    agree(&late[1], &original["wait_states"]["late_sender"]);
    assert_eq!(shown["sites"][0][0], "a.c:2");
}

/// Messages of up to 4096 B take 1 us and 0.1 ns per byte, larger ones 3 us and 0.05 ns.
#[test]
fn a_calibration_is_explored() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    let mut text = "# host: <here>\noperation,amount,start_s,duration_s\n".to_owned();
    let message = |size: f64| if size <= 4096.0 { 1e-6 + 1e-10 * size } else { 3e-6 + 5e-11 * size };
    for size in (0..=20).map(|power| 1 << power) {
        // Of three observations the one in the middle counts.
        for factor in [0.9, 1.0, 1.2] {
            writeln!(text, "pingpong,{size},0,{:e}", 2.0 * factor * message(f64::from(size))).unwrap();
        }
        writeln!(text, "isend,{size},0,3e-7\nstream,{size},0,{:e}", message(f64::from(size))).unwrap();
    }
    text.push_str("compute,1000,0,5e-7\ntest,0,0,5e-8\n");
    let mut calibrate = command();
    calibrate.args(["calibrate", "--from"]).arg(folder.write("observations.csv", &text));
    calibrate.arg("-o").arg(folder.path("machine.toml")).assert().code(DONE);
    let probe = format!(
        "{CELLS} const point = (box) => {{ box.instance.dispatchAction({{ type: 'showTip', seriesIndex: box.instance.getOption().series.length - 1, dataIndex: 3 }}); return box.textContent; }}; \
         const [durations, distances] = charts; \
         document.querySelectorAll('#pingpong details th button')[0].click(); \
         return {{ cards: Object.fromEntries([...document.querySelectorAll('#summary .cards div')].map((card) => [card.querySelector('span').textContent, card.querySelector('b').textContent])), \
         segments: cells('#pingpong > .scroll'), sizes: cells('#pingpong details'), tips: [point(durations), point(distances)], \
         drawn: durations.instance.getOption().series.map((part) => [part.name, part.data.length]), notes: cells('#origin') }};"
    );
    let shown = browser.run(&folder.path("machine.html"), &probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    assert_eq!(sections(&shown.dom), ["summary", "pingpong", "isend", "streams", "origin"]);
    let shown = shown.result();
    let cards = &shown["cards"];
    agree(&cards["a message of zero bytes"], &1e-6.into());
    assert_eq!((&cards["speed of a core"], &cards["a failed test"]), (&"2 Gflop/s".into(), &"50 ns".into()));
    assert_eq!(cards["bandwidth of the largest messages"], "20 GB/s");
    let segments = shown["segments"].as_array().unwrap();
    assert_eq!(segments.len(), 2);
    for (segment, [constant, slope, sizes]) in segments.iter().zip([[1e-6, 1e-10, 13.0], [3e-6, 5e-11, 8.0]])
    {
        agree(&segment[1], &constant.into());
        agree(&segment[2], &slope.into());
        assert_eq!(segment[3], sizes.to_string());
    }
    // The largest sizes come first after a click on the head.
    assert_eq!(shown["sizes"][0][0], "1,048,576");
    agree(&shown["sizes"][0][1], &message(1_048_576.0).into());
    assert_eq!(shown["sizes"][0][4], "3");
    for tip in shown["tips"].as_array().unwrap() {
        let tip = tip.as_str().unwrap();
        assert!(
            tip.starts_with("8 B: 1.001 usfit: 1.001 us (") && tip.contains("eight in ten of 3"),
            "{tip}"
        );
    }
    let drawn = shown["drawn"].as_array().unwrap();
    let number = |name: &str| drawn.iter().find(|part| part[0] == name).unwrap()[1].as_u64().unwrap();
    assert_eq!((number("measured"), number("breakpoints")), (21, 3));
    assert_eq!(shown["notes"][0], serde_json::json!(["host", "<here>"]));
}

/// A page of 16,384 ranks is small, opens, and has the numbers of its report.
#[test]
fn a_page_of_many_ranks_has_the_numbers_of_its_report() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    let trace = folder.path("halo.pdt");
    let generate = ["trace", "generate", "halo3d", "--ranks", "32,32,16", "--iterations", "1"];
    command().args(generate).arg("-o").arg(&trace).assert().code(DONE);
    let platform = "platform.topology={ kind = 'torus', dims = [32, 32, 16], speed = '1Gf', bandwidth = '1GBps', latency = '1us', \
        loopback = { bandwidth = '1GBps', latency = '1us' } }";
    let large = report(&folder, "large.json", &trace, &[platform, "analysis.matrix=true"]);
    let path = page(&folder, "large.html", &[&large]);
    let size = |path: &std::path::Path| std::fs::metadata(path).unwrap().len();
    assert!(size(&path) < MAX_PAGE + size(&large), "{} of {}", size(&path), size(&large));
    let probe = format!(
        "{CELLS} const bars = charts.find((box) => box.closest('#ranks')).instance.getOption().series; \
         const matrix = document.getElementById('matrix-map').instance.getOption().series[0].data; \
         const rows = cells('#ranks'); \
         return {{ rows, bars: bars.map((part) => part.data), names: bars.map((part) => part.name), \
         bytes: matrix.reduce((all, tile) => all + 10 ** tile[2], 0), cards: document.querySelector('#summary .cards b').textContent }};"
    );
    let shown = browser.run(&path, &probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    let expected = ["summary", "time", "ranks", "calls", "matrix", "histograms", "parameters"];
    assert_eq!(sections(&shown.dom), expected);
    let (shown, found) = (shown.result(), json(&large));
    agree(&shown["cards"], &found["simulated_time_s"]);
    assert!((shown["bytes"].as_f64().unwrap() / found["message_bytes"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    // A bar is the mean of 128 ranks: each part's bars have its time in sum.
    let series = shown["names"].as_array().unwrap().iter().zip(shown["bars"].as_array().unwrap());
    for (name, bars) in series {
        let sum: f64 = bars.as_array().unwrap().iter().map(|bar| bar.as_f64().unwrap() * 128.0).sum();
        let key = format!("{}_s", name.as_str().unwrap().replace(' ', "_"));
        let total = found["breakdown"]["total"][key].as_f64().unwrap();
        assert!(
            bars.as_array().unwrap().len() == 128 && (sum / total - 1.0).abs() < 1e-9,
            "{name}: {sum} of {total}"
        );
    }
    let rank: usize = shown["rows"][0][0].as_str().unwrap().parse().unwrap();
    let end = found["breakdown"]["ranks"]["end_ps"][rank].as_f64().unwrap();
    agree(&shown["rows"][0][1], &(end / 1e12).into());
}

/// The load of each bin is drawn on the network, ranks on their hosts, and the timelines of two runs move together.
#[test]
fn networks_and_timelines_follow_time() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    let trace = folder.path("halo.pdt");
    let generate = ["trace", "generate", "halo3d", "--ranks", "2,2,2", "--iterations", "2"];
    command().args(generate).arg("-o").arg(&trace).assert().code(DONE);
    let settings = [super::TREE, "network.model='flow'", "analysis.critical_path=true"];
    let one = report(&folder, "one.json", &trace, &settings);
    let slower = [&settings[..], &["compute.region_speeds={}", "network.latency_scale=3"]].concat();
    let two = report(&folder, "two.json", &trace, &slower);
    let probe = "charts.forEach((box) => box.draw()); \
        const drawn = () => document.querySelector('#network [role=img]').instance.getOption().series[0].edges.map(({ cable }) => [cable.links[0], cable.up]); \
        const slider = document.querySelector('#network input[type=range]'); const mean = drawn(); \
        const bin = Math.max(...run.links.all.series.map((link) => link.findLastIndex((used) => used > 0))); \
        slider.value = bin; slider.dispatchEvent(new Event('input')); \
        const cells = document.querySelector('#machine [role=img]').instance.getOption().series[0].data; \
        document.querySelector('#links').classList.add('folded'); dispatchEvent(new Event('beforeprint')); \
        const printed = document.querySelectorAll('.printed').length / charts.length; dispatchEvent(new Event('afterprint')); \
        return { printed: [printed, document.querySelectorAll('.printed').length], mean, bin, then: drawn(), told: document.querySelector('#network output').textContent, cells };";
    let shown = browser.run(&page(&folder, "one.html", &[&one]), probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    let (shown, found) = (shown.result(), json(&one));
    assert_eq!(shown["printed"], serde_json::json!([1, 0]), "each chart is one canvas while it is printed");
    let links = &found["links"];
    let check = |drawn: &str, of: &dyn Fn(usize) -> f64| {
        let cables = shown[drawn].as_array().unwrap();
        let up = |cable: &serde_json::Value| of(cable[0].as_u64().unwrap() as usize);
        assert!(cables.iter().all(|cable| cable[1].as_f64().unwrap() == up(cable)), "{cables:?}");
        assert!(cables.iter().any(|cable| up(cable) > 0.0));
    };
    check("mean", &|link| links["all"]["utilisation"][link].as_f64().unwrap());
    let bin = shown["bin"].as_u64().unwrap() as usize;
    check("then", &|link| links["all"]["series"][link][bin].as_f64().unwrap_or(0.0));
    let begin = bin as f64 * links["bin_ps"].as_f64().unwrap() / 1e12;
    let told = shown["told"].as_str().unwrap().split(" to ").next().unwrap();
    assert!((super::time(&told.into()) / begin - 1.0).abs() < 1e-3, "{told}");
    let ranks = &found["breakdown"]["ranks"];
    let waiting = |rank: usize| -> f64 {
        let states = ranks.as_object().unwrap().iter().skip_while(|(name, _)| *name != "late_sender_ps");
        states.map(|(_, column)| column[rank].as_f64().unwrap()).sum()
    };
    let cells = shown["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    for (rank, cell) in cells.iter().enumerate() {
        assert_eq!(ranks["host"][rank], cell[0], "eight hosts to a leaf");
        assert_eq!(cell[2].as_f64().unwrap(), waiting(rank));
    }
    let timeline = folder.write("timeline.json", super::TIMELINE);
    let flag = Path::new("--timeline");
    let probe = "const wait = () => new Promise((done) => setTimeout(done, 100)); \
        const told = () => [...document.querySelectorAll('#timeline .controls output')].map((output) => output.textContent); \
        while (told().length < 2 || !told()[1]) await wait(); const before = told(); \
        document.querySelector('#timeline button[title=closer]').click(); await wait(); return [before, told()];";
    let pair = page(&folder, "pair.html", &[&one, &two, flag, &timeline, flag, &timeline]);
    let shown = browser.run(&pair, probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    let [before, after] = serde_json::from_value::<[[String; 2]; 2]>(shown.result()).unwrap();
    assert!(before[0] == before[1] && after[0] == after[1] && before != after, "{before:?} {after:?}");
}

/// Equal matrices have no difference: a map of one neutral colour that says so, and no scale around zero.
#[test]
fn equal_values_have_no_scale() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let one = report(&folder, "a.json", &trace, &[super::TORUS, "analysis.matrix=true"]);
    let path = page(&folder, "aa.html", &[&one, &one]);
    let probe = format!(
        "{CELLS} const [scale] = [...charts].find((box) => box.id === 'matrix-map').instance.getOption().visualMap; \
         return {{ text: scale.text[0], ends: [scale.min, scale.max], colour: scale.inRange.color[0], \
         middle: data.colours.diverging[4], zeros: [seconds(-1e-20), bytes(-1e-12), bytes(-0)] }};"
    );
    let shown = browser.run(&path, &probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    let shown = shown.result();
    assert_eq!(shown["text"], "no difference anywhere");
    // Zero is in the middle of the scale, whose colour is neutral.
    assert_eq!((&shown["ends"], &shown["colour"]), (&serde_json::json!([-1, 1]), &shown["middle"]));
    assert_eq!(shown["middle"], "#f7f7f7");
    assert_eq!(shown["zeros"], serde_json::json!(["0 ps", "0 B", "0 B"]));
}

/// A colour has one meaning: parts of times, parts of paths that are no such parts, runs of a comparison, and calls on timelines.
#[test]
fn colours_have_one_meaning() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let one = report(&folder, "a.json", &trace, &[super::TORUS]);
    let path = page(&folder, "a.html", &[&one]);
    let probe = "const paths = data.pathParts.filter(([name]) => !PARTS.some((part) => part.key === name)); \
        const known = [...PARTS.map((part) => part.colour), ...paths.map(([, colour]) => colour), ...data.colours.runs, ...stateColours(data.calls.filter((name) => !PARTS.some((part) => part.key === name)))]; \
        const same = data.pathParts.filter(([name, colour]) => PARTS.some((part) => part.key === name && part.colour !== colour)); \
        const of = (names) => stateColours(names)[names.indexOf('recv')]; \
        return { all: known.length, different: new Set(known).size, same, parts: stateColours(['late_sender'])[0] === PARTS[4].colour, \
                 recv: of(['recv', 'late_sender']) === of(['compute', 'wait', 'late_sender', 'recv', 'own'])  };";
    let shown = browser.run(&path, probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    let shown = shown.result();
    assert_eq!(shown["all"], shown["different"], "{shown}");
    assert_eq!(
        (&shown["parts"], &shown["recv"], &shown["same"]),
        (&Value::from(true), &Value::from(true), &serde_json::json!([]))
    );
}

/// Two jobs send a megabyte each over the same cable between two switches, at half of its bandwidth while both do.
#[test]
fn jobs_are_explored() {
    let Some(browser) = Browser::find() else { return };
    let folder = Folder::new();
    folder.write("trace.txt", "0 init\n1 init\n0 send 1 0 999984\n1 recv 0 0 999984\n");
    let mut text = "[network]\npreset = 'raw'\n[jobs]\nslowdown = true\n[platform]\ntopology = { kind = 'fat_tree', levels = \
        [{ children = 2, parents = 1 }, { children = 2, parents = 1 }], speed = '1Gf', bandwidth = '1GBps', latency = '1us' }\n"
        .to_owned();
    for (name, hosts) in [("one", "node-0\nnode-2\n"), ("other", "node-1\nnode-3\n")] {
        folder.write(&format!("{name}.txt"), hosts);
        write!(text, "[[job]]\nname = '{name}'\ntrace = 'trace.txt'\nhosts = '{name}.txt'\n").unwrap();
    }
    let (run, saved) = (folder.write("run.toml", &text), folder.path("run.json"));
    command().arg("run").arg(&run).arg("--report").arg(&saved).assert().code(DONE);
    let path = page(&folder, "jobs.html", &[&saved]);
    let probe = format!("{CELLS} return {{ jobs: cells('#jobs > .scroll') }};");
    let shown = browser.run(&path, &probe);
    assert_eq!(shown.complaints, Vec::<String>::new());
    let (rows, saved) = (shown.result(), json(&saved));
    let rows = rows["jobs"].as_array().unwrap();
    for (row, job) in rows.iter().zip(saved["jobs"].as_array().unwrap()) {
        assert_eq!(row[0], job["name"]);
        agree(&row[6], &job["simulated_time_s"]);
        agree(&row[8], &job["alone_s"]);
    }
    // Each job has two lines more: what the other one costs it on both ways of the cable.
    let links = &saved["jobs"][0]["delayed_by"][0]["links"];
    assert!(links[0]["lost_s"].as_f64().unwrap() > 0.0);
    assert_eq!(rows.len(), 2 + 2 * links.as_array().unwrap().len());
}
