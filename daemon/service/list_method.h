#pragma once

#include "registry/registry.h"
#include "varlink/call.h"

#include <memory>

namespace btfd::service {

/// io.btfd.List: in one answer what fits one, or, with `more`, an object an answer. For the io_context's thread.
class ListMethod {
 public:
  /// `registry` must outlive it.
  explicit ListMethod(const registry::Registry& registry) : registry_(registry) {}

  void call(varlink::Call call);

 private:
  struct Filter;
  struct Stream;

  void answerAll(varlink::Call& call, const Filter& filter) const;
  void goOn(const std::shared_ptr<Stream>& stream);

  const registry::Registry& registry_;
};

} // namespace btfd::service
