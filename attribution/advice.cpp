// SPDX-License-Identifier: Apache-2.0
#include "attribution/advice.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "attribution/model/sentences.h"

namespace crosstalk::attribution {
namespace {

constexpr double next_to_nothing = 0.03;  // of the threads' time

bool only_waits(SharingKind kind) {
  return kind == SharingKind::spin || kind == SharingKind::barrier || kind == SharingKind::condition;
}

/// The most of the cost that its sentence says.
double most_said(const Sum& sum) { return is_cost_wide(sum) ? sum.cost_ci95->high : sum.cost_s; }

Sum alone(const Amount& a) { return {a.cost_s.value_or(0), a.cost_ci95, a.gain_s, a.gain_ci95, a.one_processor}; }

using Names = std::set<std::string>;
constexpr std::size_t few = 3;  // fields that a sentence names

/// "hits" for a member; "counters[8]" for an element, whose index alone says nothing.
std::string name_in_advice(const ObjectRow& object, const std::string& field) {
  if (!field.starts_with('[')) {
    return field;
  }
  std::string name = object.name.substr(0, object.name.size() - std::min(object.name.size(), object.place.size()));
  name.resize(name.find_last_not_of(' ') + 1);
  if (const std::size_t count = name.rfind('['); name.ends_with(']') && count != std::string::npos) {
    name.resize(count);
  }
  return name + field;
}

/// "`hits` and `misses`".
std::string listed(const ObjectRow& object, const Names& fields) {
  std::string text;
  std::size_t n = 0;
  for (const std::string& field : fields) {
    text += (n == 0 ? "" : n + 1 == fields.size() ? " and " : ", ") + ("`" + name_in_advice(object, field) + "`");
    ++n;
  }
  return text;
}

bool overlap(const OffsetRow& a, const OffsetRow& b) {
  return a.offset < b.offset + std::max(1U, b.bytes) && b.offset < a.offset + std::max(1U, a.bytes);
}

/// Accesses of an object by different threads, one of which stores.
struct Layout {
  bool several = false;
  std::vector<std::pair<const OffsetRow*, const OffsetRow*>> close;  // to different bytes less than a line apart
};
Layout layout_of(const ObjectRow& object) {
  constexpr std::uint64_t line_bytes = 64;
  Layout layout;
  for (const OffsetRow& a : object.offsets) {
    for (const OffsetRow& b : object.offsets) {
      if (a.thread == b.thread || a.stores == 0) {
        continue;
      }
      layout.several = true;
      if (!overlap(a, b) && std::max(a.offset, b.offset) - std::min(a.offset, b.offset) < line_bytes) {
        layout.close.emplace_back(&a, &b);
      }
    }
  }
  return layout;
}

/// True if the object's own layout lets no line be shared falsely. Small blocks may lie side by side.
bool is_apart(const ObjectRow& object, const Layout& layout) {
  return object.blocks < 2 && layout.several && layout.close.empty();
}

/// The member array whose elements are all that lies too close together: "items"; empty: other fields do, too.
std::string close_elements(const Layout& layout) {
  std::set<std::string> arrays;
  for (const auto& [a, b] : layout.close) {
    for (const OffsetRow* row : {a, b}) {
      const std::size_t index = row->field.find('[');
      arrays.insert(index == std::string::npos ? "" : row->field.substr(0, index));
    }
  }
  return arrays.size() == 1 ? *arrays.begin() : "";
}

std::string pad(const ObjectRow& object) {
  const Layout layout = layout_of(object);
  if (is_apart(object, layout)) {
    return "Other data share one of its cache lines. Align it to 64 bytes (alignas(64)), and pad its size to a "
           "multiple of 64. Its own parts are on separate lines already.";
  }
  if (const std::string elements = close_elements(layout); !elements.empty()) {
    return "Different threads use elements of `" + elements +
           "` at the same time. Keep these elements at least 64 bytes apart.";
  }
  Names stored, read;  // read by threads that store none of the first
  std::set<std::uint32_t> storing;
  for (const OffsetRow& row : object.offsets) {
    if (row.stores > 0) {
      storing.insert(row.thread);
      stored.insert(row.field);
    }
  }
  for (const OffsetRow& row : object.offsets) {
    if (!storing.contains(row.thread) && !stored.contains(row.field)) {
      read.insert(row.field);
    }
  }
  if (stored.contains("") || read.contains("")) {
    stored.clear();  // not all have a name
  }
  if (stored.size() > 1 && stored.size() <= few) {
    return "Give " + listed(object, stored) + " lines of their own (alignas(64)).";
  }
  if (stored.size() == 1 && !read.empty() && read.size() <= few) {
    return "Threads store to " + listed(object, stored) + " while others read " + listed(object, read) +
           " on the same line. Give " + listed(object, stored) + " a line of its own (alignas(64)).";
  }
  return object.kind == ObjectKind::stack || object.kind == ObjectKind::unknown
             ? "Keep the data of different threads at least 64 bytes apart."
             : "Give each thread's part its own 64-byte line.";
}

std::string share_less(const ObjectExchange& e) {
  if (e.producers.size() == 1 && !e.consumers.empty() && !e.consumers.contains(*e.producers.begin())) {
    return "Store to it less often, or only when its value changes.";
  }
  return "The data itself is shared: update it less often, in batches, or in a copy per thread.";
}

}  // namespace

ObjectExchange exchange_of(const Matrix& cells) {
  ObjectExchange e;
  double true_cost = 0, false_cost = 0, true_detections = 0, false_detections = 0;
  for (const Cell& cell : cells) {
    e.producers.insert(cell.producer);
    e.consumers.insert(cell.consumer);
    e.threads.insert({cell.producer, cell.consumer});
    true_cost += cell.true_sharing.cost_s.value_or(0);
    false_cost += cell.false_sharing.cost_s.value_or(0);
    true_detections += cell.true_sharing.detections;
    false_detections += cell.false_sharing.detections;
    e.seen += cell.true_sharing.seen + cell.false_sharing.seen;
  }
  const double cost = true_cost + false_cost;
  const double all = true_detections + false_detections;
  e.false_share = cost > 0 ? false_cost / cost : all > 0 ? false_detections / all : 0;
  return e;
}

std::string kind_in_words(SharingKind kind, double false_share) {
  std::string sort = false_share >= 0.995   ? "all of it false sharing"
                     : false_share <= 0.005 ? "all of it true sharing"
                                            : percent(false_share) + " false sharing";
  switch (kind) {
    case SharingKind::lock:
      return "a lock or a word like one, " + sort;
    case SharingKind::barrier:
      return noun_of(kind);
    case SharingKind::condition:
      return "a condition variable or semaphore";
    case SharingKind::spin:
      return "a loop that waits for another thread's store";
    case SharingKind::runtime:
      return "internal data of a run-time library, " + sort;
    case SharingKind::shared_counter:
    case SharingKind::fetch_add:
    case SharingKind::queue:
    case SharingKind::reference_count:
      return noun_of(kind) + ", " + sort;
    case SharingKind::false_sharing:
    case SharingKind::true_sharing:
      break;
  }
  return sort;
}

std::string noun_of(SharingKind kind) {
  switch (kind) {
    case SharingKind::false_sharing:
      return "false sharing";
    case SharingKind::true_sharing:
      return "true sharing";
    case SharingKind::shared_counter:
      return "a shared counter";
    case SharingKind::fetch_add:
      return "a fetch-and-add counter";
    case SharingKind::lock:
      return "a lock";
    case SharingKind::barrier:
      return "a barrier";
    case SharingKind::condition:
      return "a condition variable";
    case SharingKind::spin:
      return "waiting";
    case SharingKind::queue:
      return "indices of a queue";
    case SharingKind::reference_count:
      return "a reference count";
    case SharingKind::runtime:
      return "a run-time library's own data";
  }
  return {};
}

bool on_one_processor(const ObjectRow& object) {
  return sum_of(object.true_sharing, object.false_sharing).one_processor;
}

/// True for a mapping of the size of CPython's arenas, made by code of the interpreter that has no names here.
bool is_nameless_arena(const ObjectRow& object) {
  constexpr std::uint64_t arena_bytes = 1U << 20U;
  constexpr std::uint64_t old_arena_bytes = 256U << 10U;  // before 3.10
  if (object.allocation_path.empty() || !object.name.starts_with("mapping") ||
      (object.size != arena_bytes && object.size != old_arena_bytes)) {
    return false;
  }
  const std::string& function = object.allocation_path.front().function;
  return (function.starts_with("python") || function.starts_with("libpython")) &&
         function.find("+0x") != std::string::npos;
}

/// The run time whose allocator hands the object's memory out in pieces, by the functions that asked for it; null: none
/// that is known.
const char* heap_of(const ObjectRow& object) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 5> allocators = {
      {{"_PyObject_Arena", "CPython"},
       {"_PyMem_Arena", "CPython"},
       {"pymalloc_", "CPython"},
       {"heap_page_allocate", "Ruby"},
       {"zend_mm_chunk", "PHP"}}};
  for (const symbolizer::Frame& frame : object.allocation_path) {
    for (const auto& [part, name] : allocators) {
      if (frame.function.find(part) != std::string::npos) {
        return name;
      }
    }
  }
  return is_nameless_arena(object) ? "CPython" : nullptr;
}

