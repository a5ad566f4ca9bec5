; The tape of eager calls as functions of Python's (PyCFunction): `record` appends the record of one call, `signature` writes
; down what determines the reverse pass of a tape. Both hold the GIL throughout, and leave to Python what they decline.
;
; `self` of `record` is a bytes object with the fields of CallTable, of `signature` one with those of _LAYOUT (tape_calls.py).

%place = type { ptr, i64 }  ; an identity, and its number

declare ptr @PyBytes_AsString(ptr)
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare i32 @PyList_Append(ptr, ptr)
declare i32 @PySet_Contains(ptr, ptr)
declare i32 @PySet_Add(ptr, ptr)
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i64 @PyLong_AsLongLong(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; Where the functions below are: the one that a loader looks up.
define ptr @tape_calls(i64 %which) {
  %at = getelementptr [2 x ptr], ptr @functions, i64 0, i64 %which
  %function = load ptr, ptr %at
  ret ptr %function
}
@functions = internal constant [2 x ptr] [ptr @record, ptr @signature]

; record(live, records, inputs, outputs): append the record of a call to `records` if one of the inputs is in `live`, the
; set of identities that a tape follows; follow its output. inputs: a tuple of tensors; outputs: a tuple of one.
; True: done. False: nothing is done, as an input has no identity yet. None: declined.
define internal ptr @record(ptr %self, ptr %arguments, i64 %count) {
entry:
  %call = call ptr @PyBytes_AsString(ptr %self)
  %layout = call ptr @pointer(ptr %call, i64 0)
  %expected = icmp eq i64 %count, 4
  br i1 %expected, label %arguments.4, label %declined

arguments.4:
  %live = call ptr @pointer(ptr %arguments, i64 0)
  %records = call ptr @pointer(ptr %arguments, i64 1)
  %inputs = call ptr @pointer(ptr %arguments, i64 2)
  %outputs = call ptr @pointer(ptr %arguments, i64 3)
  %n = call i64 @word(ptr %call, i64 3)
  %tuple.type = call ptr @pointer(ptr %layout, i64 LAYOUT_TUPLE)
  %inputs.fit = call i1 @is_of(ptr %inputs, ptr %tuple.type)
  br i1 %inputs.fit, label %sized, label %declined

sized:
  %size = call i64 @PyTuple_Size(ptr %inputs)
  %sizes.agree = icmp eq i64 %size, %n
  %tensor.type = call ptr @pointer(ptr %layout, i64 LAYOUT_TENSOR)
  %identity.word = call i64 @word(ptr %layout, i64 LAYOUT_TENSOR_IDENTITY)
  %none = call ptr @pointer(ptr %layout, i64 LAYOUT_NONE)
  br i1 %sizes.agree, label %input, label %declined

input:  ; does the tape follow one, and has each an identity?
  %i = phi i64 [ 0, %sized ], [ %i.next, %input.next ]
  %follows = phi i1 [ false, %sized ], [ %follows.next, %input.next ]
  %lacks = phi i1 [ false, %sized ], [ %lacks.next, %input.next ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %tensor, label %counted

tensor:
  %x = call ptr @PyTuple_GetItem(ptr %inputs, i64 %i)
  %is.tensor = call i1 @is_of(ptr %x, ptr %tensor.type)
  br i1 %is.tensor, label %identity, label %declined

identity:
  %x.identity = call ptr @pointer(ptr %x, i64 %identity.word)
  %is.none = icmp eq ptr %x.identity, %none
  br i1 %is.none, label %input.next, label %contained

contained:
  %x.key = call ptr @PyLong_FromVoidPtr(ptr %x.identity)
  %x.key.failed = icmp eq ptr %x.key, null
  br i1 %x.key.failed, label %failed, label %ask

ask:
  %answer = call i32 @PySet_Contains(ptr %live, ptr %x.key)
  call void @Py_DecRef(ptr %x.key)
  %ask.failed = icmp slt i32 %answer, 0
  br i1 %ask.failed, label %failed, label %answered

answered:
  %is.live = icmp eq i32 %answer, 1
  %follows.now = or i1 %follows, %is.live
  br label %input.next

input.next:
  %follows.next = phi i1 [ %follows, %identity ], [ %follows.now, %answered ]
  %lacks.next = phi i1 [ true, %identity ], [ %lacks, %answered ]
  %i.next = add i64 %i, 1
  br label %input

counted:
  br i1 %follows, label %followed, label %done

followed:
  br i1 %lacks, label %unlinked, label %output

output:
  %y = call ptr @PyTuple_GetItem(ptr %outputs, i64 0)
  %y.failed = icmp eq ptr %y, null
  br i1 %y.failed, label %failed, label %output.kind

output.kind:
  %y.is.tensor = call i1 @is_of(ptr %y, ptr %tensor.type)
  br i1 %y.is.tensor, label %output.dtype, label %declined

output.dtype:
  %dtype.word = call i64 @word(ptr %layout, i64 LAYOUT_TENSOR_DTYPE)
  %dtype = call ptr @pointer(ptr %y, i64 %dtype.word)
  %gradients = call i64 @word(ptr %layout, i64 LAYOUT_GRADIENTS)
  %flows = call i1 @among(ptr %layout, i64 0, i64 %gradients, ptr %dtype)
  br i1 %flows, label %make, label %declined

make:
  %record.type = call ptr @pointer(ptr %layout, i64 LAYOUT_RECORD)
  %record = call ptr @PyType_GenericAlloc(ptr %record.type, i64 0)
  %record.failed = icmp eq ptr %record, null
  br i1 %record.failed, label %failed, label %fill

fill:  ; from here on, all objects belong to the record or to one that belongs to it
  %op = call ptr @pointer(ptr %call, i64 1)
  %bound = call ptr @pointer(ptr %call, i64 2)
  call void @share(ptr %layout, ptr %record, i64 LAYOUT_RECORD_OP, ptr %op)
  call void @share(ptr %layout, ptr %record, i64 LAYOUT_RECORD_BOUND, ptr %bound)
  %identities = call ptr @PyList_New(i64 %n)
  %keys = call ptr @PyList_New(i64 %n)
  %fresh = call ptr @PyList_New(i64 1)
  %flowing = call ptr @PyList_New(i64 1)
  call void @give(ptr %layout, ptr %record, i64 LAYOUT_RECORD_INPUTS, ptr %identities)
  call void @give(ptr %layout, ptr %record, i64 LAYOUT_RECORD_KEYS, ptr %keys)
  call void @give(ptr %layout, ptr %record, i64 LAYOUT_RECORD_OUTPUTS, ptr %fresh)
  call void @give(ptr %layout, ptr %record, i64 LAYOUT_RECORD_FLOWING, ptr %flowing)
  %identities.failed = icmp eq ptr %identities, null
  %keys.failed = icmp eq ptr %keys, null
  %fresh.failed = icmp eq ptr %fresh, null
  %flowing.failed = icmp eq ptr %flowing, null
  %lists.failed.0 = or i1 %identities.failed, %keys.failed
  %lists.failed.1 = or i1 %fresh.failed, %flowing.failed
  %lists.failed = or i1 %lists.failed.0, %lists.failed.1
  br i1 %lists.failed, label %failed.record, label %fill.input

fill.input:
  %k = phi i64 [ 0, %fill ], [ %k.next, %fill.key ]
  %fill.more = icmp slt i64 %k, %n
  br i1 %fill.more, label %fill.identity, label %fill.output

fill.identity:
  %kept.x = call ptr @PyTuple_GetItem(ptr %inputs, i64 %k)
  %kept.identity = call ptr @pointer(ptr %kept.x, i64 %identity.word)
  call void @Py_IncRef(ptr %kept.identity)
  %ignored.0 = call i32 @PyList_SetItem(ptr %identities, i64 %k, ptr %kept.identity)
  %kept.key = call ptr @PyLong_FromVoidPtr(ptr %kept.identity)
  %kept.key.failed = icmp eq ptr %kept.key, null
  br i1 %kept.key.failed, label %failed.record, label %fill.key

fill.key:
  %ignored.1 = call i32 @PyList_SetItem(ptr %keys, i64 %k, ptr %kept.key)
  %k.next = add i64 %k, 1
  br label %fill.input

fill.output:
  %shape.type = call ptr @pointer(ptr %layout, i64 LAYOUT_IDENTITY)
  %y.identity = call ptr @PyType_GenericAlloc(ptr %shape.type, i64 0)
  %y.identity.failed = icmp eq ptr %y.identity, null
  br i1 %y.identity.failed, label %failed.record, label %fill.shape

fill.shape:
  %ignored.2 = call i32 @PyList_SetItem(ptr %fresh, i64 0, ptr %y.identity)
  call void @share(ptr %layout, ptr %y.identity, i64 LAYOUT_IDENTITY_DTYPE, ptr %dtype)
  call void @share(ptr %layout, ptr %y.identity, i64 LAYOUT_IDENTITY_SOURCE, ptr %none)
  %array.word = call i64 @word(ptr %layout, i64 LAYOUT_TENSOR_ARRAY)
  %y.array = call ptr @pointer(ptr %y, i64 %array.word)
  %shape = call ptr @shape_of(ptr %y.array)
  call void @give(ptr %layout, ptr %y.identity, i64 LAYOUT_IDENTITY_SHAPE, ptr %shape)
  %y.key = call ptr @PyLong_FromVoidPtr(ptr %y.identity)
  %shape.failed = icmp eq ptr %shape, null
  %y.key.failed = icmp eq ptr %y.key, null
  %output.failed = or i1 %shape.failed, %y.key.failed
  br i1 %output.failed, label %failed.record, label %structure

structure:  ; the inputs that the gradient reads, identities in place of the others
  %ignored.3 = call i32 @PyList_SetItem(ptr %flowing, i64 0, ptr %y.key)
  %mask = call i64 @word(ptr %call, i64 4)
  switch i64 %mask, label %structure.some [ i64 -1, label %structure.all
                                            i64 0, label %structure.no ]

structure.all:
  call void @share(ptr %layout, ptr %record, i64 LAYOUT_RECORD_STRUCTURE, ptr %inputs)
  br label %results

structure.no:
  call void @share(ptr %layout, ptr %record, i64 LAYOUT_RECORD_STRUCTURE, ptr %identities)
  br label %results

structure.some:
  %mixed = call ptr @PyList_New(i64 %n)
  call void @give(ptr %layout, ptr %record, i64 LAYOUT_RECORD_STRUCTURE, ptr %mixed)
  %mixed.failed = icmp eq ptr %mixed, null
  br i1 %mixed.failed, label %failed.record, label %mix

mix:
  %m = phi i64 [ 0, %structure.some ], [ %m.next, %mix.one ]
  %mix.more = icmp slt i64 %m, %n
  br i1 %mix.more, label %mix.one, label %results

mix.one:
  %mix.x = call ptr @PyTuple_GetItem(ptr %inputs, i64 %m)
  %mix.identity = call ptr @pointer(ptr %mix.x, i64 %identity.word)
  %mix.shifted = lshr i64 %mask, %m
  %mix.reads = trunc i64 %mix.shifted to i1
  %mix.part = select i1 %mix.reads, ptr %mix.x, ptr %mix.identity
  call void @Py_IncRef(ptr %mix.part)
  %ignored.4 = call i32 @PyList_SetItem(ptr %mixed, i64 %m, ptr %mix.part)
  %m.next = add i64 %m, 1
  br label %mix

results:
  %reads.output = call i64 @word(ptr %call, i64 5)
  %reads = icmp ne i64 %reads.output, 0
  %results.part = select i1 %reads, ptr %outputs, ptr %fresh
  call void @share(ptr %layout, ptr %record, i64 LAYOUT_RECORD_RESULTS, ptr %results.part)
  %appended = call i32 @PyList_Append(ptr %records, ptr %record)
  %append.failed = icmp slt i32 %appended, 0
  br i1 %append.failed, label %failed.record, label %follow

follow:
  call void @Py_IncRef(ptr %y.identity)
  %y.slot = getelementptr ptr, ptr %y, i64 %identity.word
  %y.before = load ptr, ptr %y.slot
  store ptr %y.identity, ptr %y.slot
  call void @Py_DecRef(ptr %y.before)
  %added = call i32 @PySet_Add(ptr %live, ptr %y.key)
  call void @Py_DecRef(ptr %record)
  %add.failed = icmp slt i32 %added, 0
  br i1 %add.failed, label %failed, label %done

done:
  %true = call ptr @pointer(ptr %layout, i64 LAYOUT_TRUE)
  call void @Py_IncRef(ptr %true)
  ret ptr %true

unlinked:
  %false = call ptr @pointer(ptr %layout, i64 LAYOUT_FALSE)
  call void @Py_IncRef(ptr %false)
  ret ptr %false

declined:
  %nothing = call ptr @pointer(ptr %layout, i64 LAYOUT_NONE)
  call void @Py_IncRef(ptr %nothing)
  ret ptr %nothing

failed.record:
  call void @Py_DecRef(ptr %record)
  br label %failed

failed:  ; the exception is set
  ret ptr null
}

; signature(records, keys): bytes that are equal for two tapes if and only if their records are of the same calls, on the
; same of all tensors, of the same dtypes and shapes, with the same elements of short inputs of integers, and the keys, ids
; of identities, the same of all tensors. None: declined.
define internal ptr @signature(ptr %self, ptr %arguments, i64 %count) {
entry:
  %length = alloca i64
  %layout = call ptr @PyBytes_AsString(ptr %self)
  %table = call ptr @pointer(ptr %layout, i64 LAYOUT_SCRATCH)  ; of this function alone, which runs no other code of Python's
  %words = getelementptr [SIGNATURE_PLACES x %place], ptr %table, i64 1
  store i64 0, ptr %length
  %expected = icmp eq i64 %count, 2
  br i1 %expected, label %lists, label %declined

lists:
  %records = call ptr @pointer(ptr %arguments, i64 0)
  %sought = call ptr @pointer(ptr %arguments, i64 1)
  %list.type = call ptr @pointer(ptr %layout, i64 LAYOUT_LIST)
  %record.type = call ptr @pointer(ptr %layout, i64 LAYOUT_RECORD)
  %records.fit = call i1 @is_of(ptr %records, ptr %list.type)
  %sought.fit = call i1 @is_of(ptr %sought, ptr %list.type)
  %lists.fit = and i1 %records.fit, %sought.fit
  br i1 %lists.fit, label %clear, label %declined

clear:  ; half of the places are enough for 4 tensors a record, as most have at most 3
  %n = call i64 @PyList_Size(ptr %records)
  %n.sought = call i64 @PyList_Size(ptr %sought)
  %n.all = add i64 %n, %n.sought
  %half = shl i64 %n.all, 2
  %half.last = sub i64 %half, 1
  %leading = call i64 @llvm.ctlz.i64(i64 %half.last, i1 false)
  %exponent = sub i64 65, %leading
  %places = shl i64 1, %exponent
  %mask = sub i64 %places, 1
  %most = lshr i64 %places, 1
  %some = icmp sgt i64 %n, 0
  %few = icmp ule i64 %places, SIGNATURE_PLACES
  %fits = and i1 %some, %few
  %place.bytes = shl i64 %places, 4
  br i1 %fits, label %cleared, label %declined

cleared:
  call void @llvm.memset.p0.i64(ptr %table, i8 0, i64 %place.bytes, i1 false)
  br label %record

record:
  %r = phi i64 [ 0, %cleared ], [ %r.next, %record.next ]
  %number.record = phi i64 [ 0, %cleared ], [ %number.results, %record.next ]
  %record.more = icmp slt i64 %r, %n
  br i1 %record.more, label %record.kind, label %key

record.kind:
  %one = call ptr @PyList_GetItem(ptr %records, i64 %r)
  %is.record = call i1 @is_of(ptr %one, ptr %record.type)
  %room = load i64, ptr %length
  %has.room = icmp ult i64 %room, SIGNATURE_LAST_WORD
  %record.fits = and i1 %is.record, %has.room
  br i1 %record.fits, label %record.head, label %declined

record.head:
  %bound = call ptr @slot(ptr %layout, ptr %one, i64 LAYOUT_RECORD_BOUND)
  %op = call ptr @slot(ptr %layout, ptr %one, i64 LAYOUT_RECORD_OP)
  %inputs = call ptr @slot(ptr %layout, ptr %one, i64 LAYOUT_RECORD_INPUTS)
  %outputs = call ptr @slot(ptr %layout, ptr %one, i64 LAYOUT_RECORD_OUTPUTS)
  %structure = call ptr @slot(ptr %layout, ptr %one, i64 LAYOUT_RECORD_STRUCTURE)
  %bound.word = ptrtoint ptr %bound to i64
  call void @write(ptr %words, ptr %length, i64 %bound.word)
  %number.inputs = call i64 @identities(ptr %layout, ptr %inputs, ptr %op, ptr %table, i64 %mask, i64 %most, i64 %number.record, ptr %words, ptr %length)
  %inputs.declined = icmp slt i64 %number.inputs, 0
  br i1 %inputs.declined, label %declined, label %record.outputs

record.outputs:
  %number.results = call i64 @identities(ptr %layout, ptr %outputs, ptr null, ptr %table, i64 %mask, i64 %most, i64 %number.inputs, ptr %words, ptr %length)
  %outputs.declined = icmp slt i64 %number.results, 0
  br i1 %outputs.declined, label %declined, label %record.integers

record.integers:
  %integers.fit = call i1 @integers(ptr %layout, ptr %structure, ptr %words, ptr %length)
  br i1 %integers.fit, label %record.next, label %declined

record.next:
  %r.next = add i64 %r, 1
  br label %record

key:
  %s = phi i64 [ 0, %record ], [ %s.next, %key.write ]
  %number.key = phi i64 [ %number.record, %record ], [ %number.next, %key.write ]
  %key.more = icmp slt i64 %s, %n.sought
  br i1 %key.more, label %key.number, label %written

key.number:
  %key.object = call ptr @PyList_GetItem(ptr %sought, i64 %s)
  %key.address = call ptr @PyLong_AsVoidPtr(ptr %key.object)
  %key.room = load i64, ptr %length
  %key.has.room = icmp ult i64 %key.room, SIGNATURE_LAST_WORD
  %key.is.null = icmp eq ptr %key.address, null
  %key.has.place = icmp ult i64 %number.key, %most
  %key.fits = and i1 %key.has.room, %key.has.place
  br i1 %key.fits, label %key.kind, label %declined

key.kind:  ; 0 stands for a tensor that nothing depends on
  br i1 %key.is.null, label %key.none, label %key.place

key.none:
  br label %key.write

key.place:
  %place = call i64 @place_of(ptr %table, i64 %mask, ptr %key.address, i64 %number.key)
  %is.new = icmp eq i64 %place, %number.key
  %grown = zext i1 %is.new to i64
  br label %key.write

key.write:
  %key.word = phi i64 [ -1, %key.none ], [ %place, %key.place ]
  %growth = phi i64 [ 0, %key.none ], [ %grown, %key.place ]
  call void @write(ptr %words, ptr %length, i64 %key.word)
  %number.next = add i64 %number.key, %growth
  %s.next = add i64 %s, 1
  br label %key

written:
  %total = load i64, ptr %length
  %bytes = shl i64 %total, 3
  %result = call ptr @PyBytes_FromStringAndSize(ptr %words, i64 %bytes)
  ret ptr %result

declined:
  %none = call ptr @pointer(ptr %layout, i64 LAYOUT_NONE)
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}

declare i64 @llvm.ctlz.i64(i64, i1)

; Write down a list or tuple of identities: their count, and of each number, dtype and shape. Returns the next new number;
; -1 for those of another kind. A variable is of the dtype and shape that are attributes of the call that reads it.
define internal i64 @identities(ptr %layout, ptr %sequence, ptr %op, ptr %table, i64 %mask, i64 %most, i64 %first, ptr %words, ptr %length) {
entry:
  %identity.type = call ptr @pointer(ptr %layout, i64 LAYOUT_IDENTITY)
  %tuple.type = call ptr @pointer(ptr %layout, i64 LAYOUT_TUPLE)
  %reading = call ptr @pointer(ptr %layout, i64 LAYOUT_READING)
  %reads = icmp eq ptr %op, %reading
  %n = call i64 @size_of(ptr %layout, ptr %sequence)
  %is.sequence = icmp sge i64 %n, 0
  call void @write(ptr %words, ptr %length, i64 %n)
  br i1 %is.sequence, label %one, label %declined

one:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %number = phi i64 [ %first, %entry ], [ %number.next, %next ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %kind, label %done

kind:
  %x = call ptr @item(ptr %layout, ptr %sequence, i64 %i)
  %is.identity = call i1 @is_of(ptr %x, ptr %identity.type)
  %is.known = or i1 %is.identity, %reads
  %room = load i64, ptr %length
  %has.room = icmp ult i64 %room, SIGNATURE_LAST_WORD
  %has.place = icmp ult i64 %number, %most
  %has.both = and i1 %has.room, %has.place
  %fits = and i1 %is.known, %has.both
  br i1 %fits, label %numbered, label %declined

numbered:
  %place = call i64 @place_of(ptr %table, i64 %mask, ptr %x, i64 %number)
  %is.new = icmp eq i64 %place, %number
  %grown = zext i1 %is.new to i64
  %number.next = add i64 %number, %grown
  call void @write(ptr %words, ptr %length, i64 %place)
  %described = and i1 %is.new, %is.identity  ; once for each: identities do not change
  br i1 %described, label %shape, label %next

shape:
  %dtype = call ptr @slot(ptr %layout, ptr %x, i64 LAYOUT_IDENTITY_DTYPE)
  %dtype.word = ptrtoint ptr %dtype to i64
  call void @write(ptr %words, ptr %length, i64 %dtype.word)
  %sizes = call ptr @slot(ptr %layout, ptr %x, i64 LAYOUT_IDENTITY_SHAPE)
  %is.shape = call i1 @is_of(ptr %sizes, ptr %tuple.type)
  br i1 %is.shape, label %ranked, label %declined

ranked:
  %rank = call i64 @PyTuple_Size(ptr %sizes)
  call void @write(ptr %words, ptr %length, i64 %rank)
  %low = icmp ule i64 %rank, SIGNATURE_RANK
  br i1 %low, label %axis, label %declined

axis:
  %k = phi i64 [ 0, %ranked ], [ %k.next, %axis.size ]
  %axis.more = icmp slt i64 %k, %rank
  br i1 %axis.more, label %axis.size, label %next

axis.size:
  %size.object = call ptr @PyTuple_GetItem(ptr %sizes, i64 %k)
  %size = call i64 @PyLong_AsLongLong(ptr %size.object)
  call void @write(ptr %words, ptr %length, i64 %size)
  %k.next = add i64 %k, 1
  br label %axis

next:
  %i.next = add i64 %i, 1
  br label %one

done:
  ret i64 %number

declined:
  ret i64 -1
}

; Write down the elements of a call's short inputs of integers: axes, sizes, indices. Whether it could.
define internal i1 @integers(ptr %layout, ptr %structure, ptr %words, ptr %length) {
entry:
  %tensor.type = call ptr @pointer(ptr %layout, i64 LAYOUT_TENSOR)
  %array.type = call ptr @pointer(ptr %layout, i64 LAYOUT_ARRAY)
  %array.word = call i64 @word(ptr %layout, i64 LAYOUT_TENSOR_ARRAY)
  %dtype.word = call i64 @word(ptr %layout, i64 LAYOUT_TENSOR_DTYPE)
  %gradients = call i64 @word(ptr %layout, i64 LAYOUT_GRADIENTS)
  %kinds = call i64 @word(ptr %layout, i64 LAYOUT_INTEGERS)
  %most = call i64 @word(ptr %layout, i64 LAYOUT_MOST)
  %n = call i64 @size_of(ptr %layout, ptr %structure)
  %is.sequence = icmp sge i64 %n, 0
  br i1 %is.sequence, label %one, label %declined

one:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %kind, label %done

kind:
  %x = call ptr @item(ptr %layout, ptr %structure, i64 %i)
  %is.tensor = call i1 @is_of(ptr %x, ptr %tensor.type)
  br i1 %is.tensor, label %kept, label %next

kept:
  %dtype = call ptr @pointer(ptr %x, i64 %dtype.word)
  %is.integer = call i1 @among(ptr %layout, i64 %gradients, i64 %kinds, ptr %dtype)
  br i1 %is.integer, label %integer, label %next

integer:
  %array = call ptr @pointer(ptr %x, i64 %array.word)
  %is.array = call i1 @is_of(ptr %array, ptr %array.type)
  br i1 %is.array, label %count, label %declined

count:
  %rank.word = call i64 @word(ptr %array, i64 ARRAY_RANK)
  %rank = and i64 %rank.word, 4294967295
  %sizes = call ptr @pointer(ptr %array, i64 ARRAY_SIZES)
  br label %axis

axis:
  %k = phi i64 [ 0, %count ], [ %k.next, %axis.size ]
  %elements = phi i64 [ 1, %count ], [ %elements.next, %axis.size ]
  %axis.more = icmp slt i64 %k, %rank
  br i1 %axis.more, label %axis.size, label %counted

axis.size:
  %size = call i64 @word(ptr %sizes, i64 %k)
  %elements.next = mul i64 %elements, %size
  %k.next = add i64 %k, 1
  br label %axis

counted:
  %short = icmp ule i64 %elements, %most
  br i1 %short, label %dense, label %next

dense:
  %flags = call i64 @word(ptr %array, i64 ARRAY_FLAGS)
  %dense.flags = and i64 %flags, ARRAY_CONTIGUOUS
  %is.dense = icmp eq i64 %dense.flags, ARRAY_CONTIGUOUS
  %room = load i64, ptr %length
  %has.room = icmp ult i64 %room, SIGNATURE_LAST_WORD
  %fits = and i1 %is.dense, %has.room
  br i1 %fits, label %copy, label %declined

copy:  ; the dtype and the shape are those of the identity
  %numpy = call ptr @pointer(ptr %array, i64 ARRAY_DTYPE)
  %itemsize = call i64 @word(ptr %numpy, i64 DTYPE_ITEMSIZE)
  %bytes = mul i64 %elements, %itemsize
  %from = call ptr @pointer(ptr %array, i64 ARRAY_DATA)
  %at = load i64, ptr %length
  %to = getelementptr i64, ptr %words, i64 %at
  %padded = add i64 %bytes, 7
  %count.words = lshr i64 %padded, 3
  %whole = shl i64 %count.words, 3
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 %whole, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  %at.next = add i64 %at, %count.words
  store i64 %at.next, ptr %length
  br label %next

next:
  %i.next = add i64 %i, 1
  br label %one

done:
  ret i1 true

declined:
  ret i1 false
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; The number of an identity; a new one gets `next`. The table, of mask + 1 places, never gets full.
define internal i64 @place_of(ptr %table, i64 %mask, ptr %identity, i64 %next) alwaysinline {
entry:
  %address = ptrtoint ptr %identity to i64
  %mixed = mul i64 %address, -7046029254386353131  ; Fibonacci hashing: 2**64 over the golden ratio
  %first = lshr i64 %mixed, 40
  br label %probe

probe:
  %unmasked = phi i64 [ %first, %entry ], [ %following, %other ]
  %position = and i64 %unmasked, %mask
  %at = getelementptr %place, ptr %table, i64 %position
  %at.number = getelementptr %place, ptr %table, i64 %position, i32 1
  %there = load ptr, ptr %at
  %is.same = icmp eq ptr %there, %identity
  br i1 %is.same, label %old, label %different

different:
  %is.free = icmp eq ptr %there, null
  br i1 %is.free, label %new, label %other

other:
  %following = add i64 %position, 1
  br label %probe

old:
  %number = load i64, ptr %at.number
  ret i64 %number

new:
  store ptr %identity, ptr %at
  store i64 %next, ptr %at.number
  ret i64 %next
}

define internal void @write(ptr %words, ptr %length, i64 %word) alwaysinline {
  %at = load i64, ptr %length
  %slot = getelementptr i64, ptr %words, i64 %at
  store i64 %word, ptr %slot
  %next = add i64 %at, 1
  store i64 %next, ptr %length
  ret void
}

; The number of items of a list or tuple; -1 for other objects.
define internal i64 @size_of(ptr %layout, ptr %sequence) alwaysinline {
entry:
  %list.type = call ptr @pointer(ptr %layout, i64 LAYOUT_LIST)
  %tuple.type = call ptr @pointer(ptr %layout, i64 LAYOUT_TUPLE)
  %is.list = call i1 @is_of(ptr %sequence, ptr %list.type)
  br i1 %is.list, label %list, label %other

list:
  %in.list = call i64 @PyList_Size(ptr %sequence)
  ret i64 %in.list

other:
  %is.tuple = call i1 @is_of(ptr %sequence, ptr %tuple.type)
  br i1 %is.tuple, label %tuple, label %neither

tuple:
  %in.tuple = call i64 @PyTuple_Size(ptr %sequence)
  ret i64 %in.tuple

neither:
  ret i64 -1
}

; An item of a list or tuple, borrowed.
define internal ptr @item(ptr %layout, ptr %sequence, i64 %i) alwaysinline {
entry:
  %list.type = call ptr @pointer(ptr %layout, i64 LAYOUT_LIST)
  %is.list = call i1 @is_of(ptr %sequence, ptr %list.type)
  br i1 %is.list, label %list, label %tuple

list:
  %of.list = call ptr @PyList_GetItem(ptr %sequence, i64 %i)
  ret ptr %of.list

tuple:
  %of.tuple = call ptr @PyTuple_GetItem(ptr %sequence, i64 %i)
  ret ptr %of.tuple
}

; The sizes of an array as a tuple. Null without memory.
define internal ptr @shape_of(ptr %array) {
entry:
  %rank.word = call i64 @word(ptr %array, i64 ARRAY_RANK)
  %rank = and i64 %rank.word, 4294967295
  %sizes = call ptr @pointer(ptr %array, i64 ARRAY_SIZES)
  %shape = call ptr @PyTuple_New(i64 %rank)
  %failed = icmp eq ptr %shape, null
  br i1 %failed, label %none, label %axis

axis:
  %k = phi i64 [ 0, %entry ], [ %k.next, %axis.set ]
  %more = icmp slt i64 %k, %rank
  br i1 %more, label %axis.size, label %done

axis.size:
  %size = call i64 @word(ptr %sizes, i64 %k)
  %object = call ptr @PyLong_FromLongLong(i64 %size)
  %size.failed = icmp eq ptr %object, null
  br i1 %size.failed, label %drop, label %axis.set

axis.set:
  %ignored = call i32 @PyTuple_SetItem(ptr %shape, i64 %k, ptr %object)
  %k.next = add i64 %k, 1
  br label %axis

done:
  ret ptr %shape

drop:
  call void @Py_DecRef(ptr %shape)
  br label %none

none:
  ret ptr null
}

; Whether a dtype is one of `count` of the layout, from `first`.
define internal i1 @among(ptr %layout, i64 %first, i64 %count, ptr %dtype) {
entry:
  %skipped = add i64 LAYOUT_DTYPES, %first
  %dtypes = getelementptr ptr, ptr %layout, i64 %skipped
  br label %one

one:
  %i = phi i64 [ 0, %entry ], [ %i.next, %other ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %compare, label %no

compare:
  %at = getelementptr ptr, ptr %dtypes, i64 %i
  %there = load ptr, ptr %at
  %is.same = icmp eq ptr %there, %dtype
  br i1 %is.same, label %yes, label %other

other:
  %i.next = add i64 %i, 1
  br label %one

yes:
  ret i1 true

no:
  ret i1 false
}

; Whether an object is exactly of a type.
define internal i1 @is_of(ptr %object, ptr %type) alwaysinline {
  %its = call ptr @pointer(ptr %object, i64 1)
  %same = icmp eq ptr %its, %type
  ret i1 %same
}

; A slot of an object, at the word that a field of the layout says; borrowed.
define internal ptr @slot(ptr %layout, ptr %object, i64 %field) alwaysinline {
  %which = call i64 @word(ptr %layout, i64 %field)
  %content = call ptr @pointer(ptr %object, i64 %which)
  ret ptr %content
}

; Set an empty slot, at the word that a field of the layout says: to an object whose reference it takes.
define internal void @give(ptr %layout, ptr %object, i64 %field, ptr %content) alwaysinline {
  %which = call i64 @word(ptr %layout, i64 %field)
  %at = getelementptr ptr, ptr %object, i64 %which
  store ptr %content, ptr %at
  ret void
}

; The same with a new reference.
define internal void @share(ptr %layout, ptr %object, i64 %field, ptr %content) alwaysinline {
  call void @Py_IncRef(ptr %content)
  call void @give(ptr %layout, ptr %object, i64 %field, ptr %content)
  ret void
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
