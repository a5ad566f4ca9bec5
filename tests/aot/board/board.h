#include <stdint.h>

void print(const char *text);
void print_number(int32_t number);
void start_ticks(void); /* of 40 instructions under qemu -icount shift=0 with a clock of 25 MHz */
uint32_t ticks(void);
