; What executor.ll takes of Windows: slim locks, condition variables, the performance counter.

declare void @AcquireSRWLockExclusive(ptr)
declare void @ReleaseSRWLockExclusive(ptr)
declare i32 @SleepConditionVariableSRW(ptr, ptr, i32, i32)
declare void @WakeAllConditionVariable(ptr)
declare i32 @QueryPerformanceCounter(ptr)
declare i32 @QueryPerformanceFrequency(ptr)
declare i32 @GetCurrentThreadId()
declare ptr @TlsGetValue(i32)
declare i32 @TlsSetValue(i32, ptr)

define internal void @lock(ptr %lock) {
  call void @AcquireSRWLockExclusive(ptr %lock)
  ret void
}

define internal void @unlock(ptr %lock) {
  call void @ReleaseSRWLockExclusive(ptr %lock)
  ret void
}

define internal void @notify(ptr %condition) {
  call void @WakeAllConditionVariable(ptr %condition)
  ret void
}

; Sleep until somebody notifies, so many nanoseconds at most where that is not negative, or for no reason at all. INFINITE
; is -1 in 32 bits.
define internal void @wait(ptr %condition, ptr %lock, i64 %most) {
  %endless = icmp slt i64 %most, 0
  %milliseconds = udiv i64 %most, 1000000
  %least = trunc i64 %milliseconds to i32
  %limit = select i1 %endless, i32 -1, i32 %least
  %ignored = call i32 @SleepConditionVariableSRW(ptr %condition, ptr %lock, i32 %limit, i32 0)
  ret void
}

; Nanoseconds of the performance counter: seconds apart, so that no product overflows.
define internal i64 @now() {
  %count.ptr = alloca i64
  %frequency.ptr = alloca i64
  %ignored.count = call i32 @QueryPerformanceCounter(ptr %count.ptr)
  %ignored.frequency = call i32 @QueryPerformanceFrequency(ptr %frequency.ptr)
  %count = load i64, ptr %count.ptr
  %frequency = load i64, ptr %frequency.ptr
  %seconds = udiv i64 %count, %frequency
  %rest = urem i64 %count, %frequency
  %rest.scaled = mul i64 %rest, 1000000000
  %nanoseconds = udiv i64 %rest.scaled, %frequency
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %nanoseconds
  ret i64 %sum
}

; This thread, as Python's threading.get_ident() has it.
define internal i64 @thread() {
  %id = call i32 @GetCurrentThreadId()
  %wide = zext i32 %id to i64
  ret i64 %wide
}

; The pool that this thread is a worker of, or null.
define internal ptr @own_pool(i32 %key) {
  %pool = call ptr @TlsGetValue(i32 %key)
  ret ptr %pool
}

define internal void @keep_pool(i32 %key, ptr %pool) {
  %ignored = call i32 @TlsSetValue(i32 %key, ptr %pool)
  ret void
}
