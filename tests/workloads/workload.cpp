// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace workload {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// When the program began, to tell how long a tick of the time stamp is.
const std::int64_t first_ns = now_ns();
const std::uint64_t first_tick = CostClock::now();

double seconds_a_tick() {
  return static_cast<double>(now_ns() - first_ns) * 1e-9 / static_cast<double>(CostClock::now() - first_tick);
}

constexpr std::size_t max_noted = 128;
pid_t noted_tids[max_noted] = {};

std::string tids_text(const std::vector<std::int32_t>& tids) {
  std::string text;
  for (const std::int32_t tid : tids) {
    text += (text.empty() ? "[" : ",") + std::to_string(tid);
  }
  return text + "]";
}

std::string words_text(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) {
    text += (text.empty() ? "\"" : ",\"") + word + "\"";
  }
  return "[" + text + "]";
}

std::string costs_text(const std::vector<std::vector<double>>& costs) {
  std::string text;
  for (const auto& row : costs) {
    std::string cells;
    for (const double cost : row) {
      char cell[32];
      std::snprintf(cell, sizeof cell, "%s%.6f", cells.empty() ? "" : ",", cost);
      cells += cell;
    }
    text += (text.empty() ? "[[" : ",[") + cells + "]";
  }
  return text.empty() ? "null" : text + "]";
}

std::string plain(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace

Flags& Flags::number(const std::string& name, double initial, double low, double high, const std::string& help) {
  numbers_[name] = {initial, low, high, help};
  return *this;
}

Flags& Flags::choice(const std::string& name, const std::vector<std::string>& words, const std::string& help) {
  choices_[name] = {words.front(), words, help};
  return *this;
}

void Flags::refuse(const std::string& reason) const {
  std::fprintf(stderr, "%s: %s\n", program_.c_str(), reason.c_str());
  std::exit(2);
}

int Flags::integer(const std::string& name) const {
  const double value = real(name);
  if (value != std::floor(value)) {
    refuse(name + " " + plain(value) + " is no whole number");
  }
  return static_cast<int>(value);
}

void Flags::print_help() const {
  std::printf("%s: %s\n", program_.c_str(), purpose_.c_str());
  for (const auto& [name, number] : numbers_) {
    std::printf("  %-16s %s (%g..%g, default %g)\n", name.c_str(), number.help.c_str(), number.low, number.high,
                number.value);
  }
  for (const auto& [name, choice] : choices_) {
    std::printf("  %-16s %s:", name.c_str(), choice.help.c_str());
    for (const auto& word : choice.words) {
      std::printf(" %s", word.c_str());
    }
    std::printf("\n");
  }
  std::exit(0);
}

void Flags::set(const std::string& name, const std::string& text) {
  if (const auto choice = choices_.find(name); choice != choices_.end()) {
    const auto& words = choice->second.words;
    if (std::find(words.begin(), words.end(), text) == words.end()) {
      refuse(name + " " + text + " is not known; see --help");
    }
    choice->second.value = text;
    return;
  }
  const auto number = numbers_.find(name);
  if (number == numbers_.end()) {
    refuse(name + " is no flag of this program; see --help");
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const auto& [initial, low, high, help] = number->second;
  if (text.empty() || *end != '\0' || !(value >= low && value <= high)) {
    refuse(name + " " + text + " is not within " + plain(low) + ".." + plain(high));
  }
  number->second.value = value;
}

void Flags::parse(int argc, char** argv) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--help") {
      print_help();
    }
    if (i + 1 >= argc) {
      refuse(name + " needs a value");
    }
    set(name, argv[i + 1]);
  }
}

std::string matrix_text(const Matrix& matrix) {
  std::string out = "[";
  for (const auto& row : matrix) {
    out += out.size() > 1 ? ",[" : "[";
    for (std::size_t column = 0; column < row.size(); ++column) {
      out += (column > 0 ? "," : "") + std::to_string(row[column]);
    }
    out += "]";
  }
  return out + "]";
}

Deadline::Deadline(double seconds) : begin_ns_(now_ns()), end_ns_(begin_ns_ + std::llround(seconds * 1e9)) {}
bool Deadline::passed() const { return now_ns() >= end_ns_; }
double Deadline::elapsed() const { return static_cast<double>(now_ns() - begin_ns_) * 1e-9; }

Truth::Truth(std::string workload, int threads)
    : workload_(std::move(workload)),
      true_(static_cast<std::size_t>(threads), std::vector<std::uint64_t>(static_cast<std::size_t>(threads))),
      false_(true_),
      invalidations_(true_) {}

