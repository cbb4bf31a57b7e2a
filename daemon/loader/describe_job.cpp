#include "describe_job.h"

#include "object/kept_image.h"
#include "relocations.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace btfd::loader {

namespace {

/// As many as io.btfd.Check has in a report. An answer of many more would not fit a message.
constexpr std::size_t kMostRecords = 1000;

} // namespace

Outcome<JobReply> runDescribeJob(const nlohmann::json& request, const RequestDescriptors& descriptors) {
  auto image = object::KeptImage::open(descriptors.held(request.at("image")));
  if (!image) {
    return invalidObject(image.error().message);
  }
  const auto relocations = Relocations::ofKept(*image);
  if (!relocations) {
    return invalidObject(relocations.error().message);
  }
  const std::span all(relocations->all());
  JobReply reply;
  reply.body["relocations"] = nlohmann::json::array();
  for (const core::Relocation& relocation : all.first(std::min(all.size(), kMostRecords))) {
    reply.body["relocations"].push_back(relocations->record(relocation));
  }
  reply.body["relocationsLeftOut"] = all.size() - reply.body["relocations"].size();
  return reply;
}

} // namespace btfd::loader
