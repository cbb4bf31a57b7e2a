#include "tc_filters.h"

#include "answers.h"
#include "loader/tc_filter.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>

namespace btfd::service {

namespace {

/// How often a job to remove filters is given to another worker when one is lost.
constexpr int kAttempts = 10;

bool samePlace(const TcFilter& one, const TcFilter& other) {
  return one.networkNamespace == other.networkNamespace && one.interface == other.interface &&
         one.ingress == other.ingress && one.priority == other.priority && one.handle == other.handle;
}

/// A job's entry for a filter; its network namespace's descriptor goes to `descriptors`.
Result<nlohmann::json> entryOf(const TcFilter& place, const UniqueFd& networkNamespace,
                               std::vector<UniqueFd>& descriptors) {
  nlohmann::json entry = loader::toJson(place);
  if (networkNamespace) {
    UniqueFd duplicate = BorrowedFd(networkNamespace).duplicate();
    if (!duplicate) {
      return failErrno("no descriptor for a network namespace", errno);
    }
    entry["namespaceDescriptor"] = descriptors.size();
    descriptors.push_back(std::move(duplicate));
  }
  return entry;
}

} // namespace

struct TcFilters::Attaching {
  std::vector<Planned> planned;
  Party party;
  std::chrono::milliseconds deadline{};
  Done done;
};

struct TcFilters::Removing {
  std::vector<Filter> filters;
  Party party;
  std::function<void()> then;
  int attempts = 0;
};

bool TcFilters::anyIn(const std::vector<registry::Link>& links) {
  return std::ranges::any_of(links, [](const registry::Link& link) { return link.filter.has_value(); });
}

std::vector<TcFilters::Filter> TcFilters::takeFrom(std::vector<registry::Link>& links) {
  std::vector<Filter> filters;
  for (registry::Link& link : links) {
    if (link.filter) {
      filters.push_back({.place = std::move(*link.filter), .networkNamespace = std::move(link.networkNamespace)});
      link.filter.reset();
    }
  }
  return filters;
}

// ---- One at a time
// ---------------------------------------------------------------------------------------------------

void TcFilters::takeTurn(std::function<void()> turn) {
  turns_.push_back(std::move(turn));
  if (!busy_) {
    endTurn();
  }
}

/// Begins the next.
void TcFilters::endTurn() {
  busy_ = !turns_.empty();
  if (busy_) {
    const auto turn = std::move(turns_.front());
    turns_.pop_front();
    turn();
  }
}

void TcFilters::close(std::function<void()> then) {
  closed_ = true;
  takeTurn([this, then = std::move(then)] {
    then();
    endTurn();
  });
}

// ---- Making them
// -----------------------------------------------------------------------------------------------------

void TcFilters::attach(std::vector<Planned> planned, Party party, std::chrono::milliseconds deadline, Done done) {
  auto attaching = std::make_shared<Attaching>(
      Attaching{.planned = std::move(planned), .party = party, .deadline = deadline, .done = std::move(done)});
  takeTurn([this, attaching] { makeAll(attaching); });
}

/// Sees that no filter of the daemon's own is in the place, and takes it.
loader::Outcome<void> TcFilters::choosePlace(registry::Link& link) {
  TcFilter& place = *link.filter;
  const auto taken = [&] {
    return std::ranges::any_of(places_, [&](const TcFilter& other) { return samePlace(place, other); });
  };
  while (taken()) {
    if (place.handleGiven) {
      nlohmann::json parameters;
      parameters["message"] =
          "cannot attach program '" + link.program + "' to " + link.target +
          ": EEXIST (File exists): there is a filter with this priority and handle already; without "
          "handle, one is chosen that is free";
      parameters["program"] = link.program;
      parameters["errno"] = EEXIST;
      parameters["errnoName"] = "EEXIST";
      return std::unexpected(loader::Failure{"io.btfd.AttachFailed", std::move(parameters)});
    }
    ++place.handle;
  }
  places_.push_back(place);
  ++qdiscs_[interfaceOf(place)].filters;
  return {};
}

void TcFilters::forget(const TcFilter& place) {
  const auto found = std::ranges::find_if(places_, [&](const auto& other) { return samePlace(place, other); });
  if (found != places_.end()) {
    places_.erase(found);
  }
  const auto qdisc = qdiscs_.find(interfaceOf(place));
  if (qdisc != qdiscs_.end() && --qdisc->second.filters == 0) {
    qdiscs_.erase(qdisc);
  }
}

void TcFilters::makeAll(const std::shared_ptr<Attaching>& attaching) {
  Job job{.body = {}, .descriptors = {}, .party = attaching->party, .deadline = attaching->deadline, .done = {}};
  job.body["job"] = "tcAttach";
  job.body["ofClient"] = 0;
  for (std::size_t i = 0; i < attaching->planned.size(); ++i) {
    Planned& planned = attaching->planned[i];
    if (auto chosen = choosePlace(*planned.link); !chosen) {
      std::for_each_n(attaching->planned.begin(), i, [&](const Planned& each) { forget(*each.link->filter); });
      fail(attaching, std::move(chosen.error()));
      return;
    }
    auto entry = entryOf(*planned.link->filter, planned.link->networkNamespace, job.descriptors);
    if (!entry) {
      std::for_each_n(attaching->planned.begin(), i + 1, [&](const Planned& each) { forget(*each.link->filter); });
      fail(attaching, failureOf(entry.error()));
      return;
    }
    (*entry)["program"] = planned.link->program;
    (*entry)["target"] = planned.link->target;
    (*entry)["programDescriptor"] = job.descriptors.size();
    job.descriptors.push_back(std::move(planned.program));
    job.body["filters"].push_back(std::move(*entry));
  }
  job.done = [this, attaching](loader::Outcome<loader::ChannelMessage> outcome, const Job&) {
    made(attaching, std::move(outcome));
  };
  // Not cancelled if the client goes: what a killed worker is doing in the kernel may happen after it was undone.
  workers_.submit(std::move(job));
}

void TcFilters::made(const std::shared_ptr<Attaching>& attaching, loader::Outcome<loader::ChannelMessage> outcome) {
  if (!outcome) {
    // A worker that has answered has undone it all itself.
    if (outcome.error().error == "io.btfd.AttachFailed" || outcome.error().error == "io.btfd.Busy") {
      for (const Planned& planned : attaching->planned) {
        forget(*planned.link->filter);
      }
      fail(attaching, std::move(outcome.error()));
      return;
    }
    for (const Planned& planned : attaching->planned) {
      qdiscs_[interfaceOf(*planned.link->filter)].made |= planned.link->filter->qdiscMissing;
    }
    undo(attaching, std::move(outcome.error()));
    return;
  }
  const auto qdiscMade = outcome->body.find("qdiscMade");
  for (std::size_t i = 0; i < attaching->planned.size(); ++i) {
    if (qdiscMade != outcome->body.end() && qdiscMade->is_array() && i < qdiscMade->size() && (*qdiscMade)[i] == true) {
      qdiscs_[interfaceOf(*attaching->planned[i].link->filter)].made = true;
    }
  }
  if (closed_) {
    undo(attaching, failureOf(btfd::Error{"the daemon is ending", ESHUTDOWN}));
    return;
  }
  const auto done = std::move(attaching->done);
  done({});
  endTurn();
}

/// None was made.
void TcFilters::fail(const std::shared_ptr<Attaching>& attaching, loader::Failure failure) {
  for (const Planned& planned : attaching->planned) {
    planned.link->filter.reset();
  }
  const auto done = std::move(attaching->done);
  done(std::unexpected(std::move(failure)));
  endTurn();
}

/// Some may have been made. In the same turn.
void TcFilters::undo(const std::shared_ptr<Attaching>& attaching, loader::Failure failure) {
  auto removing = std::make_shared<Removing>();
  removing->party = attaching->party;
  for (const Planned& planned : attaching->planned) {
    removing->filters.push_back(
        {.place = std::move(*planned.link->filter), .networkNamespace = std::move(planned.link->networkNamespace)});
    planned.link->filter.reset();
  }
  removing->then = [done = std::move(attaching->done), kept = std::move(failure)] { done(std::unexpected(kept)); };
  removeAll(removing);
}

// ---- Replacing their programs
// ----------------------------------------------------------------------------------------

struct TcFilters::Replacing {
  Replacement wanted;
  Party party;
  std::chrono::milliseconds deadline{};
  Done done;
  int attempts = 0;
};

void TcFilters::replace(Replacement replacement, Party party, std::chrono::milliseconds deadline, Done done) {
  auto replacing = std::make_shared<Replacing>(
      Replacing{.wanted = std::move(replacement), .party = party, .deadline = deadline, .done = std::move(done)});
  takeTurn([this, replacing] { replaceOne(replacing); });
}

void TcFilters::replaceOne(const std::shared_ptr<Replacing>& replacing) {
  registry::Link* link = replacing->wanted.find();
  if (link == nullptr || !link->filter) {
    const auto done = std::move(replacing->done);
    done({}); // it looks for the link itself
    endTurn();
    return;
  }
  // Until the answer comes it may be either.
  if (replacing->attempts == 0) {
    link->filter->programs.push_back(replacing->wanted.programId);
  }
  Job job{.body = {}, .descriptors = {}, .party = replacing->party, .deadline = replacing->deadline, .done = {}};
  auto entry = entryOf(*link->filter, link->networkNamespace, job.descriptors);
  UniqueFd program = BorrowedFd(replacing->wanted.program).duplicate();
  if (!entry || !program) {
    replaced(replacing, std::unexpected(failureOf(entry ? btfd::Error::fromErrno("no descriptor for a program", errno)
                                                        : entry.error())));
    return;
  }
  job.body = std::move(*entry);
  job.body["job"] = "tcReplace";
  job.body["ofClient"] = 0;
  job.body["program"] = replacing->wanted.name;
  job.body["target"] = link->target;
  job.body["programDescriptor"] = job.descriptors.size();
  job.descriptors.push_back(std::move(program));
  job.done = [this, replacing](const loader::Outcome<loader::ChannelMessage>& outcome, const Job&) {
    if (!outcome && outcome.error().error == "io.btfd.WorkerLost" && ++replacing->attempts < kAttempts) {
      replaceOne(replacing); // whether it was done or not, the same again does no harm
    } else {
      replaced(replacing, outcome ? loader::Outcome<void>{} : std::unexpected(outcome.error()));
    }
  };
  workers_.submit(std::move(job));
}

void TcFilters::replaced(const std::shared_ptr<Replacing>& replacing, const loader::Outcome<void>& outcome) {
  registry::Link* link = replacing->wanted.find();
  if (link != nullptr && link->filter) {
    if (outcome) {
      link->filter->programs = {replacing->wanted.programId};
    } else if (outcome.error().error == "io.btfd.AttachFailed") {
      link->filter->programs.pop_back();
    }
  }
  const auto done = std::move(replacing->done);
  done(outcome);
  endTurn();
}

// ---- Removing them
// ---------------------------------------------------------------------------------------------------

void TcFilters::remove(std::vector<Filter> filters, Party party, std::function<void()> then) {
  auto removing =
      std::make_shared<Removing>(Removing{.filters = std::move(filters), .party = party, .then = std::move(then)});
  takeTurn([this, removing] { removeAll(removing); });
}

void TcFilters::removeAll(const std::shared_ptr<Removing>& removing) {
  nlohmann::json body;
  std::vector<UniqueFd> descriptors;
  body["job"] = "tcDetach";
  body["ofClient"] = 0;
  body["filters"] = nlohmann::json::array();
  std::map<Interface, std::size_t> left;
  for (const Filter& filter : removing->filters) {
    ++left[interfaceOf(filter.place)];
  }
  for (const Filter& filter : removing->filters) {
    auto entry = entryOf(filter.place, filter.networkNamespace, descriptors);
    if (!entry) {
      spdlog::error("a tc filter stays: {}", entry.error().message);
      continue;
    }
    const Qdisc& qdisc = qdiscs_[interfaceOf(filter.place)];
    const std::size_t inThisJob = std::exchange(left[interfaceOf(filter.place)], 0);
    (*entry)["andQdisc"] = qdisc.made && inThisJob == qdisc.filters;
    body["filters"].push_back(std::move(*entry));
  }
  // The qdisc goes when the last filter is gone; of one interface the first in the list is removed last.
  std::ranges::reverse(body["filters"]);
  workers_.settle(std::move(body), std::move(descriptors), removing->party,
                  [this, removing](const std::optional<nlohmann::json>& answer) {
                    if (!answer && ++removing->attempts < kAttempts) {
                      removeAll(removing);
                      return;
                    }
                    if (!answer) {
                      spdlog::error("tc filters may stay: each worker that was to remove them was lost");
                    } else {
                      for (const auto& error : answer->value("errors", nlohmann::json::array())) {
                        spdlog::error("a tc filter stays: {}", error.get<std::string>());
                      }
                    }
                    for (const Filter& filter : removing->filters) {
                      forget(filter.place);
                    }
                    const auto then = std::move(removing->then);
                    then();
                    endTurn();
                  });
}

} // namespace btfd::service
