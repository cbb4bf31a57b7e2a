#include "test_support.h"
#include "test_support/send_descriptors.h"
#include "varlink/frame_reader.h"

#include <algorithm>
#include <cerrno>
#include <random>
#include <span>

#include <poll.h>
#include <sys/resource.h>

namespace btfd::varlink {
namespace {

using test::contentOf;
using test::fileWith;
using test::openDescriptors;
using test::sendRaw;
using test::socketPair;
using Outcome = FrameReader::Outcome;

/// Reads on while a large message comes in turns.
Result<Outcome> readFrame(FrameReader& reader, BorrowedFd socket, Frame& frame) {
  auto outcome = reader.read(socket, frame);
  while (outcome && *outcome == Outcome::progress) {
    outcome = reader.read(socket, frame);
  }
  return outcome;
}

/// Sends `text` with descriptors in one sendmsg, bypassing the code under test.
void sendWith(BorrowedFd socket, const std::string& text, const std::vector<UniqueFd>& descriptors) {
  const std::vector<BorrowedFd> borrowed(descriptors.begin(), descriptors.end());
  ASSERT_EQ(test_support::sendWithDescriptors(socket, std::as_bytes(std::span(text)), borrowed),
            static_cast<ssize_t>(text.size()));
}

TEST(FrameReader, SplitsPipelinedMessages) {
  auto [here, there] = socketPair(SOCK_NONBLOCK);
  sendRaw(there, std::string_view("one\0two\0thr", 11));
  FrameReader reader;
  Frame frame;
  EXPECT_EQ(reader.read(here, frame).value(), Outcome::message);
  EXPECT_EQ(frame.text, "one");
  EXPECT_TRUE(reader.sawMore());
  EXPECT_EQ(reader.read(here, frame).value(), Outcome::message);
  EXPECT_EQ(frame.text, "two");
  EXPECT_EQ(reader.read(here, frame).value(), Outcome::incomplete);
  EXPECT_EQ(reader.unfinishedBytes(), 3U);
  sendRaw(there, std::string_view("ee\0", 3));
  EXPECT_EQ(reader.read(here, frame).value(), Outcome::message);
  EXPECT_EQ(frame.text, "three");
  EXPECT_FALSE(reader.sawMore());
  EXPECT_EQ(reader.unfinishedBytes(), 0U);
}

TEST(FrameReader, TellsAnEndBetweenMessagesFromOneInside) {
  for (const bool inside : {false, true}) {
    auto [here, there] = socketPair();
    sendRaw(there, inside ? std::string_view("done\0half", 9) : std::string_view("done\0", 5));
    there.reset();
    FrameReader reader;
    Frame frame;
    ASSERT_EQ(reader.read(here, frame).value(), Outcome::message);
    const auto end = reader.read(here, frame);
    EXPECT_EQ(end.has_value(), !inside);
    if (end) {
      EXPECT_EQ(*end, Outcome::closed);
    }
  }
}

TEST(FrameReader, GivesEachPipelinedMessageItsDescriptors) {
  std::mt19937 random(1);
  for (int batch = 0; batch < 400; ++batch) {
    auto [here, there] = socketPair(SOCK_NONBLOCK);
    FrameReader reader;
    std::vector<std::string> sent;
    std::vector<Frame> received;
    const auto readAll = [&, &socket = here] {
      Frame frame;
      while (reader.read(socket, frame).value() == Outcome::message) {
        received.push_back(std::move(frame));
      }
    };
    const auto messages = 1 + random() % 12;
    for (unsigned message = 0; message < messages; ++message) {
      const auto files = random() % 2 == 0 ? 0 : random() % 5;
      std::string text = std::to_string(files) + ":";
      std::vector<UniqueFd> descriptors;
      for (unsigned file = 0; file < files; ++file) {
        const std::string content = std::to_string(batch) + "/" + std::to_string(message) + "/" + std::to_string(file);
        descriptors.push_back(fileWith(content));
        text += content + ";";
      }
      text += std::string(random() % 3 == 0 ? random() % 9000 : random() % 50, '-');
      sent.push_back(text);
      text.push_back('\0');
      // The descriptors go with the first part; the rest follows in pieces.
      const std::size_t first = 1 + random() % text.size();
      sendWith(there, text.substr(0, first), descriptors);
      if (random() % 4 == 0) {
        readAll();
      }
      sendRaw(there, std::string_view(text).substr(first));
      if (random() % 4 == 0) {
        readAll();
      }
    }
    readAll();
    ASSERT_EQ(received.size(), sent.size());
    for (std::size_t index = 0; index < sent.size(); ++index) {
      ASSERT_EQ(received[index].text, sent[index]);
      std::string expected = std::to_string(received[index].descriptors.size()) + ":";
      for (const auto& descriptor : received[index].descriptors) {
        expected += contentOf(descriptor) + ";";
      }
      ASSERT_TRUE(sent[index].starts_with(expected)) << sent[index] << " got " << expected;
    }
  }
}

TEST(FrameReader, ReceivedDescriptorsAreClosedOnExec) {
  auto [here, there] = socketPair();
  std::vector<UniqueFd> files;
  files.push_back(fileWith("x"));
  sendWith(there, std::string("m\0", 2), files);
  FrameReader reader;
  Frame frame;
  ASSERT_EQ(reader.read(here, frame).value(), Outcome::message);
  ASSERT_EQ(frame.descriptors.size(), 1U);
  EXPECT_NE(::fcntl(frame.descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(FrameReader, AMessageUpToTheLimitIsReadAndOnePastItIsAnError) {
  constexpr std::size_t kLimit = 100'000;
  for (const std::size_t size : {kLimit, kLimit + 1}) {
    auto [here, there] = socketPair();
    std::thread sender([&socket = there, size] {
      std::string text(size, 'x');
      text.push_back('\0');
      // The reader gives up before it has read all.
      static_cast<void>(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL));
    });
    FrameReader reader(kLimit);
    Frame frame;
    const auto outcome = readFrame(reader, here, frame);
    EXPECT_EQ(outcome.has_value(), size == kLimit);
    if (outcome) {
      EXPECT_EQ(frame.text.size(), kLimit);
    } else {
      EXPECT_EQ(outcome.error().code, EMSGSIZE);
    }
    here.reset();
    sender.join();
  }
}

TEST(FrameReader, TheLargestMessageArrivesWholeAndLeavesNoBufferBehind) {
  auto [here, there] = socketPair();
  std::string text(kMessageLimit, 'y');
  std::thread sender([&socket = there, &text] { EXPECT_TRUE(sendFrame(socket, text, {})); });
  FrameReader reader;
  Frame frame;
  ASSERT_EQ(readFrame(reader, here, frame).value(), Outcome::message);
  sender.join();
  EXPECT_TRUE(frame.text == text);
  EXPECT_EQ(reader.unfinishedBytes(), 0U);
}

TEST(FrameReader, DescriptorsWithoutEndEndTheStream) {
  auto [here, there] = socketPair(SOCK_NONBLOCK);
  std::vector<UniqueFd> files;
  for (std::size_t count = 0; count < kDescriptorLimit; ++count) {
    files.push_back(fileWith(""));
  }
  for (int part = 0; part < 3; ++part) {
    sendWith(there, "a", files);
  }
  FrameReader reader;
  Frame frame;
  const auto outcome = reader.read(here, frame);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, E2BIG);
}

TEST(FrameReader, DescriptorsOfSeveralPartsPastTheLimitAreClosedAndTheMessageIsStillRead) {
  auto [here, there] = socketPair(SOCK_NONBLOCK);
  std::vector<UniqueFd> files;
  for (std::size_t count = 0; count < kDescriptorLimit; ++count) {
    files.push_back(fileWith(""));
  }
  sendWith(there, "a", files);
  sendWith(there, std::string("b\0next\0", 7), files);
  const std::size_t before = openDescriptors();
  FrameReader reader;
  Frame frame;
  ASSERT_EQ(reader.read(here, frame).value(), Outcome::message);
  EXPECT_EQ(frame.text, "ab");
  EXPECT_EQ(frame.descriptorError, E2BIG);
  EXPECT_TRUE(frame.descriptors.empty());
  EXPECT_EQ(openDescriptors(), before);
  ASSERT_EQ(reader.read(here, frame).value(), Outcome::message);
  EXPECT_EQ(frame.text, "next");
  EXPECT_EQ(frame.descriptorError, 0);
}

TEST(FrameReader, DescriptorsThatTheProcessCannotHoldAreClosedAndTheMessageIsStillRead) {
  auto [here, there] = socketPair(SOCK_NONBLOCK);
  std::vector<UniqueFd> files;
  for (int count = 0; count < 5; ++count) {
    files.push_back(fileWith(""));
  }
  sendWith(there, std::string("m\0", 2), files);
  const std::size_t before = openDescriptors();
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit low = old;
  low.rlim_cur = static_cast<rlim_t>(files.back().get()) + 3; // Room for two more.
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  FrameReader reader;
  Frame frame;
  const auto outcome = reader.read(here, frame);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(outcome.value(), Outcome::message);
  EXPECT_EQ(frame.text, "m");
  EXPECT_EQ(frame.descriptorError, EMFILE);
  EXPECT_TRUE(frame.descriptors.empty());
  EXPECT_EQ(openDescriptors(), before);
}

TEST(FrameReader, ABlockingSocketsTimeoutIsIncomplete) {
  auto [here, there] = socketPair();
  timeval timeout{0, 10'000};
  ASSERT_EQ(::setsockopt(here.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout), 0);
  FrameReader reader;
  Frame frame;
  EXPECT_EQ(reader.read(here, frame).value(), Outcome::incomplete);
}

TEST(FrameWriter, SendsInPartsWithDescriptorsOnTheFirstByteOnly) {
  auto [here, there] = socketPair(SOCK_NONBLOCK);
  FrameWriter writer;
  std::vector<std::string> texts;
  for (int message = 0; message < 40; ++message) {
    texts.push_back(std::to_string(message) + std::string(static_cast<std::size_t>(message) * 1000, 'z'));
    std::vector<UniqueFd> files;
    if (message % 3 == 0) {
      files.push_back(fileWith(std::to_string(message)));
    }
    writer.enqueue(texts.back(), std::move(files));
  }
  EXPECT_EQ(writer.queuedMessages(), 40U);
  FrameReader reader;
  Frame frame;
  std::size_t received = 0;
  bool blocked = false;
  while (received < texts.size()) {
    blocked = !writer.flush(here).value() || blocked;
    const auto outcome = reader.read(there, frame).value();
    if (outcome != Outcome::message) {
      continue;
    }
    ASSERT_EQ(frame.text, texts[received]);
    ASSERT_EQ(frame.descriptors.size(), received % 3 == 0 ? 1U : 0U);
    if (!frame.descriptors.empty()) {
      EXPECT_EQ(contentOf(frame.descriptors[0]), std::to_string(received));
    }
    ++received;
  }
  EXPECT_TRUE(blocked) << "the socket buffer was to overflow";
  EXPECT_TRUE(writer.empty());
  EXPECT_EQ(writer.queuedBytes(), 0U);
  EXPECT_EQ(writer.sentMessages(), texts.size());
}

TEST(FrameWriter, ClosesDescriptorsOnceSent) {
  auto [here, there] = socketPair(SOCK_NONBLOCK);
  const std::size_t before = openDescriptors();
  FrameWriter writer;
  std::vector<UniqueFd> files;
  files.push_back(fileWith("x"));
  writer.enqueue("m", std::move(files));
  EXPECT_TRUE(writer.flush(here).value());
  EXPECT_EQ(openDescriptors(), before);
}

TEST(FrameWriter, AReaderThatIsGoneIsAnErrorAndNoSignal) {
  auto [here, there] = socketPair(SOCK_NONBLOCK);
  there.reset();
  FrameWriter writer;
  writer.enqueue("m");
  const auto sent = writer.flush(here);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, EPIPE);
  writer.clear();
  EXPECT_TRUE(writer.empty());
}

} // namespace
} // namespace btfd::varlink
