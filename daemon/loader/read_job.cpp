#include "read_job.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <unistd.h>

namespace btfd::loader {

namespace {

std::unexpected<Failure> cannotRead(const std::string& what, int code) {
  nlohmann::json parameters;
  parameters["message"] = what + ": " + errnoName(code) + " (" + std::strerror(code) + ")";
  parameters["errno"] = code;
  parameters["errnoName"] = errnoName(code);
  return std::unexpected(Failure{"io.btfd.ReadFailed", std::move(parameters)});
}

} // namespace

Outcome<JobReply> runReadJob(const nlohmann::json& request, const RequestDescriptors& descriptors) {
  const BorrowedFd source = descriptors.held(request.at("source"));
  UniqueFd iterator = request.value("begun", false) ? source.duplicate() : UniqueFd(bpf_iter_create(source.get()));
  if (!iterator) {
    return cannotRead("the kernel makes no iterator of the link", errno);
  }
  std::vector<std::uint8_t> data(request.at("bytes").get<std::size_t>());
  std::size_t size = 0;
  bool end = false;
  while (size < data.size() && !end) {
    const ssize_t got = ::read(iterator.get(), data.data() + size, data.size() - size);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      continue; // EAGAIN: the program had nothing to say of many objects (bpf_seq_read in kernel/bpf/bpf_iter.c)
    }
    if (got < 0) {
      return cannotRead("the iterator's output cannot be read", errno);
    }
    end = got == 0;
    size += static_cast<std::size_t>(got);
  }
  data.resize(size);
  JobReply reply;
  reply.body["data"] = nlohmann::json::binary(std::move(data));
  reply.body["end"] = end;
  if (!end) {
    reply.add(std::move(iterator));
  }
  return reply;
}

} // namespace btfd::loader
