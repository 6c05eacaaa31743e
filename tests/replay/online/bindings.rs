//! Programs in C++ and Fortran, and the tools' interface: they have their results.

use super::Program;
use crate::command_line::Folder;

/// Compiles a program and checks the lines that it prints on three ranks.
fn prints(compiler: &str, name: &str, text: &str, expected: &[&str]) {
    let folder = Folder::new();
    let Some(program) = Program::compile_by(compiler, &folder.write(name, text), &[]) else { return };
    let (lines, digest) = program.lines_and_digest(3, &["--threads", "1"]);
    let lines: Vec<String> =
        lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines, expected);
    assert_eq!(program.lines_and_digest(3, &["--threads", "3"]).1, digest);
}

/// A program in Fortran of the statements that declare the bindings and handles, and of a conversion of a file's
/// handle or request to what the bindings want.
fn fortran(uses: &str, handles: [&str; 6]) -> String {
    let [request, status, communicator, group, operator, source] = handles;
    format!(
        "program bindings\n{uses}\nimplicit none\n{request} :: requests(2)\n{status}\n{communicator} :: half, ring\n\
         {group} :: all, part\n{operator} :: larger\ninteger :: rank, ranks, error, got, total, at, members, i, next, last\n\
         integer :: ordered(3)\nlogical :: flag\nexternal keep_larger\n\
         call MPI_Init(error)\ncall MPI_Comm_rank(MPI_COMM_WORLD, rank, error)\ncall MPI_Comm_size(MPI_COMM_WORLD, ranks, error)\n\
         next = mod(rank + 1, ranks)\nlast = mod(rank + ranks - 1, ranks)\n\
         call MPI_Irecv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, requests(1), error)\n\
         call MPI_Isend(rank, 1, MPI_INTEGER, next, 3, MPI_COMM_WORLD, requests(2), error)\n\
         do i = 1, 2\ncall MPI_Waitany(2, requests, at, status, error)\nif (at == 1) then\nif ({source} /= last) print *, 'source'\nend if\nend do\n\
         total = rank\ncall MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)\n\
         call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, error)\ncall MPI_Comm_group(half, all, error)\n\
         call MPI_Group_excl(all, 1, (/ 0 /), part, error)\ncall MPI_Group_size(part, members, error)\n\
         call MPI_Cart_create(MPI_COMM_WORLD, 1, (/ ranks /), (/ .true. /), .false., ring, error)\n\
         call MPI_Cart_shift(ring, 0, 1, last, next, error)\n\
         call MPI_Op_create(keep_larger, .true., larger, error)\n\
         call MPI_Allreduce(rank, at, 1, MPI_INTEGER, larger, ring, error)\ncall MPI_Op_free(larger, error)\n\
         call MPI_Gather(rank * 2, 1, MPI_INTEGER, ordered, 1, MPI_INTEGER, 1, MPI_COMM_WORLD, error)\n\
         if (rank /= 1) ordered = 0\ncall MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, error)\n\
         print *, rank, got, total, members, last, next, at, ordered(3), flag\n\
         call MPI_Group_free(part, error)\ncall MPI_Group_free(all, error)\ncall MPI_Comm_free(half, error)\ncall MPI_Comm_free(ring, error)\n\
         call MPI_Finalize(error)\nend program bindings\n"
    )
}

/// Output of the programs in Fortran: rank, from the left, sum, others of the half, neighbours, largest, gathered.
const PRINTED: [&str; 3] = ["0 2 3 1 2 1 2 0 F", "1 0 3 0 0 2 2 4 F", "2 1 3 1 1 0 2 0 F"];

#[test]
fn programs_in_fortran_have_their_results() {
    let integers = [
        "integer",
        "integer :: status(MPI_STATUS_SIZE)",
        "integer",
        "integer",
        "integer",
        "status(MPI_SOURCE)",
    ];
    let operator = "subroutine keep_larger(from, to, n, kind)\ninteger :: n, from(n), to(n), kind, i\n\
        do i = 1, n\nto(i) = max(from(i), to(i))\nend do\nend subroutine\n";
    prints("mpifort", "program.f90", &(fortran("use mpi", integers) + operator), &PRINTED);
    let included = fortran("", integers).replace("implicit none\n", "implicit none\ninclude 'mpif.h'\n");
    prints("mpifort", "program.f90", &(included + operator), &PRINTED);
    let types = [
        "type(MPI_Request)",
        "type(MPI_Status) :: status",
        "type(MPI_Comm)",
        "type(MPI_Group)",
        "type(MPI_Op)",
        "status%MPI_SOURCE",
    ];
    let contained = "contains\nsubroutine keep_larger(from, to, n, kind)\nuse, intrinsic :: iso_c_binding\n\
        type(c_ptr), value :: from, to\ninteger :: n\ntype(MPI_Datatype) :: kind\ninteger, pointer :: a(:), b(:)\n\
        call c_f_pointer(from, a, (/ n /))\ncall c_f_pointer(to, b, (/ n /))\nb = max(a, b)\nend subroutine\n\
        end program bindings\n";
    let program = fortran("use mpi_f08", types)
        .replace("external keep_larger\n", "")
        .replace("end program bindings\n", contained);
    prints("mpifort", "program.f90", &program, &PRINTED);
}

#[test]
fn programs_in_cpp_have_their_results() {
    let text = "#include <mpi.h>\n#include <cstdio>\nint main(int argc, char **argv) {\nMPI::Init(argc, argv);\n\
        int rank = MPI::COMM_WORLD.Get_rank(), size = MPI::COMM_WORLD.Get_size(), got = -1, sum;\n\
        MPI::Request request = MPI::COMM_WORLD.Isend(&rank, 1, MPI::INT, (rank + 1) % size, 3);\nMPI::Status status;\n\
        MPI::COMM_WORLD.Recv(&got, 1, MPI::INT, MPI::ANY_SOURCE, 3, status);\nrequest.Wait();\n\
        MPI::COMM_WORLD.Allreduce(&got, &sum, 1, MPI::INT, MPI::SUM);\n\
        MPI::Intracomm half = MPI::COMM_WORLD.Split(rank % 2, rank);\n\
        std::printf(\"%d %d %d %d %d\\n\", rank, got, status.Get_source(), sum, half.Get_size());\n\
        half.Free();\nMPI::Finalize();\n}\n";
    prints("mpicxx", "program.cpp", text, &["0 2 2 3 2", "1 0 0 3 1", "2 1 1 3 2"]);
}

/// The tools' interface is the library's, also before `MPI_Init` and after `MPI_Finalize`.
#[test]
fn the_interface_of_tools_is_there() {
    let text = "#include <mpi.h>\n#include <stdio.h>\nint main(int argc, char **argv) {\nint given, variables = 0, rank, ended;\n\
        MPI_T_pvar_session session;\nMPI_T_init_thread(MPI_THREAD_SINGLE, &given);\nMPI_T_cvar_get_num(&variables);\n\
        MPI_Init(&argc, &argv);\nMPI_Comm_rank(MPI_COMM_WORLD, &rank);\nended = MPI_T_pvar_session_create(&session);\n\
        MPI_Barrier(MPI_COMM_WORLD);\nMPI_T_pvar_session_free(&session);\nMPI_Finalize();\n\
        printf(\"%d %d %d\\n\", rank, variables > 0, ended == MPI_SUCCESS && MPI_T_finalize() == MPI_SUCCESS);\nreturn 0;\n}\n";
    prints("mpicc", "program.c", text, &["0 1 1", "1 1 1", "2 1 1"]);
}
