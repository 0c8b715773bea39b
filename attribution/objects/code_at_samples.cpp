// SPDX-License-Identifier: Apache-2.0
#include "attribution/objects/code_at_samples.h"

#include "symbolizer/cfg/stored_back.h"
#include "symbolizer/loops/loop_anatomy.h"

namespace crosstalk::attribution {

bool CodeAtSamples::stores_back(ThreadId thread, std::uint64_t time_ns, std::uint64_t ip) {
  const auto place = view_.spaces().find(view_.moment(thread, time_ns), ip);
  return place &&
         stored_back_.of(*place, [&](ModulePlace at) { return symbolizer::is_stored_back(view_.code().bytes_at(at)); });
}

std::optional<symbolizer::LoadedRegister> CodeAtSamples::find_loaded(ModulePlace place) const {
  const auto loop = innermost_loop(view_.code(), place);
  if (!loop || loop->anatomy->waits_at(loop->index, place.address) == symbolizer::Waiting::no) {
    return std::nullopt;
  }
  return loop->anatomy->loaded_at(loop->index, place.address);
}

std::optional<LoadedValue> CodeAtSamples::last_loaded(const profile::SampleRow& sample) {
  const auto place = view_.spaces().find(view_.moment(sample.thread, sample.time_ns), sample.access_ip);
  if (!place || !sample.registers) {
    return std::nullopt;
  }
  const auto& loaded = loaded_.of(*place, [&](ModulePlace at) { return find_loaded(at); });
  return loaded ? std::optional(LoadedValue{(*sample.registers)[loaded->reg], loaded->bytes}) : std::nullopt;
}

std::vector<symbolizer::StoreAhead> CodeAtSamples::find_stores(ModulePlace place, std::uint64_t bias) const {
  return symbolizer::stores_ahead(place.address + bias, [&](std::uint64_t address) {
    return view_.code().bytes_at({place.file, address - bias});
  });
}

std::span<const PossibleStore> CodeAtSamples::stores_ahead(const profile::SampleRow& sample) {
  answer_.clear();
  const auto place = view_.spaces().find(view_.moment(sample.thread, sample.time_ns), sample.ip);
  if (!place || !sample.registers) {
    return answer_;
  }
  const std::uint64_t bias = sample.ip - place->address;
  const auto [known, fresh] = ahead_.try_emplace({place->file, place->address, bias});
  if (fresh) {
    known->second = find_stores(*place, bias);
  }
  for (const symbolizer::StoreAhead& store : known->second) {
    answer_.push_back({store.instruction, store.at(*sample.registers), store.width, store.kind});
  }
  return answer_;
}

}  // namespace crosstalk::attribution
