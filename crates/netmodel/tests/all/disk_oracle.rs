//! Disks beside messages and computations, against SimGrid's answers.

use std::collections::{BTreeMap, BTreeSet};

use netmodel::{
    Access, DeviceId, Devices, Direction, FlowNetwork, HostId, Message, NetworkModel, NetworkParameters,
    Platform, Preset,
};
use pdes_core::{Bytes, SimDuration, SimTime};

use crate::shared::shared;

/// Cases, and how far SimGrid's ends may be from ours: it rounds the progress of each access to whole bytes at each step of its clock.
/// The table has ends without that rounding for cases of accesses alone.
const CASES: [(&str, f64); 10] = [
    ("D01", 1e-11),
    ("D02", 1e-11),
    ("D03", 1e-11),
    ("D04", 1e-11),
    ("D05", 1e-11),
    ("D07", 1e-11),
    ("D08", 1e-9),
    ("D09", 1e-11),
    ("D10", 2e-8),
    ("D12", 1e-11),
];

/// Number of an actor, and what it waits for: the name of a request, or the empty one for a step of its own.
type Tag = usize;

struct Actor {
    name: String,
    host: HostId,
    begin: SimTime,
    steps: Vec<Vec<String>>,
    next: usize,
    waits_for: Option<String>,
    /// Requests that nobody has waited for, in progress or ended.
    ended: BTreeSet<String>,
    step_ends: Vec<f64>,
}

/// Actors of a case on disks and a network.
struct Run<'a> {
    platform: &'a Platform,
    network: FlowNetwork<'a, Tag>,
    devices: Devices<Tag>,
    disks: &'a [String],
    actors: Vec<Actor>,
    /// Actor and request of each operation.
    operations: Vec<(usize, String)>,
}

impl Run<'_> {
    /// Starts an operation, `words` with its amounts.
    fn start(&mut self, actor: usize, request: &str, words: &[&str], now: SimTime) {
        self.operations.push((actor, request.to_owned()));
        let (tag, here) = (self.operations.len() - 1, self.actors[actor].host);
        let host = |name: &str| self.platform.host_by_name(name).unwrap();
        let amount = |place: usize| words[place].parse::<f64>().unwrap();
        let mut send = |src, dst| {
            self.network.send(Message::new(now, src, dst, Bytes::new(amount(2) as u64), tag)).unwrap();
        };
        match words[0] {
            "send" => send(here, host(words[1])),
            "fetch" => send(host(words[1]), here),
            "compute" => self.network.compute(now, here, amount(1), tag),
            operation => {
                let direction = if operation == "read" { Direction::Read } else { Direction::Write };
                let disk = self.disks.iter().position(|disk| disk == words[1]).unwrap() as u32;
                let access = Access { file: 0, direction, offset: 0, bytes: amount(2) as u64 };
                self.devices.submit(now, DeviceId::new(disk), access, tag);
            }
        }
    }

    /// Runs the steps of an actor up to the first for which it waits.
    fn resume(&mut self, number: usize, now: SimTime) {
        while self.actors[number].waits_for.is_none()
            && let Some(step) = self.actors[number].steps.get(self.actors[number].next).cloned()
        {
            let words: Vec<&str> = step.iter().map(String::as_str).collect();
            let actor = &mut self.actors[number];
            actor.next += 1;
            if words[0] == "wait" {
                if !actor.ended.contains(words[1]) {
                    actor.waits_for = Some(words[1].to_owned());
                    return;
                }
            } else if let Some(operation) = words[0].strip_prefix('a') {
                self.start(number, words[1], &[&[operation], &words[2..]].concat(), now);
            } else {
                actor.waits_for = Some(String::new());
                return self.start(number, "", &words, now);
            }
            self.actors[number].step_ends.push(seconds(now));
        }
    }

    fn ended(&mut self, tag: Tag, now: SimTime) {
        let (number, request) = self.operations[tag].clone();
        let actor = &mut self.actors[number];
        if actor.waits_for.as_ref() == Some(&request) {
            actor.waits_for = None;
            actor.step_ends.push(seconds(now));
            self.resume(number, now);
        } else {
            actor.ended.insert(request);
        }
    }

    fn run(&mut self) {
        for number in 0..self.actors.len() {
            self.resume(number, self.actors[number].begin);
        }
        let mut ended = Vec::new();
        loop {
            let (of_network, of_devices) = (self.network.next_event(), self.devices.next_event());
            let now = match (of_network, of_devices) {
                (None, None) => return,
                (network, Some(at)) if network.is_none_or(|other| at < other) => {
                    self.devices.advance(at, &mut ended);
                    at
                }
                _ => {
                    self.network.advance(&mut ended);
                    self.network.now()
                }
            };
            ended.drain(..).for_each(|tag| self.ended(tag, now));
        }
    }
}

