#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <vector>

/// The struct's defaults, the reader's keys and limits, the example and the schema say the same.
namespace btfd::config {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

std::string textOf(const char* name) {
  std::ifstream file(std::string(BTFD_CONFIG_SOURCES "/") + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

const json& schema() {
  static const json parsed = json::parse(textOf("btfd.schema.json"));
  return parsed;
}

const json& example() {
  static const json parsed = json::parse(textOf("btfd.json"), nullptr, true, true);
  return parsed;
}

/// "section.name" -> its schema.
std::map<std::string, json> schemaProperties() {
  std::map<std::string, json> all;
  for (const auto& [name, property] : schema().at("properties").items()) {
    if (property.at("type") != "object") {
      all[name] = property;
      continue;
    }
    for (const auto& [inner, innerProperty] : property.at("properties").items()) {
      all[name + "." + inner] = innerProperty;
    }
  }
  return all;
}

std::map<std::string, json> exampleValues() {
  std::map<std::string, json> all;
  for (const auto& [name, value] : example().items()) {
    if (!value.is_object()) {
      all[name] = value;
      continue;
    }
    for (const auto& [inner, innerValue] : value.items()) {
      all[name + "." + inner] = innerValue;
    }
  }
  return all;
}

std::vector<std::string> namesOf(const std::map<std::string, json>& all) {
  std::vector<std::string> names;
  std::ranges::transform(all, std::back_inserter(names), [](const auto& each) { return each.first; });
  return names;
}

json::json_pointer pointer(std::string key) {
  std::ranges::replace(key, '.', '/');
  return json::json_pointer("/" + key);
}

/// Whether the reader takes `value` for `key`, when the limits that depend on it leave it room.
bool accepts(const std::string& key, const json& value) {
  json document = json::object();
  if (value.is_number()) {
    document = json{{"limits",
                     {{"deadlineMs", 1},
                      {"maximumDeadlineMs", key == "limits.deadlineMs" ? 86'400'000 : 1},
                      {"connections", key == "limits.connectionsPerUser" ? 65536 : 1},
                      {"connectionsPerUser", 1},
                      {"verifierLogBytes", 65536},
                      {"messageBytes", key == "limits.verifierLogBytes" ? 16'777'216 : 2'097'152}}}};
  }
  document[pointer(key)] = value;
  return parse(document.dump(), "b.json").has_value();
}

TEST(Agreement, ExampleShowsEveryKeyThatTheReaderKnows) {
  EXPECT_THAT(namesOf(exampleValues()), UnorderedElementsAreArray(knownKeys()));
}

TEST(Agreement, ExampleHasTheDefaultsOfTheStruct) {
  const auto config = parse(textOf("btfd.json"), "btfd.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(*config, Config{});
}

TEST(Agreement, ExampleExplainsEveryKey) {
  const std::string text = textOf("btfd.json");
  for (const std::string& key : knownKeys()) {
    const std::string name = '"' + key.substr(key.find('.') + 1) + '"';
    EXPECT_TRUE(std::regex_search(text, std::regex("// [^\n]*\n *" + name + ": ")))
        << key << " has no comment above it";
  }
}

TEST(Agreement, SchemaHasTheKeysThatTheReaderKnows) {
  EXPECT_THAT(namesOf(schemaProperties()), UnorderedElementsAreArray(knownKeys()));
}

TEST(Agreement, SchemaHasTheDefaultsOfTheExample) {
  const auto values = exampleValues();
  for (const auto& [key, property] : schemaProperties()) {
    ASSERT_TRUE(values.contains(key)) << key;
    EXPECT_EQ(property.at("default"), values.at(key)) << key;
  }
}

TEST(Agreement, SchemaRefusesUnknownKeysAsTheReaderDoes) {
  EXPECT_EQ(schema().at("additionalProperties"), false);
  for (const auto& [name, property] : schema().at("properties").items()) {
    if (property.at("type") == "object") {
      EXPECT_EQ(property.at("additionalProperties"), false) << name;
    }
  }
}

TEST(Agreement, SchemaHasTheReadersLimits) {
  for (const auto& [key, property] : schemaProperties()) {
    if (property.at("type") != "integer") {
      continue;
    }
    const auto minimum = property.at("minimum").get<std::int64_t>();
    const auto maximum = property.at("maximum").get<std::int64_t>();
    EXPECT_TRUE(accepts(key, minimum)) << key << " " << minimum;
    EXPECT_FALSE(accepts(key, minimum - 1)) << key << " " << minimum - 1;
    EXPECT_TRUE(accepts(key, maximum)) << key << " " << maximum;
    EXPECT_FALSE(accepts(key, maximum + 1)) << key << " " << maximum + 1;
    EXPECT_THAT(textOf("btfd.json"), HasSubstr(std::to_string(maximum)))
        << "the example does not tell the limit of " << key;
  }
}

TEST(Agreement, SchemaHasTheReadersChoices) {
  for (const auto& [key, property] : schemaProperties()) {
    if (!property.contains("enum")) {
      continue;
    }
    for (const json& choice : property.at("enum")) {
      EXPECT_TRUE(accepts(key, choice)) << key << " " << choice;
    }
    // The reader lists its choices when it gets another.
    json document = json::object();
    document[pointer(key)] = "?";
    std::string list;
    for (const json& choice : property.at("enum")) {
      list += (list.empty() ? "" : ", ") + choice.dump();
    }
    const auto config = parse(document.dump(), "b.json");
    ASSERT_FALSE(config) << key;
    EXPECT_THAT(config.error().message, HasSubstr("must be one of " + list + ", not"));
  }
}

TEST(Agreement, SchemaPatternsSayWhatTheReaderDoes) {
  const std::vector<std::string> samples{"",
                                         "/",
                                         "/a/b",
                                         "a",
                                         "btfd",
                                         "0660",
                                         "660",
                                         "0777",
                                         "888",
                                         "1660",
                                         "-x",
                                         "x.y",
                                         "9ab",
                                         "a b",
                                         "a/b",
                                         "_x",
                                         "/a b",
                                         std::string(31, 'g'),
                                         std::string(32, 'g')};
  for (const auto& [key, property] : schemaProperties()) {
    if (!property.contains("pattern")) {
      continue;
    }
    const std::regex pattern(property.at("pattern").get<std::string>());
    for (const std::string& sample : samples) {
      EXPECT_EQ(accepts(key, sample), std::regex_search(sample, pattern)) << key << " \"" << sample << '"';
    }
    if (property.contains("maxLength")) {
      const auto longest = property.at("maxLength").get<std::size_t>();
      EXPECT_TRUE(accepts(key, "/" + std::string(longest - 1, 'x'))) << key;
      EXPECT_FALSE(accepts(key, "/" + std::string(longest, 'x'))) << key;
    }
  }
}

} // namespace
} // namespace btfd::config
