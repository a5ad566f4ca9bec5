; The executor: runs the steps of a plan, alone or with the workers of a pool.
;
; A kernel is `i64 kernel(ptr words, i64 begin, i64 end, ptr scratch)` and gives 0 where all went well.
;
; Who does what. Each thread has a part of a step's items: the same part of every step, so that it finds in its cache
; what it wrote there. A `ticket` holds where a part ends in its high half and the next item in its low half: adding a
; chunk to it claims those items, for whoever finds the low half below the high one. A thread that is done with its own
; part claims from the others'. The fields of the step lie in the pool and stay until all items are done, since the
; caller waits for `finished` to say so: who claimed a chunk may read them, who did not must not look. A worker that
; comes late, or never, is not waited for.
;
; What costs is that lines of the cache go from one processor to another, 20 to 200 ns each. In a step that nobody steals
; from these are the fields and the worker's ticket there, and `finished` back; the caller's first chunk is claimed as its
; ticket is written, so that it works while they are on their way.
;
; Orders of memory. The caller writes the fields, then the tickets and the round (release); a claim acquires them. A
; worker's results are released by its addition to `finished`, which the caller acquires before the next step.
; Sleeping. A worker counts itself among the sleepers, then looks at the round for a while: by then a round that the
; caller wrote before it looked at the sleepers can be seen. Were it not, the step would be done without that worker.
; A caller that waits for a worker says so next to `finished`, then looks at that again; the worker adds to `finished`,
; then looks whether somebody waits. Both are sequentially consistent, so that one of them sees the other.
;
; Busy machines. A worker that the system puts aside in the midst of a chunk holds the step up for a slice of the
; scheduler's, which is longer than many plans; one that gets the caller's own processor takes from it what it does. So
; sharing is to pay. The caller may wait half of the time in which it shares work (`earn`, `waited`), since with less two
; threads are quicker than one; and what a plan's shared runs took is compared with what it takes alone (`compare`), which
; is measured once and as often as it runs alone. Where sharing did not pay, the caller works alone for REST times what
; that cost, and workers sleep: so two threads lose a few hundredths at most.
;
; What the system gives threads is in threads_linux.ll, threads_darwin.ll and threads_windows.ll.

%step = type { ptr, ptr, i64, i64, i64, i64, i64, i64 }  ; kernel, words, items, items a chunk (0: not shared), how many
;                                                          steps it covers, its strand; of a jump -1, and how far it
;                                                          goes; 1 if it does not poll, nor a poll follows it, since variables are written
%jump = type { ptr, i64, i64, i64 }  ; the words of a jump: a selector or null, bytes of it (1 or 4), the value with which
;                                      the next step follows; how often it jumped without a selector
%plan = type { ptr, i64, ptr, ptr, i64, i64, i64, ptr, i64, i64, i64 }  ; steps, their number, pool or null, scratch, bytes of it a
;                                      thread, step that failed, nanoseconds that it took last on the pool, what polls
;                                      read, whether it polls between steps: until a run was over quickly; nanoseconds that a run on the caller alone takes, 0
;                                      is not known; by how much runs that were shared were quicker than that, together
%state = type { i64, i64, ptr, ptr, ptr, i32 }  ; the main thread, when it asks Python next, the exception that is put aside
;                                                 (type, value, traceback), the key by which a worker finds its pool
%line = type [16 x i64]  ; two lines of the cache, which are fetched together
%pool = type { { i64, i64, i64, i64, ptr, i64, i64, i64, i64, [7 x i64] },  ; 0: 1 while a plan runs; threads, the caller's
;                     among them; how often workers look for work before they sleep: within a plan, after one; what polls
;                     read; the factor REST; until when the caller works alone, 0: it does not; since when it shares work;
;                     nanoseconds that it may wait before it works alone
               { i64, ptr, ptr, i64, ptr, i64, i64, [9 x i64] },  ; 1: round: of how many steps there were tickets so far; kernel,
;                                              words, items a chunk, scratch, bytes of it a thread, status: the first that
;                                              is not 0. Workers that wait look at this line and find all of it there
               { i64, i64, [14 x i64] },  ; 2: finished: items that workers did, ever; 1 while the caller sleeps until
;                                           they are all done
               %line,  ; 3: workers that sleep
               %line,  ; 4: a lock
               %line,  ; 5: a condition: there is work
               %line,  ; 6: a condition: all is done
               [0 x %line] }  ; 7: a ticket a thread
%worker = type { ptr, i64 }  ; pool, which scratch

declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_AsVoidPtr(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare ptr @memmove(ptr, ptr, i64)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)

; Where the functions below are: the one that a loader looks up.
define ptr @"executor"(i64 %which) {
  %at = getelementptr [12 x ptr], ptr @functions, i64 0, i64 %which
  %function = load ptr, ptr %at
  ret ptr %function
}
@functions = internal constant [12 x ptr] [ptr @run, ptr @run_timed, ptr @call, ptr @work, ptr @strands, ptr @poll,
                                         ptr @nested, ptr @branch, ptr @loop, ptr @tasks, ptr @parallel_for,
                                         ptr @thread_count]

; Run all steps. Gives the status of the first that failed, which `plan` then names; 0.
define internal i64 @run(ptr %plan) {
  %status = call i64 @steps(ptr %plan, ptr null)
  ret i64 %status
}

; The same, and for each step the nanoseconds that it took.
define internal i64 @run_timed(ptr %plan, ptr %times) {
  %status = call i64 @steps(ptr %plan, ptr %times)
  ret i64 %status
}

; The same as a function of Python's (PyCFunction): `self` is an int, the plan's address. Without the GIL.
define internal ptr @call(ptr %self, ptr %arguments) {
  %plan = call ptr @PyLong_AsVoidPtr(ptr %self)
  %thread = call ptr @PyEval_SaveThread()
  %status = call i64 @steps(ptr %plan, ptr null)
  call void @PyEval_RestoreThread(ptr %thread)
  %interrupted = icmp eq i64 %status, -9223372036854775808
  br i1 %interrupted, label %raise, label %return

raise:
  %state.ptr = getelementptr %plan, ptr %plan, i64 0, i32 7
  %state = load ptr, ptr %state.ptr
  %type.ptr = getelementptr %state, ptr %state, i64 0, i32 2
  %type = load ptr, ptr %type.ptr
  %value.ptr = getelementptr %state, ptr %state, i64 0, i32 3
  %value = load ptr, ptr %value.ptr
  %trace.ptr = getelementptr %state, ptr %state, i64 0, i32 4
  %trace = load ptr, ptr %trace.ptr
  store ptr null, ptr %type.ptr
  store ptr null, ptr %value.ptr
  store ptr null, ptr %trace.ptr
  %none = icmp eq ptr %type, null
  br i1 %none, label %return, label %restore

restore:
  call void @PyErr_Restore(ptr %type, ptr %value, ptr %trace)
  ret ptr null

return:
  %result = call ptr @PyLong_FromLongLong(i64 %status)
  ret ptr %result
}

