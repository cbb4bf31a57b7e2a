#include "attach_uprobe.h"

#include "attach_diagnosis.h"
#include "attach_usdt.h"
#include "kernel_functions.h"
#include "multi_probes.h"
#include "named_functions.h"
#include "user_binary.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

namespace btfd::loader {

namespace {

constexpr pid_t kAllProcesses = -1;

/// What one attachment of probes is to be attached to.
struct Places {
  UserBinary binary;
  /// None: the offset is the file's.
  std::vector<std::string> functions;
  std::string pattern;
  std::uint64_t offset = 0;
  pid_t process = kAllProcesses;
  /// None, or one for each function; or one for all.
  std::vector<__u64> cookies;
  std::uint64_t commonCookie = 0;

  [[nodiscard]] std::size_t count() const { return std::max<std::size_t>(functions.size(), 1); }

  /// In words, for people.
  [[nodiscard]] std::string text() const {
    std::string what = functions.empty() ? "" : functions.front();
    if (functions.empty() || offset != 0) {
      what += "+" + std::to_string(offset);
    }
    if (!pattern.empty()) {
      what = pattern + " (" + std::to_string(functions.size()) + " functions)";
    } else if (functions.size() > 1) {
      what += " and " + std::to_string(functions.size() - 1) + " more";
    }
    return binary.name + ":" + what + (process == kAllProcesses ? "" : " in process " + std::to_string(process));
  }

  [[nodiscard]] std::uint64_t cookie(std::size_t place) const {
    return cookies.empty() ? commonCookie : cookies[place];
  }
};

/// What the section says, where the request leaves that to it: "binary:function+8", "binary:pattern".
struct SectionPlace {
  std::string binary;
  std::string function;

  explicit SectionPlace(const ProbeSection& section) {
    const auto colon = section.target.find(':');
    binary = section.target.substr(0, colon);
    function = colon == std::string::npos ? "" : section.target.substr(colon + 1);
  }
};

Outcome<void> readFunctions(const AttachRequest& request, const ProbeSection& section, Places& places) {
  auto named = readNamedFunctions(request);
  if (!named) {
    return std::unexpected(std::move(named.error()));
  }
  const bool leftToSection = named->none();
  places.functions = std::move(named->functions);
  places.pattern = std::move(named->pattern);
  const std::string ofSection = SectionPlace(section).function;
  const bool ownPlace = !leftToSection || request.has("offset") || request.has("binary");
  if (!ownPlace && section.isMulti() && isPattern(ofSection)) {
    places.pattern = ofSection;
  } else if (!ownPlace && !ofSection.empty()) {
    const auto place = readFunctionOffset(ofSection);
    if (!place) {
      return request.missing("function", "a function of " + places.binary.name + "; its section " + request.section() +
                                             " names none");
    }
    places.offset = place->offset;
    if (!place->function.empty()) {
      places.functions = {place->function};
    }
  } else if (leftToSection && !request.has("offset")) {
    return request.missing("function", "a function of " + places.binary.name + ", or an offset in it");
  }
  if (!places.pattern.empty()) {
    std::ranges::copy_if(functionsIn(places.binary), std::back_inserter(places.functions),
                         [&](const std::string& name) { return matchesPattern(name, places.pattern); });
    if (places.functions.empty()) {
      return request.refused(places.binary.name + ":" + places.pattern, ENOENT,
                             [](int) { return "no function in its symbol table is like that, or it is stripped"; });
    }
  }
  return {};
}

Outcome<void> readNumbers(const AttachRequest& request, const ProbeSection& section, Places& places) {
  if (const auto offset = request.number("offset")) {
    places.offset = *offset;
  }
  if (places.offset > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return request.wrong("offset", "must not be negative");
  }
  if (places.offset != 0 && !places.functions.empty() && (places.functions.size() > 1 || section.isForReturns())) {
    return request.wrong("offset", section.isForReturns() ? "a probe of a function's return has none"
                                                          : "is for one function only");
  }
  const auto cookies = request.numbers("cookies");
  places.cookies.assign(cookies.begin(), cookies.end());
  if (!cookies.empty() && (!places.pattern.empty() || cookies.size() != places.functions.size())) {
    return request.wrong("cookies", "there has to be one for each of functions");
  }
  if (request.has("cookie") && !cookies.empty()) {
    return request.wrong("cookie", "a target has either cookie or cookies");
  }
  places.commonCookie = request.number("cookie").value_or(0);
  return {};
}

Outcome<Places> readPlaces(const AttachRequest& request, const ProbeSection& section) {
  Places places;
  auto binary = readBinary(request, SectionPlace(section).binary);
  if (!binary) {
    return std::unexpected(std::move(binary.error()));
  }
  places.binary = std::move(*binary);
  const auto process = request.process();
  if (!process) {
    return std::unexpected(process.error());
  }
  places.process = process->value_or(kAllProcesses);
  if (auto read = readFunctions(request, section, places); !read) {
    return std::unexpected(std::move(read.error()));
  }
  if (auto read = readNumbers(request, section, places); !read) {
    return std::unexpected(std::move(read.error()));
  }
  return places;
}

/// A probe for each place.
Outcome<AttachedLink> attachSingly(AttachRequest& request, const ProbeSection& section, const Places& places,
                                   const AttachRequest::Reason& reason) {
  if (places.count() > kMostSingleProbes) {
    return request.refused(places.text(), E2BIG, [](int) {
      return "each function would need a probe of its own, as this kernel or program has no uprobe.multi, and there "
             "may be " +
             std::to_string(kMostSingleProbes) + " of them";
    });
  }
  return request.finishAll(
      section.singleKind(), places.text(), places.count(),
      [&](std::size_t i) {
        LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = places.cookie(i), .retprobe = section.isForReturns(),
                    .func_name = places.functions.empty() ? nullptr : places.functions[i].c_str());
        return bpf_program__attach_uprobe_opts(request.loaded(), places.process, places.binary.path.c_str(),
                                               places.offset, &options);
      },
      reason);
}

/// All places by one link.
Outcome<AttachedLink> attachTogether(AttachRequest& request, const ProbeSection& section, const Places& places,
                                     const AttachRequest::Reason& reason) {
  if (!places.functions.empty() && places.offset != 0) {
    return request.wrong("offset", "a program in section " + section.kind +
                                       " runs at the beginning of functions, or at an offset in the file");
  }
  const std::vector<unsigned long> offsets =
      places.functions.empty() ? std::vector<unsigned long>{places.offset} : offsetsOf(places.binary, places.functions);
  if (offsets.empty()) {
    return request.refused(places.text(), ENOENT, reason);
  }
  std::vector<__u64> cookies = places.cookies;
  if (places.commonCookie != 0) {
    cookies.assign(places.count(), places.commonCookie);
  }
  LIBBPF_OPTS(bpf_uprobe_multi_opts, options, .offsets = offsets.data(),
              .cookies = cookies.empty() ? nullptr : cookies.data(), .cnt = places.count(),
              .retprobe = section.isForReturns(), .session = section.isSession());
  return request.finish(
      section.kind, places.text(),
      bpf_program__attach_uprobe_multi(request.loaded(), places.process, places.binary.path.c_str(), nullptr, &options),
      reason);
}

} // namespace

