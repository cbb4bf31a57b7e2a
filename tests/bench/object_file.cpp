#include "object_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace btfd::bench {

Result<ObjectFile> ObjectFile::read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return failErrno("cannot open " + path.string() + " (build the target bpf_objects first)", errno);
  }
  const std::vector<char> text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto bytes = std::as_bytes(std::span(text));
  if (bytes.size() < EI_NIDENT) {
    return fail(path.string() + " is too short for an ELF file");
  }
  return ObjectFile({bytes.begin(), bytes.end()});
}

void ObjectFile::makeDistinct(std::uint64_t number) {
  std::memcpy(bytes_.data() + EI_PAD, &number, EI_NIDENT - EI_PAD);
}

Result<UniqueFd> ObjectFile::memfd() const {
  UniqueFd file(::memfd_create("btfd-bench", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) {
    return failErrno("memfd_create", errno);
  }
  std::span<const std::byte> rest = bytes_;
  while (!rest.empty()) {
    const ssize_t written = ::write(file.get(), rest.data(), rest.size());
    if (written < 0) {
      return failErrno("writing the object to a memfd", errno);
    }
    rest = rest.subspan(static_cast<std::size_t>(written));
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    return failErrno("sealing a memfd", errno);
  }
  return file;
}

} // namespace btfd::bench