; Whether code that runs on this thread is to end: 0, or the least integer. See workers.py.
define internal i64 @poll(ptr %state) {
entry:
  %self = call i64 @thread()
  %main = load i64, ptr %state
  %is.main = icmp eq i64 %self, %main
  br i1 %is.main, label %clock, label %other

clock:
  %now = call i64 @now()
  %due.ptr = getelementptr %state, ptr %state, i64 0, i32 1
  %due = load i64, ptr %due.ptr
  %early = icmp slt i64 %now, %due
  br i1 %early, label %go.on, label %look

look:
  %due.next = add i64 %now, 50000000
  store i64 %due.next, ptr %due.ptr
  %gil = call i32 @PyGILState_Ensure()
  %held = icmp eq i32 %gil, 0  ; PyGILState_LOCKED: code that was called with the lock keeps all threads waiting
  br i1 %held, label %let.others, label %ask

let.others:
  %thread = call ptr @PyEval_SaveThread()
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ask

ask:
  %raised = call i32 @PyErr_CheckSignals()
  %quiet = icmp eq i32 %raised, 0
  br i1 %quiet, label %give.back, label %put.aside

put.aside:
  %type.ptr = getelementptr %state, ptr %state, i64 0, i32 2
  %value.ptr = getelementptr %state, ptr %state, i64 0, i32 3
  %trace.ptr = getelementptr %state, ptr %state, i64 0, i32 4
  call void @PyErr_Fetch(ptr %type.ptr, ptr %value.ptr, ptr %trace.ptr)
  br label %give.back

give.back:
  call void @PyGILState_Release(i32 %gil)
  %answer = select i1 %quiet, i64 0, i64 -9223372036854775808
  ret i64 %answer

other:  ; a worker's step may have ended meanwhile
  %key.ptr = getelementptr %state, ptr %state, i64 0, i32 5
  %key = load i32, ptr %key.ptr
  %pool = call ptr @own_pool(i32 %key)
  %foreign = icmp eq ptr %pool, null
  br i1 %foreign, label %go.on, label %worker

worker:
  %status.ptr = getelementptr %pool, ptr %pool, i64 0, i32 1, i32 6
  %status = load atomic i64, ptr %status.ptr monotonic, align 8
  %goes = icmp eq i64 %status, 0
  br i1 %goes, label %go.on, label %end

end:
  ret i64 -9223372036854775808

go.on:
  ret i64 0
}

