; Kernels that record their calls: which step, for which items, on which thread, from when to when.
;
; A traced step has this kernel instead of its own; its words are a record that names its own. `now` and `thread` are in
; threads_linux.ll, threads_darwin.ll and threads_windows.ll.

%record = type { ptr, ptr, i64, ptr }  ; kernel, its words, number of the step, the log
%log = type { i64, i64 }  ; how many calls there were, how many rows there is memory for; the rows follow
%row = type { i64, i64, i64, i64, i64, i64 }  ; step, first item, end of the items, thread, start, stop in nanoseconds

define i64 @"call_traces"(ptr %record, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %kernel = load ptr, ptr %record
  %words.ptr = getelementptr %record, ptr %record, i64 0, i32 1
  %words = load ptr, ptr %words.ptr
  %step.ptr = getelementptr %record, ptr %record, i64 0, i32 2
  %step = load i64, ptr %step.ptr
  %log.ptr = getelementptr %record, ptr %record, i64 0, i32 3
  %log = load ptr, ptr %log.ptr
  %place = atomicrmw add ptr %log, i64 1 monotonic
  %start = call i64 @now()
  %status = call i64 %kernel(ptr %words, i64 %begin, i64 %end, ptr %scratch)
  %stop = call i64 @now()
  %room.ptr = getelementptr %log, ptr %log, i64 0, i32 1
  %room = load i64, ptr %room.ptr
  %fits = icmp ult i64 %place, %room
  br i1 %fits, label %write, label %done

write:
  %thread = call i64 @thread()
  %rows = getelementptr %log, ptr %log, i64 1
  %row = getelementptr %row, ptr %rows, i64 %place
  %begin.ptr = getelementptr %row, ptr %row, i64 0, i32 1
  %end.ptr = getelementptr %row, ptr %row, i64 0, i32 2
  %thread.ptr = getelementptr %row, ptr %row, i64 0, i32 3
  %start.ptr = getelementptr %row, ptr %row, i64 0, i32 4
  %stop.ptr = getelementptr %row, ptr %row, i64 0, i32 5
  store i64 %step, ptr %row
  store i64 %begin, ptr %begin.ptr
  store i64 %end, ptr %end.ptr
  store i64 %thread, ptr %thread.ptr
  store i64 %start, ptr %start.ptr
  store i64 %stop, ptr %stop.ptr
  br label %done

done:
  ret i64 %status
}
