// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or the one-line error that took its place.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace crosstalk {

/// The kind of an Error; the driver maps it to an exit status.
enum class ErrorCode {
  invalid_argument,  ///< an impossible request of the user
  not_found,         ///< a file, command or process is not there
  not_executable,    ///< a command is there and cannot be executed
  refused,           ///< we decline (static or setuid binary, ...)
  permission,        ///< the kernel or the file system forbids it
  corrupt,           ///< bytes from outside that are not what they should be
  unsupported,       ///< this machine, kernel or file format version lacks it
  system             ///< any other failed call
};

/// One line: what failed, the value found, the remedy. No trailing newline, no "crosstalk: " prefix.
struct Error {
  ErrorCode code = ErrorCode::system;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

/// Fails as the first of the results that has failed.
template <class... Values>
[[nodiscard]] Result<void> check_all(const Result<Values>&... results) {
  const Error* first = nullptr;
  ((first = first == nullptr && !results ? &results.error() : first), ...);
  return first == nullptr ? Result<void>() : tl::unexpected<Error>(*first);
}

}  // namespace crosstalk
