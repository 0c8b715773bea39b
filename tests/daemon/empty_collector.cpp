// SPDX-License-Identifier: Apache-2.0
// Stands in for the preloaded library: the fake targets observe themselves.
extern "C" int crosstalk_empty_collector() { return 0; }
