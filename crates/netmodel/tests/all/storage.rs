//! Storage devices: their equations, the seam through which they come, and their descriptions.

use std::collections::BTreeMap;

use netmodel::storage::AccessId;
use netmodel::{Access, AccessHistory, Device, DeviceId, Devices, Direction, HostId, Platform, StoragePlace};
use pdes_core::{ForeignState, SimDuration, SimTime, State, load_state, save_state};

use crate::support::xml;

const READ: Direction = Direction::Read;
const WRITE: Direction = Direction::Write;

fn access(direction: Direction, bytes: u64) -> Access {
    Access { file: 0, direction, offset: 0, bytes }
}

fn at(seconds: f64) -> SimTime {
    SimTime::ZERO + SimDuration::try_from_secs_f64(seconds).unwrap()
}

/// Returns a host with one device.
pub(crate) fn with_device(parameters: &str) -> Platform {
    let text = format!(
        "topology = {{ kind = 'cluster', hosts = 1, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }}\n\
         storage = [{{ directory = '/scratch', {parameters} }}]"
    );
    Platform::from_toml(&text, "disk.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// Runs accesses `(begin in seconds, device, access)`; returns the end of each [s].
fn ends<T: Copy + Ord>(mut devices: Devices<T>, accesses: &[(f64, u32, Access, T)]) -> BTreeMap<T, f64> {
    for &(begin, device, access, tag) in accesses {
        devices.submit(at(begin), DeviceId::new(device), access, tag);
    }
    let (mut all, mut ended) = (BTreeMap::new(), Vec::new());
    while let Some(now) = devices.next_event() {
        devices.advance(now, &mut ended);
        all.extend(ended.drain(..).map(|tag| (tag, now.as_picos() as f64 / 1e12)));
    }
    all
}

fn assert_ends(devices: Devices<u32>, accesses: &[(f64, Access)], expected: &[f64]) {
    let accesses: Vec<_> =
        (0..).zip(accesses).map(|(tag, &(begin, access))| (begin, 0, access, tag)).collect();
    for (tag, end) in ends(devices, &accesses) {
        let expected = expected[tag as usize];
        assert!((end - expected).abs() < 2e-12, "access {tag} ends at {end}, expected {expected}");
    }
}

/// A device has 100 MB/s for reading, 40 for writing and 100 for both: a write takes 40 and a read beside it 60. By hand.
#[test]
fn accesses_share_the_bandwidths_of_a_disk() {
    let disk =
        |both: &str| with_device(&format!("read = '100MBps', write = '40MBps'{both}")).storage().idle();
    assert_ends(disk(""), &[(0.0, access(READ, 90_000_000)), (0.0, access(WRITE, 20_000_000))], &[1.1, 0.5]);
    let both = [(0.0, access(READ, 90_000_000)), (0.0, access(WRITE, 15_000_000))];
    assert_ends(disk(", both = '60MBps'"), &both, &[1.75, 0.5]);
    assert_ends(disk(", both = '140MBps'"), &both, &[0.9, 0.375]);
    // Three reads, of which the last two begin later.
    let reads = [(0.0, 50_000_000), (0.25, 25_000_000), (2.0, 10_000_000)];
    assert_ends(disk(""), &reads.map(|(begin, bytes)| (begin, access(READ, bytes))), &[0.75, 0.75, 2.1]);
    assert_ends(disk(""), &[(0.5, access(READ, 0))], &[0.5]);
    // A second access costs a tenth of the bandwidths, a third and more a fifth: 100, then 90, then 80 MB/s for all.
    let reads = [(0.0, 50_000_000), (0.2, 18_000_000), (0.3, 30_000_000), (3.0, 10_000_000)];
    let degraded = disk(", efficiency = [1, 0.9, 0.8]");
    let ends = [0.3 + 13.5 * 3.0 / 80.0 + 12.0 * 2.0 / 90.0, 0.3 + 13.5 * 3.0 / 80.0];
    let left = 30.0 - 13.5 - 12.0;
    assert_ends(
        degraded,
        &reads.map(|(begin, bytes)| (begin, access(READ, bytes))),
        &[ends[0], ends[1], ends[0] + left / 100.0, 3.1],
    );
}

/// A hard disk of 100 MB/s, 7200 rotations per minute, 8 ms to anywhere and 1 ms to the next track; half a rotation is 1/240 s.
#[test]
fn a_hard_disk_moves_its_arm() {
    let platform = with_device(
        "kind = 'hard-disk', bandwidth = '100MBps', average_seek = '8ms', track_seek = '1ms', rotations_per_minute = 7200, near_bytes = 1_000_000",
    );
    let part = |file, offset| Access { file, direction: READ, offset, bytes: 1_000_000 };
    let places =
        [part(1, 0), part(1, 1_000_000), part(1, 2_500_000), part(1, 90_000_000), part(2, 91_000_000)];
    let (far, near, data) = (0.008 + 1.0 / 240.0, 0.001 + 1.0 / 240.0, 0.01);
    let durations = [far + data, data, near + data, far + data, far + data];
    let expected = durations.iter().scan(0.0, |sum, duration| {
        *sum += duration;
        Some(*sum)
    });
    let accesses = places.map(|access| (0.0, access));
    assert_ends(platform.storage().idle(), &accesses, &expected.collect::<Vec<_>>());
    let alone = platform.storage().duration_alone(DeviceId::new(0), &places[3]);
    assert_eq!(alone, SimDuration::try_from_secs_f64(far + data));
}

/// A solid-state disk of 4 channels of 100 MB/s each, a latency of 1 ms and pages of 100 kB.
#[test]
fn a_solid_state_disk_has_channels() {
    let ssd = |more: &str| {
        with_device(&format!(
            "kind = 'ssd', read = '400MBps', write = '200MBps', latency = '1ms', channels = 4, page = '100kB'{more}"
        ))
    };
    let platform = ssd("");
    // One page takes a channel; five wait for the first free one; four pages take all channels.
    let small = [(0.0, access(READ, 100_000)); 5];
    assert_ends(platform.storage().idle(), &small, &[0.002, 0.002, 0.002, 0.002, 0.004]);
    assert_ends(platform.storage().idle(), &[(0.0, access(READ, 4_000_000))], &[0.011]);
    // Half the rate for writing: 2 pages, each 100 kB at 50 MB/s; two such writes fit side by side, the third waits.
    let writes = [(0.0, access(WRITE, 200_000)); 3];
    assert_ends(platform.storage().idle(), &writes, &[0.003, 0.003, 0.006]);
    // A write cache of 300 kB takes the first, not the second; after 0.5 ms the three other channels have made room for 75 kB.
    let cached = ssd(", write_cache = '300kB'");
    let writes = [(0.0, 250_000), (0.0, 100_000), (0.0005, 100_000)];
    let writes = writes.map(|(begin, bytes)| (begin, access(WRITE, bytes)));
    assert_ends(cached.storage().idle(), &writes, &[0.001, 0.003, 0.0015]);
    assert_eq!(platform.storage().idle_devices()[0].concurrency(), 4);
    let alone = |platform: &Platform, access| platform.storage().duration_alone(DeviceId::new(0), &access);
    assert_eq!(alone(&cached, access(WRITE, 300_000)), SimDuration::try_from_secs_f64(0.001));
    assert_eq!(alone(&platform, access(READ, 4_000_000)), SimDuration::try_from_secs_f64(0.011));
}

/// Ends of accesses of a client, which begins each one a while after the end of the last: of the device as it is simulated, and by the
/// history of the client.
fn one_after_the_other(platform: &Platform, accesses: &[Access], pause: SimDuration) -> [SimTime; 2] {
    let (mut devices, mut ended) = (platform.storage().idle(), Vec::new());
    let (mut simulated, mut remembered, mut history) =
        (SimTime::ZERO, SimTime::ZERO, AccessHistory::default());
    for access in accesses {
        let (device, begin) = (DeviceId::new(0), remembered + pause);
        devices.submit(simulated + pause, device, *access, ());
        while ended.is_empty() {
            simulated = devices.next_event().unwrap();
            devices.advance(simulated, &mut ended);
        }
        ended.clear();
        remembered = begin + platform.storage().duration_after(device, &mut history, begin, access).unwrap();
    }
    [simulated, remembered]
}

/// The bandwidth of the device bounds what is written, but for the size of the cache.
#[test]
fn a_write_cache_empties_through_the_channels() {
    const CACHE: u64 = 8_000_000;
    let ssd = |channels: u32| {
        with_device(&format!(
            "kind = 'ssd', read = '3GBps', write = '2GBps', channels = {channels}, write_cache = {CACHE}"
        ))
    };
    let write = |bytes| access(WRITE, bytes);
    for (channels, sizes, pause) in [
        (8, [8_000_000, 8_400_000], 0),
        (8, [8_000_000, 1_000_000], 0),
        (8, [4_000, 20_000_000], 0),
        (1, [5_000_000, 2_000_000], 0),
        (64, [310_000, 8_100_000], 0),
        (8, [8_000_000, 8_000_000], 3_000_000_000),
        (8, [8_000_000, 8_000_000], 4_000_000_000),
    ] {
        let accesses: Vec<Access> = (0..100).flat_map(|_| sizes.map(write)).collect();
        let pause = SimDuration::from_picos(pause);
        let ends = one_after_the_other(&ssd(channels), &accesses, pause);
        let [simulated, remembered] = ends.map(|end| end.as_secs_f64());
        let bound = (100 * (sizes[0] + sizes[1]) - CACHE) as f64 / 2e9;
        assert!(simulated >= bound, "{channels} {sizes:?}: {simulated} s, at least {bound} s");
        assert!((simulated - remembered).abs() < 1e-9, "{channels} {sizes:?}: {simulated} {remembered}");
    }
    // After 4 ms the cache is empty: each write takes the latency, the first after 4 ms.
    let cached = one_after_the_other(&ssd(8), &[write(CACHE); 10], SimDuration::from_picos(4_000_000_000));
    assert_eq!(cached, [at(0.041); 2]);
    // Reads go before what the cache writes, and the cache waits for them.
    let reads: Vec<Access> = (0..10).flat_map(|_| [write(CACHE), access(READ, 3_000_000)]).collect();
    let [simulated, remembered] = one_after_the_other(&ssd(8), &reads, SimDuration::ZERO);
    assert!(simulated >= at((10.0 * 8e6 - 8e6) / 2e9 + 10.0 * 1e-3));
    assert!(simulated.as_picos().abs_diff(remembered.as_picos()) < 1000);
}

/// A client that has a hard disk for itself finds its arm where it has left it.
#[test]
fn a_hard_disk_seeks_once_for_sequential_accesses() {
    let platform = with_device(
        "kind = 'hard-disk', bandwidth = '100MBps', average_seek = '8ms', track_seek = '1ms', rotations_per_minute = 7200",
    );
    let part = |file, offset| Access { file, direction: WRITE, offset, bytes: 1_000_000 };
    let sequential: Vec<Access> = (0..100).map(|number| part(1, number * 1_000_000)).collect();
    let interleaved: Vec<Access> =
        (0..100).map(|number| part(number as u32 % 2, number / 2 * 1_000_000)).collect();
    let near: Vec<Access> = (0..100).map(|number| part(1, number * 3_000_000)).collect();
    let (far, track) = (0.008 + 1.0 / 240.0, 0.001 + 1.0 / 240.0);
    for (accesses, seeks) in [(sequential, far), (interleaved, 100.0 * far), (near, far + 99.0 * track)] {
        for end in one_after_the_other(&platform, &accesses, SimDuration::ZERO) {
            assert!((end.as_secs_f64() - 1.0 - seeks).abs() < 1e-9, "{end:?}, expected {} s", 1.0 + seeks);
        }
    }
}

/// A tape: a second for each access, whatever its size, one after the other. The seam of devices: this file, and a row.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize, State)]
struct Tape {
    queue: Vec<(AccessId, SimTime)>,
}

impl Device for Tape {
    fn idle(&self) -> Box<dyn Device> {
        Box::<Self>::default()
    }

    fn duration_alone(&self, _: &Access) -> Option<SimDuration> {
        SimDuration::try_from_secs_f64(1.0)
    }

    fn begin(&mut self, now: SimTime, access: &Access, id: AccessId) {
        let begin = self.queue.last().map_or(now, |(_, end)| *end);
        self.queue.push((id, begin + self.duration_alone(access).unwrap()));
    }

    fn next_event(&self) -> Option<SimTime> {
        self.queue.first().map(|(_, end)| *end)
    }

    fn advance(&mut self, _: SimTime, ended: &mut Vec<AccessId>) {
        ended.push(self.queue.remove(0).0);
    }
}

fn tape_and_disk() -> Devices<u32> {
    let disk = with_device("read = '10MBps', write = '10MBps'").storage().idle_devices().remove(0);
    Devices::new(vec![Box::<Tape>::default(), disk])
}

fn mixed_accesses() -> Vec<(f64, u32, Access, u32)> {
    let [small, large] = [10, 15_000_000].map(|bytes| access(WRITE, bytes));
    vec![(0.5, 0, small, 1), (0.0, 0, large, 2), (0.25, 1, large, 3), (3.0, 0, small, 4)]
}

#[test]
fn a_device_is_a_file_and_a_row() {
    let ends = ends(tape_and_disk(), &mixed_accesses());
    assert_eq!(ends, BTreeMap::from([(2, 1.0), (1, 2.0), (3, 1.75), (4, 4.0)]));
}

/// Devices continue from a state at any event, and refuse any other state.
#[test]
fn devices_continue_from_a_state() {
    let mut devices = tape_and_disk();
    for (begin, device, access, tag) in mixed_accesses() {
        devices.submit(at(begin), DeviceId::new(device), access, tag);
    }
    let (mut ended, mut events) = (Vec::new(), 0);
    while let Some(now) = devices.next_event() {
        let state = save_state(&mut devices).unwrap();
        devices = tape_and_disk();
        load_state(&mut devices, &state).unwrap();
        assert_eq!(devices.next_event(), Some(now));
        assert_eq!(load_state(&mut tape_and_disk(), &state[..state.len() - 1]), Err(ForeignState));
        devices.advance(now, &mut ended);
        events += 1;
    }
    assert_eq!((ended, events), (vec![2, 3, 1, 4], 8));
}

/// Whatever is accepted ends without a panic.
#[test]
fn devices_refuse_what_is_no_state() {
    let mut devices = tape_and_disk();
    for (begin, device, access, tag) in mixed_accesses() {
        devices.submit(at(begin), DeviceId::new(device), access, tag);
    }
    devices.advance(SimTime::ZERO, &mut Vec::new());
    let state = save_state(&mut devices).unwrap();
    let mut refused = 0;
    for place in 0..state.len() {
        for byte in 0..8 {
            let (mut devices, mut forged) = (tape_and_disk(), state.clone());
            forged[place] = byte;
            match load_state(&mut devices, &forged) {
                Ok(()) => drop(ends(devices, &[])),
                Err(ForeignState) => refused += 1,
            }
        }
    }
    assert!(refused > 0);
}

#[test]
fn hosts_see_their_disks_and_those_of_others() {
    let disk = |id, directory| {
        format!(
            "<disk id=\"{id}\" read_bw=\"100MBps\" write_bw=\"40MBps\"><prop id=\"mount\" value=\"{directory}\"/></disk>"
        )
    };
    let platform = |remote: &str| {
        let hosts = format!(
            "<host id=\"a\" speed=\"1Gf\"><prop id=\"remote_disk\" value=\"{remote}\"/>{}</host><host id=\"b\" speed=\"1Gf\">{}<disk id=\"unseen\"/></host>",
            disk("d", "/"),
            disk("D", "/home")
        );
        Platform::from_xml(&xml(&hosts), "test.xml")
    };
    let found = platform("/scratch:D:b").unwrap();
    let [a, b] = [0, 1].map(HostId::new);
    let find = |host, file| {
        let place = found.find_file(host, file)?;
        let StoragePlace::Device(device) = place else { panic!("{place:?}") };
        Ok::<_, netmodel::RouteError>((device.get(), found.storage().host(device)))
    };
    assert_eq!(find(a, "/scratch/data"), Ok((1, b)));
    assert_eq!(find(a, "/data"), Ok((0, a)));
    assert_eq!(find(b, "/home/data"), Ok((1, b)));
    assert_eq!(
        find(b, "/data").unwrap_err().to_string(),
        "the host \"b\" has no storage for the file \"/data\": it sees /home"
    );
    for remote in ["/scratch:D", "/scratch:d:b", "/scratch:D:c", "/scratch:unseen:b"] {
        let error = platform(remote).unwrap_err().to_string();
        assert!(error.contains("remote_disk") && error.contains("directory:disk:host"), "{error}");
    }
}

#[test]
fn storage_in_toml_is_checked() {
    let cluster =
        "topology = { kind = 'cluster', hosts = 3, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }\n";
    let read =
        |storage: &str| Platform::from_toml(&format!("{cluster}storage = [{{ {storage} }}]"), "p.toml");
    let owner = |platform: &Platform, file| match platform.find_file(HostId::new(2), file) {
        Ok(StoragePlace::Device(device)) => platform.storage().host(device),
        other => panic!("{other:?}"),
    };
    let own = read("directory = '/tmp', read = '1GBps', write = '1GBps'").unwrap();
    assert_eq!(owner(&own, "/tmp/x"), HostId::new(2));
    let shared =
        read("directory = '/s', host = 'node-1', shared = true, read = '1GBps', write = '1GBps'").unwrap();
    assert_eq!(owner(&shared, "/s/x"), HostId::new(1));
    for (storage, message) in [
        ("directory = '/s', kind = 'tape'", "is \"tape\", expected disk, hard-disk or ssd"),
        ("directory = '/s', read = '1GBps'", "missing field `write`"),
        ("directory = '/s', read = 1e9, write = 1e9, seek = 1", "unknown field `seek`"),
        ("directory = '/s', read = 0, write = 1e9", "more than zero"),
        ("directory = '/s', read = 1e9, write = 1e9, efficiency = [1, 0]", "an efficiency of 0"),
        ("directory = '', read = 1e9, write = 1e9", "the begin of the names of files"),
        ("directory = '/s', host = 'x', read = 1e9, write = 1e9", "the name of a host"),
        (
            "directory = '/s', shared = true, read = 1e9, write = 1e9",
            "the host of a device that all hosts see",
        ),
        ("directory = '/s', kind = 'ssd', read = 1e9, write = 1e9, channels = 0", "0 channels"),
        ("directory = '/s', kind = 'ssd', read = 1e9, write = 0", "a bandwidth of 0 B/s"),
    ] {
        let error = read(storage).unwrap_err().to_string();
        assert!(error.contains(message), "{storage}: {error}");
    }
    for (storage, message) in [
        ("read = 3, write = '1GBps'", "found 3, which is 3 B/s: write the unit, as in \"3MBps\""),
        ("read = 3, write = '1GBps'", "in `read`"),
        ("kind = 'ssd', read = '1GBps', write = '1GBps', latency = 100", "found 100, which is 100 s"),
        (
            "kind = 'hard-disk', bandwidth = '1GBps', average_seek = 8, track_seek = '1ms', rotations_per_minute = 7200",
            "in `average_seek`",
        ),
    ] {
        let error = read(&format!("directory = '/s', {storage}")).unwrap_err().to_string();
        assert!(error.contains(message), "{storage}: {error}");
    }
}

/// Each host finds a directory in one place.
#[test]
fn a_directory_is_in_one_place() {
    let cluster =
        "topology = { kind = 'cluster', hosts = 3, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }\n";
    let disk = |directory: &str, more: &str| {
        format!("[[storage]]\ndirectory = '{directory}'\nread = '1GBps'\nwrite = '1GBps'\n{more}\n")
    };
    let system = |directory: &str| {
        format!(
            "[[file_system]]\ndirectory = '{directory}'\nservers = ['node-0']\ndevice = {{ read = '1GBps', write = '1GBps' }}\n"
        )
    };
    let read = |storage: &[String]| Platform::from_toml(&[cluster, &storage.concat()].concat(), "p.toml");
    let shared = "host = 'node-1'\nshared = true";
    for doubled in [
        [system("/d"), system("/d")],
        [system("/d/"), system("/d")],
        [system("/d"), disk("/d", "")],
        [disk("/d", ""), disk("/d", "host = 'node-1'")],
        [disk("/d", shared), disk("/d", "host = 'node-2'")],
    ] {
        let error = read(&doubled).unwrap_err().to_string();
        assert!(error.contains("the directory \"/d") && error.contains("expected one"), "{error}");
    }
    for different in [
        [system("/d"), system("/e")],
        [system("/d"), disk("/d/e", "")],
        [disk("/d", "host = 'node-1'"), disk("/d", "host = 'node-2'")],
    ] {
        assert!(read(&different).is_ok(), "{different:?}");
    }
}

/// An error in a file system names its field, the value found and the one expected.
#[test]
fn file_systems_in_toml_are_checked() {
    let cluster =
        "topology = { kind = 'cluster', hosts = 6, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }\n";
    let read = |system: &str| {
        let system = format!("file_system = [{{ directory = '/fs', {system} }}]");
        Platform::from_toml(&format!("{cluster}{system}"), "p.toml")
    };
    let device = "device = { read = '1GBps', write = '1GBps' }";
    let good = read(&format!(
        "servers = ['node-[2-5]'], {device}, cache = {{ bytes = '1GB' }}, metadata = {{ host = 'node-1', rate = 1000 }}, files = {{ '/fs/x' = '2GB' }}"
    ));
    let good = good.unwrap();
    let [system] = good.storage().file_systems() else { panic!("one file system") };
    assert_eq!(system.servers, [2, 3, 4, 5].map(HostId::new));
    assert_eq!((system.striping.count, system.striping.bytes, system.threads), (4, 1 << 20, 1));
    assert_eq!(
        system.cache.map(|cache| (cache.bytes, cache.dirty_bytes)),
        Some((1_000_000_000, 500_000_000))
    );
    assert_eq!(system.metadata, Some((HostId::new(1), SimDuration::try_from_secs_f64(1e-3).unwrap())));
    assert_eq!(system.files["/fs/x"], 2_000_000_000);
    assert!(matches!(good.find_file(HostId::new(0), "/fs/x"), Ok(StoragePlace::FileSystem(_))));
    for (system, message) in [
        (format!("servers = [], {device}"), "servers"),
        (format!("servers = ['node-9'], {device}"), "is \"node-9\", expected the name of a host"),
        (format!("servers = ['node-[4-7]'], {device}"), "\"node-6\""),
        ("servers = ['node-1'], device = { kind = 'tape' }".to_owned(), "expected disk, hard-disk or ssd"),
        ("servers = ['node-1'], device = { kind = 3 }".to_owned(), "the kind of device 3"),
        ("servers = ['node-1'], device = { read = 0, write = 1e9 }".to_owned(), "more than zero"),
        (format!("servers = ['node-1'], stripe = 0, {device}"), "stripe"),
        (format!("servers = ['node-1'], stripe_count = 2, {device}"), "one to the number of servers"),
        (format!("servers = ['node-1'], start = 1, {device}"), "the number of a server"),
        (format!("servers = ['node-1'], scheduler = 'random', {device}"), "in-order, by-offset or merging"),
        (format!("servers = ['node-1'], transfers = 0, {device}"), "transfers"),
        (format!("servers = ['node-1'], threads = 0, {device}"), "threads"),
        (format!("servers = ['node-1'], forwarders = ['x'], {device}"), "forwarders"),
        (
            format!("servers = ['node-1'], cache = {{ bytes = 10, dirty = 11 }}, {device}"),
            "at most the size of the cache",
        ),
        (
            format!("servers = ['node-1'], metadata = {{ host = 'node-1', rate = 0 }}, {device}"),
            "operations per second",
        ),
        (format!("servers = ['node-1'], metadata = {{ host = 'x', rate = 1 }}, {device}"), "metadata.host"),
        (format!("servers = ['node-1'], raid = 5, {device}"), "unknown field `raid`"),
    ] {
        let error = read(&system).unwrap_err().to_string();
        assert!(error.contains(message), "{system}: {error}");
    }
}
