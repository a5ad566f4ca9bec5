; What executor.ll takes of Linux: locks and conditions of pthreads, whose conditions count by CLOCK_MONOTONIC.

declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)

define internal void @lock(ptr %lock) {
  %ignored = call i32 @pthread_mutex_lock(ptr %lock)
  ret void
}

define internal void @unlock(ptr %lock) {
  %ignored = call i32 @pthread_mutex_unlock(ptr %lock)
  ret void
}

define internal void @notify(ptr %condition) {
  %ignored = call i32 @pthread_cond_broadcast(ptr %condition)
  ret void
}

; Sleep until somebody notifies, so many nanoseconds at most where that is not negative, or for no reason at all.
define internal void @wait(ptr %condition, ptr %lock, i64 %most) {
entry:
  %time = alloca { i64, i64 }
  %endless = icmp slt i64 %most, 0
  br i1 %endless, label %always, label %limited

always:
  %ignored = call i32 @pthread_cond_wait(ptr %condition, ptr %lock)
  ret void

limited:
  %now = call i64 @now()
  %until = add i64 %now, %most
  %seconds = udiv i64 %until, 1000000000
  %rest = urem i64 %until, 1000000000
  store i64 %seconds, ptr %time
  %nanoseconds.ptr = getelementptr { i64, i64 }, ptr %time, i64 0, i32 1
  store i64 %rest, ptr %nanoseconds.ptr
  %ignored.limited = call i32 @pthread_cond_timedwait(ptr %condition, ptr %lock, ptr %time)
  ret void
}

; Nanoseconds of CLOCK_MONOTONIC.
define internal i64 @now() {
  %time = alloca { i64, i64 }
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %nanoseconds.ptr = getelementptr { i64, i64 }, ptr %time, i64 0, i32 1
  %nanoseconds = load i64, ptr %nanoseconds.ptr
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %nanoseconds
  ret i64 %sum
}

; This thread, as Python's threading.get_ident() has it.
define internal i64 @thread() {
  %self = call i64 @pthread_self()
  ret i64 %self
}

; The pool that this thread is a worker of, or null.
define internal ptr @own_pool(i32 %key) {
  %pool = call ptr @pthread_getspecific(i32 %key)
  ret ptr %pool
}

define internal void @keep_pool(i32 %key, ptr %pool) {
  %ignored = call i32 @pthread_setspecific(i32 %key, ptr %pool)
  ret void
}
