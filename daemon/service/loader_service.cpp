#include "loader_service.h"

#include "answers.h"
#include "descriptor_selection.h"
#include "object_json.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

#include <sys/utsname.h>

namespace btfd::service {

LoaderService::LoaderService(Parts parts)
    : policy_(parts.policy), kernelBtf_(parts.kernelBtf), events_(parts.events),
      objects_(parts.config.bpffs, parts.workers, parts.events), jobs_(parts.workers, parts.kernelBtf),
      load_(parts.config, parts.policy, parts.kernelBtf, objects_, jobs_, parts.events),
      attach_(parts.config, parts.policy, objects_, jobs_, parts.events),
      update_(parts.config, parts.policy, objects_, parts.workers, parts.events), check_(parts.config, jobs_),
      describe_(parts.config, parts.policy, objects_.registry(), jobs_, statistics_), list_(objects_.registry()),
      maps_(parts.config, parts.policy, objects_.registry(), jobs_),
      image_(parts.config, parts.policy, objects_.registry(), jobs_),
      read_(parts.config, parts.policy, objects_.registry(), jobs_) {}

void LoaderService::addTo(varlink::Service& service) {
  const auto add = [&](std::string_view method, void (LoaderService::*handler)(varlink::Call)) {
    service.add("io.btfd", method, [this, handler](varlink::Call call) { (this->*handler)(std::move(call)); });
  };
  service.add("io.btfd", "Load", [this](varlink::Call call) { load_.call(std::move(call)); });
  service.add("io.btfd", "Attach", [this](varlink::Call call) { attach_.call(std::move(call)); });
  service.add("io.btfd", "Update", [this](varlink::Call call) { update_.call(std::move(call)); });
  service.add("io.btfd", "GetBtf", [this](varlink::Call call) { image_.getBtf(std::move(call)); });
  service.add("io.btfd", "Disassemble", [this](varlink::Call call) { image_.disassemble(std::move(call)); });
  service.add("io.btfd", "Check", [this](varlink::Call call) { check_.call(std::move(call)); });
  service.add("io.btfd", "Describe", [this](varlink::Call call) { describe_.call(std::move(call)); });
  service.add("io.btfd", "List", [this](varlink::Call call) { list_.call(std::move(call)); });
  service.add("io.btfd", "Read", [this](varlink::Call call) { read_.call(std::move(call)); });
  service.add("io.btfd", "Monitor", [this](varlink::Call call) { events_.subscribe(std::move(call)); });
  for (const char* method : {"MapDump", "MapLookup", "MapUpdate", "MapDelete"}) {
    service.add("io.btfd", method, [this, method](varlink::Call call) { maps_.call(method, std::move(call)); });
  }
  add("Unload", &LoaderService::unload);
  add("Detach", &LoaderService::detach);
  add("GetDescriptors", &LoaderService::getDescriptors);
  add("DescribeKernel", &LoaderService::describeKernel);
}

void LoaderService::unload(varlink::Call call) {
  const auto id = call.parameters().at("objectId").get<std::int64_t>();
  if (findOwned(call, id, objects_.registry(), policy_) == nullptr) {
    return;
  }
  registry::Object object = std::move(*objects_.registry().take(static_cast<std::uint64_t>(id)));
  spdlog::info("user {} (pid {}) unloaded {}", call.peer().uid, call.peer().pid, quoted(object));
  events_.emit("unloaded", "unloaded " + quoted(object), eventOf(object, call.peer().uid));
  auto kept = std::make_shared<varlink::Call>(std::move(call));
  objects_.dismantle(std::move(object), [kept] { kept->reply(); });
}

void LoaderService::detach(varlink::Call call) {
  const auto id = call.parameters().at("linkId").get<std::int64_t>();
  registry::Object* object = objects_.registry().findByLink(static_cast<std::uint64_t>(id));
  if (object == nullptr) {
    answerNoSuchLink(call, id);
    return;
  }
  if (!policy_.mayChange(call.peer(), object->owner)) {
    answerNotOwner(call, *object);
    return;
  }
  registry::Object detached;
  detached.owner = object->owner;
  detached.connection = object->connection;
  detached.links.push_back(std::move(*objects_.registry().takeLink(static_cast<std::uint64_t>(id))));
  object->describedBytes -= describedBytes(detached.links.front());
  nlohmann::json event = eventOf(*object, call.peer().uid);
  event["linkId"] = id;
  events_.emit("detached", "detached program '" + detached.links.front().program + "' of " + quoted(*object),
               std::move(event));
  auto kept = std::make_shared<varlink::Call>(std::move(call));
  objects_.dismantle(std::move(detached), [kept] { kept->reply(); });
}

void LoaderService::getDescriptors(varlink::Call call) {
  const auto id = call.parameters().at("objectId").get<std::int64_t>();
  const registry::Object* object = findOwned(call, id, objects_.registry(), policy_);
  if (object == nullptr) {
    return;
  }
  auto selected = selectDescriptors(*object, call.parameters());
  if (!selected) {
    answerFailure(call, selected.error());
    return;
  }
  nlohmann::json reply;
  reply["descriptors"] = std::move(selected->entries);
  answer(call, reply, selected->descriptors);
}

void LoaderService::describeKernel(varlink::Call call) {
  struct utsname name{};
  ::uname(&name);
  nlohmann::json reply;
  reply["release"] = name.release;
  reply["buildCount"] = kernelBtf_.buildCount();
  if (kernelBtf_.spec()) {
    reply["spec"] = toJson(*kernelBtf_.spec());
  } else {
    reply["reason"] = kernelBtf_.reason();
  }
  call.reply(reply);
}

} // namespace btfd::service
