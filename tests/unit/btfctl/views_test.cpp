#include "btfctl/text.h"
#include "btfctl/views.h"

#include <gmock/gmock.h>

namespace btfd::btfctl {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(Views, RepliesOfAnotherVersionAreShownAsFarAsTheyGo) {
  const json strange{{"id", "seven"}, {"programs", 5}, {"labels", {1, 2}}, {"links", {{{"id", nullptr}}, "text"}}};
  for (const json& value : {json(), json::object(), json(5), json("text"), strange, json::array({strange, 5})}) {
    EXPECT_NO_THROW({
      objectsView(value, 80);
      objectView(value, 80);
      linksView(value, 80);
      kernelView(value, 80);
      eventView(value);
      verifierLogsView(value);
    }) << value;
  }
}

TEST(Views, SectionsWithoutEntriesAreLeftOut) {
  const std::string text = objectView({{"id", 7}, {"name", "n"}, {"maps", {{{"name", "m"}}}}}, 0);
  EXPECT_THAT(text, HasSubstr("\nMaps\n"));
  EXPECT_THAT(text, Not(HasSubstr("Links")));
  EXPECT_THAT(text, Not(HasSubstr("labels")));
}

TEST(Views, LabelsAreListedAsTheyAreTyped) {
  EXPECT_THAT(objectsView({{{"id", 1}, {"labels", {{"a", "b"}, {"c", "d\x1b"}}}}}, 0), HasSubstr("a=b,c=d\\x1b\n"));
}

TEST(Views, ModulesThatWereLeftOutSayWhy) {
  const json reply{{"release", "6.18"},
                   {"spec", {{"mapped", false}, {"modules", {{{"name", "odd"}, {"error", "corrupt"}}}}}}};
  EXPECT_THAT(kernelView(reply, 0), HasSubstr("corrupt\n"));
  EXPECT_THAT(kernelView(reply, 0), HasSubstr("(a copy)"));
}

TEST(Views, AnEventIsALineWithWhoAndWhatAndNothingTwice) {
  const std::string time = localTime(1'700'000'000'000'042, true) + "  ";
  json event{{"kind", "attached"}, {"atUSec", 1'700'000'000'000'042}, {"objectId", 7}, {"objectName", "x"}, {"uid", 0}};
  event["message"] = "attached program 'p' of object 7 'x' to xdp interface lo";
  EXPECT_EQ(eventView(event), time + "root (0): attached program 'p' of object 7 'x' to xdp interface lo");
  event["message"] = "two\nlines";
  EXPECT_EQ(eventView(event), time + "root (0): two\\x0alines");
  event.erase("uid");
  EXPECT_EQ(eventView(event), time + "two\\x0alines");
}

TEST(Views, AnEventThatSaysNothingIsShownByItsKind) {
  EXPECT_THAT(eventView({{"kind", "new"}, {"atUSec", 1}, {"uid", 0}}), EndsWith("  root (0): new"));
}

} // namespace
} // namespace btfd::btfctl
