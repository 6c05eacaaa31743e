//! Programs of MPICH: they run as those of Open MPI do.

use std::process::Command;

use super::Program;
use crate::command_line::Folder;
use crate::online::main_with;

/// A program in C has the results and the digest of its build with Open MPI.
#[test]
fn programs_of_mpich_run_as_those_of_open_mpi() {
    let body = "int value, sum, found, n, at[4], all[16], next = (rank + 1) % size, last = (rank + size - 1) % size;\n\
        MPI_Request requests[8]; MPI_Status status, statuses[8]; MPI_Message message; MPI_Datatype type; MPI_Op larger;\n\
        MPI_Comm half, copy, ring, both; MPI_Group group, part; MPI_Win window;\n\
        MPI_Irecv(&value, 1, MPI_INT, last, 3, MPI_COMM_WORLD, &requests[0]);\n\
        MPI_Isend(&rank, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[1]);\nMPI_Waitall(2, requests, statuses);\n\
        printf(\"%d %d from %d\\n\", rank, value, statuses[0].MPI_SOURCE);\n\
        for (int i = 0; i < 4; i++) MPI_Irecv(&all[i], 1, MPI_INT, MPI_ANY_SOURCE, 10 + i, MPI_COMM_WORLD, &requests[i]);\n\
        for (int i = 0; i < 4; i++) MPI_Bsend(&i, 0, MPI_INT, rank, 13 - i, MPI_COMM_WORLD);\n\
        for (int left = 4; left > 0; left -= n) MPI_Waitsome(4, requests, &n, at, statuses);\n\
        if (rank == 0) for (int i = 1; i < size; i++) {\nMPI_Mprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &message, &status);\n\
        MPI_Imrecv(&value, 1, MPI_INT, &message, &requests[0]);\nMPI_Wait(&requests[0], &status);\n\
        printf(\"found %d of %d\\n\", value, status.MPI_SOURCE);\n} else MPI_Send(&rank, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);\n\
        MPI_Op_create(keep_larger, 1, &larger);\nMPI_Allreduce(&rank, &sum, 1, MPI_INT, larger, MPI_COMM_WORLD);\nMPI_Op_free(&larger);\n\
        MPI_Iallreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);\n\
        for (found = 0; !found;) MPI_Test(&requests[0], &found, &status);\n\
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);\nMPI_Comm_dup(half, &copy);\n\
        MPI_Intercomm_create(copy, 0, MPI_COMM_WORLD, size - 1 - rank % 2, 7, &both);\nMPI_Comm_remote_size(both, &n);\n\
        MPI_Comm_group(half, &group);\nMPI_Group_excl(group, 1, (int[]){0}, &part);\nMPI_Group_size(part, &found);\n\
        printf(\"%d sum %d, %d others, %d in part\\n\", rank, sum, n, found);\n\
        MPI_Group_free(&group); MPI_Group_free(&part); MPI_Comm_free(&both); MPI_Comm_free(&copy); MPI_Comm_free(&half);\n\
        MPI_Type_vector(2, 1, 2, MPI_INT, &type); MPI_Type_commit(&type);\n\
        for (int i = 0; i < 16; i++) all[i] = rank * 100 + i;\n\
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, (int[]){1}, 0, &ring);\nMPI_Cart_shift(ring, 0, 1, &last, &next);\n\
        MPI_Sendrecv(all, 1, type, next, 5, all + 8, 1, type, last, 5, ring, &status);\nMPI_Get_count(&status, type, &n);\n\
        printf(\"%d has %d %d %d %d\\n\", rank, n, all[8], all[9], all[10]);\nMPI_Type_free(&type); MPI_Comm_free(&ring);\n\
        MPI_Win_create(all, sizeof all, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);\nMPI_Win_fence(0, window);\n\
        MPI_Put(&rank, 1, MPI_INT, next, 15, 1, MPI_INT, window);\nMPI_Win_fence(0, window);\nprintf(\"%d put %d\\n\", rank, all[15]);\n\
        MPI_Win_free(&window);\n\
        MPI_File file; MPI_Info info; char name[200]; sprintf(name, \"%s.data\", argv[0]);\n\
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);\n\
        MPI_Type_vector(2, 1, size, MPI_INT, &type); MPI_Type_commit(&type); MPI_File_set_size(file, 0); MPI_Barrier(MPI_COMM_WORLD);\n\
        MPI_File_set_view(file, 4 * rank, MPI_INT, type, \"native\", MPI_INFO_NULL);\n\
        MPI_File_get_info(file, &info); MPI_File_set_info(file, info); MPI_Info_free(&info);\n\
        all[0] = rank; all[1] = 10 + rank; MPI_File_write_all(file, all, 2, MPI_INT, &status); MPI_File_sync(file); MPI_Barrier(MPI_COMM_WORLD);\n\
        MPI_File_set_view(file, 0, MPI_INT, MPI_INT, \"native\", MPI_INFO_NULL);\n\
        MPI_File_read_at_all_begin(file, 1, all, 6, MPI_INT); MPI_File_read_at_all_end(file, all, &status);\n\
        printf(\"%d read %d %d %d %d\\n\", rank, all[0], all[2], all[3], all[5]);\nMPI_File_close(&file); MPI_Type_free(&type);\n\
        printf(\"%d at %.9f\\n\", rank, MPI_Wtime());";
    let text = format!(
        "#include <mpi.h>\nstatic void keep_larger(void *from, void *to, int *n, MPI_Datatype *type)\n\
         {{ for (int i = 0; i < *n; i++) if (((int *)from)[i] > ((int *)to)[i]) ((int *)to)[i] = ((int *)from)[i]; }}\n{}",
        main_with(body)
    );
    let folder = Folder::new();
    let source = folder.write("program.c", &text);
    let (Some(one), Some(other)) =
        (Program::compile(&source), Program::compile_by("mpicc.mpich", &source, &[]))
    else {
        return;
    };
    let flags = ["--threads", "1"];
    let (lines, digest) = one.lines_and_digest(4, &flags);
    assert!(lines.contains(&"3 read 1 3 10 12".to_owned()), "{lines:?}");
    assert_eq!(other.lines_and_digest(4, &flags), (lines, digest));
}

