#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace btfd::btfctl {

// Replies of io.btfd as text for people. `width` is the terminal's, 0 for no limit; see Table.

/// A table of `objects`, one a row.
std::string objectsView(const nlohmann::json& objects, std::size_t width);

/// All of one object: what it is, then tables of its programs, maps and links.
std::string objectView(const nlohmann::json& object, std::size_t width);

/// A table of `links`.
std::string linksView(const nlohmann::json& links, std::size_t width);

/// A table of `relocations`, of which there are `leftOut` more, and why some of them were not resolved.
std::string relocationsView(const nlohmann::json& relocations, std::int64_t leftOut, std::size_t width);

/// What DescribeKernel answered.
/// Instructions by io.btfd.Disassemble's reply, each source line in front of its first; with their bytes if `code`.
std::string disassemblyView(const nlohmann::json& reply, bool code);

/// How often programs ran in an interval, by two replies to Describe.
std::string statisticsView(const nlohmann::json& document, std::size_t width);

std::string kernelView(const nlohmann::json& reply, std::size_t width);

/// An event as one line without a line break.
std::string eventView(const nlohmann::json& event);

/// The verifier's logs of Load's reply, each under its program's name.
std::string verifierLogsView(const nlohmann::json& logs);

} // namespace btfd::btfctl
