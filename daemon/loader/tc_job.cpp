#include "tc_job.h"

#include "attach_diagnosis.h"
#include "attach_request.h"
#include "network_namespace.h"
#include "object/libbpf_log.h"
#include "tc_filter.h"

#include <cerrno>
#include <string>
#include <vector>

namespace btfd::loader {

namespace {

Result<void> enterNamespaceOf(const nlohmann::json& filter, const RequestDescriptors& descriptors,
                              NetworkNamespaceScope& scope) {
  const auto descriptor = filter.find("namespaceDescriptor");
  return descriptor == filter.end() ? Result<void>{} : scope.enter(descriptors.held(*descriptor));
}

Result<bool> add(const nlohmann::json& filter, const RequestDescriptors& descriptors) {
  NetworkNamespaceScope scope;
  if (auto entered = enterNamespaceOf(filter, descriptors, scope); !entered) {
    return std::unexpected(std::move(entered.error()));
  }
  return addTcFilter(tcFilterOf(filter), descriptors.held(filter.at("programDescriptor")).get());
}

Result<void> remove(const nlohmann::json& filter, bool andQdisc, const RequestDescriptors& descriptors) {
  NetworkNamespaceScope scope;
  if (auto entered = enterNamespaceOf(filter, descriptors, scope); !entered) {
    return entered;
  }
  return removeTcFilter(tcFilterOf(filter), andQdisc);
}

} // namespace

Outcome<JobReply> runTcAttachJob(const nlohmann::json& request, RequestDescriptors& descriptors) {
  const object::LibbpfLog log;
  const nlohmann::json& filters = request.at("filters");
  std::vector<bool> made;
  for (const nlohmann::json& filter : filters) {
    const auto added = add(filter, descriptors);
    if (!added) {
      for (std::size_t i = made.size(); i-- > 0;) {
        static_cast<void>(remove(filters[i], made[i], descriptors));
      }
      const int code = added.error().code;
      return std::unexpected(attachFailure(filter.at("program").get<std::string>(), BPF_PROG_TYPE_SCHED_CLS,
                                           filter.at("target").get<std::string>(), code,
                                           whyNoTcFilter(tcFilterOf(filter).priority, code), log.warnings()));
    }
    made.push_back(*added);
  }
  JobReply reply;
  reply.body["qdiscMade"] = made;
  return reply;
}

Outcome<JobReply> runTcDetachJob(const nlohmann::json& request, RequestDescriptors& descriptors) {
  const object::LibbpfLog log;
  JobReply reply;
  reply.body["errors"] = nlohmann::json::array();
  for (const nlohmann::json& filter : request.at("filters")) {
    if (auto removed = remove(filter, filter.value("andQdisc", false), descriptors); !removed) {
      reply.body["errors"].push_back(removed.error().message);
    }
  }
  return reply;
}

} // namespace btfd::loader
