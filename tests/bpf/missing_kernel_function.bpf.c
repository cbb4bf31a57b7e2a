// Needs a function and a variable that no kernel has.
#include "counter.h"

int function_that_no_kernel_has(int number) __ksym;
extern const int variable_that_no_kernel_has __ksym;

SEC("tp_btf/task_newtask")

int on_new_task(void* context) {
  countRun();
  return function_that_no_kernel_has(1) + variable_that_no_kernel_has;
}
