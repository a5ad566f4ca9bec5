; The callbacks of an operator in the official run time, in the order of LiteRtCustomOpKernel but for the second, which
; is Python's. User data is the node's record.
;
; Run locks the node's tensor buffers, which gives their addresses, writes these into the words of the node's plan and
; runs the plan. No Python, no allocation. Where there is no plan, or it stops, Python is called with the buffers still
; locked.

%patch = type { ptr, i64, i64 }  ; a word, which address goes there, bytes to add
%record = type {
  i64, i64,    ; inputs and outputs that the run time hands over
  ptr, ptr,    ; LiteRtLockTensorBuffer, LiteRtUnlockTensorBuffer
  ptr,         ; room for the addresses: inputs, then outputs
  ptr, ptr,    ; what runs a plan, and the plan; null where Python does
  i64, ptr,    ; patches
  ptr          ; Python: i32 (record, which of the calls failed, outputs as the run time gave them)
}

; Where the functions below are.
define ptr @callbacks(i64 %which) {
  %at = getelementptr [4 x ptr], ptr @functions, i64 0, i64 %which
  %function = load ptr, ptr %at
  ret ptr %function
}
@functions = internal constant [4 x ptr] [ptr @init, ptr @run, ptr @destroy, ptr @foreign]

; What runs an operator of a C library in place of a plan: i32 run(call), unless the word says that the patched ones are
; no longer looked at.
%foreign = type { ptr, ptr, ptr, ptr }  ; run, call, a word, what it is expected to be

define internal i64 @foreign(ptr %of) {
  %where.at = getelementptr %foreign, ptr %of, i64 0, i32 2
  %where = load ptr, ptr %where.at
  %found = load ptr, ptr %where
  %expected.at = getelementptr %foreign, ptr %of, i64 0, i32 3
  %expected = load ptr, ptr %expected.at
  %same = icmp eq ptr %found, %expected
  br i1 %same, label %run, label %moved

run:
  %function = load ptr, ptr %of
  %call.at = getelementptr %foreign, ptr %of, i64 0, i32 1
  %call = load ptr, ptr %call.at
  %status = call i32 %function(ptr %call)
  %wide = sext i32 %status to i64
  ret i64 %wide

moved:
  ret i64 1
}

; Options are known before the run time reads them: it gives no handle by which nodes could be told apart.
define internal i32 @init(ptr %record, ptr %options, i64 %size) {
  ret i32 0
}

define internal i32 @destroy(ptr %record) {
  ret i32 0
}

define internal i32 @run(ptr %record, i64 %inputs, ptr %in, i64 %outputs, ptr %out) {
entry:
  %inputs.known = load i64, ptr %record
  %outputs.known.at = getelementptr %record, ptr %record, i64 0, i32 1
  %outputs.known = load i64, ptr %outputs.known.at
  %same.in = icmp eq i64 %inputs, %inputs.known
  %same.out = icmp eq i64 %outputs, %outputs.known
  %same = and i1 %same.in, %same.out
  br i1 %same, label %lock, label %stranger

stranger:  ; nothing of it is touched
  %python.at.0 = getelementptr %record, ptr %record, i64 0, i32 9
  %python.0 = load ptr, ptr %python.at.0
  %told.0 = call i32 %python.0(ptr %record, i32 -1, ptr null)
  ret i32 %told.0

lock:
  %lock.at = getelementptr %record, ptr %record, i64 0, i32 2
  %locks = load ptr, ptr %lock.at
  %addresses.at = getelementptr %record, ptr %record, i64 0, i32 4
  %addresses = load ptr, ptr %addresses.at
  %outs = getelementptr ptr, ptr %addresses, i64 %inputs
  %failed.in = call i32 @lock(ptr %locks, i64 %inputs, ptr %in, ptr %addresses, i32 0)
  %failed.out = call i32 @lock(ptr %locks, i64 %outputs, ptr %out, ptr %outs, i32 1)
  %failed = or i32 %failed.in, %failed.out
  %plan.at = getelementptr %record, ptr %record, i64 0, i32 6
  %plan = load ptr, ptr %plan.at
  %locked = icmp eq i32 %failed, 0
  %planned = icmp ne ptr %plan, null
  %fit = and i1 %locked, %planned
  br i1 %fit, label %patches, label %python

patches:
  %count.at = getelementptr %record, ptr %record, i64 0, i32 7
  %count = load i64, ptr %count.at
  %first.at = getelementptr %record, ptr %record, i64 0, i32 8
  %first = load ptr, ptr %first.at
  %none = icmp eq i64 %count, 0
  br i1 %none, label %execute, label %patch

patch:
  %i = phi i64 [ 0, %patches ], [ %i.next, %patch ]
  %p = getelementptr %patch, ptr %first, i64 %i
  %word = load ptr, ptr %p
  %which.at = getelementptr %patch, ptr %p, i64 0, i32 1
  %which = load i64, ptr %which.at
  %offset.at = getelementptr %patch, ptr %p, i64 0, i32 2
  %offset = load i64, ptr %offset.at
  %address.at = getelementptr i64, ptr %addresses, i64 %which
  %address = load i64, ptr %address.at
  %moved = add i64 %address, %offset
  store i64 %moved, ptr %word
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %count
  br i1 %more, label %patch, label %execute

execute:
  %execute.at = getelementptr %record, ptr %record, i64 0, i32 5
  %run = load ptr, ptr %execute.at
  %status = call i64 %run(ptr %plan)
  %ran = icmp eq i64 %status, 0
  br i1 %ran, label %unlock, label %python

python:
  %python.at = getelementptr %record, ptr %record, i64 0, i32 9
  %python.do = load ptr, ptr %python.at
  %told = call i32 %python.do(ptr %record, i32 %failed, ptr %out)
  br label %unlock

unlock:
  %result = phi i32 [ 0, %execute ], [ %told, %python ]
  %unlock.at = getelementptr %record, ptr %record, i64 0, i32 3
  %unlocks = load ptr, ptr %unlock.at
  call void @unlock(ptr %unlocks, i64 %inputs, ptr %in)
  call void @unlock(ptr %unlocks, i64 %outputs, ptr %out)
  ret i32 %result
}

; The first status that is not 0. An address that is not given is null.
define internal i32 @lock(ptr %lock, i64 %count, ptr %buffers, ptr %addresses, i32 %mode) {
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %turn

turn:
  %i = phi i64 [ 0, %entry ], [ %next, %turn ]
  %before = phi i32 [ 0, %entry ], [ %found, %turn ]
  %address = getelementptr ptr, ptr %addresses, i64 %i
  store ptr null, ptr %address
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %i
  %buffer = load ptr, ptr %buffer.at
  %status = call i32 %lock(ptr %buffer, ptr %address, i32 %mode)
  %first = icmp eq i32 %before, 0
  %found = select i1 %first, i32 %status, i32 %before
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %turn, label %done

done:
  %result = phi i32 [ 0, %entry ], [ %found, %turn ]
  ret i32 %result
}

define internal void @unlock(ptr %unlock, i64 %count, ptr %buffers) {
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %turn

turn:
  %i = phi i64 [ 0, %entry ], [ %next, %turn ]
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %i
  %buffer = load ptr, ptr %buffer.at
  %status = call i32 %unlock(ptr %buffer)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %turn, label %done

done:
  ret void
}