/// Fortran's functions of MPICH call those of C.
#[test]
fn programs_in_fortran_of_mpich_run() {
    let folder = Folder::new();
    let body = "      integer r, n, x, s, e, half, h, q(2)\n      call MPI_INIT(e)\n      call MPI_COMM_RANK(MPI_COMM_WORLD, r, e)\n\
        \u{20}     call MPI_COMM_SIZE(MPI_COMM_WORLD, n, e)\n\
        \u{20}     call MPI_IRECV(x,1,MPI_INTEGER,mod(r+n-1,n),3,MPI_COMM_WORLD,q(1),e)\n\
        \u{20}     call MPI_ISEND(r,1,MPI_INTEGER,mod(r+1,n),3,MPI_COMM_WORLD,q(2),e)\n\
        \u{20}     call MPI_WAITALL(2,q,MPI_STATUSES_IGNORE,e)\n      s = x\n\
        \u{20}     call MPI_ALLREDUCE(MPI_IN_PLACE,s,1,MPI_INTEGER,MPI_SUM,MPI_COMM_WORLD,e)\n\
        \u{20}     call MPI_COMM_SPLIT(MPI_COMM_WORLD,mod(r,2),-r,half,e)\n      call MPI_COMM_RANK(half,h,e)\n\
        \u{20}     call MPI_COMM_FREE(half,e)\n      print '(4I3)', r, x, s, h\n      call MPI_FINALIZE(e)\n      end\n";
    for (name, begin) in [
        ("f77.f", "      program ring\n      include 'mpif.h'\n"),
        ("f90.f", "      program ring\n      use mpi\n"),
    ] {
        let source = folder.write(name, &format!("{begin}{body}"));
        let Some(program) = Program::compile_by("mpifort.mpich", &source, &["-ffixed-line-length-none"])
        else {
            return;
        };
        let (lines, _) = program.lines_and_digest(4, &[]);
        assert_eq!(lines, ["  0  3  6  1", "  1  0  6  1", "  2  1  6  0", "  3  2  6  0"], "{name}");
    }
}

/// The MPI library is found where a library of the program alone needs it.
#[test]
fn libraries_of_programs_may_need_mpich() {
    let folder = Folder::new();
    let library = folder.write(
        "library.c",
        "#include <mpi.h>\n#include <stdio.h>\nvoid say(void) { int rank, size; MPI_Init(NULL, NULL);\n\
         MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);\n\
         printf(\"%d of %d\\n\", rank, size); MPI_Finalize(); }\n",
    );
    let name = format!("-Wl,-rpath,{}", folder.path("").display());
    let shared = folder.path("libsay.so").to_string_lossy().into_owned();
    let made = Command::new("mpicc.mpich").args(["-shared", "-fPIC", "-o", &shared]).arg(&library).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let main = folder.write("main.c", "void say(void);\nint main(void) { say(); return 0; }\n");
    let Some(program) = Program::compile_by(
        "mpicc.mpich",
        &main,
        &[
            "-Wl,--as-needed",
            &name,
            "-L",
            &folder.path("").to_string_lossy(),
            "-Wl,--push-state,--no-as-needed",
            &shared,
            "-Wl,--pop-state",
        ],
    ) else {
        return;
    };
    assert_eq!(program.lines_and_digest(2, &[]).0, ["0 of 2", "1 of 2"]);
}
