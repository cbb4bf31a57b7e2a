#include "attach_network.h"
#include "base/near_misses.h"
#include "base/text.h"
#include "network_namespace.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <string_view>

#include <linux/netfilter.h>

namespace btfd::loader {

namespace {

struct Name {
  std::string_view name;
  std::uint32_t number;
};

constexpr std::array kHooks{Name{"prerouting", NF_INET_PRE_ROUTING}, Name{"input", NF_INET_LOCAL_IN},
                            Name{"forward", NF_INET_FORWARD}, Name{"output", NF_INET_LOCAL_OUT},
                            Name{"postrouting", NF_INET_POST_ROUTING}};
constexpr std::array kFamilies{Name{"ipv4", NFPROTO_IPV4}, Name{"ipv6", NFPROTO_IPV6}};

/// The number of what `field` names.
template <std::size_t N>
Outcome<std::uint32_t> numberOf(const AttachRequest& request, const char* field, const std::array<Name, N>& names) {
  std::vector<std::string> known;
  std::ranges::transform(names, std::back_inserter(known), [](const Name& each) { return std::string(each.name); });
  const auto name = request.text(field);
  if (!name) {
    return request.missing(field, "one of " + joined(known));
  }
  const auto found = std::ranges::find(names, *name, &Name::name);
  if (found == names.end()) {
    return invalidParameter(request.path(field), "there is no '" + *name + "'; it is one of " + joined(known));
  }
  return found->number;
}

std::string whyNoNetfilter(int code) {
  if (code == EBUSY) {
    return "another BPF program has this hook and priority";
  }
  return code == EINVAL ? "this kernel may have no netfilter links (CONFIG_NETFILTER_BPF_LINK, Linux 6.4)" : "";
}

} // namespace

Outcome<AttachedLink> attachNetfilter(AttachRequest& request) {
  if (auto allowed = request.allowOnly(
          {"hook", "protocolFamily", "priority", "defragment", "networkNamespace", "networkNamespacePid"});
      !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const auto hook = numberOf(request, "hook", kHooks);
  if (!hook) {
    return std::unexpected(hook.error());
  }
  const auto family = numberOf(request, "protocolFamily", kFamilies);
  if (!family) {
    return std::unexpected(family.error());
  }
  // The first and the last are the kernel's own.
  const auto priority = static_cast<std::int64_t>(request.number("priority").value_or(0));
  if (priority <= std::numeric_limits<std::int32_t>::min() || priority >= std::numeric_limits<std::int32_t>::max()) {
    return invalidParameter(request.path("priority"), "has to be between -2147483647 and 2147483646");
  }
  auto given = request.networkNamespace();
  if (!given) {
    return std::unexpected(std::move(given.error()));
  }
  const std::string target = *request.text("protocolFamily") + " " + *request.text("hook") + ", priority " +
                             std::to_string(priority) + (*given ? " in network namespace " + (*given)->words : "");
  if (request.onlyChecking()) {
    return request.checked("netfilter", target);
  }
  NetworkNamespaceScope scope;
  if (auto entered = *given ? scope.enter((*given)->descriptor) : Result<void>{}; !entered) {
    return request.refused(target, entered.error().code);
  }
  LIBBPF_OPTS(bpf_netfilter_opts, options, .pf = *family, .hooknum = *hook, .priority = static_cast<__s32>(priority),
              .flags = request.flag("defragment") ? static_cast<__u32>(BPF_F_NETFILTER_IP_DEFRAG) : 0U);
  return request.finish("netfilter", target, bpf_program__attach_netfilter(request.loaded(), &options), whyNoNetfilter);
}

} // namespace btfd::loader
