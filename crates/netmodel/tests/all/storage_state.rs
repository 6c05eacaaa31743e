//! The state of clients and I/O servers: it is saved, it recurs, and what lies between can be repeated.

use std::collections::BTreeMap;

use netmodel::storage::{
    Client, Consequences, FileOperation, FileRequest, FileServers, Packet, ServerMessage, ServerUsage,
};
use netmodel::{FileSystemId, HostId, Platform};
use pdes_core::{LpId, Observation, SimDuration, SimTime, State, StateVisitor, load_state, save_state};
use proptest::prelude::*;

const HOSTS: u32 = 6;
/// Length of a period [ps]: all operations of one end long before.
const PERIOD: u64 = 1_000_000_000_000;

/// Two file systems, with all that they can have, on all kinds of devices.
fn platform() -> Platform {
    let text = "topology = { kind = 'cluster', hosts = 6, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }\n\
        [[file_system]]\ndirectory = '/a'\nservers = ['node-[3-5]']\nstripe = '64kB'\nthreads = 2\nscheduler = 'merging'\n\
        device = { kind = 'ssd', read = '400MBps', write = '200MBps', write_cache = '300kB' }\n\
        cache = { bytes = '1MB', dirty = '200kB', read_ahead = '64kB' }\nmetadata = { host = 'node-2', rate = 1000 }\n\
        forwarders = ['node-1']\nlocks = true\nfiles = { '0' = '500kB' }\n\
        [[file_system]]\ndirectory = '/b'\nservers = ['node-0', 'node-1']\nstripe = '32kB'\nscheduler = 'by-offset'\n\
        device = { kind = 'hard-disk', bandwidth = '200MBps', average_seek = '1ms', track_seek = '100us', rotations_per_minute = 7200 }\n";
    Platform::from_toml(text, "files.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// File systems whose messages take a microsecond, and a picosecond more for each byte.
struct Machine<'a> {
    servers: FileServers<'a, u32>,
    /// Messages under way, by their arrival and their order.
    messages: BTreeMap<(SimTime, u64), (Client, Packet)>,
    sent: u64,
    now: SimTime,
}

impl State for Machine<'_> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { servers, messages, sent, now } = self;
        servers.visit(visitor);
        if !visitor.saves_whole(messages) {
            let visited = std::mem::take(messages).into_iter().map(|((mut at, order), message)| {
                at.visit(visitor);
                visitor.compare(&message);
                ((at, order), message)
            });
            *messages = visited.collect();
        }
        visitor.saved(sent);
        now.visit(visitor);
    }
}

/// An operation: when in a period [ps], host, file system, file, operation, place and size.
type Operation = (u64, u32, u32, u32, FileOperation, u64, u64);

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    use FileOperation::{Open, Read, ReadExisting, Sync, Write};
    let operation = prop::sample::select(vec![Read, Write, Write, ReadExisting, Open, Sync]);
    let place = (0_u64..500_000, 1_u64..300_000);
    let one = (0_u64..20_000_000_000, 0..HOSTS, 0_u32..2, 0_u32..3, operation, place);
    let one = one.prop_map(|(at, host, system, file, operation, (offset, bytes))| {
        (at, host, system, file, operation, offset, bytes)
    });
    prop::collection::vec(one, 1..25)
}

impl<'a> Machine<'a> {
    fn new(platform: &'a Platform) -> Self {
        let number = |name: &str| name.parse().unwrap();
        let mut servers = FileServers::new(platform.storage(), |_| true, number, BTreeMap::new());
        servers.allow_reads_beyond_the_end();
        Self { servers, messages: BTreeMap::new(), sent: 0, now: SimTime::ZERO }
    }

    fn submit(&mut self, begin: SimTime, operations: &[Operation]) {
        for (tag, &(at, host, system, file, operation, offset, bytes)) in (0..).zip(operations) {
            let client = Client { lp: LpId::new(host), host: HostId::new(host) };
            let system = FileSystemId::new(system);
            let request = FileRequest { system, client, file, operation, offset, bytes };
            self.servers.submit(begin + SimDuration::from_picos(at), request, tag);
        }
    }

    fn next_event(&mut self) -> Option<SimTime> {
        let arrival = self.messages.first_key_value().map(|((at, _), _)| *at);
        [arrival, self.servers.next_event()].into_iter().flatten().min()
    }

    /// Advances to the next event; returns the operations that end.
    fn advance(&mut self) -> Vec<u32> {
        self.now = self.next_event().expect("something happens");
        while let Some(first) = self.messages.first_entry()
            && first.key().0 <= self.now
        {
            let (client, packet) = first.remove();
            self.servers.arrived(self.now, client, packet);
        }
        let mut found = Consequences::default();
        self.servers.advance(self.now, &mut found);
        assert!(found.failed.is_empty());
        for ServerMessage { from: _, to: _, bytes, order: _, client, packet } in found.messages {
            let at = self.now + SimDuration::from_picos(1_000_000 + bytes.get());
            self.messages.insert((at, self.sent), (client, packet));
            self.sent += 1;
        }
        found.ended
    }

