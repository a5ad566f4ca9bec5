; Calls of eager tensors as functions of Python's (PyCFunction): a loop of NumPy's over their arrays, and its result as a
; tensor. What they decline they leave to Python: they return None.
;
; `self` is an int, the address of the table of ufunc_calls.py.

%row = type { ptr, ptr, ptr, ptr, ptr, ptr, i64, i64 }  ; of the inputs: dtype of tensors, dtype of NumPy; of the result:
;                                   the same; the loop and its data; bytes of an element of the inputs and of the result
%table = type { ptr, ptr, i64, i64, i64, ptr, i64, i64, i64, i64, i64, [0 x %row] }  ; type of tensors, type of arrays;
;                  words of a tensor: array, dtype, identity; None; limit of the work; number of inputs; of a product,
;                  whether its factors are transposed; number of rows; rows

declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyArray_Empty(i32, ptr, ptr, i32)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @PyErr_Clear()

; Where the functions below are: the one that a loader looks up.
define ptr @ufunc_calls(i64 %which) {
  %at = getelementptr [2 x ptr], ptr @functions, i64 0, i64 %which
  %function = load ptr, ptr %at
  ret ptr %function
}
@functions = internal constant [2 x ptr] [ptr @elementwise, ptr @product]

; An element-wise function of one or two tensors: dense, of one shape, or one of them a scalar; `limit` elements at most.
define internal ptr @elementwise(ptr %self, ptr %arguments, i64 %count) {
entry:
  %addresses = alloca [3 x ptr]
  %steps = alloca [3 x i64]
  %n.ptr = alloca i64
  %table = call ptr @PyLong_AsVoidPtr(ptr %self)
  %inputs = call i64 @word(ptr %table, i64 7)
  %expected = icmp eq i64 %count, %inputs
  br i1 %expected, label %operands, label %declined

operands:  ; y is x where there is one input
  %last = sub i64 %count, 1
  %x = call ptr @pointer(ptr %arguments, i64 0)
  %y = call ptr @pointer(ptr %arguments, i64 %last)
  %row = call ptr @row_of(ptr %table, ptr %x, ptr %y)
  %unknown = icmp eq ptr %row, null
  br i1 %unknown, label %declined, label %ranks

ranks:
  %size = call i64 @word(ptr %row, i64 6)
  %array.word = call i64 @word(ptr %table, i64 2)
  %x.array = call ptr @pointer(ptr %x, i64 %array.word)
  %y.array = call ptr @pointer(ptr %y, i64 %array.word)
  %x.rank = call i32 @rank(ptr %x.array)
  %y.rank = call i32 @rank(ptr %y.array)
  %x.sizes = call ptr @pointer(ptr %x.array, i64 ARRAY_SIZES)
  %y.sizes = call ptr @pointer(ptr %y.array, i64 ARRAY_SIZES)
  %same.rank = icmp eq i32 %x.rank, %y.rank
  br i1 %same.rank, label %axis, label %scalars

axis:
  %k = phi i32 [ 0, %ranks ], [ %k.next, %same ]
  %more.axes = icmp slt i32 %k, %x.rank
  br i1 %more.axes, label %sizes, label %shaped

sizes:
  %k.wide = zext i32 %k to i64
  %x.size = call i64 @word(ptr %x.sizes, i64 %k.wide)
  %y.size = call i64 @word(ptr %y.sizes, i64 %k.wide)
  %same.size = icmp eq i64 %x.size, %y.size
  br i1 %same.size, label %same, label %declined

same:
  %k.next = add i32 %k, 1
  br label %axis

scalars:
  %y.scalar = icmp eq i32 %y.rank, 0
  br i1 %y.scalar, label %shaped, label %scalar.first

scalar.first:
  %x.scalar = icmp eq i32 %x.rank, 0
  br i1 %x.scalar, label %shaped, label %declined

shaped:  ; the result has the shape of the operand that is no scalar
  %rank = phi i32 [ %x.rank, %axis ], [ %x.rank, %scalars ], [ %y.rank, %scalar.first ]
  %shape = phi ptr [ %x.sizes, %axis ], [ %x.sizes, %scalars ], [ %y.sizes, %scalar.first ]
  %x.step = phi i64 [ %size, %axis ], [ %size, %scalars ], [ 0, %scalar.first ]
  %y.step = phi i64 [ %size, %axis ], [ 0, %scalars ], [ %size, %scalar.first ]
  br label %count.axis

count.axis:
  %a = phi i32 [ 0, %shaped ], [ %a.next, %count.size ]
  %n = phi i64 [ 1, %shaped ], [ %n.next, %count.size ]
  %more.counted = icmp slt i32 %a, %rank
  br i1 %more.counted, label %count.size, label %counted

count.size:
  %a.wide = zext i32 %a to i64
  %a.size = call i64 @word(ptr %shape, i64 %a.wide)
  %n.next = mul i64 %n, %a.size
  %a.next = add i32 %a, 1
  br label %count.axis

counted:
  %is.small = call i1 @within(ptr %table, i64 %n)
  br i1 %is.small, label %result, label %declined

result:
  %out = call ptr @empty(ptr %row, i32 %rank, ptr %shape)
  %out.failed = icmp eq ptr %out, null
  br i1 %out.failed, label %declined, label %run

run:
  call void @set_address(ptr %addresses, i64 0, ptr %x.array)
  call void @set_address(ptr %addresses, i64 1, ptr %y.array)
  call void @set_address(ptr %addresses, i64 %inputs, ptr %out)  ; in place of y where there is one input
  %out.size = call i64 @word(ptr %row, i64 7)
  call void @set_word(ptr %steps, i64 0, i64 %x.step)
  call void @set_word(ptr %steps, i64 1, i64 %y.step)
  call void @set_word(ptr %steps, i64 %inputs, i64 %out.size)
  store i64 %n, ptr %n.ptr
  %loop = call ptr @pointer(ptr %row, i64 4)
  %data = call ptr @pointer(ptr %row, i64 5)
  call void %loop(ptr %addresses, ptr %n.ptr, ptr %steps, ptr %data)
  %tensor = call ptr @wrapped(ptr %table, ptr %row, ptr %out)
  ret ptr %tensor

declined:
  %none = call ptr @none(ptr %table)
  ret ptr %none
}

