import Foundation

/// What a fault does (docs/protocol/emulator.md, section 2.6, table).
enum FaultAction: Sendable {
  case latency(Latency)
  case reply(Reply)
  /// Status and its share of all requests, from 0 to 1 in sum.
  case errorRate([(status: Int, rate: Double)])
  case throttle(Throttle)
  case goAway(GoAway)
  /// An HTTP/2 error code.
  case resetStream(code: UInt32)
  case settings(maxConcurrentStreams: Int?, initialWindowSize: Int?)
  /// A TCP reset.
  case reset(at: Moment)
  /// An orderly end of the connection.
  case close(at: Moment)
  /// The connection stays open and silent.
  case stall(at: Moment)
  /// So many bytes of the answer's body are sent.
  case truncate(bytes: Int)
  /// The answer's body is no JSON and says so.
  case garbage
  /// The TLS handshake fails with this alert (RFC 8446, section 6).
  case tlsAlert(UInt8)
  /// The listeners are closed while the rule holds.
  case refuse

  /// How far a connection or a request gets.
  enum Moment: String, CaseIterable, Sendable {
    case accept, headers, body, reply
  }

  struct Reply: Sendable {
    var status: Int
    /// The service's word; `nil` takes the usual one for the status.
    var reason: String?
    var headers: [(name: String, value: String)] = []
    /// `nil` makes one in the service's own form.
    var body: String?
  }

  struct Throttle: Sendable {
    enum Scope: String, CaseIterable, Sendable {
      case handle, credential, connection, global
    }
    /// A second.
    var rate: Double
    var burst: Double
    var scope: Scope
    /// Seconds.
    var retryAfter: Int?
  }

  struct GoAway: Sendable {
    enum Last: String, CaseIterable, Sendable {
      /// The request's own stream: it is processed and answered.
      case seen
      /// The stream before it.
      case previous
      case zero
    }
    var code: UInt32
    /// Sent as `{"reason":"..."}`.
    var reason: String?
    var last: Last
    /// From GOAWAY to the end of the connection, in ms.
    var graceMilliseconds: Int
    /// Requests that the connection may have before.
    var afterRequests: Int
  }

  /// The rule's place in the course of a connection.
  var moment: Moment {
    switch self {
    case .reset(let at), .close(let at), .stall(let at): at
    case .tlsAlert: .accept
    default: .reply
    }
  }
}

/// How long an answer is delayed.
enum Latency: Sendable, Equatable {
  case fixed(milliseconds: Double)
  case uniform(from: Double, to: Double)
  /// Log-normal, by its median and its 99th percentile in ms.
  case logNormal(p50: Double, p99: Double)

  /// Longest delay in ms: a rule may not hold answers forever.
  static let longest = 600_000.0

  func milliseconds(_ generator: inout SeededGenerator) -> Double {
    let delay: Double
    switch self {
    case .fixed(let milliseconds): delay = milliseconds
    case .uniform(let from, let to): delay = from + (to - from) * generator.unit()
    case .logNormal(let p50, let p99):
      // Box-Muller; 2.3263 is the 99th percentile of the standard normal distribution.
      let radius = (-2 * log(1 - generator.unit())).squareRoot()
      let normal = radius * cos(2 * .pi * generator.unit())
      delay = p50 * exp(normal * log(p99 / p50) / 2.3263)
    }
    return min(max(0, delay), Self.longest)
  }
}
