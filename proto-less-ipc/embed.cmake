# Writes C++ source OUTPUT, which holds the text of the interface files INPUTS (separated by "|") and defines interfaceText.
# Run as: cmake -D OUTPUT=... -D INPUTS=... -P embed.cmake
string(REPLACE "|" ";" inputs "${INPUTS}")
set(entries "")
foreach(input IN LISTS inputs)
  get_filename_component(name "${input}" NAME_WLE)
  file(READ "${input}" text)
  string(APPEND entries "    {\"${name}\", R\"varlink(${text})varlink\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Generated from the *.varlink files: change those.
#include \"varlink/embedded.h\"

#include <utility>

namespace btfd::varlink {

std::string_view interfaceText(std::string_view interface) {
  static constexpr std::pair<std::string_view, std::string_view> kTexts[] = {
${entries}  };
  for (const auto& [name, text] : kTexts) {
    if (name == interface) {
      return text;
    }
  }
  return {};
}

} // namespace btfd::varlink
")
