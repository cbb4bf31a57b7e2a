#include "attach_job.h"

#include "attach.h"
#include "multi_probes.h"
#include "object/kept_image.h"
#include "object/libbpf_log.h"
#include "open_object.h"
#include "program_options.h"
#include "program_target.h"
#include "seam.h"

#include <bpf/bpf.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include <sys/socket.h>

namespace btfd::loader {

namespace {

Outcome<void> reuseMaps(const MapsByName& mapsByName, const nlohmann::json& maps,
                        const RequestDescriptors& descriptors) {
  for (const auto& [name, map] : mapsByName.all()) {
    const auto held = maps.find(name);
    if (held == maps.end()) {
      bpf_map__set_autocreate(map, false); // was not created then either
      continue;
    }
    const BorrowedFd descriptor = descriptors.held(*held);
    struct bpf_map_info info{};
    __u32 length = sizeof(info);
    // Libbpf's memory of global variables has to be as large as it takes the map to be.
    if (bpf_map__is_internal(map) && bpf_map_get_info_by_fd(descriptor.get(), &info, &length) == 0 &&
        info.value_size != bpf_map__value_size(map)) {
      bpf_map__set_value_size(map, info.value_size);
    }
    if (const int error = bpf_map__reuse_fd(map, descriptor.get()); error < 0) {
      return invalidObject("map '" + name + "' cannot be taken up again: " + std::strerror(-error));
    }
    bpf_map__set_pin_path(map, nullptr);
  }
  return {};
}

/// Leaves `program` as the only one that is loaded.
void chooseOnly(struct bpf_object& object, const struct bpf_program& program) {
  struct bpf_program* each = nullptr;
  bpf_object__for_each_program(each, &object) {
    bpf_program__set_autoload(each, each == &program);
  }
}

} // namespace

Outcome<JobReply> runAttachJob(const nlohmann::json& request, RequestDescriptors& descriptors) {
  const object::LibbpfLog log;
  const BorrowedFd image = descriptors.held(request.at("image"));
  const auto kept =
      request.value("relocated", false) ? object::KeptImage::open(image) : object::KeptImage::ofFile(image);
  if (!kept) {
    return invalidObject(kept.error().message);
  }
  auto opened =
      openObject(kept->object(), {.name = request.value("name", ""), .kconfig = request.value("kconfig", "")}, log);
  if (!opened) {
    return std::unexpected(std::move(opened.error()));
  }
  struct bpf_object& object = **opened;
  const auto name = request.value("program", "");
  const auto program = findProgram(object, name);
  if (!program) {
    return std::unexpected(program.error());
  }
  chooseOnly(object, **program);
  setTypes(**program, request.value("programType", ""), request.value("attachType", ""));
  const MapsByName mapsByName(object);
  if (auto reused = reuseMaps(mapsByName, request.at("maps"), descriptors); !reused) {
    return std::unexpected(std::move(reused.error()));
  }
  const std::array programs{HeldProgram{.name = name, .descriptor = descriptors.held(request.at("programDescriptor"))}};
  const SeamScope seam(programs);
  prepareForSingleProbes(object);
  forgetTarget(**program);
  const auto error = loadObject(object);
  if (!error) {
    return std::unexpected(error.error());
  }
  if (*error != 0) {
    return invalidObject("the object cannot be taken up again: " + std::string(std::strerror(*error)) +
                         (log.warnings().empty() ? "" : ": " + log.warnings().front()));
  }
  auto link = attachProgram(mapsByName, **program, request.at("target"), "target", descriptors, log,
                            {.madeFor = request.value("madeFor", ""),
                             .usdtSpecsInUse = request.value("usdtSpecs", std::vector<std::uint32_t>{})});
  if (!link) {
    return std::unexpected(std::move(link.error()));
  }
  JobReply reply;
  reply.body["link"] = describeLink(name, std::move(*link), reply);
  return reply;
}

void runReleaseJob(const nlohmann::json& request, RequestDescriptors& descriptors) {
  for (const auto& link : request.value("links", nlohmann::json::array())) {
    const auto indexes = link.value("descriptors", nlohmann::json::array());
    if (link.value("detachBySocketOption", false)) {
      for (const auto& index : indexes) {
        if (const auto socket = descriptors.take(index, "links")) {
          const int unused = 0;
          ::setsockopt(socket->get(), SOL_SOCKET, SO_DETACH_BPF, &unused, sizeof(unused));
        }
      }
    }
    if (const auto type = link.find("programDetach"); type != link.end() && indexes.size() == 2) {
      const auto map = descriptors.take(indexes.front(), "links");
      const auto program = descriptors.take(indexes.back(), "links");
      if (map && program) {
        bpf_prog_detach2(program->get(), map->get(), static_cast<enum bpf_attach_type>(type->get<std::uint32_t>()));
      }
    }
  }
}

} // namespace btfd::loader
