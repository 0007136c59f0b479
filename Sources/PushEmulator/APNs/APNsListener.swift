import Dispatch
import HTTP2
import Synchronization

/// One APNs address: takes requests from the HTTP/2 server, asks the state what to answer, and does
/// it. The state's lock is held for a few microseconds, never over input or output.
final class APNsListener: HTTP2ServerHandler {
  private let core: EmulatorCore
  private let environment: APNsEnvironment
  private let interface: APNsInterface
  /// By slot of the state's connection table.
  private let connections = Mutex<[Int: HTTP2ServerConnection]>([:])
  private let delays = DispatchQueue(label: "emulator.apns.delays")

  init(core: EmulatorCore, environment: APNsEnvironment, interface: APNsInterface) {
    self.core = core
    self.environment = environment
    self.interface = interface
  }

  /// What the emulator keeps with a connection of the server.
  private final class Context: Sendable {
    let slot: Int
    init(slot: Int) { self.slot = slot }
  }

  // MARK: Connections

  func connectionAccepted(id: UInt64) -> HTTP2AcceptDecision {
    switch core.withState({ $0.acceptFault(.apns) }) {
    case .reset: return .reset
    case .close: return .close
    case .stall: return .stall
    case .tlsAlert(let alert): return .alert(alert)
    default: return .proceed
    }
  }

  func connectionOpened(_ connection: HTTP2ServerConnection) {
    let certificate = connection.peerCertificate.map {
      ClientCertificate(der: $0.der, isVerified: $0.isVerified)
    }
    let (slot, streams) = core.withState { state in
      let memory = APNsConnectionState(
        environment: environment, interface: interface, certificate: certificate)
      let slot = state.connections.open(.apns, apns: memory, now: state.clock.now)
      return (slot, state.settings.apns.maxStreams)
    }
    connection.attachment.withLock { $0 = Context(slot: slot) }
    connections.withLock { $0[slot] = connection }
    if certificate != nil { connection.updateSettings(maxConcurrentStreams: streams) }
  }

  func connectionClosed(_ connection: HTTP2ServerConnection) {
    guard let slot = slot(of: connection) else { return }
    connections.withLock { $0[slot] = nil }
    core.withState { $0.connections.close(slot) }
  }

  private func slot(of connection: HTTP2ServerConnection) -> Int? {
    connection.attachment.withLock { $0 as? Context }?.slot
  }

  /// Streams open now, by slot.
  var openStreams: [Int: Int] { connections.withLock { $0.mapValues(\.openStreams) } }

  /// Tells connections that had no request for too long to go.
  func dismiss(_ idle: [EmulatorState.IdleConnection]) {
    let open = connections.withLock { $0 }
    for item in idle {
      guard let connection = open[item.slot] else { continue }
      connection.goAway(
        lastStreamID: item.lastStream, code: HTTP2ErrorCode.noError,
        debugData: EmulatorState.body(APNsReason.idleTimeout.rawValue))
      connection.close()
    }
  }

  // MARK: Requests

  func receivedHeaders(_ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection) {
    guard let slot = slot(of: connection) else { return }
    let outcome = core.withState { state -> ServiceOutcome? in
      guard state.faults.concerns(.headers) else { return nil }
      return state.headerFault(request, slot: slot, stream: request.stream)
    }
    if let outcome { perform(outcome, stream: request.stream, on: connection) }
  }

  func received(_ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection) {
    guard let slot = slot(of: connection) else { return }
    let arrival = ServiceArrival(
      slot: slot, stream: request.stream, openStreams: connection.openStreams,
      startedAt: ContinuousClock.now)
    // A request without a body was not shown when its header block came.
    let moments: [FaultAction.Moment] =
      request.body.isEmpty ? [.headers, .body, .reply] : [.body, .reply]
    let outcome = core.withState { $0.exchange(request, arrival, moments: moments) }
    if outcome.latency > 0 {
      delays.asyncAfter(deadline: .now() + outcome.latency / 1000) {
        self.perform(outcome, stream: request.stream, on: connection)
      }
    } else {
      perform(outcome, stream: request.stream, on: connection)
    }
  }

  private func perform(
    _ outcome: ServiceOutcome, stream: Int32, on connection: HTTP2ServerConnection
  ) {
    if let response = outcome.response { connection.respond(response, to: stream) }
    if let streams = outcome.streams { connection.updateSettings(maxConcurrentStreams: streams) }
    if outcome.isPenalized { penalize(connection, lastStream: outcome.lastStream) }
    outcome.performEffect(on: connection, stream: stream, delays: delays)
  }

  /// What APNs does with a sender of very many bad tokens (emulator.md, section 4.1).
  private func penalize(_ connection: HTTP2ServerConnection, lastStream: Int32) {
    let streams = core.withState { $0.settings.apns.maxStreams }
    connection.updateSettings(maxConcurrentStreams: max(1, streams / 10))
    connection.goAway(
      lastStreamID: lastStream, code: HTTP2ErrorCode.noError,
      debugData: EmulatorState.body(APNsReason.badDeviceToken.rawValue))
  }
}
