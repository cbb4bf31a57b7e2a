#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

/// Names of the errors that every Varlink service may answer with. What they mean: org.varlink.service.varlink.
namespace btfd::varlink::errors {

inline constexpr std::string_view kInterfaceNotFound = "org.varlink.service.InterfaceNotFound";
inline constexpr std::string_view kMethodNotFound = "org.varlink.service.MethodNotFound";
inline constexpr std::string_view kMethodNotImplemented = "org.varlink.service.MethodNotImplemented";
inline constexpr std::string_view kInvalidParameter = "org.varlink.service.InvalidParameter";
inline constexpr std::string_view kPermissionDenied = "org.varlink.service.PermissionDenied";
inline constexpr std::string_view kExpectedMore = "org.varlink.service.ExpectedMore";

/// How systemd's services and tools carry an errno value.
inline constexpr std::string_view kSystem = "io.systemd.System";

/// The fields of `kSystem` for errno value `code`.
nlohmann::json systemFields(int code);

} // namespace btfd::varlink::errors
