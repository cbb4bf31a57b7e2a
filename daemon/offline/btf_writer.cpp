#include "btf_writer.h"

#include <cstring>
#include <span>

#include <linux/btf.h>

namespace btfd::offline {

void BtfWriter::begin(const struct btf_type& type, std::string_view name, std::uint32_t members,
                      std::uint32_t typeOrSize) {
  constexpr std::uint32_t kMembers = BTF_MAX_VLEN;
  words_.insert(words_.end(), {string(name), (type.info & ~kMembers) | members, typeOrSize});
}

void BtfWriter::filler() {
  constexpr std::uint32_t kKindShift = 24;
  words_.insert(words_.end(), {0, BTF_KIND_PTR << kKindShift, 0}); // void*: no kind is smaller
}

std::uint32_t BtfWriter::string(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const auto [found, isNew] = offsets_.try_emplace(std::string(text), static_cast<std::uint32_t>(strings_.size()));
  if (isNew) {
    strings_ += text;
    strings_ += '\0';
  }
  return found->second;
}

std::vector<std::byte> BtfWriter::bytes() const {
  const auto types = std::as_bytes(std::span(words_));
  const auto strings = std::as_bytes(std::span(strings_));
  struct btf_header header{};
  header.magic = BTF_MAGIC;
  header.version = BTF_VERSION;
  header.hdr_len = sizeof(header);
  header.type_len = static_cast<std::uint32_t>(types.size());
  header.str_off = header.type_len;
  header.str_len = static_cast<std::uint32_t>(strings.size());
  std::vector<std::byte> all(sizeof(header));
  std::memcpy(all.data(), &header, sizeof(header));
  all.insert(all.end(), types.begin(), types.end());
  all.insert(all.end(), strings.begin(), strings.end());
  return all;
}

} // namespace btfd::offline
