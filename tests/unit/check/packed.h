#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include <lzma.h>
#include <zlib.h>

namespace btfd::test_support {

/// `content` as a gzip file.
inline std::vector<std::byte> gzipped(std::span<const std::byte> content) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  if (deflateInit2(&stream, 1, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib does not begin");
  }
  std::vector<std::byte> packed(deflateBound(&stream, static_cast<uLong>(content.size())) + 32);
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(content.data())); // NOLINT
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data()); // NOLINT
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// `content` as an xz file.
inline std::vector<std::byte> xzed(std::span<const std::byte> content) {
  std::vector<std::byte> packed(lzma_stream_buffer_bound(content.size()));
  std::size_t used = 0;
  const auto status =
      lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, nullptr,
                              reinterpret_cast<const std::uint8_t*>(content.data()),                 // NOLINT
                              content.size(), reinterpret_cast<std::uint8_t*>(packed.data()), &used, // NOLINT
                              packed.size());
  if (status != LZMA_OK) {
    throw std::runtime_error("liblzma does not pack");
  }
  packed.resize(used);
  return packed;
}

} // namespace btfd::test_support
