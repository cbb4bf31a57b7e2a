#include "core/patch.h"
#include "object/opened_object.h"
#include "rules.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <linux/bpf.h>
#include <linux/btf.h>

namespace btfd::check {

namespace {

/// "ringbuf (BPF_MAP_TYPE_RINGBUF)", or the number where libbpf has no name for it.
std::string enumeratorText(const char* libbpfName, std::string_view prefix, std::uint64_t value) {
  if (libbpfName == nullptr) {
    return std::to_string(value);
  }
  std::string upper(libbpfName);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return std::string(libbpfName) + " (" + std::string(prefix) + upper + ")";
}

/// Says once that an enum is missing, where something would have to be looked up in it.
void noEnum(const char* name, const char* what, std::vector<Finding>& findings) {
  collect(findings, {.severity = Severity::unknown,
                     .topic = Topic::object,
                     .program = {},
                     .map = {},
                     .name = name,
                     .message = std::string("the kernel's BTF has no enum ") + name + ", so it does not tell which " +
                                what + " the kernel knows",
                     .relocation = {}});
}

/// Whether bpf(2) itself refuses an attach type that it does not know for a program of `type`, at load
/// (bpf_prog_load_check_attach and check_attach_btf_id); for others only attaching fails.
bool isCheckedAtLoad(enum bpf_prog_type type) {
  constexpr std::array kChecked{
      BPF_PROG_TYPE_TRACING,          BPF_PROG_TYPE_LSM,        BPF_PROG_TYPE_CGROUP_SOCK,
      BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_PROG_TYPE_CGROUP_SKB, BPF_PROG_TYPE_SK_LOOKUP,
      BPF_PROG_TYPE_SK_REUSEPORT,     BPF_PROG_TYPE_NETFILTER,  BPF_PROG_TYPE_CGROUP_SOCKOPT,
  };
  return std::ranges::find(kChecked, type) != kChecked.end();
}

/// One program on one kernel.
class ProgramRules {
 public:
  ProgramRules(const struct bpf_program& program, const TargetKernel& kernel, core::NearNames& near,
               std::vector<Finding>& findings)
      : program_(program), kernel_(kernel), near_(near), findings_(findings) {}

  void check() {
    checkType();
    checkAttachType();
    checkTarget(program_, kernel_, near_, findings_);
  }

 private:
  void add(Severity severity, Topic topic, std::string_view name, std::string message) {
    collect(findings_, {.severity = severity,
                        .topic = topic,
                        .program = bpf_program__name(&program_),
                        .map = {},
                        .name = std::string(name),
                        .message = std::move(message),
                        .relocation = {}});
  }

  void checkType() {
    const auto type = bpf_program__type(&program_);
    if (kernel_.programTypes().known && !kernel_.programTypes().has(type)) {
      const std::string text = enumeratorText(libbpf_bpf_prog_type_str(type), "BPF_PROG_TYPE_", type);
      add(Severity::error, Topic::programType, text, "the kernel has no program type " + text);
    }
  }

  void checkAttachType() {
    const auto type = bpf_program__expected_attach_type(&program_);
    if (!kernel_.attachTypes().known || kernel_.attachTypes().has(type)) {
      return;
    }
    const std::string text = enumeratorText(libbpf_bpf_attach_type_str(type), "BPF_", type);
    if (isCheckedAtLoad(bpf_program__type(&program_))) {
      add(Severity::error, Topic::attachType, text, "the kernel has no attach type " + text);
    } else {
      add(Severity::warning, Topic::attachType, text,
          "it loads, but cannot be attached as its section says: the kernel has no attach type " + text);
    }
  }

  const struct bpf_program& program_;
  const TargetKernel& kernel_;
  core::NearNames& near_;
  std::vector<Finding>& findings_;
};

/// "bpf_loop", or the number of a helper that is newer than this program.
std::string helperName(std::int32_t id) {
#define BTFD_HELPER_NAME(name) std::pair(static_cast<std::int32_t>(BPF_FUNC_##name), "bpf_" #name)
  static constexpr std::array kNames = {__BPF_FUNC_MAPPER(BTFD_HELPER_NAME)};
#undef BTFD_HELPER_NAME
  const auto* found = std::ranges::find(kNames, id, [](const auto& entry) { return entry.first; });
  return found == kNames.end() ? "number " + std::to_string(id) : found->second;
}

/// What libbpf puts in place of a helper that the kernel lacks (bpf_object__sanitize_prog), or the helper itself.
std::int32_t replacedByLibbpf(std::int32_t id) {
  switch (id) {
  case BPF_FUNC_probe_read_kernel:
  case BPF_FUNC_probe_read_user:
    return BPF_FUNC_probe_read;
  case BPF_FUNC_probe_read_kernel_str:
  case BPF_FUNC_probe_read_user_str:
    return BPF_FUNC_probe_read_str;
  default:
    return id;
  }
}

/// The calls of one object on one kernel.
class CallRules {
 public:
  CallRules(const ObjectToCheck& object, const TargetKernel& kernel, const Reachability& reachability,
            core::NearNames& near, std::vector<Finding>& findings)
      : object_(object), kernel_(kernel), reachability_(reachability), near_(near), findings_(findings) {}

