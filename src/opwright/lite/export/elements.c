/* Loops over the elements of inputs that are broadcast: axes of one step are one axis, the last is the loop's own. */

enum { OW_MAX_RANK = 64 };

typedef struct ow_axes {
  int rank;
  int64_t sizes[OW_MAX_RANK];
  int64_t steps[OW_INPUTS][OW_MAX_RANK]; /* in elements; 0 where an input has size 1 */
} ow_axes;

/* ranks, dims: of each input. Sizes of the result before axes are joined are written to `shape`.
 * Gives the result's rank, or -1 where the inputs do not fit together. */
static inline int ow_broadcast(const int *ranks, int64_t (*dims)[OW_MAX_RANK], int64_t *shape, ow_axes *axes) {
  int64_t next[OW_INPUTS];
  int rank = 0;
  for (int k = 0; k < OW_INPUTS; ++k) {
    rank = ranks[k] > rank ? ranks[k] : rank;
    next[k] = 1;
  }
  int from = OW_MAX_RANK; /* axes are filled from the last one on */
  for (int axis = rank - 1; axis >= 0; --axis) {
    int64_t size = 1, steps[OW_INPUTS];
    for (int k = 0; k < OW_INPUTS; ++k) {
      const int own = axis - (rank - ranks[k]);
      const int64_t dim = own < 0 ? 1 : dims[k][own];
      if (dim != 1 && size != 1 && dim != size) return -1;
      size = dim != 1 ? dim : size;
    }
    shape[axis] = size;
    for (int k = 0; k < OW_INPUTS; ++k) {
      const int own = axis - (rank - ranks[k]);
      const int64_t dim = own < 0 ? 1 : dims[k][own];
      steps[k] = dim == 1 ? 0 : next[k];
      next[k] = (int64_t)((uint64_t)next[k] * (uint64_t)dim); /* of tensors without elements it may wrap */
    }
    if (size == 1) continue;
    bool joins = from < OW_MAX_RANK;
    for (int k = 0; joins && k < OW_INPUTS; ++k) {
      joins = (uint64_t)steps[k] == (uint64_t)axes->steps[k][from] * (uint64_t)axes->sizes[from];
    }
    if (joins) {
      axes->sizes[from] = (int64_t)((uint64_t)axes->sizes[from] * (uint64_t)size);
      continue;
    }
    --from;
    axes->sizes[from] = size;
    for (int k = 0; k < OW_INPUTS; ++k) axes->steps[k][from] = steps[k];
  }
  if (from == OW_MAX_RANK) { /* one element */
    --from;
    axes->sizes[from] = 1;
    for (int k = 0; k < OW_INPUTS; ++k) axes->steps[k][from] = 0;
  }
  axes->rank = OW_MAX_RANK - from;
  for (int axis = 0; axis < axes->rank; ++axis) {
    axes->sizes[axis] = axes->sizes[from + axis];
    for (int k = 0; k < OW_INPUTS; ++k) axes->steps[k][axis] = axes->steps[k][from + axis];
  }
  return rank;
}
