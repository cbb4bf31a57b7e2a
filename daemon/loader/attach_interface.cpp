#include "attach_interface.h"

#include "attach_diagnosis.h"
#include "network_namespace.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string_view>

#include <linux/if_link.h>
#include <net/if.h>

namespace btfd::loader {

namespace {

/// The interface that a request names, while this thread is in its network namespace.
class FoundInterface {
 public:
  /// Goes where the interface is. To be called once.
  Outcome<void> find(const AttachRequest& request) {
    const auto name = request.text("interface");
    if (!name) {
      return request.missing("interface", "an interface to attach to");
    }
    auto given = request.networkNamespace();
    if (!given) {
      return std::unexpected(std::move(given.error()));
    }
    if (*given) {
      networkNamespace_ = std::move((*given)->descriptor);
      if (auto entered = scope_.enter(networkNamespace_); !entered) {
        return invalidParameter(
            request.path(request.has("networkNamespace") ? "networkNamespace" : "networkNamespacePid"),
            entered.error().message);
      }
    }
    index_ = ::if_nametoindex(name->c_str());
    if (index_ == 0) {
      return invalidParameter(request.path("interface"), "there is no network interface '" + *name + "'");
    }
    words_ = "interface " + *name;
    return {};
  }

  [[nodiscard]] int index() const { return static_cast<int>(index_); }

  [[nodiscard]] const std::string& words() const { return words_; }

  /// Its network namespace; empty if it is this process's own.
  [[nodiscard]] UniqueFd takeNetworkNamespace() { return std::move(networkNamespace_); }

