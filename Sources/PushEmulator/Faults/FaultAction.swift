import Foundation

/// The effect of a fault (docs/protocol/emulator.md, section 2.6, table).
enum FaultAction: Sendable {
  case latency(Latency)
  case reply(Reply)
  /// Statuses with their share of all requests, from 0 to 1 in sum.
  case errorRate([(status: Int, rate: Double)])
  case throttle(Throttle)
  case goAway(GoAway)
  /// An HTTP/2 error code.
  case resetStream(code: UInt32)
  case settings(maxConcurrentStreams: Int?, initialWindowSize: Int?)
  /// A TCP reset.
  case reset(at: Moment)
  /// An orderly close of the connection.
  case close(at: Moment)
  /// The connection stays open and silent.
  case stall(at: Moment)
  /// Only so many bytes of the reply's body are sent.
  case truncate(bytes: Int)
  /// The reply's body is not JSON.
  case garbage
  /// The TLS handshake fails with this alert (RFC 8446, section 6).
  case tlsAlert(UInt8)
  /// The listeners are closed while the rule holds.
  case refuse

  /// The progress of a connection or a request at which a fault applies.
  enum Moment: String, CaseIterable, Sendable {
    case accept, headers, body, reply
  }

  struct Reply: Sendable {
    var status: Int
    /// The service's word; `nil` means the usual one for the status.
    var reason: String?
    var headers: [(name: String, value: String)] = []
    /// `nil` means a body in the service's own form.
    var body: String?
  }

  struct Throttle: Sendable {
    enum Scope: String, CaseIterable, Sendable {
      case handle, credential, connection, global
    }
    /// Requests per second.
    var rate: Double
    var burst: Double
    var scope: Scope
    /// Seconds.
    var retryAfter: Int?
  }

  struct GoAway: Sendable {
    enum Last: String, CaseIterable, Sendable {
      /// The request's own stream: it is processed and gets a reply.
      case seen
      /// The stream before it.
      case previous
      case zero
    }
    var code: UInt32
    /// Sent as `{"reason":"..."}`.
    var reason: String?
    var last: Last
    /// Time from GOAWAY to the end of the connection, in ms.
    var graceMilliseconds: Int
    /// Number of requests that the connection may have before.
    var afterRequests: Int
  }

  /// The moment in the course of a connection at which it applies.
  var moment: Moment {
    switch self {
    case .reset(let at), .close(let at), .stall(let at): at
    case .tlsAlert: .accept
    default: .reply
    }
  }
}

/// The delay of a reply.
enum Latency: Sendable, Equatable {
  case fixed(milliseconds: Double)
  case uniform(from: Double, to: Double)
  /// Log-normal, by its median and its 99th percentile in ms.
  case logNormal(p50: Double, p99: Double)

  /// Maximum delay in ms: a rule must not hold replies forever.
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
