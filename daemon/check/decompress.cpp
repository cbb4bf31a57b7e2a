#include "decompress.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>

#include <lzma.h>
#include <zlib.h>

namespace btfd::check {

namespace {

/// How much room is made at a time.
constexpr std::size_t kStep = std::size_t{1} << 20U;

template <std::size_t length>
bool beginsWith(std::span<const std::byte> content, const std::array<std::uint8_t, length>& magic) {
  return content.size() >= length && std::ranges::equal(content.first(length), std::as_bytes(std::span(magic)));
}

std::unexpected<Error> tooLarge(std::size_t most) {
  return fail("it holds more than " + std::to_string(most >> 20U) + " MiB", EFBIG);
}

/// Output that grows as it is written to, up to a limit.
class Output {
 public:
  explicit Output(std::size_t most) : most_(most) {}

  /// Room to write to, empty if the limit is reached.
  std::span<std::byte> room() {
    if (used_ == bytes_.size()) {
      bytes_.resize(std::min(most_, bytes_.size() + std::max(kStep, bytes_.size() / 2)));
    }
    return std::span(bytes_).subspan(used_);
  }

  void wrote(std::size_t bytes) { used_ += bytes; }

  std::vector<std::byte> take() {
    bytes_.resize(used_);
    return std::move(bytes_);
  }

 private:
  std::size_t most_;
  std::size_t used_ = 0;
  std::vector<std::byte> bytes_;
};

class Inflate {
 public:
  Inflate() {
    constexpr int kGzipOnly = 15 + 16; // zlib.h, inflateInit2
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }

  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;
  Inflate(Inflate&&) = delete;
  Inflate& operator=(Inflate&&) = delete;

  ~Inflate() { inflateEnd(&stream_); }

  Result<std::vector<std::byte>> run(std::span<const std::byte> content, std::size_t most) {
    if (!ready_ || content.size() > std::numeric_limits<uInt>::max()) {
      return fail("zlib cannot decompress it", ENOMEM);
    }
    // zlib does not write to its input, but its type does not say so.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(content.data())); // NOLINT
    stream_.avail_in = static_cast<uInt>(content.size());
    Output output(most);
    while (true) {
      const auto room = output.room();
      if (room.empty()) {
        return tooLarge(most);
      }
      stream_.next_out = reinterpret_cast<Bytef*>(room.data()); // NOLINT
      stream_.avail_out = static_cast<uInt>(room.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      output.wrote(room.size() - stream_.avail_out);
      if (status == Z_STREAM_END) {
        return output.take();
      }
      if (status != Z_OK) {
        return fail(status == Z_BUF_ERROR ? "the gzip file is cut off" : "the gzip file is damaged", EBADMSG);
      }
    }
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

class Unxz {
 public:
  Unxz() {
    // An xz file says itself how much memory its decompression takes: up to 4 GiB.
    constexpr std::uint64_t kMemory = std::uint64_t{256} << 20U;
    ready_ = lzma_stream_decoder(&stream_, kMemory, 0) == LZMA_OK;
  }

  Unxz(const Unxz&) = delete;
  Unxz& operator=(const Unxz&) = delete;
  Unxz(Unxz&&) = delete;
  Unxz& operator=(Unxz&&) = delete;

  ~Unxz() { lzma_end(&stream_); }

  Result<std::vector<std::byte>> run(std::span<const std::byte> content, std::size_t most) {
    if (!ready_) {
      return fail("liblzma cannot decompress it", ENOMEM);
    }
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(content.data()); // NOLINT
    stream_.avail_in = content.size();
    Output output(most);
    while (true) {
      const auto room = output.room();
      if (room.empty()) {
        return tooLarge(most);
      }
      stream_.next_out = reinterpret_cast<std::uint8_t*>(room.data()); // NOLINT
      stream_.avail_out = room.size();
      const lzma_ret status = lzma_code(&stream_, LZMA_FINISH);
      output.wrote(room.size() - stream_.avail_out);
      if (status == LZMA_STREAM_END) {
        return output.take();
      }
      if (status == LZMA_MEMLIMIT_ERROR) {
        return fail("decompressing the xz file takes more than 256 MiB of memory", EFBIG);
      }
      if (status != LZMA_OK) {
        return fail(status == LZMA_BUF_ERROR ? "the xz file is cut off" : "the xz file is damaged", EBADMSG);
      }
    }
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ready_ = false;
};

} // namespace

Compression compressionOf(std::span<const std::byte> content) {
  if (beginsWith(content, std::array<std::uint8_t, 2>{0x1f, 0x8b})) {
    return Compression::gzip;
  }
  if (beginsWith(content, std::array<std::uint8_t, 6>{0xfd, '7', 'z', 'X', 'Z', 0})) {
    return Compression::xz;
  }
  if (beginsWith(content, std::array<std::uint8_t, 4>{0x28, 0xb5, 0x2f, 0xfd})) {
    return Compression::zstd;
  }
  return Compression::none;
}

Result<std::vector<std::byte>> decompress(std::span<const std::byte> content, std::size_t most) {
  switch (compressionOf(content)) {
  case Compression::gzip:
    return Inflate().run(content, most);
  case Compression::xz:
    return Unxz().run(content, most);
  case Compression::zstd:
    return fail("it is compressed with zstd, which is not known here: decompress it with unzstd first", ENOTSUP);
  case Compression::none:
    break;
  }
  return fail("it is neither a gzip nor an xz file", EINVAL);
}

} // namespace btfd::check
