#include "attach_kprobe.h"

#include "kernel_functions.h"
#include "multi_probes.h"
#include "named_functions.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

namespace btfd::loader {

namespace {

/// What one attachment of probes is to be attached to.
struct Places {
  /// "function" or "module:function".
  std::vector<std::string> functions;
  /// Where the functions were not named: what they match. The functions are those that do.
  std::string pattern;
  std::vector<KernelFunction> matches;
  std::uint64_t offset = 0;
  /// None, or one for each function; or one for all.
  std::vector<std::uint64_t> cookies;
  std::uint64_t commonCookie = 0;

  /// In words, for people.
  [[nodiscard]] std::string text() const {
    if (!pattern.empty()) {
      return pattern + " (" + std::to_string(functions.size()) + " functions)";
    }
    const std::string first = functions.front() + (offset == 0 ? "" : "+" + std::to_string(offset));
    return functions.size() == 1 ? first : first + " and " + std::to_string(functions.size() - 1) + " more";
  }

  [[nodiscard]] std::uint64_t cookie(std::size_t function) const {
    return cookies.empty() ? commonCookie : cookies[function];
  }
};

/// A function name as libbpf's and the kernel's parsers take it: nothing that would be cut off silently.
bool isFunctionName(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:$-";
  return !name.empty() && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

Outcome<void> readNamed(const AttachRequest& request, const ProbeSection& section, Places& places) {
  auto named = readNamedFunctions(request);
  if (!named) {
    return std::unexpected(std::move(named.error()));
  }
  const bool leftToSection = named->none();
  places.functions = std::move(named->functions);
  places.pattern = std::move(named->pattern);
  if (leftToSection && (section.isMulti() || section.isSession()) && isPattern(section.target)) {
    places.pattern = section.target;
  } else if (leftToSection && !section.target.empty()) {
    const auto place = readFunctionOffset(section.target);
    if (!place || place->function.empty()) {
      return request.missing("function", "a function of the kernel; its section " + request.section() + " names none");
    }
    places.functions = {place->function};
    places.offset = place->offset;
  } else if (leftToSection) {
    return request.missing("function", "a function of the kernel");
  }
  for (const std::string& name : places.functions) {
    if (!isFunctionName(name)) {
      return request.wrong(request.has("functions") ? "functions" : "function",
                           "'" + name + "' is no name of a function" +
                               (isPattern(name) ? "; field pattern takes a pattern" : ""));
    }
  }
  return {};
}

Outcome<void> readCookies(const AttachRequest& request, Places& places) {
  places.cookies = request.numbers("cookies");
  if (!places.cookies.empty() && (!places.pattern.empty() || places.cookies.size() != places.functions.size())) {
    return request.wrong("cookies", "there has to be one for each of functions");
  }
  if (request.has("cookie") && !places.cookies.empty()) {
    return request.wrong("cookie", "a target has either cookie or cookies");
  }
  places.commonCookie = request.number("cookie").value_or(0);
  return {};
}

Outcome<Places> readPlaces(const AttachRequest& request, const ProbeSection& section) {
  Places places;
  if (auto read = readNamed(request, section, places); !read) {
    return std::unexpected(std::move(read.error()));
  }
  if (!places.pattern.empty()) {
    places.matches = functionsLike(places.pattern);
    if (places.matches.empty()) {
      return request.refused(places.pattern, ENOENT, [&](int) { return whyNoneLike(places.pattern); });
    }
    std::ranges::transform(places.matches, std::back_inserter(places.functions), &KernelFunction::qualifiedName);
  }
  if (const auto offset = request.number("offset")) {
    places.offset = *offset;
  }
  const bool tooFar = places.offset > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (places.offset != 0 && (tooFar || places.functions.size() > 1 || section.isForReturns())) {
    return request.wrong("offset", tooFar                   ? "must not be negative"
                                   : section.isForReturns() ? "a probe of a function's return has none"
                                                            : "is for one function only");
  }
  if (auto read = readCookies(request, places); !read) {
    return std::unexpected(std::move(read.error()));
  }
  return places;
}

/// What is said of probes that were only looked at.
Outcome<AttachedLink> checked(const AttachRequest& request, const std::string& kind, const Places& places,
                              ProbeForm form) {
  const bool possible = form == ProbeForm::multi || kernelHasKprobes();
  if (possible && firstMissing(places.functions).empty()) {
    return AttachRequest::checked(kind, places.text());
  }
  return request.refused(places.text(), ENOENT,
                         [&](int code) { return whyNoKernelFunction(places.functions, code, form); });
}

/// A probe for each function.
Outcome<AttachedLink> attachSingly(AttachRequest& request, const ProbeSection& section, const Places& places) {
  const std::string kind = section.singleKind();
  const std::string target = places.text();
  if (request.onlyChecking()) {
    return checked(request, kind, places, ProbeForm::single);
  }
  const auto reason = [&](int code) {
    return code == EOPNOTSUPP && places.cookie(0) != 0
               ? std::string("this kernel's kprobes have no cookies (since Linux 5.15)")
               : whyNoKernelFunction(places.functions, code, ProbeForm::single);
  };
  if (!kernelHasKprobes()) { // libbpf would write to tracefs, and what it makes there would stay
    return request.refused(target, ENOENT, reason);
  }
  std::vector<std::string> functions = places.functions;
  if (!places.pattern.empty()) { // by name, each is one place whatever its number of matches
    std::ranges::sort(functions);
    const auto repeated = std::ranges::unique(functions);
    functions.erase(repeated.begin(), repeated.end());
  }
  if (functions.size() > kMostSingleProbes) {
    return request.refused(target, E2BIG, [](int) {
      return "each function would need a probe of its own, as this kernel or program has no kprobe.multi, and there "
             "may be " +
             std::to_string(kMostSingleProbes) + " of them";
    });
  }
  return request.finishAll(
      kind, target, functions.size(),
      [&](std::size_t i) {
        LIBBPF_OPTS(bpf_kprobe_opts, options, .bpf_cookie = places.cookie(i), .offset = places.offset,
                    .retprobe = section.isForReturns());
        return bpf_program__attach_kprobe_opts(request.loaded(), functions[i].c_str(), &options);
      },
      reason);
}

/// The address of each place, where a name is not enough: what has matched a pattern may share its name with what has
/// not, and the kernel knows no "module:function" here. Empty where names do, or addresses are not shown to this
/// process.
std::vector<unsigned long> addressesOf(const Places& places) {
  std::vector<unsigned long> addresses;
  std::ranges::transform(places.matches, std::back_inserter(addresses), &KernelFunction::address);
  if (places.pattern.empty() &&
      std::ranges::any_of(places.functions, [](const std::string& name) { return name.contains(':'); })) {
    const auto known = functionsNamed(places.functions);
    for (const std::string& name : places.functions) {
      const auto found = std::ranges::find_if(
          known, [&](const KernelFunction& each) { return name == each.qualifiedName() || name == each.name; });
      addresses.push_back(found == known.end() ? 0 : found->address);
    }
  }
  return std::ranges::find(addresses, 0UL) == addresses.end() ? addresses : std::vector<unsigned long>{};
}

Outcome<AttachedLink> attachTogether(AttachRequest& request, const ProbeSection& section, const Places& places) {
  const std::string target = places.text();
  if (request.onlyChecking()) {
    return checked(request, section.kind, places, ProbeForm::multi);
  }
  const auto reason = [&](int code) {
    return section.isSession() && (code == EINVAL || code == EOPNOTSUPP) && firstMissing(places.functions).empty()
               ? std::string("kprobe.session needs Linux 6.10")
               : whyNoKernelFunction(places.functions, code, ProbeForm::multi);
  };
  std::vector<const char*> names;
  std::ranges::transform(places.functions, std::back_inserter(names), &std::string::c_str);
  const std::vector<unsigned long> addresses = addressesOf(places);
  std::vector<__u64> cookies(places.cookies.begin(), places.cookies.end());
  if (places.commonCookie != 0) {
    cookies.assign(names.size(), places.commonCookie);
  }
  LIBBPF_OPTS(bpf_kprobe_multi_opts, options, .syms = addresses.empty() ? names.data() : nullptr,
              .addrs = addresses.empty() ? nullptr : addresses.data(),
              .cookies = cookies.empty() ? nullptr : cookies.data(), .cnt = names.size(),
              .retprobe = section.isForReturns(), .session = section.isSession());
  return request.finish(section.kind, target,
                        bpf_program__attach_kprobe_multi_opts(request.loaded(), nullptr, &options), reason);
}

Outcome<AttachedLink> attachSystemCall(AttachRequest& request, const ProbeSection& section) {
  if (auto allowed = request.allowOnly({"function", "cookie"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const std::string name = request.text("function").value_or(section.target);
  if (name.empty() || !isFunctionName(name)) {
    return request.missing("function", "the name of a system call, such as openat");
  }
  const auto reason = [&](int code) {
    if (!kernelHasKprobes()) {
      return whyNoKernelFunction({}, code, ProbeForm::single);
    }
    return code == ENOENT ? whyNoSystemCall(name) : std::string();
  };
  if (!kernelHasKprobes() || (request.onlyChecking() && !whyNoSystemCall(name).empty())) {
    return request.refused(name, ENOENT, reason);
  }
  if (request.onlyChecking()) {
    return AttachRequest::checked(section.kind, name);
  }
  LIBBPF_OPTS(bpf_ksyscall_opts, options, .bpf_cookie = request.number("cookie").value_or(0),
              .retprobe = section.isForReturns());
  return request.finish(section.kind, name, bpf_program__attach_ksyscall(request.loaded(), name.c_str(), &options),
                        reason);
}

} // namespace

Outcome<AttachedLink> attachKernelProbe(AttachRequest& request, const ProbeSection& section) {
  if (section.kind.ends_with("syscall")) {
    return attachSystemCall(request, section);
  }
  if (auto allowed = request.allowOnly({"function", "functions", "pattern", "offset", "cookie", "cookies"}); !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const auto places = readPlaces(request, section);
  if (!places) {
    return std::unexpected(places.error());
  }
  const bool together = section.isSession() || (section.isMulti() && kernelHasKprobeMulti());
  if (together && places->offset != 0) {
    return request.wrong("offset", "a program in section " + section.kind + " runs at the beginning of functions");
  }
  return together ? attachTogether(request, section, *places) : attachSingly(request, section, *places);
}

} // namespace btfd::loader