; The product of two dense matrices, each perhaps transposed; `limit` multiplications at most. The loop of np.matmul takes
; the sizes (1, m, k, n), and the steps of three outer axes, then of (m, k), (k, n) and (m, n).
define internal ptr @product(ptr %self, ptr %arguments, i64 %count) {
entry:
  %addresses = alloca [3 x ptr]
  %dims = alloca [4 x i64]
  %steps = alloca [9 x i64]
  %shape = alloca [2 x i64]
  %table = call ptr @PyLong_AsVoidPtr(ptr %self)
  %expected = icmp eq i64 %count, 2
  br i1 %expected, label %operands, label %declined

operands:
  %a = call ptr @pointer(ptr %arguments, i64 0)
  %b = call ptr @pointer(ptr %arguments, i64 1)
  %row = call ptr @row_of(ptr %table, ptr %a, ptr %b)
  %unknown = icmp eq ptr %row, null
  br i1 %unknown, label %declined, label %ranks

ranks:
  %array.word = call i64 @word(ptr %table, i64 2)
  %a.array = call ptr @pointer(ptr %a, i64 %array.word)
  %b.array = call ptr @pointer(ptr %b, i64 %array.word)
  %a.rank = call i32 @rank(ptr %a.array)
  %b.rank = call i32 @rank(ptr %b.array)
  %a.matrix = icmp eq i32 %a.rank, 2
  %b.matrix = icmp eq i32 %b.rank, 2
  %matrices = and i1 %a.matrix, %b.matrix
  br i1 %matrices, label %sizes, label %declined

sizes:  ; the axes of a are (m, k), of b (k, n)
  %a.transposed = call i64 @word(ptr %table, i64 8)
  %b.transposed = call i64 @word(ptr %table, i64 9)
  %a.other = sub i64 1, %a.transposed
  %b.other = sub i64 1, %b.transposed
  %a.sizes = call ptr @pointer(ptr %a.array, i64 ARRAY_SIZES)
  %b.sizes = call ptr @pointer(ptr %b.array, i64 ARRAY_SIZES)
  %m = call i64 @word(ptr %a.sizes, i64 %a.transposed)
  %k = call i64 @word(ptr %a.sizes, i64 %a.other)
  %k.b = call i64 @word(ptr %b.sizes, i64 %b.transposed)
  %n = call i64 @word(ptr %b.sizes, i64 %b.other)
  %agree = icmp eq i64 %k, %k.b
  br i1 %agree, label %first, label %declined

first:
  %m.small = call i1 @within(ptr %table, i64 %m)
  br i1 %m.small, label %second, label %declined

second:
  %k.small = call i1 @within(ptr %table, i64 %k)
  br i1 %k.small, label %third, label %declined

third:
  %n.small = call i1 @within(ptr %table, i64 %n)
  %mk = mul i64 %m, %k
  %mkn = mul i64 %mk, %n
  %all.small = call i1 @within(ptr %table, i64 %mkn)
  %small = and i1 %n.small, %all.small
  br i1 %small, label %result, label %declined

result:
  call void @set_word(ptr %shape, i64 0, i64 %m)
  call void @set_word(ptr %shape, i64 1, i64 %n)
  %out = call ptr @empty(ptr %row, i32 2, ptr %shape)
  %out.failed = icmp eq ptr %out, null
  br i1 %out.failed, label %declined, label %run

run:
  call void @set_address(ptr %addresses, i64 0, ptr %a.array)
  call void @set_address(ptr %addresses, i64 1, ptr %b.array)
  call void @set_address(ptr %addresses, i64 2, ptr %out)
  call void @set_word(ptr %dims, i64 0, i64 1)
  call void @set_word(ptr %dims, i64 1, i64 %m)
  call void @set_word(ptr %dims, i64 2, i64 %k)
  call void @set_word(ptr %dims, i64 3, i64 %n)
  call void @set_word(ptr %steps, i64 0, i64 0)
  call void @set_word(ptr %steps, i64 1, i64 0)
  call void @set_word(ptr %steps, i64 2, i64 0)
  call void @copy_step(ptr %steps, i64 3, ptr %a.array, i64 %a.transposed)
  call void @copy_step(ptr %steps, i64 4, ptr %a.array, i64 %a.other)
  call void @copy_step(ptr %steps, i64 5, ptr %b.array, i64 %b.transposed)
  call void @copy_step(ptr %steps, i64 6, ptr %b.array, i64 %b.other)
  call void @copy_step(ptr %steps, i64 7, ptr %out, i64 0)
  call void @copy_step(ptr %steps, i64 8, ptr %out, i64 1)
  %loop = call ptr @pointer(ptr %row, i64 4)
  %data = call ptr @pointer(ptr %row, i64 5)
  call void %loop(ptr %addresses, ptr %dims, ptr %steps, ptr %data)
  %tensor = call ptr @wrapped(ptr %table, ptr %row, ptr %out)
  ret ptr %tensor

declined:
  %none = call ptr @none(ptr %table)
  ret ptr %none
}

