/* Samples blocks of a program that runs online (docs/online.md): once the time of a block is known, it takes that time without being
   executed. Outside of an online run blocks are executed, and the program needs no library. Needs C99 or C++, and weak symbols. */
#ifndef PDES_SAMPLE_H
#define PDES_SAMPLE_H

/* The next block is executed on each rank until it has been so `samples` times, or from the second time on until the relative standard
   error of its mean time is below `precision` (0: never). It must not call MPI, contain another sampled block, or be left by break, goto or
   return. */
#define PDES_SAMPLE_LOCAL(samples, precision) PDES_SAMPLE_BLOCK(0, samples, precision)
/* The same with samples of all ranks together. */
#define PDES_SAMPLE_GLOBAL(samples, precision) PDES_SAMPLE_BLOCK(1, samples, precision)

#define PDES_SAMPLE_BLOCK(is_global, samples, precision)                                                                                 \
  for (int pdes_sample_runs = pdes_sample_begin(is_global, __FILE__, __LINE__, samples, precision); pdes_sample_runs;                    \
       pdes_sample_runs = pdes_sample_end())

#ifdef __cplusplus
extern "C" {
#endif

/* Defined in online runs only. */
extern int pdes_online_sample_begin(int is_global, const char *file, int line, int samples, double precision) __attribute__((weak));
extern void pdes_online_sample_end(void) __attribute__((weak));

static inline int pdes_sample_begin(int is_global, const char *file, int line, int samples, double precision) {
    return !pdes_online_sample_begin || pdes_online_sample_begin(is_global, file, line, samples, precision);
}

static inline int pdes_sample_end(void) {
    if (pdes_online_sample_end) pdes_online_sample_end();
    return 0;
}

#ifdef __cplusplus
}
#endif
#endif
