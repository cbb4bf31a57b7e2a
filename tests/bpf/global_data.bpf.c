// Global variables of every sort. Running `report` (a socket filter: BPF_PROG_TEST_RUN will do) copies what the program
// sees into entry 0 of map `seen`, where a test reads it back.
#include "counter.h"

#include <stdbool.h>

enum color { RED, GREEN = 7, BLUE = -3 };

enum wide_color { WIDE_SMALL = 1, WIDE_LARGE = 0x123456789abcULL };

struct point {
  __s32 x;
  __s32 y;
};

struct shape {
  char label[8];
  struct point corner;
  struct point path[2];
  enum color color;
  bool filled;
};

// .data
__u8 data_u8 = 1;
__s8 data_s8 = -1;
__u16 data_u16 = 2;
__s16 data_s16 = -2;
__u32 data_u32 = 3;
__s32 data_s32 = -3;
__u64 data_u64 = 4;
__s64 data_s64 = -4;
bool data_bool = true;
char data_text[16] = "unchanged";
enum color data_color = GREEN;
enum wide_color data_wide_color = WIDE_LARGE;
__u32 data_array[4] = {10, 20, 30, 40};
struct shape data_shape = {.label = "square", .corner = {1, 2}, .path = {{3, 4}, {5, 6}}, .color = RED, .filled = true};

// .bss
__u64 bss_u64;
char bss_text[8];
struct point bss_point;

// .rodata: the verifier knows these as constants
const volatile __u32 rodata_u32 = 100;
const volatile bool rodata_bool = false;
const volatile char rodata_text[8] = "fixed";
const volatile struct point rodata_point = {7, 8};

// A custom section
__u32 custom_u32 SEC(".data.custom") = 77;

struct seen {
  __u8 data_u8;
  __s8 data_s8;
  __u16 data_u16;
  __s16 data_s16;
  __u32 data_u32;
  __s32 data_s32;
  __u64 data_u64;
  __s64 data_s64;
  bool data_bool;
  char data_text[16];
  enum color data_color;
  enum wide_color data_wide_color;
  __u32 data_array[4];
  struct shape data_shape;
  __u64 bss_u64;
  char bss_text[8];
  struct point bss_point;
  __u32 rodata_u32;
  bool rodata_bool;
  char rodata_text[8];
  struct point rodata_point;
  __u32 custom_u32;
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct seen);
} seen SEC(".maps");

SEC("socket")

int report(struct __sk_buff* packet) {
  __u32 first = 0;
  struct seen* out = bpf_map_lookup_elem(&seen, &first);
  if (!out)
    return 0;
  countRun();
  out->data_u8 = data_u8;
  out->data_s8 = data_s8;
  out->data_u16 = data_u16;
  out->data_s16 = data_s16;
  out->data_u32 = data_u32;
  out->data_s32 = data_s32;
  out->data_u64 = data_u64;
  out->data_s64 = data_s64;
  out->data_bool = data_bool;
  __builtin_memcpy(out->data_text, data_text, sizeof(data_text));
  out->data_color = data_color;
  out->data_wide_color = data_wide_color;
  __builtin_memcpy(out->data_array, data_array, sizeof(data_array));
  out->data_shape = data_shape;
  out->bss_u64 = bss_u64;
  __builtin_memcpy(out->bss_text, bss_text, sizeof(bss_text));
  out->bss_point = bss_point;
  out->rodata_u32 = rodata_u32;
  out->rodata_bool = rodata_bool;
  for (int i = 0; i < (int)sizeof(rodata_text); ++i)
    out->rodata_text[i] = rodata_text[i];
  out->rodata_point.x = rodata_point.x;
  out->rodata_point.y = rodata_point.y;
  out->custom_u32 = custom_u32;
  bss_u64++;
  return 0;
}
