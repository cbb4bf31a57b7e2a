#pragma once

#include "btfctl/outcome.h"
#include "offline/relocated_object.h"

#include <string>
#include <vector>

namespace btfd::btfctl {

/// A line for each different one of `findings`, behind `heading`: many instructions may ask the same.
std::string findingLines(const std::string& heading, const std::vector<check::Finding>& findings);

/// The same for programs.
nlohmann::json toJson(const std::vector<check::Finding>& findings);

/// For people: what became of the relocations of `name` for `kernel`, and what a person has to know of the result.
std::string relocateView(const offline::RelocatedObject& object, const std::string& name, const std::string& kernel);

/// The same for programs.
nlohmann::json relocateDocument(const offline::RelocatedObject& object);

/// The failure of a command that could not relocate an object for `kernel`.
Failure relocationFailure(const offline::Refusal& refusal, const std::string& kernel);

} // namespace btfd::btfctl
