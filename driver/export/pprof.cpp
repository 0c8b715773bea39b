// SPDX-License-Identifier: Apache-2.0
#include "driver/export/pprof.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <protozero/pbf_builder.hpp>
#include <utility>
#include <vector>

#include "attribution/program/program_names.h"
#include "base/units.h"
#include "driver/export/columns.h"
#include "driver/export/string_table.h"

namespace crosstalk::driver {
namespace {

using attribution::Analysis;
using attribution::CallersFrom;
using attribution::CommunicationStack;
using attribution::StackFile;
using attribution::StackPlace;
using attribution::TimeStack;
using attribution::WeightedStacks;

// The fields of profile.proto, by number.
enum class ProfileField : protozero::pbf_tag_type {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  time_nanos = 9,
  duration_nanos = 10,
  period_type = 11,
  period = 12,
  comment = 13,
  default_sample_type = 14,
};
enum class ValueTypeField : protozero::pbf_tag_type { type = 1, unit = 2 };
enum class SampleField : protozero::pbf_tag_type { location_id = 1, value = 2, label = 3 };
enum class LabelField : protozero::pbf_tag_type { key = 1, str = 2 };
enum class MappingField : protozero::pbf_tag_type {
  id = 1,
  memory_start = 2,
  memory_limit = 3,
  file_offset = 4,
  filename = 5,
  build_id = 6,
  has_functions = 7,
  has_filenames = 8,
  has_line_numbers = 9,
  has_inline_frames = 10,
};
enum class LocationField : protozero::pbf_tag_type { id = 1, mapping_id = 2, address = 3, line = 4 };
enum class LineField : protozero::pbf_tag_type { function_id = 1, line = 2 };
enum class FunctionField : protozero::pbf_tag_type { id = 1, name = 2, filename = 4, start_line = 5 };

/// Facts known of a file's places.
struct FileFacts {
  bool functions = false, filenames = false, lines = false, inlined = false;
};

/// Builds one message. Ids are indices + 1.
class Encoder {
 public:
  explicit Encoder(const Analysis& analysis) : analysis_(analysis), stacks_(*analysis.stacks) {}

  [[nodiscard]] std::string encode() {
    put_sample_types();
    put_samples();
    put_mappings();
    put_locations();
    put_functions();
    put_session();
    for (const std::string& text : strings_.strings()) {
      profile_.add_string(ProfileField::string_table, text);
    }
    return std::move(data_);
  }

 private:
  using Labels = std::vector<std::pair<const char*, std::string>>;

  void put_value_type(ProfileField field, const QuantityName& name) {
    protozero::pbf_builder<ValueTypeField> type(profile_, field);
    type.add_int64(ValueTypeField::type, strings_.number_of(name.type));
    type.add_int64(ValueTypeField::unit, strings_.number_of(name.unit));
  }
  void put_sample_types();
  void put_samples();
  void put_sample(const std::vector<std::uint32_t>& places, const std::vector<std::int64_t>& values,
                  const Labels& labels);
  void add_thread(std::uint32_t thread, Labels& labels) const;
  [[nodiscard]] Labels labels_of(const TimeStack& row) const;
  [[nodiscard]] Labels labels_of(const CommunicationStack& row) const;
  void put_mappings();
  void put_locations();
  [[nodiscard]] std::uint64_t function_of(const StackPlace& place, const symbolizer::Frame& frame, bool outermost);
  void put_functions();
  void put_session();

  struct Function {
    std::string name, file;
    std::uint32_t line = 0;  // 0: not known
  };

