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

TEST(MachineJson, TakesFilesOfBeforeRooflinesWereMeasured) {
  Json file = Json::parse(to_json(test::example()));
  for (const char* const key : {"extended_at", "accesses", "thread_flops", "flop_latencies", "integers", "kinds",
                                "groups", "ridges", "sparse_roofs", "sparse_bands"}) {
    EXPECT_EQ(file.erase(key), 1U) << key;
  }
  const auto machine = parse_machine(file.dump());
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_TRUE(machine->accesses.empty());
  EXPECT_EQ(machine->limits_of(Kind::nop), nullptr);
}

TEST(MachineJson, KeepsTheFiguresOfRooflines) {
  const auto read = parse_machine(to_json(test::example()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->accesses_of(Level::l1d, Width::avx2, Mix::two_to_one, 2)->value, 3.3e11);
  EXPECT_EQ(read->accesses_of(Level::l1d, Width::avx2, Mix::loads, 2), nullptr);
  EXPECT_EQ(read->limits_of(Kind::nop)->buffer.value, 448);
  EXPECT_EQ(read->limits_of(Kind::scalar)->buffer.refused, "there is no knee");
  EXPECT_EQ(read->groups[1].fillers, 6U);
  EXPECT_EQ(read->most_of_groups(Level::memory, Width::scalar)->value, 0.5);
  EXPECT_EQ(read->ridge_of(Level::memory, Width::scalar, Kind::integer_add)->fillers, 16U);
  EXPECT_EQ(read->ridge_of(Level::memory, Width::scalar, Kind::scalar), nullptr);
  EXPECT_EQ(read->sparse_bands[0].rows, 512U);
  EXPECT_EQ(read->sparse_bands[0].best.value, 2e9);
}

TEST(MachineJson, RefusesImpossibleFiguresOfRooflines) {
  EXPECT_EQ(refusal([](Json& f) { f["accesses"][1]["threads"] = 1; }),
            "accesses[l1d, avx2, 2:1, 1]: it is given twice");
  EXPECT_EQ(refusal([](Json& f) { f["accesses"][1]["threads"] = 3; }),
            "accesses[l1d, avx2, 2:1, 3]: 3 is not from 1 to 2");
  EXPECT_EQ(refusal([](Json& f) { f["groups"][1]["fillers"] = 0; }), "groups[memory, scalar, 0]: it is given twice");
  EXPECT_EQ(refusal([](Json& f) { f["ridges"][0]["fillers"] = 5000; }),
            "ridges[memory, scalar, integer_add]: 5000 is not from 0 to 4096");
  EXPECT_EQ(refusal([](Json& f) { f["kinds"][0]["per_cycle"]["value"] = 1000; }),
            "kinds[nop].per_cycle.value: no machine has 1000.000000");
  EXPECT_EQ(refusal([](Json& f) { f["sparse_bands"][0]["rows"] = 0; }),
            "sparse_bands[l2, one_core, 64]: 0 is not from 1 to 268435456");
  EXPECT_EQ(refusal([](Json& f) { f["kinds"] = 3; }), "kinds: it is no list");
}

TEST(MachineJson, PassesOverWhatLaterVersionsAdd) {
  EXPECT_EQ(refusal([](Json& f) { f["flops"][0]["colour"] = "blue"; }), "accepted");
  EXPECT_EQ(refusal([](Json& f) { f["more"] = Json::array({1, 2}); }), "accepted");
}

}  // namespace
}  // namespace crosstalk::models::machine_json_test
