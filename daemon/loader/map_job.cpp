#include "map_job.h"

#include "base/text.h"
#include "json_variable.h"
#include "object/json_value.h"
#include "object/kept_image.h"
#include "object/libbpf_log.h"
#include "open_object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace btfd::loader {

namespace {

using Bytes = std::vector<std::byte>;

/// Entries of one answer to MapDump, and what they may take as text: the front does nothing else while it passes them
/// on.
constexpr std::int64_t kMostEntries = 1000;
constexpr std::size_t kMostText = std::size_t{1} << 20;

/// The largest value that is told, in bytes, of all CPUs: twice as long in hexadecimal, it fits a message.
constexpr std::size_t kLargestValue = std::size_t{4} << 20;

/// Maps that hold nothing but bytes.
constexpr std::array kPlain{BPF_MAP_TYPE_HASH,         BPF_MAP_TYPE_ARRAY,    BPF_MAP_TYPE_PERCPU_HASH,
                            BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_LRU_HASH, BPF_MAP_TYPE_LRU_PERCPU_HASH,
                            BPF_MAP_TYPE_LPM_TRIE};

/// Maps that hold something else, of which bpf(2) tells an id or the like. What it would take for it is a descriptor: a
/// number of a client's would be one of this process's own.
constexpr std::array kReadable{BPF_MAP_TYPE_ARRAY_OF_MAPS, BPF_MAP_TYPE_HASH_OF_MAPS, BPF_MAP_TYPE_PROG_ARRAY,
                               BPF_MAP_TYPE_STACK_TRACE,   BPF_MAP_TYPE_DEVMAP,       BPF_MAP_TYPE_DEVMAP_HASH,
                               BPF_MAP_TYPE_CPUMAP};

/// Maps whose keys are numbers from 0 on. BTF does not say so of global variables'.
constexpr std::array kArrays{BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_ARRAY_OF_MAPS,
                             BPF_MAP_TYPE_PROG_ARRAY};

constexpr std::array kPerCpu{BPF_MAP_TYPE_PERCPU_HASH, BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_LRU_PERCPU_HASH};

template <std::size_t kCount>
bool isOneOf(const std::array<enum bpf_map_type, kCount>& types, std::uint32_t type) {
  return std::ranges::find(types, type, [](enum bpf_map_type each) { return static_cast<std::uint32_t>(each); }) !=
         types.end();
}

std::optional<Bytes> fromHex(std::string_view text) {
  if (text.size() % 2 != 0) {
    return std::nullopt;
  }
  Bytes bytes;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const std::string_view digits = text.substr(at, 2);
    std::uint8_t byte = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<std::byte>(byte));
  }
  return bytes;
}

std::size_t textOf(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size();
}

class MapJob {
 public:
  MapJob(const nlohmann::json& request, RequestDescriptors& descriptors)
      : request_(request), parameters_(request.at("parameters")), map_(descriptors.held(request.at("mapDescriptor"))),
        descriptors_(descriptors) {}

  Outcome<JobReply> run() {
    if (auto opened = open(); !opened) {
      return std::unexpected(std::move(opened.error()));
    }
    const auto method = request_.value("method", "");
    if (auto allowed = checkType(method == "MapUpdate" || method == "MapDelete"); !allowed) {
      return std::unexpected(std::move(allowed.error()));
    }
    if (method == "MapDump") {
      return dump();
    }
    auto key = writeKey();
    if (!key) {
      return std::unexpected(std::move(key.error()));
    }
    return method == "MapLookup" ? lookup(*key) : method == "MapUpdate" ? update(*key) : remove(*key);
  }

 private:
  Outcome<void> open() {
    const BorrowedFd image = descriptors_.held(request_.at("image"));
    auto kept = request_.value("relocated", false) ? object::KeptImage::open(image) : object::KeptImage::ofFile(image);
    if (!kept) {
      return invalidObject(kept.error().message);
    }
    kept_ = std::move(*kept);
    auto opened = openObject(kept_->object(), {}, log_);
    if (!opened) {
      return std::unexpected(std::move(opened.error()));
    }
    object_ = std::move(*opened);
    __u32 length = sizeof(info_);
    if (bpf_map_get_info_by_fd(map_.get(), &info_, &length) < 0) {
      return std::unexpected(refused("be looked at", errno));
    }
    const auto found = MapsByName(*object_).find(name());
    if (!found) {
      return std::unexpected(found.error());
    }
    if (bpf_map__is_internal(*found) && info_.value_size != bpf_map__value_size(*found)) {
      bpf_map__set_value_size(*found, info_.value_size); // as it was loaded, with the type of its last array
    }
    btf_ = bpf_object__btf(object_.get());
    keyType_ = typeOfSize(bpf_map__btf_key_type_id(*found), info_.key_size);
    valueType_ = typeOfSize(bpf_map__btf_value_type_id(*found), info_.value_size);
    const int cpus = isOneOf(kPerCpu, info_.type) ? libbpf_num_possible_cpus() : 1;
    cpus_ = cpus < 1 ? 1 : static_cast<std::size_t>(cpus);
    constexpr std::size_t kWord = 8; // values of each CPU begin at one
    stride_ = isPerCpu() ? (info_.value_size + kWord - 1) / kWord * kWord : info_.value_size;
    if (stride_ * cpus_ > kLargestValue) {
      return std::unexpected(limitExceeded("values of map '" + name() + "' have " + std::to_string(stride_ * cpus_) +
                                               " bytes; get its descriptor (GetDescriptors) to read them",
                                           "valueBytes", kLargestValue));
    }
    return {};
  }

