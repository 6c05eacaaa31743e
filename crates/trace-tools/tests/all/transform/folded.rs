//! Programs that are transformed in their folded form, action by action where iterations differ, and always to the same program.

use trace_mmap::{Info, Trace};

use super::{changed, refusal, text, written_folded};

fn records(trace: &Trace) -> u64 {
    Info::of(trace).expect("small sums").storage.expect("an archive").records
}

/// Two ranks that send planes of a sweep to each other, 21 in each of 40 steps, and faces after every sweep, with a barrier after every
/// fourth step; a rank computes the same in all steps.
fn sweeps() -> String {
    let step = |rank: u32, step: u32| {
        let peer = 1 - rank;
        let plane = |bytes: u32| {
            format!(
                "{rank} location plane.c 3\n{rank} irecv {peer} 1 {bytes}\n{rank} compute {}\n{rank} send {peer} 1 {bytes}\n\
                 {rank} wait {peer} {rank} 1\n",
                3 + rank
            )
        };
        let barrier = if step % 4 == 3 { format!("{rank} barrier\n") } else { String::new() };
        format!(
            "{rank} location step 0\n{}{rank} location face 0\n{rank} isend {peer} 4 900\n{rank} recv {peer} 4 900\n{rank} compute 7\n{rank} wait {rank} {peer} 4\n\
             {rank} irecv {peer} 2 50\n{rank} irecv {peer} 3 60\n{rank} isend {peer} 2 50\n{rank} isend {peer} 3 60\n{rank} compute 9\n\
             {rank} waitall\n{barrier}",
            plane(40).repeat(21)
        )
    };
    let rank = |rank: u32| {
        let steps: String = (0..40).map(|number| step(rank, number)).collect();
        format!("{rank} init\n{steps}{rank} allreduce 4 1\n{rank} finalize\n")
    };
    rank(0) + &rank(1)
}

#[test]
fn iterations_that_come_again_are_transformed_once() {
    let program = sweeps();
    for (keys, most) in [
        // 21 planes and 40 steps, so that pairs of planes go from one sweep to the next.
        (&["kind='aggregate'\ncount=2\ntag=1"][..], 300),
        (&["kind='aggregate'\ncount=3\ntag=1"], 400),
        (&["kind='aggregate'\ntag='2-3'"], 150),
        (&["kind='split'\nparts=3"], 300),
        (&["kind='compress'\nfactor=0.5\ncompress=2\nexpand=1"], 200),
        (&["kind='overlap'\nearly=2\nlate=1"], 300),
        (&["kind='overlap'\nearly=2\nlate='place'\nregion='face'"], 300),
        (&["kind='remove'"], 150),
        (&["kind='remove'\ncall='allreduce'"], 150),
        (&["kind='nonblocking'\ncall='*'\nlate=2"], 200),
        (&["kind='eliminate'\nregion='face'\niterations='10-19'"], 300),
        (&["kind='scale'\nfactor=2\nregion='face'\niterations='5-'"], 200),
        (&["kind='mode'\nmode='synchronous'\nsite='plane.c:*'\niterations='100-200'"], 400),
        (&["kind='keep'\nregion='step'\niterations='4-11'"], 200),
        (&["kind='split'\nparts=2\ntag=1", "kind='remove'", "kind='overlap'\nlate=2"], 500),
    ] {
        let (trace, written) = written_folded(&program, keys).expect("it fits");
        assert!(text(&written) == changed(&program, keys), "{keys:?}");
        assert!(records(&trace) < 120, "{}", records(&trace));
        assert!(records(&written) <= most, "{keys:?}: {} of {}", records(&written), records(&trace));
    }
}

/// The same refusals, with the same places, as in programs that are read action by action.
#[test]
fn folded_programs_are_refused_at_the_same_place() {
    let round = |rank: u32| {
        let peer = 1 - rank;
        format!(
            "{rank} compute 5\n{rank} sendRecv 7 {peer} 7 {peer} 6 6\n{rank} location a 0\n{rank} barrier\n"
        )
    };
    let program: String = (0..2).map(|rank| format!("{rank} init\n{}", round(rank).repeat(50))).collect();
    for keys in [
        "kind='aggregate'",
        "kind='mode'\nmode='ready'",
        "kind='remove'\nregion='a'\niterations='30'\nranks=1",
    ] {
        let expected = refusal(&program, &[keys]);
        let found = written_folded(&program, &[keys]).map(|_| ()).expect_err("it is refused").to_string();
        assert_eq!(found, expected);
    }
}
