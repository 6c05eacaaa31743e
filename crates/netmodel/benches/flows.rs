//! Cost of a flow, by the number of active flows: random messages on a fat tree of 1,024 hosts, each of which is
//! followed by another one when it arrives.

#[path = "shared/random.rs"]
mod random;

use divan::Bencher;
use divan::counter::ItemsCount;
use netmodel::{FlowNetwork, HostId, Message, NetworkModel, NetworkParameters, Platform, Preset};
use pdes_core::{Bytes, SimTime};
use random::Random;

fn main() {
    divan::main();
}

/// 32 leaf switches of 32 hosts; as many cables upward as downward, or a quarter of them.
fn fat_tree(parents: u32) -> Platform {
    let text = format!(
        "[topology]\nkind = \"fat_tree\"\nspeed = \"10Gf\"\nbandwidth = \"12.5GBps\"\nlatency = \"1us\"\n\
         levels = [{{ children = 32, parents = 1 }}, {{ children = 32, parents = {parents} }}]\n"
    );
    Platform::from_toml(&text, "fat tree").expect("the platform is valid")
}

struct Load<'p> {
    network: FlowNetwork<'p, ()>,
    random: Random,
    done: Vec<()>,
}

impl<'p> Load<'p> {
    /// Sends this many messages, and waits until they have been replaced once on average.
    fn new(platform: &'p Platform, flows: usize) -> Self {
        let parameters = NetworkParameters::preset(Preset::Smpi);
        let network = FlowNetwork::new(platform, &parameters);
        let mut load = Self { network, random: Random(1), done: Vec::new() };
        for _ in 0..flows {
            load.send();
        }
        load.run(flows);
        load
    }

    fn send(&mut self) {
        let now = self.network.now();
        let (src, offset) = (self.random.below(1024), 1 + self.random.below(1023));
        let host = |number: u64| HostId::new((number % 1024) as u32);
        let size = Bytes::new(10_000 + self.random.below(1_000_000));
        self.network
            .send(Message::new(now, host(src), host(src + offset), size, ()))
            .expect("all hosts are joined");
    }

    /// Runs until this many messages have arrived.
    fn run(&mut self, arrivals: usize) -> SimTime {
        let mut left = arrivals;
        while left > 0 {
            self.network.next_event();
            self.network.advance(&mut self.done);
            for _ in 0..std::mem::take(&mut self.done).len() {
                self.send();
                left = left.saturating_sub(1);
            }
        }
        self.network.now()
    }
}

const FLOWS: [usize; 5] = [64, 256, 1024, 4096, 16384];

/// Messages that arrive in one sample.
const ARRIVALS: usize = 500;

fn churn(bencher: Bencher<'_, '_>, parents: u32, flows: usize) {
    let platform = fat_tree(parents);
    // A test run needs no steady state.
    let testing = std::env::args().any(|argument| argument == "--test");
    let mut load = Load::new(&platform, if testing { 64 } else { flows });
    bencher.counter(ItemsCount::new(ARRIVALS)).bench_local(|| load.run(ARRIVALS));
}

#[divan::bench(args = FLOWS, sample_count = 5, sample_size = 1)]
fn fat_tree_1_to_1(bencher: Bencher<'_, '_>, flows: usize) {
    churn(bencher, 32, flows);
}

#[divan::bench(args = FLOWS, sample_count = 5, sample_size = 1)]
fn fat_tree_4_to_1(bencher: Bencher<'_, '_>, flows: usize) {
    churn(bencher, 8, flows);
}
