// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "models/machine.h"

namespace crosstalk::models {
namespace {

using namespace std::string_view_literals;

constexpr std::array width_names = {"scalar"sv, "sse"sv, "avx2"sv, "avx512"sv};
constexpr std::array precision_names = {"double"sv, "single"sv};
constexpr std::array operation_names = {"add"sv, "mul"sv, "fma"sv};
constexpr std::array level_names = {"l1d"sv, "l2"sv, "l3"sv, "memory"sv};
constexpr std::array traffic_names = {"load"sv,           "store"sv,          "copy"sv, "triad"sv, "store_streaming"sv,
                                      "copy_streaming"sv, "triad_streaming"sv};
constexpr std::array scope_names = {"one_core"sv, "all_cores"sv};
constexpr std::array instruction_names = {"integer_add"sv, "integer_multiply"sv, "branch_not_taken"sv,
                                          "branch_taken"sv};
constexpr std::array chain_names = {"add"sv,
                                    "load"sv,
                                    "load_add_store"sv,
                                    "locked_add"sv,
                                    "locked_exchange"sv,
                                    "locked_compare"sv,
                                    "branch_mispredicted"sv};
constexpr std::array mix_names = {"1:0"sv, "2:1"sv, "1:1"sv, "0:1"sv};
constexpr std::array element_names = {"int32"sv, "int64"sv};
constexpr std::array kind_names = {"nop"sv, "integer_add"sv, "scalar"sv, "sse"sv, "avx2"sv, "avx512"sv};

}  // namespace

template <>
std::span<const std::string_view> names<Width>() {
  return width_names;
}
template <>
std::span<const std::string_view> names<Precision>() {
  return precision_names;
}
template <>
std::span<const std::string_view> names<Operation>() {
  return operation_names;
}
template <>
std::span<const std::string_view> names<Level>() {
  return level_names;
}
template <>
std::span<const std::string_view> names<Traffic>() {
  return traffic_names;
}
template <>
std::span<const std::string_view> names<Scope>() {
  return scope_names;
}
template <>
std::span<const std::string_view> names<Instruction>() {
  return instruction_names;
}
template <>
std::span<const std::string_view> names<Chain>() {
  return chain_names;
}
template <>
std::span<const std::string_view> names<Mix>() {
  return mix_names;
}
template <>
std::span<const std::string_view> names<Element>() {
  return element_names;
}
template <>
std::span<const std::string_view> names<Kind>() {
  return kind_names;
}

}  // namespace crosstalk::models