    /// Runs until an instant; returns what ends, and when after the present.
    fn run(&mut self, end: SimTime) -> Vec<(SimDuration, Vec<u32>)> {
        let (begin, mut ended) = (self.now, Vec::new());
        while self.next_event().is_some_and(|at| at < end) {
            let tags = self.advance();
            ended.push((self.now - begin, tags));
        }
        self.now = end;
        ended
    }

    fn usage(&self) -> Vec<ServerUsage> {
        self.servers.usage().map(|(.., usage)| usage.clone()).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_loaded_state_has_the_same_future(
        operations in operations(),
        events in 0_usize..300,
        forged in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 20),
    ) {
        let platform = platform();
        let mut saved = Machine::new(&platform);
        saved.submit(SimTime::ZERO, &operations);
        (0..events).for_each(|_| drop(saved.next_event().map(|_| saved.advance())));
        let bytes = save_state(&mut saved).unwrap();
        let mut loaded = Machine::new(&platform);
        load_state(&mut loaded, &bytes).unwrap();
        prop_assert!(load_state(&mut Machine::new(&platform), &bytes[1..]).is_err());
        prop_assert_eq!(&save_state(&mut loaded).unwrap(), &bytes);
        let now = saved.now;
        prop_assert!(Observation::of(now, &mut loaded).equals(&Observation::of(now, &mut saved)));
        let end = SimTime::from_picos(PERIOD);
        prop_assert_eq!(loaded.run(end), saved.run(end));
        prop_assert_eq!(loaded.usage(), saved.usage());
        for (place, byte) in forged {
            let (mut machine, mut bytes) = (Machine::new(&platform), bytes.clone());
            let place = place.index(bytes.len());
            bytes[place] = byte;
            // What is taken goes on without a panic.
            if load_state(&mut machine, &bytes).is_ok() {
                (0..500).for_each(|_| drop(machine.next_event().map(|_| machine.advance())));
            }
        }
    }

    /// A program that does the same in each period comes to a state that recurs, also in the midst of operations. Then periods that are
    /// repeated are like those that are simulated.
    #[test]
    fn repetitions_are_what_happens_again(operations in operations(), middle in 0_u64..40_000_000_000, times in 1_u64..5) {
        let platform = platform();
        let mut machine = Machine::new(&platform);
        let begin = |period: u64| SimTime::from_picos(period * PERIOD);
        let cut = |period: u64| SimTime::from_picos(period * PERIOD + middle);
        let mut known: Vec<Observation> = Vec::new();
        // Numbers of locks may take some periods to recur.
        let recurs = (0..40_u64).find_map(|period| {
            machine.submit(begin(period), &operations);
            machine.run(cut(period));
            let state = Observation::of(cut(period), &mut machine);
            let before = known.iter().rposition(|before| before.equals(&state));
            known.push(state);
            Some((period, period - before? as u64))
        });
        let (mut now, length) = recurs.expect("the state recurs");
        let before = Observation::of(cut(now), &mut machine);
        machine.servers.watch_period(cut(now), SimDuration::from_picos(length * PERIOD), times);
        let go_on = |machine: &mut Machine<'_>, now: &mut u64, periods: u64| {
            let ended = (0..periods).map(|_| {
                *now += 1;
                machine.submit(begin(*now), &operations);
                machine.run(cut(*now))
            });
            ended.collect::<Vec<_>>()
        };
        go_on(&mut machine, &mut now, length);
        let state = Observation::of(cut(now), &mut machine);
        prop_assert!(state.equals(&before));

        let mut repeated = Machine::new(&platform);
        load_state(&mut repeated, &save_state(&mut machine).unwrap()).unwrap();
        std::mem::swap(&mut repeated, &mut machine);
        let (mut simulated, mut later) = (machine, now + times * length);
        repeated.servers.repeat_loads(cut(now));
        let time = SimDuration::from_picos(times * length * PERIOD);
        state.repetition(&before, times).unwrap().repeat(time, &mut repeated);
        go_on(&mut simulated, &mut now, times * length);
        let same = Observation::of(cut(later), &mut repeated);
        prop_assert!(same.equals(&state));
        prop_assert!(Observation::of(cut(now), &mut simulated).equals(&same));
        prop_assert_eq!(repeated.usage(), simulated.usage());
        prop_assert_eq!(go_on(&mut repeated, &mut later, 2), go_on(&mut simulated, &mut now, 2));
        prop_assert_eq!(repeated.usage(), simulated.usage());
    }
}
