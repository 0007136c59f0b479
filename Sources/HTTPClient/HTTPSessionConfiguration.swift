import Dispatch

/// How a session connects and what it bears.
package struct HTTPSessionConfiguration: Sendable {
  /// PEM certificates trusted beside the system's store: an emulator's authority.
  package var extraAnchorsPEM: [UInt8] = []
  /// Plain `http` too; for tests and old services on purpose only.
  package var allowsPlainHTTP = false
  /// Goes through the proxy that the environment names (`https_proxy` and its like), except to this
  /// machine itself. A check of addresses would then see the proxy's.
  package var usesProxy = false
  /// Asked before each connection, on the session's thread, with the address that the host's name
  /// led to; false leaves that address out. `nil` allows all. Connections in use are not asked again.
  package var allowsAddress: (@Sendable (IPAddress) -> Bool)?
  /// Name look-up, TCP and TLS together.
  package var connectTimeout: Duration = .seconds(5)
  /// From the start of a call to the end of its reply; a call that waits for its lane has not begun.
  package var totalTimeout: Duration = .seconds(30)
  /// A clock that never steps back, in nanoseconds, for ``totalTimeout``; tests pass their own.
  package var monotonicClock: @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
  /// How long less than a byte a second may come or go; `nil` leaves it to ``totalTimeout``.
  package var silenceTimeout: Duration?
  /// How many connections without work are kept, over all hosts.
  package var maxIdleConnections = 128
  /// All header lines of a reply together, in bytes.
  package var maxReplyHeaderBytes = 64 * 1024
  /// In bytes.
  package var maxReplyBodyBytes = 1024 * 1024

  package init() {}
}
