#include "engine.h"

#include "field_match.h"
#include "type_match.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

namespace btfd::core {

namespace {

/// What is asked, once, however many instructions ask it.
struct Request {
  TypeId type = 0;
  std::uint32_t access = 0;
  Kind kind = Kind::fieldByteOffset;

  Resolution resolution;
  Fault fault = Fault::none;
  std::uint32_t candidates = 0;
  /// The first candidate that has it, and the first that does not agree with that one or lacks it.
  TargetType type1;
  TargetType type2;
};

/// Different questions of an object: its records name the same fields again and again.
class Requests {
 public:
  explicit Requests(std::span<const Record> records) : slots_(std::bit_ceil(records.size() * 2 + 1), kEmpty) {
    ofRecord_.reserve(records.size());
    for (const Record& record : records) {
      ofRecord_.push_back(add(record));
    }
  }

  [[nodiscard]] const Request& of(std::size_t record) const { return requests_[ofRecord_[record]]; }

  /// All requests, those about one type of the object together.
  std::vector<Request*> byType() {
    std::vector<Request*> sorted;
    sorted.reserve(requests_.size());
    for (Request& request : requests_) {
      sorted.push_back(&request);
    }
    std::ranges::sort(sorted, {}, [](const Request* each) { return std::pair(each->type, each); });
    return sorted;
  }

 private:
  static constexpr std::uint32_t kEmpty = std::numeric_limits<std::uint32_t>::max();
  /// A question that is not found so soon is asked again: of records made so that they collide, each would be compared
  /// with all.
  static constexpr unsigned kProbes = 64;

  std::uint32_t add(const Record& record) {
    const std::uint64_t mixed =
        ((std::uint64_t{record.type} << 32U | record.access) + static_cast<std::uint64_t>(record.kind)) *
        0x9e3779b97f4a7c15U;
    std::size_t at = mixed >> 32U & (slots_.size() - 1);
    for (unsigned probe = 0; probe < kProbes; ++probe, at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] == kEmpty) {
        slots_[at] = append(record);
        return slots_[at];
      }
      const Request& known = requests_[slots_[at]];
      if (known.type == record.type && known.access == record.access && known.kind == record.kind) {
        return slots_[at];
      }
    }
    return append(record);
  }

  std::uint32_t append(const Record& record) {
    Request& request = requests_.emplace_back();
    request.type = record.type;
    request.access = record.access;
    request.kind = record.kind;
    return static_cast<std::uint32_t>(requests_.size() - 1);
  }

  std::vector<Request> requests_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint32_t> ofRecord_;
};

/// Whether a load of the object's field can be made one of the kernel's: pointers and unsigned integers are
/// zero-extended, whatever their width.
bool canAdjustLoad(const Types& object, const Value& local, const Types& target, const Value& value) {
  const struct btf_type* ours = object.find(local.loadType);
  const struct btf_type* theirs = target.find(value.loadType);
  const auto isUnsigned = [](const struct btf_type* type) {
    return btf_is_int(type) && btf_int_encoding(type) != BTF_INT_SIGNED;
  };
  return (btf_is_ptr(ours) && btf_is_ptr(theirs)) || (isUnsigned(ours) && isUnsigned(theirs));
}

class Resolver {
 public:
  Resolver(const Types& object, const Targets& targets)
      : object_(object.paidWith(work_)), targets_(targets), fields_(object_, work_) {}

  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Resolves requests about one type of the object. They are resolved together, as the choice among several types of
  /// the kernel must not depend on which is asked first.
  void resolve(std::span<Request* const> requests) {
    if (!prepare(requests)) {
      return;
    }
    dropped_.assign(candidates_.size(), false);
    bool anyDropped = false;
    for (Request* request : requests) {
      if (request->fault == Fault::none && request->kind != Kind::typeIdLocal) {
        anyDropped = tryCandidates(*request) || anyDropped;
      }
    }
    if (!anyDropped) {
      return;
    }
    const bool noneLeft = std::ranges::find(dropped_, false) == dropped_.end();
    for (Request* request : requests) {
      if (request->fault != Fault::none && request->fault != Fault::ambiguousValue) {
        continue;
      }
      if (request->kind == Kind::typeIdLocal) {
        continue;
      }
      if (noneLeft) {
        contradict(*request);
      } else {
        request->fault = Fault::none;
        choose(*request, Round::remaining);
      }
    }
  }

