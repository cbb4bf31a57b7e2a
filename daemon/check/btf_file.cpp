#include "btf_file.h"

#include "base/read_file.h"
#include "base/unique_fd.h"
#include "decompress.h"

#include <gelf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include <fcntl.h>
#include <libelf.h>
#include <linux/btf.h>
#include <sys/stat.h>

namespace btfd::check {

namespace {

struct ElfDeleter {
  void operator()(Elf* elf) const { elf_end(elf); }
};

using ElfHandle = std::unique_ptr<Elf, ElfDeleter>;

bool isElf(std::span<const std::byte> content) {
  return content.size() >= SELFMAG && std::memcmp(content.data(), ELFMAG, SELFMAG) == 0;
}

bool hasBtfMagic(std::span<const std::byte> content) {
  std::uint16_t magic = 0;
  if (content.size() < sizeof(magic)) {
    return false;
  }
  std::memcpy(&magic, content.data(), sizeof(magic));
  return magic == BTF_MAGIC || magic == __builtin_bswap16(BTF_MAGIC);
}

/// The first bytes of `file`, which tell what it is.
Result<std::vector<std::byte>> peek(BorrowedFd file) {
  std::vector<std::byte> head(16);
  const ssize_t got = ::pread(file.get(), head.data(), head.size(), 0);
  if (got < 0) {
    return failErrno("cannot be read", errno);
  }
  head.resize(static_cast<std::size_t>(got));
  return head;
}

std::vector<std::byte> contentOf(Elf_Scn* section) {
  const Elf_Data* data = elf_rawdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) {
    return {};
  }
  const auto* bytes = static_cast<const std::byte*>(data->d_buf);
  return {bytes, bytes + data->d_size};
}

Result<BtfBytes> fromElf(Elf* elf) {
  std::size_t names = 0;
  std::size_t count = 0;
  GElf_Ehdr fileHeader{};
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &fileHeader) == nullptr ||
      elf_getshdrstrndx(elf, &names) < 0 || elf_getshdrnum(elf, &count) < 0) {
    return fail("is a damaged ELF file", EINVAL);
  }
  if (count == 0 && fileHeader.e_shoff != 0) {
    return fail("is a damaged ELF file: its section table is cut off", EINVAL);
  }
  if (fileHeader.e_machine == EM_BPF) {
    return fail("is a BPF object and no kernel: objects come first, and kernels after --kernel", EINVAL);
  }
  BtfBytes found;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr) {
      return fail("is a damaged ELF file", EINVAL);
    }
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name == nullptr) {
      continue;
    }
    // The first of the name, as there may be thousands that are all the same bytes.
    if (std::string_view(name) == ".BTF" && found.btf.empty()) {
      found.btf = contentOf(section);
    } else if (std::string_view(name) == ".BTF.base" && found.distilledBase.empty()) {
      found.distilledBase = contentOf(section);
    }
  }
  if (found.btf.empty()) {
    return fail("is an ELF file without a .BTF section: the kernel was built without CONFIG_DEBUG_INFO_BTF, or the "
                "section was stripped",
                ENODATA);
  }
  return found;
}

Result<BtfBytes> fromContent(std::vector<std::byte> content) {
  if (isElf(content)) {
    auto* memory = reinterpret_cast<char*>(content.data()); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
    const ElfHandle elf(elf_memory(memory, content.size()));
    return fromElf(elf.get());
  }
  if (hasBtfMagic(content)) {
    return BtfBytes{.btf = std::move(content), .distilledBase = {}};
  }
  return fail(content.empty() ? "is empty" : "is neither BTF nor an ELF file", EINVAL);
}

Result<void> checkRegular(BorrowedFd file) {
  struct stat status{};
  if (::fstat(file.get(), &status) < 0) {
    return failErrno("cannot be read", errno);
  }
  return S_ISREG(status.st_mode) ? Result<void>() : fail("is no regular file", EINVAL);
}

Result<BtfBytes> fromFile(BorrowedFd file) {
  if (auto regular = checkRegular(file); !regular) {
    return std::unexpected(std::move(regular.error()));
  }
  const auto head = peek(file);
  if (head && isElf(*head)) {
    // Not read as a whole: vmlinux with DWARF has hundreds of MiB. Nor mapped: whoever cuts the file off meanwhile
    // would make this process get SIGBUS.
    const ElfHandle elf(elf_begin(file.get(), ELF_C_READ, nullptr));
    return fromElf(elf.get());
  }
  return readBtf(file, kMostDecompressed);
}

/// Whether `btf` refers to the types and strings of another, its base: it then has no strings, or they do not begin
/// with the empty one (libbpf's btf_parse_str_sec).
bool isSplit(std::span<const std::byte> btf) {
  struct btf_header header{};
  if (btf.size() < sizeof(header) || !hasBtfMagic(btf)) {
    return false;
  }
  std::memcpy(&header, btf.data(), sizeof(header));
  if (header.magic != BTF_MAGIC) {
    for (std::uint32_t* field : {&header.hdr_len, &header.str_off, &header.str_len}) {
      *field = __builtin_bswap32(*field);
    }
  }
  const std::uint64_t strings = std::uint64_t{header.hdr_len} + header.str_off;
  return header.str_len == 0 || (strings < btf.size() && btf[strings] != std::byte{0});
}

} // namespace

Result<BtfBytes> readBtf(BorrowedFd file, std::size_t limit) {
  elf_version(EV_CURRENT);
  if (auto regular = checkRegular(file); !regular) {
    return std::unexpected(std::move(regular.error()));
  }
  auto content = readAll(file, limit);
  if (!content) {
    return std::unexpected(std::move(content.error()));
  }
  if (compressionOf(*content) == Compression::none) {
    return fromContent(std::move(*content));
  }
  auto plain = decompress(*content, limit);
  if (!plain) {
    return std::unexpected(std::move(plain.error()).within("cannot be decompressed"));
  }
  return fromContent(std::move(*plain));
}

Result<BtfBytes> readBtf(const std::string& path) {
  elf_version(EV_CURRENT);
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)); // no waiting for a FIFO's writer
  if (!file) {
    return failErrno(path, errno);
  }
  auto found = fromFile(file);
  if (!found) {
    found.error().message = path + " " + found.error().message;
  }
  return found;
}

bool looksLikeBtf(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto head = file ? peek(file) : fail("");
  return head && hasBtfMagic(*head);
}

bool isOfModule(const BtfBytes& bytes) {
  return isSplit(bytes.btf) || !bytes.distilledBase.empty();
}

} // namespace btfd::check
