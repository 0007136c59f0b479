import HTTP2
import Synchronization

/// Serves the connections of HTTP/2 clients: the requests of their streams go to the engine's
/// handler, under the same limits as those of HTTP/1.1.
final class HTTP2Front: Sendable {
  private let server: HTTP2Server
  private let handler = Handler()
  private let host: String
  private let port: UInt16

  /// Fails without a certificate.
  init?(_ configuration: HTTPConfiguration, _ socket: ListeningSocket) throws(HTTPListenerError) {
    guard let identity = configuration.tls else { return nil }
    (host, port) = (socket.host, socket.port)
    var settings = HTTP2ServerConfiguration(
      host: nil, port: 0, certificatePEM: Array(identity.certificatePEM.utf8),
      keyPEM: Array(identity.privateKeyPEM.utf8))
    settings.clientCertificates = .ignored
    settings.threads = max(2, configuration.threads)
    settings.maxConcurrentStreams = configuration.maxStreams
    // More than the limit, which counts 32 bytes less per field, so that the handler gets to word
    // the refusal.
    settings.maxHeader = configuration.maxHeaderBytes + 4096
    settings.maxBody = configuration.maxBodyBytes
    settings.maxDiscarded = configuration.maxBodyBytes + configuration.maxDiscardedBytes
    settings.maxHeldBodies = max(4 * configuration.maxBodyBytes, 4 << 20)
    settings.bodyBudget = configuration.bodyBudget
    // The engine monitors its connections from the first byte on.
    settings.handshakeTimeout = configuration.requestReadTimeout
    settings.requestTimeout = configuration.requestReadTimeout
    settings.replyTimeout = configuration.responseWriteTimeout
    settings.idleTimeout = nil
    settings.monotonicClock = configuration.clock.now
    do throws(HTTP2ServerError) {
      server = try HTTP2Server(settings, handler: handler)
    } catch {
      throw Self.refusal(error, host: host, port: port)
    }
  }

  private static func refusal(
    _ error: HTTP2ServerError, host: String, port: UInt16
  ) -> HTTPListenerError {
    error.kind == .certificate
      ? .certificateRefused(host: host, port: port)
      : .system(host: host, port: port, reason: error.description)
  }

  func serve(_ connection: Connection) {
    handler.connections.withLock { $0[connection.number] = connection }
    server.adopt(connection.socket, peer: connection.address, id: connection.number)
  }

  /// Whether no connection is open.
  var isEmpty: Bool { handler.connections.withLock { $0.isEmpty } }

  func replaceIdentity(_ identity: TLSIdentity) throws(HTTPListenerError) {
    do throws(HTTP2ServerError) {
      try server.replaceIdentity(
        certificatePEM: Array(identity.certificatePEM.utf8),
        keyPEM: Array(identity.privateKeyPEM.utf8))
    } catch {
      throw Self.refusal(error, host: host, port: port)
    }
  }

  /// Accepts no new requests on a connection, ends its streamed replies, and lets the others
  /// finish.
  func drain(_ connection: Connection) {
    connection.link?.shutDown()
    for stream in connection.streams { stream.stopStreaming() }
  }

  /// Ends everything on a connection that has exceeded its time limits.
  func watch(_ connection: Connection, at now: UInt64) {
    guard let link = connection.link else { return }
    var isOver = false
    for stream in connection.streams where stream.watch(at: now) { isOver = true }
    if connection.deadline.load(ordering: .relaxed) <= now {
      if connection.isLeaving.exchange(true, ordering: .relaxed) {
        isOver = true
      } else {
        link.shutDown()
        connection.deadline.store(now + StreamExchange.grace, ordering: .relaxed)
      }
    }
    if isOver { connection.engine.connections.cut(connection) }
  }

  func stop() async { await server.stop() }

  // MARK: Callbacks of the server's loops

  private final class Handler: HTTP2ServerHandler {
    let connections = Mutex<[UInt64: Connection]>([:])

