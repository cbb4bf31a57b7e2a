#pragma once

#include "attach.h"

#include <bpf/bpf.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>

#include <sys/types.h>

namespace btfd::loader {

struct LinkDeleter {
  void operator()(struct bpf_link* link) const { bpf_link__destroy(link); }
};

using LinkHandle = std::unique_ptr<struct bpf_link, LinkDeleter>;

/// Takes the descriptor out of libbpf's link. The link must not detach: for perf events libbpf would disable the event,
/// whose own descriptor it keeps beside the link's; the worker closes all that is left once the job is done.
UniqueFd takeDescriptor(LinkHandle link);

/// The kernel's id of `link`, if it has one.
std::optional<std::uint32_t> kernelLinkId(BorrowedFd link);

/// Opens what a client names by `path` and has to lie on a file system of this magic number (statfs(2)); `flags` as
/// open(2) has them. Looked at before it is opened, since opening a device or pipe may have effects or wait; and one
/// error for all that is no `what`, since the daemon sees files that its client may not know of.
Result<UniqueFd> openOn(long fileSystem, const std::string& path, int flags, const std::string& what);

/// io.btfd.AttachFailed for program `name` of `type`: the kernel or libbpf said `code`, a positive errno value, and
/// there is `more` to say, and libbpf's warnings.
Failure attachFailure(const std::string& name, enum bpf_prog_type type, const std::string& target, int code,
                      const std::string& more, const std::vector<std::string>& warnings);

/// What a section name says after its first slash, or all of it.
std::string sectionTarget(std::string_view section);

/// One attachment in the making: what is asked for one program, an io.btfd.AttachTarget, and the answers to it.
class AttachRequest {
 public:
  /// A request that is only looked at: nothing is attached. All that is given must outlive it; `path` is the target's
  /// place in the client's request.
  AttachRequest(const MapsByName& maps, const struct bpf_program& program, const nlohmann::json& target,
                const std::string& path, RequestDescriptors& descriptors)
      : maps_(maps), program_(program), target_(target), path_(path), descriptors_(descriptors) {}

  /// Makes it one that attaches: `program`, the same as before, is loaded, and `log` hears libbpf.
  void attachFor(struct bpf_program& program, const object::LibbpfLog& log, AttachContext context) {
    loaded_ = &program;
    log_ = &log;
    context_ = std::move(context);
  }

  [[nodiscard]] const AttachContext& context() const { return context_; }

  /// What the program was made for: what its section says, unless something else was asked for when it was loaded.
  [[nodiscard]] std::string madeFor() const {
    return context_.madeFor.empty() ? sectionTarget(section()) : context_.madeFor;
  }

  [[nodiscard]] bool onlyChecking() const { return loaded_ == nullptr; }

  /// The loaded program; null if onlyChecking.
  [[nodiscard]] struct bpf_program* loaded() const { return loaded_; }

  [[nodiscard]] const struct bpf_program& program() const { return program_; }

  [[nodiscard]] const MapsByName& maps() const { return maps_; }

  [[nodiscard]] std::string name() const { return bpf_program__name(&program_); }

  [[nodiscard]] std::string section() const { return bpf_program__section_name(&program_); }

  [[nodiscard]] std::string typeName() const { return libbpf_bpf_prog_type_str(bpf_program__type(&program_)); }

  // ---- The request's fields -------------------------------------------------------------------------------------

  /// Refuses fields that this kind of program makes no use of: what was meant by them would silently not happen. And
  /// texts with a NUL character.
  [[nodiscard]] Outcome<void> allowOnly(std::initializer_list<std::string_view> fields) const;

  /// The field's value, or nothing if it is absent or of another type.
  [[nodiscard]] std::optional<std::string> text(const char* field) const;
  [[nodiscard]] std::optional<std::uint64_t> number(const char* field) const;
  /// Whether the field is there and true.
  [[nodiscard]] bool flag(const char* field) const;
  [[nodiscard]] const nlohmann::json* structure(const char* field) const;
  /// The values of a field that is an array; empty if it is absent.
  [[nodiscard]] std::vector<std::string> texts(const char* field) const;
  [[nodiscard]] std::vector<std::uint64_t> numbers(const char* field) const;

