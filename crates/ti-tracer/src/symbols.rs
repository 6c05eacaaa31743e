//! Exported symbols: the names under which programs find the functions of `shim/`, in C and in Fortran.
//!
//! A Rust library exports only what is defined in Rust. Each symbol is a jump to the function in C: registers and stack are
//! those of the caller, so that the number and the types of the arguments do not matter here.
//!
//! Fortran compilers use lower-case names with or without trailing underscores; Open MPI's module `mpi_f08` has names of
//! its own, whose arguments are passed alike (its handles are structures of one integer, by address), with an optional
//! error code. In MPICH the Fortran functions call those of C, and need no symbols here.
#![expect(unsafe_code, reason = "the functions are entries of another language")]

use std::arch::naked_asm;

macro_rules! jump {
    ($name:expr, $target:ident) => {
        const _: () = {
            unsafe extern "C" {
                fn $target();
            }

            // SAFETY: no other symbol of the library has this name: those of the profiling interface begin with another letter, and
            // the functions of POSIX are those of the C library, to which these pass their calls on.
            #[unsafe(export_name = $name)]
            #[unsafe(naked)]
            extern "C" fn jump() {
                #[cfg(target_arch = "x86_64")]
        naked_asm!("jmp {}", sym $target);
                #[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
        naked_asm!("b {}", sym $target);
                #[cfg(any(target_arch = "riscv64", target_arch = "riscv32"))]
        naked_asm!("tail {}", sym $target);
            }
        };
    };
}

macro_rules! functions {
    ($($c:ident $c_target:ident $fortran:ident $fortran_target:ident;)*) => {
        $(
            jump!(concat!("MPI_", stringify!($c)), $c_target);
            #[cfg(fortran_apart)]
            jump!(concat!("mpi_", stringify!($fortran)), $fortran_target);
            #[cfg(fortran_apart)]
            jump!(concat!("mpi_", stringify!($fortran), "_"), $fortran_target);
            #[cfg(fortran_apart)]
            jump!(concat!("mpi_", stringify!($fortran), "__"), $fortran_target);
            #[cfg(fortran_apart)]
            jump!(concat!("mpi_", stringify!($fortran), "_f08_"), $fortran_target);
        )*
    };
}

