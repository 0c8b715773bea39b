// SPDX-License-Identifier: Apache-2.0
#include "models/machine_json.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "machine_example.h"

namespace crosstalk::models::machine_json_test {
namespace {

using Json = nlohmann::ordered_json;

std::string refusal(const std::function<void(Json&)>& edit) {
  Json file = Json::parse(to_json(test::example()));
  edit(file);
  const auto machine = parse_machine(file.dump());
  return machine ? "accepted" : machine.error().message;
}

TEST(MachineJson, KeepsEverything) {
  const std::string text = to_json(test::example());
  const auto read = parse_machine(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), text);
  const Machine want = test::example();
  EXPECT_EQ(read->identity, want.identity);
  EXPECT_EQ(read->processors, want.processors);
  EXPECT_EQ(read->caches, want.caches);
  EXPECT_EQ(read->measured_at, want.measured_at);
  EXPECT_EQ(read->measuring_s, 12.5);
  EXPECT_EQ(read->notes, want.notes);
  EXPECT_EQ(read->frequency.tsc_hz, 2.6e9);
  EXPECT_EQ(read->frequency.nominal_max_hz, std::nullopt);
  EXPECT_EQ(read->frequency.after_avx512_hz.refused, "this processor has no such instructions");
  EXPECT_EQ(read->frequency.after_avx512_hz.value, std::nullopt);
  const Figure* const fma = read->flops_of(Width::avx2, Precision::double_precision, Operation::fma, Scope::one_core);
  ASSERT_NE(fma, nullptr);
  EXPECT_EQ(fma->value, 5.8e10);
  EXPECT_EQ(fma->theoretical, 5.92e10);
  EXPECT_EQ(fma->spread, 0.01);
  EXPECT_EQ(fma->tries, 12U);
  EXPECT_EQ(fma->method, "example");
  EXPECT_EQ(read->pair_of(0, 1)->contended_add_s.value, 9e-8);
}

TEST(MachineJson, IsReadableWithALineForEachFigure) {
  const std::string text = to_json(test::example());
  EXPECT_TRUE(text.starts_with("{\n  \"schema\": \"crosstalk.machine/1\",\n")) << text;
  EXPECT_NE(text.find("\n    {\"level\":\"l1d\",\"value\":1e-09,\"unit\":\"s\","), std::string::npos) << text;
}

TEST(MachineJson, RefusesWhatItCanNotRead) {
  EXPECT_EQ(parse_machine("").error().message, "it is no JSON object");
  EXPECT_EQ(parse_machine("[1]").error().message, "it is no JSON object");
  EXPECT_EQ(parse_machine("{}").error().message, "schema: it is missing");
  EXPECT_EQ(parse_machine("{\"schema\": \"crosstalk.machine/2\"}").error().code, ErrorCode::unsupported);
  EXPECT_EQ(parse_machine("{\"schema\": \"crosstalk.machine/2\"}").error().message,
            "schema is 'crosstalk.machine/2', and this crosstalk reads 'crosstalk.machine/1'");
}

TEST(MachineJson, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(refusal([](Json& f) { f["identity"].erase("vendor"); }), "identity.vendor: it is missing");
  EXPECT_EQ(refusal([](Json& f) { f["identity"] = 1; }), "identity: it is no object");
  EXPECT_EQ(refusal([](Json& f) { f["flops"] = 1; }), "flops: it is no list");
  EXPECT_EQ(refusal([](Json& f) { f["flops"][1]["width"] = "avx3"; }), "flops[1].width: there is no 'avx3'");
  EXPECT_EQ(refusal([](Json& f) { f["flops"][0]["unit"] = "Gflops/s"; }),
            "flops[0].unit: it is 'Gflops/s' and must be 'flops/s'");
  EXPECT_EQ(refusal([](Json& f) { f["flops"][0]["value"] = "fast"; }), "flops[0].value: it is no number");
  EXPECT_EQ(refusal([](Json& f) { f["flops"][0]["tries"] = -1; }), "flops[0].tries: it is no whole number in range");
  EXPECT_EQ(refusal([](Json& f) { f["flops"][0]["tries"] = 5000000000; }),
            "flops[0].tries: it is no whole number in range");
  EXPECT_EQ(refusal([](Json& f) { f["caches"][0]["cpus"][0] = "first"; }),
            "caches[0].cpus: it is no whole number in range");
  EXPECT_EQ(refusal([](Json& f) { f["quick"] = 0; }), "quick: it is neither true nor false");
  EXPECT_EQ(refusal([](Json& f) { f["notes"][0] = 0; }), "notes[0]: it is no text");
  EXPECT_EQ(refusal([](Json& f) { f["frequency"]["one_core"].erase("method"); }),
            "frequency.one_core.method: it is missing");
  EXPECT_TRUE(refusal([](Json& f) { f["latencies"][1]["value"] = 1e-15; }).starts_with("latencies[memory].value"));
}

TEST(MachineJson, TakesFilesOfBeforeDisturbedTriesWereTold) {
  EXPECT_EQ(refusal([](Json& f) { f["latencies"][1].erase("disturbed"); }), "accepted");
  EXPECT_EQ(refusal([](Json& f) { f["latencies"][1]["disturbed"] = "many"; }),
            "latencies[1].disturbed: it is no whole number in range");
}

TEST(MachineJson, PassesOverWhatLaterVersionsAdd) {
  EXPECT_EQ(refusal([](Json& f) { f["flops"][0]["colour"] = "blue"; }), "accepted");
  EXPECT_EQ(refusal([](Json& f) { f["more"] = Json::array({1, 2}); }), "accepted");
}

}  // namespace
}  // namespace crosstalk::models::machine_json_test
