import Cryptography
import HTTP2
import Synchronization

/// One address of a push service, for either protocol.
protocol ServiceListener: Sendable {
  /// The bound port.
  var port: UInt16 { get }
  /// Number of streams open now, by slot of the state's connection table.
  var openStreams: [Int: Int] { get }
  /// Closes the address to new connections, or opens it again.
  /// - Throws: An error when another process has taken the port.
  func setRefusing(_ refuses: Bool) throws
  /// Closes connections that had no request for too long; those of other listeners are ignored.
  func dismiss(_ idle: [IdleConnection])
  func stop() async
}

/// A connection that had no request for too long.
struct IdleConnection: Sendable {
  let slot: Int
  let lastStream: Int32
}

/// The addresses of all services.
final class ServiceListeners: Sendable {
  private let core: EmulatorCore
  private let running: [(listener: EmulatorListener, server: any ServiceListener)]
  /// Services whose addresses are currently closed by a fault.
  private let refusing = Mutex<Set<PushService>>([])

  /// Starts all of them; if one cannot start, none is left running.
  init(
    core: EmulatorCore, options: EmulatorOptions, authority: CertificateAuthority
  ) async throws {
    self.core = core
    var started: [(listener: EmulatorListener, server: any ServiceListener)] = []
    do {
      for service in core.services {
        // APNs has no plain address.
        let isSecure = options.tls || service.service == .apns
        // The names of the internet are for those who come by the proxy.
        let names = options.proxy == nil ? [] : PublicHost.names(of: service.service)
        let identity = isSecure ? try authority.issueForLocalhost(moreNames: names) : nil
        for listener in type(of: service).listeners {
          let server = try Self.start(
            listener, of: service, core, options, identity, authority.certificate)
          started.append((listener, server))
        }
      }
    } catch {
      for item in started { await item.server.stop() }
      throw error
    }
    running = started
  }

  private static func start(
    _ listener: EmulatorListener, of service: some StandIn, _ core: EmulatorCore,
    _ options: EmulatorOptions, _ identity: CertificateIdentity?, _ authority: Certificate
  ) throws -> any ServiceListener {
    let port = options.port(of: listener)
    guard listener.isHTTP2, let identity else {
      return try HTTP1ServiceListener(
        service, core: core, host: options.host, port: port, identity: identity)
    }
    var configuration = HTTP2ServerConfiguration(
      host: options.host, port: port, certificatePEM: Array(identity.certificatePEM.utf8),
      keyPEM: Array(try identity.privateKeyPEM().utf8))
    configuration.maxBody = type(of: service).maxBody
    configuration.clientCertificates = .ignored
    // The emulator's clock determines idle timeouts, not the server's.
    configuration.idleTimeout = nil
    service.configure(&configuration, authority: authority, options: options)
    return try HTTP2ServiceListener(service, at: listener, core: core, configuration)
  }

  /// The bound ports.
  var ports: [EmulatorListener: UInt16] {
    Dictionary(uniqueKeysWithValues: running.map { ($0.listener, $0.server.port) })
  }

  /// Streams open now, by slot.
  var openStreams: [Int: Int] {
    running.reduce(into: [:]) { streams, item in
      streams.merge(item.server.openStreams) { first, _ in first }
    }
  }

  /// Applies changes of the clock and of faults: dismisses idle connections, closes addresses or
  /// reopens them.
  func refresh() {
    let (idle, refused) = core.withState { state in
      let now = state.clock.now
      let refused = PushService.allCases.filter {
        state.faults.refusesConnections(to: $0, at: now)
      }
      return (state.takeIdle(), Set(refused))
    }
    if !idle.isEmpty { for item in running { item.server.dismiss(idle) } }
    refusing.withLock { refusing in
      for service in refused.symmetricDifference(refusing) {
        let refuses = refused.contains(service)
        do {
          for item in running where item.listener.service == service {
            try item.server.setRefusing(refuses)
          }
          if refuses { refusing.insert(service) } else { refusing.remove(service) }
        } catch {
          // Another process has taken the port; the next refresh retries.
        }
      }
    }
  }

  func stop() async {
    for item in running { await item.server.stop() }
  }
}

extension EmulatorState {
  /// Connections that had no request for too long and were not dismissed yet.
  fileprivate mutating func takeIdle() -> [IdleConnection] {
    var idle: [IdleConnection] = []
    for service in services {
      guard let timeout = service.idleTimeout else { continue }
      let limit = clock.now - timeout * 1000
      for slot in connections.slots.indices {
        guard let connection = connections[slot], connection.service == service.service,
          !connection.isIdle, connection.lastActivity < limit
        else { continue }
        connections[slot]?.isIdle = true
        idle.append(.init(slot: slot, lastStream: connection.highestStream))
      }
    }
    return idle
  }
}