Outcome<UserBinary> readBinary(const AttachRequest& request, const std::string& ofSection) {
  const std::string name = request.text("binary").value_or(ofSection);
  if (name.empty()) {
    return request.missing("binary", "the path of a program or library, or the name of one");
  }
  const auto rootOf = request.process("rootOf");
  if (!rootOf) {
    return std::unexpected(rootOf.error());
  }
  auto found = findBinary(name, *rootOf);
  if (!found) {
    return request.wrong("binary", std::move(found.error().message));
  }
  return std::move(*found);
}

Outcome<AttachedLink> attachUserProbe(AttachRequest& request, const ProbeSection& section) {
  if (section.kind.starts_with("usdt")) {
    return attachUsdt(request, section);
  }
  if (auto allowed = request.allowOnly(
          {"binary", "rootOf", "function", "functions", "pattern", "offset", "cookie", "cookies", "pid"});
      !allowed) {
    return std::unexpected(std::move(allowed.error()));
  }
  const auto places = readPlaces(request, section);
  if (!places) {
    return std::unexpected(places.error());
  }
  if (request.onlyChecking()) {
    return AttachRequest::checked(section.kind, places->text());
  }
  const auto reason = [&](int code) {
    if (section.isSession() && (code == EINVAL || code == EOPNOTSUPP)) {
      return std::string("uprobe.session needs Linux 6.13");
    }
    return code == EOPNOTSUPP && places->cookie(0) != 0
               ? std::string("this kernel's uprobes have no cookies (since Linux 5.15)")
               : whyNoUprobe(places->binary, places->functions, code, request.warnings());
  };
  const bool together = section.isSession() || (section.isMulti() && kernelHasUprobeMulti());
  return together ? attachTogether(request, section, *places, reason) : attachSingly(request, section, *places, reason);
}

} // namespace btfd::loader