void Truth::add_true(int producer, int consumer, std::uint64_t count) {
  true_.at(static_cast<std::size_t>(producer)).at(static_cast<std::size_t>(consumer)) += count;
}

void Truth::add_false(int producer, int consumer, std::uint64_t count) {
  false_.at(static_cast<std::size_t>(producer)).at(static_cast<std::size_t>(consumer)) += count;
}

void Truth::add_invalidations(int writer, int reader, std::uint64_t count) {
  invalidations_.at(static_cast<std::size_t>(writer)).at(static_cast<std::size_t>(reader)) += count;
}

void Truth::add_costs(int consumer, const CostClock& clock) {
  if (true_cost_s_.empty()) {
    true_cost_s_.assign(true_.size(), std::vector<double>(true_.size()));
    false_cost_s_ = true_cost_s_;
  }
  const double tick_s = seconds_a_tick();
  for (std::size_t producer = 0; producer < true_.size(); ++producer) {
    const auto column = static_cast<std::size_t>(consumer);
    true_cost_s_[producer].at(column) += tick_s * clock.ticks(static_cast<int>(producer), Sharing::same_word);
    false_cost_s_[producer].at(column) += tick_s * clock.ticks(static_cast<int>(producer), Sharing::own_words);
  }
}

void Truth::add_data(const std::string& name, const void* begin, std::size_t bytes) {
  data_.push_back(name);
  ranges_.push_back({reinterpret_cast<std::uint64_t>(begin), bytes});
}

std::uint64_t Truth::sum(const Matrix& matrix) {
  std::uint64_t total = 0;
  for (const auto& row : matrix) {
    for (const std::uint64_t count : row) {
      total += count;
    }
  }
  return total;
}

void Truth::print(double seconds, const std::string& extra) const {
  Matrix all = true_;
  for (std::size_t row = 0; row < all.size(); ++row) {
    for (std::size_t column = 0; column < all.size(); ++column) {
      all[row][column] += false_[row][column];
    }
  }
  std::vector<std::int32_t> tids(noted_tids, noted_tids + std::min(all.size(), max_noted));
  tids[0] = getpid();
  std::string more = extra;
  if (accounts != nullptr) {
    more += (more.empty() ? "" : ",") + accounts(tids, ranges_);
  }
  const std::string invalidations = invalidations_unknown.empty()
                                        ? matrix_text(invalidations_)
                                        : "null,\"invalidations_unknown\":\"" + invalidations_unknown + "\"";
  std::printf(
      "{\"workload\":\"%s\",\"threads\":%zu,\"tids\":%s,\"exact\":%s,\"matrix\":%s,\"true_matrix\":%s,\"false_matrix\":"
      "%s,\"true_cost\":%s,\"false_cost\":%s,\"invalidations\":%s,"
      "\"true\":%llu,\"false\":%llu,\"object\":\"%s\",\"data\":%s,\"sync\":%s,\"file\":\"%s\",\"producer_line\":%d,"
      "\"consumer_line\":%d,\"seconds\":%.6f%s%s}\n",
      workload_.c_str(), all.size(), tids_text(tids).c_str(), exact ? "true" : "false", matrix_text(all).c_str(),
      matrix_text(true_).c_str(), matrix_text(false_).c_str(), costs_text(true_cost_s_).c_str(),
      costs_text(false_cost_s_).c_str(), invalidations.c_str(), static_cast<unsigned long long>(sum(true_)),
      static_cast<unsigned long long>(sum(false_)), data_.empty() ? "" : data_.front().c_str(),
      words_text(data_).c_str(), words_text(sync).c_str(), file.c_str(), producer_line, consumer_line, seconds,
      more.empty() ? "" : ",", more.c_str());
  std::fflush(stdout);
}

void note_thread(int index) { note_thread(index, gettid()); }

void note_thread(int index, std::int32_t tid) {
  if (index >= 0 && static_cast<std::size_t>(index) < max_noted) {
    noted_tids[index] = tid;
  }
}

void run_crew(int count, const std::function<void(int)>& body) {
  std::atomic<bool> go{false};
  std::vector<std::thread> crew;
  crew.reserve(static_cast<std::size_t>(count));
  for (int index = 1; index <= count; ++index) {
    crew.emplace_back([&go, &body, index] {
      note_thread(index);
      go.wait(false);
      body(index);
    });
  }
  go.store(true);
  go.notify_all();
  for (auto& thread : crew) {
    thread.join();
  }
}

void yield_processor() { sched_yield(); }

}  // namespace workload
