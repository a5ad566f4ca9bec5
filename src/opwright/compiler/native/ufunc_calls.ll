; Element-wise calls of eager tensors as a function of Python's (PyCFunction): NumPy's inner loop over arrays of equal
; shapes, or with one scalar, wrapped as a tensor. What it declines it leaves to Python: it returns None.
;
; `self` is an int, the address of the table of ufunc_calls.py.

%row = type { ptr, ptr, ptr, ptr, ptr, ptr, i64, i64 }  ; of the inputs: dtype of tensors, dtype of NumPy; of the result:
;                                   the same; the loop and its data; bytes of an element of the inputs and of the result
%table = type { ptr, ptr, i64, i64, i64, ptr, i64, i64, i64, [0 x %row] }  ; type of tensors, type of arrays; words of a
;                                   tensor: array, dtype, identity; None; greatest number of elements; inputs; rows

declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyArray_Empty(i32, ptr, ptr, i32)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @PyErr_Clear()

; The function that a loader looks up.
define ptr @ufunc_calls(ptr %self, ptr %arguments, i64 %count) {
entry:
  %addresses = alloca [3 x ptr]
  %steps = alloca [3 x i64]
  %n.ptr = alloca i64
  %table = call ptr @PyLong_AsVoidPtr(ptr %self)
  %none.ptr = getelementptr %table, ptr %table, i64 0, i32 5
  %none = load ptr, ptr %none.ptr
  %inputs.ptr = getelementptr %table, ptr %table, i64 0, i32 7
  %inputs = load i64, ptr %inputs.ptr
  %expected = icmp eq i64 %count, %inputs
  br i1 %expected, label %operands, label %declined

operands:  ; y is x where there is one input
  %last = sub i64 %count, 1
  %y.ptr = getelementptr ptr, ptr %arguments, i64 %last
  %x = load ptr, ptr %arguments
  %y = load ptr, ptr %y.ptr
  %tensor.type = load i64, ptr %table
  %x.type = call i64 @word(ptr %x, i64 1)
  %y.type = call i64 @word(ptr %y, i64 1)
  %x.is.tensor = icmp eq i64 %x.type, %tensor.type
  %y.is.tensor = icmp eq i64 %y.type, %tensor.type
  %are.tensors = and i1 %x.is.tensor, %y.is.tensor
  br i1 %are.tensors, label %tensors, label %declined

tensors:
  %array.word.ptr = getelementptr %table, ptr %table, i64 0, i32 2
  %array.word = load i64, ptr %array.word.ptr
  %dtype.word.ptr = getelementptr %table, ptr %table, i64 0, i32 3
  %dtype.word = load i64, ptr %dtype.word.ptr
  %array.type.ptr = getelementptr %table, ptr %table, i64 0, i32 1
  %array.type = load i64, ptr %array.type.ptr
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
  br i1 %alike, label %rows, label %declined

rows:
  %rows.ptr = getelementptr %table, ptr %table, i64 0, i32 8
  %rows.count = load i64, ptr %rows.ptr
  br label %search

search:
  %i = phi i64 [ 0, %rows ], [ %i.next, %other ]
  %more = icmp slt i64 %i, %rows.count
  br i1 %more, label %compare, label %declined

compare:
  %row = getelementptr %table, ptr %table, i64 0, i32 9, i64 %i
  %row.dtype = load ptr, ptr %row
  %is.row = icmp eq ptr %row.dtype, %x.dtype
  br i1 %is.row, label %layout, label %other

other:
  %i.next = add i64 %i, 1
  br label %search

layout:  ; both dense, of NumPy's dtype object of the row
  %numpy.ptr = getelementptr %row, ptr %row, i64 0, i32 1
  %numpy = load ptr, ptr %numpy.ptr
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
  br i1 %usable, label %ranks, label %declined

ranks:
  %size.ptr = getelementptr %row, ptr %row, i64 0, i32 6
  %size = load i64, ptr %size.ptr
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

shaped:  ; the result has the shape of what is no scalar
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
  %limit.ptr = getelementptr %table, ptr %table, i64 0, i32 6
  %limit = load i64, ptr %limit.ptr
  %n.less = sub i64 %n, 1
  %is.small = icmp ult i64 %n.less, %limit  ; and not empty
  br i1 %is.small, label %result, label %declined

result:
  %out.numpy.ptr = getelementptr %row, ptr %row, i64 0, i32 3
  %out.numpy = load ptr, ptr %out.numpy.ptr
  call void @Py_IncRef(ptr %out.numpy)  ; PyArray_Empty takes it
  %out = call ptr @PyArray_Empty(i32 %rank, ptr %shape, ptr %out.numpy, i32 0)
  %out.failed = icmp eq ptr %out, null
  br i1 %out.failed, label %failed, label %run

run:
  %x.data = call ptr @pointer(ptr %x.array, i64 ARRAY_DATA)
  %y.data = call ptr @pointer(ptr %y.array, i64 ARRAY_DATA)
  %out.data = call ptr @pointer(ptr %out, i64 ARRAY_DATA)
  %y.address = getelementptr [3 x ptr], ptr %addresses, i64 0, i64 1
  %out.address = getelementptr [3 x ptr], ptr %addresses, i64 0, i64 %inputs
  store ptr %x.data, ptr %addresses
  store ptr %y.data, ptr %y.address
  store ptr %out.data, ptr %out.address  ; in place of y where there is one input
  %out.size.ptr = getelementptr %row, ptr %row, i64 0, i32 7
  %out.size = load i64, ptr %out.size.ptr
  %y.step.ptr = getelementptr [3 x i64], ptr %steps, i64 0, i64 1
  %out.step.ptr = getelementptr [3 x i64], ptr %steps, i64 0, i64 %inputs
  store i64 %x.step, ptr %steps
  store i64 %y.step, ptr %y.step.ptr
  store i64 %out.size, ptr %out.step.ptr
  store i64 %n, ptr %n.ptr
  %loop.ptr = getelementptr %row, ptr %row, i64 0, i32 4
  %loop = load ptr, ptr %loop.ptr
  %data.ptr = getelementptr %row, ptr %row, i64 0, i32 5
  %data = load ptr, ptr %data.ptr
  call void %loop(ptr %addresses, ptr %n.ptr, ptr %steps, ptr %data)
  %type = load ptr, ptr %table
  %tensor = call ptr @PyType_GenericAlloc(ptr %type, i64 0)
  %tensor.failed = icmp eq ptr %tensor, null
  br i1 %tensor.failed, label %drop, label %wrap

wrap:
  %out.dtype.ptr = getelementptr %row, ptr %row, i64 0, i32 2
  %out.dtype = load ptr, ptr %out.dtype.ptr
  %identity.word.ptr = getelementptr %table, ptr %table, i64 0, i32 4
  %identity.word = load i64, ptr %identity.word.ptr
  call void @Py_IncRef(ptr %out.dtype)
  call void @Py_IncRef(ptr %none)
  %array.slot = getelementptr ptr, ptr %tensor, i64 %array.word
  %dtype.slot = getelementptr ptr, ptr %tensor, i64 %dtype.word
  %identity.slot = getelementptr ptr, ptr %tensor, i64 %identity.word
  store ptr %out, ptr %array.slot
  store ptr %out.dtype, ptr %dtype.slot
  store ptr %none, ptr %identity.slot
  ret ptr %tensor

drop:
  call void @Py_DecRef(ptr %out)
  br label %failed

failed:  ; without memory: Python will say so
  call void @PyErr_Clear()
  br label %declined

declined:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
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