/// True for an object of CPython itself whose references threads count: None, small numbers, types.
bool is_counted_by_interpreter(const ObjectRow& object) {
  switch (object.sharing.kind) {
    case SharingKind::lock:
    case SharingKind::barrier:
    case SharingKind::condition:
    case SharingKind::spin:
      return false;
    default:
      break;
  }
  const std::string& name = object.name;
  const bool own = name.starts_with("_Py") || (name.starts_with("Py") && name.ends_with("_Type")) ||
                   name == "small_ints" || name.starts_with("small_ints[");
  const std::string all = name + "." + object.field;
  return (own && object.kind == ObjectKind::global && !name.starts_with("_PyRuntime")) ||
         (own && all.find("small_ints[") != std::string::npos) || all.find("ob_refcnt") != std::string::npos;
}

std::string advice_for(const ObjectRow& object, const ObjectExchange& exchange) {
  if (const char* const heap = heap_of(object)) {
    return std::string("This memory belongs to the allocator of ") + heap +
           ", so the program cannot pad it. Let threads share fewer objects, or use processes.";
  }
  if (is_counted_by_interpreter(object)) {
    return "This is an object of CPython, which counts the references to it. A program can neither pad the object nor "
           "avoid the count. Let threads share fewer objects, or use processes or a free-threaded build.";
  }
  switch (object.sharing.kind) {
    case SharingKind::false_sharing:
      return on_one_processor(object) ? std::string() : pad(object);
    case SharingKind::true_sharing:
      return share_less(exchange);
    case SharingKind::shared_counter:
      return "Give each thread its own counter, and add the counters up when you read the sum. Padding alone saves "
             "nothing.";
    case SharingKind::fetch_add:
      return "Threads take numbers from it. If each number selects a piece of work, take several at once. If no thread "
             "uses the numbers, give each thread its own counter. Padding alone saves nothing.";
    case SharingKind::lock:
      return "Take it less often, hold it for less time, or divide the data that it protects. Padding alone saves "
             "nothing.";
    case SharingKind::barrier:
      return "Threads wait here for each other: make the phases longer, or divide the work more evenly.";
    case SharingKind::condition:
      return "Threads wake each other here: hand over more at a time.";
    case SharingKind::spin:
      return "A thread waits here for another thread's store. Shorten the other thread's work before that store. "
             "Padding saves nothing.";
    case SharingKind::queue:
      return std::string(
                 "Let each side keep a copy of the other's index, and read the index again only if the copy says "
                 "full or empty. ") +
             (is_apart(object, layout_of(object)) ? "They lie on lines of their own already."
                                                  : "Give each side its own 64-byte line.");
    case SharingKind::reference_count:
      return "Let each thread hold one reference for longer, or pass a reference or pointer that does not change the "
             "count.";
    case SharingKind::runtime:
      return "Call the library less often: the line holds its internal data.";
  }
  return {};
}

