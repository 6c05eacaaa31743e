//! Ranks that go on before their calls have ended in simulated time, as it is certain how they end.

use super::Program;

/// Rounds of exchanges of all kinds under contention, between pieces of work that take real time alone; each rank prints a checksum of its
/// data and of the clock after each call.
const ROUNDS: &str = "enum { MOST = 20000 };\nstatic int out[MOST], in[MOST], sums[8], all[8];\n\
    unsigned long sum = 0;\nMPI_Request requests[3], start;\nMPI_Status status;\n\
    int next = (rank + 1) % size, last = (rank + size - 1) % size;\n\
    #define WORKS for (volatile int i = 0; i < WORK; i++);\n\
    #define TAKES(value) sum = sum * 1099511628211UL + (unsigned long)(value);\n\
    #define READS TAKES(MPI_Wtime() * 1e12 + 0.5)\n\
    MPI_Send_init(out, 10, MPI_INT, next, 3, MPI_COMM_WORLD, &start);\n\
    for (int round = 0; round < 60; round++) {\n\
      int many = 1 + (rank * 7919 + round * 104729) % MOST;\n\
      for (int k = 0; k < many; k++) out[k] = rank * 1000 + round + k;\n\
      WORKS MPI_Irecv(in, MOST, MPI_INT, last, 1, MPI_COMM_WORLD, &requests[0]);\n\
      MPI_Isend(out, many, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[1]);\n\
      WORKS MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n\
      WORKS if (round % 3 == 0) READS TAKES(in[many % 100])\n\
      MPI_Sendrecv(out, many, MPI_INT, last, 2, in, MOST, MPI_INT, next, 2, MPI_COMM_WORLD, &status);\n\
      WORKS MPI_Get_count(&status, MPI_INT, &many); TAKES(many) READS\n\
      MPI_Ialltoall(out, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &requests[0]);\n\
      MPI_Start(&start); MPI_Irecv(in, 10, MPI_INT, last, 3, MPI_COMM_WORLD, &requests[1]); requests[2] = start;\n\
      WORKS MPI_Waitall(3, requests, MPI_STATUSES_IGNORE); TAKES(all[next]) TAKES(in[9])\n\
      if (rank > 0) MPI_Send(out, round % 2 ? 1 : 9000, MPI_INT, 0, 4, MPI_COMM_WORLD);\n\
      else for (int k = 1; k < size; k++) { MPI_Recv(in, MOST, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &status); WORKS TAKES(status.MPI_SOURCE) }\n\
      WORKS MPI_Allreduce(out, sums, 8, MPI_INT, MPI_SUM, MPI_COMM_WORLD); TAKES(sums[3])\n\
      WORKS if (round % 2) READS\n\
    }\n\
    MPI_Request_free(&start);\nprintf(\"%d %lx\\n\", rank, sum);";

/// Ranks that work for long do so at once, before earlier calls of others end. Their data, clocks and digests are those of ranks that do not
/// work, which have their turns one after the other.
#[test]
fn what_ranks_see_ahead_of_time_is_what_they_see_in_time() {
    let [Some(short), Some(long)] =
        [0, 100_000].map(|work| Program::with_body(&format!("\n#define WORK {work}\n{ROUNDS}")))
    else {
        return;
    };
    let models: [&[&str]; 4] = [
        &["--model", "flow"],
        &["--model", "contention-free"],
        &["--model", "contention-free", "--set", "engine.threads=2"],
        &["--model", "packets"],
    ];
    for model in models {
        let flags = [model, &["--set", "online.computation='none'"]].concat();
        let expected = short.lines_and_digest(4, &flags);
        assert_eq!(expected.0.len(), 4);
        for _ in 0..2 {
            assert_eq!(long.lines_and_digest(4, &flags), expected, "{model:?}");
        }
    }
}
