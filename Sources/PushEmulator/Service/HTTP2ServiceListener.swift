import Dispatch
import HTTP2
import Synchronization
import Wire

/// A push service's address for HTTP/2: receives requests from the server, gets the reply from the
/// state, and sends it. The state's lock is held for a few microseconds, never during I/O.
final class HTTP2ServiceListener<Service: StandIn>: ServiceListener {
  private let handler: Handler
  private let server: HTTP2Server

  init(
    _ service: Service, at listener: EmulatorListener, core: EmulatorCore,
    _ configuration: HTTP2ServerConfiguration
  ) throws {
    handler = Handler(service: service, listener: listener, core: core)
    server = try HTTP2Server(configuration, handler: handler)
  }

  var port: UInt16 { server.port }

  var openStreams: [Int: Int] {
    handler.connections.withLock { $0.mapValues(\.openStreams) }
  }

  func setRefusing(_ refuses: Bool) throws {
    if refuses { server.stopListening() } else { try server.resumeListening() }
  }

  func dismiss(_ idle: [IdleConnection]) {
    let open = handler.connections.withLock { $0 }
    for item in idle {
      guard let connection = open[item.slot] else { continue }
      connection.goAway(
        lastStreamID: item.lastStream, code: HTTP2ErrorCode.noError,
        debugData: reasonBody("IdleTimeout"))
      connection.close()
    }
  }

  func stop() async { await server.stop() }

  /// The handler that the server's event loops call.
  private final class Handler: HTTP2ServerHandler {
    private let service: Service
    private let listener: EmulatorListener
    private let core: EmulatorCore
    /// By slot of the state's connection table.
    let connections = Mutex<[Int: HTTP2ServerConnection]>([:])
    private let delays = DispatchQueue(label: "emulator.delays")

    init(service: Service, listener: EmulatorListener, core: EmulatorCore) {
      self.service = service
      self.listener = listener
      self.core = core
    }

    /// The emulator's data for a connection of the server.
    private final class Context: Sendable {
      let slot: Int
      init(slot: Int) { self.slot = slot }
    }

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
      let (slot, streams) = core.withState { state in
        let slot = state.connections.open(service.service, isHTTP2: true, now: state.clock.now)
        let streams = service.connectionOpened(
          slot, at: listener, certificate: connection.peerCertificate, in: &state)
        return (slot, streams)
      }
      connection.attachment.withLock { $0 = Context(slot: slot) }
      connections.withLock { $0[slot] = connection }
      if let streams { connection.updateSettings(maxConcurrentStreams: streams) }
    }

    func connectionClosed(_ connection: HTTP2ServerConnection) {
      guard let slot = slot(of: connection) else { return }
      connections.withLock { $0[slot] = nil }
      core.withState { state in
        service.connectionClosed(slot, in: &state)
        state.connections.close(slot)
      }
    }

    private func slot(of connection: HTTP2ServerConnection) -> Int? {
      connection.attachment.withLock { $0 as? Context }?.slot
    }

    func receivedHeaders(
      _ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection
    ) -> String? {
      guard let slot = slot(of: connection) else { return nil }
      let arrival = ServiceArrival(
        slot: slot, stream: request.stream, openStreams: connection.openStreams)
      let outcome = core.headerFault(request, at: service, arrival)
      if let outcome { perform(outcome, stream: request.stream, on: connection) }
      return nil
    }

    func received(_ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection) {
      guard let slot = slot(of: connection) else { return }
      let arrival = ServiceArrival(
        slot: slot, stream: request.stream, openStreams: connection.openStreams)
      // The faults of a request without a body were not checked when its header block came.
      let moments: [FaultAction.Moment] =
        request.body.isEmpty ? FaultAction.Moment.ofWholeRequest : FaultAction.Moment.afterHeaders
      let outcome = core.exchange(request, at: service, arrival, moments: moments)
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
      if let reason = outcome.dismissal {
        connection.goAway(
          lastStreamID: outcome.lastStream, code: HTTP2ErrorCode.noError,
          debugData: reasonBody(reason))
      }
      switch outcome.effect {
      case .resetStream(let code): connection.reset(stream, code: code)
      case .settings(let streams, let window):
        connection.updateSettings(maxConcurrentStreams: streams, initialWindowSize: window)
      case .goAway(let goAway):
        connection.goAway(
          lastStreamID: outcome.lastStream, code: goAway.code,
          debugData: goAway.reason.map { reasonBody($0) } ?? [])
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
}

/// The reason in APNs' GOAWAY, in the form of a refusal.
private func reasonBody(_ reason: String) -> [UInt8] {
  (["reason": .string(reason)] as JSONValue).jsonBytes
}
