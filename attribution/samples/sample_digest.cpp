// SPDX-License-Identifier: Apache-2.0
#include "attribution/samples/sample_digest.h"

#include <algorithm>
#include <tuple>

#include "base/hash.h"
#include "profile/wait_table.h"

namespace crosstalk::attribution {

bool is_of_access(const profile::SampleRow& sample) {
  return (sample.flags & profile::sample_in_kernel) == 0 && sample.access_ip != 0 &&
         (sample.from == profile::AddressFrom::retired || sample.from == profile::AddressFrom::hardware);
}

void ThreadTotal::add(const ThreadTotal& other) {
  samples += other.samples;
  measured += other.measured;
  ns += other.ns;
  kernel_ns += other.kernel_ns;
  ns2 += other.ns2;
  waiting_ns += other.waiting_ns;
  waiting_kernel_ns += other.waiting_kernel_ns;
}

std::size_t SampleDigest::CodeHash::operator()(const CodeKey& k) const noexcept {
  return spread(k.address ^ (k.in_kernel ? std::uint64_t{1} << 63U : 0) ^
                (static_cast<std::uint64_t>(k.thread) << 40U) ^ (static_cast<std::uint64_t>(k.file) << 52U) ^
                (static_cast<std::uint64_t>(k.region.value) << 32U));
}

std::size_t SampleDigest::AccessHash::operator()(const AccessKey& k) const noexcept {
  return spread(ModulePlaceHash()(k.interrupted) ^ k.access);
}

SampleDigest::SampleDigest(std::span<const profile::ThreadRow> threads, const AddressSpaces& spaces,
                           const LineSet& lines, Strata& strata)
    : rows_(threads), spaces_(spaces), lines_(lines), strata_(strata), totals_(threads.size()) {}

void SampleDigest::add(const profile::SampleRow& sample) {
  if (sample.thread.value >= rows_.size()) {
    ++malformed_;
    return;
  }
  ++samples_;
  const ProcessId process = rows_[sample.thread.value].process;
  const bool in_kernel = (sample.flags & profile::sample_in_kernel) != 0;
  const auto ns = static_cast<double>(sample.time_weight_ns());
  if (sample.measurement.source != profile::SourceKind::clock || sample.event.value != 0) {
    ++totals_[sample.thread.value].measured;
    ++measured_[{sample.event, sample.measurement.source, sample.measurement.unit}];
  }
  const double waiting_ns = (sample.flags & profile::sample_waiting) != 0 ? ns : 0;
  const ThreadTotal of_this{1, 0, ns, in_kernel ? ns : 0, ns * ns, waiting_ns, in_kernel ? waiting_ns : 0};
  totals_[sample.thread.value].add(of_this);
  if (sample.region.value != 0) {
    in_regions_[{sample.thread.value, sample.region}].add(of_this);
  }
  user_mode_ += in_kernel ? 0 : 1;
  strata_.add(sample);
  add_code(sample, process, in_kernel);
  if (sample.address != 0) {
    ++with_address_;
    if (lines_.has(process, sample.address)) {
      add_access(sample);
    }
  }
}

std::uint64_t SampleDigest::weight_of(const profile::SampleRow& sample) const {
  const bool counts = !event_ || sample.event == *event_;
  return !counts ? 0 : event_ ? sample.measurement.weight : sample.time_weight_ns();
}

// Kernel time belongs to the calling function: the recorded ip is the instruction after the call, which may be on
// another line, or past the function's end.
void SampleDigest::add_code(const profile::SampleRow& sample, ProcessId process, bool in_kernel) {
  const std::uint64_t ip = in_kernel && sample.ip != 0 ? sample.ip - 1 : sample.ip;
  const auto place = spaces_.find({process, sample.time_ns}, ip);
  const CodeKey key{place ? place->address : ip, sample.thread.value, place ? place->file + 1 : 0, sample.region,
                    in_kernel};
  const auto ns = static_cast<double>(weight_of(sample));
  Sums& sums = code_[key];
  ++sums.samples;
  sums.ns += ns;
  sums.ns2 += ns * ns;
  sums.waiting_ns += (sample.flags & profile::sample_waiting) != 0 ? ns : 0;
  if (place && is_of_access(sample)) {
    add_access_time(sample, process, *place, ns);
  }
}

void SampleDigest::add_access_time(const profile::SampleRow& sample, ProcessId process, ModulePlace interrupted,
                                   double ns) {
  const auto access = spaces_.find({process, sample.time_ns}, sample.access_ip);
  if (access && access->file == interrupted.file) {
    access_ns_[{interrupted, access->address}] += ns;
  }
}

void SampleDigest::add_access(const profile::SampleRow& sample) {
  const auto [it, fresh] = accesses_.try_emplace({sample.thread.value, sample.address, sample.width});
  SampledAccess& access = it->second;
  if (fresh) {
    access = {sample.thread, sample.address, sample.width, 0, 0, sample.time_ns};
  }
  access.loads += loads(sample.access) ? 1 : 0;
  access.stores += stores(sample.access) ? 1 : 0;
}

std::vector<CodeTotal> SampleDigest::code() const {
  std::vector<CodeTotal> result;
  result.reserve(code_.size());
  for (const auto& [key, sums] : code_) {
    CodeTotal total{ThreadId{key.thread}, std::nullopt, key.address,   sums.samples, sums.ns, sums.ns2,
                    sums.waiting_ns,      key.region,   key.in_kernel, key.in_kernel};
    if (key.file != 0) {
      total.place = ModulePlace{key.file - 1, key.address};
    }
    result.push_back(total);
  }
  std::sort(result.begin(), result.end(), [](const CodeTotal& a, const CodeTotal& b) {
    return std::tie(a.thread, a.place, a.address, a.region, a.in_kernel) <
           std::tie(b.thread, b.place, b.address, b.region, b.in_kernel);
  });
  return result;
}

std::vector<AccessTime> SampleDigest::access_times() const {
  std::vector<AccessTime> result;
  result.reserve(access_ns_.size());
  for (const auto& [key, ns] : access_ns_) {
    result.push_back({key.interrupted, {key.interrupted.file, key.access}, ns});
  }
  return result;
}

std::vector<SampledAccess> SampleDigest::accesses() const {
  std::vector<SampledAccess> result;
  result.reserve(accesses_.size());
  for (const auto& [key, access] : accesses_) {
    result.push_back(access);
  }
  return result;
}

}  // namespace crosstalk::attribution
