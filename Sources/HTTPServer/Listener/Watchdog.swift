import Foundation
import HTTP2

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A thread that runs a closure periodically until it is told to rest or to end. A timer of
/// Dispatch would not do, since on Linux its threads are those of Swift's tasks and may all be
/// busy.
final class Watchdog: Sendable {
  private let pipe: WakePipe

  /// Fails if the process is out of descriptors.
  init?() {
    guard let pipe = WakePipe() else { return nil }
    self.pipe = pipe
  }

  /// - Parameter round: Returns the milliseconds to wait, -1 to wait until ``wake()``, `nil` to
  ///   end.
  func start(_ round: @escaping @Sendable () -> Int32?) {
    let thread = Thread { [pipe] in
      while let rest = round() {
        var entry = pollfd(fd: pipe.readEnd, events: Int16(POLLIN), revents: 0)
        if poll(&entry, 1, rest) > 0 { pipe.drain() }
      }
    }
    thread.name = "http-watchdog"
    thread.start()
  }

  /// Starts the next round now.
  func wake() { pipe.wake() }
}
