// SPDX-License-Identifier: Apache-2.0
#include "driver/live/feed.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "driver/live/stream.h"

namespace crosstalk::driver::live {
namespace {

class ProducerFeed final : public Feed {
 public:
  ProducerFeed(Producer producer, UniqueFd stop, UniqueFd news)
      : stop_(std::move(stop)), news_(std::move(news)), producer_(std::move(producer)), thread_([this] { run(); }) {}
  ProducerFeed(const ProducerFeed&) = delete;
  ProducerFeed& operator=(const ProducerFeed&) = delete;
  ~ProducerFeed() override {
    (void)::eventfd_write(stop_.get(), 1);
    thread_.join();
  }

  [[nodiscard]] int fd() const override { return news_.get(); }

  [[nodiscard]] News take() override {
    eventfd_t ignored = 0;
    (void)::eventfd_read(news_.get(), &ignored);
    const std::lock_guard lock(mutex_);
    return std::exchange(latest_, {});
  }

 private:
  void run() {
    for (bool more = true; more;) {
      Result<std::optional<Snapshot>> next = producer_.next(stop_.get());
      more = next && next->has_value();
      const std::lock_guard lock(mutex_);
      if (more) {
        latest_.snapshot = std::move(**next);
      } else {
        latest_.ended = true;
        latest_.error = next ? std::nullopt : std::optional(next.error());
      }
      (void)::eventfd_write(news_.get(), 1);
    }
  }

  UniqueFd stop_, news_;
  Producer producer_;
  std::mutex mutex_;
  News latest_;
  std::thread thread_;
};

class StreamFeed final : public Feed {
 public:
  explicit StreamFeed(UniqueFd stream) : stream_(std::move(stream)) {}

  [[nodiscard]] int fd() const override { return stream_.get(); }

  [[nodiscard]] News take() override {
    constexpr std::size_t piece = 64 << 10;
    std::array<char, piece> bytes{};
    News news;
    const ssize_t got = ::read(stream_.get(), bytes.data(), bytes.size());
    if (got < 0) {
      const bool later = errno == EINTR || errno == EAGAIN;
      return later ? News{}
                   : failed({ErrorCode::system, std::string("the stream cannot be read: ") + std::strerror(errno)});
    }
    if (const auto added = lines_.add({bytes.data(), static_cast<std::size_t>(got)}); !added) {
      return failed(added.error());
    }
    while (const auto line = lines_.next()) {
      if (!read_line(*line, news)) {
        return news;
      }
    }
    if (got == 0) {
      news.ended = true;
      if (!any_ && !lines_.rest().empty()) {  // else the rest is of a line that was cut short
        (void)read_line(lines_.rest(), news);
      } else if (!any_) {
        news.error = Error{ErrorCode::corrupt, "the stream ended before its first picture"};
      }
    }
    return news;
  }

 private:
  static News failed(Error error) { return {std::nullopt, true, std::move(error)}; }
  bool read_line(std::string_view line, News& news) {
    if (line.empty()) {
      return true;
    }
    Result<Snapshot> snapshot = read_snapshot(line);
    if (!snapshot) {
      news.ended = true;
      news.error = snapshot.error();
      return false;
    }
    news.snapshot = std::move(*snapshot);
    any_ = true;
    return true;
  }

  bool any_ = false;
  UniqueFd stream_;
  LineCutter lines_;
};

}  // namespace

Result<std::unique_ptr<Feed>> feed_of(Producer producer) {
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid() || !news.valid()) {
    return fail(ErrorCode::system, std::string("cannot make an event descriptor: ") + std::strerror(errno));
  }
  return std::make_unique<ProducerFeed>(std::move(producer), std::move(stop), std::move(news));
}

std::unique_ptr<Feed> feed_of(UniqueFd stream) { return std::make_unique<StreamFeed>(std::move(stream)); }

}  // namespace crosstalk::driver::live
