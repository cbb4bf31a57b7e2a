// An object file of either byte order, checked against small kernels of either: whatever its bytes, an error or a
// report.
#include "check/check_object.h"

#include "small_kernel.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

using namespace btfd::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto little = smallKernel(false);
  static const auto big = smallKernel(true);
  libbpf_set_print(nullptr);
  const auto object = ObjectToCheck::read(fileOf(data, size));
  if (!object) {
    return 0;
  }
  for (const auto* kernel : {little.get(), big.get()}) {
    const Report whole = checkObject(*object, *kernel, {.allRelocations = true});
    const Report least = checkObject(*object, *kernel, {.most = 1});
    const auto& counts = whole.relocationCounts;
    if (whole.relocations.size() != counts.resolved + counts.poisoned + counts.failed ||
        whole.verdict != least.verdict || least.findings.size() > 1) {
      std::abort();
    }
  }
  return 0;
}