 private:
  /// What it costs to ask a candidate, beside the steps that this takes.
  static constexpr std::uint64_t kCandidateCost = 8;

  enum class Round : std::uint8_t { all, remaining };

  /// Finds candidates; whether there is anything left to resolve.
  bool prepare(std::span<Request* const> requests) {
    const TypeId type = requests.front()->type;
    const struct btf_type* found = object_.find(type);
    const bool anonymous = found != nullptr && *object_.string(found->name_off) == '\0';
    bool asksKernel = false;
    for (Request* request : requests) {
      if (found == nullptr) {
        request->fault = Fault::unknownType;
      } else if (request->kind == Kind::typeIdLocal) {
        request->fault = prepareLocal(*request);
      } else if (anonymous) {
        request->fault = Fault::anonymousRoot;
      } else {
        asksKernel = true;
      }
    }
    candidates_.clear();
    if (!asksKernel) {
      return false;
    }
    const bool paid = targets_.findCandidates(object_, type, work_, candidates_);
    for (Request* request : requests) {
      if (request->kind == Kind::typeIdLocal) {
        continue;
      }
      if (!paid) {
        request->fault = Fault::tooMuchWork;
      }
      request->candidates = static_cast<std::uint32_t>(candidates_.size());
    }
    return paid;
  }

  Fault prepareLocal(Request& request) {
    if (const auto access = parse(request); !access) {
      return access.error();
    }
    request.resolution.local = request.resolution.target = *typeValue(request.kind, object_, request.type);
    return Fault::none;
  }

  Expected<LocalAccess> parse(const Request& request) const {
    return LocalAccess::parse(object_, request.type, request.kind, object_.string(request.access));
  }

  Expected<Value> localValue(const Request& request, const LocalAccess& access) const {
    if (isFieldKind(request.kind)) {
      return fieldValue(request.kind, object_, access.place(), object_.isBigEndian());
    }
    if (isTypeKind(request.kind)) {
      return typeValue(request.kind, object_, request.type);
    }
    return enumeratorValue(request.kind, object_, access.place());
  }

  /// What `candidate` answers; nothing if it lacks what is asked for.
  Expected<std::optional<Value>> ask(const Request& request, const LocalAccess& access, const TargetType& candidate) {
    if (!work_.spend(kCandidateCost)) {
      return std::unexpected(Fault::tooMuchWork);
    }
    const Types types = targets_[candidate.target].types.paidWith(work_);
    if (isTypeKind(request.kind)) {
      TypeMatcher matcher(object_, types, work_);
      const auto fits = request.kind == Kind::typeMatches ? matcher.matches(request.type, candidate.id)
                                                          : matcher.compatible(request.type, candidate.id);
      if (!fits || !*fits) {
        return fits ? Expected<std::optional<Value>>(std::nullopt) : std::unexpected(fits.error());
      }
      return typeValue(request.kind, types, candidate.id);
    }
    const auto place = isFieldKind(request.kind) ? fields_.matchField(access, types, candidate.id)
                                                 : fields_.matchEnumerator(access, types, candidate.id);
    if (!place || !*place) {
      return place ? Expected<std::optional<Value>>(std::nullopt) : std::unexpected(place.error());
    }
    if (isFieldKind(request.kind)) {
      return fieldValue(request.kind, types, **place, object_.isBigEndian());
    }
    return enumeratorValue(request.kind, types, **place);
  }

  /// Resolves `request` with all candidates, and marks those that fail it while others do not. Whether any was marked.
  bool tryCandidates(Request& request) {
    choose(request, Round::all);
    if (request.type1.id == 0 || isQuestion(request.kind)) {
      return false;
    }
    for (const std::uint32_t candidate : failing_) {
      dropped_[candidate] = true;
    }
    return !failing_.empty();
  }