  const Analysis& analysis_;
  const WeightedStacks& stacks_;
  std::string data_;
  protozero::pbf_builder<ProfileField> profile_{data_};
  StringTable strings_;
  std::map<std::pair<std::string, std::string>, std::size_t> function_numbers_;  // by name and file
  std::vector<Function> functions_;
};

const char* name_of(CallersFrom from) {
  switch (from) {
    case CallersFrom::sample:
      return "sampled";
    case CallersFrom::alike:
      return "alike";
    case CallersFrom::unknown:
      break;
  }
  return "unknown";
}

void Encoder::put_sample_types() {
  put_value_type(ProfileField::sample_type, {"samples", "count"});
  put_value_type(ProfileField::sample_type, time_quantity(analysis_));
  if (has_communication(stacks_)) {
    put_value_type(ProfileField::sample_type, {"communication", "nanoseconds"});
  }
  if (has_gain(stacks_)) {
    put_value_type(ProfileField::sample_type, {"communication_gain", "nanoseconds"});
  }
}

void Encoder::put_sample(const std::vector<std::uint32_t>& places, const std::vector<std::int64_t>& values,
                         const Labels& labels) {
  protozero::pbf_builder<SampleField> sample(profile_, ProfileField::sample);
  std::vector<std::uint64_t> ids(places.size());
  std::transform(places.begin(), places.end(), ids.begin(), [](std::uint32_t place) { return place + 1; });
  sample.add_packed_uint64(SampleField::location_id, ids.begin(), ids.end());
  sample.add_packed_int64(SampleField::value, values.begin(), values.end());
  for (const auto& [key, value] : labels) {
    protozero::pbf_builder<LabelField> label(sample, SampleField::label);
    label.add_int64(LabelField::key, strings_.number_of(key));
    label.add_int64(LabelField::str, strings_.number_of(value));
  }
}

void Encoder::add_thread(std::uint32_t thread, Labels& labels) const {
  if (thread >= analysis_.threads.size()) {  // of a damaged profile
    return;
  }
  const attribution::ThreadSummary& summary = analysis_.threads[thread];
  labels.emplace_back("thread", summary.name);
  labels.emplace_back("tid", std::to_string(summary.tid));
  if (summary.process.value < analysis_.processes.size()) {
    labels.emplace_back("process", attribution::program_name(analysis_.processes[summary.process.value]));
  }
  labels.emplace_back("pid", std::to_string(summary.pid));
}

Encoder::Labels Encoder::labels_of(const TimeStack& row) const {
  Labels labels;
  add_thread(row.thread, labels);
  labels.emplace_back("callers", name_of(row.callers));
  return labels;
}

Encoder::Labels Encoder::labels_of(const CommunicationStack& row) const {
  Labels labels;
  add_thread(row.thread, labels);
  labels.emplace_back("callers", name_of(row.callers));
  labels.emplace_back("object", stacks_.objects[row.object]);
  labels.emplace_back("sharing", row.true_sharing ? "true" : "false");
  if (row.producer < analysis_.threads.size()) {
    labels.emplace_back("partner", analysis_.threads[row.producer].name);
    labels.emplace_back("partner_tid", std::to_string(analysis_.threads[row.producer].tid));
  }
  if (!row.gain_known) {
    labels.emplace_back("gain", "unknown");
  }
  return labels;
}

/// As pprof has it: signed. A damaged profile's weight may be any.
std::int64_t value_of(std::uint64_t weight) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(weight, INT64_MAX));
}

void Encoder::put_samples() {
  const bool communication = has_communication(stacks_);
  const bool gain = has_gain(stacks_);
  std::vector<std::int64_t> values(2 + (communication ? 1U : 0U) + (gain ? 1U : 0U));
  for (const TimeStack& row : stacks_.time) {
    values[0] = value_of(row.samples);
    values[1] = value_of(row.weight);
    put_sample(row.places, values, labels_of(row));
  }
  for (const CommunicationStack& row : stacks_.communication) {
    values[0] = values[1] = 0;
    values[2] = std::llround(row.cost_s * ns_per_s);
    if (gain) {
      values[3] = std::llround(row.gain_s * ns_per_s);
    }
    put_sample(row.places, values, labels_of(row));
  }
}

