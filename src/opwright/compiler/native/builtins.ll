; Functions of Python's (PyCFunction) that are small and called often. Words of objects have the names of objects.py.
;
; Of `put` and `take`, `self` is an array of NumPy's: dense, of numbers, and short enough to be copied with the GIL held.
; `put_strings` does the same for objects.

declare ptr @memmove(ptr, ptr, i64)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyArray_NewLikeArray(ptr, i32, ptr, i32)
declare ptr @PyArray_Scalar(ptr, ptr, ptr)

; Where the functions below are: the one that a loader looks up.
define ptr @builtins(i64 %which) {
  %at = getelementptr [4 x ptr], ptr @functions, i64 0, i64 %which
  %function = load ptr, ptr %at
  ret ptr %function
}
@functions = internal constant [4 x ptr] [ptr @put, ptr @take, ptr @foreign, ptr @put_strings]

; Copy the argument where it is a dense array of the same dtype and shape, or a scalar of this dtype for rank 0. Gives 1;
; else 0, and nothing has changed.
define internal ptr @put(ptr %self, ptr %value) {
entry:
  %alike = call i1 @is_alike(ptr %self, ptr %value)
  br i1 %alike, label %array, label %other

array:
  %from = call ptr @elements(ptr %value)
  br label %copy

other:
  %rank.word = call i64 @word(ptr %self, i64 ARRAY_RANK)
  %rank = trunc i64 %rank.word to i32
  %single = icmp eq i32 %rank, 0
  br i1 %single, label %scalar, label %answered

scalar:  ; of NumPy's own types, whose number is stored behind the head
  %dtype = call i64 @word(ptr %self, i64 ARRAY_DTYPE)
  %dtype.ptr = inttoptr i64 %dtype to ptr
  %number.type = call i64 @word(ptr %dtype.ptr, i64 DTYPE_SCALAR)
  %number.word = call i64 @word(ptr %dtype.ptr, i64 DTYPE_NUMBER)
  %number = lshr i64 %number.word, 32
  %own = icmp ult i64 %number, DTYPE_OWN
  %type.value = call i64 @word(ptr %value, i64 1)
  %same.type = icmp eq i64 %type.value, %number.type
  %flags = call i64 @word(ptr %self, i64 ARRAY_FLAGS)
  %writeable.flag = and i64 %flags, ARRAY_WRITEABLE
  %writeable = icmp ne i64 %writeable.flag, 0
  %fits.type = and i1 %own, %same.type
  %fits = and i1 %fits.type, %writeable
  %inside = getelementptr i64, ptr %value, i64 2
  br i1 %fits, label %copy, label %answered

copy:
  %source = phi ptr [ %from, %array ], [ %inside, %scalar ]
  %to = call ptr @elements(ptr %self)
  %bytes = call i64 @size(ptr %self)
  %ignored = call ptr @memmove(ptr %to, ptr %source, i64 %bytes)
  br label %answered

answered:
  %answer = phi i64 [ 0, %other ], [ 0, %scalar ], [ 1, %copy ]
  %result = call ptr @PyLong_FromLongLong(i64 %answer)
  ret ptr %result
}

