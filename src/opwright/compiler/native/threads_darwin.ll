; What executor.ll takes of macOS: locks and conditions of pthreads, waits that are relative, keys of a word.

declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_timedwait_relative_np(ptr, ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i64 @clock_gettime_nsec_np(i32)
declare i64 @pthread_self()
declare ptr @pthread_getspecific(i64)
declare i32 @pthread_setspecific(i64, ptr)

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
  %seconds = udiv i64 %most, 1000000000
  %rest = urem i64 %most, 1000000000
  store i64 %seconds, ptr %time
  %nanoseconds.ptr = getelementptr { i64, i64 }, ptr %time, i64 0, i32 1
  store i64 %rest, ptr %nanoseconds.ptr
  %ignored.limited = call i32 @pthread_cond_timedwait_relative_np(ptr %condition, ptr %lock, ptr %time)
  ret void
}

; Nanoseconds of CLOCK_UPTIME_RAW.
define internal i64 @now() {
  %now = call i64 @clock_gettime_nsec_np(i32 8)
  ret i64 %now
}

; This thread, as Python's threading.get_ident() has it.
define internal i64 @thread() {
  %self = call i64 @pthread_self()
  ret i64 %self
}

; The pool that this thread is a worker of, or null.
define internal ptr @own_pool(i32 %key) {
  %wide = zext i32 %key to i64
  %pool = call ptr @pthread_getspecific(i64 %wide)
  ret ptr %pool
}

define internal void @keep_pool(i32 %key, ptr %pool) {
  %wide = zext i32 %key to i64
  %ignored = call i32 @pthread_setspecific(i64 %wide, ptr %pool)
  ret void
}