  /// The type, if it is one of this size; 0 if there is none.
  std::uint32_t typeOfSize(std::uint32_t type, std::uint32_t size) const {
    return btf_ != nullptr && type != 0 && btf__resolve_size(btf_, type) == size ? type : 0;
  }

  Outcome<void> checkType(bool writing) const {
    if (isOneOf(kPlain, info_.type) || (!writing && isOneOf(kReadable, info_.type))) {
      return {};
    }
    const char* type = object::mapTypeName(info_.type);
    return invalidParameter("map", "entries of maps of type " + (type == nullptr ? std::to_string(info_.type) : type) +
                                       " cannot be " + (writing ? "changed" : "read") +
                                       " here; GetDescriptors has the map's descriptor, for bpf(2) or libbpf");
  }

  Outcome<JobReply> dump() {
    std::optional<Bytes> last;
    if (const auto after = parameters_.find("after"); after != parameters_.end()) {
      last = fromHex(after->get_ref<const std::string&>());
      if (!last || last->size() != info_.key_size) {
        return invalidParameter("after", "is not what an answer's next has been for this map");
      }
    }
    const auto limit = std::clamp<std::int64_t>(parameters_.value("limit", kMostEntries), 1, kMostEntries);
    JobReply reply;
    auto& entries = reply.body["entries"] = nlohmann::json::array();
    std::size_t text = 0;
    Bytes key(info_.key_size);
    while (bpf_map_get_next_key(map_.get(), last ? last->data() : nullptr, key.data()) == 0) {
      last = key;
      auto value = valueAt(key);
      if (!value && value.error() == ENOENT) {
        continue; // deleted since
      }
      if (!value) {
        return std::unexpected(refused("be read", value.error()));
      }
      entries.push_back({{"key", readKey(key)}, {"value", readCpus(*value)}});
      text += textOf(entries.back());
      if (entries.size() == static_cast<std::size_t>(limit) || text > kMostText) {
        reply.body["next"] = toHex(*last);
        return reply;
      }
    }
    return errno == ENOENT ? Outcome<JobReply>(std::move(reply)) : std::unexpected(refused("be read", errno));
  }

  Outcome<JobReply> lookup(const Bytes& key) {
    const auto value = valueAt(key);
    if (!value) {
      return std::unexpected(failureAt(key, "be read", value.error()));
    }
    JobReply reply;
    reply.body["entry"]["key"] = entry().at("key");
    reply.body["entry"]["value"] = readCpus(*value);
    return reply;
  }

  Outcome<JobReply> update(const Bytes& key) {
    Bytes value(stride_ * cpus_);
    if (auto before = valueAt(key)) {
      value = std::move(*before); // what the request does not name keeps its value
    }
    if (auto written = writeCpus(value); !written) {
      return std::unexpected(std::move(written.error()));
    }
    const auto how = parameters_.value("condition", "");
    const std::uint64_t flags = how == "new" ? BPF_NOEXIST : how == "existing" ? BPF_EXIST : BPF_ANY;
    if (bpf_map_update_elem(map_.get(), key.data(), value.data(), flags) < 0) {
      return std::unexpected(failureAt(key, "be changed", errno));
    }
    return done();
  }

  Outcome<JobReply> remove(const Bytes& key) {
    if (bpf_map_delete_elem(map_.get(), key.data()) < 0) {
      return std::unexpected(failureAt(key, "be deleted", errno));
    }
    return done();
  }

  static JobReply done() {
    JobReply reply;
    reply.body = nlohmann::json::object();
    return reply;
  }

  /// The value at `key`, of all CPUs, or an errno value.
  std::expected<Bytes, int> valueAt(const Bytes& key) const {
    Bytes value(stride_ * cpus_);
    if (bpf_map_lookup_elem(map_.get(), key.data(), value.data()) < 0) {
      return std::unexpected(errno);
    }
    return value;
  }

  // ---- JSON -------------------------------------------------------------------------------------------------------

  nlohmann::json readKey(const Bytes& key) const { return read(keyType_, isOneOf(kArrays, info_.type), key); }

