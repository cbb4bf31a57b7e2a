#!/usr/bin/env python3
"""Writes the C source of one benchmark object.

usage: make_bench_source.py one|many30|hundred|wide500 OUTPUT

    one      one tp_btf program without a CO-RE relocation: what is measured is the look-up of its attach target
    many30   30 tp_btf programs, 15 relocations each, against 3 types
    hundred  100 raw_tp programs, 20 relocations each, against 20 types
    wide500  one raw_tp program, 500 relocations against 100 types

The relocated types stand in bench_types.txt beside this script. Each relocation is that of a real read of a field.
"""
import os
import sys

# name: (section, programs, types, relocations of each program)
CASES = {
    "one": ("tp_btf/sched_process_exec", 1, 0, 0),
    "many30": ("tp_btf/sched_process_exec", 30, 3, 15),
    "hundred": ("raw_tp/sched_process_exec", 100, 20, 20),
    "wide500": ("raw_tp/sched_process_exec", 1, 100, 500),
}
C_TYPES = {"ptr": "void*", "u8": "__u8", "u16": "__u16", "u32": "__u32", "u64": "__u64"}


def read_types(path, count):
    with open(path, encoding="utf-8") as lines:
        words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    if len(words) < count:
        sys.exit("%s: %d types are needed, %d are there" % (path, count, len(words)))
    return [(w[0], [tuple(field.split(":")) for field in w[1:]]) for w in words[:count]]


def choose_reads(types, program, count):
    """The fields that a program reads: each type in turn, another field in each round and program."""
    reads = []
    for i in range(count):
        name, fields = types[i % len(types)]
        reads.append((name, fields[(i // len(types) + program) % len(fields)][0]))
    return reads


def source(case, types):
    section, programs, _, relocations = CASES[case]
    out = ["// Made by make_bench_source.py: benchmark %s" % case, '#include "counter.h"', ""]
    if types:
        out.append("#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)")
        for name, fields in types:
            out += ["struct %s {" % name] + ["  %s %s;" % (C_TYPES[kind], field) for field, kind in fields] + ["};"]
        out += ["#pragma clang attribute pop", ""]
    for program in range(programs):
        out += ['SEC("%s")' % section, "int program_%d(void* context) {" % program, "  countRun();"]
        if relocations:
            out += ["  void* base = (void*)bpf_get_current_task();", "  __u64 value;"]
        for name, field in choose_reads(types, program, relocations):
            out.append("  bpf_probe_read_kernel(&value, sizeof(value), &((struct %s*)base)->%s);" % (name, field))
        out += ["  return 0;", "}", ""]
    return "\n".join(out)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in CASES:
        sys.exit(__doc__)
    case, output = sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    types = read_types(os.path.join(here, "bench_types.txt"), CASES[case][2])
    with open(output, "w", encoding="utf-8") as f:
        f.write(source(case, types))


if __name__ == "__main__":
    main()
