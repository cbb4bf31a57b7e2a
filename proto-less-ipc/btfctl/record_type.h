#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <bpf/btf.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace btfd::btfctl {

/// What the records of a ring buffer are, by the BTF of the object that writes them.
class RecordType {
 public:
  /// `btf`: a file with the object's BTF. `map`: the ring buffer's name. `type`: the record's type as in C, "struct
  /// event" or "event"; if empty, the one that the map declares for its values, or else for each record the only struct
  /// of its size.
  static Result<RecordType> find(BorrowedFd btf, const std::string& map, const std::string& type);

  /// A record as JSON; in hexadecimal if it is not known what it is, or if it is shorter than that.
  [[nodiscard]] nlohmann::json read(std::span<const std::byte> record) const;

 private:
  struct Deleter {
    void operator()(struct ::btf* btf) const { btf__free(btf); }
  };

  RecordType() = default;

  [[nodiscard]] std::uint32_t named(const std::string& type) const;
  [[nodiscard]] std::uint32_t declaredBy(const std::string& map) const;
  [[nodiscard]] std::uint32_t onlyOfSize(std::size_t size) const;

  std::unique_ptr<struct ::btf, Deleter> btf_;
  /// 0 if it is not known.
  std::uint32_t type_ = 0;
};

} // namespace btfd::btfctl
