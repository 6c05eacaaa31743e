//! Random programs with calls, as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;

pub(crate) const RANKS: u32 = 3;

/// A joint step of some ranks, in which every message is received.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A message of some mode, posted with or without names, received from a named or any source.
    Message {
        from: u32,
        to: u32,
        tag: u32,
        comm: u8,
        mode: usize,
        send: Posting,
        recv: Posting,
        from_any: bool,
    },
    /// Ranks complete some of their requests.
    Complete {
        rank: u32,
        form: u8,
        picks: u8,
    },
    /// Persistent requests of sender and receiver, started several times.
    Persistent {
        from: u32,
        to: u32,
        starts: u8,
        frees_early: bool,
    },
    /// A receive that is posted and cancelled.
    Cancel {
        rank: u32,
        name: bool,
    },
    /// A collective operation.
    Collective {
        kind: usize,
        comm: u8,
        does_not_block: bool,
    },
    /// Makes a communicator, uses it and frees it.
    Communicator {
        members: u8,
    },
    Exchange {
        tags: u32,
    },
    /// A shift along the ranks of a communicator, the ends of which have `MPI_PROC_NULL` beside them.
    Shift {
        comm: u8,
        call: usize,
    },
    Neighbors {
        does_not_block: bool,
    },
    Compute {
        rank: u32,
    },
    WaitAll {
        rank: u32,
    },
    Loop {
        count: u8,
        body: Vec<Step>,
    },
}

/// Form of posting a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posting {
    Blocking,
    Unnamed,
    Named,
}

fn posting() -> impl Strategy<Value = Posting> {
    prop_oneof![1 => Just(Posting::Blocking), 1 => Just(Posting::Unnamed), 3 => Just(Posting::Named)]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let rank = || 0..RANKS;
    let message = (rank(), rank(), 0..3_u32, 0..3_u8, 0..4_usize, posting(), posting(), any::<bool>());
    let leaf = prop_oneof![
        8 => message.prop_map(|(from, to, tag, comm, mode, send, recv, from_any)| {
            Step::Message { from, to, tag, comm, mode, send, recv, from_any: from_any && comm == 2 }
        }),
        6 => (rank(), 0..9_u8, any::<u8>()).prop_map(|(rank, form, picks)| Step::Complete { rank, form, picks }),
        1 => (rank(), rank(), 0..3_u8, any::<bool>())
            .prop_map(|(from, to, starts, frees_early)| Step::Persistent { from, to, starts, frees_early }),
        1 => (rank(), any::<bool>()).prop_map(|(rank, name)| Step::Cancel { rank, name }),
        2 => (0..4_usize, 0..3_u8, any::<bool>())
            .prop_map(|(kind, comm, does_not_block)| Step::Collective { kind, comm, does_not_block }),
        1 => (1..8_u8).prop_map(|members| Step::Communicator { members }),
        1 => (0..3_u32).prop_map(|tags| Step::Exchange { tags }),
        2 => (0..3_u8, 0..3_usize).prop_map(|(comm, call)| Step::Shift { comm, call }),
        1 => any::<bool>().prop_map(|does_not_block| Step::Neighbors { does_not_block }),
        1 => rank().prop_map(|rank| Step::Compute { rank }),
        1 => rank().prop_map(|rank| Step::WaitAll { rank }),
    ];
    leaf.prop_recursive(3, 40, 6, |step| {
        (0..6_u8, prop::collection::vec(step, 0..6)).prop_map(|(count, body)| Step::Loop { count, body })
    })
}

/// Writes programs of all ranks. The world is communicator 0; 1 has its ranks in reverse, 2 is a duplicate.
pub(crate) fn text(steps: &[Step]) -> String {
    let mut writer = Writer::default();
    for rank in 0..RANKS {
        writer.line(rank, "init");
        writer.line(rank, "comm_split new=1 members=2-0:-1");
        writer.line(rank, "comm_dup comm=1 new=2");
    }
    steps.iter().for_each(|step| writer.step(step));
    writer.text
}

#[derive(Default)]
struct Writer {
    text: String,
    /// Request names in use, by rank.
    taken: [BTreeMap<u32, ()>; RANKS as usize],
    communicators: u32,
}

impl Writer {
    fn line(&mut self, rank: u32, line: &str) {
        writeln!(self.text, "{rank} {line}").expect("a string takes all");
    }

