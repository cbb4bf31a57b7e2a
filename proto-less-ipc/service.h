#pragma once

#include "base/error.h"
#include "varlink/call.h"
#include "varlink/interface.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace btfd::varlink {

/// What org.varlink.service.GetInfo tells about a service.
struct ServiceInfo {
  std::string vendor;
  std::string product;
  std::string version;
  std::string url;
};

/// A set of interfaces and the handlers of their methods. org.varlink.service is among them from the start.
class Service {
 public:
  using Handler = std::function<void(Call)>;

  explicit Service(ServiceInfo info);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Adds the interface that `text` defines. An error if it does not parse or if it is there already.
  Result<void> addInterface(std::string_view text);

  /// Lets `handler` answer `method` of `interface`; what is wrong with it, `verify` will tell. It is called with
  /// parameters that fit the IDL, and with `wantsMore` where the method requires it.
  void add(std::string_view interface, std::string_view method, Handler handler);

  /// Whether each method of each interface has a handler and each handler a method: to be checked at start, so that
  /// code and IDL cannot drift apart.
  [[nodiscard]] Result<void> verify() const;

  /// Checks a call and gives it to its handler, or answers with the error that it deserves.
  void dispatch(Call call) const;

 private:
  void getInfo(Call call) const;
  void getInterfaceDescription(Call call) const;
  bool acceptable(Call& call, const Interface& interface, const MethodDefinition& method) const;

  ServiceInfo info_;
  std::map<std::string, Interface, std::less<>> interfaces_;
  std::map<std::string, Handler, std::less<>> handlers_; ///< By "interface.Method".
};

} // namespace btfd::varlink
