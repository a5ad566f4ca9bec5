; Operators on strings, and on hash tables, as functions of Python's (PyCFunction). Strings are objects of type bytes in
; arrays of NumPy's, so all of this holds the GIL; callers limit the work.
;
; `self` is an array of objects: first an array of int64, the words of the call, then the operands. A function gives 0 if
; it has done its work, else 1: the caller's Python does it then, and reports what is wrong.

declare i32 @memcmp(ptr, ptr, i64)
declare ptr @memcpy(ptr, ptr, i64)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare ptr @PyBytes_AsString(ptr)
declare i64 @PyBytes_Size(ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare void @PyErr_Clear()

; Where the functions below are: the one that a loader looks up.
define ptr @string_calls(i64 %which) {
  %at = getelementptr [6 x ptr], ptr @functions, i64 0, i64 %which
  %function = load ptr, ptr %at
  ret ptr %function
}
@functions = internal constant [6 x ptr] [ptr @equal, ptr @move, ptr @gather, ptr @find, ptr @table_size, ptr @skip_gram]

; out[i] = (x[i * x step] == y[i * y step]) ^ negated. Operands: x, y, out, the type of strings; words: number, x step,
; y step, negated.
define internal ptr @equal(ptr %self, ptr %nothing) {
entry:
  %words = call ptr @operand(ptr %self, i64 0)
  %xs = call ptr @operand(ptr %self, i64 1)
  %ys = call ptr @operand(ptr %self, i64 2)
  %out = call ptr @operand(ptr %self, i64 3)
  %items = call ptr @elements(ptr %self)
  %type = call i64 @word(ptr %items, i64 4)
  %n = call i64 @word(ptr %words, i64 0)
  %x.step = call i64 @word(ptr %words, i64 1)
  %y.step = call i64 @word(ptr %words, i64 2)
  %negated.word = call i64 @word(ptr %words, i64 3)
  %negated = trunc i64 %negated.word to i1
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %answered ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %pair, label %done

pair:
  %x.index = mul i64 %i, %x.step
  %y.index = mul i64 %i, %y.step
  %x = call ptr @object(ptr %xs, i64 %x.index)
  %y = call ptr @object(ptr %ys, i64 %y.index)
  %same = icmp eq ptr %x, %y
  %x.type = call i64 @word(ptr %x, i64 1)
  %y.type = call i64 @word(ptr %y, i64 1)
  %x.typed = icmp eq i64 %x.type, %type
  %y.typed = icmp eq i64 %y.type, %type
  %typed = and i1 %x.typed, %y.typed
  br i1 %typed, label %strings, label %declined

strings:
  br i1 %same, label %answered, label %sizes

sizes:
  %x.size = call i64 @PyBytes_Size(ptr %x)
  %y.size = call i64 @PyBytes_Size(ptr %y)
  %same.size = icmp eq i64 %x.size, %y.size
  br i1 %same.size, label %bytes, label %answered

bytes:
  %x.bytes = call ptr @PyBytes_AsString(ptr %x)
  %y.bytes = call ptr @PyBytes_AsString(ptr %y)
  %order = call i32 @memcmp(ptr %x.bytes, ptr %y.bytes, i64 %x.size)
  %same.bytes = icmp eq i32 %order, 0
  br label %answered

answered:
  %equal = phi i1 [ true, %strings ], [ false, %sizes ], [ %same.bytes, %bytes ]
  %answer = xor i1 %equal, %negated
  %answer.byte = zext i1 %answer to i8
  %out.at = getelementptr i8, ptr %out, i64 %i
  store i8 %answer.byte, ptr %out.at
  %i.next = add i64 %i, 1
  br label %next

done:
  %good = call ptr @PyLong_FromLongLong(i64 0)
  ret ptr %good

declined:
  %bad = call ptr @PyLong_FromLongLong(i64 1)
  ret ptr %bad
}

; out[i] = x[positions[i]]. Operands: x, positions, out; words: number.
define internal ptr @move(ptr %self, ptr %nothing) {
entry:
  %words = call ptr @operand(ptr %self, i64 0)
  %xs = call ptr @operand(ptr %self, i64 1)
  %positions = call ptr @operand(ptr %self, i64 2)
  %out = call ptr @operand(ptr %self, i64 3)
  %n = call i64 @word(ptr %words, i64 0)
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %copy ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %copy, label %done

copy:
  %position = call i64 @word(ptr %positions, i64 %i)
  %x = call ptr @object(ptr %xs, i64 %position)
  call void @set(ptr %out, i64 %i, ptr %x)
  %i.next = add i64 %i, 1
  br label %next

done:
  %good = call ptr @PyLong_FromLongLong(i64 0)
  ret ptr %good
}

; out[o, i, k] = x[o, indices[i], k]. Operands: x, indices, out; words: size of o, of the axis of x, of i, of k, bytes of
; an index (4 or 8).
define internal ptr @gather(ptr %self, ptr %nothing) {
entry:
  %words = call ptr @operand(ptr %self, i64 0)
  %xs = call ptr @operand(ptr %self, i64 1)
  %indices = call ptr @operand(ptr %self, i64 2)
  %out = call ptr @operand(ptr %self, i64 3)
  %outer = call i64 @word(ptr %words, i64 0)
  %axis = call i64 @word(ptr %words, i64 1)
  %count = call i64 @word(ptr %words, i64 2)
  %inner = call i64 @word(ptr %words, i64 3)
  %bytes = call i64 @word(ptr %words, i64 4)
  br label %check

check:
  %c = phi i64 [ 0, %entry ], [ %c.next, %checked ]
  %unchecked = icmp slt i64 %c, %count
  br i1 %unchecked, label %bounds, label %next

bounds:
  %checked.index = call i64 @index(ptr %indices, i64 %c, i64 %bytes)
  %inside = icmp ult i64 %checked.index, %axis
  br i1 %inside, label %checked, label %declined

checked:
  %c.next = add i64 %c, 1
  br label %check

next:
  %o = phi i64 [ 0, %check ], [ %o.next, %outer.done ]
  %more = icmp slt i64 %o, %outer
  br i1 %more, label %indexed, label %done

indexed:
  %i = phi i64 [ 0, %next ], [ %i.next, %inner.done ]
  %i.more = icmp slt i64 %i, %count
  br i1 %i.more, label %rows, label %outer.done

rows:
  %which = call i64 @index(ptr %indices, i64 %i, i64 %bytes)
  %x.block = mul i64 %o, %axis
  %x.row = add i64 %x.block, %which
  %x.start = mul i64 %x.row, %inner
  %out.block = mul i64 %o, %count
  %out.row = add i64 %out.block, %i
  %out.start = mul i64 %out.row, %inner
  br label %inside.row

inside.row:
  %k = phi i64 [ 0, %rows ], [ %k.next, %copy ]
  %k.more = icmp slt i64 %k, %inner
  br i1 %k.more, label %copy, label %inner.done

copy:
  %from = add i64 %x.start, %k
  %to = add i64 %out.start, %k
  %x = call ptr @object(ptr %xs, i64 %from)
  call void @set(ptr %out, i64 %to, ptr %x)
  %k.next = add i64 %k, 1
  br label %inside.row

inner.done:
  %i.next = add i64 %i, 1
  br label %indexed

outer.done:
  %o.next = add i64 %o, 1
  br label %next

done:
  %good = call ptr @PyLong_FromLongLong(i64 0)
  ret ptr %good

declined:
  %bad = call ptr @PyLong_FromLongLong(i64 1)
  ret ptr %bad
}

; out[i] = table[keys[i]], or the default. Operands: the table, keys, default, out, the type of dicts; words: number,
; whether keys are strings (and values int64; else it is the other way round), the table's word that holds its dict.
define internal ptr @find(ptr %self, ptr %nothing) {
entry:
  %words = call ptr @operand(ptr %self, i64 0)
  %keys = call ptr @operand(ptr %self, i64 2)
  %default = call ptr @operand(ptr %self, i64 3)
  %out = call ptr @operand(ptr %self, i64 4)
  %n = call i64 @word(ptr %words, i64 0)
  %by.string.word = call i64 @word(ptr %words, i64 1)
  %by.string = trunc i64 %by.string.word to i1
  %dict = call ptr @dict_of(ptr %self, ptr %words, i64 2, i64 5)
  %unfilled = icmp eq ptr %dict, null
  br i1 %unfilled, label %declined, label %next

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %found ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %key, label %done

key:
  br i1 %by.string, label %string, label %number

string:
  %string.key = call ptr @object(ptr %keys, i64 %i)
  %value.number = call ptr @PyDict_GetItemWithError(ptr %dict, ptr %string.key)
  %string.missing = icmp eq ptr %value.number, null
  br i1 %string.missing, label %default.number, label %take.number

take.number:
  %taken = call i64 @PyLong_AsLongLong(ptr %value.number)
  br label %store.number

default.number:
  call void @PyErr_Clear()
  %other = call i64 @word(ptr %default, i64 0)
  br label %store.number

store.number:
  %stored = phi i64 [ %taken, %take.number ], [ %other, %default.number ]
  %out.at = getelementptr i64, ptr %out, i64 %i
  store i64 %stored, ptr %out.at
  br label %found

number:
  %key.number = call i64 @word(ptr %keys, i64 %i)
  %number.key = call ptr @PyLong_FromLongLong(i64 %key.number)
  %no.memory = icmp eq ptr %number.key, null
  br i1 %no.memory, label %failed, label %look.up

look.up:
  %value.string = call ptr @PyDict_GetItemWithError(ptr %dict, ptr %number.key)
  call void @Py_DecRef(ptr %number.key)
  %number.missing = icmp eq ptr %value.string, null
  %default.string = call ptr @object(ptr %default, i64 0)
  %string.value = select i1 %number.missing, ptr %default.string, ptr %value.string
  call void @set(ptr %out, i64 %i, ptr %string.value)
  br label %found

found:
  %i.next = add i64 %i, 1
  br label %next

done:
  %good = call ptr @PyLong_FromLongLong(i64 0)
  ret ptr %good

failed:
  call void @PyErr_Clear()
  br label %declined

declined:
  %bad = call ptr @PyLong_FromLongLong(i64 1)
  ret ptr %bad
}

; out[0] = the number of keys. Operands: the table, out, the type of dicts; words: the table's word that holds its dict.
define internal ptr @table_size(ptr %self, ptr %nothing) {
entry:
  %words = call ptr @operand(ptr %self, i64 0)
  %out = call ptr @operand(ptr %self, i64 2)
  %dict = call ptr @dict_of(ptr %self, ptr %words, i64 0, i64 3)
  %unfilled = icmp eq ptr %dict, null
  br i1 %unfilled, label %declined, label %filled

filled:
  %size = call i64 @PyDict_Size(ptr %dict)
  store i64 %size, ptr %out
  %good = call ptr @PyLong_FromLongLong(i64 0)
  ret ptr %good

declined:
  %bad = call ptr @PyLong_FromLongLong(i64 1)
  ret ptr %bad
}

; The dict of a table, operand 1; null if it has none. slot: index of the word for it; type: index of the type of dicts.
define internal ptr @dict_of(ptr %self, ptr %words, i64 %slot, i64 %type) alwaysinline {
entry:
  %items = call ptr @elements(ptr %self)
  %table = call ptr @object(ptr %items, i64 1)
  %expected = call i64 @word(ptr %items, i64 %type)
  %where = call i64 @word(ptr %words, i64 %slot)
  %dict = call ptr @object(ptr %table, i64 %where)
  %missing = icmp eq ptr %dict, null
  br i1 %missing, label %none, label %typed

typed:
  %kind = call i64 @word(ptr %dict, i64 1)
  %is.dict = icmp eq i64 %kind, %expected
  br i1 %is.dict, label %filled, label %none

filled:
  ret ptr %dict

none:
  ret ptr null
}

; All runs of words of a text, in the order of SKIP_GRAM, if there are as many as out has elements. Operands: x, out, the
; type of strings; words: number of out, words of a run, words that a run may leave out, whether shorter runs count.
define internal ptr @skip_gram(ptr %self, ptr %nothing) {
entry:
  %starts = alloca [MOST_WORDS x i64]
  %ends = alloca [MOST_WORDS x i64]
  %run = alloca [MOST_DEPTH x i64]
  %words = call ptr @operand(ptr %self, i64 0)
  %xs = call ptr @operand(ptr %self, i64 1)
  %out = call ptr @operand(ptr %self, i64 2)
  %items = call ptr @elements(ptr %self)
  %type = call i64 @word(ptr %items, i64 3)
  %expected = call i64 @word(ptr %words, i64 0)
  %deepest = call i64 @word(ptr %words, i64 1)
  %skips = call i64 @word(ptr %words, i64 2)
  %shorter.word = call i64 @word(ptr %words, i64 3)
  %shorter = trunc i64 %shorter.word to i1
  %x = call ptr @object(ptr %xs, i64 0)
  %x.type = call i64 @word(ptr %x, i64 1)
  %typed = icmp eq i64 %x.type, %type
  br i1 %typed, label %text, label %declined

text:
  %size = call i64 @PyBytes_Size(ptr %x)
  %bytes = call ptr @PyBytes_AsString(ptr %x)
  %is.long = icmp sgt i64 %size, MOST_BYTES
  br i1 %is.long, label %declined, label %split

split:  ; at the whitespace of bytes.split
  %at = phi i64 [ 0, %text ], [ %at.next, %split.next ]
  %count = phi i64 [ 0, %text ], [ %count.next, %split.next ]
  %begin = phi i64 [ -1, %text ], [ %begin.next, %split.next ]
  %over = icmp sge i64 %at, %size
  br i1 %over, label %boundary, label %look

look:
  %byte.at = getelementptr i8, ptr %bytes, i64 %at
  %byte = load i8, ptr %byte.at
  %blank = icmp eq i8 %byte, 32
  %below = sub i8 %byte, 9
  %control = icmp ult i8 %below, 5
  %space = or i1 %blank, %control
  br i1 %space, label %boundary, label %letter

letter:
  %is.first = icmp slt i64 %begin, 0
  %begin.letter = select i1 %is.first, i64 %at, i64 %begin
  br label %split.next

boundary:
  %in.word = icmp sge i64 %begin, 0
  br i1 %in.word, label %word.ends, label %boundary.next

word.ends:
  %full = icmp sge i64 %count, MOST_WORDS
  br i1 %full, label %declined, label %keep

keep:
  %start.at = getelementptr i64, ptr %starts, i64 %count
  %end.at = getelementptr i64, ptr %ends, i64 %count
  store i64 %begin, ptr %start.at
  store i64 %at, ptr %end.at
  %count.more = add i64 %count, 1
  br label %boundary.next

boundary.next:
  %count.boundary = phi i64 [ %count, %boundary ], [ %count.more, %keep ]
  br i1 %over, label %ready, label %split.next

split.next:
  %count.next = phi i64 [ %count, %letter ], [ %count.boundary, %boundary.next ]
  %begin.next = phi i64 [ %begin.letter, %letter ], [ -1, %boundary.next ]
  %at.next = add i64 %at, 1
  br label %split

ready:
  %last.word = sub i64 %count.boundary, 1
  %few = icmp slt i64 %count.boundary, %deepest
  br i1 %few, label %compare, label %first

first:  ; a run of one word, the first of the text
  store i64 0, ptr %run
  br label %enter

enter:  ; a run of `depth` words: longer ones come first
  %depth = phi i64 [ 1, %first ], [ %depth.more, %descend ], [ %depth.same, %sibling ]
  %made = phi i64 [ 0, %first ], [ %made, %descend ], [ %made.after, %sibling ]
  %is.whole = icmp eq i64 %depth, %deepest
  %top = sub i64 %depth, 1
  %tail = call i64 @word(ptr %run, i64 %top)
  %has.more = icmp slt i64 %tail, %last.word
  %is.short = xor i1 %is.whole, true
  %descends = and i1 %is.short, %has.more
  br i1 %descends, label %descend, label %leave

descend:
  %follower = add i64 %tail, 1
  %below.at = getelementptr i64, ptr %run, i64 %depth
  store i64 %follower, ptr %below.at
  %depth.more = add i64 %depth, 1
  br label %enter

leave:  ; all longer ones are made: this one counts, if it is whole or shorter ones do
  %leaving = phi i64 [ %depth, %enter ], [ %parent, %ascend ]
  %made.before = phi i64 [ %made, %enter ], [ %made.after, %ascend ]
  %leaving.whole = icmp eq i64 %leaving, %deepest
  %counts = or i1 %leaving.whole, %shorter
  br i1 %counts, label %room, label %left

room:
  %has.room = icmp slt i64 %made.before, %expected
  br i1 %has.room, label %measure, label %declined

measure:
  %m = phi i64 [ 0, %room ], [ %m.next, %measure ]
  %length = phi i64 [ -1, %room ], [ %length.next, %measure ]
  %m.word = call i64 @word(ptr %run, i64 %m)
  %m.start = call i64 @word(ptr %starts, i64 %m.word)
  %m.end = call i64 @word(ptr %ends, i64 %m.word)
  %m.size = sub i64 %m.end, %m.start
  %m.length = add i64 %m.size, 1
  %length.next = add i64 %length, %m.length
  %m.next = add i64 %m, 1
  %m.more = icmp slt i64 %m.next, %leaving
  br i1 %m.more, label %measure, label %allocate

allocate:
  %gram = call ptr @PyBytes_FromStringAndSize(ptr null, i64 %length.next)
  %no.memory = icmp eq ptr %gram, null
  br i1 %no.memory, label %failed, label %write

write:
  %to = call ptr @PyBytes_AsString(ptr %gram)
  br label %join

join:
  %j = phi i64 [ 0, %write ], [ %j.next, %joined ]
  %offset = phi i64 [ 0, %write ], [ %offset.next, %joined ]
  %j.word = call i64 @word(ptr %run, i64 %j)
  %j.start = call i64 @word(ptr %starts, i64 %j.word)
  %j.end = call i64 @word(ptr %ends, i64 %j.word)
  %j.size = sub i64 %j.end, %j.start
  %j.from = getelementptr i8, ptr %bytes, i64 %j.start
  %j.to = getelementptr i8, ptr %to, i64 %offset
  %ignored = call ptr @memcpy(ptr %j.to, ptr %j.from, i64 %j.size)
  %offset.word = add i64 %offset, %j.size
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, %leaving
  br i1 %j.more, label %joined, label %keep.gram

joined:
  %blank.at = getelementptr i8, ptr %to, i64 %offset.word
  store i8 32, ptr %blank.at
  %offset.next = add i64 %offset.word, 1
  br label %join

keep.gram:
  call void @set(ptr %out, i64 %made.before, ptr %gram)
  call void @Py_DecRef(ptr %gram)
  %made.more = add i64 %made.before, 1
  br label %left

left:
  %made.after = phi i64 [ %made.before, %leave ], [ %made.more, %keep.gram ]
  %parent = sub i64 %leaving, 1
  %is.single = icmp eq i64 %parent, 0
  br i1 %is.single, label %limit, label %limited

limited:  ; so many words after its predecessor
  %above = sub i64 %leaving, 2
  %predecessor = call i64 @word(ptr %run, i64 %above)
  %reach = add i64 %predecessor, %skips
  %reach.more = add i64 %reach, 1
  %within = icmp slt i64 %reach.more, %last.word
  %farthest = select i1 %within, i64 %reach.more, i64 %last.word
  br label %limit

limit:
  %bound = phi i64 [ %last.word, %left ], [ %farthest, %limited ]
  %present = call i64 @word(ptr %run, i64 %parent)
  %has.sibling = icmp slt i64 %present, %bound
  br i1 %has.sibling, label %sibling, label %ascend

sibling:
  %depth.same = add i64 %parent, 1
  %present.next = add i64 %present, 1
  %present.at = getelementptr i64, ptr %run, i64 %parent
  store i64 %present.next, ptr %present.at
  br label %enter

ascend:
  br i1 %is.single, label %compare, label %leave

compare:
  %total = phi i64 [ 0, %ready ], [ %made.after, %ascend ]
  %complete = icmp eq i64 %total, %expected
  br i1 %complete, label %done, label %declined

done:
  %good = call ptr @PyLong_FromLongLong(i64 0)
  ret ptr %good

failed:
  call void @PyErr_Clear()
  br label %declined

declined:
  %bad = call ptr @PyLong_FromLongLong(i64 1)
  ret ptr %bad
}

; Replace an object of an array.
define internal void @set(ptr %out, i64 %i, ptr %new) alwaysinline {
  %at = getelementptr ptr, ptr %out, i64 %i
  %old = load ptr, ptr %at
  call void @Py_IncRef(ptr %new)
  store ptr %new, ptr %at
  call void @Py_DecRef(ptr %old)
  ret void
}

; An index of 4 or 8 bytes.
define internal i64 @index(ptr %indices, i64 %i, i64 %bytes) alwaysinline {
entry:
  %is.narrow = icmp eq i64 %bytes, 4
  br i1 %is.narrow, label %narrow, label %wide

narrow:
  %narrow.at = getelementptr i32, ptr %indices, i64 %i
  %short = load i32, ptr %narrow.at
  %extended = sext i32 %short to i64
  br label %done

wide:
  %wide.at = getelementptr i64, ptr %indices, i64 %i
  %whole = load i64, ptr %wide.at
  br label %done

done:
  %index = phi i64 [ %extended, %narrow ], [ %whole, %wide ]
  ret i64 %index
}

; The elements of an operand, an array.
define internal ptr @operand(ptr %self, i64 %i) alwaysinline {
  %items = call ptr @elements(ptr %self)
  %array = call ptr @object(ptr %items, i64 %i)
  %found = call ptr @elements(ptr %array)
  ret ptr %found
}

; Where an array's elements are.
define internal ptr @elements(ptr %array) alwaysinline {
  %found = call ptr @object(ptr %array, i64 ARRAY_DATA)
  ret ptr %found
}

; An object of an array's elements, or a word of an object that is an address.
define internal ptr @object(ptr %from, i64 %i) alwaysinline {
  %at = getelementptr ptr, ptr %from, i64 %i
  %found = load ptr, ptr %at
  ret ptr %found
}

; A word of an object.
define internal i64 @word(ptr %object, i64 %which) alwaysinline {
  %at = getelementptr i64, ptr %object, i64 %which
  %found = load i64, ptr %at
  ret i64 %found
}