; Copy the argument where it is a dense array of the same shape, of objects of the type in `self`. Gives 1; else 0,
; and nothing has changed. `self` is an array of two objects: the one to copy into, of objects, and their type.
define internal ptr @put_strings(ptr %self, ptr %value) {
entry:
  %items = call ptr @elements(ptr %self)
  %array = load ptr, ptr %items
  %type = call i64 @word(ptr %items, i64 1)
  %alike = call i1 @is_alike(ptr %array, ptr %value)
  br i1 %alike, label %start, label %answered

start:
  %to = call ptr @elements(ptr %array)
  %from = call ptr @elements(ptr %value)
  %bytes = call i64 @size(ptr %array)
  %count = lshr i64 %bytes, 3
  br label %item

item:
  %i = phi i64 [ 0, %start ], [ %i.next, %checked ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %check, label %store

check:
  %object = call i64 @word(ptr %from, i64 %i)
  %object.ptr = inttoptr i64 %object to ptr
  %missing = icmp eq i64 %object, 0
  br i1 %missing, label %answered, label %typed

typed:
  %object.type = call i64 @word(ptr %object.ptr, i64 1)
  %same.type = icmp eq i64 %object.type, %type
  br i1 %same.type, label %checked, label %answered

checked:
  %i.next = add i64 %i, 1
  br label %item

store:
  %k = phi i64 [ 0, %item ], [ %k.next, %released ]
  %stores = icmp slt i64 %k, %count
  br i1 %stores, label %replace, label %answered

replace:
  %new.at = getelementptr ptr, ptr %from, i64 %k
  %old.at = getelementptr ptr, ptr %to, i64 %k
  %new = load ptr, ptr %new.at
  %old = load ptr, ptr %old.at
  call void @Py_IncRef(ptr %new)
  store ptr %new, ptr %old.at
  call void @Py_DecRef(ptr %old)
  br label %released

released:
  %k.next = add i64 %k, 1
  br label %store

answered:
  %answer = phi i64 [ 0, %entry ], [ 0, %check ], [ 0, %typed ], [ 1, %store ]
  %result = call ptr @PyLong_FromLongLong(i64 %answer)
  ret ptr %result
}

; Whether a value is a dense array of the same dtype and shape as a writeable one.
define internal i1 @is_alike(ptr %self, ptr %value) {
entry:
  %type = call i64 @word(ptr %self, i64 1)
  %type.value = call i64 @word(ptr %value, i64 1)
  %is.array = icmp eq i64 %type, %type.value
  br i1 %is.array, label %array, label %differs

array:
  %dtype = call i64 @word(ptr %self, i64 ARRAY_DTYPE)
  %dtype.value = call i64 @word(ptr %value, i64 ARRAY_DTYPE)
  %same.dtype = icmp eq i64 %dtype, %dtype.value
  %flags = call i64 @word(ptr %self, i64 ARRAY_FLAGS)
  %flags.value = call i64 @word(ptr %value, i64 ARRAY_FLAGS)
  %flags.both = and i64 %flags, %flags.value
  %dense.flags = and i64 %flags.both, ARRAY_CONTIGUOUS
  %dense = icmp eq i64 %dense.flags, ARRAY_CONTIGUOUS
  %writeable.flag = and i64 %flags, ARRAY_WRITEABLE
  %writeable = icmp ne i64 %writeable.flag, 0
  %rank.word = call i64 @word(ptr %self, i64 ARRAY_RANK)
  %rank.word.value = call i64 @word(ptr %value, i64 ARRAY_RANK)
  %rank = trunc i64 %rank.word to i32
  %rank.value = trunc i64 %rank.word.value to i32
  %same.rank = icmp eq i32 %rank, %rank.value
  %fits.dtype = and i1 %same.dtype, %dense
  %fits.rank = and i1 %fits.dtype, %same.rank
  %fits = and i1 %fits.rank, %writeable
  br i1 %fits, label %shape, label %differs

shape:
  %sizes = call i64 @word(ptr %self, i64 ARRAY_SIZES)
  %sizes.value = call i64 @word(ptr %value, i64 ARRAY_SIZES)
  %sizes.ptr = inttoptr i64 %sizes to ptr
  %sizes.value.ptr = inttoptr i64 %sizes.value to ptr
  %axes = sext i32 %rank to i64
  br label %axis

axis:
  %i = phi i64 [ 0, %shape ], [ %i.next, %alike ]
  %more = icmp slt i64 %i, %axes
  br i1 %more, label %compare, label %alike.all

compare:
  %size = call i64 @word(ptr %sizes.ptr, i64 %i)
  %size.value = call i64 @word(ptr %sizes.value.ptr, i64 %i)
  %same.size = icmp eq i64 %size, %size.value
  br i1 %same.size, label %alike, label %differs

alike:
  %i.next = add i64 %i, 1
  br label %axis

alike.all:
  ret i1 true

differs:
  ret i1 false
}

; A copy; of rank 0, a scalar.
define internal ptr @take(ptr %self, ptr %nothing) {
  %rank.word = call i64 @word(ptr %self, i64 ARRAY_RANK)
  %rank = trunc i64 %rank.word to i32
  %from = call ptr @elements(ptr %self)
  %scalar = icmp eq i32 %rank, 0
  br i1 %scalar, label %one, label %several

one:
  %dtype = call i64 @word(ptr %self, i64 ARRAY_DTYPE)
  %dtype.ptr = inttoptr i64 %dtype to ptr
  %made = call ptr @PyArray_Scalar(ptr %from, ptr %dtype.ptr, ptr null)
  ret ptr %made

several:
  %copy = call ptr @PyArray_NewLikeArray(ptr %self, i32 0, ptr null, i32 0)
  %failed = icmp eq ptr %copy, null
  br i1 %failed, label %done, label %write

write:
  %to = call ptr @elements(ptr %copy)
  %bytes = call i64 @size(ptr %self)
  %ignored = call ptr @memmove(ptr %to, ptr %from, i64 %bytes)
  br label %done

done:
  ret ptr %copy
}

; Call `int f(void *)` without the GIL, and give what it gives. `self` is an int: where the address of f is, and behind it
; the argument.
define internal ptr @foreign(ptr %self, ptr %nothing) {
  %call = call ptr @PyLong_AsVoidPtr(ptr %self)
  %function = load ptr, ptr %call
  %argument.ptr = getelementptr ptr, ptr %call, i64 1
  %argument = load ptr, ptr %argument.ptr
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 %function(ptr %argument)
  call void @PyEval_RestoreThread(ptr %thread)
  %wide = sext i32 %status to i64
  %result = call ptr @PyLong_FromLongLong(i64 %wide)
  ret ptr %result
}

; Where an array's elements are.
define internal ptr @elements(ptr %array) alwaysinline {
  %address = call i64 @word(ptr %array, i64 ARRAY_DATA)
  %found = inttoptr i64 %address to ptr
  ret ptr %found
}

; Bytes of an array's elements.
define internal i64 @size(ptr %array) alwaysinline {
entry:
  %dtype = call i64 @word(ptr %array, i64 ARRAY_DTYPE)
  %dtype.ptr = inttoptr i64 %dtype to ptr
  %itemsize = call i64 @word(ptr %dtype.ptr, i64 DTYPE_ITEMSIZE)
  %rank.word = call i64 @word(ptr %array, i64 ARRAY_RANK)
  %rank = trunc i64 %rank.word to i32
  %axes = sext i32 %rank to i64
  %sizes = call i64 @word(ptr %array, i64 ARRAY_SIZES)
  %sizes.ptr = inttoptr i64 %sizes to ptr
  br label %axis

axis:
  %i = phi i64 [ 0, %entry ], [ %i.next, %more ]
  %bytes = phi i64 [ %itemsize, %entry ], [ %bytes.next, %more ]
  %is.more = icmp slt i64 %i, %axes
  br i1 %is.more, label %more, label %done

more:
  %one = call i64 @word(ptr %sizes.ptr, i64 %i)
  %bytes.next = mul i64 %bytes, %one
  %i.next = add i64 %i, 1
  br label %axis

done:
  ret i64 %bytes
}

; A word of an object.
define internal i64 @word(ptr %object, i64 %which) alwaysinline {
  %at = getelementptr i64, ptr %object, i64 %which
  %found = load i64, ptr %at
  ret i64 %found
}
