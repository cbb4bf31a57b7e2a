#include "object_json.h"

#include "loader/tc_filter.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <stdexcept>
#include <utility>

namespace btfd::service {

namespace {

template <typename Duration>
std::int64_t microseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

nlohmann::json toJson(const registry::Program& program, AnswerDescriptors& descriptors) {
  nlohmann::json json;
  json["name"] = program.name;
  json["section"] = program.section;
  json["type"] = program.type;
  json["kernelId"] = program.kernelId;
  json["tag"] = program.tag;
  if (!program.madeFor.empty()) {
    json["target"] = program.madeFor;
  }
  descriptors.add(json, program.descriptor);
  return json;
}

nlohmann::json toJson(const registry::Map& map, AnswerDescriptors& descriptors) {
  nlohmann::json json;
  json["name"] = map.name;
  json["type"] = map.type;
  json["kernelId"] = map.kernelId;
  json["keySize"] = map.keySize;
  json["valueSize"] = map.valueSize;
  json["maxEntries"] = map.maxEntries;
  descriptors.add(json, map.descriptor);
  return json;
}

/// Bytes of its text as part of a message.
std::size_t textBytes(const nlohmann::json& json) {
  constexpr std::size_t kComma = 1;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size() + kComma;
}

/// A number of type T; nlohmann would cut or convert what is none.
template <typename T>
T number(const nlohmann::json& json) {
  if (!json.is_number_integer() || json < 0 || json > std::numeric_limits<T>::max()) {
    throw std::out_of_range("a number is no number, or does not fit");
  }
  return json.get<T>();
}

/// Reads a worker's answer. Throws nlohmann's exceptions and std::out_of_range on one that makes no sense: a worker
/// sends such only if it is broken, and there is one place that catches.
class AnswerReader {
 public:
  explicit AnswerReader(loader::ChannelMessage& answer) : descriptors_(answer.descriptors) {}

  UniqueFd descriptor(const nlohmann::json& index) {
    UniqueFd descriptor = std::move(descriptors_.at(number<std::size_t>(index)));
    if (!descriptor) {
      throw std::out_of_range("a descriptor is named twice");
    }
    return descriptor;
  }

  /// A descriptor of BPF's. Closing it does not block while a worker has a copy, and has to happen before the worker
  /// closes that: it is to be the last (WorkerPool::release).
  UniqueFd ownDescriptor(const nlohmann::json& index) { return UniqueFd(descriptor(index).release()); }

  registry::Program program(const nlohmann::json& json) {
    registry::Program program;
    program.name = json.at("name").get<std::string>();
    program.section = json.at("section").get<std::string>();
    program.type = json.at("type").get<std::string>();
    program.attachType = json.at("attachType").get<std::string>();
    program.kernelId = number<std::uint32_t>(json.at("kernelId"));
    program.tag = json.at("tag").get<std::string>();
    program.madeFor = json.value("madeFor", "");
    program.descriptor = ownDescriptor(json.at("descriptor"));
    return program;
  }

  registry::Map map(const nlohmann::json& json) {
    registry::Map map;
    map.name = json.at("name").get<std::string>();
    map.type = json.at("type").get<std::string>();
    map.kernelId = number<std::uint32_t>(json.at("kernelId"));
    map.keySize = number<std::uint32_t>(json.at("keySize"));
    map.valueSize = number<std::uint32_t>(json.at("valueSize"));
    map.maxEntries = number<std::uint32_t>(json.at("maxEntries"));
    map.descriptor = ownDescriptor(json.at("descriptor"));
    return map;
  }

  registry::Link link(const nlohmann::json& json) {
    registry::Link link;
    link.program = json.at("program").get<std::string>();
    link.kind = json.at("kind").get<std::string>();
    link.target = json.at("target").get<std::string>();
    if (const auto id = json.find("kernelId"); id != json.end()) {
      link.kernelId = number<std::uint32_t>(*id);
    }
    link.detachBySocketOption = json.at("detachBySocketOption").get<bool>();
    if (const auto type = json.find("programDetach"); type != json.end()) {
      link.programDetach = number<std::uint32_t>(*type);
    }
    if (const auto filter = json.find("filter"); filter != json.end()) {
      link.filter = loader::tcFilterOf(*filter);
      if (const auto index = filter->find("namespaceDescriptor"); index != filter->end()) {
        link.networkNamespace = ownDescriptor(*index);
      }
    }
    link.usdtSpecs = json.value("usdtSpecs", std::vector<std::uint32_t>{});
    for (const auto& index : json.at("descriptors")) {
      // What has to be detached by a socket option is the client's socket.
      link.descriptors.push_back(link.detachBySocketOption ? descriptor(index) : ownDescriptor(index));
    }
    return link;
  }

