#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

struct bpf_link;

/// What libbpf does for one USDT attachment, as the seam (seam.h) sees it. libbpf keeps that to itself:
///
///   bpf_program__attach_uprobe_opts   makes a link for each place of the probe,
///   bpf_program__attach_uprobe_multi  or one for all; the descriptors of the bundle are in these
///   bpf_map_update_elem               writes what the probe's arguments are into the object's map of specifications,
///                                     under numbers that libbpf hands out from 0 on for each object that it opens
///
/// An object that was loaded by an earlier job is opened again for each attachment, so those numbers would be given
/// out again; here they are replaced by numbers that are free.
namespace btfd::loader {

/// Watches libbpf's calls of the above. At most one at a time.
class UsdtWatch {
 public:
  struct Maps {
    /// The descriptors of __bpf_usdt_specs and __bpf_usdt_ip_to_spec_id.
    int specs = -1;
    int ipToSpec = -1;
  };

  /// `free`: the numbers for libbpf's 0, 1 and so on.
  UsdtWatch(Maps maps, std::vector<std::uint32_t> free);
  ~UsdtWatch();
  UsdtWatch(const UsdtWatch&) = delete;
  UsdtWatch& operator=(const UsdtWatch&) = delete;
  UsdtWatch(UsdtWatch&&) = delete;
  UsdtWatch& operator=(UsdtWatch&&) = delete;

  /// The links that were made, which are the caller's once the bundle has been disconnected.
  [[nodiscard]] const std::vector<struct bpf_link*>& links() const { return links_; }

  /// The numbers that were used.
  [[nodiscard]] const std::vector<std::uint32_t>& specs() const { return specs_; }

  // ---- For the wrappers --------------------------------------------------------------------------------------------

  [[nodiscard]] const Maps& maps() const { return maps_; }

  /// The number that stands for libbpf's; nothing if there are no more.
  [[nodiscard]] std::optional<std::uint32_t> translate(std::uint64_t number) const;

  void noteLink(struct bpf_link* link);

  void noteSpec(std::uint32_t number) { specs_.push_back(number); }

  void notePlaceInMap() { placesInMap_ = true; }

  /// Whether the kernel has no cookies for probes, so that libbpf finds specifications by address.
  [[nodiscard]] bool placesInMap() const { return placesInMap_; }

 private:
  Maps maps_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> specs_;
  std::vector<struct bpf_link*> links_;
  bool placesInMap_ = false;
};

} // namespace btfd::loader