functions! {
    Init ti_c_Init init ti_f_init;
    Init_thread ti_c_Init_thread init_thread ti_f_init_thread;
    Finalize ti_c_Finalize finalize ti_f_finalize;
    Send ti_c_Send send ti_f_send;
    Ssend ti_c_Ssend ssend ti_f_ssend;
    Bsend ti_c_Bsend bsend ti_f_bsend;
    Rsend ti_c_Rsend rsend ti_f_rsend;
    Isend ti_c_Isend isend ti_f_isend;
    Issend ti_c_Issend issend ti_f_issend;
    Ibsend ti_c_Ibsend ibsend ti_f_ibsend;
    Irsend ti_c_Irsend irsend ti_f_irsend;
    Send_init ti_c_Send_init send_init ti_f_send_init;
    Ssend_init ti_c_Ssend_init ssend_init ti_f_ssend_init;
    Bsend_init ti_c_Bsend_init bsend_init ti_f_bsend_init;
    Rsend_init ti_c_Rsend_init rsend_init ti_f_rsend_init;
    Recv ti_c_Recv recv ti_f_recv;
    Irecv ti_c_Irecv irecv ti_f_irecv;
    Recv_init ti_c_Recv_init recv_init ti_f_recv_init;
    Sendrecv ti_c_Sendrecv sendrecv ti_f_sendrecv;
    Sendrecv_replace ti_c_Sendrecv_replace sendrecv_replace ti_f_sendrecv_replace;
    Probe ti_c_Probe probe ti_f_probe;
    Iprobe ti_c_Iprobe iprobe ti_f_iprobe;
    Mprobe ti_c_Mprobe mprobe ti_f_mprobe;
    Improbe ti_c_Improbe improbe ti_f_improbe;
    Mrecv ti_c_Mrecv mrecv ti_f_mrecv;
    Imrecv ti_c_Imrecv imrecv ti_f_imrecv;
    Wait ti_c_Wait wait ti_f_wait;
    Test ti_c_Test test ti_f_test;
    Waitall ti_c_Waitall waitall ti_f_waitall;
    Testall ti_c_Testall testall ti_f_testall;
    Waitany ti_c_Waitany waitany ti_f_waitany;
    Testany ti_c_Testany testany ti_f_testany;
    Waitsome ti_c_Waitsome waitsome ti_f_waitsome;
    Testsome ti_c_Testsome testsome ti_f_testsome;
    Start ti_c_Start start ti_f_start;
    Startall ti_c_Startall startall ti_f_startall;
    Cancel ti_c_Cancel cancel ti_f_cancel;
    Request_free ti_c_Request_free request_free ti_f_request_free;
    Request_get_status ti_c_Request_get_status request_get_status ti_f_request_get_status;
    Barrier ti_c_Barrier barrier ti_f_barrier;
    Bcast ti_c_Bcast bcast ti_f_bcast;
    Reduce ti_c_Reduce reduce ti_f_reduce;
    Allreduce ti_c_Allreduce allreduce ti_f_allreduce;
    Scan ti_c_Scan scan ti_f_scan;
    Exscan ti_c_Exscan exscan ti_f_exscan;
    Alltoall ti_c_Alltoall alltoall ti_f_alltoall;
    Allgather ti_c_Allgather allgather ti_f_allgather;
    Gather ti_c_Gather gather ti_f_gather;
    Scatter ti_c_Scatter scatter ti_f_scatter;
    Gatherv ti_c_Gatherv gatherv ti_f_gatherv;
    Scatterv ti_c_Scatterv scatterv ti_f_scatterv;
    Allgatherv ti_c_Allgatherv allgatherv ti_f_allgatherv;
    Alltoallv ti_c_Alltoallv alltoallv ti_f_alltoallv;
    Alltoallw ti_c_Alltoallw alltoallw ti_f_alltoallw;
    Reduce_scatter ti_c_Reduce_scatter reduce_scatter ti_f_reduce_scatter;
    Reduce_scatter_block ti_c_Reduce_scatter_block reduce_scatter_block ti_f_reduce_scatter_block;
    Neighbor_alltoall ti_c_Neighbor_alltoall neighbor_alltoall ti_f_neighbor_alltoall;
    Neighbor_allgather ti_c_Neighbor_allgather neighbor_allgather ti_f_neighbor_allgather;
    Neighbor_allgatherv ti_c_Neighbor_allgatherv neighbor_allgatherv ti_f_neighbor_allgatherv;
    Neighbor_alltoallv ti_c_Neighbor_alltoallv neighbor_alltoallv ti_f_neighbor_alltoallv;
    Neighbor_alltoallw ti_c_Neighbor_alltoallw neighbor_alltoallw ti_f_neighbor_alltoallw;
    Ibarrier ti_c_Ibarrier ibarrier ti_f_ibarrier;
    Ibcast ti_c_Ibcast ibcast ti_f_ibcast;
    Ireduce ti_c_Ireduce ireduce ti_f_ireduce;
    Iallreduce ti_c_Iallreduce iallreduce ti_f_iallreduce;
    Iscan ti_c_Iscan iscan ti_f_iscan;
    Iexscan ti_c_Iexscan iexscan ti_f_iexscan;
    Ialltoall ti_c_Ialltoall ialltoall ti_f_ialltoall;
    Iallgather ti_c_Iallgather iallgather ti_f_iallgather;
    Igather ti_c_Igather igather ti_f_igather;
    Iscatter ti_c_Iscatter iscatter ti_f_iscatter;
    Igatherv ti_c_Igatherv igatherv ti_f_igatherv;
    Iscatterv ti_c_Iscatterv iscatterv ti_f_iscatterv;
    Iallgatherv ti_c_Iallgatherv iallgatherv ti_f_iallgatherv;
    Ialltoallv ti_c_Ialltoallv ialltoallv ti_f_ialltoallv;
    Ialltoallw ti_c_Ialltoallw ialltoallw ti_f_ialltoallw;
    Ireduce_scatter ti_c_Ireduce_scatter ireduce_scatter ti_f_ireduce_scatter;
    Ireduce_scatter_block ti_c_Ireduce_scatter_block ireduce_scatter_block ti_f_ireduce_scatter_block;
    Ineighbor_alltoall ti_c_Ineighbor_alltoall ineighbor_alltoall ti_f_ineighbor_alltoall;
    Ineighbor_allgather ti_c_Ineighbor_allgather ineighbor_allgather ti_f_ineighbor_allgather;
    Ineighbor_allgatherv ti_c_Ineighbor_allgatherv ineighbor_allgatherv ti_f_ineighbor_allgatherv;
    Ineighbor_alltoallv ti_c_Ineighbor_alltoallv ineighbor_alltoallv ti_f_ineighbor_alltoallv;
    Ineighbor_alltoallw ti_c_Ineighbor_alltoallw ineighbor_alltoallw ti_f_ineighbor_alltoallw;
    Comm_dup ti_c_Comm_dup comm_dup ti_f_comm_dup;
    Comm_dup_with_info ti_c_Comm_dup_with_info comm_dup_with_info ti_f_comm_dup_with_info;
    Comm_split ti_c_Comm_split comm_split ti_f_comm_split;
    Comm_split_type ti_c_Comm_split_type comm_split_type ti_f_comm_split_type;
    Comm_create ti_c_Comm_create comm_create ti_f_comm_create;
    Comm_create_group ti_c_Comm_create_group comm_create_group ti_f_comm_create_group;
    Cart_create ti_c_Cart_create cart_create ti_f_cart_create;
    Cart_sub ti_c_Cart_sub cart_sub ti_f_cart_sub;
    Graph_create ti_c_Graph_create graph_create ti_f_graph_create;
    Dist_graph_create ti_c_Dist_graph_create dist_graph_create ti_f_dist_graph_create;
    Dist_graph_create_adjacent ti_c_Dist_graph_create_adjacent dist_graph_create_adjacent ti_f_dist_graph_create_adjacent;
    Intercomm_merge ti_c_Intercomm_merge intercomm_merge ti_f_intercomm_merge;
    Comm_free ti_c_Comm_free comm_free ti_f_comm_free;
    Comm_disconnect ti_c_Comm_disconnect comm_disconnect ti_f_comm_disconnect;
    Win_create ti_c_Win_create win_create ti_f_win_create;
    Win_allocate ti_c_Win_allocate win_allocate ti_f_win_allocate;
    Win_allocate_shared ti_c_Win_allocate_shared win_allocate_shared ti_f_win_allocate_shared;
    Win_create_dynamic ti_c_Win_create_dynamic win_create_dynamic ti_f_win_create_dynamic;
    Win_free ti_c_Win_free win_free ti_f_win_free;
    Win_fence ti_c_Win_fence win_fence ti_f_win_fence;
    Win_start ti_c_Win_start win_start ti_f_win_start;
    Win_post ti_c_Win_post win_post ti_f_win_post;
    Win_complete ti_c_Win_complete win_complete ti_f_win_complete;
    Win_wait ti_c_Win_wait win_wait ti_f_win_wait;
    Win_lock ti_c_Win_lock win_lock ti_f_win_lock;
    Win_unlock ti_c_Win_unlock win_unlock ti_f_win_unlock;
    Win_lock_all ti_c_Win_lock_all win_lock_all ti_f_win_lock_all;
    Win_unlock_all ti_c_Win_unlock_all win_unlock_all ti_f_win_unlock_all;
    Win_flush ti_c_Win_flush win_flush ti_f_win_flush;
    Win_flush_all ti_c_Win_flush_all win_flush_all ti_f_win_flush_all;
    Put ti_c_Put put ti_f_put;
    Get ti_c_Get get ti_f_get;
    Accumulate ti_c_Accumulate accumulate ti_f_accumulate;
    Get_accumulate ti_c_Get_accumulate get_accumulate ti_f_get_accumulate;
    Fetch_and_op ti_c_Fetch_and_op fetch_and_op ti_f_fetch_and_op;
    Compare_and_swap ti_c_Compare_and_swap compare_and_swap ti_f_compare_and_swap;
    Rput ti_c_Rput rput ti_f_rput;
    Rget ti_c_Rget rget ti_f_rget;
    File_open ti_c_File_open file_open ti_f_file_open;
    File_close ti_c_File_close file_close ti_f_file_close;
    File_read ti_c_File_read file_read ti_f_file_read;
    File_read_all ti_c_File_read_all file_read_all ti_f_file_read_all;
    File_read_shared ti_c_File_read_shared file_read_shared ti_f_file_read_shared;
    File_read_ordered ti_c_File_read_ordered file_read_ordered ti_f_file_read_ordered;
    File_write ti_c_File_write file_write ti_f_file_write;
    File_write_all ti_c_File_write_all file_write_all ti_f_file_write_all;
    File_write_shared ti_c_File_write_shared file_write_shared ti_f_file_write_shared;
    File_write_ordered ti_c_File_write_ordered file_write_ordered ti_f_file_write_ordered;
    File_read_at ti_c_File_read_at file_read_at ti_f_file_read_at;
    File_read_at_all ti_c_File_read_at_all file_read_at_all ti_f_file_read_at_all;
    File_write_at ti_c_File_write_at file_write_at ti_f_file_write_at;
    File_write_at_all ti_c_File_write_at_all file_write_at_all ti_f_file_write_at_all;
    Comm_spawn ti_c_Comm_spawn comm_spawn ti_f_comm_spawn;
    Comm_spawn_multiple ti_c_Comm_spawn_multiple comm_spawn_multiple ti_f_comm_spawn_multiple;
    Comm_connect ti_c_Comm_connect comm_connect ti_f_comm_connect;
    Comm_accept ti_c_Comm_accept comm_accept ti_f_comm_accept;
    Intercomm_create ti_c_Intercomm_create intercomm_create ti_f_intercomm_create;
    Comm_idup ti_c_Comm_idup comm_idup ti_f_comm_idup;
    Win_attach ti_c_Win_attach win_attach ti_f_win_attach;
    Win_detach ti_c_Win_detach win_detach ti_f_win_detach;
    Win_flush_local_all ti_c_Win_flush_local_all win_flush_local_all ti_f_win_flush_local_all;
    Win_sync ti_c_Win_sync win_sync ti_f_win_sync;
    Win_test ti_c_Win_test win_test ti_f_win_test;
    Win_flush_local ti_c_Win_flush_local win_flush_local ti_f_win_flush_local;
    Raccumulate ti_c_Raccumulate raccumulate ti_f_raccumulate;
    Rget_accumulate ti_c_Rget_accumulate rget_accumulate ti_f_rget_accumulate;
    File_delete ti_c_File_delete file_delete ti_f_file_delete;
    File_set_size ti_c_File_set_size file_set_size ti_f_file_set_size;
    File_preallocate ti_c_File_preallocate file_preallocate ti_f_file_preallocate;
    File_sync ti_c_File_sync file_sync ti_f_file_sync;
    File_set_atomicity ti_c_File_set_atomicity file_set_atomicity ti_f_file_set_atomicity;
    File_seek ti_c_File_seek file_seek ti_f_file_seek;
    File_seek_shared ti_c_File_seek_shared file_seek_shared ti_f_file_seek_shared;
    File_set_view ti_c_File_set_view file_set_view ti_f_file_set_view;
    Comm_join ti_c_Comm_join comm_join ti_f_comm_join;
    File_iread ti_c_File_iread file_iread ti_f_file_iread;
    File_iread_all ti_c_File_iread_all file_iread_all ti_f_file_iread_all;
    File_iread_shared ti_c_File_iread_shared file_iread_shared ti_f_file_iread_shared;
    File_iread_at ti_c_File_iread_at file_iread_at ti_f_file_iread_at;
    File_iread_at_all ti_c_File_iread_at_all file_iread_at_all ti_f_file_iread_at_all;
    File_read_all_begin ti_c_File_read_all_begin file_read_all_begin ti_f_file_read_all_begin;
    File_read_all_end ti_c_File_read_all_end file_read_all_end ti_f_file_read_all_end;
    File_read_ordered_begin ti_c_File_read_ordered_begin file_read_ordered_begin ti_f_file_read_ordered_begin;
    File_read_ordered_end ti_c_File_read_ordered_end file_read_ordered_end ti_f_file_read_ordered_end;
    File_read_at_all_begin ti_c_File_read_at_all_begin file_read_at_all_begin ti_f_file_read_at_all_begin;
    File_read_at_all_end ti_c_File_read_at_all_end file_read_at_all_end ti_f_file_read_at_all_end;
    File_iwrite ti_c_File_iwrite file_iwrite ti_f_file_iwrite;
    File_iwrite_all ti_c_File_iwrite_all file_iwrite_all ti_f_file_iwrite_all;
    File_iwrite_shared ti_c_File_iwrite_shared file_iwrite_shared ti_f_file_iwrite_shared;
    File_iwrite_at ti_c_File_iwrite_at file_iwrite_at ti_f_file_iwrite_at;
    File_iwrite_at_all ti_c_File_iwrite_at_all file_iwrite_at_all ti_f_file_iwrite_at_all;
    File_write_all_begin ti_c_File_write_all_begin file_write_all_begin ti_f_file_write_all_begin;
    File_write_all_end ti_c_File_write_all_end file_write_all_end ti_f_file_write_all_end;
    File_write_ordered_begin ti_c_File_write_ordered_begin file_write_ordered_begin ti_f_file_write_ordered_begin;
    File_write_ordered_end ti_c_File_write_ordered_end file_write_ordered_end ti_f_file_write_ordered_end;
    File_write_at_all_begin ti_c_File_write_at_all_begin file_write_at_all_begin ti_f_file_write_at_all_begin;
    File_write_at_all_end ti_c_File_write_at_all_end file_write_at_all_end ti_f_file_write_at_all_end;
    Pcontrol ti_c_Pcontrol pcontrol ti_f_pcontrol;
}

