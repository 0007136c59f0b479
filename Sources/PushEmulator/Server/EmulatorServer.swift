package import Cryptography
package import Foundation
import HTTP2
import HTTPServer
import Synchronization

/// The push services' local stand-ins over TLS, virtual devices, and the control API
/// (docs/protocol/emulator.md).
package final class EmulatorServer: Sendable {
  private let options: EmulatorOptions
  private let running = Mutex<Running?>(nil)

  package init(_ options: EmulatorOptions = EmulatorOptions()) { self.options = options }

  /// Everything that exists between start and stop.
  private struct Running: Sendable {
    let core: EmulatorCore
    let listeners: ServiceListeners
    let control: HTTPListener
    let proxy: ProxyServer?
    let router: HTTPRouter
    let authority: CertificateAuthority
    let housekeeping: Task<Void, Never>
    let addresses: EmulatorAddresses
  }

  /// Starts all listeners. A second call returns the same addresses.
  ///
  /// - Throws: `EmulatorError`, `HTTP2ServerError`, `HTTPListenerError` or `CryptographyError`,
  ///   each with a text for people; nothing is left running.
  package func start() async throws -> EmulatorAddresses {
    if let addresses = running.withLock({ $0?.addresses }) { return addresses }
    guard options.isLoopback || options.allowsRemoteClients else {
      throw EmulatorError.notLoopback(host: options.host)
    }
    let (authority, authorityFile) = try EmulatorAuthority.load(
      directory: options.authorityDirectory, isForProxy: options.proxy != nil)
    var state = EmulatorState(options)
    let stateFile = options.stateFile.map { StateFile(path: $0) }
    try stateFile?.load(into: &state)
    let core = EmulatorCore(state)
    let listeners = try await ServiceListeners(core: core, options: options, authority: authority)
    let started: Running
    var proxy: ProxyServer?
    do {
      proxy = try options.proxy.map {
        try ProxyServer($0, host: options.host, ports: listeners.ports)
      }
      started = try startControl(core, listeners, proxy, authority, authorityFile, stateFile)
    } catch {
      await proxy?.stop()
      await listeners.stop()
      throw error
    }
    running.withLock { $0 = started }
    return started.addresses
  }

  private func startControl(
    _ core: EmulatorCore, _ listeners: ServiceListeners, _ proxy: ProxyServer?,
    _ authority: CertificateAuthority, _ authorityFile: String?, _ stateFile: StateFile?
  ) throws -> Running {
    let name = options.host.contains(":") ? "[\(options.host)]" : options.host
    func addresses(control: String) -> EmulatorAddresses {
      EmulatorAddresses(
        control: control, host: name, ports: listeners.ports, proxyPort: proxy?.port,
        isSecure: options.tls,
        authorityPEM: authority.certificate.pem, authorityFile: authorityFile)
    }
    // The services accept requests from now on.
    core.withState { $0.addresses = addresses(control: "") }
    let api = ControlAPI(
      core: core, authority: authority.certificate.pem,
      openStreams: { listeners.openStreams }, afterChange: { listeners.refresh() },
      heartbeat: options.heartbeat)
    var configuration = HTTPConfiguration()
    configuration.host = options.host
    configuration.port = options.controlPort
    configuration.streamStallTimeout = options.streamStallTimeout
    let router = api.router
    let control = try HTTPListener(
      configuration,
      handler: ControlGuard(next: router, allowsRemoteClients: options.allowsRemoteClients))
    let known = addresses(control: "http://\(name):\(control.port)")
    core.withState { $0.addresses = known }
    let housekeeping = Housekeeping(
      core: core, listeners: listeners, stateFile: stateFile,
      savedRevision: core.withState { $0.revision }, onProblem: options.onProblem)
    return Running(
      core: core, listeners: listeners, control: control, proxy: proxy, router: router,
      authority: authority,
      housekeeping: Task { await housekeeping.run() }, addresses: known)
  }

  /// Closes everything and saves the state. Does nothing when it is not running.
  package func stop() async {
    let running = running.withLock { running in
      defer { running = nil }
      return running
    }
    guard let running else { return }
    await running.control.stop()
    await running.proxy?.stop()
    await running.listeners.stop()
    running.housekeeping.cancel()
    await running.housekeeping.value
  }

  // MARK: For callers in the same process

  /// Calls the control API without a socket; not for event streams.
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
  /// clients which trust the emulator's authority also trust.
  package func issueForLocalhost(at now: Date) throws -> CertificateIdentity {
    guard let authority = running.withLock({ $0?.authority }) else { throw Self.notRunning }
    return try authority.issueForLocalhost(at: now)
  }

  /// A push that was shown on a virtual device.
  package struct ShownPush: Sendable {
    /// The push's `apns-id`: a repeat of the same push carries the same.
    package let id: String
    package let payload: [UInt8]
  }

  /// The pushes shown on a device that its history still contains, oldest first
  /// (``EmulatorOptions/eventsPerDevice``, ``EmulatorOptions/historyBytes``).
  package func pushes(shownOn device: VirtualDevice) throws -> [ShownPush] {
    try core().withState { state in
      let index = try state.deviceIndex(device.deviceID)
      let limit = state.devices.limits.eventsPerDevice
      return state.devices.events(of: index, after: 0, limit: limit).compactMap { event in
        guard case .notification(let delivery) = event.body else { return nil }
        return ShownPush(
          id: delivery.notification.id.text, payload: delivery.notification.payload)
      }
    }
  }

  /// Number of requests that the services have received since the start, with or without a reply.
  package func requestCount() throws -> Int { try core().withState { $0.statistics.requests } }

  func core() throws -> EmulatorCore {
    guard let core = running.withLock({ $0?.core }) else { throw Self.notRunning }
    return core
  }

  /// Runs a body from a service's own folder for callers in this process, because the control API
  /// shows private keys only once.
  func with<Service: StandIn, Result: Sendable>(
    _ type: Service.Type, _ body: (Service, inout EmulatorState) throws -> Result
  ) throws -> Result {
    try core().withState { state in
      guard let service = state[type.service] as? Service else { throw Self.notRunning }
      return try body(service, &state)
    }
  }

  private static var notRunning: EmulatorError {
    .file(path: "emulator", reason: "is not running; start it first")
  }
}

