// SPDX-License-Identifier: Apache-2.0
// A machine's figures as tables: one row for each kind, one column for each thing that differs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "driver/options/calibrate_options.h"
#include "driver/terminal/layout.h"

namespace crosstalk::driver {
namespace {

using models::Figure;
using models::Level;
using models::Machine;
using models::Operation;
using models::Precision;
using models::Scope;
using models::Traffic;
using models::Width;

constexpr int most_figure_columns = 15;
constexpr double doubtful = 0.05;  // a spread that deserves a mark

/// "31.2 G", three digits.
std::string scaled(double value) {
  constexpr std::array units = {"", " k", " M", " G", " T", " P"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f}{}", value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, units[unit]);
}

class Tables {
 public:
  Tables(const Machine& machine, const TextStyle& style) : machine_(machine), canvas_(style) {}

  std::string render() {
    head();
    frequency();
    floating_point();
    memory();
    instructions();
    accesses();
    limits();
    groups();
    sparse();
    pairs();
    notes();
    return canvas_.take();
  }

 private:
  using Form = std::string (*)(double);
  struct Reason {  // why figures are absent
    std::string words;
    unsigned figures;
  };

  /// Returns a figure in its column: '-' if there is no such figure, or "absent"; '~' marks a figure whose tries
  /// disagree.
  std::string cell(const Figure* figure, Form form) {
    std::string text = "-";
    if (figure != nullptr && figure->value) {
      const bool badly = figure->spread > doubtful;
      any_doubtful_ = any_doubtful_ || badly;
      text = (badly ? "~" : "") + form(*figure->value);
    } else if (figure != nullptr) {
      text = "absent";
      const auto same = std::find_if(reasons_.begin(), reasons_.end(),
                                     [&](const Reason& known) { return known.words == figure->refused; });
      same != reasons_.end() ? void(++same->figures) : reasons_.push_back({figure->refused, 1});
    }
    return pad_left(text, figure_columns_);
  }

  void row(const std::string& name, const std::string& cells) {
    canvas_.line("  " + pad_right(name, name_columns()) + cells);
  }

  [[nodiscard]] int name_columns() const { return canvas_.width() < 80 ? 18 : 26; }

  /// Begins a table.
  void heading(const std::string& title, const std::string& note, std::initializer_list<const char*> names) {
    canvas_.heading(title, note);
    const int count = std::max(1, static_cast<int>(names.size()));
    figure_columns_ = std::min(most_figure_columns, (canvas_.width() - 2 - name_columns()) / count);
    std::string cells;
    for (const char* const name : names) {
      cells += pad_left(name, figure_columns_);
    }
    if (names.size() > 0) {
      canvas_.line(canvas_.colored("  " + pad_right("", name_columns()) + cells, Hue::faint));
    }
  }

  void head() {
    const Machine& m = machine_;
    canvas_.line(canvas_.colored(canvas_.clean(m.identity.name), Hue::strong));
    std::string text = fmt::format("{} processor{}", m.processors.size(), m.processors.size() == 1 ? "" : "s");
    for (std::uint32_t level = 1; level <= 3; ++level) {
      if (const models::Cache* const cache = m.cache_of(level)) {
        text += fmt::format(", {} {}", level == 1 ? "L1D" : level == 2 ? "L2" : "L3", bytes_text(cache->bytes));
        text += cache->cpus.size() > 1 ? fmt::format(" for {}", cache->cpus.size()) : "";
      }
    }
    text += fmt::format("; memory {}; measured in {}", bytes_text(m.memory_bytes), seconds_text(m.measuring_s));
    canvas_.paragraph("", text);
  }

  static std::string hertz(double value) { return scaled(value) + "Hz"; }
  static std::string flops(double value) { return scaled(value) + "flop/s"; }
  static std::string bytes(double value) { return scaled(value) + "B/s"; }
  static std::string rate(double value) { return scaled(value) + "/s"; }

  void frequency() {
    const models::Frequency& f = machine_.frequency;
    heading("Frequency", "that the cores run at", {});
    row("one core", cell(&f.one_core_hz, hertz));
    row("all cores", cell(&f.all_cores_hz, hertz));
    for (const auto& [name, figure] :
         {std::pair("after AVX2", &f.after_avx2_hz), std::pair("after AVX-512", &f.after_avx512_hz)}) {
      if (figure->value) {
        row(name, cell(figure, hertz));
      }
    }
    if (f.tsc_hz) {
      row("time-stamp counter", pad_left(hertz(*f.tsc_hz), figure_columns_));
    }
  }

