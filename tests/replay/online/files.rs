//! Files of programs: accesses take the time of the platform's devices, as in a replay.

use std::fmt::Write as _;

use pdes_replay::SavedReport;
use predicates::str::contains;

use super::{Program, SETTINGS};

/// A disk that all hosts share.
const DISK: &str = "[[platform.storage]]\ndirectory = '/'\nhost = 'node-0'\nshared = true\nread = '2GBps'\nwrite = '500MBps'\n";

/// Compiles a program with a disk; `name` is its file.
fn program(body: &str) -> Option<Program> {
    let body = format!(
        "MPI_File file; MPI_Status status; char name[300], *data = malloc(1000000);\n\
         sprintf(name, \"%s.data\", argv[0]);\n#define TOGETHER MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL\n{body}"
    );
    let program = Program::with_body(&body)?;
    program.folder.write("run.toml", &format!("{SETTINGS}{DISK}"));
    Some(program)
}

/// Returns the time of the last run of the program \[s\].
fn online_time(program: &Program) -> f64 {
    SavedReport::from_path(&program.folder.path("report.json")).unwrap().simulated_time_s
}

/// All ways to access a file, with a view with holes: the data arrive, and the trace of the run has its digest.
#[test]
fn accesses_take_the_time_of_the_replay_of_their_record() {
    let body = "MPI_File_open(TOGETHER, &file);\nint n = 250000, *mine = (int *)data, right = 1, count;\nMPI_Request request;\n\
        for (int i = 0; i < n; i++) mine[i] = rank * n + i;\nMPI_File_write_at_all(file, 4 * n * rank, mine, n, MPI_INT, &status);\n\
        MPI_File_sync(file);\nint next = (rank + 1) % size;\nMPI_File_read_at_all(file, 4 * n * next, mine, n, MPI_INT, &status);\n\
        for (int i = 0; i < n; i++) right &= mine[i] == next * n + i;\n\
        MPI_Datatype column;\nMPI_Type_vector(100, 1, size, MPI_INT, &column);\nMPI_Type_create_resized(column, 0, 400 * size, &column);\n\
        MPI_Type_commit(&column);\nMPI_File_set_view(file, 4 * rank, MPI_INT, column, \"native\", MPI_INFO_NULL);\n\
        for (int i = 0; i < 100; i++) mine[i] = rank;\nMPI_File_iwrite(file, mine, 100, MPI_INT, &request);\nMPI_Wait(&request, &status);\n\
        MPI_Get_count(&status, MPI_INT, &count);\nright &= count == 100;\nMPI_File_sync(file);\n\
        MPI_File_set_view(file, 0, MPI_INT, MPI_INT, \"native\", MPI_INFO_NULL);\n\
        MPI_File_seek(file, 10, MPI_SEEK_SET);\nMPI_File_read(file, mine, size, MPI_INT, &status);\n\
        for (int i = 0; i < size; i++) right &= mine[i] == (10 + i) % size;\n\
        MPI_File_read_all_begin(file, mine, rank == 0, MPI_INT);\nMPI_File_read_all_end(file, mine, &status);\n\
        MPI_File_write_ordered(file, &rank, 1, MPI_INT, &status);\n\
        MPI_File_close(&file);\nMPI_Type_free(&column);\nprintf(\"%d\\n\", right);";
    let Some(program) = program(body) else { return };
    for (flags, least) in [(["--model", "contention-free"], 0.0025), (["--threads", "2"], 0.01)] {
        assert_eq!(program.lines_of_recorded(4, &flags), ["1"; 4]);
        let time = online_time(&program);
        // A megabyte of each rank is written and read, of all of them one after the other if they share the disk.
        assert!(time > least, "{flags:?}: {time}");
    }
}

/// Parts that lie side by side take the time of the calls in a trace.
#[test]
fn collective_accesses_take_the_time_of_those_of_a_trace() {
    let body = "MPI_File_open(TOGETHER, &file);\nMPI_File_write_at_all(file, 1000000 * rank, data, 1000000, MPI_BYTE, &status);\n\
        MPI_File_seek(file, 500000 * rank, MPI_SEEK_SET);\nMPI_File_read_all(file, data, 500000, MPI_BYTE, &status);\nMPI_File_close(&file);";
    let Some(program) = program(body) else { return };
    let file = format!("{}.data", program.file.display());
    let mut text = String::new();
    for rank in 0..4 {
        write!(
            text,
            "{rank} init\n{rank} io-open {file}\n{rank} io-write_at_all {file} {} 1000000\n{rank} io-seek {file} {}\n\
             {rank} io-read_all {file} 500000\n{rank} io-close {file}\n{rank} finalize\n",
            1_000_000 * rank,
            500_000 * rank
        )
        .unwrap();
    }
    let trace = program.folder.write("trace.txt", &text).to_string_lossy().into_owned();
    program.lines_and_digest(4, &[]);
    assert_eq!(online_time(&program), program.replay(&[], &trace).simulated_time_s);
}

