#include "btf_job.h"

#include "base/memfd.h"
#include "object/kept_image.h"
#include "object/libbpf_log.h"
#include "open_object.h"

#include <bpf/btf.h>

#include <cstddef>
#include <span>
#include <utility>

namespace btfd::loader {

Outcome<JobReply> runBtfJob(const nlohmann::json& request, const RequestDescriptors& descriptors) {
  const BorrowedFd image = descriptors.held(request.at("image"));
  const auto kept =
      request.value("relocated", false) ? object::KeptImage::open(image) : object::KeptImage::ofFile(image);
  if (!kept) {
    return invalidObject(kept.error().message);
  }
  const object::LibbpfLog log;
  auto opened = openObject(kept->object(), {}, log);
  if (!opened) {
    return std::unexpected(std::move(opened.error()));
  }
  const struct btf* btf = bpf_object__btf(opened->get());
  __u32 size = 0;
  const void* bytes = btf == nullptr ? nullptr : btf__raw_data(btf, &size);
  if (bytes == nullptr) {
    return invalidObject("the object has no BTF");
  }
  auto memfd = sealedMemfd("btfd-btf", std::span(static_cast<const std::byte*>(bytes), size));
  if (!memfd) {
    return invalidObject(memfd.error().message);
  }
  JobReply reply;
  reply.body = nlohmann::json::object();
  reply.add(std::move(*memfd));
  return reply;
}

} // namespace btfd::loader