; The row for two objects: tensors of its dtype, with dense arrays of its dtype object. Null without one.
define internal ptr @row_of(ptr %table, ptr %x, ptr %y) alwaysinline {
entry:
  %tensor.type = call i64 @word(ptr %table, i64 0)
  %x.type = call i64 @word(ptr %x, i64 1)
  %y.type = call i64 @word(ptr %y, i64 1)
  %x.is.tensor = icmp eq i64 %x.type, %tensor.type
  %y.is.tensor = icmp eq i64 %y.type, %tensor.type
  %are.tensors = and i1 %x.is.tensor, %y.is.tensor
  br i1 %are.tensors, label %tensors, label %none

tensors:
  %array.type = call i64 @word(ptr %table, i64 1)
  %array.word = call i64 @word(ptr %table, i64 2)
  %dtype.word = call i64 @word(ptr %table, i64 3)
  %x.array = call ptr @pointer(ptr %x, i64 %array.word)
  %y.array = call ptr @pointer(ptr %y, i64 %array.word)
  %x.dtype = call ptr @pointer(ptr %x, i64 %dtype.word)
  %y.dtype = call ptr @pointer(ptr %y, i64 %dtype.word)
  %x.array.type = call i64 @word(ptr %x.array, i64 1)
  %y.array.type = call i64 @word(ptr %y.array, i64 1)
  %x.is.array = icmp eq i64 %x.array.type, %array.type
  %y.is.array = icmp eq i64 %y.array.type, %array.type
  %are.arrays = and i1 %x.is.array, %y.is.array
  %same.dtype = icmp eq ptr %x.dtype, %y.dtype
  %alike = and i1 %are.arrays, %same.dtype
  br i1 %alike, label %rows, label %none

rows:
  %count = call i64 @word(ptr %table, i64 10)
  br label %search

search:
  %i = phi i64 [ 0, %rows ], [ %i.next, %other ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %compare, label %none

compare:
  %row = getelementptr %table, ptr %table, i64 0, i32 11, i64 %i
  %row.dtype = load ptr, ptr %row
  %is.row = icmp eq ptr %row.dtype, %x.dtype
  br i1 %is.row, label %layout, label %other

other:
  %i.next = add i64 %i, 1
  br label %search

layout:
  %numpy = call ptr @pointer(ptr %row, i64 1)
  %x.numpy = call ptr @pointer(ptr %x.array, i64 ARRAY_DTYPE)
  %y.numpy = call ptr @pointer(ptr %y.array, i64 ARRAY_DTYPE)
  %x.fits = icmp eq ptr %x.numpy, %numpy
  %y.fits = icmp eq ptr %y.numpy, %numpy
  %fit = and i1 %x.fits, %y.fits
  %x.flags = call i64 @word(ptr %x.array, i64 ARRAY_FLAGS)
  %y.flags = call i64 @word(ptr %y.array, i64 ARRAY_FLAGS)
  %flags.both = and i64 %x.flags, %y.flags
  %dense.flags = and i64 %flags.both, ARRAY_CONTIGUOUS
  %dense = icmp eq i64 %dense.flags, ARRAY_CONTIGUOUS
  %usable = and i1 %fit, %dense
  %result = select i1 %usable, ptr %row, ptr null
  ret ptr %result

none:
  ret ptr null
}

; Whether a number is 1 at least, and at most the limit.
define internal i1 @within(ptr %table, i64 %n) alwaysinline {
  %limit = call i64 @word(ptr %table, i64 6)
  %less = sub i64 %n, 1
  %is.within = icmp ult i64 %less, %limit
  ret i1 %is.within
}

; An array of the result's dtype. Null without memory.
define internal ptr @empty(ptr %row, i32 %rank, ptr %shape) alwaysinline {
  %numpy = call ptr @pointer(ptr %row, i64 3)
  call void @Py_IncRef(ptr %numpy)  ; PyArray_Empty takes it
  %array = call ptr @PyArray_Empty(i32 %rank, ptr %shape, ptr %numpy, i32 0)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %clear, label %done

clear:  ; Python will say so
  call void @PyErr_Clear()
  br label %done

done:
  ret ptr %array
}

; An array, which it takes, as a tensor. None without memory.
define internal ptr @wrapped(ptr %table, ptr %row, ptr %array) alwaysinline {
  %type = call ptr @pointer(ptr %table, i64 0)
  %tensor = call ptr @PyType_GenericAlloc(ptr %type, i64 0)
  %failed = icmp eq ptr %tensor, null
  %none = call ptr @none(ptr %table)
  br i1 %failed, label %drop, label %fill

fill:
  %array.word = call i64 @word(ptr %table, i64 2)
  %dtype.word = call i64 @word(ptr %table, i64 3)
  %identity.word = call i64 @word(ptr %table, i64 4)
  %dtype = call ptr @pointer(ptr %row, i64 2)
  call void @Py_IncRef(ptr %dtype)
  %array.slot = getelementptr ptr, ptr %tensor, i64 %array.word
  %dtype.slot = getelementptr ptr, ptr %tensor, i64 %dtype.word
  %identity.slot = getelementptr ptr, ptr %tensor, i64 %identity.word
  store ptr %array, ptr %array.slot
  store ptr %dtype, ptr %dtype.slot
  store ptr %none, ptr %identity.slot
  ret ptr %tensor

drop:
  call void @Py_DecRef(ptr %array)
  call void @PyErr_Clear()
  ret ptr %none
}

; A new reference to None.
define internal ptr @none(ptr %table) alwaysinline {
  %none = call ptr @pointer(ptr %table, i64 5)
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}

; Write where an array's elements are.
define internal void @set_address(ptr %addresses, i64 %which, ptr %array) alwaysinline {
  %address = call i64 @word(ptr %array, i64 ARRAY_DATA)
  call void @set_word(ptr %addresses, i64 %which, i64 %address)
  ret void
}

; Write the step of an array's axis.
define internal void @copy_step(ptr %steps, i64 %which, ptr %array, i64 %axis) alwaysinline {
  %array.steps = call ptr @pointer(ptr %array, i64 ARRAY_STEPS)
  %step = call i64 @word(ptr %array.steps, i64 %axis)
  call void @set_word(ptr %steps, i64 %which, i64 %step)
  ret void
}

define internal void @set_word(ptr %words, i64 %which, i64 %content) alwaysinline {
  %at = getelementptr i64, ptr %words, i64 %which
  store i64 %content, ptr %at
  ret void
}

; The rank of an array.
define internal i32 @rank(ptr %array) alwaysinline {
  %word = call i64 @word(ptr %array, i64 ARRAY_RANK)
  %rank = trunc i64 %word to i32
  ret i32 %rank
}

; A word of an object.
define internal i64 @word(ptr %object, i64 %which) alwaysinline {
  %at = getelementptr i64, ptr %object, i64 %which
  %content = load i64, ptr %at
  ret i64 %content
}

; A word of an object that is an address.
define internal ptr @pointer(ptr %object, i64 %which) alwaysinline {
  %at = getelementptr ptr, ptr %object, i64 %which
  %content = load ptr, ptr %at
  ret ptr %content
}