; Run all steps; times: null, or where the nanoseconds of each are added up. Its copies in the three callers would be
; half of this module's code, for two tests a step less.
define internal i64 @steps(ptr %plan, ptr %times) noinline {
entry:
  %first = load ptr, ptr %plan
  %count.ptr = getelementptr %plan, ptr %plan, i64 0, i32 1
  %count = load i64, ptr %count.ptr
  %pool.ptr = getelementptr %plan, ptr %plan, i64 0, i32 2
  %pool = load ptr, ptr %pool.ptr
  %scratch.ptr = getelementptr %plan, ptr %plan, i64 0, i32 3
  %scratch = load ptr, ptr %scratch.ptr
  %end = getelementptr %step, ptr %first, i64 %count
  %state.ptr = getelementptr %plan, ptr %plan, i64 0, i32 7
  %state = load ptr, ptr %state.ptr
  %polls.ptr = getelementptr %plan, ptr %plan, i64 0, i32 8
  %polls.word = load i64, ptr %polls.ptr
  %polls = icmp ne i64 %polls.word, 0
  %timed = icmp ne ptr %times, null
  %lonely = icmp eq ptr %pool, null
  br i1 %lonely, label %started, label %take

take:  ; where another thread has the workers, this one does without them
  %taken = cmpxchg ptr %pool, i64 0, i64 1 acquire monotonic
  %won = extractvalue { i64, i1 } %taken, 1
  br i1 %won, label %prepare, label %started

prepare:
  %began.all = call i64 @now()
  %shares.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 7
  store i64 %began.all, ptr %shares.ptr
  call void @try_alone(ptr %pool, ptr %plan, i64 %began.all)
  %rests.first = call i1 @rests(ptr %pool)
  br i1 %rests.first, label %started, label %call

call:
  call void @wake(ptr %pool, ptr %plan)
  br label %started

started:
  %mine = phi ptr [ null, %entry ], [ null, %take ], [ %pool, %prepare ], [ %pool, %call ]
  %since = phi i64 [ 0, %entry ], [ 0, %take ], [ %began.all, %prepare ], [ %began.all, %call ]
  %shared.first = phi i1 [ false, %entry ], [ false, %take ], [ false, %prepare ], [ true, %call ]
  %alone = icmp eq ptr %mine, null
  %empty = icmp eq i64 %count, 0
  br i1 %polls, label %watch, label %begin

watch:
  %watched.now = call i64 @now()
  br label %begin

begin:
  %watched = phi i64 [ 0, %started ], [ %watched.now, %watch ]
  br i1 %empty, label %done, label %turn

turn:
  %step = phi ptr [ %first, %begin ], [ %step.next, %following ]
  %time = phi ptr [ %times, %begin ], [ %time.next, %following ]
  br i1 %timed, label %clock.start, label %choose

clock.start:
  %start = call i64 @now()
  br label %choose

choose:
  %began = phi i64 [ 0, %turn ], [ %start, %clock.start ]
  %kernel = load ptr, ptr %step
  %words.ptr = getelementptr %step, ptr %step, i64 0, i32 1
  %words = load ptr, ptr %words.ptr
  %items.ptr = getelementptr %step, ptr %step, i64 0, i32 2
  %items = load i64, ptr %items.ptr
  %chunk.ptr = getelementptr %step, ptr %step, i64 0, i32 3
  %chunk = load i64, ptr %chunk.ptr
  %covers.ptr = getelementptr %step, ptr %step, i64 0, i32 4
  %covers = load i64, ptr %covers.ptr
  %small = icmp eq i64 %chunk, 0
  %here = or i1 %small, %alone
  %heads = icmp ne i64 %covers, 0
  br i1 %heads, label %head, label %plain

plain:
  br i1 %here, label %whole, label %cut.plain

cut.plain:
  %rests.plain = call i1 @rests(ptr %mine)
  br i1 %rests.plain, label %whole, label %cut

head:
  %jumps = icmp slt i64 %covers, 0
  br i1 %jumps, label %jump, label %strands

jump:
  %distance = call i64 @jump(ptr %step, ptr %words, ptr %state)
  %interrupted = icmp eq i64 %distance, -9223372036854775808
  %status.jump = select i1 %interrupted, i64 %distance, i64 0
  %over.jump = sub i64 %distance, 1
  br label %ran

strands:  ; what it covers runs as steps like others where nobody helps, or to see how long each takes
  %apart = or i1 %here, %timed
  br i1 %apart, label %ran, label %cut.head

cut.head:
  %rests.head = call i1 @rests(ptr %mine)
  br i1 %rests.head, label %ran, label %cut

whole:
  %status.whole = call i64 %kernel(ptr %words, i64 0, i64 %items, ptr %scratch)
  br label %ran

cut:
  %status.cut = call i64 @share(ptr %mine, ptr %plan, ptr %step)
  br label %ran

ran:
  %status = phi i64 [ %status.whole, %whole ], [ %status.cut, %cut ], [ 0, %strands ], [ 0, %cut.head ], [ %status.jump, %jump ]
  %over = phi i64 [ 0, %whole ], [ %covers, %cut ], [ 0, %strands ], [ 0, %cut.head ], [ %over.jump, %jump ]
  br i1 %timed, label %clock.end, label %check

clock.end:
  %stop = call i64 @now()
  %took = sub i64 %stop, %began
  %took.before = load i64, ptr %time  ; of earlier turns of a loop
  %took.sum = add i64 %took.before, %took
  store i64 %took.sum, ptr %time
  br label %check

check:
  %good = icmp eq i64 %status, 0
  br i1 %good, label %next, label %failed

next:
  %steps.done = add i64 %over, 1
  %step.next = getelementptr %step, ptr %step, i64 %steps.done
  %time.next = getelementptr i64, ptr %time, i64 %steps.done
  %last = icmp eq ptr %step.next, %end
  br i1 %last, label %done, label %ask

ask:
  %committed.ptr = getelementptr %step, ptr %step, i64 0, i32 6
  %committed = load i64, ptr %committed.ptr
  %open = icmp eq i64 %committed, 0
  %asks = and i1 %polls, %open
  br i1 %asks, label %poll, label %following

poll:
  %ended = call i64 @poll(ptr %state)
  %goes = icmp eq i64 %ended, 0
  br i1 %goes, label %following, label %failed

following:
  br label %turn

failed:
  %status.failed = phi i64 [ %status, %check ], [ %ended, %poll ]
  %step.int = ptrtoint ptr %step to i64
  %first.int = ptrtoint ptr %first to i64
  %bytes = sub i64 %step.int, %first.int
  %which = lshr exact i64 %bytes, 6
  %failed.ptr = getelementptr %plan, ptr %plan, i64 0, i32 5
  store i64 %which, ptr %failed.ptr
  br label %done

done:
  %result = phi i64 [ 0, %begin ], [ 0, %next ], [ %status.failed, %failed ]
  br i1 %polls, label %judge, label %end.of.run

judge:  ; a plan that is quick once is taken to stay so
  %watched.end = call i64 @now()
  %watched.for = sub i64 %watched.end, %watched
  %slow = icmp sgt i64 %watched.for, 20000000
  %polls.next = zext i1 %slow to i64
  store i64 %polls.next, ptr %polls.ptr
  br label %end.of.run

end.of.run:
  br i1 %alone, label %finish, label %release

release:
  %ended.all = call i64 @now()
  %took.all = sub i64 %ended.all, %since
  %took.ptr = getelementptr %plan, ptr %plan, i64 0, i32 6
  store i64 %took.all, ptr %took.ptr
  call void @earn(ptr %pool, i64 %ended.all)
  call void @compare(ptr %pool, ptr %plan, i1 %shared.first, i64 %took.all, i64 %ended.all)
  store atomic i64 0, ptr %mine release, align 8
  br label %finish

finish:
  ret i64 %result
}

; How far a jump goes, in steps: 1 if it does not; the least integer if the run is to end.
define internal i64 @jump(ptr %step, ptr %words, ptr %state) alwaysinline {
entry:
  %distance.ptr = getelementptr %step, ptr %step, i64 0, i32 5
  %distance = load i64, ptr %distance.ptr
  %selector = load ptr, ptr %words
  %always = icmp eq ptr %selector, null
  br i1 %always, label %count, label %compare

compare:
  %size.ptr = getelementptr %jump, ptr %words, i64 0, i32 1
  %size = load i64, ptr %size.ptr
  %value.ptr = getelementptr %jump, ptr %words, i64 0, i32 2
  %value = load i64, ptr %value.ptr
  %truth = icmp eq i64 %size, 1
  br i1 %truth, label %byte, label %number

byte:
  %byte.selected = load i8, ptr %selector
  %from.byte = zext i8 %byte.selected to i64
  br label %compared

number:
  %number.selected = load i32, ptr %selector
  %from.number = sext i32 %number.selected to i64
  br label %compared

compared:
  %selected = phi i64 [ %from.byte, %byte ], [ %from.number, %number ]
  %same = icmp eq i64 %selected, %value
  %chosen = select i1 %same, i64 1, i64 %distance
  ret i64 %chosen

count:  ; a turn of a loop, or the end of a branch
  %turns.ptr = getelementptr %jump, ptr %words, i64 0, i32 3
  %turns.before = load i64, ptr %turns.ptr
  %turns = add i64 %turns.before, 1
  store i64 %turns, ptr %turns.ptr
  %few = and i64 %turns, 15
  %often = icmp eq i64 %few, 0
  %committed.ptr = getelementptr %step, ptr %step, i64 0, i32 6
  %committed = load i64, ptr %committed.ptr
  %open = icmp eq i64 %committed, 0
  %due = and i1 %often, %open
  br i1 %due, label %poll, label %go

poll:
  %interrupted = call i64 @poll(ptr %state)
  %goes = icmp eq i64 %interrupted, 0
  br i1 %goes, label %go, label %end

go:
  ret i64 %distance

end:
  ret i64 -9223372036854775808
}

