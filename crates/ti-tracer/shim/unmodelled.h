/* Calls that no replay models: recorded by name, with their arguments. */
#ifndef TI_UNMODELLED_H
#define TI_UNMODELLED_H

#include "tracer.h"
#include <string.h>

/* The kinds of values, in src/interface.rs. */
enum { TI_NUMBER, TI_TEXT, TI_LIST, TI_FLAGS, TI_WINDOW, TI_FILE, TI_COMMUNICATOR, TI_NOTHING };
struct argument {
    const char *key;
    int kind, len;
    int64_t number;
    const void *pointer;
};
void ti_unmodelled(const char *function, const struct argument *arguments, int len, int posts);
void ti_forget(int kind, int64_t handle);

#define NUMBER(key, value) (struct argument){key, TI_NUMBER, 0, (int64_t)(value), NULL}
#define TEXT(key, text) (struct argument){key, TI_TEXT, (int)strlen(text), 0, text}
#define BLANK_TEXT(key, text, len) (struct argument){key, TI_TEXT, without_blanks(text, len), 0, text}
#define HANDLE(key, kind, handle, null)                                                              \
    (struct argument){key, (handle) == (null) ? TI_NOTHING : kind, 0, KEY(handle), NULL}
#define WINDOW(key, handle) HANDLE(key, TI_WINDOW, handle, MPI_WIN_NULL)
#define FILE_OF(key, handle) HANDLE(key, TI_FILE, handle, MPI_FILE_NULL)
#define COMMUNICATOR(key, handle) HANDLE(key, TI_COMMUNICATOR, handle, MPI_COMM_NULL)

#define unmodelled(function, posts, ...)                                                             \
    do {                                                                                             \
        const struct argument arguments[] = {__VA_ARGS__};                                           \
        ti_unmodelled(function, arguments, COUNT(arguments), posts);                                 \
    } while (0)

/* Names of the flags in a number; valid until the next such argument of the thread. */
struct flag {
    int bit;
    const char *name;
};
static inline struct argument flags(const char *key, int number, const struct flag *all, int count) {
    static __thread const char *names[16];
    int len = 0;
    for (int i = 0; i < count; i++)
        if (number & all[i].bit) names[len++] = all[i].name;
    return (struct argument){key, TI_FLAGS, len, 0, names};
}
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* The length of a text of Fortran, which blanks fill up; of the hidden lengths only the lower half is known to be set. */
static inline int without_blanks(const char *text, int len) {
    while (len > 0 && text[len - 1] == ' ') len--;
    return len;
}

typedef MPI_Fint *I;

/* A function in C and in Fortran, recorded before the call. The argument lists are in parentheses. */
#define C_CALL(Name, PARAMETERS, ARGUMENTS, ...)                                                     \
    int ti_c_##Name PARAMETERS {                                                                     \
        if (enter()) unmodelled("MPI_" #Name, 0, __VA_ARGS__);                                       \
        int error = PMPI_##Name ARGUMENTS;                                                           \
        leave();                                                                                     \
        return error;                                                                                \
    }
#define F_CALL(Name, name, PARAMETERS, ARGUMENTS, ...)                                               \
    void ti_f_##name(UNWRAP PARAMETERS, I e) {                                                       \
        if (enter()) unmodelled("MPI_" #Name, 0, __VA_ARGS__);                                       \
        CALL_FORTRAN(name, UNWRAP ARGUMENTS);                                                        \
        leave();                                                                                     \
    }

/* A function that creates an object, which is recorded after the call. */
#define C_MAKER(Name, PARAMETERS, ARGUMENTS, ...)                                                    \
    int ti_c_##Name PARAMETERS {                                                                     \
        int is_on = enter();                                                                         \
        int error = PMPI_##Name ARGUMENTS;                                                           \
        if (is_on && error == MPI_SUCCESS) unmodelled("MPI_" #Name, 0, __VA_ARGS__);                 \
        leave();                                                                                     \
        return error;                                                                                \
    }
#define F_MAKER(Name, name, PARAMETERS, ARGUMENTS, ...)                                              \
    void ti_f_##name(UNWRAP PARAMETERS, I e) {                                                       \
        int is_on = enter();                                                                         \
        CALL_FORTRAN(name, UNWRAP ARGUMENTS);                                                        \
        if (is_on && *e == MPI_SUCCESS) unmodelled("MPI_" #Name, 0, __VA_ARGS__);                    \
        leave();                                                                                     \
    }

/* A function that posts a request `q`, the last parameter. */
#define C_POST(Name, PARAMETERS, ARGUMENTS, ...)                                                     \
    int ti_c_##Name(UNWRAP PARAMETERS, MPI_Request *q) {                                             \
        int is_on = enter();                                                                         \
        if (is_on) unmodelled("MPI_" #Name, 1, __VA_ARGS__);                                         \
        int error = PMPI_##Name(UNWRAP ARGUMENTS, q);                                                \
        if (is_on && error == MPI_SUCCESS) ti_bind(KEY(*q), ADDRESS(q), 0);                          \
        leave();                                                                                     \
        return error;                                                                                \
    }
#define F_POST(Name, name, PARAMETERS, ARGUMENTS, ...)                                               \
    void ti_f_##name(UNWRAP PARAMETERS, I q, I e) {                                                  \
        int is_on = enter();                                                                         \
        if (is_on) unmodelled("MPI_" #Name, 1, __VA_ARGS__);                                         \
        CALL_FORTRAN(name, UNWRAP ARGUMENTS, q);                                                     \
        if (is_on && *e == MPI_SUCCESS) ti_bind(KEY(REQUEST(q)), ADDRESS(q), 0);                     \
        leave();                                                                                     \
    }

/* A function that frees the object in its argument and sets it to null. */
#define C_ENDER(Name, Type, KIND, key)                                                               \
    int ti_c_##Name(Type *h) {                                                                       \
        int is_on = enter();                                                                         \
        int64_t handle = KEY(*h);                                                                    \
        if (is_on) unmodelled("MPI_" #Name, 0, (struct argument){key, KIND, 0, handle, NULL});       \
        int error = PMPI_##Name(h);                                                                  \
        if (is_on && error == MPI_SUCCESS) ti_forget(KIND, handle);                                  \
        leave();                                                                                     \
        return error;                                                                                \
    }
#define F_ENDER(Name, name, CONVERT, KIND, key)                                                      \
    void ti_f_##name(I h, I e) {                                                                     \
        int is_on = enter();                                                                         \
        int64_t handle = KEY(CONVERT(h));                                                            \
        if (is_on) unmodelled("MPI_" #Name, 0, (struct argument){key, KIND, 0, handle, NULL});       \
        CALL_FORTRAN(name, h);                                                                       \
        if (is_on && *e == MPI_SUCCESS) ti_forget(KIND, handle);                                     \
        leave();                                                                                     \
    }

#endif
