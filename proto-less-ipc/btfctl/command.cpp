#include "btfctl/command.h"

#include "btfctl/fields.h"

namespace btfd::btfctl {

void Context::print(const nlohmann::json& document, const std::string& text) const {
  out << (json ? dumped(document) + "\n" : text) << std::flush;
}

void Context::note(const std::string& text) const {
  if (!json) {
    errors << "btfctl: " << text << "\n" << std::flush;
  }
}

Command::Command(CLI::App& parent, const std::string& name, const std::string& description, const std::string& examples)
    : app_(parent.add_subcommand(name, description)) {
  app_->footer("Examples:\n" + examples +
               "\n--socket PATH, --json and --verbose may stand here, too: see btfctl --help.");
}

CLI::Option* Command::argument(const std::string& name, std::string& value, const std::string& description) {
  return optionalArgument(name, value, description)->required();
}

CLI::Option* Command::optionalArgument(const std::string& name, std::string& value, const std::string& description) {
  return app_->add_option(name, value, description)->type_name("");
}

CLI::Option* Command::option(const std::string& name, const std::string& form, std::string& value,
                             const std::string& description) {
  return app_->add_option(name, value, description)->type_name(form);
}

CLI::Option* Command::repeatable(const std::string& name, const std::string& form, std::vector<std::string>& values,
                                 const std::string& description) {
  return app_->add_option(name, values, description)
      ->type_name(form)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* Command::flag(const std::string& name, bool& value, const std::string& description) {
  return app_->add_flag(name, value, description);
}

} // namespace btfd::btfctl