fn seconds(time: SimTime) -> f64 {
    time.as_picos() as f64 / 1e12
}

/// Reads and writes beside each other, transfers before and behind them, asynchronous operations and computations. The cases with
/// priorities and with bandwidths that change are left out: neither MPI nor a platform has them.
#[test_with::shared]
fn disks_are_those_of_simgrid() {
    let folder = shared("oracle/io");
    let table = |name| {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect::<Vec<Vec<String>>>()
    };
    let (all_steps, expected) = (table("disk-ops.csv"), table("disk-expected.csv"));
    let platform = {
        let text = std::fs::read_to_string(folder.join("disks.xml")).unwrap();
        Platform::from_xml(&text, "disks.xml").unwrap()
    };
    let disks = ["bob:d1", "bob:d2", "alice:d1"].map(str::to_owned);
    let rates = [(100e6, 40e6), (200e6, 80e6), (200e6, 80e6)];
    let mut compared = 0;
    for (case, tolerance) in CASES {
        let mut actors: Vec<Actor> = Vec::new();
        let mut both = BTreeMap::new();
        for row in all_steps.iter().filter(|row| row[0] == case) {
            let words: Vec<String> = row[5].split(' ').map(str::to_owned).collect();
            if row[1] == "setup" {
                both.insert(words[0].clone(), words[2].clone());
                continue;
            }
            if actors.last().is_none_or(|actor| actor.name != row[1]) {
                actors.push(Actor {
                    name: row[1].clone(),
                    host: platform.host_by_name(&row[2]).unwrap(),
                    begin: SimTime::ZERO + SimDuration::try_from_secs_f64(row[3].parse().unwrap()).unwrap(),
                    steps: Vec::new(),
                    next: 0,
                    waits_for: None,
                    ended: BTreeSet::new(),
                    step_ends: Vec::new(),
                });
            }
            actors.last_mut().unwrap().steps.push(words);
        }
        let device = |(name, (read, write)): (&String, (f64, f64))| {
            let both = both.get(name).map_or(String::new(), |both| format!(", both = {both}"));
            let disk = format!("read = {read}, write = {write}{both}");
            crate::storage::with_device(&disk).storage().idle_devices().remove(0)
        };
        let devices = Devices::new(disks.iter().zip(rates).map(device).collect());
        let network = FlowNetwork::new(&platform, &NetworkParameters::preset(Preset::Smpi));
        let mut run =
            Run { platform: &platform, network, devices, disks: &disks, actors, operations: Vec::new() };
        run.run();
        for actor in &run.actors {
            let rows: Vec<_> = expected.iter().filter(|row| row[0] == case && row[1] == actor.name).collect();
            assert_eq!(actor.step_ends.len(), rows.len(), "{case} {}", actor.name);
            for (step, (row, found)) in rows.iter().zip(&actor.step_ends).enumerate() {
                let expected = if row[5].is_empty() { &row[4] } else { &row[5] };
                let expected: f64 = expected.parse().unwrap();
                assert!(
                    (found - expected).abs() < tolerance,
                    "{case} {} {step}: {found}, expected {expected}",
                    actor.name
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 16 + 4 + 4 + 18 + 5);
}
