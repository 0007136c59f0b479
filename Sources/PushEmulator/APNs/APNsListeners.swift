import Cryptography
import HTTP2
import Synchronization

/// APNs' addresses: for pushes and for the management of channels, each in production and sandbox.
final class APNsListeners: Sendable {
  private struct Address: Sendable {
    let listener: APNsListener
    let server: HTTP2Server
  }

  private let core: EmulatorCore
  private let production: Address
  private let sandbox: Address
  private let channelsProduction: Address
  private let channelsSandbox: Address
  /// Whether a fault keeps the sockets closed now.
  private let isRefusing = Mutex(false)

  private var all: [Address] { [production, sandbox, channelsProduction, channelsSandbox] }

  init(
    core: EmulatorCore, options: EmulatorOptions, authority: CertificateAuthority
  ) throws {
    self.core = core
    let identity = try authority.issueForLocalhost()
    func start(
      _ environment: APNsEnvironment, _ interface: APNsInterface, port: UInt16
    ) throws -> Address {
      let listener = APNsListener(core: core, environment: environment, interface: interface)
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
      return Address(
        listener: listener, server: try HTTP2Server(configuration, handler: listener))
    }
    production = try start(.production, .pushes, port: options.apnsProductionPort)
    sandbox = try start(.sandbox, .pushes, port: options.apnsSandboxPort)
    channelsProduction = try start(
      .production, .channelManagement, port: options.apnsChannelsProductionPort)
    channelsSandbox = try start(
      .sandbox, .channelManagement, port: options.apnsChannelsSandboxPort)
  }

  var productionPort: UInt16 { production.server.port }
  var sandboxPort: UInt16 { sandbox.server.port }
  var channelsProductionPort: UInt16 { channelsProduction.server.port }
  var channelsSandboxPort: UInt16 { channelsSandbox.server.port }

  /// Streams open now, by slot.
  var openStreams: [Int: Int] {
    all.reduce(into: [:]) { streams, address in
      streams.merge(address.listener.openStreams) { first, _ in first }
    }
  }

  /// Does what the clock or a fault demands: sends idle connections away, closes or opens the
  /// sockets.
  func refresh() {
    let (idle, refuses) = core.withState { state in
      (state.takeIdle(), state.faults.refusesConnections(to: .apns, at: state.clock.now))
    }
    // Each listener finds its own among them.
    for address in all { address.listener.dismiss(idle) }
    isRefusing.withLock { isRefusing in
      guard refuses != isRefusing else { return }
      do {
        for server in all.map(\.server) {
          if refuses { server.stopListening() } else { try server.resumeListening() }
        }
        isRefusing = refuses
      } catch {
        // Somebody else has the port now; the next refresh tries again.
      }
    }
  }

  func stop() async {
    for address in all { await address.server.stop() }
  }
}
