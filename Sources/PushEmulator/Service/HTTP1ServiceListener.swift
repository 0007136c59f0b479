import Cryptography
import Foundation
import HTTP2
import HTTPServer
import Synchronization

/// A push service's address for HTTP/1.1, over TLS or plain, with the same rules as over HTTP/2.
///
/// Faults without an equivalent in HTTP/1.1 are approximated: GOAWAY closes the connection after
/// the reply, a stream reset closes it without one, SETTINGS has no effect. A connection cannot be
/// stalled, or rejected by an alert, before its first request.
final class HTTP1ServiceListener<Service: StandIn>: ServiceListener {
  private let handler: HTTP1ServiceHandler<Service>
  private let configuration: HTTPConfiguration
  private let listener: Mutex<HTTPListener?>
  let port: UInt16

  /// - Parameter identity: `nil` for plain HTTP.
  init(
    _ service: Service, core: EmulatorCore, host: String, port: UInt16,
    identity: CertificateIdentity?
  ) throws {
    handler = HTTP1ServiceHandler(service: service, core: core)
    var configuration = HTTPConfiguration()
    configuration.host = host
    configuration.port = port
    if let identity {
      configuration.tls = TLSIdentity(
        certificatePEM: identity.certificatePEM, privateKeyPEM: try identity.privateKeyPEM())
    }
    configuration.offersHTTP2 = false
    configuration.maxBodyBytes = Service.maxBody
    configuration.maxConnections = 10_000
    configuration.idleTimeout = .seconds(3600)
    configuration.observer = handler
    let listener = try HTTPListener(configuration, handler: handler)
    self.port = listener.port
    configuration.port = listener.port
    self.configuration = configuration
    self.listener = Mutex(listener)
  }

  var openStreams: [Int: Int] { handler.openStreams }

  func setRefusing(_ refuses: Bool) throws {
    try listener.withLock { listener in
      if refuses {
        guard let open = listener else { return }
        listener = nil
        Task { await open.stop(within: .zero) }
      } else if listener == nil {
        listener = try HTTPListener(configuration, handler: handler)
      }
    }
  }

  /// Does nothing: HTTP/1.1 has no equivalent of GOAWAY.
  func dismiss(_ idle: [IdleConnection]) {}

  func stop() async {
    handler.endStalls()
    let open = listener.withLock { listener in
      defer { listener = nil }
      return listener
    }
    await open?.stop(within: .zero)
  }
}

/// The handler that the HTTP server calls.
final class HTTP1ServiceHandler<Service: StandIn>: HTTPHandler, HTTPConnectionObserver {
  private let service: Service
  private let core: EmulatorCore
  private let open = Mutex<[UInt64: Connection]>([:])
  private let stalls = StallGate()

  private struct Connection {
    /// The slot in the state's connection table.
    let slot: Int
    var requests: Int32 = 0
    var isBusy = false
  }

  init(service: Service, core: EmulatorCore) {
    self.service = service
    self.core = core
  }

  var openStreams: [Int: Int] {
    open.withLock { open in
      Dictionary(uniqueKeysWithValues: open.values.map { ($0.slot, $0.isBusy ? 1 : 0) })
    }
  }

  func endStalls() { stalls.open() }

  // MARK: Connections

  func connectionOpened(_ number: UInt64) -> HTTPCut? {
    let (slot, fault) = core.withState { state in
      let fault = state.acceptFault(service.service)
      return (
        state.connections.open(service.service, isHTTP2: false, now: state.clock.now), fault
      )
    }
    open.withLock { $0[number] = Connection(slot: slot) }
    switch fault {
    case .reset: return .reset
    case .close, .stall, .tlsAlert: return .close
    default: return nil
    }
  }

  func connectionClosed(_ number: UInt64) {
    guard let slot = open.withLock({ $0.removeValue(forKey: number)?.slot }) else { return }
    core.withState { $0.connections.close(slot) }
  }

