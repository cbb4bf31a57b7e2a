// A type of the kernel with a field that no kernel has.
#pragma once

#include "kernel_types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___with_wishes {
  int pid;
  int field_that_no_kernel_has;
};

#pragma clang attribute pop