/// The data of collective accesses move after all calls before them, and before all calls after them, also where they take no time.
#[test]
fn data_of_collective_accesses_move_together() {
    // The members come one after the other.
    let late = "{ struct timespec since, now; syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &since); do syscall(SYS_clock_gettime, \
        CLOCK_MONOTONIC, &now); while ((now.tv_sec - since.tv_sec) * 1e3 + (now.tv_nsec - since.tv_nsec) * 1e-6 < 3 * (rank == round % size)); }";
    let body = format!(
        "int right = 1, value, next = (rank + 1) % size;\nMPI_Offset bytes;\n#define LATE {late}\n\
         MPI_File_open(TOGETHER, &file);\nfor (int round = 0; round < 8; round++) {{\n\
         value = 100 * round + rank;\nLATE\nMPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, &status);\nvalue = -1;\n\
         MPI_File_read_at(file, 4 * next, &value, 1, MPI_INT, &status);\nright &= value == 100 * round + next;\nLATE\n\
         MPI_File_set_size(file, 0);\nMPI_File_get_size(file, &bytes);\nright &= bytes == 0;\nLATE\n\
         MPI_File_seek_shared(file, 0, MPI_SEEK_SET);\nvalue = 100 * round + rank;\n\
         MPI_File_write_ordered(file, &value, 1, MPI_INT, &status);\nvalue = -1;\n\
         MPI_File_read_at(file, 4 * next, &value, 1, MPI_INT, &status);\nright &= value == 100 * round + next;\nLATE\n\
         MPI_File_sync(file);\nvalue = 0x1010101 * round;\n\
         MPI_File_seek(file, 4 * rank, MPI_SEEK_SET);\nMPI_File_write_all_begin(file, &value, 1, MPI_INT);\n\
         MPI_File_write_all_end(file, &value, &status);\nvalue = -1;\n\
         MPI_File_read_at(file, 4 * next, &value, 1, MPI_INT, &status);\nright &= value == 0x1010101 * round;\nMPI_File_sync(file);\n}}\n\
         MPI_File_close(&file);\nprintf(\"%d\\n\", right);"
    );
    let Some(program) = program(&body) else { return };
    for settings in [SETTINGS.to_owned(), format!("{SETTINGS}{DISK}")] {
        program.folder.write("run.toml", &settings.replace("clock = 'all'", ""));
        assert_eq!(program.lines_and_digest(2, &[]).0, ["1"; 2], "{settings}");
    }
}

/// The real file does not decide how often a program tests; without devices nonblocking accesses are complete at once, whatever completes them.
#[test]
fn nonblocking_accesses_do_not_wait_for_the_real_file() {
    let body = "int right = 1, polls = 0, flag, index, count, cell; MPI_Request request;\n\
        #define ENDED(call) for (flag = 0; !flag; polls++) call; MPI_Wait(&request, &status);\n\
        #define CHECKED(value, post) { cell = value; post; ENDED(MPI_Request_get_status(request, &flag, &status))\\\n\
          MPI_Get_count(&status, MPI_INT, &count); right &= count == 1; post; ENDED(MPI_Test(&request, &flag, &status))\\\n\
          post; ENDED(MPI_Testall(1, &request, &flag, &status)) post; ENDED(MPI_Testany(1, &request, &index, &flag, &status))\\\n\
          post; ENDED(MPI_Testsome(1, &request, &flag, &index, &status)) }\n\
        MPI_File_open(TOGETHER, &file); MPI_File_set_view(file, 0, MPI_INT, MPI_INT, \"native\", MPI_INFO_NULL);\n\
        #define AT(value) (MPI_File_seek(file, rank, MPI_SEEK_SET), cell = value)\n\
        CHECKED(100 + rank, MPI_File_iwrite_at(file, rank, &cell, 1, MPI_INT, &request))\n\
        CHECKED(-1, MPI_File_iread_at(file, rank, &cell, 1, MPI_INT, &request)) right &= cell == 100 + rank;\n\
        CHECKED(200 + rank, MPI_File_iwrite_at_all(file, rank, &cell, 1, MPI_INT, &request))\n\
        CHECKED(-1, MPI_File_iread_at_all(file, rank, &cell, 1, MPI_INT, &request)) right &= cell == 200 + rank;\n\
        CHECKED(0, (AT(300 + rank), MPI_File_iwrite(file, &cell, 1, MPI_INT, &request)))\n\
        CHECKED(0, (AT(-1), MPI_File_iread(file, &cell, 1, MPI_INT, &request))) right &= cell == 300 + rank;\n\
        CHECKED(0, (AT(400 + rank), MPI_File_iwrite_all(file, &cell, 1, MPI_INT, &request)))\n\
        CHECKED(0, (AT(-1), MPI_File_iread_all(file, &cell, 1, MPI_INT, &request))) right &= cell == 400 + rank;\n\
        MPI_File_seek_shared(file, 10, MPI_SEEK_SET); CHECKED(500, MPI_File_iwrite_shared(file, &cell, 1, MPI_INT, &request))\n\
        MPI_File_seek_shared(file, 10, MPI_SEEK_SET); CHECKED(-1, MPI_File_iread_shared(file, &cell, 1, MPI_INT, &request))\n\
        right &= cell == 500; MPI_File_close(&file); printf(\"%d %d\\n\", right, polls);";
    let Some(program) = program(body) else { return };
    let fixed = ["--set", "online.computation='fixed'", "--set", "online.fixed_s='10ns'"];
    let on_disk = program.lines_and_digest(2, &fixed);
    // Ten kinds of accesses, each five times. Rank 0 has the disk; to it and back takes the other one 2 us, 200 computations.
    let polls = on_disk.0[0].strip_prefix("1 ").map(|polls| polls.parse().unwrap());
    assert!(polls > Some(50 * 200) && on_disk.0[1] == "1 50", "{on_disk:?}");
    assert_eq!(program.lines_and_digest(2, &fixed), on_disk);
    program.folder.write("run.toml", SETTINGS);
    let without = program.lines_and_digest(2, &fixed);
    assert_eq!(without.0, ["1 50"; 2]);
    assert_eq!(program.lines_and_digest(2, &fixed), without);
}

