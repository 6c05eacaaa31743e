//! The functions that a record may be of, and the layout of their arguments.

use std::sync::LazyLock;

/// Names by number, without `MPI_` if they have it, each with the layout of its arguments in version 1.0:
///
/// | letter | argument |
/// |---|---|
/// | `b` `h` `i` `l` | number of 1, 2, 4, 8 bytes |
/// | `a` `H` | number of elements in 4 bytes, then elements of 4 or 2 bytes |
/// | `A` | number of such arrays in 4 bytes, then the arrays |
/// | `B` `S` `T` | number of bytes, strings, lists of strings in 4 bytes, then these |
/// | `s` | statuses |
/// | `?mn` to `.` or the end | only if the numbers with indices m and n are equal: at the root |
/// | `!` | never recorded |
const TABLE: &str = "
Send ihiih, Recv ihiihs, Get_count shi, Bsend ihiih, Ssend ihiih, Rsend ihiih, Buffer_attach i, Buffer_detach i
Isend ihiihi, Ibsend ihiihi, Issend ihiihi, Irsend ihiihi, Irecv ihiihi, Wait is, Test iis, Request_free i
Waitany iais, Testany iaiis, Waitall ias, Testall iais, Waitsome iaias, Testsome iaias, Iprobe iihis, Probe iihs
Cancel i, Test_cancelled si, Send_init ihiihi, Bsend_init ihiihi, Ssend_init ihiihi, Rsend_init ihiihi
Recv_init ihiihi, Start i, Startall ia, Sendrecv ihiiihiihs, Sendrecv_replace ihiiiihs, Type_contiguous ihh
Type_vector iiihh, Type_hvector iiihh, Type_indexed iaahh, Type_hindexed iaahh, Type_struct iaaHh, Address i
Type_extent hi, Type_size hi, Type_lb hi, Type_ub hi, Type_commit h, Type_free h, Get_elements shi, Pack ihiiih
Unpack iiiihh, Pack_size ihhi, Barrier h, Bcast ihih, Gather iihih?03ih, Gatherv iiihih?04aa.h, Scatter iihih?03ih
Scatterv iihihih?05aa, Allgather ihihh, Allgatherv iihaahh, Alltoall ihihh, Alltoallv iaahaahh, Reduce ihbih
Op_create ib, Op_free b, Allreduce ihbh, Reduce_scatter iahbh, Scan ihbh, Group_size hi, Group_rank hi
Group_translate_ranks hiaha, Group_compare hhb, Comm_group hh, Group_union hhh, Group_intersection hhh
Group_difference hhh, Group_incl hiah, Group_excl hiah, Group_range_incl hiAh, Group_range_excl hiAh, Group_free h
Comm_size hi, Comm_rank hi, Comm_compare hhb, Comm_dup hh, Comm_create hhh, Comm_split hiih, Comm_free h
Comm_test_inter hi, Comm_remote_size hi, Comm_remote_group hh, Intercomm_create hihiih, Intercomm_merge hih
Keyval_create h, Keyval_free h, Attr_put hi, Attr_get hii, Attr_delete hi, Topo_test hb, Cart_create hiaaih
Dims_create iiaa, Graph_create ihiaaih, Graphdims_get hii, Graph_get iihiiaa, Cartdim_get hi, Cart_get ihiaaa
Cart_rank ihai, Cart_coords ihiia, Graph_neighbors_count hii, Graph_neighbors ihiia, Cart_shift hiiii, Cart_sub ihah
Cart_map hiaai, Graph_map ihiaai, Get_processor_name Bi, Get_version ii, Errhandler_create h, Errhandler_set hh
Errhandler_get hh, Errhandler_free h, Error_string iBi, Error_class ii, Wtime, Wtick, Init S, Finalize
Initialized i, Abort hi, Pcontrol !, Close_port B, Comm_accept Bhihh, Comm_connect Bhihh, Comm_disconnect h
Comm_get_parent h, Comm_join ih, Comm_spawn iihh?01BSiha, Comm_spawn_multiple iiihh?12iSTaHa, Lookup_name BhB
Open_port hB, Publish_name BhB, Unpublish_name BhB, Accumulate ihiiihbh, Get ihiiihh, Put ihiiihh, Win_complete h
Win_create iihhh, Win_fence bh, Win_free h, Win_get_group hh, Win_lock bibh, Win_post hbh, Win_start hbh, Win_test hi
Win_unlock ih, Win_wait h, Alltoallw iaaHaaHh, Exscan ihbh, Add_error_class i, Add_error_code ii, Add_error_string iB
Comm_call_errhandler hi, Comm_create_keyval h, Comm_delete_attr hh, Comm_free_keyval h, Comm_get_attr hhi
Comm_get_name hBi, Comm_set_attr hh, Comm_set_name hB, File_call_errhandler hi, Grequest_complete i, Grequest_start i
Init_thread Sbb, Is_thread_main i, Query_thread b, Status_set_cancelled si, Status_set_elements shi
Type_create_keyval h, Type_delete_attr hh, Type_dup hh, Type_free_keyval h, Type_get_attr hhi
Type_get_contents iiihiiiaaH, Type_get_envelope hiiib, Type_get_name hBi, Type_set_attr hh, Type_set_name hB
Type_match_size bih, Win_call_errhandler hi, Win_create_keyval h, Win_delete_attr hh, Win_free_keyval h
Win_get_attr hhi, Win_get_name hBi, Win_set_attr hh, Win_set_name hB, Alloc_mem ih, Comm_create_errhandler h
Comm_get_errhandler hh, Comm_set_errhandler hh, File_create_errhandler h, File_get_errhandler hh
File_set_errhandler hh, Finalized i, Free_mem, Get_address i, Info_create h, Info_delete hB, Info_dup hh
Info_free h, Info_get hBiBi, Info_get_nkeys hi, Info_get_nthkey hiB, Info_get_valuelen hBii, Info_set hBB
Pack_external Bihiii, Pack_external_size Bihi, Request_get_status iis, Type_create_darray iiiaBaabhh
Type_create_hindexed iaahh, Type_create_hvector iiihh, Type_create_indexed_block iiahh, Type_create_resized hiih
Type_create_struct iaaHh, Type_create_subarray iaaabhh, Type_get_extent hii, Type_get_true_extent hii
Unpack_external Biiiih, Win_create_errhandler h, Win_get_errhandler hh, Win_set_errhandler hh, File_open hBbhh
File_close h, File_delete Bh, File_set_size hl, File_preallocate hl, File_get_size hl, File_get_group hh
File_get_amode hb, File_set_info hh, File_get_info hh, File_set_view hlhhBh, File_get_view hlhhB, File_read_at hlihs
File_read_at_all hlihs, File_write_at hlihs, File_write_at_all hlihs, File_iread_at hlihi, File_iwrite_at hlihi
File_read hihs, File_read_all hihs, File_write hihs, File_write_all hihs, File_iread hihi, File_iwrite hihi
File_seek hlb, File_get_position hl, File_get_byte_offset hll, File_read_shared hihs, File_write_shared hihs
File_iread_shared hihi, File_iwrite_shared hihi, File_read_ordered hihs, File_write_ordered hihs, File_seek_shared hlb
File_get_position_shared hl, File_read_at_all_begin hlih, File_read_at_all_end hs, File_write_at_all_begin hlih
File_write_at_all_end hs, File_read_all_begin hih, File_read_all_end hs, File_write_all_begin hih
File_write_all_end hs, File_read_ordered_begin hih, File_read_ordered_end hs, File_write_ordered_begin hih
File_write_ordered_end hs, File_get_type_extent hhi, Register_datarep B, File_set_atomicity hi, File_get_atomicity hi
File_sync h, MPIO_Test iis, MPIO_Wait is, MPIO_Testall iais, MPIO_Waitall ias, MPIO_Testany iaiis, MPIO_Waitany iais
MPIO_Waitsome iaias, MPIO_Testsome iaias";

