#include "varlink/service.h"

#include "varlink/call_state.h"
#include "varlink/embedded.h"
#include "varlink/errors.h"
#include "varlink/validate.h"

#include <utility>

namespace btfd::varlink {

using nlohmann::json;

namespace {

constexpr std::string_view kServiceInterface = "org.varlink.service";

std::string qualified(std::string_view interface, std::string_view member) {
  return std::string(interface).append(".").append(member);
}

} // namespace

Service::Service(ServiceInfo info) : info_(std::move(info)) {
  addInterface(interfaceText(kServiceInterface)).value();
  add(kServiceInterface, "GetInfo", [this](Call call) { getInfo(std::move(call)); });
  add(kServiceInterface, "GetInterfaceDescription", [this](Call call) { getInterfaceDescription(std::move(call)); });
}

Result<void> Service::addInterface(std::string_view text) {
  auto interface = parseInterface(text);
  if (!interface) {
    return std::unexpected(std::move(interface.error()).within("Varlink interface"));
  }
  std::string name = interface->name;
  if (!interfaces_.try_emplace(name, std::move(*interface)).second) {
    return fail("Varlink interface " + name + " is there already");
  }
  return {};
}

void Service::add(std::string_view interface, std::string_view method, Handler handler) {
  handlers_.insert_or_assign(qualified(interface, method), std::move(handler));
}

Result<void> Service::verify() const {
  std::size_t methods = 0;
  for (const auto& [name, interface] : interfaces_) {
    for (const auto& method : interface.methods) {
      if (!handlers_.contains(qualified(name, method.name))) {
        return fail("method " + qualified(name, method.name) + " has no handler");
      }
      ++methods;
    }
  }
  if (methods == handlers_.size()) {
    return {};
  }
  for (const auto& [name, handler] : handlers_) {
    const std::size_t dot = name.rfind('.');
    const auto interface = interfaces_.find(name.substr(0, dot));
    if (interface == interfaces_.end() || interface->second.findMethod(name.substr(dot + 1)) == nullptr) {
      return fail("handler for " + name + ", which no interface defines");
    }
  }
  return {};
}

void Service::dispatch(Call call) const {
  const std::string& name = call.method();
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) {
    return call.error(errors::kMethodNotFound, json{{"method", name}});
  }
  const std::string_view interfaceName = std::string_view(name).substr(0, dot);
  const auto interface = interfaces_.find(interfaceName);
  if (interface == interfaces_.end()) {
    return call.error(errors::kInterfaceNotFound, json{{"interface", interfaceName}});
  }
  const MethodDefinition* method = interface->second.findMethod(std::string_view(name).substr(dot + 1));
  if (method == nullptr) {
    return call.error(errors::kMethodNotFound, json{{"method", name}});
  }
  const auto handler = handlers_.find(name);
  if (handler == handlers_.end() || call.state_->message.upgrade) {
    return call.error(errors::kMethodNotImplemented, json{{"method", name}});
  }
  if (acceptable(call, interface->second, *method)) {
    call.state_->interface = &interface->second;
    call.state_->definition = method;
    handler->second(std::move(call));
  }
}

/// Whether `call` may go to the handler of `method`. If not, it has been answered.
bool Service::acceptable(Call& call, const Interface& interface, const MethodDefinition& method) const {
  if (call.state_->descriptorError != 0) {
    call.systemError(call.state_->descriptorError);
    return false;
  }
  if (call.descriptorCount() > 0 && !method.takesDescriptors) {
    call.invalidParameter("fileDescriptors", "are not taken by this method");
    return false;
  }
  if (method.requiresMore && !call.wantsMore()) {
    call.error(errors::kExpectedMore);
    return false;
  }
  if (auto valid = validate(interface, method.input, call.state_->message.parameters); !valid) {
    call.invalidParameter(valid.error().path, valid.error().reason);
    return false;
  }
  return true;
}

void Service::getInfo(Call call) const {
  json interfaces = json::array();
  for (const auto& [name, interface] : interfaces_) {
    interfaces.push_back(name);
  }
  call.reply(json{{"vendor", info_.vendor},
                  {"product", info_.product},
                  {"version", info_.version},
                  {"url", info_.url},
                  {"interfaces", std::move(interfaces)}});
}

void Service::getInterfaceDescription(Call call) const {
  const auto& name = call.parameters().at("interface").get_ref<const std::string&>();
  const auto interface = interfaces_.find(name);
  if (interface == interfaces_.end()) {
    return call.error(errors::kInterfaceNotFound, json{{"interface", name}});
  }
  call.reply(json{{"description", interface->second.text}});
}

} // namespace btfd::varlink