  void floating_point() {
    for (const Scope scope : {Scope::one_core, Scope::all_cores}) {
      heading("Floating point", scope == Scope::one_core ? "one core" : "all cores together",
              {"add", "multiply", "multiply-add"});
      for (const Precision precision : models::all_precisions) {
        for (const Width width : models::all_widths) {
          if (machine_.flops_of(width, precision, Operation::add, scope) != nullptr) {
            std::string cells;
            for (const Operation operation : models::all_operations) {
              cells += cell(machine_.flops_of(width, precision, operation, scope), flops);
            }
            row(std::string(name(precision)) + " " + std::string(name(width)), cells);
          }
        }
      }
    }
  }

  void memory() {
    for (const Scope scope : {Scope::one_core, Scope::all_cores}) {
      heading("Bytes moved", scope == Scope::one_core ? "one core" : "all cores together",
              {"L1D", "L2", "L3", "memory"});
      for (std::size_t i = 0; i < models::names<Traffic>().size(); ++i) {
        const auto traffic = static_cast<Traffic>(i);
        row(spoken(name(traffic)),
            over_levels([&](Level level) { return machine_.bandwidth_of(level, traffic, scope); }, bytes));
      }
      if (scope == Scope::one_core) {
        row("latency of a load", over_levels([&](Level level) { return machine_.latency_of(level); }, seconds_text));
      }
    }
  }

  void instructions() {
    heading("Instructions", "one core", {});
    for (const models::InstructionRate& each : machine_.instructions) {
      row(spoken(name(each.instruction)), cell(&each.per_s, rate));
    }
    heading("Chains", "each waits for the one before; data in L1D", {});
    for (const models::ChainTime& each : machine_.chains) {
      row(spoken(name(each.chain)), cell(&each.seconds, seconds_text));
    }
  }

  static std::string spoken(std::string_view name) {
    std::string text(name);
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
  }

  static std::string plain(double value) { return fmt::format("{:.{}f}", value, value < 10 ? 2 : 0); }

  std::string over_levels(const std::function<const Figure*(Level)>& figure, Form form) {
    std::string cells;
    for (const Level level : models::all_levels) {
      cells += cell(figure(level), form);
    }
    return cells;
  }

  /// Loads by each width, and each mix by the widest one.
  void accesses() {
    std::uint32_t most_threads = 1;
    Width widest = Width::scalar;
    for (const models::AccessRate& each : machine_.accesses) {
      most_threads = std::max(most_threads, each.threads);
      widest = std::max(widest, each.width);
    }
    for (std::uint32_t threads = 1; threads <= most_threads && !machine_.accesses.empty();
         threads = threads == 1 && most_threads > 1 ? most_threads : most_threads + 1) {
      heading("Bytes loaded and stored", threads == 1 ? "one thread, by loads to stores" : "a thread on each core",
              {"L1D", "L2", "L3", "memory"});
      for (std::size_t width = 0; width < models::names<Width>().size(); ++width) {
        for (std::size_t mix = 0; mix < models::names<models::Mix>().size(); ++mix) {
          const auto w = static_cast<Width>(width);
          if (w > widest || (mix != 0 && w != widest)) {
            continue;
          }
          row(fmt::format("{} {}", name(w), models::names<models::Mix>()[mix]),
              over_levels(
                  [&](Level level) { return machine_.accesses_of(level, w, static_cast<models::Mix>(mix), threads); },
                  bytes));
        }
      }
    }
  }

  void limits() {
    if (machine_.kinds.empty()) {
      return;
    }
    heading("Limits of a core", "instructions a cycle, and in the re-order buffer", {"a cycle", "buffered"});
    for (const models::KindLimits& each : machine_.kinds) {
      row(spoken(name(each.kind)), cell(&each.per_cycle, plain) + cell(&each.buffer, plain));
    }
    heading("Latency of doubles", "", {"add", "multiply", "multiply-add"});
    for (std::size_t width = 0; width < models::names<Width>().size(); ++width) {
      const auto w = static_cast<Width>(width);
      if (latency_of(w, Operation::add) != nullptr) {
        row(std::string(name(w)), cell(latency_of(w, Operation::add), seconds_text) +
                                      cell(latency_of(w, Operation::mul), seconds_text) +
                                      cell(latency_of(w, Operation::fma), seconds_text));
      }
    }
  }

