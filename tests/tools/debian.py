"""What the tools here have in common that take things out of Debian's packages.

apt downloads, with state of its own, from the mirror that this host's apt sources name; the system's packages and apt
sources stay as they are, and no root is needed. Packages are verified against the suite's Release file, and that against
Debian's keyring.
"""
import contextlib
import fcntl
import os
import re
import subprocess
import tempfile

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SKIP = 77  # for ctest: skipped


class Failed(Exception):
    """Something that the user is told of without a stack trace."""


def run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", check=False)
    if done.returncode:
        raise Failed("%s: %s" % (" ".join((command[0], *command[-2:])), (done.stderr or done.stdout).strip()))
    return done.stdout


def cache_directory():
    """Where what was fetched is kept."""
    return os.path.abspath(os.environ.get("BTFD_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "btfd"))


@contextlib.contextmanager
def locked(path):
    """Keeps others with the same path out: tests run in parallel, and several may want the same thing."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def mirror():
    """The main archive's address, as this host's own apt sources have it."""
    for line in run("apt-get", "indextargets", "--format", "$(CREATED_BY) $(REPO_URI)").splitlines():
        kind, _, address = line.partition(" ")
        if kind == "Packages" and "security" not in address and re.search(r"/debian(/[0-9TZ]+)?/?$", address):
            return address
    raise Failed("this host's apt sources name no Debian mirror")


class PrivateApt:
    """apt for one suite and architecture (else the host's), with no state shared with the host's."""

    def __init__(self, directory, suite, architecture=""):
        if not os.path.exists(KEYRING):
            raise Failed("%s is missing: install debian-archive-keyring" % KEYRING)
        for sub in ("lists/partial", "archives/partial"):
            os.makedirs(os.path.join(directory, sub), exist_ok=True)
        with open(os.path.join(directory, "status"), "a", encoding="ascii"):
            pass
        sources = os.path.join(directory, "sources.list")
        with open(sources, "w", encoding="utf-8") as f:
            f.write("deb [signed-by=%s] %s %s main\n" % (KEYRING, mirror(), suite))
        settings = {
            "Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State::lists": directory + "/lists", "Dir::State::status": directory + "/status",
            "Dir::Cache": directory, "Acquire::Languages": "none", "Acquire::Retries": "3",
            "APT::Sandbox::User": "root", "APT::Get::List-Cleanup": "false",
        }
        if architecture:
            settings.update({"APT::Architecture": architecture, "APT::Architectures": architecture})
        self.options = [word for key, value in settings.items() for word in ("-o", "%s=%s" % (key, value))]
        run("apt-get", *self.options, "--error-on=any", "-qq", "update")

    def fields(self, package):
        """What the suite says of the package's newest version; None if it has none."""
        done = subprocess.run(["apt-cache", *self.options, "show", "--no-all-versions", package],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return dict(re.findall(r"^(\S+): (.*)$", done.stdout.split("\n\n")[0], re.M)) or None

    def version(self, package):
        """Of the newest one in the suite; None if it has none."""
        fields = self.fields(package)
        return fields["Version"] if fields else None

    def unpack(self, package, directory):
        """Downloads the package's newest version, which apt verifies, and unpacks its files below directory."""
        with tempfile.TemporaryDirectory() as scratch:
            run("apt-get", *self.options, "-qq", "download", package, cwd=scratch)
            deb, = os.listdir(scratch)
            run("dpkg-deb", "-x", os.path.join(scratch, deb), directory)
