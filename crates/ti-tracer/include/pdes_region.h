/* Names regions of a program for pdes-replay: its tracer (docs/acquisition.md), and runs online. Without their libraries, which are
   preloaded, the calls do nothing, and the program needs no library. Needs a compiler with weak symbols. */
#ifndef PDES_REGION_H
#define PDES_REGION_H

#ifdef __cplusplus
extern "C" {
#endif

/* Defined by the preloaded libraries only. */
extern void pdes_tracer_region_begin(const char *name) __attribute__((weak));
extern void pdes_tracer_region_end(void) __attribute__((weak));

/* Begins a region: what follows belongs to it, until it ends. Regions may be nested. */
static inline void pdes_region_begin(const char *name) {
    if (pdes_tracer_region_begin) pdes_tracer_region_begin(name);
}

/* Ends the region that was begun last. */
static inline void pdes_region_end(void) {
    if (pdes_tracer_region_end) pdes_tracer_region_end();
}

#ifdef __cplusplus
}
#endif
#endif