 private:
  UniqueFd networkNamespace_;
  NetworkNamespaceScope scope_;
  unsigned index_ = 0;
  std::string words_;
};

enum class TcForm : std::uint8_t { automatic, tcx, filter };

/// A program's place on an interface: a direction, which netkit calls otherwise.
struct Direction {
  std::string_view name;
  enum bpf_attach_type type;
};

constexpr std::array kDirections{Direction{"ingress", BPF_TCX_INGRESS}, Direction{"egress", BPF_TCX_EGRESS},
                                 Direction{"primary", BPF_NETKIT_PRIMARY}, Direction{"peer", BPF_NETKIT_PEER}};

bool isNetkit(const Direction& direction) {
  return direction.type == BPF_NETKIT_PRIMARY || direction.type == BPF_NETKIT_PEER;
}

/// As the request says, or the section.
Outcome<Direction> directionOf(const AttachRequest& request) {
  const auto name = request.text("direction");
  const auto type = bpf_program__expected_attach_type(&request.program());
  const auto* found = std::ranges::find_if(
      kDirections, [&](const Direction& each) { return name ? each.name == *name : each.type == type; });
  if (found != kDirections.end()) {
    return *found;
  }
  if (name) {
    return invalidParameter(request.path("direction"),
                            "'" + *name + "' is neither ingress nor egress, nor, for netkit, primary or peer");
  }
  return request.missing("direction", "ingress or egress, as its section " + request.section() + " says neither");
}

/// Which form the request asks for, by name or by fields that only one of them has.
Outcome<TcForm> tcFormOf(const AttachRequest& request) {
  const std::string form = request.text("tcForm").value_or("");
  if (!form.empty() && form != "tcx" && form != "tc") {
    return invalidParameter(request.path("tcForm"), "there is no form '" + form + "'; it is tcx or tc");
  }
  for (const char* field : {"priority", "handle"}) {
    if (!request.has(field)) {
      continue;
    }
    if (form == "tcx") {
      return invalidParameter(request.path(field), "a tcx link has none: that is for tcForm tc");
    }
    if (request.has("before") || request.has("after")) {
      return invalidParameter(request.path(field), "cannot be there together with before or after, which are for tcx");
    }
    const std::uint64_t maximum =
        field == std::string_view("priority") ? std::numeric_limits<std::uint16_t>::max() : UINT32_MAX;
    const std::uint64_t value = request.number(field).value_or(0);
    if (value == 0 || value > maximum) {
      return invalidParameter(request.path(field), "has to be between 1 and " + std::to_string(maximum));
    }
    return TcForm::filter;
  }
  const bool hasAnchor = request.has("before") || request.has("after");
  if (hasAnchor && form == "tc") {
    return invalidParameter(request.path(request.has("before") ? "before" : "after"),
                            "a tc filter has a priority instead: that is for tcForm tcx");
  }
  if (hasAnchor) {
    return TcForm::tcx;
  }
  return form.empty() ? TcForm::automatic : form == "tcx" ? TcForm::tcx : TcForm::filter;
}

/// Whether the kernel has tcx: one without does not know the attach type.
bool hasTcx(int interface, enum bpf_attach_type type) {
  LIBBPF_OPTS(bpf_prog_query_opts, options);
  return bpf_prog_query_opts(interface, type, &options) == 0 || errno != EINVAL;
}

std::uint32_t programId(const struct bpf_program& program) {
  struct bpf_prog_info info{};
  __u32 length = sizeof(info);
  return bpf_prog_get_info_by_fd(bpf_program__fd(&program), &info, &length) < 0 ? 0 : info.id;
}

Outcome<AttachedLink> planFilter(AttachRequest& request, FoundInterface& interface, bool ingress,
                                 const std::string& target) {
  if (request.onlyChecking()) {
    return request.checked("tc", target);
  }
  const auto own = ownNetworkNamespace(); // by now the interface's
  TcFilter filter{.networkNamespace = own ? namespaceNumber(*own) : 0,
                  .interface = interface.index(),
                  .ingress = ingress,
                  .priority = static_cast<std::uint32_t>(request.number("priority").value_or(0)),
                  .handle = static_cast<std::uint32_t>(request.number("handle").value_or(0)),
                  .handleGiven = request.has("handle"),
                  .programs = {programId(*request.loaded())}};
  if (auto planned = planTcFilter(filter); !planned) {
    return request.refused(target, planned.error().code);
  }
  return AttachedLink{.kind = "tc",
                      .target = target,
                      .descriptors = {},
                      .kernelId = {},
                      .filter = std::move(filter),
                      .networkNamespace = interface.takeNetworkNamespace()};
}

/// The XDP program that the interface has, as a sentence's end; empty if there is none to be seen.
std::string xdpProgramOf(int interface) {
  LIBBPF_OPTS(bpf_xdp_query_opts, query);
  if (bpf_xdp_query(interface, 0, &query) < 0) {
    return {};
  }
  for (const std::uint32_t id : {query.prog_id, query.drv_prog_id, query.skb_prog_id, query.hw_prog_id}) {
    if (id == 0) {
      continue;
    }
    const UniqueFd program(bpf_prog_get_fd_by_id(id));
    struct bpf_prog_info info{};
    __u32 length = sizeof(info);
    const bool known = program && bpf_prog_get_info_by_fd(program.get(), &info, &length) == 0;
    return "; it is program " + std::to_string(id) + (known ? " '" + std::string(info.name) + "'" : "");
  }
  return {};
}

/// Attaches by a link that has a place among others.
Outcome<AttachedLink> linkInOrder(const AttachRequest& request, std::string_view kind, const std::string& target,
                                  int interface, enum bpf_attach_type type, const AttachRequest::Reason& reason) {
  const auto anchor = request.anchor();
  if (!anchor) {
    return std::unexpected(anchor.error());
  }
  if (request.onlyChecking()) {
    return request.checked(kind, target);
  }
  LIBBPF_OPTS(bpf_link_create_opts, options, .flags = anchor->flags);
  // The same memory for both, see libbpf's bpf_link_create.
  (type == BPF_TCX_INGRESS || type == BPF_TCX_EGRESS ? options.tcx.relative_id : options.netkit.relative_id) =
      anchor->id;
  return request.createLink(kind, target, interface, type, options, reason);
}

} // namespace

Outcome<AttachedLink> attachXdp(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"interface", "xdpMode", "networkNamespace", "networkNamespacePid"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  LIBBPF_OPTS(bpf_link_create_opts, options);
  const std::string mode = request.text("xdpMode").value_or("");
  if (mode == "native") {
    options.flags = XDP_FLAGS_DRV_MODE;
  } else if (mode == "generic") {
    options.flags = XDP_FLAGS_SKB_MODE;
  } else if (mode == "offload") {
    options.flags = XDP_FLAGS_HW_MODE;
  } else if (!mode.empty()) {
    return invalidParameter(request.path("xdpMode"),
                            "there is no XDP mode '" + mode + "'; it is native, generic or offload");
  }
  FoundInterface interface;
  if (auto found = interface.find(request); !found) {
    return std::unexpected(std::move(found.error()));
  }
  const std::string target = interface.words() + (mode.empty() ? "" : " (" + mode + ")");
  if (request.onlyChecking()) {
    return request.checked("xdp", target);
  }
  return request.createLink("xdp", target, interface.index(), BPF_XDP, options, [&](int code) {
    return whyNoXdp(mode, code) + (code == EBUSY || code == EEXIST ? xdpProgramOf(interface.index()) : "");
  });
}

Outcome<AttachedLink> attachTrafficControl(AttachRequest& request) {
  if (auto allowed = request.allowOnly({"interface", "direction", "networkNamespace", "networkNamespacePid", "tcForm",
                                        "priority", "handle", "before", "after"});
      !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const auto direction = directionOf(request);
  if (!direction) {
    return std::unexpected(direction.error());
  }
  const auto form = tcFormOf(request);
  if (!form) {
    return std::unexpected(form.error());
  }
  if (isNetkit(*direction) && *form == TcForm::filter) {
    return invalidParameter(request.path("direction"), "a tc filter is for ingress or egress");
  }
  FoundInterface interface;
  if (auto found = interface.find(request); !found) {
    return std::unexpected(std::move(found.error()));
  }
  const std::string target = interface.words() + " " + std::string(direction->name);
  if (isNetkit(*direction)) {
    return linkInOrder(request, "netkit", target, interface.index(), direction->type, whyNoNetkit);
  }
  const bool supported = hasTcx(interface.index(), direction->type);
  if (*form == TcForm::filter || (*form == TcForm::automatic && !supported)) {
    return planFilter(request, interface, direction->type == BPF_TCX_INGRESS, target);
  }
  if (!supported) {
    return request.refused(target, EINVAL, [](int) {
      return "this kernel has no tcx, which is of Linux 6.6; tcForm tc, with priority for the order, does without";
    });
  }
  return linkInOrder(request, "tcx", target, interface.index(), direction->type, whyNoOrder);
}

} // namespace btfd::loader
