/// Options at the emulator's start. The defaults are those of docs/protocol/emulator.md, section 1.
package struct EmulatorOptions: Sendable {
  /// A loopback address or `localhost`; others are refused without `allowsRemoteClients`, because
  /// the control API hands out keys to anyone who asks.
  package var host = "127.0.0.1"
  package var allowsRemoteClients = false
  /// 0 picks a free port, as with the other ports.
  package var controlPort: UInt16 = 9400
  /// The services' ports, where they differ from `EmulatorListener.standardPort`.
  package var ports: [EmulatorListener: UInt16] = [:]
  /// Whether the services other than APNs speak TLS. Without it they all speak plain HTTP/1.1, for
  /// simple clients.
  package var tls = true
  /// The proxy by which clients reach the stand-ins under the services' real names; `nil` for none.
  /// Needs `tls`.
  package var proxy: ProxyOptions?
  /// Whether APNs, FCM, WNS and Web Push accept credentials that the emulator did not issue, such
  /// as those of a real app: their form is checked, and what they are signed with where the key is
  /// known. Nothing of them is kept; see `AnyCredential`.
  package var acceptsAnyCredential = false
  /// The directory of the certificate authority (`ca.pem`, `ca-key.pem`), so that clients also
  /// trust the next run; `nil` makes one for this run.
  package var authorityDirectory: String?
  /// PEM certificates that client certificates may chain to, in addition to the emulator's own
  /// authority.
  package var clientAuthoritiesPEM = ""
  /// The file that keeps apps, devices and their recent history between runs; `nil` keeps nothing.
  package var stateFile: String?
  /// The same seed gives the same ids.
  package var seed: UInt64 = 1
  package var apns = APNsOptions()
  package var fcm = FCMOptions()
  package var webPush = WebPushOptions()
  package var wns = WNSOptions()
  /// The options of the services without options of their own.
  package var others = OtherServicesOptions()
  /// Whether requests are kept for `GET /v1/requests` (the last 100 000).
  package var journal = true
  /// Approximate memory for the journal, in bytes.
  package var journalBytes = 64 << 20
  /// Number of events kept per device.
  package var eventsPerDevice = 1000
  package var bytesPerDevice = DeviceTable.Limits().bytesPerDevice
  /// Approximate memory for the events of all devices, in bytes.
  package var historyBytes = DeviceTable.Limits().historyBytes
  /// Approximate memory for the messages waiting for all devices, in bytes.
  package var waitingBytes = DeviceTable.Limits().waitingBytes
  /// Starts with a stopped clock at this time, in ms since the Unix epoch.
  package var manualClock: Int64?
  /// Pause between two comment lines of an idle event stream.
  package var heartbeat = Duration.seconds(15)
  /// Time for which an event stream's reader may stop reading before its device counts as offline.
  package var streamStallTimeout = Duration.seconds(5)

  /// Called when the state file cannot be written; it is retried after the next change, and at the
  /// end.
  package var onProblem: @Sendable (EmulatorError) -> Void = { _ in }

  package init() {}

  /// Uses free ports for everything, for tests and for several emulators on one machine.
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

/// The reasons for which the emulator does not start; errors of the HTTP servers name the address
/// that they could not bind.
package enum EmulatorError: Error, Equatable, CustomStringConvertible {
  /// The host is not a loopback address, and remote clients were not allowed.
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

/// The behaviour of the stand-ins over HTTP/1.1 (docs/protocol/emulator.md, section 8).
package struct OtherServicesOptions: Sendable {
  /// Lifetime of an access token of ADM in seconds.
  package var admTokenLifetime: Int64 = 3600
  /// Maximum number of messages per second from an app or a client, by the name of the service in
  /// the control API; a service without one is not limited.
  package var rates: [String: Double] = [:]
  /// Maximum number of messages to devices from an app on a day of the service, for services that
  /// have such a quota; by name, too.
  package var dailyQuotas: [String: Int] = [:]

  package init() {}
}
