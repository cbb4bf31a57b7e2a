"""bpf(2) by ctypes: what the tests need to see of the kernel with eyes of their own."""
import ctypes
import errno
import os
import platform
import re
import struct

_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "loongarch64": 280, "s390x": 351, "ppc64le": 361}
_NUMBER = _SYSCALL.get(platform.machine())
_libc = ctypes.CDLL(None, use_errno=True)

OBJ_PIN, PROG_QUERY = 6, 16
MAP_CREATE, MAP_LOOKUP, MAP_UPDATE, MAP_DELETE = 0, 1, 2, 3
PROG_TEST_RUN, PROG_GET_NEXT_ID, MAP_GET_NEXT_ID = 10, 11, 12
PROG_GET_FD_BY_ID, MAP_GET_FD_BY_ID, GET_INFO_BY_FD = 13, 14, 15
LINK_GET_FD_BY_ID, LINK_GET_NEXT_ID, ITER_CREATE = 30, 31, 33

MAP_TYPE_HASH, MAP_TYPE_ARRAY = 1, 2
NEXT_ID = {"program": PROG_GET_NEXT_ID, "map": MAP_GET_NEXT_ID, "link": LINK_GET_NEXT_ID}
FD_BY_ID = {"program": PROG_GET_FD_BY_ID, "map": MAP_GET_FD_BY_ID, "link": LINK_GET_FD_BY_ID}


def bpf(command, attributes):
    """One bpf(2) call. attributes: packed bytes, zero-padded here. Returns the result and the attributes after it."""
    buffer = ctypes.create_string_buffer(attributes.ljust(160, b"\0"), 160)
    result = _libc.syscall(_NUMBER, ctypes.c_int(command), buffer, ctypes.c_uint(160))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, "bpf(%d): %s" % (command, os.strerror(code)))
    return result, buffer.raw


def _number(descriptor):
    return descriptor if isinstance(descriptor, int) else descriptor.fileno()


# ---- What exists -----------------------------------------------------------------------------------------------------

def kernel_version():
    """Of the running kernel, as (major, minor)."""
    return tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", os.uname().release).groups())


def ids(kind):
    """Kernel ids of all programs, maps or links."""
    found, last = set(), 0
    while True:
        try:
            _, after = bpf(NEXT_ID[kind], struct.pack("=II", last, 0))
        except OSError as e:
            if e.errno == errno.ENOENT:
                return found
            raise
        last, = struct.unpack_from("=I", after, 4)
        found.add(last)


def open_by_id(kind, number):
    """A new descriptor, which the caller closes."""
    return bpf(FD_BY_ID[kind], struct.pack("=III", number, 0, 0))[0]


def _info(descriptor, size=256):
    info = ctypes.create_string_buffer(size)
    bpf(GET_INFO_BY_FD, struct.pack("=IIQ", _number(descriptor), size, ctypes.addressof(info)))
    return info.raw


def _text(raw):
    return raw.split(b"\0")[0].decode(errors="replace")


def program_info(descriptor):
    raw = _info(descriptor)
    kind, number = struct.unpack_from("=II", raw, 0)
    uid, map_count = struct.unpack_from("=II", raw, 48)
    info = {"type": kind, "id": number, "tag": raw[8:16].hex(), "uid": uid, "name": _text(raw[64:80])}
    if map_count:
        map_ids = (ctypes.c_uint32 * map_count)()
        request = bytearray(256)
        struct.pack_into("=I", request, 52, map_count)
        struct.pack_into("=Q", request, 56, ctypes.addressof(map_ids))
        buffer = ctypes.create_string_buffer(bytes(request), 256)
        bpf(GET_INFO_BY_FD, struct.pack("=IIQ", _number(descriptor), 256, ctypes.addressof(buffer)))
        info["map_ids"] = list(map_ids)
    else:
        info["map_ids"] = []
    return info


def map_info(descriptor):
    raw = _info(descriptor)
    kind, number, key_size, value_size, entries, flags = struct.unpack_from("=6I", raw, 0)
    return {"type": kind, "id": number, "key_size": key_size, "value_size": value_size, "max_entries": entries,
            "flags": flags, "name": _text(raw[24:40])}


def link_info(descriptor):
    kind, number, program = struct.unpack_from("=III", _info(descriptor), 0)
    return {"type": kind, "id": number, "program_id": program}


INFO = {"program": program_info, "map": map_info, "link": link_info}


def describe(kind, number):
    """In words, for messages of failed tests."""
    try:
        descriptor = open_by_id(kind, number)
    except OSError as e:
        return "%s %d (%s)" % (kind, number, e.strerror)
    try:
        info = INFO[kind](descriptor)
        return "%s %d %s (type %d)" % (kind, number, info.get("name", ""), info["type"])
    finally:
        os.close(descriptor)


def has_tcx(interface):
    """Whether the kernel has tcx; by the number of an interface."""
    try:
        bpf(PROG_QUERY, struct.pack("=II", interface, 46))  # BPF_TCX_INGRESS
    except OSError as e:
        return e.errno != errno.EINVAL
    return True


# ---- Maps and programs -----------------------------------------------------------------------------------------------

def map_create(kind, key_size, value_size, max_entries):
    """A new map's descriptor, which the caller closes."""
    return bpf(MAP_CREATE, struct.pack("=5I", kind, key_size, value_size, max_entries, 0))[0]


def map_lookup(descriptor, key, value_size=None):
    """The value at key (bytes), or None."""
    if value_size is None:
        value_size = map_info(descriptor)["value_size"]
    key_buffer = ctypes.create_string_buffer(key, len(key))
    value = ctypes.create_string_buffer(value_size)
    try:
        bpf(MAP_LOOKUP, struct.pack("=IIQQQ", _number(descriptor), 0, ctypes.addressof(key_buffer),
                                    ctypes.addressof(value), 0))
    except OSError as e:
        if e.errno == errno.ENOENT:
            return None
        raise
    return value.raw


def map_update(descriptor, key, value):
    key_buffer = ctypes.create_string_buffer(key, len(key))
    value_buffer = ctypes.create_string_buffer(value, len(value))
    bpf(MAP_UPDATE, struct.pack("=IIQQQ", _number(descriptor), 0, ctypes.addressof(key_buffer),
                                ctypes.addressof(value_buffer), 0))


def pin(descriptor, path):
    buffer = ctypes.create_string_buffer(path.encode())
    bpf(OBJ_PIN, struct.pack("=QI", ctypes.addressof(buffer), _number(descriptor)))


def map_delete(descriptor, key):
    key_buffer = ctypes.create_string_buffer(key, len(key))
    bpf(MAP_DELETE, struct.pack("=IIQQQ", _number(descriptor), 0, ctypes.addressof(key_buffer), 0, 0))


def counter(descriptor):
    """Entry 0 of the map `counter` that all test programs have: how often they ran."""
    return struct.unpack("=Q", map_lookup(descriptor, struct.pack("=I", 0), 8))[0]


def test_run(descriptor, packet=b"\0" * 64):
    """Runs a program that takes packets once; its return value."""
    data = ctypes.create_string_buffer(packet, len(packet))
    _, after = bpf(PROG_TEST_RUN, struct.pack("=IIIIQQII", _number(descriptor), 0, len(packet), 0,
                                              ctypes.addressof(data), 0, 1, 0))
    return struct.unpack_from("=I", after, 4)[0]


def iterate(link):
    """Everything that an iterator program prints, from its link's descriptor."""
    descriptor = bpf(ITER_CREATE, struct.pack("=II", _number(link), 0))[0]
    with os.fdopen(descriptor, "rb", buffering=0) as f:
        return f.read()
