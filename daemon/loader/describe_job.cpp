#include "describe_job.h"

#include "object/kept_image.h"
#include "relocations.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace btfd::loader {

namespace {

/// As many as io.btfd.Check has in a report.
constexpr std::size_t kMostRecords = 1000;

/// What all texts of an answer may take, in bytes: the front does nothing else while it passes one on, and keeps it for
/// a client that does not read.
constexpr std::size_t kMostText = std::size_t{1} << 20;

std::size_t textIn(const nlohmann::json& record) {
  std::size_t bytes = 0;
  for (const auto& [field, value] : record.items()) {
    bytes += field.size() + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  }
  return bytes;
}

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
  core::NearNames near = relocations->nearNames();
  std::size_t text = 0;
  for (const core::Relocation& relocation : all.first(std::min(all.size(), kMostRecords))) {
    auto record = relocations->record(relocation, near);
    text += textIn(record);
    if (text > kMostText) {
      break;
    }
    reply.body["relocations"].push_back(std::move(record));
  }
  reply.body["relocationsLeftOut"] = all.size() - reply.body["relocations"].size();
  return reply;
}

} // namespace btfd::loader