void Encoder::put_mappings() {
  std::vector<FileFacts> facts(stacks_.files.size());
  for (const StackPlace& place : stacks_.places) {
    if (place.file == StackPlace::no_file) {
      continue;
    }
    FileFacts& file = facts[place.file];
    for (const symbolizer::Frame& frame : place.frames) {
      file.functions = true;
      file.filenames = file.filenames || !frame.source.file.empty();
      file.lines = file.lines || frame.source.line != 0;
      file.inlined = file.inlined || frame.inlined;
    }
  }
  for (std::size_t i = 0; i < stacks_.files.size(); ++i) {
    const StackFile& file = stacks_.files[i];
    protozero::pbf_builder<MappingField> mapping(profile_, ProfileField::mapping);
    mapping.add_uint64(MappingField::id, i + 1);
    mapping.add_uint64(MappingField::memory_start, file.begin);
    mapping.add_uint64(MappingField::memory_limit, file.end);
    mapping.add_uint64(MappingField::file_offset, file.file_offset);
    mapping.add_int64(MappingField::filename, strings_.number_of(file.path));
    mapping.add_int64(MappingField::build_id, strings_.number_of(file.build_id));
    mapping.add_bool(MappingField::has_functions, facts[i].functions);
    mapping.add_bool(MappingField::has_filenames, facts[i].filenames);
    mapping.add_bool(MappingField::has_line_numbers, facts[i].lines);
    mapping.add_bool(MappingField::has_inline_frames, facts[i].inlined);
  }
}

std::uint64_t Encoder::function_of(const StackPlace& place, const symbolizer::Frame& frame, bool outermost) {
  const std::string name = function_name(place, frame);
  const auto [number, fresh] = function_numbers_.try_emplace({name, frame.source.file}, functions_.size());
  if (fresh) {
    functions_.push_back({name, frame.source.file, 0});
  }
  Function& function = functions_[number->second];
  if (outermost && function.line == 0) {  // where an inlined function begins is not known
    function.line = place.function_line;
  }
  return number->second + 1;
}

void Encoder::put_locations() {
  for (std::size_t i = 0; i < stacks_.places.size(); ++i) {
    const StackPlace& place = stacks_.places[i];
    protozero::pbf_builder<LocationField> location(profile_, ProfileField::location);
    location.add_uint64(LocationField::id, i + 1);
    location.add_uint64(LocationField::mapping_id, place.file == StackPlace::no_file ? 0 : place.file + 1);
    location.add_uint64(LocationField::address, place.address);
    for (const symbolizer::Frame& frame : place.frames) {
      const std::uint64_t function = function_of(place, frame, &frame == &place.frames.back());
      protozero::pbf_builder<LineField> line(location, LocationField::line);
      line.add_uint64(LineField::function_id, function);
      line.add_int64(LineField::line, frame.source.line);
    }
  }
}

void Encoder::put_functions() {
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    const Function& known = functions_[i];
    protozero::pbf_builder<FunctionField> function(profile_, ProfileField::function);
    function.add_uint64(FunctionField::id, i + 1);
    function.add_int64(FunctionField::name, strings_.number_of(known.name));
    // No system_name: pprof takes a name that equals it for a mangled one, and cuts off what is in brackets.
    function.add_int64(FunctionField::filename, strings_.number_of(known.file));
    function.add_int64(FunctionField::start_line, known.line);
  }
}

void Encoder::put_session() {
  const profile::Session& session = analysis_.session;
  profile_.add_int64(ProfileField::time_nanos, static_cast<std::int64_t>(session.begin_unix_ns));
  profile_.add_int64(ProfileField::duration_nanos, std::llround(analysis_.duration_s * ns_per_s));
  if (const std::uint64_t period = sampling_period(analysis_); period != 0) {
    put_value_type(ProfileField::period_type, time_quantity(analysis_));
    profile_.add_int64(ProfileField::period, static_cast<std::int64_t>(period));
  }
  for (const std::string& comment : export_comments(analysis_)) {
    profile_.add_int64(ProfileField::comment, strings_.number_of(comment));
  }
  profile_.add_int64(ProfileField::default_sample_type, strings_.number_of(time_quantity(analysis_).type));
}

}  // namespace

std::string encode_pprof(const Analysis& analysis) { return Encoder(analysis).encode(); }

}  // namespace crosstalk::driver
