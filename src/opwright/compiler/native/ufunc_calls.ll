; Calls of eager tensors as functions of Python's (PyCFunction): a loop of NumPy's over their arrays, and its result as a
; tensor. What they decline they leave to Python: they return None.
;
; `self` is an int, the address of the table of ufunc_calls.py. What words of a row or table mean to one function alone
; stands there.

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
  %at = getelementptr [4 x ptr], ptr @functions, i64 0, i64 %which
  %function = load ptr, ptr %at
  ret ptr %function
}
@functions = internal constant [4 x ptr] [ptr @elementwise, ptr @product, ptr @softmax, ptr @extreme]

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

; Softmax along the last axis of a dense tensor; `limit` elements at most. A row has in place of its loop the address of
; five of them, each with its data: maximum, subtract, exp, add, divide; and in place of the data the bits of -inf.
; The loops get the elements that NumPy gives them, which decides the bits: exp all of them, add a row as a reduction.
define internal ptr @softmax(ptr %self, ptr %arguments, i64 %count) {
entry:
  %reduced = alloca i64
  %table = call ptr @PyLong_AsVoidPtr(ptr %self)
  %expected = icmp eq i64 %count, 1
  br i1 %expected, label %operand, label %declined

operand:
  %x = call ptr @pointer(ptr %arguments, i64 0)
  %row = call ptr @row_of(ptr %table, ptr %x, ptr %x)
  %unknown = icmp eq ptr %row, null
  br i1 %unknown, label %declined, label %sizes

sizes:
  %array.word = call i64 @word(ptr %table, i64 2)
  %x.array = call ptr @pointer(ptr %x, i64 %array.word)
  %rank = call i32 @rank(ptr %x.array)
  %rank.wide = zext i32 %rank to i64
  %shape = call ptr @pointer(ptr %x.array, i64 ARRAY_SIZES)
  %n = call i64 @elements(ptr %shape, i64 0, i64 %rank.wide)
  %is.small = call i1 @within(ptr %table, i64 %n)
  %has.axis = icmp ne i32 %rank, 0
  %usable = and i1 %is.small, %has.axis
  br i1 %usable, label %result, label %declined

result:
  %out = call ptr @empty(ptr %row, i32 %rank, ptr %shape)
  %out.failed = icmp eq ptr %out, null
  br i1 %out.failed, label %declined, label %start

start:
  %last = sub i64 %rank.wide, 1
  %columns = call i64 @word(ptr %shape, i64 %last)
  %size = call i64 @word(ptr %row, i64 6)
  %stride = mul i64 %columns, %size
  %bytes = mul i64 %n, %size
  %x.data = call ptr @pointer(ptr %x.array, i64 ARRAY_DATA)
  %out.data = call ptr @pointer(ptr %out, i64 ARRAY_DATA)
  %loops = call ptr @pointer(ptr %row, i64 4)
  %lowest = call i64 @word(ptr %row, i64 5)
  br label %shift

shift:
  %i = phi i64 [ 0, %start ], [ %i.next, %shift ]
  %x.row = getelementptr i8, ptr %x.data, i64 %i
  %shifted.row = getelementptr i8, ptr %out.data, i64 %i
  store i64 %lowest, ptr %reduced
  call void @loop(ptr %loops, i64 0, i64 %columns, ptr %reduced, i64 0, ptr %x.row, i64 %size, ptr %reduced, i64 0)
  call void @loop(ptr %loops, i64 1, i64 %columns, ptr %x.row, i64 %size, ptr %reduced, i64 0, ptr %shifted.row, i64 %size)
  %i.next = add i64 %i, %stride
  %shift.more = icmp slt i64 %i.next, %bytes
  br i1 %shift.more, label %shift, label %exponentials

exponentials:
  call void @loop(ptr %loops, i64 2, i64 %n, ptr %out.data, i64 %size, ptr %out.data, i64 %size, ptr null, i64 0)
  br label %divide

divide:
  %k = phi i64 [ 0, %exponentials ], [ %k.next, %divide ]
  %row.data = getelementptr i8, ptr %out.data, i64 %k
  store i64 0, ptr %reduced
  call void @loop(ptr %loops, i64 3, i64 %columns, ptr %reduced, i64 0, ptr %row.data, i64 %size, ptr %reduced, i64 0)
  call void @loop(ptr %loops, i64 4, i64 %columns, ptr %row.data, i64 %size, ptr %reduced, i64 0, ptr %row.data, i64 %size)
  %k.next = add i64 %k, %stride
  %divide.more = icmp slt i64 %k.next, %bytes
  br i1 %divide.more, label %divide, label %done

done:
  %tensor = call ptr @wrapped(ptr %table, ptr %row, ptr %out)
  ret ptr %tensor

declined:
  %none = call ptr @none(ptr %table)
  ret ptr %none
}

