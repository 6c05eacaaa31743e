//! Cost of a flow in the epoch model, by the number of hosts at a constant load of each: random messages on fat
//! trees, one per host, each of which is followed by another one when it arrives. Nine of ten stay in their pod.

#[path = "shared/random.rs"]
mod random;

use divan::Bencher;
use divan::counter::ItemsCount;
use netmodel::{EpochNetwork, HostId, Message, NetworkModel, NetworkParameters, Platform, Preset, Regions};
use pdes_core::{Bytes, SimTime};
use random::Random;

fn main() {
    divan::main();
}

/// Pods of 256 hosts.
const POD: u64 = 256;

fn fat_tree(pods: u32) -> Platform {
    let text = format!(
        "[topology]\nkind = \"fat_tree\"\nspeed = \"10Gf\"\nbandwidth = \"12.5GBps\"\nlatency = \"500ns\"\n\
         levels = [{{ children = 16, parents = 1 }}, {{ children = 16, parents = 16 }}, {{ children = {pods}, parents = 4 }}]\n"
    );
    Platform::from_toml(&text, "fat tree").expect("the platform is valid")
}

struct Load<'p> {
    network: EpochNetwork<'p, ()>,
    hosts: u64,
    random: Random,
    done: Vec<()>,
}

impl<'p> Load<'p> {
    /// Sends a message for each host, and waits until they have been replaced once on average.
    fn new(platform: &'p Platform) -> Self {
        let parameters = NetworkParameters::preset(Preset::Raw);
        let regions = Regions::natural(platform);
        let epoch = regions.lookahead(platform, &parameters).expect("there are several regions");
        let network = EpochNetwork::new(platform, &parameters, regions, epoch).expect("the epoch is right");
        let hosts = platform.hosts().len() as u64;
        let mut load = Self { network, hosts, random: Random(1), done: Vec::new() };
        (0..hosts).for_each(|_| load.send());
        load.run(hosts);
        load
    }

    fn send(&mut self) {
        let now = self.network.now();
        let src = self.random.below(self.hosts);
        let dst = match self.random.below(10) {
            0 => (src + 1 + self.random.below(self.hosts - 1)) % self.hosts,
            _ => src / POD * POD + (src + 1 + self.random.below(POD - 1)) % POD,
        };
        let [src, dst] = [src, dst].map(|host| HostId::new(host as u32));
        let size = Bytes::new(10_000 + self.random.below(100_000));
        self.network.send(Message::new(now, src, dst, size, ())).expect("all hosts are joined");
    }

    /// Runs until this many messages have arrived.
    fn run(&mut self, arrivals: u64) -> SimTime {
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

#[divan::bench(args = [4, 16, 64], sample_count = 3, sample_size = 1)]
fn a_flow_for_each_host(bencher: Bencher<'_, '_>, pods: u32) {
    // A test run needs no size.
    let testing = std::env::args().any(|argument| argument == "--test");
    let platform = fat_tree(if testing { 2 } else { pods });
    let mut load = Load::new(&platform);
    let arrivals = load.hosts;
    bencher.counter(ItemsCount::new(arrivals)).bench_local(|| load.run(arrivals));
}