; What a built library calls to have its steps done by workers (../../aot/thread_callbacks.py). The context is a plan of one step, whose
; kernel is `tasks`, and whose words are a function and its argument. Its runs have nothing in common but the function that shares
; them, so that what one took says nothing about the next. Without workers, as another plan has them, the caller does all.
define internal void @parallel_for(ptr %plan, i64 %count, ptr %task, ptr %work) {
  %step = load ptr, ptr %plan
  %words.ptr = getelementptr %step, ptr %step, i64 0, i32 1
  %words = load ptr, ptr %words.ptr
  store ptr %task, ptr %words
  %work.ptr = getelementptr ptr, ptr %words, i64 1
  store ptr %work, ptr %work.ptr
  %items.ptr = getelementptr %step, ptr %step, i64 0, i32 2
  store i64 %count, ptr %items.ptr
  %took.ptr = getelementptr %plan, ptr %plan, i64 0, i32 6
  store i64 0, ptr %took.ptr
  %polls.ptr = getelementptr %plan, ptr %plan, i64 0, i32 8
  store i64 0, ptr %polls.ptr
  %alone.ptr = getelementptr %plan, ptr %plan, i64 0, i32 9
  store i64 0, ptr %alone.ptr
  %ignored = call i64 @run(ptr %plan)
  ret void
}

define internal i64 @thread_count(ptr %plan) {
entry:
  %pool.ptr = getelementptr %plan, ptr %plan, i64 0, i32 2
  %pool = load ptr, ptr %pool.ptr
  %lonely = icmp eq ptr %pool, null
  br i1 %lonely, label %one, label %several

several:
  %threads.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 1
  %threads = load i64, ptr %threads.ptr
  ret i64 %threads

one:
  ret i64 1
}

; Calls of a function, one for each item.
define internal i64 @tasks(ptr %words, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %task = load ptr, ptr %words
  %work.ptr = getelementptr ptr, ptr %words, i64 1
  %work = load ptr, ptr %work.ptr
  br label %turn

turn:
  %i = phi i64 [ %begin, %entry ], [ %i.next, %do ]
  %open = icmp ult i64 %i, %end
  br i1 %open, label %do, label %done

do:
  call void %task(ptr %work, i64 %i)
  %i.next = add i64 %i, 1
  br label %turn

done:
  ret i64 0
}

; The caller's part of a step that is shared. Gives its status once all items are done.
define internal i64 @share(ptr %pool, ptr %plan, ptr %step) noinline {
entry:
  %round = getelementptr %pool, ptr %pool, i64 0, i32 1
  %kernel.field = getelementptr %pool, ptr %pool, i64 0, i32 1, i32 1
  %scratch.field = getelementptr %pool, ptr %pool, i64 0, i32 1, i32 4
  %status.ptr = getelementptr %pool, ptr %pool, i64 0, i32 1, i32 6
  %finished = getelementptr %pool, ptr %pool, i64 0, i32 2
  %before = load atomic i64, ptr %finished monotonic, align 8
  %threads.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 1
  %threads = load i64, ptr %threads.ptr
  %items.ptr = getelementptr %step, ptr %step, i64 0, i32 2
  %items = load i64, ptr %items.ptr
  %size.ptr = getelementptr %step, ptr %step, i64 0, i32 3
  %size = load i64, ptr %size.ptr
  %scratch.ptr = getelementptr %plan, ptr %plan, i64 0, i32 3
  %scratches = load <2 x i64>, ptr %scratch.ptr, align 8
  %two = load <2 x i64>, ptr %step, align 8
  store <2 x i64> %two, ptr %kernel.field, align 8
  %size.field = getelementptr %pool, ptr %pool, i64 0, i32 1, i32 3
  store atomic i64 %size, ptr %size.field monotonic, align 8
  store <2 x i64> %scratches, ptr %scratch.field, align 8
  store atomic i64 0, ptr %status.ptr monotonic, align 8
  %first.end = udiv i64 %items, %threads
  %first = call i64 @llvm.umin.i64(i64 %size, i64 %first.end)
  br label %part

part:
  %which = phi i64 [ 0, %entry ], [ %which.next, %part ]
  %begin = phi i64 [ 0, %entry ], [ %end, %part ]
  %next = phi i64 [ %first, %entry ], [ %end, %part ]
  %which.next = add i64 %which, 1
  %items.times = mul i64 %items, %which.next
  %end = udiv i64 %items.times, %threads
  %high = shl i64 %end, 32
  %offer = or i64 %high, %next
  %ticket = getelementptr %pool, ptr %pool, i64 0, i32 7, i64 %which
  store atomic i64 %offer, ptr %ticket release, align 8
  %parts = icmp ult i64 %which.next, %threads
  br i1 %parts, label %part, label %offered

offered:
  %rounds = load i64, ptr %round
  %rounds.next = add i64 %rounds, 1
  store atomic i64 %rounds.next, ptr %round release, align 8
  call void @wake(ptr %pool, ptr %plan)
  %mine = call i64 @chunks(ptr %pool, i64 0, i64 %rounds.next, i64 %first)
  %others = sub i64 %items, %mine
  %wanted = add i64 %before, %others
  br label %wait

wait:
  %turns = phi i64 [ 0, %offered ], [ %turns.next, %spin ]
  %count = load atomic i64, ptr %finished acquire, align 8
  %all = icmp eq i64 %count, %wanted
  br i1 %all, label %done, label %rest

rest:
  %turns.next = add i64 %turns, 1
  %long = icmp ugt i64 %turns, SPIN_FOR_OTHERS
  br i1 %long, label %lie, label %spin

spin:
  call void @relax()
  br label %wait

lie:  ; a worker that the system has put aside may have this processor, or it works on something long
  %since = call i64 @now()
  %lock = getelementptr %pool, ptr %pool, i64 0, i32 4
  %condition = getelementptr %pool, ptr %pool, i64 0, i32 6
  %sleeps.ptr = getelementptr %pool, ptr %pool, i64 0, i32 2, i32 1
  %state.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 4
  %state = load ptr, ptr %state.ptr
  call void @lock(ptr %lock)
  %ignored.said = atomicrmw xchg ptr %sleeps.ptr, i64 1 seq_cst
  br label %look

look:
  %count.late = load atomic i64, ptr %finished seq_cst, align 8
  %all.late = icmp eq i64 %count.late, %wanted
  br i1 %all.late, label %up, label %sleep

sleep:
  call void @wait(ptr %condition, ptr %lock, i64 50000000)
  %committed.ptr = getelementptr %step, ptr %step, i64 0, i32 6
  %committed = load i64, ptr %committed.ptr
  %open = icmp eq i64 %committed, 0
  br i1 %open, label %ask, label %look

ask:
  call void @unlock(ptr %lock)  ; for what a poll may call takes it, too
  %ended = call i64 @poll(ptr %state)
  call void @lock(ptr %lock)
  %goes = icmp eq i64 %ended, 0
  br i1 %goes, label %look, label %end.it

end.it:  ; workers see that the step has failed, and do no more of it
  %told = cmpxchg ptr %status.ptr, i64 0, i64 %ended monotonic monotonic
  br label %look

up:
  store atomic i64 0, ptr %sleeps.ptr monotonic, align 8
  call void @unlock(ptr %lock)
  call void @waited(ptr %pool, i64 %since)
  br label %done

done:
  %status = load atomic i64, ptr %status.ptr monotonic, align 8
  ret i64 %status
}

