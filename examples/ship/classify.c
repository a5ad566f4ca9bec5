/* Which side of a picture is bright? classify FILE.pgm (16 x 16, binary), or without one, four pictures of its own.

   Two libraries of one model, float and int8, in one program: each has its header, its arena and its function. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shapes_f32.h"
#include "shapes_int8.h"

enum { SIZE = 16, PIXELS = SIZE * SIZE, CLASSES = 4 };

static const char *const names[CLASSES] = {"left", "right", "above", "below"};

/* Memory of the runs. Both models use it in turn, so the larger size is enough. */
static union {
  uint8_t f32[SHAPES_F32_ARENA_SIZE + SHAPES_F32_ARENA_ALIGN];
  uint8_t int8[SHAPES_INT8_ARENA_SIZE + SHAPES_INT8_ARENA_ALIGN];
} memory;

static void *aligned(void *address, uintptr_t alignment) {
  return (void *)(((uintptr_t)address + alignment - 1u) / alignment * alignment);
}

static int largest(const float *scores) {
  int i, best = 0;
  for (i = 1; i < CLASSES; i++) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

static int run_float(const float *image, float *scores) {
  struct shapes_f32_inputs inputs;
  struct shapes_f32_outputs outputs;
  inputs.image = image;
  outputs.scores = scores;
  return shapes_f32_run(&inputs, &outputs, aligned(memory.f32, SHAPES_F32_ARENA_ALIGN), SHAPES_F32_ARENA_SIZE);
}

/* The elements of a quantized tensor represent scale * (q - zero_point): numbers of the header. */
static int run_int8(const float *image, float *scores) {
  int8_t pixels[PIXELS], results[CLASSES];
  struct shapes_int8_inputs inputs;
  struct shapes_int8_outputs outputs;
  int i, status;
  for (i = 0; i < PIXELS; i++) {
    float q = floorf(image[i] / (float)SHAPES_INT8_IMAGE_SCALE + 0.5f) + (float)SHAPES_INT8_IMAGE_ZERO_POINT;
    pixels[i] = (int8_t)(q < -128.0f ? -128.0f : q > 127.0f ? 127.0f : q);
  }
  inputs.image = pixels;
  outputs.scores = results;
  status = shapes_int8_run(&inputs, &outputs, aligned(memory.int8, SHAPES_INT8_ARENA_ALIGN), SHAPES_INT8_ARENA_SIZE);
  for (i = 0; i < CLASSES; i++) {
    scores[i] = (float)SHAPES_INT8_SCORES_SCALE * (float)(results[i] - SHAPES_INT8_SCORES_ZERO_POINT);
  }
  return status;
}

static int classify(const char *name, const float *image) {
  float exact[CLASSES], quantized[CLASSES];
  int status = run_float(image, exact);
  if (!status) status = run_int8(image, quantized);
  if (status) {
    fprintf(stderr, "status %d\n", status);
    return 0;
  }
  printf("%s: float %s %.3f, int8 %s %.3f\n", name, names[largest(exact)], (double)exact[largest(exact)],
         names[largest(quantized)], (double)quantized[largest(quantized)]);
  return 1;
}

static int read_pgm(const char *path, float *image) {
  uint8_t bytes[PIXELS];
  int width = 0, height = 0, limit = 0, i;
  FILE *file = fopen(path, "rb");
  int good = file && fscanf(file, "P5 %d %d %d", &width, &height, &limit) == 3 && fgetc(file) != EOF;
  good = good && width == SIZE && height == SIZE && limit == 255 && fread(bytes, 1, PIXELS, file) == PIXELS;
  if (file) fclose(file);
  for (i = 0; good && i < PIXELS; i++) image[i] = (float)bytes[i] / 255.0f;
  return good;
}

int main(int argc, char **argv) {
  float image[PIXELS];
  int side, row, column;
  if (argc > 1) {
    if (!read_pgm(argv[1], image)) {
      fprintf(stderr, "%s: no binary PGM of 16 x 16 pixels\n", argv[1]);
      return EXIT_FAILURE;
    }
    return classify(argv[1], image) ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  for (side = 0; side < CLASSES; side++) {
    for (row = 0; row < SIZE; row++) {
      for (column = 0; column < SIZE; column++) {
        int at = side < 2 ? column : row;
        image[row * SIZE + column] = (side % 2 ? at >= SIZE - 5 : at < 5) ? 1.0f : 0.1f;
      }
    }
    if (!classify(names[side], image)) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
