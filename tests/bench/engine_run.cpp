#include "engine_run.h"

#include "object/relocate_image.h"
#include "statistics.h"

#include <cerrno>
#include <cstdint>
#include <limits>
#include <utility>

namespace btfd::bench {

Result<EngineRun> EngineRun::prepare() {
  auto spec = btf::KernelSpec::build({}, 1);
  if (!spec) {
    return std::unexpected(std::move(spec.error()));
  }
  return EngineRun(std::move(*spec));
}

Result<double> EngineRun::turn(BorrowedFd file) const {
  auto bytes = object::ClientBytes::read(file, std::numeric_limits<std::uint32_t>::max());
  if (!bytes) {
    return std::unexpected(std::move(bytes.error()));
  }
  const auto image = object::CheckedImage::check(*bytes);
  if (!image) {
    return std::unexpected(image.error());
  }
  const auto start = Clock::now();
  const auto records = object::CoreRecords::read(*image);
  if (!records) {
    return std::unexpected(records.error());
  }
  const auto relocations = records->relocate(*bytes, core::Targets(*spec_));
  const double duration = millisecondsSince(start);
  for (const core::Relocation& relocation : relocations) {
    if (relocation.outcome == core::Outcome::failed) {
      return fail("a relocation of the object fails", EINVAL);
    }
  }
  return duration;
}

} // namespace btfd::bench