; Whether the caller works alone for now.
define internal i1 @rests(ptr %pool) alwaysinline {
entry:
  %until.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 6
  %until = load i64, ptr %until.ptr
  %none = icmp eq i64 %until, 0
  br i1 %none, label %no, label %look

look:
  %now = call i64 @now()
  %early = icmp slt i64 %now, %until
  br i1 %early, label %yes, label %over

over:
  %since.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 7
  store i64 %now, ptr %since.ptr
  store i64 0, ptr %until.ptr
  br label %no

yes:
  ret i1 true

no:
  ret i1 false
}

; Have a plan that ran once, and will run again, run on the caller alone for a while, to know what that takes.
define internal void @try_alone(ptr %pool, ptr %plan, i64 %now) {
entry:
  %took.ptr = getelementptr %plan, ptr %plan, i64 0, i32 6
  %took = load i64, ptr %took.ptr
  %alone.ptr = getelementptr %plan, ptr %plan, i64 0, i32 9
  %alone = load i64, ptr %alone.ptr
  %ran = icmp ne i64 %took, 0
  %unknown = icmp eq i64 %alone, 0
  %second = and i1 %ran, %unknown
  br i1 %second, label %try, label %done

try:
  %rest.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 5
  %rest = load i64, ptr %rest.ptr
  %times = lshr i64 %rest, 3
  %for = mul i64 %took, %times
  %until = add i64 %now, %for
  %until.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 6
  store i64 %until, ptr %until.ptr
  br label %done

done:
  ret void
}

; Note what a run took: on the caller alone; or shared, which is to be quicker on the whole. Else have the caller work
; alone for REST runs.
define internal void @compare(ptr %pool, ptr %plan, i1 %shared, i64 %took, i64 %now) {
entry:
  %until.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 6
  %until = load i64, ptr %until.ptr
  %shares = icmp eq i64 %until, 0
  %changed = xor i1 %shares, %shared
  %alone.ptr = getelementptr %plan, ptr %plan, i64 0, i32 9
  %alone = load i64, ptr %alone.ptr
  br i1 %changed, label %done, label %whole

whole:
  br i1 %shares, label %judge, label %note

note:
  %unknown = icmp eq i64 %alone, 0
  %more = sub i64 %took, %alone
  %eighth = ashr i64 %more, 3
  %mean = add i64 %alone, %eighth
  %noted = select i1 %unknown, i64 %took, i64 %mean
  store i64 %noted, ptr %alone.ptr
  br i1 %unknown, label %tried, label %done

tried:  ; what `try_alone` wanted to know: it allowed for four times a first run, which may have been a slow one
  store i64 0, ptr %until.ptr
  %since.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 7
  store i64 %now, ptr %since.ptr
  br label %done

judge:
  %lead.ptr = getelementptr %plan, ptr %plan, i64 0, i32 10
  %lead.before = load i64, ptr %lead.ptr
  %known = icmp ne i64 %alone, 0
  %more.alone = sub i64 %alone, %took
  %gain = select i1 %known, i64 %more.alone, i64 0  ; a first run has nothing to be compared with, and is often a slow one
  %sum = add i64 %lead.before, %gain
  %lead = call i64 @llvm.smin.i64(i64 %sum, i64 CREDIT)
  %allowed = sub i64 0, %took
  %loses = icmp slt i64 %lead, %allowed
  %kept = select i1 %loses, i64 0, i64 %lead
  store i64 %kept, ptr %lead.ptr
  br i1 %loses, label %rest, label %done

rest:
  %rest.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 5
  %times = load i64, ptr %rest.ptr
  %for = mul i64 %took, %times
  %until.rest = add i64 %now, %for
  store i64 %until.rest, ptr %until.ptr
  br label %done

done:
  ret void
}

; Allow the caller to wait for half of the time that it shared work, up to now.
define internal void @earn(ptr %pool, i64 %now) noinline {
entry:
  %until.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 6
  %until = load i64, ptr %until.ptr
  %shares = icmp eq i64 %until, 0
  br i1 %shares, label %add, label %done

add:
  %since.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 7
  %since = load i64, ptr %since.ptr
  %credit.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 8
  %credit = load i64, ptr %credit.ptr
  %shared = sub i64 %now, %since
  %half = ashr i64 %shared, 1
  %sum = add i64 %credit, %half
  %most = call i64 @llvm.smin.i64(i64 %sum, i64 CREDIT)
  store i64 %most, ptr %credit.ptr
  store i64 %now, ptr %since.ptr
  br label %done

done:
  ret void
}

; Count what the caller waited. Where that is more than it may, have it work alone for REST times as long, or REST slices.
define internal void @waited(ptr %pool, i64 %since) noinline {
entry:
  call void @earn(ptr %pool, i64 %since)
  %now = call i64 @now()
  %since.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 7
  store i64 %now, ptr %since.ptr
  %waited = sub i64 %now, %since
  %credit.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 8
  %credit = load i64, ptr %credit.ptr
  %left = sub i64 %credit, %waited
  %spent = icmp slt i64 %left, 0
  %next = call i64 @llvm.smax.i64(i64 %left, i64 0)
  store i64 %next, ptr %credit.ptr
  br i1 %spent, label %rest, label %done

rest:
  %rest.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 5
  %times = load i64, ptr %rest.ptr
  %counted = call i64 @llvm.smin.i64(i64 %waited, i64 SLICE)
  %for = mul i64 %counted, %times
  %until = add i64 %now, %for
  %until.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 6
  store i64 %until, ptr %until.ptr
  br label %done

done:
  ret void
}