  /// Resolves `request` with all candidates, or with those that are left.
  void choose(Request& request, Round round) {
    const auto access = parse(request);
    if (!access) {
      request.fault = access.error();
      return;
    }
    const auto local = localValue(request, *access);
    if (!local) {
      request.fault = local.error();
      return;
    }
    request.type1 = request.type2 = {};
    failing_.clear();
    Fault error = Fault::none;
    Resolution resolution{.local = *local, .target = {}};
    for (std::uint32_t index = 0; index < candidates_.size(); ++index) {
      if (round == Round::remaining && dropped_[index]) {
        continue;
      }
      const TargetType& candidate = candidates_[index];
      const auto value = ask(request, *access, candidate);
      if (!value) {
        // The others are asked nevertheless: which of them lack it must not depend on their order.
        error = error == Fault::none ? value.error() : error;
        continue;
      }
      if (!*value) {
        failing_.push_back(index);
        continue;
      }
      merge(request, resolution, candidate, **value);
    }
    if (error != Fault::none) {
      request.fault = error;
      return;
    }
    if (request.type1.id == 0) {
      resolution.poison = !isQuestion(request.kind) && !isTypeKind(request.kind);
    }
    request.resolution = resolution;
  }

  /// Takes up the answer of one more candidate, which must be that of those before it.
  void merge(Request& request, Resolution& resolution, const TargetType& candidate, const Value& value) {
    const Types& types = targets_[candidate.target].types;
    const bool changed =
        resolution.local.loadSize != value.loadSize && !canAdjustLoad(object_, resolution.local, types, value);
    if (request.type1.id == 0) {
      request.type1 = candidate;
      resolution.target = value;
      resolution.loadSizeChanged = changed;
      return;
    }
    if (value.value != resolution.target.value) {
      request.fault = Fault::ambiguousValue;
      request.type2 = candidate;
    } else if (changed != resolution.loadSizeChanged || (!changed && value.loadSize != resolution.target.loadSize)) {
      resolution.loadSizeAmbiguous = true;
      request.type2 = candidate;
    }
  }

  /// No candidate has all that is asked of the type: what only some have is then of an unknown layout.
  void contradict(Request& request) {
    request.fault = Fault::none;
    choose(request, Round::all);
    if (request.fault == Fault::none && request.type1.id != 0 && !failing_.empty() && !isQuestion(request.kind)) {
      request.fault = Fault::contradictoryCandidates;
      request.type2 = candidates_[failing_.front()];
    }
  }

  Work work_;
  Types object_;
  const Targets& targets_;
  FieldMatcher fields_;
  std::vector<TargetType> candidates_;
  std::vector<bool> dropped_;
  std::vector<std::uint32_t> failing_;
};

void apply(const Request& request, std::span<std::byte> section, bool foreign, Relocation& relocation) {
  relocation.candidates = request.candidates;
  relocation.localValue = request.resolution.local.value;
  relocation.type = request.type1;
  relocation.other = request.type2;
  relocation.fault = request.fault;
  if (request.fault != Fault::none) {
    return;
  }
  if (section.empty()) {
    relocation.fault = Fault::sectionMissing;
    return;
  }
  const auto patched = patchInstruction(section, relocation.record.instructionOffset, request.resolution, foreign);
  if (!patched) {
    relocation.fault = patched.error();
    return;
  }
  relocation.fault = *patched == Fault::noMatch && request.candidates == 0 ? Fault::noCandidate : *patched;
  relocation.outcome = *patched == Fault::none ? Outcome::resolved : Outcome::poisoned;
  relocation.value = relocation.outcome == Outcome::resolved ? request.resolution.target.value : 0;
}

} // namespace

std::vector<Relocation> relocate(const Types& types, const Records& records,
                                 std::span<const std::span<std::byte>> sections, const Targets& targets) {
  Requests requests(records.records);
  Resolver resolver(types, targets);
  const auto sorted = requests.byType();
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    const auto end =
        std::find_if(begin, sorted.end(), [&](const Request* each) { return each->type != (*begin)->type; });
    resolver.resolve(std::span(begin, end));
    begin = end;
  }
  std::vector<Relocation> relocations;
  relocations.reserve(records.records.size());
  for (std::size_t index = 0; index < records.records.size(); ++index) {
    Relocation& relocation = relocations.emplace_back();
    relocation.record = records.records[index];
    apply(requests.of(index), sections[relocation.record.section], records.foreign, relocation);
  }
  return relocations;
}

} // namespace btfd::core
