"""The root file system of a guest: files of this machine, in a cpio archive that the kernel unpacks into memory.

Format "newc" (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel): the only one that it reads.
"""
import lzma
import os
import re
import shutil
import stat
import subprocess

# /dev as it must be before devtmpfs is mounted, and mount points.
DIRECTORIES = "dev proc sys run root tmp var/tmp etc usr/bin usr/sbin usr/lib usr/lib64 vm/dev/pts vm/dev/shm".split()
MERGED = ("bin", "sbin", "lib", "lib64")  # links into /usr, as on Debian
TEXTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nusers:x:100:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost vm\n::1 localhost\n",
}


class Failed(Exception):
    """Something that the user is told of without a stack trace."""


class Initramfs:
    """What is put together: path without leading slash -> (mode, content, or device numbers)."""

    def __init__(self):
        self.nodes = {}
        self.modified = {}  # path -> seconds since 1970: Python compiles anew what its cache does not fit
        for directory in DIRECTORIES:
            self.add_directory(directory)
        for name in MERGED:
            self.nodes[name] = (stat.S_IFLNK | 0o777, ("usr/" + name).encode())
        self.nodes["dev/console"] = (stat.S_IFCHR | 0o600, (5, 1))
        for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
            self.add_link("vm/dev/" + name, "/proc/self/fd" + target)
        for path, text in TEXTS.items():
            self.add_text(path, text)
        self._add_busybox()
        if os.path.exists("/etc/ld.so.cache"):
            self.add_file("/etc/ld.so.cache", "etc/ld.so.cache")

    def _add_busybox(self):
        busybox = shutil.which("busybox", path="/usr/bin:/bin")
        if not busybox:
            raise Failed("busybox is missing: install busybox-static")
        for applet in subprocess.run([busybox, "--list"], check=True, text=True, stdout=subprocess.PIPE).stdout.split():
            self.add_link("usr/bin/" + applet, "busybox")
        self.add_file(busybox, "usr/bin/busybox")
        # Busybox's own shell runs its applets whatever PATH says.
        self.add_file("/bin/dash", "usr/bin/sh")

    def add_directory(self, path):
        while path and path not in self.nodes:
            self.nodes[path] = (stat.S_IFDIR | 0o755, b"")
            path = os.path.dirname(path)

    def add_link(self, path, target):
        self._put(path, stat.S_IFLNK | 0o777, os.fsencode(target))

    def add_text(self, path, text, mode=0o644):
        self._put(path, stat.S_IFREG | mode, text.encode())

    def add_file(self, host, guest):
        """One file, with the libraries or the interpreter that it needs."""
        with open(host, "rb") as f:
            data = f.read()
        status = os.stat(host)
        self._put(guest, stat.S_IFREG | status.st_mode & 0o7777, data)
        self.modified[self._merged(guest)] = int(status.st_mtime)
        if data[:4] == b"\x7fELF" and data[16] in (2, 3) and data[18] == 62:  # executable or shared, of x86-64
            self._add_libraries(host)
        elif data[:2] == b"#!":
            interpreter = data[2:].split(None, 1)[0].decode()
            # Some of Python's library name interpreters that no system has.
            if os.path.basename(interpreter) not in ("sh", "env") and os.path.exists(interpreter) and not self._has(interpreter):
                self.add_file(interpreter, interpreter)

    def add_tree(self, host, guest, leave_out=()):
        """A file, or a directory without what is named like one of leave_out."""
        if not os.path.isdir(host):
            self.add_file(host, guest)
            return
        self.add_directory(guest.strip("/"))
        for name in sorted(os.listdir(host)):
            here, there = os.path.join(host, name), os.path.join(guest, name)
            if name in leave_out:
                continue
            if os.path.islink(here):
                self.add_link(there, os.readlink(here))
            elif os.path.isdir(here) or os.path.isfile(here):
                self.add_tree(here, there, leave_out)

    def add_modules(self, kernel, release, names, where_there=()):
        """These kernel modules and all that they depend on, for the guest's modprobe. Gives those that are modules; the
        others are built in. A kernel that has neither: Failed, but for those of where_there."""
        modules = _Modules(kernel, names, where_there)
        base = "lib/modules/%s/" % release
        for name, data in modules.data.items():
            self._put(base + name + ".ko", stat.S_IFREG | 0o644, data)
        self.add_text(base + "modules.dep", "".join(
            "%s.ko:%s\n" % (name, "".join(" %s.ko" % needed for needed in modules.needs(name))) for name in modules.data))
        for empty in ("modules.alias", "modules.symbols"):
            self.add_text(base + empty, "")
        return [name for name in (*names, *where_there) if name.replace("-", "_") in modules.data]

    def cpio(self):
        """The archive; directories come before what is in them."""
        parts = []
        entries = sorted(self.nodes.items()) + [("TRAILER!!!", (0, b""))]
        for number, (path, (mode, content)) in enumerate(entries, 1):
            device, data = (content, b"") if isinstance(content, tuple) else ((0, 0), content)
            name = os.fsencode(path) + b"\0"
            head = b"070701" + b"".join(b"%08X" % field for field in (
                number, mode, 0, 0, 1, self.modified.get(path, 0), len(data), 0, 0, *device, len(name), 0)) + name
            parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]
        return b"".join(parts)

    def _add_libraries(self, program):
        said = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
        if "not found" in said:
            raise Failed("%s lacks libraries:\n%s" % (program, said))
        for library in re.findall(r"(/\S+) \(0x", said):
            if not self._has(library):
                with open(library, "rb") as f:
                    self._put(library, stat.S_IFREG | 0o755, f.read())

    @staticmethod
    def _merged(path):
        path = path.strip("/")
        top, _, rest = path.partition("/")
        return "usr/" + path if top in MERGED and rest else path

    def _has(self, path):
        return self._merged(path) in self.nodes

    def _put(self, path, mode, content):
        path = self._merged(path)
        self.add_directory(os.path.dirname(path))
        self.nodes[path] = (mode, content)


class _Modules:
    """Some modules of a kernel, with those that they depend on."""

    def __init__(self, kernel, names, where_there):
        self.kernel = kernel
        self.paths = {}
        for top, _, files in os.walk(kernel + "/modules/kernel"):
            for name in files:
                self.paths[name.split(".ko")[0].replace("-", "_")] = os.path.join(top, name)
        self.builtin = set()
        if os.path.exists(kernel + "/modules/modules.builtin"):
            with open(kernel + "/modules/modules.builtin", encoding="ascii") as f:
                self.builtin = {os.path.basename(line.strip())[:-3].replace("-", "_") for line in f}
        self.data, self.direct = {}, {}
        for name in names:
            self._add(name.replace("-", "_"))
        for name in where_there:
            if name.replace("-", "_") in self.paths:
                self._add(name.replace("-", "_"))

    def _add(self, name):
        if name in self.data or name in self.builtin:
            return
        if name not in self.paths:
            raise Failed("%s has no module %s" % (self.kernel, name))
        with open(self.paths[name], "rb") as f:
            data = f.read()
        self.data[name] = data = lzma.decompress(data) if self.paths[name].endswith(".xz") else data
        self.direct[name] = [needed.decode().replace("-", "_")
                             for group in re.findall(rb"\0depends=([^\0]*)\0", data) for needed in group.split(b",") if needed]
        for needed in self.direct[name]:
            self._add(needed)

    def needs(self, name):
        """All that must be loaded before a module, the last first, as modules.dep has it."""
        found = []
        for needed in self.direct[name]:
            if needed in self.data:
                found += [needed, *self.needs(needed)]
        return list(dict.fromkeys(found))
