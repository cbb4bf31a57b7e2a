#include "attach_request.h"

#include "base/text.h"
#include "diagnosis.h"
#include "network_namespace.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

namespace btfd::loader {

namespace {

Outcome<AttachedLink> attachedBy(std::string_view kind, const std::string& target, UniqueFd link) {
  AttachedLink attached{.kind = std::string(kind), .target = target, .descriptors = {}, .kernelId = kernelLinkId(link)};
  attached.descriptors.push_back(std::move(link));
  return attached;
}

/// Varlink's integers have a sign; cookies of the kernel's have none.
std::uint64_t unsignedOf(const nlohmann::json& number) {
  return number.is_number_unsigned() ? number.get<std::uint64_t>()
                                     : static_cast<std::uint64_t>(number.get<std::int64_t>());
}

} // namespace

UniqueFd takeDescriptor(LinkHandle link) {
  UniqueFd descriptor(bpf_link__fd(link.get()));
  bpf_link__disconnect(link.get());
  return descriptor;
}

std::optional<std::uint32_t> kernelLinkId(BorrowedFd link) {
  struct bpf_link_info info{};
  __u32 length = sizeof(info);
  if (bpf_link_get_info_by_fd(link.get(), &info, &length) < 0) {
    return std::nullopt; // a perf event of a kernel before 5.15, which has no link for it
  }
  return info.id;
}

Result<UniqueFd> openOn(long fileSystem, const std::string& path, int flags, const std::string& what) {
  const UniqueFd place(::open(path.c_str(), O_PATH | O_CLOEXEC | flags));
  struct statfs status{};
  if (!place || ::fstatfs(place.get(), &status) < 0 || status.f_type != fileSystem) {
    return fail("'" + path + "' is no " + what, EINVAL);
  }
  UniqueFd opened(::open(("/proc/self/fd/" + std::to_string(place.get())).c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (!opened) {
    return failErrno("cannot open " + what + " " + path, errno);
  }
  return opened;
}

Failure attachFailure(const std::string& name, enum bpf_prog_type type, const std::string& target, int code,
                      const std::string& more, const std::vector<std::string>& warnings) {
  std::string message = "cannot attach program '" + name + "' (" + libbpf_bpf_prog_type_str(type) + ") to " + target +
                        ": " + errnoName(code) + " (" + std::strerror(code) + ")";
  for (const std::string& each : {explain(code, type), more}) {
    message += (each.empty() ? "" : ": ") + each;
  }
  nlohmann::json parameters;
  parameters["message"] = std::move(message);
  parameters["program"] = name;
  parameters["errno"] = code;
  parameters["errnoName"] = errnoName(code);
  if (!warnings.empty()) {
    parameters["libbpfLog"] = warnings;
  }
  return {"io.btfd.AttachFailed", std::move(parameters)};
}

std::string sectionTarget(std::string_view section) {
  const auto slash = section.find('/');
  return std::string(slash == std::string_view::npos ? section : section.substr(slash + 1));
}

Outcome<void> AttachRequest::allowOnly(std::initializer_list<std::string_view> fields) const {
  for (const auto& [field, value] : target_.items()) {
    if (!value.is_null() && std::ranges::find(fields, field) == fields.end()) {
      std::string message = "program '" + name() + "' of type " + typeName() + " has no use for it";
      message += fields.size() == 0 ? "; its section name says what it attaches to" : "; it takes " + joined(fields);
      return invalidParameter(path(field), std::move(message));
    }
    // Kernel and libbpf would take what is before it, and the answer would say the whole.
    const auto hasNul = [](const nlohmann::json& text) {
      return text.is_string() && text.get_ref<const std::string&>().contains('\0');
    };
    if (hasNul(value) || (value.is_array() && std::ranges::any_of(value, hasNul))) {
      return invalidParameter(path(field), "has a NUL character");
    }
  }
  return {};
}

std::optional<std::string> AttachRequest::text(const char* field) const {
  const auto found = target_.find(field);
  return found == target_.end() || !found->is_string() ? std::nullopt : std::optional(found->get<std::string>());
}

std::optional<std::uint64_t> AttachRequest::number(const char* field) const {
  const auto found = target_.find(field);
  return found == target_.end() || !found->is_number_integer() ? std::nullopt : std::optional(unsignedOf(*found));
}

std::vector<std::string> AttachRequest::texts(const char* field) const {
  const auto found = target_.find(field);
  return found == target_.end() || !found->is_array() ? std::vector<std::string>{}
                                                      : found->get<std::vector<std::string>>();
}

std::vector<std::uint64_t> AttachRequest::numbers(const char* field) const {
  std::vector<std::uint64_t> numbers;
  if (const auto found = target_.find(field); found != target_.end() && found->is_array()) {
    std::ranges::transform(*found, std::back_inserter(numbers), unsignedOf);
  }
  return numbers;
}

bool AttachRequest::flag(const char* field) const {
  const auto found = target_.find(field);
  return found != target_.end() && found->is_boolean() && found->get<bool>();
}

const nlohmann::json* AttachRequest::structure(const char* field) const {
  const auto found = target_.find(field);
  return found == target_.end() || !found->is_object() ? nullptr : &*found;
}

bool AttachRequest::has(const char* field) const {
  const auto found = target_.find(field);
  return found != target_.end() && !found->is_null();
}

std::unexpected<Failure> AttachRequest::missing(const char* field, const std::string& what) const {
  return invalidParameter(path(field), "program '" + name() + "' of type " + typeName() + " needs " + what);
}

Outcome<std::optional<pid_t>> AttachRequest::process(const char* field) const {
  const auto pid = number(field);
  if (!pid) {
    return std::nullopt;
  }
  if (*pid == 0 || *pid > static_cast<std::uint64_t>(std::numeric_limits<pid_t>::max())) {
    return wrong(field, "there is no process " + std::to_string(static_cast<std::int64_t>(*pid)));
  }
  return static_cast<pid_t>(*pid);
}

Outcome<BorrowedFd> AttachRequest::givenDescriptor(const std::string& what) {
  if (!has("targetFileDescriptor")) {
    return missing("targetFileDescriptor", what);
  }
  return descriptors_.take(target_.at("targetFileDescriptor"), path("targetFileDescriptor"));
}

Outcome<UniqueFd> AttachRequest::openCgroup(const std::string& directory) const {
  auto opened = openOn(CGROUP2_SUPER_MAGIC, directory, O_DIRECTORY, "directory of cgroup v2");
  if (!opened) {
    return invalidParameter(path("cgroup"), std::move(opened.error().message));
  }
  return std::move(*opened);
}

Outcome<std::optional<AttachRequest::GivenNetworkNamespace>> AttachRequest::networkNamespace() const {
  const auto name = text("networkNamespace");
  const auto pid = number("networkNamespacePid");
  if (!name && !pid) {
    return std::nullopt;
  }
  const char* field = name ? "networkNamespace" : "networkNamespacePid";
  if ((name && pid) || has("targetFileDescriptor")) {
    return invalidParameter(path(field), "the target is in one network namespace; name it in one way");
  }
  std::string words = name ? *name : "of process " + std::to_string(*pid);
  std::string file = name ? *name : "/proc/" + std::to_string(*pid) + "/ns/net";
  if (name && !name->contains('/')) {
    file = "/run/netns/" + *name;
  }
  auto opened = openNetworkNamespace(file);
  if (!opened && pid) {
    return invalidParameter(path(field),
                            "there is no process " + std::to_string(*pid) +
                                " that the daemon may look at; it needs CAP_SYS_PTRACE for those of others");
  }
  if (!opened) {
    return invalidParameter(path(field), std::move(opened.error().message));
  }
  return GivenNetworkNamespace{.descriptor = std::move(*opened), .words = std::move(words)};
}

Outcome<AttachRequest::Anchor> AttachRequest::anchor() const {
  const nlohmann::json* before = structure("before");
  const nlohmann::json* after = structure("after");
  if (before != nullptr && after != nullptr) {
    return invalidParameter(path("after"), "cannot be there together with before");
  }
  if (before == nullptr && after == nullptr) {
    return Anchor{};
  }
  const nlohmann::json& anchor = before != nullptr ? *before : *after;
  const std::string field = path(before != nullptr ? "before" : "after");
  if (anchor.size() > 1) {
    return invalidParameter(field, "names more than one");
  }
  Anchor read{.flags = before != nullptr ? BPF_F_BEFORE : BPF_F_AFTER};
  for (const auto& [key, id] : anchor.items()) {
    if (!id.is_number_integer() || id <= 0 || id > std::numeric_limits<std::uint32_t>::max()) {
      return invalidParameter(field + "." + key, "is no id of the kernel's");
    }
    read.id = id.get<std::uint32_t>();
    read.flags |= BPF_F_ID;
    if (key == "kernelLinkId") {
      read.flags |= BPF_F_LINK;
    }
  }
  return read;
}

std::unexpected<Failure> AttachRequest::refused(const std::string& target, int code, const Reason& reason) const {
  return std::unexpected(
      attachFailure(name(), bpf_program__type(&program_), target, code, reason ? reason(code) : "", warnings()));
}

Outcome<AttachedLink> AttachRequest::finish(std::string_view kind, const std::string& target, struct bpf_link* link,
                                            const Reason& reason) const {
  if (link == nullptr) {
    return refused(target, errno, reason);
  }
  return attachedBy(kind, target, takeDescriptor(LinkHandle(link)));
}

Outcome<AttachedLink> AttachRequest::finishAll(std::string_view kind, const std::string& target, std::size_t count,
                                               const std::function<struct bpf_link*(std::size_t)>& attach,
                                               const Reason& reason) const {
  AttachedLink attached{.kind = std::string(kind), .target = target, .descriptors = {}, .kernelId = {}};
  for (std::size_t i = 0; i < count; ++i) {
    LinkHandle link(attach(i));
    if (!link) {
      return refused(target, errno, reason);
    }
    attached.descriptors.push_back(takeDescriptor(std::move(link)));
  }
  if (count == 1) {
    attached.kernelId = kernelLinkId(attached.descriptors.front());
  }
  return attached;
}

Outcome<AttachedLink> AttachRequest::createLink(std::string_view kind, const std::string& target, int targetId,
                                                enum bpf_attach_type type, const struct bpf_link_create_opts& options,
                                                const Reason& reason) const {
  UniqueFd link(bpf_link_create(bpf_program__fd(loaded_), targetId, type, &options));
  return link ? attachedBy(kind, target, std::move(link)) : refused(target, errno, reason);
}

Outcome<AttachedLink> AttachRequest::checked(std::string_view kind, const std::string& target) {
  return AttachedLink{.kind = std::string(kind), .target = target, .descriptors = {}, .kernelId = {}};
}

} // namespace btfd::loader