  // MARK: Requests

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    await answer(request, excess: nil)
  }

  func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    guard status == .contentTooLarge || status == .headerFieldsTooLarge else {
      return HTTPResponse(status)
    }
    let excess: HTTP2ServerRequest.Excess = status == .contentTooLarge ? .body : .header
    guard let (outcome, _) = exchange(request, excess: excess), let response = outcome.response
    else { return HTTPResponse(status) }
    return Self.response(response, closes: true)
  }

  private func answer(
    _ request: HTTPRequest, excess: HTTP2ServerRequest.Excess?
  ) async -> HTTPResponse {
    guard let (outcome, number) = exchange(request, excess: excess) else {
      return HTTPResponse(.badRequest, body: .cut(.close))
    }
    defer { open.withLock { $0[number]?.isBusy = false } }
    if outcome.latency > 0 {
      try? await Task.sleep(for: .microseconds(Int64(outcome.latency * 1000)))
    }
    switch outcome.effect {
    case .reset: return HTTPResponse(.ok, body: .cut(.reset))
    case .close, .resetStream: return HTTPResponse(.ok, body: .cut(.close))
    case .stall:
      await stalls.wait()
      return HTTPResponse(.ok, body: .cut(.close))
    default:
      guard let response = outcome.response else { return HTTPResponse(.ok, body: .cut(.close)) }
      if case .goAway = outcome.effect { return Self.response(response, closes: true) }
      return Self.response(response, closes: false)
    }
  }

  private func exchange(
    _ request: HTTPRequest, excess: HTTP2ServerRequest.Excess?
  ) -> (ServiceOutcome, connection: UInt64)? {
    let place = open.withLock { open -> (slot: Int, stream: Int32)? in
      guard var connection = open[request.connection] else { return nil }
      connection.requests += 1
      connection.isBusy = true
      open[request.connection] = connection
      return (connection.slot, connection.requests * 2 - 1)
    }
    guard let place else { return nil }
    let raw = Self.request(request, stream: place.stream, excess: excess)
    let arrival = ServiceArrival(slot: place.slot, stream: place.stream, openStreams: 1)
    let outcome = core.exchange(
      raw, at: service, arrival, moments: FaultAction.Moment.ofWholeRequest)
    return (outcome, request.connection)
  }

  /// Converts a request to the form of HTTP/2.
  private static func request(
    _ request: HTTPRequest, stream: Int32, excess: HTTP2ServerRequest.Excess?
  ) -> HTTP2ServerRequest {
    var fields = HTTP2FieldList()
    var authority = ""
    for (name, value) in request.headers {
      let name = name.lowercased()
      if name == "host" { authority = value } else { fields.append(name, value) }
    }
    return HTTP2ServerRequest(
      stream: stream,
      pseudoFields: HTTP2FieldList([
        (":method", request.method.rawValue), (":path", request.target.description),
        (":authority", authority), (":scheme", request.isSecure ? "https" : "http"),
      ]), fields: fields, body: request.body, excess: excess)
  }

  private static func response(_ answer: HTTP2ServerResponse, closes: Bool) -> HTTPResponse {
    var headers = HTTPHeaders()
    for field in answer.fields.pairs { headers.add(field.name, field.value) }
    if closes { headers.add("Connection", "close") }
    let status = HTTPStatus(rawValue: answer.status)
    guard let count = answer.truncatedBody, count < answer.body.count else {
      return HTTPResponse(status, headers: headers, body: .bytes(answer.body))
    }
    let part = Array(answer.body.prefix(count))
    return HTTPResponse(
      status, headers: headers,
      body: .stream { writer in
        if !part.isEmpty { try await writer.write(part) }
        throw Truncation()
      })
  }

  private struct Truncation: Error {}
}

/// Blocks stalled requests until the emulator stops.
final class StallGate: Sendable {
  private struct State {
    var isOpen = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}
