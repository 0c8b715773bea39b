// SPDX-License-Identifier: Apache-2.0
// Stands where the preloaded library would: the fake targets observe themselves.
extern "C" int crosstalk_empty_collector() { return 0; }
