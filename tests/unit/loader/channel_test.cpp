#include "loader/channel.h"
#include "test_support/files.h"
#include "test_support/send_descriptors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace btfd::loader {
namespace {

using test_support::openDescriptors;

class Channel : public testing::Test {
 protected:
  Channel() {
    auto pair = makeChannel();
    EXPECT_TRUE(pair) << pair.error().message;
    front_ = std::move(pair->front);
    worker_ = std::move(pair->worker);
  }

  /// Sends and receives on two threads, as a message of many descriptors may not fit the socket at once.
  Result<ChannelMessage> roundTrip(const nlohmann::json& body, const std::vector<BorrowedFd>& descriptors = {}) {
    Result<void> sent;
    std::thread sender([&] { sent = sendMessage(front_, body, descriptors); });
    auto received = receive();
    sender.join();
    EXPECT_TRUE(sent) << sent.error().message;
    return received;
  }

  Result<ChannelMessage> receive() {
    while (true) {
      auto message = reader_.receive(worker_);
      if (!message) {
        return std::unexpected(message.error());
      }
      if (*message) {
        return std::move(**message);
      }
    }
  }

  /// Sends a packet with the header that channel.cpp puts in front.
  void sendRaw(std::uint32_t more, std::uint32_t bodyInMemfd, std::span<const std::uint8_t> body) {
    std::array<std::uint32_t, 2> header{more, bodyInMemfd};
    std::array<iovec, 2> parts{
        {{header.data(), sizeof(header)}, {const_cast<std::uint8_t*>(body.data()), body.size()}}}; // NOLINT: only sent
    ASSERT_GE(::writev(front_.get(), parts.data(), parts.size()), 0);
  }

  int errorOfReceiving() {
    const auto received = receive();
    return received ? 0 : received.error().code;
  }

  UniqueFd front_;
  UniqueFd worker_;
  ChannelReader reader_;
};

TEST_F(Channel, CarriesAnyJson) {
  const nlohmann::json body = {{"job", "load"},
                               {"list", {1, -2, 3.5, nullptr, true}},
                               {"largest", UINT64_MAX},
                               {"smallest", INT64_MIN},
                               {"text", "ö"}};
  const auto received = roundTrip(body);
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_EQ(received->body, body);
  EXPECT_TRUE(received->descriptors.empty());
}

TEST_F(Channel, CarriesTextThatIsNoUtf8) {
  // Names in a client's BTF can be any bytes.
  const auto received = roundTrip({{"name", "\xff\xfe"}});
  ASSERT_TRUE(received);
  EXPECT_EQ(received->body.at("name").get<std::string>(), "\xff\xfe");
}

TEST_F(Channel, CarriesBodiesOfAnySize) {
  // Around the size from which on they travel in a memfd, and far beyond the socket's buffer.
  for (const std::size_t size : {std::size_t{0}, std::size_t{49140}, std::size_t{49141}, std::size_t{49142},
                                 std::size_t{49150}, std::size_t{49152}, std::size_t{60000}, std::size_t{16} << 20U}) {
    const nlohmann::json body = std::string(size, 'x');
    const auto received = roundTrip(body);
    ASSERT_TRUE(received) << size << ": " << received.error().message;
    EXPECT_TRUE(received->body == body) << size;
    EXPECT_TRUE(received->descriptors.empty()) << size;
  }
}

TEST_F(Channel, ALargeBodyIsSentToAPeerThatDoesNotReadWithoutBlocking) {
  ASSERT_EQ(::fcntl(front_.get(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_TRUE(sendMessage(front_, std::string(std::size_t{16} << 20U, 'x'), {}));
}

TEST_F(Channel, ABodyPastTheLimitIsNotSent) {
  const auto sent = sendMessage(front_, std::string(kMaximumBody, 'x'), {});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, EMSGSIZE);
  EXPECT_TRUE(roundTrip("next"));
}

TEST_F(Channel, ABodyPastTheLimitIsNotTakenFromAPeerThatSendsIt) {
  const UniqueFd memfd(::memfd_create("large", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(memfd.get(), static_cast<off_t>(kMaximumBody) + 1), 0);
  const std::array<std::uint32_t, 2> header{0, 1};
  ASSERT_GT(
      test_support::sendWithDescriptors(front_, std::as_bytes(std::span(header)), std::array<BorrowedFd, 1>{memfd}), 0);
  EXPECT_EQ(errorOfReceiving(), EPROTO);
}

TEST_F(Channel, ADescriptorThatIsNoneIsAnErrorAndNothingIsSent) {
  const auto sent = sendMessage(front_, "x", std::array{BorrowedFd(-1)});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, EBADF);
  const auto next = roundTrip("next");
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->body, "next");
}

TEST_F(Channel, AMessageThatWasSentInPartIsSaidToBe) {
  const UniqueFd file = test_support::memfdOf("x");
  std::vector<BorrowedFd> descriptors(253, BorrowedFd(file));
  descriptors.emplace_back(-1);
  const auto sent = sendMessage(front_, "x", descriptors);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ECONNABORTED);
}

TEST_F(Channel, NoRoomForDescriptorsIsEmfileToTheReader) {
  const UniqueFd file = test_support::memfdOf("x");
  ASSERT_TRUE(sendMessage(front_, "x", std::vector<BorrowedFd>(300, BorrowedFd(file)))); // in two packets
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // The next descriptor would get the number of the first that is free.
  const UniqueFd free(::dup(file.get()));
  struct rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(free.get());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const int error = errorOfReceiving();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(error, EMFILE);
  const auto next = roundTrip("next", {BorrowedFd(file)});
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->body, "next");
  EXPECT_EQ(next->descriptors.size(), 1U);
}

