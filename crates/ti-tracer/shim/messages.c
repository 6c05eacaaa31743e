/* Messages and probes. Sends are recorded before the call, so that the record of a message exists before its receive completes. */
#include "tracer.h"

/* Status of a blocking call: the program's, or the tracer's if the program ignores it. */
#define C_STATUS(status)                                                                             \
    MPI_Status own_status;                                                                           \
    MPI_Status *seen = (status) == MPI_STATUS_IGNORE ? &own_status : (status)
#define F_STATUS(status)                                                                             \
    MPI_Fint own_status[F_STATUS_INTS];                                                              \
    MPI_Fint *seen = (status) == MPI_F_STATUS_IGNORE ? own_status : (status)

static MPI_Status f_status(const MPI_Fint *status) {
    MPI_Status converted;
    PMPI_Status_f2c(status, &converted);
    return converted;
}

#define SEND(Name, name)                                                                             \
    int ti_c_##Name(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {             \
        int is_on = enter();                                                                         \
        if (is_on) ti_send(#name, peer(to), tag, bytes_of(n, t), KEY(c));                            \
        int error = PMPI_##Name(b, n, t, to, tag, c);                                                \
        check(is_on, error);                                                                         \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    void ti_f_##name(void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *to, MPI_Fint *tag, MPI_Fint *c,    \
                     MPI_Fint *e) {                                                                  \
        int is_on = enter();                                                                         \
        if (is_on) ti_send(#name, peer(*to), *tag, bytes_of(*n, TYPE(t)), KEY(COMM(c)));             \
        CALL_FORTRAN(name, b, n, t, to, tag, c);                                                     \
        check(is_on, *e);                                                                            \
        leave();                                                                                     \
    }

SEND(Send, send)
SEND(Ssend, ssend)
SEND(Bsend, bsend)
SEND(Rsend, rsend)

#define ISEND(Name, name, IS_PERSISTENT)                                                             \
    int ti_c_##Name(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c,               \
                    MPI_Request *r) {                                                                \
        int is_on = enter();                                                                         \
        if (is_on) ti_isend(#name, peer(to), tag, bytes_of(n, t), KEY(c));                            \
        int error = PMPI_##Name(b, n, t, to, tag, c, r);                                             \
        check(is_on, error);                                                                         \
        if (is_on && error == MPI_SUCCESS) ti_bind(KEY(*r), ADDRESS(r), IS_PERSISTENT);              \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    void ti_f_##name(void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *to, MPI_Fint *tag, MPI_Fint *c,    \
                     MPI_Fint *r, MPI_Fint *e) {                                                     \
        int is_on = enter();                                                                         \
        if (is_on) ti_isend(#name, peer(*to), *tag, bytes_of(*n, TYPE(t)), KEY(COMM(c)));             \
        CALL_FORTRAN(name, b, n, t, to, tag, c, r);                                                  \
        check(is_on, *e);                                                                            \
        if (is_on && *e == MPI_SUCCESS) ti_bind(KEY(REQUEST(r)), ADDRESS(r), IS_PERSISTENT);         \
        leave();                                                                                     \
    }

ISEND(Isend, isend, 0)
ISEND(Issend, issend, 0)
ISEND(Ibsend, ibsend, 0)
ISEND(Irsend, irsend, 0)
ISEND(Send_init, send_init, 1)
ISEND(Ssend_init, ssend_init, 1)
ISEND(Bsend_init, bsend_init, 1)
ISEND(Rsend_init, rsend_init, 1)

#define IRECV(Name, name, IS_PERSISTENT)                                                             \
    int ti_c_##Name(void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r) { \
        int is_on = enter();                                                                         \
        if (is_on) ti_irecv(#name, peer(from), tag_or_any(tag), bytes_of(n, t), KEY(c));              \
        int error = PMPI_##Name(b, n, t, from, tag, c, r);                                           \
        check(is_on, error);                                                                         \
        if (is_on && error == MPI_SUCCESS) ti_bind(KEY(*r), ADDRESS(r), IS_PERSISTENT);              \
        leave();                                                                                     \
        return error;                                                                                \
    }                                                                                                \
    void ti_f_##name(void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *from, MPI_Fint *tag, MPI_Fint *c,  \
                     MPI_Fint *r, MPI_Fint *e) {                                                     \
        int is_on = enter();                                                                         \
        if (is_on) ti_irecv(#name, peer(*from), tag_or_any(*tag), bytes_of(*n, TYPE(t)), KEY(COMM(c))); \
        CALL_FORTRAN(name, b, n, t, from, tag, c, r);                                                \
        check(is_on, *e);                                                                            \
        if (is_on && *e == MPI_SUCCESS) ti_bind(KEY(REQUEST(r)), ADDRESS(r), IS_PERSISTENT);         \
        leave();                                                                                     \
    }

IRECV(Irecv, irecv, 0)
IRECV(Recv_init, recv_init, 1)

/* Size of the buffer of a receive, or of the message that it took if that is longer: it did not get all of it, and goes on. */
static int64_t room(int64_t bytes, int error, const MPI_Status *status) {
    int64_t size = error == MPI_SUCCESS ? 0 : size_of_message(status);
    return size > bytes ? size : bytes;
}

static void received(int from, int tag, int64_t bytes, MPI_Comm c, int error, const MPI_Status *status) {
    ti_recv(peer(from), tag_or_any(tag), room(bytes, error, status), KEY(c), status->MPI_SOURCE, status->MPI_TAG);
}

int ti_c_Recv(void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *status) {
    int is_on = enter();
    C_STATUS(status);
    if (is_on) ti_begin_recv(peer(from), tag_or_any(tag), bytes_of(n, t), KEY(c));
    int error = PMPI_Recv(b, n, t, from, tag, c, seen);
    if (has_received(is_on, error)) received(from, tag, bytes_of(n, t), c, error, seen);
    leave();
    return error;
}

void ti_f_recv(void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *from, MPI_Fint *tag, MPI_Fint *c, MPI_Fint *status,
               MPI_Fint *e) {
    int is_on = enter();
    F_STATUS(status);
    if (is_on) ti_begin_recv(peer(*from), tag_or_any(*tag), bytes_of(*n, TYPE(t)), KEY(COMM(c)));
    CALL_FORTRAN(recv, b, n, t, from, tag, c, seen);
    if (has_received(is_on, *e)) {
        MPI_Status converted = f_status(seen);
        received(*from, *tag, bytes_of(*n, TYPE(t)), COMM(c), *e, &converted);
    }
    leave();
}

/* A combined send and receive: begun, or received with a status. */
struct exchanging {
    const char *verb;
    struct exchange exchange;
};

static struct exchanging exchanging(int is_on, const char *verb, int to, int send_tag, int64_t send_bytes, int from,
                                    int recv_tag, int64_t recv_bytes, MPI_Comm c) {
    struct exchanging call = {
        verb, {peer(to), send_tag, send_bytes, peer(from), tag_or_any(recv_tag), recv_bytes, KEY(c), 0, 0}};
    if (is_on) ti_begin_send_recv(verb, &call.exchange);
    return call;
}

static void exchanged(struct exchanging call, int error, const MPI_Status *status) {
    call.exchange.recv_bytes = room(call.exchange.recv_bytes, error, status);
    call.exchange.actual_source = status->MPI_SOURCE;
    call.exchange.actual_tag = status->MPI_TAG;
    ti_send_recv(call.verb, &call.exchange);
}

int ti_c_Sendrecv(const void *s, int sn, MPI_Datatype st, int to, int stag, void *b, int n, MPI_Datatype t,
                  int from, int tag, MPI_Comm c, MPI_Status *status) {
    int is_on = enter();
    C_STATUS(status);
    struct exchanging call =
        exchanging(is_on, "sendRecv", to, stag, bytes_of(sn, st), from, tag, bytes_of(n, t), c);
    int error = PMPI_Sendrecv(s, sn, st, to, stag, b, n, t, from, tag, c, seen);
    if (has_received(is_on, error)) exchanged(call, error, seen);
    leave();
    return error;
}

void ti_f_sendrecv(void *s, MPI_Fint *sn, MPI_Fint *st, MPI_Fint *to, MPI_Fint *stag, void *b, MPI_Fint *n,
                   MPI_Fint *t, MPI_Fint *from, MPI_Fint *tag, MPI_Fint *c, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    F_STATUS(status);
    struct exchanging call = exchanging(is_on, "sendRecv", *to, *stag, bytes_of(*sn, TYPE(st)), *from, *tag,
                                        bytes_of(*n, TYPE(t)), COMM(c));
    CALL_FORTRAN(sendrecv, s, sn, st, to, stag, b, n, t, from, tag, c, seen);
    if (has_received(is_on, *e)) {
        MPI_Status converted = f_status(seen);
        exchanged(call, *e, &converted);
    }
    leave();
}

int ti_c_Sendrecv_replace(void *b, int n, MPI_Datatype t, int to, int stag, int from, int tag, MPI_Comm c,
                          MPI_Status *status) {
    int is_on = enter();
    C_STATUS(status);
    int64_t bytes = bytes_of(n, t);
    struct exchanging call = exchanging(is_on, "sendRecv_replace", to, stag, bytes, from, tag, bytes, c);
    int error = PMPI_Sendrecv_replace(b, n, t, to, stag, from, tag, c, seen);
    if (has_received(is_on, error)) exchanged(call, error, seen);
    leave();
    return error;
}

void ti_f_sendrecv_replace(void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *to, MPI_Fint *stag, MPI_Fint *from,
                           MPI_Fint *tag, MPI_Fint *c, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    F_STATUS(status);
    int64_t bytes = bytes_of(*n, TYPE(t));
    struct exchanging call =
        exchanging(is_on, "sendRecv_replace", *to, *stag, bytes, *from, *tag, bytes, COMM(c));
    CALL_FORTRAN(sendrecv_replace, b, n, t, to, stag, from, tag, c, seen);
    if (has_received(is_on, *e)) {
        MPI_Status converted = f_status(seen);
        exchanged(call, *e, &converted);
    }
    leave();
}

static void begin_probe(int is_on, int from, int tag, MPI_Comm c) {
    if (is_on) ti_begin_probe(peer(from), tag_or_any(tag), KEY(c));
}

static void probed(int from, int tag, MPI_Comm c, int found, const MPI_Status *status) {
    int is_there = found != 0;
    ti_probe(peer(from), tag_or_any(tag), KEY(c), found, is_there ? status->MPI_SOURCE : 0,
             is_there ? status->MPI_TAG : 0);
}

int ti_c_Probe(int from, int tag, MPI_Comm c, MPI_Status *status) {
    int is_on = enter();
    C_STATUS(status);
    begin_probe(is_on, from, tag, c);
    int error = PMPI_Probe(from, tag, c, seen);
    check(is_on, error);
    if (is_on && error == MPI_SUCCESS) probed(from, tag, c, -1, seen);
    leave();
    return error;
}

void ti_f_probe(MPI_Fint *from, MPI_Fint *tag, MPI_Fint *c, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    F_STATUS(status);
    begin_probe(is_on, *from, *tag, COMM(c));
    CALL_FORTRAN(probe, from, tag, c, seen);
    check(is_on, *e);
    if (is_on && *e == MPI_SUCCESS) {
        MPI_Status converted = f_status(seen);
        probed(*from, *tag, COMM(c), -1, &converted);
    }
    leave();
}

int ti_c_Iprobe(int from, int tag, MPI_Comm c, int *flag, MPI_Status *status) {
    int is_on = enter();
    C_STATUS(status);
    int error = PMPI_Iprobe(from, tag, c, flag, seen);
    check(is_on, error);
    if (is_on && error == MPI_SUCCESS) probed(from, tag, c, *flag != 0, seen);
    leave();
    return error;
}

void ti_f_iprobe(MPI_Fint *from, MPI_Fint *tag, MPI_Fint *c, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    F_STATUS(status);
    CALL_FORTRAN(iprobe, from, tag, c, flag, seen);
    check(is_on, *e);
    if (is_on && *e == MPI_SUCCESS) {
        MPI_Status converted = f_status(seen);
        probed(*from, *tag, COMM(c), *flag != 0, &converted);
    }
    leave();
}

/* Matched messages (MPI_Mprobe), received by handle. */
static void matched(int from, int tag, MPI_Comm c, int found, MPI_Message message, const MPI_Status *status) {
    probed(from, tag, c, found, status);
    if (found)
        ti_matched(KEY(message), peer(status->MPI_SOURCE), tag_or_any(status->MPI_TAG), size_of_message(status), KEY(c));
}

static void receive_matched(MPI_Message message, int64_t bytes, int posts) {
    /* There may be any number of receives of this message, also without a probe. */
    if (message == MPI_MESSAGE_NO_PROC)
        ti_matched(KEY(message), peer(MPI_PROC_NULL), tag_or_any(MPI_ANY_TAG), 0, KEY(MPI_COMM_WORLD));
    ti_receive_matched(KEY(message), bytes, posts);
}

int ti_c_Mprobe(int from, int tag, MPI_Comm c, MPI_Message *message, MPI_Status *status) {
    int is_on = enter();
    C_STATUS(status);
    begin_probe(is_on, from, tag, c);
    int error = PMPI_Mprobe(from, tag, c, message, seen);
    check(is_on, error);
    if (is_on && error == MPI_SUCCESS) matched(from, tag, c, -1, *message, seen);
    leave();
    return error;
}

void ti_f_mprobe(MPI_Fint *from, MPI_Fint *tag, MPI_Fint *c, MPI_Fint *message, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    F_STATUS(status);
    begin_probe(is_on, *from, *tag, COMM(c));
    CALL_FORTRAN(mprobe, from, tag, c, message, seen);
    check(is_on, *e);
    if (is_on && *e == MPI_SUCCESS) {
        MPI_Status converted = f_status(seen);
        matched(*from, *tag, COMM(c), -1, PMPI_Message_f2c(*message), &converted);
    }
    leave();
}

int ti_c_Improbe(int from, int tag, MPI_Comm c, int *flag, MPI_Message *message, MPI_Status *status) {
    int is_on = enter();
    C_STATUS(status);
    int error = PMPI_Improbe(from, tag, c, flag, message, seen);
    check(is_on, error);
    if (is_on && error == MPI_SUCCESS) matched(from, tag, c, *flag != 0, *message, seen);
    leave();
    return error;
}

void ti_f_improbe(MPI_Fint *from, MPI_Fint *tag, MPI_Fint *c, MPI_Fint *flag, MPI_Fint *message, MPI_Fint *status,
                  MPI_Fint *e) {
    int is_on = enter();
    F_STATUS(status);
    CALL_FORTRAN(improbe, from, tag, c, flag, message, seen);
    check(is_on, *e);
    if (is_on && *e == MPI_SUCCESS) {
        MPI_Status converted = f_status(seen);
        matched(*from, *tag, COMM(c), *flag != 0, PMPI_Message_f2c(*message), &converted);
    }
    leave();
}

int ti_c_Mrecv(void *b, int n, MPI_Datatype t, MPI_Message *message, MPI_Status *status) {
    int is_on = enter();
    if (is_on) receive_matched(*message, bytes_of(n, t), 0);
    int error = PMPI_Mrecv(b, n, t, message, status);
    check(is_on, error);
    leave();
    return error;
}

void ti_f_mrecv(void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *message, MPI_Fint *status, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) receive_matched(PMPI_Message_f2c(*message), bytes_of(*n, TYPE(t)), 0);
    CALL_FORTRAN(mrecv, b, n, t, message, status);
    check(is_on, *e);
    leave();
}

int ti_c_Imrecv(void *b, int n, MPI_Datatype t, MPI_Message *message, MPI_Request *r) {
    int is_on = enter();
    if (is_on) receive_matched(*message, bytes_of(n, t), 1);
    int error = PMPI_Imrecv(b, n, t, message, r);
    check(is_on, error);
    if (is_on && error == MPI_SUCCESS) ti_bind(KEY(*r), ADDRESS(r), 0);
    leave();
    return error;
}

void ti_f_imrecv(void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *message, MPI_Fint *r, MPI_Fint *e) {
    int is_on = enter();
    if (is_on) receive_matched(PMPI_Message_f2c(*message), bytes_of(*n, TYPE(t)), 1);
    CALL_FORTRAN(imrecv, b, n, t, message, r);
    check(is_on, *e);
    if (is_on && *e == MPI_SUCCESS) ti_bind(KEY(REQUEST(r)), ADDRESS(r), 0);
    leave();
}
