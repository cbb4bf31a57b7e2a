#pragma once

#include "candidates.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace btfd::core {

// What a kernel has by name, apart from CO-RE's own questions: functions, tracepoints and the like.

/// The type of `kernel` with BTF kind `kind` and all of the name `name`: the kernel's own, else a module's. `module`:
/// only that of this module ("vmlinux" for the kernel itself), as "module:function" in a section's name asks for it.
std::optional<TargetType> findNamed(const Targets& kernel, std::string_view name, std::uint32_t kind,
                                    std::string_view module = {});

/// Whether a name of BTF kind `kind` fits `pattern`, in which * stands for any characters and ? for one.
bool anyMatches(const Targets& kernel, std::string_view pattern, std::uint32_t kind);

/// Finds names of a kernel that come near to one that it does not have. A search takes milliseconds, and an object may
/// ask for thousands of names, so there may be a limit. Refers to the kernel.
class NearNames {
 public:
  /// Searches for no more than `most` names; of others nothing comes near.
  explicit NearNames(const Targets& kernel, std::size_t most = std::numeric_limits<std::size_t>::max())
      : kernel_(kernel), left_(most) {}

  /// Names of BTF kind `kind`, or of any kind of enum for one of them, that begin with `prefix` and go on nearly as
  /// `name`, without that prefix; three at most.
  const std::vector<std::string>& to(std::string_view name, std::uint32_t kind, std::string_view prefix = {});

 private:
  /// Kind, and what is cut off.
  using List = std::pair<std::uint32_t, std::string>;

  const std::vector<std::string_view>& names(const List& list);

  const Targets& kernel_;
  std::size_t left_;
  std::map<List, std::vector<std::string_view>> lists_;
  std::map<std::pair<List, std::string>, std::vector<std::string>> found_;
  const std::vector<std::string> none_;
};

} // namespace btfd::core