; Claim chunks and do them until there are none: those of the thread's own part, then of the parts that follow.
; round: for which; first: items of the own part that are claimed already. Gives the items that it did and did not add
; to `finished`: the caller's own.
define internal i64 @chunks(ptr %pool, i64 %which, i64 %round, i64 %first) {
entry:
  %round.ptr = getelementptr %pool, ptr %pool, i64 0, i32 1
  %size.ptr = getelementptr %pool, ptr %pool, i64 0, i32 1, i32 3
  %status.ptr = getelementptr %pool, ptr %pool, i64 0, i32 1, i32 6
  %finished = getelementptr %pool, ptr %pool, i64 0, i32 2
  %threads.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 1
  %threads = load i64, ptr %threads.ptr
  %own = getelementptr %pool, ptr %pool, i64 0, i32 7, i64 %which
  %is.caller = icmp eq i64 %which, 0
  %claimed.before = icmp ne i64 %first, 0
  br i1 %claimed.before, label %look, label %try

part:  ; the next of the other parts
  %ticket.other = getelementptr %pool, ptr %pool, i64 0, i32 7, i64 %of.turn
  br label %claim

claim:
  %ticket.claim = phi ptr [ %ticket.other, %part ], [ %ticket.did, %again ]
  %of.claim = phi i64 [ %of.turn, %part ], [ %of.did, %again ]
  %seen.claim = phi i64 [ %seen.turn, %part ], [ %seen.did, %again ]
  %count.claim = phi i64 [ %count.kept, %part ], [ %count.did, %again ]
  %now = load atomic i64, ptr %ticket.claim monotonic, align 8
  %open = call i1 @is_open(i64 %now)
  br i1 %open, label %try, label %over

try:
  %ticket.try = phi ptr [ %own, %entry ], [ %ticket.claim, %claim ], [ %ticket.did, %own.again ]
  %of.try = phi i64 [ %which, %entry ], [ %of.claim, %claim ], [ %of.did, %own.again ]
  %seen.try = phi i64 [ 1, %entry ], [ %seen.claim, %claim ], [ %seen.did, %own.again ]
  %count.try = phi i64 [ 0, %entry ], [ %count.claim, %claim ], [ %count.did, %own.again ]
  %size = load atomic i64, ptr %size.ptr monotonic, align 8
  %found = atomicrmw add ptr %ticket.try, i64 %size acq_rel
  %mine = call i1 @is_open(i64 %found)
  br i1 %mine, label %claimed, label %over

claimed:  ; where the step is another by now, then this is a chunk of that one
  %begin.claimed = and i64 %found, 4294967295
  %part.end = lshr i64 %found, 32
  %to = add i64 %begin.claimed, %size
  %end.claimed = call i64 @llvm.umin.i64(i64 %to, i64 %part.end)
  br label %look

look:
  %ticket.did = phi ptr [ %own, %entry ], [ %ticket.try, %claimed ]
  %of.did = phi i64 [ %which, %entry ], [ %of.try, %claimed ]
  %seen.did = phi i64 [ 1, %entry ], [ %seen.try, %claimed ]
  %count.before = phi i64 [ 0, %entry ], [ %count.try, %claimed ]
  %begin = phi i64 [ 0, %entry ], [ %begin.claimed, %claimed ]
  %end = phi i64 [ %first, %entry ], [ %end.claimed, %claimed ]
  %items = sub i64 %end, %begin
  %count.did = add i64 %count.before, %items
  %before = load atomic i64, ptr %status.ptr monotonic, align 8
  %fine = icmp eq i64 %before, 0
  br i1 %fine, label %do, label %did

do:
  %kernel.ptr = getelementptr %pool, ptr %pool, i64 0, i32 1, i32 1
  %kernel = load ptr, ptr %kernel.ptr
  %words.ptr = getelementptr %pool, ptr %pool, i64 0, i32 1, i32 2
  %words = load ptr, ptr %words.ptr
  %scratch.ptr = getelementptr %pool, ptr %pool, i64 0, i32 1, i32 4
  %scratches = load ptr, ptr %scratch.ptr
  %bytes.ptr = getelementptr %pool, ptr %pool, i64 0, i32 1, i32 5
  %bytes = load i64, ptr %bytes.ptr
  %offset = mul i64 %bytes, %which
  %scratch = getelementptr i8, ptr %scratches, i64 %offset
  %status = call i64 %kernel(ptr %words, i64 %begin, i64 %end, ptr %scratch)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %did, label %failed

failed:
  %told = cmpxchg ptr %status.ptr, i64 0, i64 %status monotonic monotonic
  br label %did

did:
  %is.own = icmp eq i64 %seen.did, 1
  br i1 %is.own, label %own.again, label %again

own.again:  ; one's own ticket is at hand: no need to look before
  br label %try

again:
  br label %claim

over:
  %of.over = phi i64 [ %of.claim, %claim ], [ %of.try, %try ]
  %seen.over = phi i64 [ %seen.claim, %claim ], [ %seen.try, %try ]
  %count.over = phi i64 [ %count.claim, %claim ], [ %count.try, %try ]
  %none = icmp eq i64 %count.over, 0
  %keeps = or i1 %none, %is.caller
  br i1 %keeps, label %kept, label %report

report:  ; before others' tickets are fetched
  %ignored = atomicrmw add ptr %finished, i64 %count.over seq_cst
  %sleeps.ptr = getelementptr %pool, ptr %pool, i64 0, i32 2, i32 1
  %sleeps = load atomic i64, ptr %sleeps.ptr seq_cst, align 8
  %awake = icmp eq i64 %sleeps, 0
  br i1 %awake, label %kept, label %rouse

rouse:
  %lock = getelementptr %pool, ptr %pool, i64 0, i32 4
  %condition = getelementptr %pool, ptr %pool, i64 0, i32 6
  call void @lock(ptr %lock)
  call void @notify(ptr %condition)
  call void @unlock(ptr %lock)
  br label %kept

kept:
  %count.kept = phi i64 [ %count.over, %over ], [ 0, %report ], [ 0, %rouse ]
  %of.up = add i64 %of.over, 1
  %wraps = icmp eq i64 %of.up, %threads
  %of.turn = select i1 %wraps, i64 0, i64 %of.up
  %seen.turn = add i64 %seen.over, 1
  %more = icmp ule i64 %seen.turn, %threads
  br i1 %more, label %current, label %done

current:
  %round.now = load atomic i64, ptr %round.ptr monotonic, align 8
  %same = icmp eq i64 %round.now, %round
  br i1 %same, label %part, label %done

done:
  ret i64 %count.kept
}