/// Names of the persistent collective operations.
#[cfg(any(persistent = "MPI_", persistent = "MPIX_"))]
macro_rules! persistent {
    ($($name:ident $target:ident;)*) => {
        $(
            #[cfg(persistent = "MPI_")]
            jump!(concat!("MPI_", stringify!($name)), $target);
            #[cfg(persistent = "MPIX_")]
            jump!(concat!("MPIX_", stringify!($name)), $target);
        )*
    };
}

#[cfg(any(persistent = "MPI_", persistent = "MPIX_"))]
persistent! {
    Barrier_init ti_c_Barrier_init;
    Bcast_init ti_c_Bcast_init;
    Reduce_init ti_c_Reduce_init;
    Allreduce_init ti_c_Allreduce_init;
    Scan_init ti_c_Scan_init;
    Exscan_init ti_c_Exscan_init;
    Alltoall_init ti_c_Alltoall_init;
    Allgather_init ti_c_Allgather_init;
    Gather_init ti_c_Gather_init;
    Scatter_init ti_c_Scatter_init;
    Gatherv_init ti_c_Gatherv_init;
    Scatterv_init ti_c_Scatterv_init;
    Allgatherv_init ti_c_Allgatherv_init;
    Alltoallv_init ti_c_Alltoallv_init;
    Alltoallw_init ti_c_Alltoallw_init;
    Reduce_scatter_init ti_c_Reduce_scatter_init;
    Reduce_scatter_block_init ti_c_Reduce_scatter_block_init;
    Neighbor_alltoall_init ti_c_Neighbor_alltoall_init;
    Neighbor_allgather_init ti_c_Neighbor_allgather_init;
    Neighbor_allgatherv_init ti_c_Neighbor_allgatherv_init;
    Neighbor_alltoallv_init ti_c_Neighbor_alltoallv_init;
    Neighbor_alltoallw_init ti_c_Neighbor_alltoallw_init;
}