; One of the loops of a row, over n elements.
define internal void @loop(ptr %loops, i64 %which, i64 %n, ptr %a, i64 %a.step, ptr %b, i64 %b.step, ptr %c, i64 %c.step) noinline {
  %addresses = alloca [3 x ptr]
  %steps = alloca [3 x i64]
  %n.ptr = alloca i64
  store i64 %n, ptr %n.ptr
  %b.slot = getelementptr ptr, ptr %addresses, i64 1
  %c.slot = getelementptr ptr, ptr %addresses, i64 2
  store ptr %a, ptr %addresses
  store ptr %b, ptr %b.slot
  store ptr %c, ptr %c.slot
  call void @set_word(ptr %steps, i64 0, i64 %a.step)
  call void @set_word(ptr %steps, i64 1, i64 %b.step)
  call void @set_word(ptr %steps, i64 2, i64 %c.step)
  %first = shl i64 %which, 1
  %second = add i64 %first, 1
  %function = call ptr @pointer(ptr %loops, i64 %first)
  %data = call ptr @pointer(ptr %loops, i64 %second)
  call void %function(ptr %addresses, ptr %n.ptr, ptr %steps, ptr %data)
  ret void
}

; The index of the first greatest element of a dense tensor of floats along an axis, or of the first least one. NaN never
; is. Words 8 and 9 of the table: the axis, whether it is the least. Results have 4 or 8 bytes.
define internal ptr @extreme(ptr %self, ptr %arguments, i64 %count) {
entry:
  %shape = alloca [8 x i64]
  %table = call ptr @PyLong_AsVoidPtr(ptr %self)
  %expected = icmp eq i64 %count, 1
  br i1 %expected, label %operand, label %declined

operand:
  %x = call ptr @pointer(ptr %arguments, i64 0)
  %row = call ptr @row_of(ptr %table, ptr %x, ptr %x)
  %unknown = icmp eq ptr %row, null
  br i1 %unknown, label %declined, label %ranks

ranks:
  %array.word = call i64 @word(ptr %table, i64 2)
  %x.array = call ptr @pointer(ptr %x, i64 %array.word)
  %rank = call i32 @rank(ptr %x.array)
  %rank.wide = zext i32 %rank to i64
  %sizes = call ptr @pointer(ptr %x.array, i64 ARRAY_SIZES)
  %asked = call i64 @word(ptr %table, i64 8)
  %from.end = icmp slt i64 %asked, 0
  %counted = add i64 %asked, %rank.wide
  %axis = select i1 %from.end, i64 %counted, i64 %asked
  %is.axis = icmp ult i64 %axis, %rank.wide
  %is.low = icmp ule i32 %rank, 8
  %fits = and i1 %is.axis, %is.low
  br i1 %fits, label %limits, label %declined

limits:
  %n = call i64 @elements(ptr %sizes, i64 0, i64 %rank.wide)
  %is.small = call i1 @within(ptr %table, i64 %n)
  br i1 %is.small, label %shapes, label %declined

shapes:  ; those of x without the axis
  %j = phi i64 [ 0, %limits ], [ %j.next, %shapes ]
  %behind = icmp ugt i64 %j, %axis
  %one.behind = zext i1 %behind to i64
  %target = sub i64 %j, %one.behind
  %j.size = call i64 @word(ptr %sizes, i64 %j)
  call void @set_word(ptr %shape, i64 %target, i64 %j.size)  ; the size behind replaces that of the axis
  %j.next = add i64 %j, 1
  %shapes.more = icmp ult i64 %j.next, %rank.wide
  br i1 %shapes.more, label %shapes, label %result

result:
  %length = call i64 @word(ptr %sizes, i64 %axis)
  %axis.next = add i64 %axis, 1
  %inner = call i64 @elements(ptr %sizes, i64 %axis.next, i64 %rank.wide)
  %out.rank = sub i32 %rank, 1
  %out = call ptr @empty(ptr %row, i32 %out.rank, ptr %shape)
  %out.failed = icmp eq ptr %out, null
  br i1 %out.failed, label %declined, label %start

start:
  %size = call i64 @word(ptr %row, i64 6)
  %out.size = call i64 @word(ptr %row, i64 7)
  %is.least = call i64 @word(ptr %table, i64 9)
  %least = icmp ne i64 %is.least, 0
  %is.single = icmp eq i64 %size, 4
  %is.short = icmp eq i64 %out.size, 4
  %x.data = call ptr @pointer(ptr %x.array, i64 ARRAY_DATA)
  %out.data = call ptr @pointer(ptr %out, i64 ARRAY_DATA)
  %results = udiv i64 %n, %length
  br label %item

item:
  %r = phi i64 [ 0, %start ], [ %r.next, %item.done ]
  %outer = udiv i64 %r, %inner
  %column = urem i64 %r, %inner
  %outer.rows = mul i64 %outer, %length
  br label %element

element:
  %i = phi i64 [ 0, %item ], [ %i.next, %compared ]
  %best = phi double [ 0xFFF0000000000000, %item ], [ %best.next, %compared ]
  %chosen = phi i64 [ 0, %item ], [ %chosen.next, %compared ]
  %i.row = add i64 %outer.rows, %i
  %i.start = mul i64 %i.row, %inner
  %at = add i64 %i.start, %column
  %offset = mul i64 %at, %size
  %address = getelementptr i8, ptr %x.data, i64 %offset
  br i1 %is.single, label %single, label %double

single:
  %single.value = load float, ptr %address
  %single.wide = fpext float %single.value to double
  br label %compared

double:
  %double.value = load double, ptr %address
  br label %compared

compared:
  %value = phi double [ %single.wide, %single ], [ %double.value, %double ]
  %negated = fneg double %value
  %ordered = select i1 %least, double %negated, double %value
  %better = fcmp ogt double %ordered, %best
  %best.next = select i1 %better, double %ordered, double %best
  %chosen.next = select i1 %better, i64 %i, i64 %chosen
  %i.next = add i64 %i, 1
  %element.more = icmp ult i64 %i.next, %length
  br i1 %element.more, label %element, label %store

store:
  %out.offset = mul i64 %r, %out.size
  %out.address = getelementptr i8, ptr %out.data, i64 %out.offset
  br i1 %is.short, label %store.short, label %store.long

store.short:
  %short = trunc i64 %chosen.next to i32
  store i32 %short, ptr %out.address
  br label %item.done

store.long:
  store i64 %chosen.next, ptr %out.address
  br label %item.done

item.done:
  %r.next = add i64 %r, 1
  %item.more = icmp ult i64 %r.next, %results
  br i1 %item.more, label %item, label %done

done:
  %tensor = call ptr @wrapped(ptr %table, ptr %row, ptr %out)
  ret ptr %tensor

declined:
  %none = call ptr @none(ptr %table)
  ret ptr %none
}

; The number of elements of axes [first, last).
define internal i64 @elements(ptr %sizes, i64 %first, i64 %last) {
entry:
  br label %axis

axis:
  %a = phi i64 [ %first, %entry ], [ %a.next, %counted ]
  %n = phi i64 [ 1, %entry ], [ %n.next, %counted ]
  %more = icmp ult i64 %a, %last
  br i1 %more, label %counted, label %done

counted:
  %size = call i64 @word(ptr %sizes, i64 %a)
  %n.next = mul i64 %n, %size
  %a.next = add i64 %a, 1
  br label %axis

done:
  ret i64 %n
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