  [[nodiscard]] const Figure* latency_of(Width width, Operation operation) const {
    const auto found = std::find_if(
        machine_.flop_latencies.begin(), machine_.flop_latencies.end(), [&](const models::FlopLatency& each) {
          return each.width == width && each.operation == operation && each.precision == Precision::double_precision;
        });
    return found == machine_.flop_latencies.end() ? nullptr : &found->seconds;
  }

  [[nodiscard]] const Figure* at_ridge(Level level, Width width, models::Kind kind) const {
    const models::RidgeRate* const ridge = machine_.ridge_of(level, width, kind);
    return ridge == nullptr ? nullptr : &ridge->per_cycle;
  }

  void groups() {
    if (machine_.groups.empty()) {
      return;
    }
    heading("Loads and stores a cycle", "two loads and a store in turns; alone, and beside others at the ridge",
            {"L1D", "L2", "L3", "memory"});
    for (const Width width : models::all_widths) {
      if (machine_.most_of_groups(Level::l1d, width) == nullptr) {
        continue;
      }
      row(std::string(name(width)),
          over_levels([&](Level level) { return machine_.most_of_groups(level, width); }, plain));
      for (const models::Kind kind : {models::Kind::integer_add, models::kind_of(width)}) {
        row(fmt::format("  with {}", spoken(name(kind))),
            over_levels([&](Level level) { return at_ridge(level, width, kind); }, plain));
      }
    }
  }

  void sparse() {
    if (machine_.sparse_roofs.empty()) {
      return;
    }
    heading("Sparse products", "bytes by one core or all; matrix in", {"L1D", "L2", "L3", "memory"});
    for (const Scope scope : {Scope::one_core, Scope::all_cores}) {
      for (const Level vector : models::all_levels) {
        row(fmt::format("{}, x in {}", scope == Scope::one_core ? "one" : "all", name(vector)),
            over_levels(
                [&](Level matrix) -> const Figure* {
                  const auto found = std::find_if(machine_.sparse_roofs.begin(), machine_.sparse_roofs.end(),
                                                  [&](const models::SparseRoof& s) {
                                                    return s.matrix == matrix && s.vector == vector && s.scope == scope;
                                                  });
                  return found == machine_.sparse_roofs.end() ? nullptr : &found->bytes_per_s;
                },
                bytes));
      }
    }
    heading("Pairs of matrices", "by cores, non-zeros a row, and level", {"worst", "best"});
    for (const models::SparseBand& each : machine_.sparse_bands) {
      row(fmt::format("{}, {}, {}", each.scope == Scope::one_core ? "one" : "all", each.row_nonzeros,
                      name(each.matrix)),
          cell(&each.worst, flops) + cell(&each.best, flops));
    }
  }

  void pairs() {
    if (machine_.pairs.empty()) {
      return;
    }
    constexpr std::size_t most = 12;
    heading("A line between processors", "", {"transfer", "contended add"});
    for (std::size_t i = 0; i < std::min(most, machine_.pairs.size()); ++i) {
      const models::ProcessorPair& pair = machine_.pairs[i];
      row(fmt::format("{} and {}", pair.a, pair.b),
          cell(&pair.transfer_s, seconds_text) + cell(&pair.contended_add_s, seconds_text));
    }
    if (machine_.pairs.size() > most) {
      canvas_.line(fmt::format("  {} more in the file", machine_.pairs.size() - most));
    }
  }

  void notes() {
    canvas_.blank();
    if (any_doubtful_) {
      canvas_.paragraph("  ", "~ uncertain by more than 5 %");
    }
    constexpr std::size_t most_reasons = 5;
    std::stable_sort(reasons_.begin(), reasons_.end(),
                     [](const Reason& a, const Reason& b) { return a.figures > b.figures; });
    for (std::size_t i = 0; i < std::min(most_reasons, reasons_.size()); ++i) {
      canvas_.paragraph("  ", fmt::format("absent, {} figure{}: {}", reasons_[i].figures,
                                          reasons_[i].figures == 1 ? "" : "s", canvas_.clean(reasons_[i].words)));
    }
    for (const std::string& note : machine_.notes) {
      canvas_.paragraph("  ", canvas_.clean(note));
    }
  }

  const Machine& machine_;
  Canvas canvas_;
  int figure_columns_ = most_figure_columns;
  bool any_doubtful_ = false;
  std::vector<Reason> reasons_;
};

}  // namespace

std::string render_machine(const Machine& machine, const TextStyle& style) { return Tables(machine, style).render(); }

}  // namespace crosstalk::driver
