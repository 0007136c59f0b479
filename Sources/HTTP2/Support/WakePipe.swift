import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Wakes a thread that sleeps in `poll`. Owns both ends until the last holder lets go, so a late
/// `wake` can never hit a closed or reused descriptor.
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

  /// Empties the pipe. Look at the mailbox after this, not before.
  package func drain() {
    withUnsafeTemporaryAllocation(byteCount: 16, alignment: 1) { buffer in
      while read(readEnd, buffer.baseAddress, 16) == 16 {}
    }
    isSignalled.store(false, ordering: .sequentiallyConsistent)
  }
}
