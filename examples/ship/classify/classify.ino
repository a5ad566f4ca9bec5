// Which side of a picture is bright? Pictures of 16 x 16 pixels, a byte each, come over the serial line; before them the
// sketch classifies four of its own.
//
//   python models.py libraries host arduino
//
// writes the library shapes_int8: move libraries/shapes_int8 to the folder libraries of the sketchbook.
#include <math.h>
#include <shapes_int8.h>

static const int SIZE = 16, PIXELS = SIZE * SIZE, CLASSES = 4;
static const char *const names[CLASSES] = {"left", "right", "above", "below"};

static uint8_t memory[SHAPES_INT8_ARENA_SIZE + SHAPES_INT8_ARENA_ALIGN];
static int8_t image[SHAPES_INT8_IMAGE_SIZE], scores[SHAPES_INT8_SCORES_SIZE];

// The quantized model takes q = x / scale + zero_point, of pixels from 0 to 1.
static int8_t quantized(float pixel) {
  float q = floorf(pixel / (float)SHAPES_INT8_IMAGE_SCALE + 0.5f) + (float)SHAPES_INT8_IMAGE_ZERO_POINT;
  return (int8_t)(q < -128.0f ? -128.0f : q > 127.0f ? 127.0f : q);
}

static void classify() {
  struct shapes_int8_inputs inputs;
  struct shapes_int8_outputs outputs;
  inputs.image = image;
  outputs.scores = scores;
  uintptr_t arena =
      ((uintptr_t)memory + SHAPES_INT8_ARENA_ALIGN - 1u) / SHAPES_INT8_ARENA_ALIGN * SHAPES_INT8_ARENA_ALIGN;
  int status = shapes_int8_run(&inputs, &outputs, (void *)arena, SHAPES_INT8_ARENA_SIZE), best = 0;
  if (status) {
    Serial.print("status ");
    Serial.println(status);
    return;
  }
  for (int i = 1; i < CLASSES; i++) {
    if (scores[i] > scores[best]) best = i;
  }
  Serial.print(names[best]);
  Serial.print(" ");
  Serial.println((double)SHAPES_INT8_SCORES_SCALE * (scores[best] - SHAPES_INT8_SCORES_ZERO_POINT));
}

void setup() {
  Serial.begin(115200);
  for (int side = 0; side < CLASSES; side++) {
    for (int i = 0; i < PIXELS; i++) {
      int at = side < 2 ? i % SIZE : i / SIZE;
      image[i] = quantized((side % 2 ? at >= SIZE - 5 : at < 5) ? 1.0f : 0.1f);
    }
    classify();
  }
}

void loop() {
  static int count = 0;
  while (Serial.available()) {
    image[count++] = quantized((float)Serial.read() / 255.0f);
    if (count == PIXELS) {
      count = 0;
      classify();
    }
  }
}