  registry::Object object(const nlohmann::json& body) {
    const nlohmann::json& json = body.at("object");
    registry::Object object;
    object.name = json.at("name").get<std::string>();
    object.digest = json.at("digest").get<std::string>();
    for (const auto& each : json.at("programs")) {
      object.programs.push_back(program(each));
    }
    for (const auto& each : json.at("maps")) {
      object.maps.push_back(map(each));
    }
    for (const auto& each : json.at("links")) {
      object.links.push_back(link(each));
    }
    if (const auto image = body.find("image"); image != body.end()) {
      object.relocated = body.at("relocated").get<bool>();
      // What is no copy of ours is the client's own memfd.
      object.image = std::make_shared<const UniqueFd>(descriptor(*image));
    }
    object.pinned = body.at("pinned").get<std::vector<std::string>>();
    return object;
  }

 private:
  std::vector<UniqueFd>& descriptors_;
};

} // namespace

void AnswerDescriptors::add(nlohmann::json& json, BorrowedFd descriptor) {
  if (wanted_) {
    json["fileDescriptor"] = descriptors_.size();
    descriptors_.push_back(descriptor);
  }
}

nlohmann::json toJson(const registry::Link& link, AnswerDescriptors& descriptors) {
  nlohmann::json json;
  json["id"] = link.id;
  json["program"] = link.program;
  json["kind"] = link.kind;
  json["target"] = link.target;
  if (link.kernelId) {
    json["kernelId"] = *link.kernelId;
  }
  if (link.filter) {
    json["priority"] = link.filter->priority;
    json["handle"] = link.filter->handle;
  }
  if (link.descriptors.size() == 1) {
    descriptors.add(json, link.descriptors.front());
  }
  return json;
}

nlohmann::json toJson(const registry::Object& object, AnswerDescriptors& descriptors) {
  nlohmann::json json;
  json["id"] = object.id;
  json["name"] = object.name;
  json["labels"] = object.labels.empty() ? nlohmann::json::object() : nlohmann::json(object.labels);
  json["ownerUid"] = object.owner;
  json["lifetime"] = "session";
  json["digest"] = object.digest;
  json["imageReused"] = object.imageReused;
  json["loadedAtUSec"] = microseconds(object.loadedAt.time_since_epoch());
  json["loadDurationUSec"] = object.loadDuration.count();
  const auto list = [&](const char* name, const auto& entries) {
    auto& array = json[name] = nlohmann::json::array();
    for (const auto& entry : entries) {
      array.push_back(toJson(entry, descriptors));
    }
  };
  list("programs", object.programs);
  list("maps", object.maps);
  list("links", object.links);
  return json;
}

std::size_t describedBytes(const registry::Object& object) {
  AnswerDescriptors none(false);
  return textBytes(toJson(object, none));
}

std::size_t describedBytes(const registry::Link& link) {
  AnswerDescriptors none(false);
  return textBytes(toJson(link, none));
}

nlohmann::json toJson(const btf::KernelSpec& spec) {
  nlohmann::json json;
  json["path"] = spec.path();
  json["mapped"] = spec.mapped();
  json["types"] = btf__type_cnt(&spec.vmlinux());
  json["bytes"] = spec.vmlinuxBytes();
  json["indexedNames"] = spec.index().size();
  json["privateBytes"] = spec.privateBytes();
  json["generation"] = spec.generation();
  json["builtAtUSec"] = microseconds(spec.builtAt().time_since_epoch());
  json["parseUSec"] = spec.parseDuration().count();
  json["indexUSec"] = spec.indexDuration().count();
  auto& modules = json["modules"] = nlohmann::json::array();
  for (const btf::ModuleBtf& module : spec.modules()) {
    nlohmann::json entry;
    entry["name"] = module.name;
    entry["types"] = module.typeCount(spec.vmlinux());
    entry["bytes"] = module.bytes;
    if (!module.error.empty()) {
      entry["error"] = module.error;
    }
    modules.push_back(std::move(entry));
  }
  return json;
}

Result<registry::Object> takeObject(loader::ChannelMessage& answer) {
  try {
    return AnswerReader(answer).object(answer.body);
  } catch (const std::exception& exception) {
    return fail(std::string("a worker's answer makes no sense: ") + exception.what());
  }
}

Result<registry::Link> takeLink(loader::ChannelMessage& answer) {
  try {
    return AnswerReader(answer).link(answer.body.at("link"));
  } catch (const std::exception& exception) {
    return fail(std::string("a worker's answer makes no sense: ") + exception.what());
  }
}

} // namespace btfd::service
