#include "disassemble_job.h"

#include "base/text.h"
#include "object/checked_image.h"
#include "object/client_bytes.h"
#include "object/disassembly.h"
#include "object/kept_image.h"
#include "object/line_table.h"
#include "relocations.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <elf.h>

namespace btfd::loader {

namespace {

/// What the instructions of an answer may take as text, in bytes, and how long a line of source may be in it.
constexpr std::size_t kMostText = std::size_t{2} << 20;
constexpr std::size_t kLongestLine = 200;

std::string helperName(std::int32_t helper) {
// The list is a macro: FN(map_lookup_elem), in the order of the numbers.
#define BTFD_HELPER_NAME(name) std::string_view(#name)
  constexpr std::array kNames{__BPF_FUNC_MAPPER(BTFD_HELPER_NAME)};
#undef BTFD_HELPER_NAME
  return helper > 0 && static_cast<std::size_t>(helper) < kNames.size()
             ? "bpf_" + std::string(kNames.at(static_cast<std::size_t>(helper)))
             : "";
}

/// What is known of the object that the function is of.
class Listing {
 public:
  Listing(const object::CheckedImage& image, std::vector<object::Function> functions,
          std::vector<object::Symbol> symbols, const object::Function& function)
      : image_(image), functions_(std::move(functions)), symbols_(std::move(symbols)), function_(function),
        section_(image.sections()[function.section - 1]), lines_(object::LineTable::read(image)) {
    for (const object::Reference& reference : image.references(section_)) {
      if (reference.symbol < symbols_.size()) {
        references_[reference.offset] = &symbols_[reference.symbol];
      }
    }
    const auto content = section_.content.subspan(function.offset, function.size);
    code_.resize(content.size() / sizeof(struct bpf_insn));
    std::memcpy(code_.data(), content.data(), code_.size() * sizeof(struct bpf_insn));
  }

  [[nodiscard]] std::size_t size() const { return code_.size(); }

  [[nodiscard]] std::size_t slots(std::size_t at) const { return object::slotsOf(code_[at]); }

  [[nodiscard]] nlohmann::json instruction(std::size_t at) const {
    nlohmann::json json;
    json["number"] = at;
    const std::size_t count = std::min(slots(at), code_.size() - at);
    json["code"] = toHex(std::as_bytes(std::span(code_).subspan(at, count)));
    const object::InstructionNames names{
        .helper = helperName, .function = {}, .reference = [this](std::size_t place) { return referenceAt(place); }};
    json["text"] = calledFunction(at).value_or(object::disassemble(code_, at, names));
    if (const auto* line = lines_.find(section_.name, offsetOf(at))) {
      json["file"] = showable(line->file, kLongestLine);
      json["line"] = line->line;
      json["source"] = showable(line->text, kLongestLine);
    }
    return json;
  }

 private:
  [[nodiscard]] std::uint64_t offsetOf(std::size_t at) const { return function_.offset + at * sizeof(struct bpf_insn); }

  [[nodiscard]] const object::Symbol* symbolAt(std::size_t at) const {
    const auto found = references_.find(offsetOf(at));
    return found == references_.end() ? nullptr : found->second;
  }

  /// What the instruction refers to: a symbol, or bytes of a section.
  [[nodiscard]] std::string referenceAt(std::size_t at) const {
    const object::Symbol* symbol = symbolAt(at);
    if (symbol == nullptr) {
      return {};
    }
    if (symbol->type != STT_SECTION) {
      return shown(symbol->name);
    }
    const std::size_t number = symbol->section;
    const std::string name =
        number >= 1 && number <= image_.sections().size() ? shown(image_.sections()[number - 1].name) : "?";
    return name + "+" + std::to_string(code_[at].imm);
  }

  /// The text of a call of another function of the object: where the file says what it is, which the linker puts into
  /// the instruction only when the program is loaded.
  [[nodiscard]] std::optional<std::string> calledFunction(std::size_t at) const {
    const struct bpf_insn& call = code_[at];
    if (call.code != (BPF_JMP | BPF_CALL)) {
      return std::nullopt;
    }
    const object::Symbol* symbol = symbolAt(at);
    if (symbol != nullptr && symbol->type != STT_SECTION) {
      return "call " + shown(symbol->name);
    }
    if (call.src_reg != BPF_PSEUDO_CALL) {
      return std::nullopt;
    }
    // Within a section, imm counts instructions: from the section's beginning, if a relocation says so, or from here.
    const std::int64_t from = symbol != nullptr ? 0 : static_cast<std::int64_t>(offsetOf(at));
    const std::int64_t target = from + (std::int64_t{call.imm} + 1) * static_cast<std::int64_t>(sizeof(call));
    const std::size_t section = symbol != nullptr ? symbol->section : function_.section;
    const auto found = std::ranges::find_if(functions_, [&](const object::Function& function) {
      return function.section == section && static_cast<std::int64_t>(function.offset) == target;
    });
    return found == functions_.end() ? std::nullopt : std::optional("call " + shown(found->name));
  }