/// One size for all members, also where a size is set again; `MPI_File_preallocate` keeps what is in a file, and never makes it shorter.
#[test]
fn sizes_of_files_are_set_once_for_all_ranks() {
    let body = "MPI_Offset sizes[5]; int cell = 7;\nMPI_File_open(TOGETHER, &file);\n\
        MPI_File_set_size(file, 102); MPI_File_get_size(file, &sizes[0]);\n\
        if (rank == 0) MPI_File_write_at(file, 98, &cell, 1, MPI_INT, &status);\n\
        MPI_File_preallocate(file, 5000); MPI_File_get_size(file, &sizes[1]);\n\
        MPI_File_preallocate(file, 5000); MPI_File_get_size(file, &sizes[2]);\n\
        MPI_File_preallocate(file, 4000); MPI_File_get_size(file, &sizes[3]);\n\
        cell = 0; MPI_File_read_at(file, 98, &cell, 1, MPI_INT, &status);\n\
        MPI_File_set_size(file, 90); MPI_File_get_size(file, &sizes[4]); MPI_File_close(&file);\n\
        for (int i = 0; i < 5; i++) printf(\"%d %lld\\n\", i, (long long)sizes[i]); printf(\"cell %d\\n\", cell);\n\
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);\n\
        printf(\"fails %d\\n\", MPI_File_preallocate(file, 9000) != MPI_SUCCESS); MPI_File_close(&file);";
    let Some(program) = program(body) else { return };
    program.folder.write("run.toml", SETTINGS);
    for ranks in [1, 3] {
        let (lines, _) = program.lines_and_digest(ranks, &[]);
        let expected = ["0 102", "1 5000", "2 5000", "3 5000", "4 90", "cell 7", "fails 1"];
        let repeated: Vec<&str> =
            expected.iter().flat_map(|line| std::iter::repeat_n(*line, ranks as usize)).collect();
        assert_eq!(lines, repeated, "{ranks} ranks");
    }
}

#[test]
fn what_accesses_leave_out_is_warned_of() {
    let body = "MPI_Info info; MPI_Info_create(&info); MPI_Info_set(info, \"cb_nodes\", \"2\");\n\
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file);\n\
        MPI_File_write_at_all(file, 1000 * rank, data, 500, MPI_BYTE, &status);\nMPI_Request request;\n\
        MPI_File_iwrite_at_all(file, 1000 * rank, data, 500, MPI_BYTE, &request);\nMPI_Wait(&request, &status);\nMPI_File_close(&file);";
    let Some(program) = program(body) else { return };
    let run = program.run(2, &[]).success();
    for message in [
        "the hint cb_nodes of a file does not change the time of accesses, called from /",
        "the parts of a collective access do not lie side by side",
        "a nonblocking collective access takes the time of one of the rank alone",
    ] {
        let output = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(output.contains(message), "{message}: {output}");
    }
    program.folder.write("run.toml", &format!("{SETTINGS}{}", DISK.replace("'/'", "'/scratch'")));
    program.run(2, &[]).code(1).stderr(contains(".data"));
    program.folder.write("run.toml", SETTINGS);
    program.run(2, &[]).success().stderr(contains("accesses to files took no time"));
}
