import Cryptography
import Dispatch
import HTTP2
import Synchronization

/// A push service's address for HTTP/2: takes requests from the server, asks the state what to
/// answer, and does it.
final class HTTP2ServiceListener<Service: StandIn>: ServiceListener {
  private let handler: Handler
  private let server: HTTP2Server

  init(
    _ service: Service, core: EmulatorCore, _ endpoint: ServiceEndpoint,
    identity: CertificateIdentity
  ) throws {
    handler = Handler(service: service, core: core)
    var configuration = HTTP2ServerConfiguration(
      host: endpoint.host, port: endpoint.port,
      certificatePEM: Array(identity.certificatePEM.utf8),
      keyPEM: Array(try identity.privateKeyPEM().utf8))
    configuration.clientCertificates = .ignored
    configuration.idleTimeout = nil
    server = try HTTP2Server(configuration, handler: handler)
  }

  var port: UInt16 { server.port }
  var openStreams: [Int: Int] { handler.openStreams }

  func setRefusing(_ refuses: Bool) throws {
    if refuses { server.stopListening() } else { try server.resumeListening() }
  }

  func stop() async { await server.stop() }

  /// What the server's loops call.
  private final class Handler: HTTP2ServerHandler {
    private let service: Service
    private let core: EmulatorCore
    /// By slot of the state's connection table.
    private let connections = Mutex<[Int: HTTP2ServerConnection]>([:])
    private let delays = DispatchQueue(label: "emulator.delays")

    init(service: Service, core: EmulatorCore) {
      self.service = service
      self.core = core
    }

    /// What the emulator keeps with a connection of the server.
    private final class Context: Sendable {
      let slot: Int
      init(slot: Int) { self.slot = slot }
    }

    var openStreams: [Int: Int] { connections.withLock { $0.mapValues(\.openStreams) } }

    func connectionAccepted(id: UInt64) -> HTTP2AcceptDecision {
      switch core.withState({ $0.acceptFault(service.service) }) {
      case .reset: .reset
      case .close: .close
      case .stall: .stall
      case .tlsAlert(let alert): .alert(alert)
      default: .proceed
      }
    }

    func connectionOpened(_ connection: HTTP2ServerConnection) {
      let slot = core.withState { $0.connections.open(service.service, now: $0.clock.now) }
      connection.attachment.withLock { $0 = Context(slot: slot) }
      connections.withLock { $0[slot] = connection }
    }

    func connectionClosed(_ connection: HTTP2ServerConnection) {
      guard let slot = slot(of: connection) else { return }
      connections.withLock { $0[slot] = nil }
      core.withState { $0.connections.close(slot) }
    }

    private func slot(of connection: HTTP2ServerConnection) -> Int? {
      connection.attachment.withLock { $0 as? Context }?.slot
    }

    func receivedHeaders(_ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection) {
      guard let slot = slot(of: connection) else { return }
      let arrival = ServiceArrival(
        slot: slot, stream: request.stream, openStreams: connection.openStreams,
        startedAt: .now)
      let outcome = core.withState { state -> ServiceOutcome? in
        guard state.faults.concerns(.headers) else { return nil }
        return state.headerFault(request, by: service, arrival)
      }
      if let outcome { perform(outcome, stream: request.stream, on: connection) }
    }

    func received(_ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection) {
      guard let slot = slot(of: connection) else { return }
      let arrival = ServiceArrival(
        slot: slot, stream: request.stream, openStreams: connection.openStreams,
        startedAt: .now)
      // A request without a body was not shown when its header block came.
      let moments: [FaultAction.Moment] =
        request.body.isEmpty ? [.headers, .body, .reply] : [.body, .reply]
      let reading = service.read(request)
      let outcome = core.withState {
        $0.exchange(request, reading, by: service, arrival, moments: moments)
      }
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
      outcome.performEffect(on: connection, stream: stream, delays: delays)
    }
  }
}

extension EmulatorState {
  /// What a fault does to a connection that was just accepted.
  mutating func acceptFault(_ service: PushService) -> FaultAction? {
    guard faults.concerns(.accept) else { return nil }
    var subject = FaultSubject(connection: connections.nextNumber)
    subject.service = FaultRule.Service(service)
    return faults.decide(subject, at: [.accept], now: clock.now, generator: &generator)
      .fault?.action
  }
}

extension ServiceOutcome {
  /// Does to the stream or the connection what a fault wants.
  func performEffect(
    on connection: HTTP2ServerConnection, stream: Int32, delays: DispatchQueue
  ) {
    switch effect {
    case .resetStream(let code): connection.reset(stream, code: code)
    case .settings(let streams, let window):
      connection.updateSettings(maxConcurrentStreams: streams, initialWindowSize: window)
    case .goAway(let goAway):
      connection.goAway(
        lastStreamID: lastStream, code: goAway.code,
        debugData: goAway.reason.map { EmulatorState.body($0) } ?? [])
      delays.asyncAfter(deadline: .now() + .milliseconds(goAway.graceMilliseconds)) {
        connection.close()
      }
    case .reset: connection.abort()
    case .close: connection.close()
    case .stall: connection.stall()
    default: break
    }
  }
}
