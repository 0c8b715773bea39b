/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions of a program, marked for crosstalk: `crosstalk report --view regions` says how long each thread was in each,
 * and what it did there. C and C++, no library to link: the functions are there where crosstalk records the program,
 * and elsewhere a mark is a load and a branch that is not taken.
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
 * A region belongs to the thread that begins it, and must be ended there. Regions may lie in others, up to 32 deep; a
 * thread may have 64 different ones, told apart by their names and by what they lie in, and a session 255 names. What
 * is beyond that is counted, but not measured. A region that a thread leaves by longjmp() out of the function that
 * began it, or by ending, ends there. In a child of fork() none is open. An end without a begin does nothing. Any
 * thread may call this at any time, signal handlers too.
 */
#ifndef CROSSTALK_REGION_H
#define CROSSTALK_REGION_H

#ifdef __cplusplus
extern "C" {
#endif

/* Absent (null) where the program is not recorded. */
__attribute__((weak)) void crosstalk_region_begin(const char* name);
__attribute__((weak)) void crosstalk_region_end(void);

/*
 * Begins a region of the calling thread, within the one that it is in. `name` is UTF-8, at most 56 bytes of it count,
 * and it need not stay after the call.
 */
static inline __attribute__((always_inline)) void crosstalk_begin(const char* name) {
  if (crosstalk_region_begin) {
    crosstalk_region_begin(name);
  }
}

/* Ends the region of the calling thread that began last. */
static inline __attribute__((always_inline)) void crosstalk_end(void) {
  if (crosstalk_region_end) {
    crosstalk_region_end();
  }
}

#ifdef __cplusplus
} /* extern "C" */

namespace crosstalk {

/* A region that ends with its scope, by an exception too. */
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