/// Names of the variant whose base is a C pointer.
#[cfg(fortran_apart)]
macro_rules! pointers_of_c {
    ($($name:ident $target:ident;)*) => {
        $(
            jump!(concat!("mpi_", stringify!($name), "_cptr"), $target);
            jump!(concat!("mpi_", stringify!($name), "_cptr_"), $target);
            jump!(concat!("mpi_", stringify!($name), "_cptr__"), $target);
        )*
    };
}

#[cfg(fortran_apart)]
pointers_of_c! {
    win_allocate ti_f_win_allocate;
    win_allocate_shared ti_f_win_allocate_shared;
}

jump!("pdes_tracer_region_begin", ti_c_region_begin);
jump!("pdes_tracer_region_end", ti_c_region_end);

macro_rules! posix_functions {
    ($($name:ident $target:ident;)*) => {
        $(jump!(stringify!($name), $target);)*
    };
}

posix_functions! {
    open ti_p_open;
    open64 ti_p_open64;
    openat ti_p_openat;
    openat64 ti_p_openat64;
    creat ti_p_creat;
    creat64 ti_p_creat64;
    read ti_p_read;
    write ti_p_write;
    readv ti_p_readv;
    writev ti_p_writev;
    pread ti_p_pread;
    pread64 ti_p_pread64;
    pwrite ti_p_pwrite;
    pwrite64 ti_p_pwrite64;
    close ti_p_close;
    fsync ti_p_fsync;
    fdatasync ti_p_fdatasync;
}
