#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::differential {

/// What became of an object, or of one program loaded alone.
enum class Outcome {
  loaded,
  /// The kernel or the loader refused to load it; there is an errno.
  refused,
  /// The file could not even be opened as a BPF object. The errno is the loader's own and says nothing.
  invalid,
  /// The loader failed in a way that says nothing about the object; `text` says how.
  broken,
};

struct Verdict {
  Outcome outcome = Outcome::broken;
  /// Positive, for Outcome::refused.
  int errnoValue = 0;
  /// The kernel's hash of each loaded program's instructions, in hexadecimal, by program name.
  std::map<std::string, std::string> tags;
  /// Of a failure, for people.
  std::string text;
};

/// All verdicts on one object by one loader.
struct ObjectVerdicts {
  /// The object as it is: its own choice of programs.
  Verdict whole;
  /// Each program loaded alone, the others disabled. So a program that fails does not hide the others.
  std::map<std::string, Verdict> alone;
};

/// A difference, in words.
struct Mismatch {
  /// The program that was loaded alone; empty for the whole object.
  std::string program;
  std::string text;
};

/// "loaded", "refused (EACCES)" and so on.
std::string describe(const Verdict& verdict);

/// All differences. Outcome::broken on either side is one.
std::vector<Mismatch> compare(const ObjectVerdicts& expected, const ObjectVerdicts& actual);

} // namespace btfd::differential