Sum advised_gain(const Communication& communication, const LinePair& pair) {
  const auto object = std::find_if(communication.objects.begin(), communication.objects.end(),
                                   [&](const ObjectRow& row) { return row.name == pair.object; });
  const bool pads = object != communication.objects.end() && object->sharing.kind == SharingKind::false_sharing;
  return pads && pair.false_sharing.cost_s.value_or(0) > 0 ? alone(pair.false_sharing)
                                                           : sum_of(pair.true_sharing, pair.false_sharing);
}

Sum advised_gain(const ObjectRow& object) {
  if (object.sharing.kind == SharingKind::false_sharing || !(object.true_sharing.cost_s.value_or(0) > 0)) {
    return alone(object.false_sharing);
  }
  // Sharing that was not seen has only limits, and no advice.
  return object.false_sharing.cost_s.value_or(0) > 0 ? sum_of(object.true_sharing, object.false_sharing)
                                                     : alone(object.true_sharing);
}

bool is_cost_wide(const Sum& sum) {
  constexpr double certain = 1.2;  // times the estimate
  return sum.cost_ci95 && sum.cost_ci95->high > certain * sum.cost_s;
}

std::string gain_in_words(const ObjectRow& object, const ObjectExchange& exchange, double cpu_s,
                          const std::string& advice) {
  const Sum gain = advised_gain(object);
  if (!(object.cost_s > 0) || !(cpu_s > 0) || !gain.gain_ci95) {
    return {};
  }
  if (on_one_processor(object)) {
    const bool said = advice.find("saves nothing") != std::string::npos;
    return std::string("The threads ran on one processor when this was seen, so no cache line had to move") +
           (said ? "" : ": padding saves nothing") +
           ". Fewer exchanges may save context switches, wake-ups and lock operations; that is not estimated.";
  }
  const std::string their = exchange.threads.size() == 1 ? "its" : "their";
  const auto said = said_gain(gain);
  const bool known = said && !said->at_most;
  const double most_s = known ? most_said(gain) : said ? said->seconds : 0;
  const Interval share{known ? std::min(gain.gain_ci95->low, most_s) / cpu_s : 0,
                       std::min(gain.gain_ci95->high, most_s) / cpu_s};
  const std::string amount = percent_range(share) + " of " + their + " time";
  const bool wide = !gain.gain_s;
  const std::string ending = wide ? ". The range is wide because the number of accesses to the line is unknown." : ".";
  if (object.sharing.kind == SharingKind::false_sharing && heap_of(object) == nullptr &&
      !is_counted_by_interpreter(object)) {
    if (share.high < next_to_nothing) {
      return "The change would save little: " + amount + ".";
    }
    return "The change would save " + amount + ending;
  }
  const std::string rest =
      only_waits(object.sharing.kind) ? "The waiting itself comes on top." : "The operations themselves come on top.";
  if (share.high < next_to_nothing) {
    return "Transfers of the line take next to none of " + their + " time. " + rest;
  }
  constexpr double all = 0.95;  // nothing can come on top of that
  if (share.high >= all) {
    return wide ? "The part of " + their +
                      " time that transfers of the line take is unknown, because the number of "
                      "accesses to the line is unknown."
                : "Transfers of the line take " + amount + ".";
  }
  return "Transfers of the line take " + amount + ending + " " + rest;
}

}  // namespace crosstalk::attribution
