import Cryptography
import HTTP2
import Synchronization

/// APNs' two addresses, production and sandbox.
final class APNsListeners: Sendable {
  private let core: EmulatorCore
  private let production: (listener: APNsListener, server: HTTP2Server)
  private let sandbox: (listener: APNsListener, server: HTTP2Server)
  /// Whether a fault keeps the sockets closed now.
  private let isRefusing = Mutex(false)

  init(
    core: EmulatorCore, options: EmulatorOptions, authority: CertificateAuthority
  ) throws {
    self.core = core
    let identity = try authority.issueForLocalhost()
    func start(
      _ environment: APNsEnvironment, port: UInt16
    ) throws -> (listener: APNsListener, server: HTTP2Server) {
      let listener = APNsListener(core: core, environment: environment)
      var configuration = HTTP2ServerConfiguration(
        host: options.host, port: port,
        certificatePEM: Array(identity.certificatePEM.utf8),
        keyPEM: Array(try identity.privateKeyPEM().utf8))
      configuration.clientCertificates = .optional
      configuration.clientAnchorsPEM = Array(
        (authority.certificate.pem + options.clientAuthoritiesPEM).utf8)
      // Apple takes HTTP/2 from clients that do not ask for it, and several well-known ones do not
      // (aioapns; pushy, whose issue 808 is about just that).
      configuration.requiresALPN = false
      // Until a provider token has been accepted (apns.md, section 5).
      configuration.maxConcurrentStreams = 1
      // The emulator's clock decides, not the server's.
      configuration.idleTimeout = nil
      return (listener, try HTTP2Server(configuration, handler: listener))
    }
    production = try start(.production, port: options.apnsProductionPort)
    sandbox = try start(.sandbox, port: options.apnsSandboxPort)
  }

  var productionPort: UInt16 { production.server.port }
  var sandboxPort: UInt16 { sandbox.server.port }

  /// Streams open now, by slot.
  var openStreams: [Int: Int] {
    production.listener.openStreams.merging(sandbox.listener.openStreams) { first, _ in first }
  }

  /// Does what the clock or a fault demands: sends idle connections away, closes or opens the
  /// sockets.
  func refresh() {
    let (idle, refuses) = core.withState { state in
      (state.takeIdle(), state.faults.refusesConnections(to: .apns, at: state.clock.now))
    }
    production.listener.dismiss(idle.filter { $0.environment == .production })
    sandbox.listener.dismiss(idle.filter { $0.environment == .sandbox })
    isRefusing.withLock { isRefusing in
      guard refuses != isRefusing else { return }
      do {
        for server in [production.server, sandbox.server] {
          if refuses { server.stopListening() } else { try server.resumeListening() }
        }
        isRefusing = refuses
      } catch {
        // Somebody else has the port now; the next refresh tries again.
      }
    }
  }

  func stop() async {
    await production.server.stop()
    await sandbox.server.stop()
  }
}
