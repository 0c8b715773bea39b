// SPDX-License-Identifier: Apache-2.0
// Estimates the number of lines that a thread sweeps over from its sampled lines.
//
// Code that walks through an array touches lines at a fixed distance. A clock's samples hit all lines equally if each
// takes as long, so the range and the spacing of the sampled lines give the number of all, unsampled ones included.
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

/// Clusters in ascending order. A gap of 16 times the usual one separates two: among n lines drawn at random, the
/// widest gap is about ln(n) times the mean one.
[[nodiscard]] std::vector<LineCluster> line_clusters(const LineSamples& samples);

/// Merges the clusters of threads that run the same code and so sweep over equally many lines: together they give one
/// number. Does not change them if one is wider than the common number allows.
void share_length(std::span<LineCluster*> clusters);

}  // namespace crosstalk::attribution