  const object::CheckedImage& image_;
  std::vector<object::Function> functions_;
  std::vector<object::Symbol> symbols_;
  object::Function function_;
  const object::Section& section_;
  object::LineTable lines_;
  std::map<std::uint64_t, const object::Symbol*> references_;
  std::vector<struct bpf_insn> code_;
};

/// The function called `name`, or io.btfd.NoSuchName.
Outcome<object::Function> findFunction(const object::CheckedImage& image,
                                       const std::vector<object::Function>& functions, const std::string& name) {
  const auto found = std::ranges::find(functions, name, &object::Function::name);
  if (found == functions.end()) {
    std::vector<std::string> known;
    std::ranges::transform(functions, std::back_inserter(known),
                           [](const object::Function& function) { return std::string(function.name); });
    return noSuchName("program", name, known);
  }
  const bool isSection = found->section >= 1 && found->section <= image.sections().size();
  const std::size_t room = isSection ? image.sections()[found->section - 1].content.size() : 0;
  if (found->offset > room || found->size > room - found->offset) {
    return invalidObject("function '" + name + "' lies outside of its section");
  }
  return *found;
}

/// What the CO-RE relocations of function `name` came to, in words, by instruction.
std::map<std::size_t, std::string> relocationsOf(BorrowedFd image, const std::string& name) {
  std::map<std::size_t, std::string> texts;
  auto kept = object::KeptImage::open(image);
  if (!kept) {
    return texts;
  }
  const auto relocations = Relocations::ofKept(*kept);
  if (!relocations) {
    return texts;
  }
  core::NearNames near = relocations->nearNames();
  for (const core::Relocation& relocation : relocations->all()) {
    const nlohmann::json record = relocations->record(relocation, near);
    if (record.value("program", "") == name) {
      const auto value = record.find("value");
      texts[record.value("instruction", std::size_t{0})] =
          record.value("kind", "") + " " + record.value("access", "") + ": " +
          (value == record.end() ? record.value("outcome", "") : value->dump());
    }
  }
  return texts;
}

} // namespace

Outcome<JobReply> runDisassembleJob(const nlohmann::json& request, const RequestDescriptors& descriptors) {
  const BorrowedFd file = descriptors.held(request.at("image"));
  const auto name = request.at("parameters").at("program").get<std::string>();
  // An ELF file with something behind it, if it is relocated.
  const auto bytes = object::ClientBytes::read(file, std::numeric_limits<std::uint64_t>::max());
  if (!bytes) {
    return invalidObject(bytes.error().message);
  }
  const auto image = object::CheckedImage::check(*bytes);
  if (!image) {
    return invalidObject(image.error().message);
  }
  auto functions = image->functions();
  auto symbols = image->symbols();
  if (!functions || !symbols) {
    return invalidObject(functions ? symbols.error().message : functions.error().message);
  }
  const auto function = findFunction(*image, *functions, name);
  if (!function) {
    return std::unexpected(function.error());
  }
  const auto relocations =
      request.value("relocated", false) ? relocationsOf(file, name) : std::map<std::size_t, std::string>{};
  const Listing listing(*image, std::move(*functions), std::move(*symbols), *function);
  JobReply reply;
  auto& instructions = reply.body["instructions"] = nlohmann::json::array();
  std::size_t text = 0;
  std::size_t at = 0;
  while (at < listing.size() && text < kMostText) {
    nlohmann::json instruction = listing.instruction(at);
    if (const auto found = relocations.find(at); found != relocations.end()) {
      instruction["relocation"] = showable(found->second, kLongestLine);
    }
    text += instruction.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size();
    instructions.push_back(std::move(instruction));
    at += listing.slots(at);
  }
  reply.body["instructionsLeftOut"] = at < listing.size() ? listing.size() - at : 0;
  return reply;
}

} // namespace btfd::loader
