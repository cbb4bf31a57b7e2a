#include "daemon_verdicts.h"
#include "libbpf_verdicts.h"
#include "varlink/client.h"
#include "verdict.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace btfd::differential {

namespace {

/// For scripts: the comparison could not be made, as opposed to: it found mismatches.
constexpr int kExitTrouble = 2;
constexpr int kNameWidth = 44;
constexpr int kVerdictWidth = 22;

class Comparison {
 public:
  /// Without a client libbpf is compared with itself: what differs then depends on the machine's state, not on a
  /// loader.
  explicit Comparison(std::optional<varlink::Client> client) : client_(std::move(client)) {}

  Result<void> object(const std::filesystem::path& path) {
    const ObjectVerdicts expected = libbpfVerdicts(path);
    auto actual = second(path, expected);
    if (!actual) {
      return std::unexpected(std::move(actual.error()).within(path.string()));
    }
    const std::vector<Mismatch> found = compare(expected, *actual);
    writeRow(path, expected, *actual, found.size());
    for (const Mismatch& mismatch : found) {
      mismatches_.push_back(path.string() + ", " +
                            (mismatch.program.empty() ? "whole" : "program " + mismatch.program) + ": " +
                            mismatch.text);
    }
    programs_ += expected.alone.size();
    objects_++;
    return {};
  }

  /// Prints what was found; whether nothing was.
  bool finish() const {
    std::cout << '\n'
              << objects_ << " objects, " << programs_ << " programs, " << mismatches_.size() << " mismatches\n";
    for (const std::string& mismatch : mismatches_) {
      std::cout << "  " << mismatch << '\n';
    }
    return mismatches_.empty();
  }

 private:
  Result<ObjectVerdicts> second(const std::filesystem::path& path, const ObjectVerdicts& expected) {
    if (!client_) {
      return libbpfVerdicts(path);
    }
    std::vector<std::string> programs;
    for (const auto& [name, verdict] : expected.alone) {
      programs.push_back(name);
    }
    return daemonVerdicts(*client_, path, programs);
  }

  static void writeRow(const std::filesystem::path& path, const ObjectVerdicts& expected, const ObjectVerdicts& actual,
                       std::size_t mismatches) {
    const auto loaded = std::ranges::count_if(
        expected.alone, [](const auto& entry) { return entry.second.outcome == Outcome::loaded; });
    const std::string name = (path.parent_path().filename() / path.filename()).string();
    std::cout << std::left << std::setw(kNameWidth) << name << ' ' << std::setw(kVerdictWidth)
              << describe(expected.whole) << ' ' << std::setw(kVerdictWidth) << describe(actual.whole) << ' ' << loaded
              << " of " << expected.alone.size() << " programs load" << (mismatches == 0 ? "" : "  MISMATCH") << '\n';
  }

  std::optional<varlink::Client> client_;
  std::vector<std::string> mismatches_;
  std::size_t objects_ = 0;
  std::size_t programs_ = 0;
};

int run(const std::string& socket, const std::vector<std::string>& objects) {
  std::optional<varlink::Client> client;
  if (!socket.empty()) {
    auto connected = varlink::Client::connect(socket);
    if (!connected) {
      std::cerr << "btfd_verdicts: " << connected.error().message << '\n';
      return kExitTrouble;
    }
    client = std::move(*connected);
  }
  std::cout << std::left << std::setw(kNameWidth) << "object" << ' ' << std::setw(kVerdictWidth) << "libbpf" << ' '
            << std::setw(kVerdictWidth) << (socket.empty() ? "libbpf again" : "btfd") << " alone, by libbpf\n";
  Comparison comparison(std::move(client));
  for (const std::string& object : objects) {
    if (auto done = comparison.object(object); !done) {
      std::cerr << "btfd_verdicts: " << done.error().message << '\n';
      return kExitTrouble;
    }
  }
  return comparison.finish() ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

} // namespace btfd::differential

int main(int argc, char** argv) {
  std::string socket;
  std::vector<std::string> objects;
  bool itself = false;
  CLI::App app(
      "Loads BPF objects with libbpf and through a daemon, whole and program by program, and compares verdicts and "
      "tags. Exit status: 0 equal, 1 mismatches, 2 the comparison could not be made.");
  auto* which = app.add_option_group("which");
  which->add_option("--socket", socket, "The daemon's socket");
  which->add_flag("--libbpf-itself", itself, "Compare libbpf with itself: is it deterministic on this machine?");
  which->require_option(1);
  app.add_option("objects", objects, "BPF object files")->required()->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);
  return btfd::differential::run(socket, objects);
}
