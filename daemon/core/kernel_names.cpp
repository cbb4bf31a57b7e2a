#include "kernel_names.h"

#include "base/near_misses.h"

namespace btfd::core {

namespace {

/// Calls `visit(name)` for each name of BTF kind `kind`; stops when it returns false.
template <typename Visit>
void forEachName(const Targets& kernel, std::uint32_t kind, Visit&& visit) {
  TypeId first = 1;
  for (std::uint32_t target = 0; target < kernel.size(); ++target) {
    const Types& types = kernel[target].types;
    for (TypeId id = first; id < types.count(); ++id) {
      const struct btf_type& type = *types.find(id);
      if (btf_kind(&type) == kind && !visit(std::string_view(types.string(type.name_off)))) {
        return;
      }
    }
    first = kernel[0].types.count(); // a split BTF goes on where its base ends
  }
}

/// As libbpf's glob_match, but in no more steps than the product of the lengths: only the last star is ever tried
/// again.
bool matches(std::string_view name, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t next = 0;
  std::size_t star = std::string_view::npos;
  std::size_t behindStar = 0;
  while (at < name.size()) {
    if (next < pattern.size() && pattern[next] == '*') {
      star = next++;
      behindStar = at;
    } else if (next < pattern.size() && (pattern[next] == '?' || pattern[next] == name[at])) {
      ++next;
      ++at;
    } else if (star != std::string_view::npos) {
      next = star + 1;
      at = ++behindStar;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', next) == std::string_view::npos;
}

} // namespace

std::optional<TargetType> findNamed(const Targets& kernel, std::string_view name, std::uint32_t kind,
                                    std::string_view module) {
  for (std::uint32_t target = 0; target < kernel.size(); ++target) {
    if (!module.empty() && kernel[target].name != module) {
      continue;
    }
    if (const auto id = kernel[target].index->find(name, kind)) {
      return TargetType{.target = target, .id = *id};
    }
  }
  return std::nullopt;
}

bool anyMatches(const Targets& kernel, std::string_view pattern, std::uint32_t kind) {
  bool found = false;
  forEachName(kernel, kind, [&](std::string_view name) {
    found = matches(name, pattern);
    return !found;
  });
  return found;
}

const std::vector<std::string>& NearNames::to(std::string_view name, std::uint32_t kind, std::string_view prefix) {
  const List list{kind == BTF_KIND_ENUM64 ? std::uint32_t{BTF_KIND_ENUM} : kind, prefix};
  if (name.size() > kLongestMistyped) { // not to be remembered: there may be thousands of megabytes each
    return none_;
  }
  std::pair<List, std::string> sought(list, name);
  if (const auto found = found_.find(sought); found != found_.end()) {
    return found->second;
  }
  if (left_ == 0) {
    return none_;
  }
  --left_;
  return found_.emplace(std::move(sought), nearMisses(name, names(list))).first->second;
}

const std::vector<std::string_view>& NearNames::names(const List& list) {
  const auto [names, isNew] = lists_.try_emplace(list);
  if (isNew) {
    const auto& [kind, prefix] = list;
    const auto add = [&](std::string_view name) {
      if (name.size() > prefix.size() && name.starts_with(prefix)) {
        names->second.push_back(name.substr(prefix.size()));
      }
      return true;
    };
    forEachName(kernel_, kind, add);
    if (kind == BTF_KIND_ENUM) {
      forEachName(kernel_, BTF_KIND_ENUM64, add);
    }
  }
  return names->second;
}

} // namespace btfd::core