  /// In hexadecimal where BTF does not say what it is, unless it `isNumber` of 32 bits anyway.
  nlohmann::json read(std::uint32_t type, bool isNumber, std::span<const std::byte> bytes) const {
    if (std::uint32_t number = 0; type == 0 && isNumber && bytes.size() == sizeof(number)) {
      std::memcpy(&number, bytes.data(), sizeof(number));
      return number;
    }
    auto value = type == 0 ? std::nullopt : object::readValue(*btf_, type, bytes);
    return value ? std::move(*value) : nlohmann::json(toHex(bytes));
  }

  nlohmann::json readCpus(const Bytes& value) const {
    if (!isPerCpu()) {
      return read(valueType_, isOneOf(kReadable, info_.type), value);
    }
    nlohmann::json values = nlohmann::json::array();
    for (std::size_t cpu = 0; cpu < cpus_; ++cpu) {
      values.push_back(read(valueType_, false, std::span(value).subspan(cpu * stride_, info_.value_size)));
    }
    return values;
  }

  /// What the request says of the entry.
  const nlohmann::json& entry() const { return parameters_.at("entry"); }

  Outcome<Bytes> writeKey() const {
    Bytes key(info_.key_size);
    if (auto written = write(keyType_, isOneOf(kArrays, info_.type), entry().at("key"), key, "entry.key"); !written) {
      return std::unexpected(std::move(written.error()));
    }
    return key;
  }

  Outcome<void> write(std::uint32_t type, bool isNumber, const nlohmann::json& value, std::span<std::byte> memory,
                      const std::string& path) const {
    if (type != 0) {
      return writeVariable(*btf_, type, value, memory, path);
    }
    if (isNumber && value.is_number_unsigned() && value <= UINT32_MAX && memory.size() == sizeof(std::uint32_t)) {
      const auto number = value.get<std::uint32_t>();
      std::memcpy(memory.data(), &number, sizeof(number));
      return {};
    }
    const auto bytes = value.is_string() ? fromHex(value.get_ref<const std::string&>()) : std::nullopt;
    if (!bytes || bytes->size() != memory.size()) {
      return invalidParameter(path, "has no type in the object's BTF, so it has to be a text of " +
                                        std::to_string(memory.size()) + " bytes in hexadecimal");
    }
    std::ranges::copy(*bytes, memory.begin());
    return {};
  }

  Outcome<void> writeCpus(Bytes& value) const {
    const nlohmann::json& given = entry().at("value");
    if (!isPerCpu()) {
      return write(valueType_, false, given, value, "entry.value");
    }
    if (!given.is_array() || given.size() != cpus_) {
      return invalidParameter("entry.value",
                              "has to be an array of the values of all " + std::to_string(cpus_) + " CPUs");
    }
    for (std::size_t cpu = 0; cpu < cpus_; ++cpu) {
      const auto place = std::span(value).subspan(cpu * stride_, info_.value_size);
      if (auto written = write(valueType_, false, given[cpu], place, "entry.value[" + std::to_string(cpu) + "]");
          !written) {
        return written;
      }
    }
    return {};
  }

  // ---- What is told -----------------------------------------------------------------------------------------------

  [[nodiscard]] bool isPerCpu() const { return isOneOf(kPerCpu, info_.type); }

  [[nodiscard]] std::string name() const { return parameters_.at("map").get<std::string>(); }

  [[nodiscard]] Failure refused(const std::string& what, int code) const {
    nlohmann::json fields;
    fields["message"] =
        "map '" + name() + "' cannot " + what + ": " + errnoName(code) + " (" + std::strerror(code) + ")";
    fields["map"] = name();
    fields["errno"] = code;
    fields["errnoName"] = errnoName(code);
    return {"io.btfd.MapFailed", std::move(fields)};
  }

  [[nodiscard]] Failure failureAt(const Bytes& key, const std::string& what, int code) const {
    if (code != ENOENT) {
      return refused(what, code);
    }
    nlohmann::json fields;
    fields["message"] = "map '" + name() + "' has no entry " +
                        showable(readKey(key).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 256);
    fields["map"] = name();
    return {"io.btfd.NoSuchKey", std::move(fields)};
  }

  const nlohmann::json& request_;
  const nlohmann::json& parameters_;
  BorrowedFd map_;
  RequestDescriptors& descriptors_;
  object::LibbpfLog log_;
  std::optional<object::KeptImage> kept_;
  ObjectHandle object_;
  const struct ::btf* btf_ = nullptr;
  struct bpf_map_info info_{};
  std::uint32_t keyType_ = 0;
  std::uint32_t valueType_ = 0;
  std::size_t cpus_ = 1;
  std::size_t stride_ = 0;
};

} // namespace

Outcome<JobReply> runMapJob(const nlohmann::json& request, RequestDescriptors& descriptors) {
  return MapJob(request, descriptors).run();
}

} // namespace btfd::loader
