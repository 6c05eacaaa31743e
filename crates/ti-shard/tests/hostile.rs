//! Any bytes are a shard or an error: robustness of the reader.

use proptest::prelude::*;
use ti_shard::{Action, COMPLETE_MARK, Deferred, Header, Kind, Phrase, ShardReader, TextReader, UNIT, Unit};

fn header() -> Vec<u8> {
    Header { job: "job", world: 3, rank: 2, counter: "instructions", rate: 0.0, library: "any\nlibrary" }
        .to_bytes()
}

fn read(bytes: &[u8]) -> std::io::Result<String> {
    TextReader::new(bytes).and_then(|reader| {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut { reader }, &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    })
}

fn lines(bytes: &[u8]) -> Vec<String> {
    read(bytes).unwrap().lines().skip(1).map(str::to_owned).collect()
}

fn define(index: u32, phrase: &Phrase) -> Vec<u8> {
    let amount = phrase.bytes().len() as u64;
    let unit = Unit { index, amount, ..Unit::of_kind(Kind::Phrase) };
    [unit.to_bytes(false).to_vec(), phrase.padded()].concat()
}

fn with_later(unit: Unit, nanos: Option<u64>, outcome: u64) -> Vec<u8> {
    [unit.to_bytes(true), Deferred { nanos, outcome }.to_bytes()].concat()
}

/// Returns a record of each kind.
fn records() -> Vec<Vec<u8>> {
    let mut channel = Phrase::new(Phrase::CHANNEL);
    [-555, -444, 4].into_iter().for_each(|number| channel.number(number));
    let mut cancel = Phrase::new("cancel");
    cancel.named("req", 5);
    let mut neighbors = Phrase::new("neighbor_alltoallv");
    neighbors.list("to", &[1, 2, 3]);
    neighbors.word("", "word");
    neighbors.word("key", "value");
    let compute = Unit { amount: 0.1_f64.to_bits(), ..Unit::of_kind(Kind::Compute) };
    let irecv = Unit { slot: 5, amount: 64, ..Unit::of_kind(Kind::Irecv) };
    let wait = Unit { slot: 5, ..Unit::of_kind(Kind::Wait) };
    let call = Unit { index: 1, ..Unit::of_kind(Kind::Call) };
    vec![
        Unit::of_kind(Kind::Init).to_bytes(false).to_vec(),
        define(0, &channel),
        with_later(compute, Some(70), 0),
        with_later(irecv, None, Deferred::receive_outcome(Some(1), None)),
        wait.to_bytes(false).to_vec(),
        define(1, &cancel),
        with_later(call, Some(0), Deferred::CANCELLED),
        define(1, &neighbors),
        call.to_bytes(false).to_vec(),
        Unit::of_kind(Kind::Finalize).to_bytes(false).to_vec(),
        COMPLETE_MARK.to_vec(),
    ]
}

fn shard() -> Vec<u8> {
    [header(), records().concat()].concat()
}

#[test]
fn every_kind_of_record_is_a_line() {
    let expected = [
        "2 init",
        "2 compute 0.1 time=70",
        "2 irecv -555 -444 64 comm=4 req=5 source=1",
        "2 wait req=5",
        "2 cancel req=5 done=yes time=0",
        "2 neighbor_alltoallv to=1-3 word key=value",
        "2 finalize",
    ];
    assert_eq!(lines(&shard()), expected);
    assert!(shard().ends_with(&COMPLETE_MARK) && header().len().is_multiple_of(16));
}

#[test]
fn a_process_that_is_killed_leaves_its_complete_records() {
    let (records, all) = (records(), lines(&shard()));
    let is_action = |record: &&Vec<u8>| ![Kind::Phrase as u8, Kind::End as u8].contains(&(record[0] & 63));
    for last in 0..records.len() {
        let mut bytes = [header(), records[..=last].concat()].concat();
        let first_word = bytes.len() - records[last].len();
        bytes[first_word..first_word + 8].fill(0);
        let expected = &all[..records[..last].iter().filter(is_action).count()];
        assert_eq!(lines(&bytes), expected);
        bytes.resize(bytes.len() + 100, 0);
        assert_eq!(lines(&bytes), expected);
        assert_eq!(lines(&bytes[..first_word]), expected);
    }
}

#[test]
fn void_records_are_skipped_and_what_was_begun_is_the_end() {
    let call = Unit { index: 3, ..Unit::of_kind(Kind::Call) };
    let void = |has_deferred: bool| Unit::of_kind(Kind::Failed).to_bytes(has_deferred).to_vec();
    let begun = call.begun_words().map(u64::to_le_bytes).concat();
    let phrase = define(3, &Phrase::new("barrier"));
    let finalize = Unit::of_kind(Kind::Finalize).to_bytes(false).to_vec();
    let body = [phrase, void(false), void(true), vec![0; UNIT], call.to_bytes(false).to_vec()].concat();
    let bytes = [header(), body, begun, finalize].concat();
    assert_eq!(lines(&bytes), ["2 barrier"]);
    let mut reader = ShardReader::new(&bytes[..]).unwrap();
    assert!(reader.read_record().unwrap().is_some());
    assert_eq!(reader.begun().unwrap(), None);
    assert!(reader.read_record().unwrap().is_none());
    assert_eq!(reader.begun().unwrap(), Some(Action::Call { text: b"barrier", cancelled: None }));
}

#[test]
fn invalid_records_are_reported() {
    let wrong =
        |unit: Unit| read(&[header(), unit.to_bytes(false).to_vec()].concat()).unwrap_err().to_string();
    assert_eq!(wrong(Unit { index: 7, ..Unit::of_kind(Kind::Call) }), "phrase 7 is used and was not defined");
    assert!(wrong(Unit { amount: 1 << 40, ..Unit::of_kind(Kind::Phrase) }).contains("expected at most"));
    let message = Unit::of_kind(Kind::Send).to_bytes(false).to_vec();
    let bytes = [header(), define(0, &Phrase::new("send")), message].concat();
    assert_eq!(read(&bytes).unwrap_err().to_string(), "phrase 0 is no channel");
    assert!(
        read(b"# pdes-replay shard version=1 job=a\n")
            .unwrap_err()
            .to_string()
            .contains("version 1, expected 3")
    );
    assert!(read(b"0 init\n").is_err());
}

proptest! {
    #[test]
    fn bytes_never_panic(at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 1..40)) {
        let mut changed = shard();
        let at = at.index(changed.len());
        let end = changed.len().min(at + bytes.len());
        changed[at..end].copy_from_slice(&bytes[..end - at]);
        // Reading ends, with text or with an error.
        if let Ok(text) = read(&changed) {
            prop_assert!(text.len() < 1 << 20);
        }
    }
}
