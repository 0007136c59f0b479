import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Nanoseconds of a monotonic clock.
package func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

extension Duration {
  /// Whole nanoseconds, clamped to between 0 and about 31 years so that sums with a clock never
  /// overflow.
  package var nanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0 else { return 0 }
    guard seconds < 1_000_000_000 else { return 1_000_000_000_000_000_000 }
    return UInt64(seconds) * 1_000_000_000 + UInt64(max(0, attoseconds) / 1_000_000_000)
  }
}

/// Milliseconds for which `poll` may wait until a deadline, rounded up; -1 (forever) when there is
/// none.
package func pollTimeout(until deadline: UInt64?, from now: UInt64) -> Int32 {
  guard let deadline else { return -1 }
  guard deadline > now else { return 0 }
  return Int32(clamping: (deadline - now) / 1_000_000 + 1)
}

/// A number that distinguishes the calling thread from every other living one.
func currentThreadNumber() -> UInt {
  #if canImport(Darwin)
    UInt(bitPattern: pthread_self())
  #elseif canImport(Musl)
    UInt(bitPattern: pthread_self())
  #else
    UInt(pthread_self())
  #endif
}

/// Keeps a write to a closed socket from killing the process: OpenSSL writes without
/// `MSG_NOSIGNAL`, so a transport thread blocks the signal and sees `EPIPE` instead.
package func blockBrokenPipeSignal() {
  var signals = sigset_t()
  sigemptyset(&signals)
  sigaddset(&signals, SIGPIPE)
  pthread_sigmask(SIG_BLOCK, &signals, nil)
}

/// Wakes a thread that sleeps in `poll`. Owns both ends until the last reference is released, so a
/// late `wake` can never hit a closed or reused descriptor.
package final class WakePipe: Sendable {
  package let readEnd: Int32
  private let writeEnd: Int32
  private let isSignalled = Atomic<Bool>(false)

  /// Nil when the process is out of descriptors.
  package init?() {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    (readEnd, writeEnd) = (ends[0], ends[1])
    for end in ends { Socket.prepare(end) }
  }

  deinit {
    close(readEnd)
    close(writeEnd)
  }

  /// Makes the read end readable; cheap when it already is.
  package func wake() {
    guard !isSignalled.exchange(true, ordering: .sequentiallyConsistent) else { return }
    var byte: UInt8 = 1
    _ = write(writeEnd, &byte, 1)
  }

  /// Empties the pipe. Read the mailbox after this, not before.
  package func drain() {
    withUnsafeTemporaryAllocation(byteCount: 16, alignment: 1) { buffer in
      while read(readEnd, buffer.baseAddress, 16) == 16 {}
    }
    isSignalled.store(false, ordering: .sequentiallyConsistent)
  }
}