    private func connection(of link: HTTP2ServerConnection) -> Connection? {
      link.attachment.withLock { $0 as? Connection }
    }

    func connectionOpened(_ link: HTTP2ServerConnection) {
      guard let connection = connections.withLock({ $0[link.id] }) else { return }
      let engine = connection.engine
      link.attachment.withLock { $0 = connection }
      connection.link = link
      connection.idle(until: engine.idleDeadline, since: engine.now.load(ordering: .relaxed))
      // `stop` checks the connections after setting the phase, so one of the two sees the other.
      if engine.phase.load(ordering: .sequentiallyConsistent) != .running { link.shutDown() }
    }

    func receivedHeaders(
      _ request: HTTP2ServerRequest, on link: HTTP2ServerConnection
    ) -> String? {
      guard let connection = connection(of: link) else { return nil }
      let exchange = begin(request, connection, link)
      let engine = connection.engine
      if let refusal = exchange.readHead(of: request) {
        exchange.answer(engine.handler.reject(refusal, request: exchange.takeRequest()))
        return nil
      }
      switch engine.handler.look(atHead: exchange.takeRequest()) {
      case .refused(let refusal):
        exchange.answer(refusal)
        return nil
      case .passed(let sender):
        if exchange.expectsContinue { link.sendContinue(to: request.stream) }
        return sender
      }
    }

    func received(_ request: HTTP2ServerRequest, on link: HTTP2ServerConnection) {
      guard let connection = connection(of: link) else { return }
      let engine = connection.engine
      var refusal: HTTPStatus?
      let exchange: StreamExchange
      if let begun = connection.stream(request.stream) {
        exchange = begun
      } else {
        exchange = begin(request, connection, link)
        refusal = exchange.readHead(of: request)
      }
      switch request.excess {
      case .header: refusal = .headerFieldsTooLarge
      case .body: refusal = .contentTooLarge
      case nil: break
      }
      if let refusal {
        exchange.answer(engine.handler.reject(refusal, request: exchange.takeRequest()))
        return
      }
      connection.serving.add(1, ordering: .relaxed)
      exchange.isComplete(body: request.body)
      engine.submit(exchange.takeRequest(), of: exchange)
    }

    private func begin(
      _ request: HTTP2ServerRequest, _ connection: Connection, _ link: HTTP2ServerConnection
    ) -> StreamExchange {
      let engine = connection.engine
      let exchange = StreamExchange(
        request.stream, connection, link,
        until: engine.deadline(engine.configuration.requestReadTimeout))
      connection.addStream(exchange)
      connection.deadline.store(.max, ordering: .relaxed)
      engine.activeRequests.add(1, ordering: .sequentiallyConsistent)
      return exchange
    }

    func streamClosed(_ stream: Int32, code: UInt32, on link: HTTP2ServerConnection) {
      guard let connection = connection(of: link),
        let (exchange, isLast) = connection.removeStream(stream)
      else { return }
      let engine = connection.engine
      if exchange.end() {
        connection.serving.subtract(1, ordering: .relaxed)
        _ = engine.withdraw(exchange)
      }
      if isLast {
        connection.idle(until: engine.idleDeadline, since: engine.now.load(ordering: .relaxed))
      }
      let active = engine.activeRequests.subtract(1, ordering: .sequentiallyConsistent).newValue
      if active == 0, engine.phase.load(ordering: .sequentiallyConsistent) != .running {
        engine.endDrainIfDone()
      }
    }

    func socketClosed(id: UInt64) {
      let (closed, isLast) = connections.withLock { connections in
        (connections.removeValue(forKey: id), connections.isEmpty)
      }
      guard let closed else { return }
      closed.link = nil
      closed.engine.forget(closed)
      if isLast, closed.engine.phase.load(ordering: .sequentiallyConsistent) != .running {
        closed.engine.endDrainIfDone()
      }
    }
  }
}
