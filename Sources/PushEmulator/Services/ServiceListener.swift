import Cryptography
import Synchronization

/// One address of a push service, whatever it speaks.
protocol ServiceListener: Sendable {
  /// As bound.
  var port: UInt16 { get }
  /// Streams open now, by slot of the state's connection table.
  var openStreams: [Int: Int] { get }
  /// Closes the address to new connections, or opens it again.
  /// - Throws: When somebody else has the port now.
  func setRefusing(_ refuses: Bool) throws
  func stop() async
}

/// The addresses of all services but APNs.
final class ServiceListeners: Sendable {
  private let core: EmulatorCore
  private let running: [(listener: EmulatorListener, server: any ServiceListener)]
  /// Services whose addresses a fault keeps closed now.
  private let refusing = Mutex<Set<PushService>>([])

  /// Starts all of them; nothing is left running when one cannot start.
  init(
    core: EmulatorCore, options: EmulatorOptions, authority: CertificateAuthority
  ) async throws {
    self.core = core
    let identity = options.tls ? try authority.issueForLocalhost() : nil
    var started: [(listener: EmulatorListener, server: any ServiceListener)] = []
    do {
      for listener in EmulatorListener.allCases {
        let endpoint = ServiceEndpoint(
          listener: listener, host: options.host,
          port: options.ports[listener] ?? listener.standardPort, identity: identity)
        started.append((listener, try endpoint.start(core: core)))
      }
    } catch {
      for item in started { await item.server.stop() }
      throw error
    }
    running = started
    core.withState { [started] state in
      for item in started {
        state.origins.add(item.listener, isSecure: options.tls, port: item.server.port)
      }
    }
  }

  /// Base URLs.
  func addresses(isSecure: Bool) -> [EmulatorListener: String] {
    Dictionary(
      uniqueKeysWithValues: running.map { item in
        (item.listener, "\(isSecure ? "https" : "http")://127.0.0.1:\(item.server.port)")
      })
  }

  /// Streams open now, by slot.
  var openStreams: [Int: Int] {
    running.reduce(into: [:]) { streams, item in
      streams.merge(item.server.openStreams) { first, _ in first }
    }
  }

  /// Does what a fault demands: closes addresses or opens them.
  func refresh() {
    let refused = core.withState { state in
      let now = state.clock.now
      return Set(
        PushService.allCases.filter { state.faults.refusesConnections(to: $0, at: now) })
    }
    refusing.withLock { refusing in
      for service in refused.symmetricDifference(refusing) {
        let refuses = refused.contains(service)
        do {
          for item in running where item.listener.service == service {
            try item.server.setRefusing(refuses)
          }
          if refuses { refusing.insert(service) } else { refusing.remove(service) }
        } catch {
          // Somebody else has the port now; the next refresh tries again.
        }
      }
    }
  }

  func stop() async {
    for item in running { await item.server.stop() }
  }
}

/// What it takes to start one address.
struct ServiceEndpoint: Sendable {
  let listener: EmulatorListener
  let host: String
  let port: UInt16
  /// `nil` for plain HTTP/1.1.
  let identity: CertificateIdentity?

  /// Starts it with its service's rules.
  func start(core: EmulatorCore) throws -> any ServiceListener {
    switch listener.service {
    case .fcm: try start(FCMStandIn(), core: core)
    case .webpush: try start(WebPushStandIn(), core: core)
    case .wns: try start(WNSStandIn(), core: core)
    case .adm: try start(ADMStandIn(), core: core)
    case .baidu: try start(BaiduStandIn(), core: core)
    case .xiaomi: try start(XiaomiStandIn(), core: core)
    case .apns: preconditionFailure("\(listener) has a listener of its own")
    }
  }

  private func start(_ service: some StandIn, core: EmulatorCore) throws -> any ServiceListener {
    if listener.isHTTP2, let identity {
      return try HTTP2ServiceListener(service, core: core, self, identity: identity)
    }
    return try HTTP1ServiceListener(service, core: core, self)
  }
}