TEST_F(Channel, CarriesAnyNumberOfDescriptorsInTheirOrder) {
  std::vector<UniqueFd> files;
  for (int i = 0; i < 3; ++i) {
    files.push_back(test_support::memfdOf(std::to_string(i)));
  }
  for (const std::size_t count : {0U, 1U, 253U, 254U, 600U}) {
    for (const bool large : {false, true}) {
      std::vector<BorrowedFd> sent;
      for (std::size_t i = 0; i < count; ++i) {
        sent.emplace_back(files[i % files.size()]);
      }
      const nlohmann::json body = std::string(large ? 100'000 : 10, 'x');
      const auto received = roundTrip(body, sent);
      ASSERT_TRUE(received) << count << ": " << received.error().message;
      EXPECT_TRUE(received->body == body);
      ASSERT_EQ(received->descriptors.size(), count);
      for (std::size_t i = 0; i < count; ++i) {
        struct stat got{};
        struct stat expected{};
        ASSERT_EQ(::fstat(received->descriptors[i].get(), &got), 0);
        ASSERT_EQ(::fstat(sent[i].get(), &expected), 0);
        ASSERT_EQ(got.st_ino, expected.st_ino) << "descriptor " << i << " of " << count;
        ASSERT_NE(::fcntl(received->descriptors[i].get(), F_GETFD) & FD_CLOEXEC, 0);
      }
    }
  }
}

TEST_F(Channel, MessagesStaySeparate) {
  const UniqueFd file = test_support::memfdOf("x");
  const std::array one{BorrowedFd(file)};
  ASSERT_TRUE(sendMessage(front_, "first", one));
  ASSERT_TRUE(sendMessage(front_, "second", {}));
  const auto first = receive();
  const auto second = receive();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->body, "first");
  EXPECT_EQ(first->descriptors.size(), 1U);
  EXPECT_EQ(second->body, "second");
  EXPECT_TRUE(second->descriptors.empty());
}

