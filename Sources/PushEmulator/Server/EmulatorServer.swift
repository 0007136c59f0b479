package import Cryptography
package import Foundation
import HTTP2
import HTTPServer
import Synchronization

/// The push services' local stand-ins over TLS, virtual devices, and the control API (emulator.md).
package final class EmulatorServer: Sendable {
  private let options: EmulatorOptions
  private let running = Mutex<Running?>(nil)

  package init(_ options: EmulatorOptions = EmulatorOptions()) { self.options = options }

  /// Everything that lives between start and stop.
  private struct Running: Sendable {
    let core: EmulatorCore
    let listeners: APNsListeners
    let services: ServiceListeners
    let control: HTTPListener
    let router: HTTPRouter
    let authority: CertificateAuthority
    let housekeeping: Task<Void, Never>
    let addresses: EmulatorAddresses
  }

  /// Starts all listeners. Starting twice gives the same addresses.
  ///
  /// - Throws: `EmulatorError`, `HTTP2ServerError`, `HTTPListenerError` or `CryptographyError`, each
  ///   with a text for people; nothing is left running.
  package func start() async throws -> EmulatorAddresses {
    if let addresses = running.withLock({ $0?.addresses }) { return addresses }
    guard options.isLoopback || options.allowsRemoteClients else {
      throw EmulatorError.notLoopback(host: options.host)
    }
    let (authority, authorityFile) = try EmulatorAuthority.load(
      directory: options.authorityDirectory)
    var state = EmulatorState(
      settings: options.settings, clock: EmulatorClock(manual: options.manualClock))
    let stateFile = options.stateFile.map { StateFile(path: $0) }
    try stateFile?.load(into: &state)
    let core = EmulatorCore(state)

    let listeners = try APNsListeners(core: core, options: options, authority: authority)
    let started: Running
    var services: ServiceListeners?
    do {
      let others = try await ServiceListeners(core: core, options: options, authority: authority)
      services = others
      started = try startControl(
        core: core, listeners: listeners, services: others, authority: authority,
        authorityFile: authorityFile,
        stateFile: stateFile)
    } catch {
      await listeners.stop()
      await services?.stop()
      throw error
    }
    running.withLock { $0 = started }
    return started.addresses
  }

  private func startControl(
    core: EmulatorCore, listeners: APNsListeners, services: ServiceListeners,
    authority: CertificateAuthority, authorityFile: String?, stateFile: StateFile?
  ) throws -> Running {
    let shared = KnownAddresses()
    let api = ControlAPI(
      core: core, addresses: { shared.json }, authority: authority.certificate.pem,
      openStreams: { listeners.openStreams.merging(services.openStreams) { first, _ in first } },
      afterChange: {
        listeners.refresh()
        services.refresh()
      },
      heartbeat: options.heartbeat)
    var configuration = HTTPConfiguration()
    configuration.host = options.host
    configuration.port = options.controlPort
    configuration.streamStallTimeout = options.streamStallTimeout
    let router = api.router
    let control = try HTTPListener(
      configuration,
      handler: ControlGuard(next: router, allowsRemoteClients: options.allowsRemoteClients))
    let name = options.host.contains(":") ? "[\(options.host)]" : options.host
    let addresses = EmulatorAddresses(
      control: "http://\(name):\(control.port)",
      apnsProduction: "https://127.0.0.1:\(listeners.productionPort)",
      apnsSandbox: "https://127.0.0.1:\(listeners.sandboxPort)",
      apnsChannelsProduction: "https://127.0.0.1:\(listeners.channelsProductionPort)",
      apnsChannelsSandbox: "https://127.0.0.1:\(listeners.channelsSandboxPort)",
      services: services.addresses(isSecure: options.tls),
      authorityPEM: authority.certificate.pem, authorityFile: authorityFile)
    shared.set(addresses)
    let housekeeping = Housekeeping(
      core: core, listeners: listeners, services: services, stateFile: stateFile,
      savedRevision: core.withState { $0.revision }, onProblem: options.onProblem)
    return Running(
      core: core, listeners: listeners, services: services, control: control, router: router,
      authority: authority,
      housekeeping: Task { await housekeeping.run() }, addresses: addresses)
  }

  /// Closes everything and saves the state. Does nothing when it is not running.
  package func stop() async {
    let running = running.withLock { running in
      defer { running = nil }
      return running
    }
    guard let running else { return }
    await running.control.stop()
    await running.listeners.stop()
    await running.services.stop()
    running.housekeeping.cancel()
    await running.housekeeping.value
  }
}

