#!/usr/bin/env python3
"""Makes bad BPF objects of a good one.

usage: make_bad_objects.py OBJECT OUTDIR [--big-endian FILE]

OBJECT is a little-endian BPF object with BTF, CO-RE relocations and a license. OUTDIR gets one file for each way to be
bad (see BAD below), and big_endian.o, a copy of FILE, if that is given. Only the standard library is used.
"""
import argparse
import os
import shutil
import struct

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
EM_X86_64 = 62
SHT_PROGBITS = 1
SHT_NULL = 0
SHF_WRITE_ALLOC = 3


class Elf:
    """Sections of a 64-bit little-endian ELF file, which can be renamed, emptied, changed, added, and written again."""

    def __init__(self, data):
        self.header = list(HEADER.unpack_from(data))
        if self.header[0][:6] != b"\x7fELF\x02\x01":
            raise SystemExit("not a 64-bit little-endian ELF file")
        at, count, names = self.header[6], self.header[12], self.header[13]
        self.sections = []
        for i in range(count):
            fields = list(SECTION.unpack_from(data, at + i * SECTION.size))
            content = b"" if fields[1] in (SHT_NULL, 8) else data[fields[4]:fields[4] + fields[5]]
            self.sections.append([None, fields, content])
        strings = self.sections[names][2]
        for section in self.sections:
            start = section[1][0]
            section[0] = strings[start:strings.index(b"\0", start)].decode()

    def find(self, name):
        for section in self.sections:
            if section[0] == name:
                return section
        raise SystemExit("the object has no section %s" % name)

    def neutralise(self, name):
        """Takes a section out of a loader's sight; section indices stay."""
        section = self.find(name)
        section[0] = "removed" if not name.startswith(".rel") else ".removed"
        section[1][1] = SHT_NULL
        section[2] = b""

    def write(self):
        strings = self.sections[self.header[13]][2]  # kept, as clang lets symbols have their names there too
        for section in self.sections:
            section[1][0] = len(strings) if section[0] else 0
            strings += section[0].encode() + b"\0" if section[0] else b""
        self.sections[self.header[13]][2] = strings
        out = bytearray(HEADER.size)
        for _, fields, content in self.sections:
            if fields[1] in (SHT_NULL, 8):
                continue
            out += b"\0" * (-len(out) % 8)
            fields[4], fields[5] = len(out), len(content)
            out += content
        out += b"\0" * (-len(out) % 8)
        self.header[6], self.header[12] = len(out), len(self.sections)
        out[:HEADER.size] = HEADER.pack(*self.header)
        for _, fields, _ in self.sections:
            out += SECTION.pack(*fields)
        return bytes(out)


def edited(data, change):
    elf = Elf(data)
    change(elf)
    return elf.write()


def with_machine(machine):
    def change(elf):
        elf.header[2] = machine
    return change


def without(*names):
    def change(elf):
        for name in names:
            elf.neutralise(name)
            if any(s[0] == ".rel" + name for s in elf.sections):
                elf.neutralise(".rel" + name)
    return change


def with_unknown_program_section(elf):
    """A program whose section name no loader knows."""
    for section in elf.sections:
        if section[1][1] == SHT_PROGBITS and section[1][2] & 4:  # SHF_EXECINSTR
            if section[2]:
                section[0] = "no_such_program_type"


def with_legacy_maps(elf):
    """A section of struct bpf_map_def, as loaders took it before BTF-defined maps."""
    definition = struct.pack("<IIIII", 2, 4, 8, 1, 0)
    elf.sections.append(["maps", [0, SHT_PROGBITS, SHF_WRITE_ALLOC, 0, 0, len(definition), 0, 0, 4, 0], definition])


def with_changed(name, change_content):
    def change(elf):
        section = elf.find(name)
        section[2] = change_content(section[2])
    return change


def overwrite(offset, replacement):
    return lambda content: content[:offset] + replacement + content[offset + len(replacement):]


def with_wrong_values(elf):
    """Relocated instructions that hold another value than the object's types say."""
    ext = elf.find(".BTF.ext")[2]
    length, = struct.unpack_from("<I", ext, 4)
    relocations, = struct.unpack_from("<I", ext, 24)  # struct btf_ext_header's core_relo_off
    at = length + relocations
    size, _, count = struct.unpack_from("<III", ext, at)
    code = elf.find("tp_btf/sched_process_exec")
    for i in range(count):
        instruction, = struct.unpack_from("<I", ext, at + 12 + i * size)
        # The lowest byte of the offset of a load, and of the immediate of anything else.
        place = instruction + (2 if code[2][instruction] & 7 == 1 else 4)
        code[2] = code[2][:place] + bytes([code[2][place] ^ 1]) + code[2][place + 1:]


def truncated(part):
    return lambda data: data[:int(len(data) * part)]


# File name: function from the good object's bytes to the bad one's.
BAD = {
    "empty.o": lambda data: b"",
    "not_elf.o": lambda data: b"#!/bin/sh\nexit 0\n" * 16,
    "wrong_machine.o": lambda data: edited(data, with_machine(EM_X86_64)),
    "no_license.o": lambda data: edited(data, without("license")),
    "no_btf.o": lambda data: edited(data, without(".BTF", ".BTF.ext")),
    "no_btf_ext.o": lambda data: edited(data, without(".BTF.ext")),
    "unknown_section.o": lambda data: edited(data, with_unknown_program_section),
    "legacy_maps.o": lambda data: edited(data, with_legacy_maps),
    "btf_bad_magic.o": lambda data: edited(data, with_changed(".BTF", overwrite(0, b"\0\0"))),
    "btf_cut.o": lambda data: edited(data, with_changed(".BTF", lambda c: c[:len(c) // 2])),
    "btf_string_offset_absurd.o": lambda data: edited(data, with_changed(".BTF", overwrite(16, b"\xff" * 4))),
    "btf_ext_bad_magic.o": lambda data: edited(data, with_changed(".BTF.ext", overwrite(0, b"\0\0"))),
    "btf_ext_cut.o": lambda data: edited(data, with_changed(".BTF.ext", lambda c: c[:len(c) // 2])),
    "program_cut.o": lambda data: edited(data, with_changed("tp_btf/sched_process_exec", lambda c: c[:-4])),
    "relocation_of_wrong_value.o": lambda data: edited(data, with_wrong_values),
    "truncated_header.o": lambda data: data[:40],
    "truncated_quarter.o": truncated(0.25),
    "truncated_half.o": truncated(0.5),
    "truncated_last_byte.o": lambda data: data[:-1],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("object")
    parser.add_argument("outdir")
    parser.add_argument("--big-endian")
    arguments = parser.parse_args()
    with open(arguments.object, "rb") as f:
        good = f.read()
    os.makedirs(arguments.outdir, exist_ok=True)
    for name, make in BAD.items():
        with open(os.path.join(arguments.outdir, name), "wb") as f:
            f.write(make(good))
    # The control: read and written again, unchanged in meaning. It must load.
    with open(os.path.join(arguments.outdir, "..", "rewritten.o"), "wb") as f:
        f.write(edited(good, lambda elf: None))
    if arguments.big_endian:
        shutil.copyfile(arguments.big_endian, os.path.join(arguments.outdir, "big_endian.o"))


if __name__ == "__main__":
    main()
