// SPDX-License-Identifier: Apache-2.0
// How many lines a thread sweeps over, from those of them that were sampled.
//
// Code that walks through an array touches lines at a fixed distance. A clock's samples fall on them by chance, on all
// alike where each takes as long: how far the sampled ones reach, and how they lie, tells how many there are, those
// that were never sampled included.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace crosstalk::attribution {

/// Samples by address of a line, in bytes.
using LineSamples = std::map<std::uint64_t, std::uint64_t>;

/// Lines at a fixed distance without large gaps.
struct LineCluster {
  std::uint64_t first = 0, last = 0;  // addresses of lines, both included
  std::uint64_t distance = 0;         // bytes from one to the next; 0: there is one line
  double lines = 0;                   // how many there are
  double error = 0;                   // half of the 95 % interval of `lines`, as a part of it
  bool even = true;                   // samples lie as if all lines took about as long
  double samples = 0;
  [[nodiscard]] bool holds(std::uint64_t line) const { return first <= line && line <= last; }
};

/// Clusters in ascending order. A gap that is 16 times the usual one parts two of them: among n lines that are drawn at
/// random, the widest gap is about ln(n) times the mean one.
[[nodiscard]] std::vector<LineCluster> line_clusters(const LineSamples& samples);

/// Threads that run the same code sweep over as many lines each: what the clusters tell of one number together. They
/// stay as they are where one is wider than all of them would have it.
void share_length(std::span<LineCluster*> clusters);

}  // namespace crosstalk::attribution
