/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions of a program, marked for crosstalk: `crosstalk report --view regions` shows each thread's time in each region
 * and the parts of that time. C and C++, no library to link: crosstalk provides the functions when it records the
 * program; otherwise a mark is a load and a branch that is not taken.
 *
 *     crosstalk_begin("assemble");             // C
 *     ...
 *     crosstalk_end();
 *
 *     {                                        // C++
 *       const crosstalk::Region region("solve");
 *       ...
 *     }
 *
 * A region belongs to the thread that begins it, and must be ended there. Regions nest up to 32 deep; a thread may have
 * 64 different ones, distinguished by name and enclosing region, and a session 255 names. Regions beyond that are
 * counted, but not measured. A region ends when its thread ends, or leaves the function that began it by longjmp(). In
 * a child of fork() none is open. An end without a begin does nothing. Any thread may call these functions at any time,
 * even in signal handlers.
 */
#ifndef CROSSTALK_REGION_H
#define CROSSTALK_REGION_H

#ifdef __cplusplus
extern "C" {
#endif

/* Null if the program is not recorded. */
__attribute__((weak)) void crosstalk_region_begin(const char* name);
__attribute__((weak)) void crosstalk_region_end(void);

/*
 * Begins a region of the calling thread, inside its current one. `name` is UTF-8; at most 56 bytes count, and the
 * string need not outlive the call.
 */
static inline __attribute__((always_inline)) void crosstalk_begin(const char* name) {
  if (crosstalk_region_begin) {
    crosstalk_region_begin(name);
  }
}

/* Ends the calling thread's innermost region. */
static inline __attribute__((always_inline)) void crosstalk_end(void) {
  if (crosstalk_region_end) {
    crosstalk_region_end();
  }
}

#ifdef __cplusplus
} /* extern "C" */

namespace crosstalk {

/* A region that ends with its scope, also by an exception. */
class Region {
 public:
  __attribute__((always_inline)) explicit Region(const char* name) { crosstalk_begin(name); }
  __attribute__((always_inline)) ~Region() { crosstalk_end(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
};

}  // namespace crosstalk
#endif

#endif
