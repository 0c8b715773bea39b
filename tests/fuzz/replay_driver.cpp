// SPDX-License-Identifier: Apache-2.0
// Drives a LLVMFuzzerTestOneInput without libFuzzer: every file of the corpus as it is, then random mutations of them
// until the time is up. Without coverage feedback it finds shallow faults; a clang build with -DCROSSTALK_FUZZ=ON digs
// deeper. The input under test is kept in a file while it runs, so that a fatal one can be run again.
//
//   <what>_fuzz [--seconds S] [--seed N] [FILE|FOLDER]...
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;
using Random = std::mt19937_64;
constexpr std::size_t max_input_bytes = 1U << 20U;

struct Settings {
  double seconds = 2;
  std::uint64_t seed = 1;
  std::vector<std::filesystem::path> inputs;
};

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

std::vector<Bytes> read_corpus(const std::vector<std::filesystem::path>& inputs) {
  std::vector<Bytes> corpus;
  for (const auto& input : inputs) {
    if (!std::filesystem::is_directory(input)) {
      corpus.push_back(read_file(input));
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(input)) {
      if (entry.is_regular_file()) {
        corpus.push_back(read_file(entry.path()));
      }
    }
  }
  return corpus;
}

std::size_t below(Random& random, std::size_t bound) {
  return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
}

void overwrite_integer(Bytes& bytes, Random& random) {
  constexpr std::uint64_t interesting[] = {
      0, 1, 7, 8, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff};
  const std::uint64_t value = interesting[below(random, std::size(interesting))];
  const std::size_t width = std::size_t{1} << below(random, 4);
  const std::size_t at = below(random, bytes.size());
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i) {
    bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

void mutate_once(Bytes& bytes, const std::vector<Bytes>& corpus, Random& random) {
  if (bytes.empty()) {
    bytes.resize(1 + below(random, 256));
  }
  const std::size_t at = below(random, bytes.size());
  const auto here = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (below(random, 7)) {
    case 0:
      bytes[at] ^= static_cast<std::uint8_t>(1U << below(random, 8));
      break;
    case 1:
      bytes[at] = static_cast<std::uint8_t>(random());
      break;
    case 2:
      overwrite_integer(bytes, random);
      break;
    case 3:
      bytes.resize(at);
      break;
    case 4:
      bytes.insert(here, 1 + below(random, 32), static_cast<std::uint8_t>(random()));
      break;
    case 5:
      bytes.erase(here, here + static_cast<std::ptrdiff_t>(1 + below(random, bytes.size() - at)));
      break;
    default: {
      const Bytes& other = corpus[below(random, corpus.size())];
      if (!other.empty()) {
        const std::size_t from = below(random, other.size());
        const Bytes piece(other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
        bytes.insert(here, piece.begin(), piece.end());
      }
    }
  }
  if (bytes.size() > max_input_bytes) {
    bytes.resize(max_input_bytes);
  }
}

/// Keeps the input under test in a file, for when it kills the process.
class LastInput {
 public:
  LastInput() : path_(std::string(program_invocation_short_name) + ".last-input") {
    fd_.reset(::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644));
  }
  LastInput(const LastInput&) = delete;
  LastInput& operator=(const LastInput&) = delete;
  ~LastInput() { std::filesystem::remove(path_); }

  void keep(const Bytes& bytes) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes.size())) != 0 ||
        ::pwrite(fd_.get(), bytes.data(), bytes.size(), 0) < 0) {
      std::perror(path_.c_str());
      std::exit(2);
    }
  }

 private:
  std::string path_;
  crosstalk::UniqueFd fd_;
};

void run(const Bytes& bytes, LastInput& last) {
  last.keep(bytes);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

bool parse(int count, char** words, Settings& settings) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if ((word == "--seconds" || word == "--seed") && i + 1 < count) {
      char* end = nullptr;
      const double value = std::strtod(words[++i], &end);
      if (*end != '\0' || value < 0) {
        std::fprintf(stderr, "%s: %s is no number of %s\n", words[0], words[i], word.data() + 2);
        return false;
      }
      if (word == "--seconds") {
        settings.seconds = value;
      } else {
        settings.seed = static_cast<std::uint64_t>(value);
      }
    } else {
      if (!std::filesystem::exists(word)) {
        std::fprintf(stderr, "%s: there is no input %s\n", words[0], words[i]);
        return false;
      }
      settings.inputs.emplace_back(word);
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (!parse(argc, argv, settings)) {
    return 2;
  }
  std::vector<Bytes> corpus = read_corpus(settings.inputs);
  LastInput last;
  for (const Bytes& bytes : corpus) {
    run(bytes, last);
  }
  corpus.emplace_back();  // mutations start from nothing, too
  Random random(settings.seed);
  std::uint64_t runs = corpus.size() - 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(settings.seconds);
  while (std::chrono::steady_clock::now() < end) {
    Bytes bytes = corpus[below(random, corpus.size())];
    for (std::size_t n = 1 + below(random, 8); n > 0; --n) {
      mutate_once(bytes, corpus, random);
    }
    run(bytes, last);
    ++runs;
  }
  std::printf("%llu inputs, no failure\n", static_cast<unsigned long long>(runs));
}
