#include "attach_usdt.h"

#include "attach_diagnosis.h"
#include "attach_uprobe.h"
#include "base/near_misses.h"
#include "usdt_seam.h"
#include "user_binary.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <utility>

namespace btfd::loader {

namespace {

constexpr pid_t kAllProcesses = -1;

/// The maps of bpf/usdt.bpf.h.
struct UsdtMaps {
  struct bpf_map* specs = nullptr;
  struct bpf_map* ipToSpec = nullptr;
};

std::optional<UsdtMaps> findMaps(const MapsByName& maps) {
  const auto specs = maps.find("__bpf_usdt_specs");
  const auto ipToSpec = maps.find("__bpf_usdt_ip_to_spec_id");
  return specs && ipToSpec ? std::optional(UsdtMaps{.specs = *specs, .ipToSpec = *ipToSpec}) : std::nullopt;
}

/// "binary:provider:name", of which the section may say all.
struct Names {
  std::string binary;
  std::string provider;
  std::string name;

  explicit Names(const std::string& section) {
    const auto first = section.find(':');
    const auto second = section.find(':', first == std::string::npos ? first : first + 1);
    binary = section.substr(0, first);
    if (second != std::string::npos) {
      provider = section.substr(first + 1, second - first - 1);
      name = section.substr(second + 1);
    }
  }
};

/// Numbers of specifications that no other attachment of the object has.
std::vector<std::uint32_t> freeSpecs(const struct bpf_map& specs, const std::vector<std::uint32_t>& used) {
  std::vector<std::uint32_t> free;
  for (std::uint32_t number = 0; number < bpf_map__max_entries(&specs); ++number) {
    if (std::ranges::find(used, number) == used.end()) {
      free.push_back(number);
    }
  }
  return free;
}

/// Takes addresses of probes that have been detached out of the map; on kernels without cookies they would be in the
/// way of attaching to the same place again.
void forgetDetached(const struct bpf_map& ipToSpec, const std::vector<std::uint32_t>& used) {
  std::vector<std::uint64_t> detached;
  std::uint64_t address = 0;
  std::uint32_t number = 0;
  for (const std::uint64_t* last = nullptr; bpf_map__get_next_key(&ipToSpec, last, &address, sizeof(address)) == 0;
       last = &address) {
    if (bpf_map__lookup_elem(&ipToSpec, &address, sizeof(address), &number, sizeof(number), 0) == 0 &&
        std::ranges::find(used, number) == used.end()) {
      detached.push_back(address);
    }
  }
  for (const std::uint64_t each : detached) {
    bpf_map__delete_elem(&ipToSpec, &each, sizeof(each), 0);
  }
}

/// `bundle` is libbpf's link of all that `watch` has seen.
AttachedLink takeBundle(LinkHandle bundle, const UsdtWatch& watch, const std::string& target) {
  AttachedLink attached{.kind = "usdt", .target = target, .descriptors = {}, .kernelId = {}};
  bpf_link__disconnect(bundle.get()); // from now on the links in it are ours
  for (struct bpf_link* link : watch.links()) {
    attached.descriptors.push_back(takeDescriptor(LinkHandle(link)));
  }
  if (attached.descriptors.size() == 1) {
    attached.kernelId = kernelLinkId(attached.descriptors.front());
  }
  attached.usdtSpecs = watch.specs();
  return attached;
}

} // namespace

Outcome<AttachedLink> attachUsdt(AttachRequest& request, const ProbeSection& section) {
  if (auto allowed = request.allowOnly({"binary", "rootOf", "provider", "name", "cookie", "pid"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  Names names(section.target);
  const auto binary = readBinary(request, names.binary);
  if (!binary) {
    return std::unexpected(binary.error());
  }
  const auto process = request.process();
  if (!process) {
    return std::unexpected(process.error());
  }
  names.provider = request.text("provider").value_or(names.provider);
  names.name = request.text("name").value_or(names.name);
  if (names.provider.empty() || names.name.empty()) {
    return request.missing(names.provider.empty() ? "provider" : "name",
                           "provider and name of a USDT probe in " + binary->name);
  }
  const std::string probe = names.provider + ":" + names.name;
  const std::string target =
      binary->name + ":" + probe + (*process ? " in process " + std::to_string(**process) : std::string());
  const auto reason = [&](int code) { return whyNoUsdt(*binary, probe, code, request.warnings()); };
  if (request.onlyChecking()) {
    const auto known = usdtProbesIn(*binary);
    return std::ranges::find(known, probe) == known.end() ? request.refused(target, ENOENT, reason)
                                                          : AttachRequest::checked("usdt", target);
  }
  const auto maps = findMaps(request.maps());
  if (!maps) {
    return request.refused(target, ESRCH, [](int) {
      return "the object does not have the maps that USDT programs need: include <bpf/usdt.bpf.h> in its source";
    });
  }
  const auto& used = request.context().usdtSpecsInUse;
  if (used) {
    forgetDetached(*maps->ipToSpec, *used);
  }
  UsdtWatch watch({.specs = bpf_map__fd(maps->specs), .ipToSpec = bpf_map__fd(maps->ipToSpec)},
                  freeSpecs(*maps->specs, used.value_or(std::vector<std::uint32_t>{})));
  LIBBPF_OPTS(bpf_usdt_opts, options, .usdt_cookie = request.number("cookie").value_or(0));
  LinkHandle bundle(bpf_program__attach_usdt(request.loaded(), process->value_or(kAllProcesses), binary->path.c_str(),
                                             names.provider.c_str(), names.name.c_str(), &options));
  if (!bundle) {
    return request.refused(target, errno, reason);
  }
  return takeBundle(std::move(bundle), watch, target);
}

} // namespace btfd::loader
