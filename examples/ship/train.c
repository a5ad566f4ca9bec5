/* Trains on the device: 200 steps of gradient descent by the library that training.py writes.

   cc train.c atan/libatan.a -Iatan -lm -o train && ./train */
#include "atan.h"

#ifdef BOARD /* a microcontroller in an emulator: numbers are printed as their bits */
#include "board.h"
static void show(float value) {
  union {
    float number;
    int32_t bits;
  } both;
  both.number = value;
  print_number(both.bits);
}
#else
#include <stdio.h>
static void show(float value) { printf("%.9g\n", (double)value); }
#endif

static uint8_t memory[ATAN_ARENA_SIZE + ATAN_ARENA_ALIGN];
static struct atan_state state;

int main(void) {
  static const float x[] = {-8.0f, 0.5f, 2.0f, 2.2f, 201.0f};
  static const float y[] = {-1.4288993f, 0.98279375f, 1.2490457f, 1.2679114f, 1.5658458f};
  float loss, fitted[5];
  struct atan_train_inputs samples;
  struct atan_train_outputs losses;
  struct atan_predict_inputs points;
  struct atan_predict_outputs results;
  uint8_t *arena = memory + (ATAN_ARENA_ALIGN - (uintptr_t)memory % ATAN_ARENA_ALIGN) % ATAN_ARENA_ALIGN;
  int i;
  samples.x = points.x = x;
  samples.y = y;
  losses.loss = &loss;
  results.y = fitted;
  atan_reset(&state);
  for (i = 0; i < 200; i++) {
    if (atan_train(&samples, &losses, &state, arena, ATAN_ARENA_SIZE)) return 1;
    if (i % 20 == 0) show(loss);
  }
  if (atan_predict(&points, &results, &state, arena, ATAN_ARENA_SIZE)) return 1;
  for (i = 0; i < 5; i++) show(fitted[i]);
  return 0;
}
