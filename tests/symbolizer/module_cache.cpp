// SPDX-License-Identifier: Apache-2.0
// Modules that stay loaded from one Symbolizer to the next.
#include "symbolizer/module_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/file_content.h"
#include "fixture.h"

namespace crosstalk::symbolizer::module_cache_test {
namespace {

namespace fs = std::filesystem;

Options with(const std::shared_ptr<ModuleCache>& cache) {
  Options options = offline();
  options.cache = cache;
  return options;
}

/// A copy of a fixture that the test may change.
class Copy {
 public:
  explicit Copy(const std::string& name) : path_(fs::path(testing::TempDir()) / name) {
    fs::copy_file(fixture("program_o2"), path_, fs::copy_options::overwrite_existing);
  }
  ~Copy() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  [[nodiscard]] std::string path() const { return path_; }

 private:
  fs::path path_;
};

TEST(ModuleCache, ALoadedFileIsNotReadAgain) {
  const auto cache = std::make_shared<ModuleCache>();
  const std::uint64_t main = address_of(fixture("program_o2"), "main");
  const Copy copy("cached_program");
  {
    Symbolizer first(with(cache));
    const ModuleId id = first.add_module({copy.path(), "", false});
    ASSERT_FALSE(first.locate(id, main).frames.empty());
  }
  fs::remove(copy.path());
  Symbolizer second(with(cache));
  const ModuleId id = second.add_module({copy.path(), "", false});
  const CodeLocation& location = second.locate(id, main);
  ASSERT_FALSE(location.frames.empty());
  EXPECT_EQ(location.frames.back().function, "main");
  EXPECT_TRUE(second.missing().empty());
  Symbolizer without(offline());
  EXPECT_TRUE(without.locate(without.add_module({copy.path(), "", false}), main).frames.empty());
}

TEST(ModuleCache, AnotherFileAtThePathIsAnotherModule) {
  const auto cache = std::make_shared<ModuleCache>();
  const Copy copy("replaced_program");
  const ModuleSpec before{copy.path(), "", false, content_hash(copy.path())};
  const std::uint64_t main = address_of(copy.path(), "main");
  {
    Symbolizer first(with(cache));
    ASSERT_FALSE(first.locate(first.add_module(before), main).frames.empty());
  }
  fs::remove(copy.path());
  fs::copy_file(fixture("program_o0"), copy.path());
  Symbolizer second(with(cache));
  const std::uint64_t new_main = address_of(copy.path(), "main");
  const ModuleId now = second.add_module({copy.path(), "", false, content_hash(copy.path())});
  const ModuleId then = second.add_module(before);
  ASSERT_FALSE(second.locate(now, new_main).frames.empty());
  EXPECT_EQ(second.locate(now, new_main).frames.back().function, "main");
  EXPECT_EQ(second.locate(then, main).frames.back().function, "main");
  EXPECT_EQ(cache->size(), 2U);
}

TEST(ModuleCache, NothingIsMissingBeforeItIsAskedFor) {
  const auto cache = std::make_shared<ModuleCache>();
  {
    Symbolizer first(with(cache));
    (void)first.locate(first.add_module({"/no/such/file", "", false}), 0x1000);
    EXPECT_EQ(first.missing().size(), 1U);
  }
  Symbolizer second(with(cache));
  const ModuleId id = second.add_module({"/no/such/file", "", false});
  EXPECT_TRUE(second.missing().empty());
  (void)second.locate(id, 0x1000);  // known from before
  EXPECT_EQ(second.missing().size(), 1U);
}

TEST(ModuleCache, AFileThatARecordingKeptIsFoundLater) {
  const auto cache = std::make_shared<ModuleCache>();
  const ModuleSpec spec{"/gone/program", "", false, content_hash(fixture("program_o2"))};
  const std::uint64_t main = address_of(fixture("program_o2"), "main");
  {
    Symbolizer first(with(cache));
    ASSERT_TRUE(first.locate(first.add_module(spec), main).frames.empty());
  }
  Options options = with(cache);
  options.kept_copy = [](const ModuleSpec&) -> std::optional<std::vector<std::uint8_t>> {
    std::ifstream file(fixture("program_o2"), std::ios::binary);
    return std::vector<std::uint8_t>{std::istreambuf_iterator<char>(file), {}};
  };
  Symbolizer second(options);
  EXPECT_FALSE(second.locate(second.add_module(spec), main).frames.empty());
}

TEST(ModuleCache, ModulesThatNobodyHasAreDropped) {
  const auto cache = std::make_shared<ModuleCache>();
  (void)Symbolizer(with(cache)).add_module({"/a", "", false});
  for (std::uint64_t i = 0; i < ModuleCache::kept_unused; ++i) {
    (void)Symbolizer(with(cache)).add_module({"/b", "", false});
    EXPECT_EQ(cache->size(), 2U);
  }
  (void)Symbolizer(with(cache)).add_module({"/b", "", false});
  EXPECT_EQ(cache->size(), 1U);
}

}  // namespace
}  // namespace crosstalk::symbolizer::module_cache_test
