/* Start of a program on an emulated Cortex-M, and output through the debugger (semihosting). */
#include "board.h"

extern char stack_top[];
int main(void);

static int call_host(int operation, const void *argument) {
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void print(const char *text) { call_host(4, text); }

void print_number(int32_t number) {
  char text[14] = {0};
  int i = 12;
  uint32_t rest = number < 0 ? 0u - (uint32_t)number : (uint32_t)number;
  text[i] = ' ';
  do {
    text[--i] = (char)('0' + rest % 10u);
    rest /= 10u;
  } while (rest);
  if (number < 0) text[--i] = '-';
  print(text + i);
}

#define SYSTICK ((volatile uint32_t *)0xE000E010)

void start_ticks(void) {
  SYSTICK[1] = 0xFFFFFFu;
  SYSTICK[2] = 0;
  SYSTICK[0] = 5; /* of the processor's clock */
}

uint32_t ticks(void) { return 0xFFFFFFu - SYSTICK[2]; }

void reset(void) {
#ifdef __ARM_FP
  *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* CPACR: the floating-point unit is on */
  __asm__ volatile("dsb; isb");
#endif
  main();
  call_host(0x18, (const void *)0x20026);
  for (;;) {
  }
}

static void fault(void) {
  print("fault\n");
  call_host(0x18, (const void *)0x20023);
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    stack_top, reset, fault, fault, fault, fault, fault, fault, 0, 0, 0, fault, fault, 0, fault, fault};