  /// Whether the field is there.
  [[nodiscard]] bool has(const char* field) const;

  /// The field's place in the client's request.
  [[nodiscard]] std::string path(std::string_view field) const { return path_ + "." + std::string(field); }

  /// InvalidParameter: what the field says cannot be.
  [[nodiscard]] std::unexpected<Failure> wrong(std::string_view field, std::string message) const {
    return invalidParameter(path(field), std::move(message));
  }

  /// InvalidParameter: the field is missing, which was to hold `what`.
  [[nodiscard]] std::unexpected<Failure> missing(const char* field, const std::string& what) const;

  /// The process that a field names, if it is there. 0, which kernel and libbpf take for all or for the worker itself,
  /// is none.
  [[nodiscard]] Outcome<std::optional<pid_t>> process(const char* field = "pid") const;

  /// The descriptor of targetFileDescriptor, which is to be `what`.
  [[nodiscard]] Outcome<BorrowedFd> givenDescriptor(const std::string& what);

  /// Opens the cgroup directory of field `cgroup`, `directory`.
  [[nodiscard]] Outcome<UniqueFd> openCgroup(const std::string& directory) const;

  /// A network namespace that a request names, and how it does.
  struct GivenNetworkNamespace {
    UniqueFd descriptor;
    std::string words;
  };

  /// That of field `networkNamespace` or `networkNamespacePid`, if there is one of them.
  [[nodiscard]] Outcome<std::optional<GivenNetworkNamespace>> networkNamespace() const;

  /// Where among the programs that are there: BPF_F_BEFORE or BPF_F_AFTER, and BPF_F_ID if `id` names one of them.
  struct Anchor {
    std::uint32_t flags = 0;
    std::uint32_t id = 0;
  };

  /// Of fields `before` and `after`; flags are 0 if neither is there.
  [[nodiscard]] Outcome<Anchor> anchor() const;

  /// What libbpf has warned of so far.
  [[nodiscard]] std::vector<std::string> warnings() const {
    return log_ == nullptr ? std::vector<std::string>{} : log_->warnings();
  }

  // ---- Answers ----------------------------------------------------------------------------------------------------

  /// What there is to say of an errno value for this attachment; see attach_diagnosis.h.
  using Reason = std::function<std::string(int code)>;

  /// io.btfd.AttachFailed: the kernel or libbpf said `code`, a positive errno value.
  [[nodiscard]] std::unexpected<Failure> refused(const std::string& target, int code, const Reason& reason = {}) const;

  /// `link` is what a libbpf call returned: null with errno on failure.
  [[nodiscard]] Outcome<AttachedLink> finish(std::string_view kind, const std::string& target, struct bpf_link* link,
                                             const Reason& reason = {}) const;

  /// One attachment of several links, none of which has been there before; each made by `attach` (as for `finish`),
  /// which is called with their numbers. If one fails, none is left.
  [[nodiscard]] Outcome<AttachedLink> finishAll(std::string_view kind, const std::string& target, std::size_t count,
                                                const std::function<struct bpf_link*(std::size_t)>& attach,
                                                const Reason& reason = {}) const;

  /// Attaches by a plain BPF_LINK_CREATE.
  [[nodiscard]] Outcome<AttachedLink> createLink(std::string_view kind, const std::string& target, int targetId,
                                                 enum bpf_attach_type type, const struct bpf_link_create_opts& options,
                                                 const Reason& reason = {}) const;

  /// The answer where nothing was to be attached.
  [[nodiscard]] static Outcome<AttachedLink> checked(std::string_view kind, const std::string& target);

 private:
  const MapsByName& maps_;
  const struct bpf_program& program_;
  const nlohmann::json& target_;
  const std::string& path_;
  RequestDescriptors& descriptors_;
  struct bpf_program* loaded_ = nullptr;
  const object::LibbpfLog* log_ = nullptr;
  AttachContext context_;
};

} // namespace btfd::loader
