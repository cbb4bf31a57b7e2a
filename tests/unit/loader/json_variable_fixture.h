#pragma once

#include "btf/handle.h"
#include "loader/json_variable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>

namespace btfd::loader {

/// BTF made by hand, and values written by it.
class JsonVariable : public testing::Test {
 protected:
  JsonVariable() : btf_(btf__new_empty()) { btf__set_pointer_size(btf_.get(), sizeof(void*)); }

  [[nodiscard]] struct ::btf* btf() const { return btf_.get(); }

  static std::uint32_t id(int added) {
    EXPECT_GT(added, 0) << std::strerror(-added);
    return static_cast<std::uint32_t>(added);
  }

  /// Writes the JSON `text` as type `type` into `memory`; the error's message, empty if there is none.
  std::string write(std::uint32_t type, const std::string& text, std::span<std::byte> memory) {
    const auto value = nlohmann::json::parse(text, nullptr, false);
    EXPECT_FALSE(value.is_discarded()) << text;
    // Memory of exactly this size on the heap, so that a sanitizer sees what is written beside it.
    const auto exact = std::make_unique<std::byte[]>(memory.size()); // NOLINT(modernize-avoid-c-arrays)
    std::ranges::copy(memory, exact.get());
    const auto outcome = writeVariable(*btf(), type, value, std::span(exact.get(), memory.size()), "v");
    std::copy_n(exact.get(), memory.size(), memory.data());
    if (outcome) {
      return {};
    }
    EXPECT_EQ(outcome.error().error, "io.btfd.InvalidVariable");
    return outcome.error().parameters.at("message").get<std::string>();
  }

  /// Writes into `object`.
  template <typename T>
  std::string write(std::uint32_t type, const std::string& text, T& object) {
    return write(type, text, std::as_writable_bytes(std::span(&object, 1)));
  }

  std::uint32_t addInt(const char* name, std::size_t size, int encoding = 0) {
    return id(btf__add_int(btf(), name, size, encoding));
  }

 private:
  btf::BtfHandle btf_;
};

} // namespace btfd::loader
