// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "driver/terminal/canvas.h"
#include "driver/terminal/layout.h"

namespace crosstalk::driver::text_layout_test {
namespace {

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("é"), 1);
  EXPECT_EQ(display_width("e\xcc\x81"), 1);  // e and a combining acute accent
  EXPECT_EQ(display_width("漢字"), 4);
  EXPECT_EQ(display_width("█░"), 2);
  EXPECT_EQ(display_width("\xff\xfe"), 2);  // malformed
  EXPECT_EQ(display_width("\xe6\xbc"), 2);  // cut off
}

TEST(Fit, CutsToColumns) {
  EXPECT_EQ(fit_end("abcdef", 6, Charset::utf8), "abcdef");
  EXPECT_EQ(fit_end("abcdef", 4, Charset::utf8), "abc…");
  EXPECT_EQ(fit_end("abcdef", 4, Charset::ascii), "ab..");
  EXPECT_EQ(fit_middle("abcdefgh", 5, Charset::utf8), "ab…gh");
  EXPECT_EQ(fit_middle("abcdefgh", 6, Charset::ascii), "ab..gh");
  EXPECT_EQ(fit_middle("漢字漢字", 5, Charset::utf8), "漢…字");
  EXPECT_EQ(fit_end("abc", 0, Charset::utf8), "");
}

TEST(Fit, NeverExceedsTheWidth) {
  const std::string text = "std::map<漢字, e\xcc\x81>::operator[](unsigned long)";
  for (int width = 0; width < 60; ++width) {
    for (const Charset charset : {Charset::utf8, Charset::ascii}) {
      EXPECT_LE(display_width(fit_end(text, width, charset)), width);
      EXPECT_LE(display_width(fit_middle(text, width, charset)), width);
    }
  }
}

TEST(Pad, FillsToColumns) {
  EXPECT_EQ(pad_right("漢", 4), "漢  ");
  EXPECT_EQ(pad_left("é", 3), "  é");
  EXPECT_EQ(pad_right("abc", 2), "abc");
}

TEST(Clean, DisarmsNames) {
  EXPECT_EQ(clean("a\x1b[31m\nb", Charset::utf8), "a?[31m?b");
  EXPECT_EQ(clean("a\xff", Charset::utf8), "a\xef\xbf\xbd");
  EXPECT_EQ(clean("(anonymous namespace)::f(x)", Charset::utf8), "f(x)");
  EXPECT_EQ(clean("é\xff", Charset::ascii), "??");
  EXPECT_EQ(clean("a\xe2\x80\xae"
                  "b",
                  Charset::utf8),
            "a?b");  // a right-to-left override
}

TEST(Paragraph, ANumberStaysWithItsUnit) {
  const auto broken = [](const char* text) {
    Canvas canvas({12, Charset::ascii, false});
    canvas.paragraph("", text);
    return canvas.take();
  };
  EXPECT_EQ(broken("it waits 1.89 s, then"), "it waits\n1.89 s, then\n");
  EXPECT_EQ(broken("it waited 71 % of it"), "it waited\n71 % of it\n");
  EXPECT_EQ(broken("threads 12 so many"), "threads 12\nso many\n") << "no unit";
}

TEST(Bar, IsAsWideAsAsked) {
  for (const double share : {0.0, 0.01, 0.5, 0.999, 1.0, 7.0, -1.0}) {
    EXPECT_EQ(display_width(bar(share, 10, Charset::utf8)), 10) << share;
    EXPECT_EQ(display_width(bar(share, 10, Charset::ascii)), 10) << share;
  }
  EXPECT_EQ(bar(0.5, 4, Charset::ascii), "##  ");
  EXPECT_EQ(bar(0.5, 3, Charset::utf8), "█▌ ");
}

TEST(Numbers, HaveThreeDigitsAndAUnit) {
  EXPECT_EQ(seconds_text(0), "0 s");
  EXPECT_EQ(seconds_text(1.2345), "1.23 s");
  EXPECT_EQ(seconds_text(0.0123), "12.3 ms");
  EXPECT_EQ(seconds_text(0.9999), "1.00 s");
  EXPECT_EQ(seconds_text(0.00034), "340 us");
  EXPECT_EQ(seconds_text(12e-9), "12.0 ns");
  EXPECT_EQ(short_seconds_text(0.0123), "12.3ms");
  EXPECT_EQ(rough_seconds_text(0.00474), "~5ms");
  EXPECT_EQ(rough_seconds_text(0.0378), "~40ms");
  EXPECT_EQ(rough_seconds_text(0.97), "~1s");
  EXPECT_EQ(percent_text(0.123), "12.3 %");
  EXPECT_EQ(percent_text(0.0001), "< 0.1 %");
  EXPECT_EQ(percent_text(0), "0.0 %");
  EXPECT_EQ(count_text(731), "731");
  EXPECT_EQ(count_text(12345), "12.3 k");
  EXPECT_EQ(count_text(4.56e6), "4.56 M");
  EXPECT_EQ(bytes_text(64), "64 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(1 << 20), "1 MiB");
}

}  // namespace
}  // namespace crosstalk::driver::text_layout_test