; The kernel of a step that heads strands: the steps of strands [begin, end) among those it covers, each whole. Gives
; the status of the first that failed, or 0.
define internal i64 @strands(ptr %head, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %covers.ptr = getelementptr %step, ptr %head, i64 0, i32 4
  %covers = load i64, ptr %covers.ptr
  br label %turn

turn:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %i.next = add i64 %i, 1
  %over = icmp ugt i64 %i.next, %covers
  br i1 %over, label %done, label %look

look:
  %step = getelementptr %step, ptr %head, i64 %i.next
  %strand.ptr = getelementptr %step, ptr %step, i64 0, i32 5
  %strand = load i64, ptr %strand.ptr
  %late = icmp uge i64 %strand, %begin
  %early = icmp ult i64 %strand, %end
  %mine = and i1 %late, %early
  br i1 %mine, label %do, label %next

do:
  %kernel = load ptr, ptr %step
  %words.ptr = getelementptr %step, ptr %step, i64 0, i32 1
  %words = load ptr, ptr %words.ptr
  %items.ptr = getelementptr %step, ptr %step, i64 0, i32 2
  %items = load i64, ptr %items.ptr
  %status = call i64 %kernel(ptr %words, i64 0, i64 %items, ptr %scratch)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %next, label %failed

next:
  br label %turn

failed:
  ret i64 %status

done:
  ret i64 0
}

; What a worker's thread does for ever.
define internal ptr @work(ptr %worker) {
entry:
  %pool = load ptr, ptr %worker
  %which.ptr = getelementptr %worker, ptr %worker, i64 0, i32 1
  %which = load i64, ptr %which.ptr
  %round = getelementptr %pool, ptr %pool, i64 0, i32 1
  %sleepers = getelementptr %pool, ptr %pool, i64 0, i32 3
  %lock = getelementptr %pool, ptr %pool, i64 0, i32 4
  %condition = getelementptr %pool, ptr %pool, i64 0, i32 5
  %in.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 2
  %patience.in = load i64, ptr %in.ptr
  %after.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 3
  %patience.after = load i64, ptr %after.ptr
  %state.ptr = getelementptr %pool, ptr %pool, i64 0, i32 0, i32 4
  %state = load ptr, ptr %state.ptr
  %key.ptr = getelementptr %state, ptr %state, i64 0, i32 5
  %key = load i32, ptr %key.ptr
  call void @keep_pool(i32 %key, ptr %pool)
  br label %look

look:
  %turns = phi i64 [ 0, %entry ], [ 0, %claim ], [ 0, %up ], [ %turns.next, %idle ]
  %done = phi i64 [ 0, %entry ], [ %found, %claim ], [ %done, %up ], [ %done, %idle ]
  %found = load atomic i64, ptr %round acquire, align 8
  %new = icmp ne i64 %found, %done
  br i1 %new, label %claim, label %idle

claim:
  %ignored.count = call i64 @chunks(ptr %pool, i64 %which, i64 %found, i64 0)
  br label %look

idle:  ; in the midst of a plan there will soon be more
  call void @relax()
  %turns.next = add i64 %turns, 1
  %busy = load atomic i64, ptr %pool monotonic, align 8
  %runs = icmp ne i64 %busy, 0
  %patience = select i1 %runs, i64 %patience.in, i64 %patience.after
  %tired = icmp ugt i64 %turns, %patience
  br i1 %tired, label %lie, label %look

lie:
  call void @lock(ptr %lock)
  %ignored.add = atomicrmw add ptr %sleepers, i64 1 seq_cst
  br label %last

last:
  %looks = phi i64 [ 0, %lie ], [ %looks.next, %still ]
  call void @relax()
  %again = load atomic i64, ptr %round acquire, align 8
  %late = icmp ne i64 %again, %done
  br i1 %late, label %up, label %still

still:
  %looks.next = add i64 %looks, 1
  %looked = icmp ugt i64 %looks, 100
  br i1 %looked, label %sleep, label %last

sleep:
  call void @wait(ptr %condition, ptr %lock, i64 -1)
  br label %up

up:
  %ignored.sub = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  call void @unlock(ptr %lock)
  br label %look
}

; Whether a ticket has, or had, items to claim.
define internal i1 @is_open(i64 %ticket) alwaysinline {
  %next = and i64 %ticket, 4294967295
  %end = lshr i64 %ticket, 32
  %open = icmp ult i64 %next, %end
  ret i1 %open
}

; Get up who sleeps, unless the plan is over before they are up.
define internal void @wake(ptr %pool, ptr %plan) {
entry:
  %took.ptr = getelementptr %plan, ptr %plan, i64 0, i32 6
  %took = load i64, ptr %took.ptr
  %before = sub i64 %took, 1  ; 0 is not known yet, and long here
  %long = icmp uge i64 %before, SHORT_PLAN
  br i1 %long, label %look, label %done

look:
  %sleepers = getelementptr %pool, ptr %pool, i64 0, i32 3
  %count = load atomic i64, ptr %sleepers monotonic, align 8
  %any = icmp ne i64 %count, 0
  br i1 %any, label %call, label %done

call:
  %lock = getelementptr %pool, ptr %pool, i64 0, i32 4
  %condition = getelementptr %pool, ptr %pool, i64 0, i32 5
  call void @lock(ptr %lock)
  call void @notify(ptr %condition)
  call void @unlock(ptr %lock)
  br label %done

done:
  ret void
}

