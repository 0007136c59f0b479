/// How the emulator is started. The defaults are those of docs/protocol/emulator.md, section 1.
package struct EmulatorOptions: Sendable {
  /// A loopback address or `localhost`; others are refused without `allowsRemoteClients`, because
  /// the control API hands out keys to anyone who asks.
  package var host = "127.0.0.1"
  package var allowsRemoteClients = false
  /// 0 picks a free port; so with the other ports.
  package var controlPort: UInt16 = 9400
  /// The services' ports, where they differ from `EmulatorListener.standardPort`.
  package var ports: [EmulatorListener: UInt16] = [:]
  /// Whether the services other than APNs speak TLS. Without it they all speak plain HTTP/1.1, for
  /// simple clients.
  package var tls = true
  /// Where the certificate authority is kept (`ca.pem`, `ca-key.pem`), so that clients trust the
  /// next run too; `nil` makes one for this run.
  package var authorityDirectory: String?
  /// PEM certificates that client certificates may chain to, beside the emulator's own authority.
  package var clientAuthoritiesPEM = ""
  /// Where apps, devices and their recent history are kept between runs; `nil` keeps nothing.
  package var stateFile: String?
  /// The same seed gives the same ids.
  package var seed: UInt64 = 1
  package var apns = APNsOptions()
  package var fcm = FCMOptions()
  package var webPush = WebPushOptions()
  package var wns = WNSOptions()
  /// Of ADM, Baidu and Xiaomi.
  package var others = OtherServicesOptions()
  /// Whether requests are kept for `GET /v1/requests` (the last 100 000).
  package var journal = true
  /// Memory for these, in bytes and roughly.
  package var journalBytes = 64 << 20
  /// Events kept per device, and memory for them.
  package var eventsPerDevice = 1000
  package var bytesPerDevice = DeviceTable.Limits().bytesPerDevice
  /// Memory for the events of all devices, in bytes and roughly.
  package var historyBytes = DeviceTable.Limits().historyBytes
  /// Memory for the messages that wait for all devices, in bytes and roughly.
  package var waitingBytes = DeviceTable.Limits().waitingBytes
  /// Starts with a clock that stands still at this time, in ms since the Unix epoch.
  package var manualClock: Int64?
  /// Between two comment lines of a quiet event stream.
  package var heartbeat = Duration.seconds(15)
  /// How long an event stream's reader may not read before its device counts as offline.
  package var streamStallTimeout = Duration.seconds(5)

  /// Told when the state file cannot be written; the next change, and the end, try again.
  package var onProblem: @Sendable (EmulatorError) -> Void = { _ in }

  package init() {}

  /// All ports free ones, for tests and for several emulators on one machine.
  package static var onFreePorts: EmulatorOptions {
    var options = EmulatorOptions()
    options.controlPort = 0
    for listener in EmulatorListener.all { options.ports[listener] = 0 }
    return options
  }

  func port(of listener: EmulatorListener) -> UInt16 { ports[listener] ?? listener.standardPort }

  var limits: DeviceTable.Limits {
    .init(
      eventsPerDevice: max(1, eventsPerDevice), bytesPerDevice: bytesPerDevice,
      historyBytes: historyBytes, waitingBytes: waitingBytes)
  }

  var isLoopback: Bool {
    host == "localhost" || host == "::1"
      || (host.hasPrefix("127.")
        && host.split(separator: ".", omittingEmptySubsequences: false).count == 4
        && host.split(separator: ".").allSatisfy { UInt8($0) != nil })
  }
}

/// Why the emulator did not start; the HTTP servers' own errors name the address they could not
/// have.
package enum EmulatorError: Error, Equatable, CustomStringConvertible {
  /// The host is not this machine's own, and remote clients were not allowed.
  case notLoopback(host: String)
  /// A file of the emulator cannot be read or written, or holds something else.
  case file(path: String, reason: String)

  package var description: String {
    switch self {
    case .notLoopback(let host):
      "the emulator would hand out keys to the network on '\(host)'; use 127.0.0.1, ::1 or "
        + "localhost, or allow remote clients expressly"
    case .file(let path, let reason):
      "\(path): \(reason)"
    }
  }
}

/// How ADM, Baidu and Xiaomi are played (docs/protocol/emulator.md, section 8). Rates are messages
/// per second; `nil` switches a limit off.
package struct OtherServicesOptions: Sendable {
  /// Seconds that an access token of ADM is good for.
  package var admTokenLifetime: Int64 = 3600
  /// Per client.
  package var admRate: Double?
  /// Per app.
  package var baiduRate: Double?
  /// Per app.
  package var xiaomiRate: Double?
  /// Messages to devices that an app of Xiaomi may send between two midnights in China.
  package var xiaomiDailyQuota: Int?

  package init() {}
}