/// Background work while the emulator runs: due expirations, idle connections, faults that begin or
/// end, and the state file.
struct Housekeeping: Sendable {
  let core: EmulatorCore
  let listeners: ServiceListeners
  let stateFile: StateFile?
  /// The state's revision that the file holds at the start.
  let savedRevision: Int
  let onProblem: @Sendable (EmulatorError) -> Void

  /// Pauses between two checks of the clock: stored messages must be delivered within a second of
  /// their time. The second one applies while there are no requests.
  private static let intervals = (
    busy: Duration.milliseconds(100), quiet: Duration.milliseconds(900)
  )

  /// Runs until it is cancelled, then saves once more.
  func run() async {
    var savedRevision = savedRevision
    var round = 0
    var seen = (requests: 0, revision: 0)
    var isQuiet = false
    while !Task.isCancelled {
      try? await Task.sleep(for: isQuiet ? Self.intervals.quiet : Self.intervals.busy)
      let now = core.withState { state in
        state.settleDue()
        return (requests: state.lastRequest, revision: state.revision)
      }
      isQuiet = now == seen
      seen = now
      listeners.refresh()
      round += isQuiet ? 5 - round % 5 : 1
      // Changes come in bursts: at most one save in half a second.
      guard round % 5 == 0, let (snapshot, revision) = snapshot(since: savedRevision) else {
        continue
      }
      // A failure is not retried until something changes: a full disk would be reported forever.
      savedRevision = revision
      save(snapshot)
    }
    if let (snapshot, _) = snapshot(since: nil) { save(snapshot) }
  }

  /// - Parameter revision: Nothing needs saving if the state is still at this revision.
  private func snapshot(since revision: Int?) -> (Snapshot, revision: Int)? {
    guard stateFile != nil else { return nil }
    return core.withState { $0.revision == revision ? nil : (Snapshot($0), $0.revision) }
  }

  private func save(_ snapshot: Snapshot) {
    do throws(EmulatorError) {
      try stateFile?.save(snapshot)
    } catch {
      onProblem(error)
    }
  }
}