  void check(const Place& place, const bpf_insn& instruction) {
    const Reach reach = reachability_.at(place);
    if (instruction.code != (BPF_JMP | BPF_CALL) || reach == Reach::never) {
      return;
    }
    const auto referred = object_.code().referredBy(place, instruction);
    if (!referred && instruction.src_reg == 0) {
      checkHelper(place, instruction.imm, reach);
    } else if (referred && referred->symbol != nullptr && !referred->code) {
      checkFunction(place, referred->symbol->name, reach);
    }
  }

 private:
  void checkHelper(const Place& place, std::int32_t id, Reach reach) {
    const auto has = [&](std::int32_t each) { return kernel_.helpers().has(static_cast<std::uint64_t>(each)); };
    if (id == core::kPoison || has(id) || has(replacedByLibbpf(id))) {
      return;
    }
    if (!kernel_.helpers().known) {
      if (!std::exchange(saidUnknown_, true)) {
        noEnum("bpf_func_id", "helpers", findings_);
      }
      return;
    }
    const std::string name = helperName(id);
    add(place, Topic::helper, name, "the kernel has no helper " + name, reach);
  }

  void checkFunction(const Place& place, std::string_view name, Reach reach) {
    const auto [known, isNew] = missing_.try_emplace(name);
    if (isNew) { // a program may call a function thousands of times
      const Extern* external = object_.findExtern(name);
      Why why{.near = near_, .text = {}};
      if (external != nullptr && external->isWeak && external->isFunction &&
          isSupplied(object_, kernel_, *external, &why) == Supplied::no) {
        known->second = std::move(why.text);
      }
    }
    if (!known->second.empty()) {
      add(place, Topic::kernelFunction, name, known->second + ", and nothing guards the call (bpf_ksym_exists)", reach);
    }
  }

  void add(const Place& place, Topic topic, std::string_view name, std::string message, Reach reach) {
    const CodeFunction* function = object_.code().functionAt(place);
    const std::string_view functionName = function == nullptr ? std::string_view{} : function->name;
    if (!said_.emplace(functionName, name, reach).second) {
      return;
    }
    if (reach == Reach::depends) {
      message += "; whether this code is reached depends on what only that kernel knows";
    }
    collect(findings_, {.severity = reach == Reach::always ? Severity::error : Severity::unknown,
                        .topic = topic,
                        .program = std::string(functionName),
                        .map = {},
                        .name = std::string(name),
                        .message = std::move(message),
                        .relocation = {}});
  }

  const ObjectToCheck& object_;
  const TargetKernel& kernel_;
  const Reachability& reachability_;
  core::NearNames& near_;
  std::vector<Finding>& findings_;
  std::set<std::tuple<std::string_view, std::string, Reach>> said_;
  /// Why the kernel does not supply a function; empty where it does.
  std::map<std::string_view, std::string> missing_;
  bool saidUnknown_ = false;
};

} // namespace

void checkSections(const ObjectToCheck& object, std::vector<Finding>& findings) {
  for (const struct bpf_program* program : object.programs()) {
    if (bpf_program__type(program) == BPF_PROG_TYPE_UNSPEC) {
      collect(findings, {.severity = Severity::error,
                         .topic = Topic::programType,
                         .program = bpf_program__name(program),
                         .map = {},
                         .name = bpf_program__section_name(program),
                         .message = object::whyNoType(*program),
                         .relocation = {}});
    }
  }
}

void checkPrograms(const ObjectToCheck& object, const TargetKernel& kernel, core::NearNames& near,
                   std::vector<Finding>& findings) {
  const auto programs = object.programs();
  if (!programs.empty() && !kernel.programTypes().known) {
    noEnum("bpf_prog_type", "program types", findings);
  }
  if (!programs.empty() && !kernel.attachTypes().known) {
    noEnum("bpf_attach_type", "attach types", findings);
  }
  for (const struct bpf_program* program : programs) {
    if (bpf_program__type(program) != BPF_PROG_TYPE_UNSPEC) {
      ProgramRules(*program, kernel, near, findings).check();
    }
  }
}

void checkMaps(const ObjectToCheck& object, const TargetKernel& kernel, std::vector<Finding>& findings) {
  bool saidUnknown = false;
  const struct bpf_map* map = nullptr;
  while ((map = bpf_object__next_map(&object.opened(), map)) != nullptr) {
    const std::uint32_t type = object::mapType(*map);
    if (!bpf_map__autocreate(map) || kernel.mapTypes().has(type)) {
      continue;
    }
    if (!kernel.mapTypes().known) {
      if (!std::exchange(saidUnknown, true)) {
        noEnum("bpf_map_type", "map types", findings);
      }
      continue;
    }
    const std::string text = enumeratorText(object::mapTypeName(type), "BPF_MAP_TYPE_", type);
    collect(findings, {.severity = Severity::error,
                       .topic = Topic::mapType,
                       .program = {},
                       .map = bpf_map__name(map),
                       .name = text,
                       .message = "the kernel has no map type " + text,
                       .relocation = {}});
  }
}

void checkCalls(const ObjectToCheck& object, const TargetKernel& kernel, std::span<const std::byte> image,
                const Reachability& reachability, core::NearNames& near, std::vector<Finding>& findings) {
  CallRules rules(object, kernel, reachability, near, findings);
  for (const Code::Section& section : object.code().sections()) {
    for (std::size_t i = 0; i < section.instructions; ++i) {
      const Place place{.section = section.number, .instruction = i};
      rules.check(place, object.code().instructionAt(place, image));
    }
  }
}

} // namespace btfd::check