; Control flow: kernels whose words name plans. A plan's address of 0 stands for one that machine code cannot run.
%row = type { ptr, ptr, i64 }  ; a copy: to, from, bytes
%choice = type { ptr, ptr, i64 }  ; a branch: its plan, the copies that follow it, their number
%branches = type { ptr, i64, i64, i64 }  ; which, bytes of that (1: a truth value, 4: a number), how many there are; then
;                                          the one that was chosen. The choices follow
%loops = type { ptr, ptr, ptr, ptr, i64, ptr, i64, ptr, i64 }  ; condition, its answer, body; the copies before the first
;                       turn, their number; those after each turn, their number; what polls read; then 0 if the condition
;                       did not come to its end, 1 if the body did not

; All steps of another plan.
define internal i64 @nested(ptr %words, i64 %begin, i64 %end, ptr %scratch) {
  %plan = load ptr, ptr %words
  %status = call i64 @inner(ptr %plan)
  ret i64 %status
}

define internal i64 @inner(ptr %plan) {
  %none = icmp eq ptr %plan, null
  br i1 %none, label %no.plan, label %go

no.plan:
  ret i64 1

go:
  %status = call i64 @run(ptr %plan)
  ret i64 %status
}

define internal void @copy(ptr %rows, i64 %count) {
entry:
  %end = getelementptr %row, ptr %rows, i64 %count
  br label %look

look:
  %row = phi ptr [ %rows, %entry ], [ %row.next, %one ]
  %done = icmp eq ptr %row, %end
  br i1 %done, label %over, label %one

one:
  %to = load ptr, ptr %row
  %from.ptr = getelementptr %row, ptr %row, i64 0, i32 1
  %from = load ptr, ptr %from.ptr
  %bytes.ptr = getelementptr %row, ptr %row, i64 0, i32 2
  %bytes = load i64, ptr %bytes.ptr
  %ignored = call ptr @memmove(ptr %to, ptr %from, i64 %bytes)
  %row.next = getelementptr %row, ptr %row, i64 1
  br label %look

over:
  ret void
}

; IF and CASE: the plan that a number chooses; the last where it is none of theirs. A truth value chooses the first.
define internal i64 @branch(ptr %words, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %which.ptr = load ptr, ptr %words
  %size.ptr = getelementptr %branches, ptr %words, i64 0, i32 1
  %size = load i64, ptr %size.ptr
  %truth = icmp eq i64 %size, 1
  br i1 %truth, label %by.truth, label %by.number

by.truth:
  %byte = load i8, ptr %which.ptr
  %false = icmp eq i8 %byte, 0
  %second = zext i1 %false to i64
  br label %chosen

by.number:
  %number = load i32, ptr %which.ptr
  %wide = sext i32 %number to i64
  %count.ptr = getelementptr %branches, ptr %words, i64 0, i32 2
  %count = load i64, ptr %count.ptr
  %last = sub i64 %count, 1
  %index = call i64 @llvm.umin.i64(i64 %wide, i64 %last)
  br label %chosen

chosen:
  %chosen.index = phi i64 [ %second, %by.truth ], [ %index, %by.number ]
  %chosen.ptr = getelementptr %branches, ptr %words, i64 0, i32 3
  store i64 %chosen.index, ptr %chosen.ptr
  %choices = getelementptr %branches, ptr %words, i64 1
  %choice = getelementptr %choice, ptr %choices, i64 %chosen.index
  %plan = load ptr, ptr %choice
  %status = call i64 @inner(ptr %plan)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %copies, label %over

copies:
  %rows.ptr = getelementptr %choice, ptr %choice, i64 0, i32 1
  %rows = load ptr, ptr %rows.ptr
  %rows.count.ptr = getelementptr %choice, ptr %choice, i64 0, i32 2
  %rows.count = load i64, ptr %rows.count.ptr
  call void @copy(ptr %rows, i64 %rows.count)
  br label %over

over:
  ret i64 %status
}

; WHILE: turn after turn, as long as the condition's answer is true.
define internal i64 @loop(ptr %words, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %cond = load ptr, ptr %words
  %answer.ptr = getelementptr %loops, ptr %words, i64 0, i32 1
  %answer = load ptr, ptr %answer.ptr
  %body.ptr = getelementptr %loops, ptr %words, i64 0, i32 2
  %body = load ptr, ptr %body.ptr
  %first.ptr = getelementptr %loops, ptr %words, i64 0, i32 3
  %first = load ptr, ptr %first.ptr
  %first.count.ptr = getelementptr %loops, ptr %words, i64 0, i32 4
  %first.count = load i64, ptr %first.count.ptr
  %rows.ptr = getelementptr %loops, ptr %words, i64 0, i32 5
  %rows = load ptr, ptr %rows.ptr
  %rows.count.ptr = getelementptr %loops, ptr %words, i64 0, i32 6
  %rows.count = load i64, ptr %rows.count.ptr
  %state.ptr = getelementptr %loops, ptr %words, i64 0, i32 7
  %state = load ptr, ptr %state.ptr
  %where = getelementptr %loops, ptr %words, i64 0, i32 8
  call void @copy(ptr %first, i64 %first.count)
  br label %ask

ask:
  %turns = phi i64 [ 1, %entry ], [ %turns.next, %next ]
  store i64 0, ptr %where
  %asked = call i64 @inner(ptr %cond)
  %answered = icmp eq i64 %asked, 0
  br i1 %answered, label %decide, label %stopped

decide:
  %holds = load i8, ptr %answer
  %ends = icmp eq i8 %holds, 0
  br i1 %ends, label %over, label %turn

turn:
  store i64 1, ptr %where
  %turned = call i64 @inner(ptr %body)
  %good = icmp eq i64 %turned, 0
  br i1 %good, label %copies, label %stopped

copies:
  call void @copy(ptr %rows, i64 %rows.count)
  %turns.next = add i64 %turns, 1
  %few = and i64 %turns, 15
  %due = icmp eq i64 %few, 0
  br i1 %due, label %poll, label %next

poll:
  %interrupted = call i64 @poll(ptr %state)
  %goes = icmp eq i64 %interrupted, 0
  br i1 %goes, label %next, label %stopped

next:
  br label %ask

stopped:
  %status = phi i64 [ %asked, %ask ], [ %turned, %turn ], [ %interrupted, %poll ]
  ret i64 %status

over:
  ret i64 0
}

; Let the other hardware thread of this core, or the bus, have a moment.
define internal void @relax() alwaysinline {
  call void @RELAX
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare void @llvm.x86.sse2.pause()
declare void @llvm.aarch64.isb(i32)

; What loops hoist stands before them (../target.py).
!opwright.short_passes = !{}
!opwright.addressed = !{}