TEST_F(Channel, SendingKeepsTheSendersDescriptorsAndLeaksNone) {
  const UniqueFd file = test_support::memfdOf("x");
  const std::size_t before = openDescriptors();
  ASSERT_TRUE(roundTrip(std::string(100'000, 'x'), std::vector<BorrowedFd>(300, BorrowedFd(file))));
  EXPECT_GE(::fcntl(file.get(), F_GETFD), 0);
  EXPECT_EQ(openDescriptors(), before);
}

TEST_F(Channel, NothingThereIsEagainForANonBlockingReader) {
  ASSERT_EQ(::fcntl(worker_.get(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(errorOfReceiving(), EAGAIN);
}

TEST_F(Channel, APeerThatIsGoneIsConnresetToTheReaderAndEpipeToTheSender) {
  front_.reset();
  EXPECT_EQ(errorOfReceiving(), ECONNRESET);
  const auto sent = sendMessage(worker_, "to nobody", {});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, EPIPE);
}

TEST_F(Channel, APacketWithoutHeaderIsBroken) {
  ASSERT_EQ(::send(front_.get(), "abc", 3, 0), 3);
  EXPECT_EQ(errorOfReceiving(), EPROTO);
}

TEST_F(Channel, APacketThatIsTooLargeIsBroken) {
  sendRaw(0, 0, std::vector<std::uint8_t>(60'000));
  EXPECT_EQ(errorOfReceiving(), EPROTO);
}

TEST_F(Channel, ABodyThatIsNoCborIsAnError) {
  sendRaw(0, 0, std::array<std::uint8_t, 2>{0xff, 0xff});
  EXPECT_EQ(errorOfReceiving(), EPROTO);
  sendRaw(0, 0, {});
  EXPECT_EQ(errorOfReceiving(), EPROTO);
}

TEST_F(Channel, ABodySaidToBeInAMemfdThatIsNotThereIsAnError) {
  sendRaw(0, 1, {});
  EXPECT_EQ(errorOfReceiving(), EPROTO);
}

TEST_F(Channel, ABodyNestedWithoutEndIsAnError) {
  // Arrays of one element each, which would take a stack frame each to read.
  sendRaw(0, 0, std::vector<std::uint8_t>(49'000, 0x81));
  EXPECT_EQ(errorOfReceiving(), EPROTO);
  // Strings without a stated length, in each other.
  sendRaw(0, 0, std::vector<std::uint8_t>(49'000, 0x7f));
  EXPECT_EQ(errorOfReceiving(), EPROTO);
}

TEST_F(Channel, ABodyThatSaysToHaveMoreThanItHasIsAnError) {
  // An array of 2^62 elements, a map of as many, a string of 2^63 - 1 bytes, a map whose key is a number.
  sendRaw(0, 0, std::array<std::uint8_t, 9>{0x9b, 0x40, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(errorOfReceiving(), EPROTO);
  sendRaw(0, 0, std::array<std::uint8_t, 9>{0xbb, 0x40, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(errorOfReceiving(), EPROTO);
  sendRaw(0, 0, std::array<std::uint8_t, 9>{0x7b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  EXPECT_EQ(errorOfReceiving(), EPROTO);
  sendRaw(0, 0, std::array<std::uint8_t, 3>{0xa1, 0x01, 0x01});
  EXPECT_EQ(errorOfReceiving(), EPROTO);
}

TEST_F(Channel, AnEndlessMessageIsCutOff) {
  const std::vector<std::uint8_t> part(40'000, 0x61);
  std::thread sender([&] {
    for (int i = 0; i < 10'000; ++i) {
      const std::array<std::uint32_t, 2> header{1, 0};
      std::vector<std::uint8_t> packet(sizeof(header) + part.size());
      std::memcpy(packet.data(), header.data(), sizeof(header));
      if (::send(front_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
        return; // the reader had enough
      }
    }
    front_.reset();
  });
  EXPECT_EQ(errorOfReceiving(), EPROTO);
  worker_.reset();
  sender.join();
}

} // namespace
} // namespace btfd::loader
