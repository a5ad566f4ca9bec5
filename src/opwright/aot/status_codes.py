"""Status codes, which the functions of a library return: their names in C and their words.

Lives here: the codes, `STATUS_NAMES`, `STATUS_TEXTS`. Not here: the code that returns them (modules.py, c_source.py).
"""

OK, OUT_OF_RANGE, ARENA_TOO_SMALL, MISALIGNED, NO_MEMORY, NOT_ASSIGNED, OUT_OF_BOUNDS, OTHER_WEIGHTS, CUT_WEIGHTS = (
    range(9)
)
UNSUPPORTED_LEVEL, UNFINISHED = 9, 10

STATUS_NAMES = {
    OK: "OK",
    OUT_OF_RANGE: "OUT_OF_RANGE",
    ARENA_TOO_SMALL: "ARENA_TOO_SMALL",
    MISALIGNED: "MISALIGNED",
    NO_MEMORY: "NULL_ADDRESS",
    NOT_ASSIGNED: "NOT_ASSIGNED",
    OUT_OF_BOUNDS: "OUT_OF_BOUNDS",
    OTHER_WEIGHTS: "OTHER_WEIGHTS",
    CUT_WEIGHTS: "WEIGHTS_TOO_SHORT",
    UNSUPPORTED_LEVEL: "UNSUPPORTED_LEVEL",
    UNFINISHED: "UNFINISHED",
}
STATUS_TEXTS = {
    OK: "ok",
    OUT_OF_RANGE: "an index points outside of what it indexes, or a range has more numbers than its bound",
    ARENA_TOO_SMALL: "the arena is smaller than ARENA_SIZE, or for several threads than ARENA_SIZE_FOR",
    MISALIGNED: "an address is not aligned: the arena to ARENA_ALIGN, a file of weights to WEIGHTS_ALIGN, tensors to "
    "their elements",
    NO_MEMORY: "an address is null",
    NOT_ASSIGNED: "a variable is read that no run has assigned",
    OUT_OF_BOUNDS: "a size is outside of its bounds, or none that the model can have",
    OTHER_WEIGHTS: "the weights are not those of this library: another model, target or version, or no weights at all",
    CUT_WEIGHTS: "the weights end before their last byte: the file is truncated",
    UNSUPPORTED_LEVEL: "the processor lacks the instructions of this level, or of all levels of the library",
    UNFINISHED: "parallel_for returned before it had called its task for each index",
}
