#include "target_kernel.h"

#include "core/kernel_names.h"

#include <bpf/btf.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <linux/btf.h>

namespace btfd::check {

namespace {

/// Parses a module's BTF and, if it was made against a distilled base, makes it refer to the kernel's.
Result<btf::BtfHandle> parseModule(const BtfBytes& bytes, struct ::btf* kernel, const btf::KindLayouts& layouts) {
  if (bytes.distilledBase.empty()) {
    auto module = btf::parseBtf(bytes.btf, kernel, layouts);
    return module ? Result<btf::BtfHandle>(std::move(module->btf)) : std::unexpected(std::move(module.error()));
  }
  const auto distilled = btf::parseBtf(bytes.distilledBase);
  if (!distilled) {
    return std::unexpected(distilled.error());
  }
  auto module = btf::parseBtf(bytes.btf, distilled->btf.get(), distilled->layouts);
  if (!module) {
    return std::unexpected(std::move(module.error()));
  }
  if (btf__relocate(module->btf.get(), kernel) != 0) {
    return failErrno("its types do not fit those of this kernel", errno);
  }
  return std::move(module->btf);
}

/// Whether an enumerator only says how many there are: __MAX_BPF_MAP_TYPE, __BPF_FUNC_MAX_ID, MAX_BPF_LINK_TYPE.
bool onlyCounts(std::string_view name) {
  return name.starts_with("__") || name.starts_with("MAX_");
}

} // namespace

Result<std::unique_ptr<TargetKernel>> TargetKernel::make(std::string name, const BtfBytes& bytes) {
  std::unique_ptr<TargetKernel> kernel(new TargetKernel(std::move(name))); // NOLINT: the constructor is private
  auto btf = btf::parseBtf(bytes.btf);
  if (!btf) {
    return std::unexpected(std::move(btf.error()));
  }
  kernel->btf_ = std::move(btf->btf);
  kernel->layouts_ = std::move(btf->layouts);
  if (btf__type_cnt(kernel->btf_.get()) <= 1) {
    return fail("the BTF holds no types", EINVAL);
  }
  kernel->index_ = btf::NameIndex(*kernel->btf_, 1);
  kernel->targets_ = core::Targets(*kernel->btf_, kernel->index_);
  kernel->readEnums();
  return kernel;
}

std::unique_ptr<TargetKernel> TargetKernel::of(std::string name, const btf::KernelSpec& spec) {
  std::unique_ptr<TargetKernel> kernel(new TargetKernel(std::move(name))); // NOLINT: the constructor is private
  kernel->targets_ = core::Targets(spec);
  kernel->readEnums();
  return kernel;
}

void TargetKernel::readEnums() {
  helpers_ = readEnum("bpf_func_id");
  mapTypes_ = readEnum("bpf_map_type");
  programTypes_ = readEnum("bpf_prog_type");
  attachTypes_ = readEnum("bpf_attach_type");
  findOutIfWhole();
}

/// Kernels before 5.5 have no functions in their BTF, but these enums; no CO-RE relocation asks for functions.
void TargetKernel::findOutIfWhole() {
  isWhole_ = (helpers_.known && mapTypes_.known && programTypes_.known && attachTypes_.known) ||
             core::anyMatches(targets_, "*", BTF_KIND_FUNC);
}

Result<void> TargetKernel::addModule(std::string name, const BtfBytes& bytes) {
  auto btf = parseModule(bytes, btf_.get(), layouts_);
  if (!btf) {
    return std::unexpected(std::move(btf.error()));
  }
  auto module = std::make_unique<Module>(Module{.name = std::move(name), .btf = std::move(*btf), .index = {}});
  module->index = btf::NameIndex(*module->btf, btf__type_cnt(btf_.get()));
  targets_.addModule(*module->btf, module->index, module->name);
  modules_.push_back(std::move(module));
  return {};
}

KernelEnum TargetKernel::readEnum(const char* name) const {
  KernelEnum result;
  const btf::NameIndex& named = *targets_[0].index;
  auto id = named.find(name, BTF_KIND_ENUM);
  if (!id) {
    id = named.find(name, BTF_KIND_ENUM64);
  }
  if (!id) {
    return result;
  }
  const core::Types& types = targets_[0].types;
  const struct btf_type& type = *types.find(*id);
  for (std::uint32_t index = 0; index < btf_vlen(&type); ++index) {
    const std::string_view enumerator = types.string(core::enumeratorName(type, index));
    const std::uint64_t value = btf_is_enum(&type) ? static_cast<std::uint32_t>(btf_enum(&type)[index].val)
                                                   : btf_enum64_value(&btf_enum64(&type)[index]);
    result.known =
        result.known || onlyCounts(enumerator) || enumerator.ends_with("UNSPEC") || enumerator.ends_with("unspec");
    if (!onlyCounts(enumerator)) {
      result.names.emplace(value, enumerator);
    }
  }
  return result;
}

} // namespace btfd::check
