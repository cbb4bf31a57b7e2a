"""Writes a BPF program's source with more programs and maps than one message of a Unix socket takes descriptors (253)."""
import sys

PROGRAMS, MAPS = 400, 300

with open(sys.argv[1], "w") as out:
    out.write('#include "counter.h"\n')
    for i in range(MAPS):
        out.write("struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); }"
                  ' map_%d SEC(".maps");\n' % i)
    for i in range(PROGRAMS):
        out.write('SEC("socket") int program_%d(struct __sk_buff* packet) { __u32 key = 0;'
                  " __u64* value = bpf_map_lookup_elem(&map_%d, &key); return value ? *value + %d : 0; }\n"
                  % (i, i % MAPS, i))