    /// Allocates a free name. Names differ from slots.
    fn name(&mut self, rank: u32) -> u32 {
        let taken = &mut self.taken[rank as usize];
        let name = (100..).find(|name| !taken.contains_key(name)).expect("few are taken");
        taken.insert(name, ());
        name
    }

    fn free(&mut self, rank: u32, name: u32) {
        self.taken[rank as usize].remove(&name);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Message { from, to, tag, comm, mode, send, recv, from_any } => {
                let letter = ["", "s", "b", "r"][mode];
                let fields = format!("{to} {tag} 8 6 comm={comm}");
                self.post(from, send, &format!("{letter}send"), &format!("i{letter}send"), &fields);
                let source = if from_any {
                    format!("-555 -444 8 6 comm={comm} source={from}")
                } else {
                    format!("{from} {tag} 8 6 comm={comm}")
                };
                self.post(to, recv, "recv", "irecv", &source);
            }
            Step::Complete { rank, form, picks } => self.complete(rank, form, picks),
            Step::Persistent { from, to, starts, frees_early } => {
                let (send, recv) = (self.name(from), self.name(to));
                self.line(from, &format!("ssend_init {to} 9 8 6 req={send}"));
                self.line(to, &format!("recv_init {from} 9 8 6 req={recv}"));
                for start in 0..starts {
                    self.line(from, &format!("start req={send}"));
                    self.line(to, &format!("startall req={recv}"));
                    if frees_early && start + 1 == starts {
                        break;
                    }
                    self.line(to, &format!("waitany req={recv} done={recv}"));
                    self.line(from, &format!("wait req={send}"));
                }
                self.line(from, &format!("request_free req={send}"));
                self.line(to, &format!("request_free req={recv}"));
                self.free(from, send);
                self.free(to, recv);
            }
            Step::Cancel { rank, name } => {
                let peer = (rank + 1) % RANKS;
                let request = self.name(rank);
                let source = if name { peer.to_string() } else { "-555".to_owned() };
                let comm = if name { 0 } else { 2 };
                self.line(rank, &format!("irecv {source} 77 8 6 req={request} comm={comm}"));
                self.line(rank, &format!("iprobe {source} 77 comm={comm} done=no"));
                self.line(rank, &format!("cancel req={request} done=yes"));
                self.line(rank, &format!("wait req={request}"));
                self.free(rank, request);
            }
            Step::Collective { kind, comm, does_not_block } => {
                for rank in 0..RANKS {
                    // Each rank sends as much to a rank of the communicator as that one receives from each.
                    let received = if comm == 0 { rank } else { RANKS - 1 - rank } + 1;
                    let fields = [
                        "barrier".to_owned(),
                        "bcast 8 2 6".to_owned(),
                        "reducescatter 1 2 3 0 6".to_owned(),
                        format!("alltoallv 6 1 2 3 {} {received} {received} {received} 6 6", 3 * received),
                    ];
                    let fields = &fields[kind];
                    if does_not_block {
                        let name = self.name(rank);
                        self.line(rank, &format!("i{fields} comm={comm} req={name}"));
                    } else {
                        self.line(rank, &format!("{fields} comm={comm}"));
                    }
                }
            }
            Step::Communicator { members } => {
                let id = 10 + self.communicators;
                self.communicators += 1;
                let inside: Vec<u32> = (0..RANKS).filter(|rank| members & 1 << rank != 0).collect();
                let list: Vec<String> = inside.iter().map(u32::to_string).collect();
                for rank in 0..RANKS {
                    match inside.contains(&rank) {
                        true => self
                            .line(rank, &format!("comm_create comm=1 new={id} members={}", list.join(","))),
                        false => self.line(rank, "comm_create comm=1"),
                    }
                }
                for rank in inside {
                    self.line(rank, &format!("allreduce 4 100 0 comm={id}"));
                    self.line(rank, &format!("comm_free comm={id}"));
                }
            }
            Step::Exchange { tags } => {
                for rank in 0..RANKS {
                    let (to, from) = ((rank + 1) % RANKS, (rank + 2) % RANKS);
                    let named =
                        if tags == 0 { String::new() } else { format!(" stag={tags} rtag=-444 comm=1") };
                    self.line(rank, &format!("sendRecv 8 {to} 9 {from} 6 6{named}"));
                    self.line(rank, &format!("sendRecv_replace 8 {to} {from} 6 stag=50 rtag=50"));
                }
            }
            Step::Shift { comm, call } => {
                for rank in 0..RANKS {
                    let to = if rank + 1 < RANKS { i64::from(rank) + 1 } else { -666 };
                    let from = if rank > 0 { i64::from(rank) - 1 } else { -666 };
                    let line = [
                        format!("sendRecv 8 {to} 9 {from} 6 6 stag=60 rtag=60 comm={comm}"),
                        format!("sendRecv_replace 8 {to} {from} 6 stag=61 rtag=61 comm={comm}"),
                        format!("send {to} 62 8 6 comm={comm}\n{rank} recv {from} 62 8 6 comm={comm}"),
                    ];
                    self.line(rank, &line[call]);
                }
            }
            Step::Neighbors { does_not_block } => {
                for rank in 0..RANKS {
                    // The ranks of the communicator are in reverse.
                    let (next, before) = ((RANKS - rank) % RANKS, (RANKS + 1 - rank) % RANKS);
                    let fields = format!(
                        "alltoallv 6 6 comm=1 to={next},{before} from={before},{next} scounts=1,2 rcounts=1,2"
                    );
                    if does_not_block {
                        let name = self.name(rank);
                        self.line(rank, &format!("ineighbor_{fields} req={name}"));
                    } else {
                        self.line(rank, &format!("neighbor_{fields}"));
                    }
                }
            }
            Step::Compute { rank } => self.line(rank, "compute 1000"),
            Step::WaitAll { rank } => {
                self.line(rank, "waitall");
                self.taken[rank as usize].clear();
            }
            Step::Loop { count, ref body } => {
                for _ in 0..count {
                    body.iter().for_each(|step| self.step(step));
                }
            }
        }
    }

    fn post(&mut self, rank: u32, posting: Posting, blocking: &str, posts: &str, fields: &str) {
        match posting {
            Posting::Blocking => self.line(rank, &format!("{blocking} {fields}")),
            Posting::Unnamed => self.line(rank, &format!("{posts} {fields}")),
            Posting::Named => {
                let name = self.name(rank);
                self.line(rank, &format!("{posts} {fields} req={name}"));
            }
        }
    }

    /// Completes those requests of a rank that are picked.
    fn complete(&mut self, rank: u32, form: u8, picks: u8) {
        let taken: Vec<u32> = self.taken[rank as usize].keys().copied().collect();
        let picked: Vec<u32> = taken
            .iter()
            .enumerate()
            .filter(|(index, _)| picks >> (index % 8) & 1 == 1)
            .map(|(_, name)| *name)
            .collect();
        let list = |names: &[u32]| match names {
            [] => "-".to_owned(),
            names => names.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        };
        let all = list(&taken);
        let first = picked.first().copied();
        let one = first.map_or("-".to_owned(), |name| name.to_string());
        let (line, done) = match (form, first) {
            (0, Some(name)) => (format!("wait req={name}"), vec![name]),
            (1, _) => (format!("waitall req={}", list(&picked)), picked.clone()),
            (2, Some(name)) => (format!("waitany req={all} done={one}"), vec![name]),
            (3, Some(_)) => (format!("waitsome req={all} done={}", list(&picked)), picked.clone()),
            (4, Some(name)) if picks > 127 => (format!("test req={name} done=-"), vec![]),
            (4, Some(name)) => (format!("test req={name} done={name}"), vec![name]),
            (5, _) if picks > 127 => (format!("testall req={all} done=-"), vec![]),
            (5, _) => (format!("testall req={} done=all", list(&picked)), picked.clone()),
            (6, _) => (format!("testany req={all} done={one}"), first.into_iter().collect()),
            (7, _) => (format!("testsome req={all} done={}", list(&picked)), picked.clone()),
            (8, Some(name)) if picks > 170 => (format!("request_get_status req={name} done=yes"), vec![]),
            (8, Some(name)) if picks > 85 => (format!("request_get_status req={name} done=no"), vec![]),
            (8, Some(name)) => (format!("test req={name}"), vec![]),
            _ => return,
        };
        self.line(rank, &line);
        done.into_iter().for_each(|name| self.free(rank, name));
    }
}
