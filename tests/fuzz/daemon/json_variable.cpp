// A client's BTF and a value for one of its variables: written into its place, and nowhere else.
#include "loader/json_variable.h"

#include "btf/handle.h"

#include <bpf/libbpf.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

using namespace btfd;

/// The first byte is the size of the variable's place; then JSON up to a NUL; the rest is raw BTF, each of whose types
/// is the variable's once.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto quiet = libbpf_set_print(nullptr);
  static_cast<void>(quiet);
  if (size < 2) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto end = text.find('\0');
  if (end == std::string_view::npos) {
    return 0;
  }
  const auto value = nlohmann::json::parse(text.substr(0, end), nullptr, false);
  if (value.is_discarded()) {
    return 0;
  }
  const auto raw = text.substr(end + 1);
  const btfd::btf::BtfHandle btf(btf__new(raw.data(), static_cast<std::uint32_t>(raw.size())));
  if (!btf) {
    return 0;
  }
  const std::size_t place = data[0];
  for (std::uint32_t id = 0; id < btf__type_cnt(btf.get()) && id < 64; ++id) {
    const auto memory = std::make_unique<std::byte[]>(place); // NOLINT(modernize-avoid-c-arrays): of exactly this size
    static_cast<void>(loader::writeVariable(*btf, id, value, {memory.get(), place}, "v"));
  }
  return 0;
}