/// Layouts of earlier versions.
const EARLIER: [(&str, [u8; 3], &str); 3] = [
    ("MPI_Init", [0, 6, 2], "iS"),
    ("MPI_Cart_get", [0, 6, 8], "ihiaai"),
    ("MPI_Type_struct", [0, 6, 9], "iaiHh"),
];

/// A function of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) layout: &'static str,
}

static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let rows = TABLE.split(['\n', ',']).map(str::trim).filter(|row| !row.is_empty());
    let function = |row: &'static str| {
        let (name, layout) = row.split_once(' ').unwrap_or((row, ""));
        let prefix = if name.starts_with("MPIO_") { "" } else { "MPI_" };
        Function { name: format!("{prefix}{name}"), layout }
    };
    rows.map(function).collect()
});

/// Number of counters of each kind in a footer: one for each function, and their sum.
pub(super) const COUNTERS: usize = 291;

/// The number of a record that ends the stream.
pub(super) const END: u16 = 293;

/// Numbers of the records at the begin and the end of functions other than those of MPI, which have an address.
const OTHERS: [u16; 2] = [291, 292];

/// Returns the name of a function.
pub(super) fn name(number: usize) -> Option<&'static str> {
    FUNCTIONS.get(number).map(|function| &*function.name)
}

/// Returns the name of the function of a record, which is empty if it is none of MPI, and the layout in a version.
pub(super) fn find(number: u16, version: [u8; 3]) -> Option<(&'static str, &'static str)> {
    if OTHERS.contains(&number) {
        return Some(("", "l"));
    }
    let Function { name, layout } = FUNCTIONS.get(usize::from(number))?;
    let earlier = EARLIER.iter().find(|(other, until, _)| other == name && version < *until);
    let layout = earlier.map_or(*layout, |(.., layout)| layout);
    (layout != "!").then_some((name, layout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_in_their_places() {
        assert_eq!(FUNCTIONS.len() + 1, COUNTERS);
        let version = [1, 0, 0];
        for (number, expected) in [
            (0, ("MPI_Send", "ihiih")),
            (8, ("MPI_Isend", "ihiihi")),
            (52, ("MPI_Barrier", "h")),
            (65, ("MPI_Allreduce", "ihbh")),
            (124, ("MPI_Init", "S")),
            (125, ("MPI_Finalize", "")),
            (289, ("MPIO_Testsome", "iaias")),
            (291, ("", "l")),
        ] {
            assert_eq!(find(number, version), Some(expected), "{number}");
        }
        assert_eq!(find(124, [0, 6, 1]), Some(("MPI_Init", "iS")));
        assert_eq!([290, 293, 65535].map(|number| find(number, version)), [None; 3]);
    }
}
