#include "btfctl/typed_names.h"

#include <gmock/gmock.h>

namespace btfd::btfctl {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(TypedNames, FieldsOfALoadAreItsOptions) {
  EXPECT_EQ(typedFor("name"), "--name");
  EXPECT_EQ(typedFor("deadlineMs"), "--deadline");
  EXPECT_EQ(typedFor("verifierLogLevel"), "--log-level");
  EXPECT_EQ(typedFor("objectFileDescriptor"), "the object file");
  EXPECT_EQ(typedFor("labels.team"), "--label team");
  EXPECT_EQ(typedFor("variables.limit"), "--set limit");
  EXPECT_EQ(typedFor("maps.events.maxEntries"), "--max-entries events");
  EXPECT_EQ(typedFor("maps.events.reuseFileDescriptor"), "--reuse events");
  EXPECT_EQ(typedFor("programs.drop.attach"), "--attach drop");
  EXPECT_EQ(typedFor("programs.drop.type"), "--program drop=type");
  EXPECT_EQ(typedFor("maps..data.x.valueSize"), "--map .data.x=valueSize");
  EXPECT_EQ(typedFor("kconfig.CONFIG_HZ"), "--kconfig CONFIG_HZ");
}

TEST(TypedNames, NamesOfMapsMayHaveDots) {
  EXPECT_EQ(typedFor("maps..rodata.str1.1.maxEntries"), "--max-entries .rodata.str1.1");
}

TEST(TypedNames, FieldsOfATargetAreItsKeys) {
  EXPECT_EQ(typedFor("target.interface"), "target key 'interface'");
  EXPECT_EQ(typedFor("programs.drop.attach[0].interface"), "--attach drop, target key 'interface'");
  EXPECT_EQ(typedFor("programs.drop.attach[12]"), "--attach drop");
  for (const std::string field : {"perfEvent", "perfEvent.event", "perfEvent.type", "perfEvent.frequency"}) {
    EXPECT_EQ(typedFor("target." + field), "target key 'perf'") << field;
  }
  EXPECT_EQ(typedFor("target.perfEvent.cpu"), "target key 'cpu'");
  EXPECT_EQ(typedFor("target.perfEvent.pid"), "target key 'pid'");
  EXPECT_THAT(typedFor("target.targetFileDescriptor"), Not(HasSubstr("FileDescriptor")));
}

TEST(TypedNames, ReasonsSpeakOfKeys) {
  EXPECT_EQ(withTypedKeys("it takes perfEvent, cookie"), "it takes perf, cookie");
  EXPECT_EQ(withTypedKeys("it takes cgroup, targetFileDescriptor"), "it takes cgroup");
  EXPECT_THAT(withTypedKeys("it takes targetFileDescriptor"), Not(HasSubstr("FileDescriptor")));
}

TEST(TypedNames, WhatNoOptionStandsForIsQuoted) {
  for (const std::string path : {"maps", "maps.", "lifetime", "", "target.", "maps.maxEntries"}) {
    EXPECT_EQ(typedFor(path), "'" + path + "'");
  }
}

} // namespace
} // namespace btfd::btfctl
