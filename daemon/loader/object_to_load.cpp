#include "object_to_load.h"

#include "base/memfd.h"
#include "check/btf_file.h"
#include "open_object.h"
#include "seam.h"

#include <bit>
#include <cerrno>
#include <utility>

namespace btfd::loader {

namespace {

constexpr const char* kKernelBtf = "kernelBtfFileDescriptor";

/// The kernel BTF that the request comes with.
Outcome<std::unique_ptr<check::TargetKernel>> readKernelBtf(BorrowedFd file, const JobLimits& limits) {
  const auto bytes = check::readBtf(file, limits.objectBytes);
  if (!bytes && bytes.error().code == EFBIG) {
    return std::unexpected(limitExceeded("the kernel BTF " + bytes.error().message, "objectBytes", limits.objectBytes));
  }
  if (!bytes) {
    return invalidParameter(kKernelBtf, "the file " + bytes.error().message);
  }
  if (check::isOfModule(*bytes)) {
    return invalidParameter(kKernelBtf, "the file holds only what a module adds to its kernel's BTF");
  }
  auto kernel = check::TargetKernel::make("the request's BTF", *bytes);
  if (!kernel) {
    return invalidParameter(kKernelBtf, kernel.error().message);
  }
  if ((*kernel)->isBigEndian() != (std::endian::native == std::endian::big)) {
    return invalidParameter(kKernelBtf, "the BTF is of a kernel of the other byte order");
  }
  return std::move(*kernel);
}

} // namespace

Outcome<ObjectToLoad> ObjectToLoad::read(const nlohmann::json& request, RequestDescriptors& descriptors,
                                         const JobLimits& limits) {
  const nlohmann::json& parameters = request.at("parameters");
  const auto file = descriptors.take(parameters.at("objectFileDescriptor"), "objectFileDescriptor");
  if (!file) {
    return std::unexpected(file.error());
  }
  auto given = readObject(*file, limits);
  if (!given) {
    return std::unexpected(std::move(given.error()));
  }
  ObjectToLoad object(std::move(*given), *file);
  if (auto taken = object.takeKept(request, descriptors); !taken) {
    return std::unexpected(std::move(taken.error()));
  }
  if (object.kept_) {
    return object;
  }
  std::shared_ptr<const check::TargetKernel> kernel;
  if (const auto index = parameters.find(kKernelBtf); index != parameters.end()) {
    const auto btf = descriptors.take(*index, kKernelBtf);
    if (!btf) {
      return std::unexpected(btf.error());
    }
    auto read = readKernelBtf(*btf, limits);
    if (!read) {
      return std::unexpected(std::move(read.error()));
    }
    kernel = std::move(*read);
  }
  auto relocations = Relocations::apply(object.given_, std::move(kernel));
  if (!relocations) {
    return std::unexpected(std::move(relocations.error()));
  }
  object.relocations_ = std::move(*relocations);
  return object;
}

Outcome<void> ObjectToLoad::takeKept(const nlohmann::json& request, const RequestDescriptors& descriptors) {
  const auto kept = request.find("kept");
  if (kept == request.end() || kept->at("digest") != digest_) {
    return {};
  }
  auto opened = object::KeptImage::open(descriptors.held(kept->at("image")));
  if (!opened) {
    return invalidObject(opened.error().message);
  }
  // The front thought so when the request came; since then the kernel's modules may have changed.
  const std::uint64_t generation = opened->generation();
  const LentSpec lent = kernelSpec();
  if (generation == object::Relocated::kOfAnyKernel ||
      (lent.spec != nullptr && lent.spec->generation() == generation)) {
    kept_ = std::move(*opened);
  }
  return {};
}

const Relocations& ObjectToLoad::relocations() {
  if (kept_ && relocations_.all().empty()) {
    if (auto read = Relocations::ofKept(*kept_)) {
      relocations_ = std::move(*read);
    }
  }
  return relocations_;
}

/// The object file as something that nobody can change any more: the client's own memfd if it is sealed, else a copy.
Result<UniqueFd> ObjectToLoad::sealedFile() const {
  if (!given_.isMapping()) {
    return sealedMemfd("btfd-object", given_.bytes());
  }
  UniqueFd duplicate = file_.duplicate();
  if (!duplicate) {
    return failErrno("cannot duplicate the object's descriptor", errno);
  }
  return duplicate;
}

Outcome<void> ObjectToLoad::makeImage() {
  if (kept_) {
    return {};
  }
  auto image = relocations_.all().empty() ? sealedFile() : object::KeptImage::make(given_, relocations_.done());
  if (!image) {
    return invalidObject(image.error().message);
  }
  image_ = std::move(*image);
  return {};
}

void ObjectToLoad::moveImageTo(JobReply& reply) {
  if (!image_) {
    return;
  }
  reply.body["image"] = reply.add(std::move(image_));
  reply.body["relocated"] = !relocations_.all().empty();
  if (relocations_.isForAll()) {
    reply.body["generation"] = relocations_.done().generation;
  }
}

} // namespace btfd::loader