extension EmulatorServer {
  /// An APNs app with what a hub needs to push to it.
  package struct App: Sendable {
    package let appID: String
    package let bundleID: String
    package let teamID: String
    package let keyID: String
    /// The signing key as Apple hands it out: PEM PKCS#8.
    package let p8: String
  }

  /// The app of this bundle id whose key the emulator made, which is made if there is none.
  ///
  /// - Throws: `ControlError` in words for people; `EmulatorError` before the start.
  package func app(bundleID: String = "com.example.app") throws -> App {
    let core = try core()
    return try core.withState { state in
      for key in state.apns.keys.values.sorted(by: { $0.app < $1.app }) {
        if let p8 = key.privateKeyPEM, let app = state.apns.apps[key.app],
          app.bundleID == bundleID, !key.isRevoked
        {
          return App(
            appID: app.id, bundleID: bundleID, teamID: app.teamID, keyID: key.kid, p8: p8)
        }
      }
      let (number, made) = try state.addApp(.init(bundleID: bundleID))
      return App(
        appID: EmulatorState.appID(number), bundleID: bundleID,
        teamID: state.apns.apps[number]?.teamID ?? "", keyID: made?.kid ?? "",
        p8: made?.privateKeyPEM ?? "")
    }
  }

  /// A virtual device.
  package struct VirtualDevice: Sendable {
    package let deviceID: String
    /// 64 lower-case hex digits.
    package let token: String
  }

  /// Makes devices that are online whether or not anybody reads their events.
  package func makeDevices(
    app: App, count: Int = 1, environment: APNsEnvironment = .production
  ) throws -> [VirtualDevice] {
    try core().withState { state in
      var request = DeviceRequest(app: try state.appNumber(app.appID))
      request.count = max(0, count)
      return try state.addDevices(request, environment: environment).compactMap { index in
        guard case .apns(let handle) = state.devices[index].handle else { return nil }
        return VirtualDevice(
          deviceID: EmulatorState.deviceID(index), token: handle.token.text)
      }
    }
  }

  /// Asks the control API without going over a socket; not for event streams.
  ///
  /// - Parameters:
  ///   - method: For example `POST`.
  ///   - target: Path and query, for example `/v1/faults`.
  package func control(
    _ method: String, _ target: String, body: String = ""
  ) async throws -> (status: Int, body: [UInt8]) {
    guard let router = running.withLock({ $0?.router }) else { throw Self.notRunning }
    let response = await router.respond(
      to: HTTPRequest(
        method: HTTPMethod(rawValue: method), target: HTTPTarget(target), body: Array(body.utf8)))
    guard case .bytes(let bytes) = response.body else { return (response.status.rawValue, []) }
    return (response.status.rawValue, bytes)
  }

  /// Issues the certificate of a server on this machine (`localhost`, `127.0.0.1`, `::1`) that
  /// anyone who trusts the emulator's authority also trusts.
  package func issueForLocalhost(at now: Date) throws -> CertificateIdentity {
    guard let authority = running.withLock({ $0?.authority }) else { throw Self.notRunning }
    return try authority.issueForLocalhost(at: now)
  }

  func core() throws -> EmulatorCore {
    guard let core = running.withLock({ $0?.core }) else { throw Self.notRunning }
    return core
  }

  private static var notRunning: EmulatorError {
    .file(path: "emulator", reason: "is not running; start it first")
  }
}
