#pragma once

#include "base/tc_filter.h"
#include "base/unique_fd.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace btfd::registry {

using Labels = std::map<std::string, std::string, std::less<>>;

/// A loaded program.
struct Program {
  std::string name;
  std::string section;
  std::string type;
  /// Its expected attach type.
  std::string attachType;
  std::uint32_t kernelId = 0;
  std::string tag;
  /// What it was made for, if that is not what its section says.
  std::string madeFor;
  UniqueFd descriptor;
};

/// A map of a loaded object.
struct Map {
  std::string name;
  std::string type;
  std::uint32_t kernelId = 0;
  std::uint32_t keySize = 0;
  std::uint32_t valueSize = 0;
  std::uint32_t maxEntries = 0;
  UniqueFd descriptor;
};

/// A program attached to something.
struct Link {
  std::uint64_t id = 0;
  std::string program;
  std::string kind;
  std::string target;
  std::optional<std::uint32_t> kernelId;
  /// They keep it attached: one, or one for each CPU.
  std::vector<UniqueFd> descriptors;
  /// Whether the descriptors are sockets that the program has to be taken off, as closing them does not.
  bool detachBySocketOption = false;
  /// For BPF_PROG_DETACH: the attach type; the descriptors are the map and the program then.
  std::optional<std::uint32_t> programDetach = {};
  /// A filter of tc, which nothing keeps attached but that nobody removes it; and the network namespace that it is in,
  /// unless that is the daemon's own.
  std::optional<TcFilter> filter = {};
  UniqueFd networkNamespace = {};
  /// For usdt: the numbers of its specifications in the object's map of them.
  std::vector<std::uint32_t> usdtSpecs;
};

/// A loaded object with all that the daemon holds of it.
struct Object {
  std::uint64_t id = 0;
  std::string name;
  Labels labels;
  uid_t owner = 0;
  /// The connection whose end is the object's end.
  std::uint64_t connection = 0;
  std::string digest;
  std::chrono::system_clock::time_point loadedAt;
  std::chrono::microseconds loadDuration{};
  /// What is kept of the object file, for attaching later. Objects of the same file may share it.
  std::shared_ptr<const UniqueFd> image;
  /// Whether it had CO-RE relocations, so that `image` is more than the file (object/kept_image.h).
  bool relocated = false;
  /// Whether the load found the image kept, so that nothing was relocated.
  bool imageReused = false;
  /// What it was given of a kernel's configuration, as lines of one.
  std::string kconfig;
  /// Paths of maps that libbpf pinned.
  std::vector<std::string> pinned;
  std::vector<Program> programs;
  std::vector<Map> maps;
  std::vector<Link> links;
  /// What its description takes in an answer, in bytes.
  std::size_t describedBytes = 0;

  [[nodiscard]] const Program* findProgram(std::string_view programName) const;
  [[nodiscard]] const Map* findMap(std::string_view mapName) const;
};

/// What is loaded. For one thread.
class Registry {
 public:
  /// Gives an object and its links, or a link, the ids under which `add` and `addLink` then record them. Ids are not
  /// used again.
  void giveIds(Object& object);

  void giveId(Link& link) { link.id = ++lastLink_; }

  /// Records an object, and gives ids to one that has none. The reference is good until the object is taken out.
  Object& add(Object object);

  /// Records a link of `object`, and gives an id to one that has none.
  Link& addLink(Object& object, Link link);

  /// The object with this id, or null.
  [[nodiscard]] Object* find(std::uint64_t id);

  /// The object that has the link with this id, or null.
  [[nodiscard]] Object* findByLink(std::uint64_t linkId);

  /// Takes an object out; nothing if there is none.
  std::optional<Object> take(std::uint64_t id);

  /// Takes a link out of its object; nothing if there is none.
  std::optional<Link> takeLink(std::uint64_t linkId);

  /// Ids of the objects that end with this connection.
  [[nodiscard]] std::vector<std::uint64_t> idsOfConnection(std::uint64_t connection) const;

  /// All objects by id.
  [[nodiscard]] const std::map<std::uint64_t, Object>& objects() const { return objects_; }

  /// Whether any object of this owner holds a map that is pinned at `path`.
  [[nodiscard]] bool isPinnedByAny(std::string_view path) const;

 private:
  std::map<std::uint64_t, Object> objects_;
  std::map<std::uint64_t, std::uint64_t> objectOfLink_;
  std::uint64_t lastObject_ = 0;
  std::uint64_t lastLink_ = 0;
};

} // namespace btfd::registry
