import Cryptography
import HTTP2
package import HTTPServer
import Synchronization

/// The protocols that a client may speak with a listener; tests of routes run over each.
package enum Wire: String, CaseIterable, Sendable {
  case http1
  case https1
  case http2

  package var isSecure: Bool { self != .http1 }
}

/// A listener on a free port of this machine and a client for one of its protocols.
package final class WireServer: Sendable {
  package let wire: Wire
  package let listener: HTTPListener
  private let authorityPEM: String
  private let connection: HTTP2Connection?

  /// - Parameter configuration: Without certificate, which this makes.
  package init(
    _ wire: Wire, _ configuration: HTTPConfiguration = HTTPConfiguration(),
    handler: any HTTPHandler
  ) throws {
    self.wire = wire
    var configuration = configuration
    if wire.isSecure {
      let made = try TestIdentity.shared.get()
      authorityPEM = made.authorityPEM
      configuration.tls = made.tls
    } else {
      authorityPEM = ""
    }
    listener = try HTTPListener(configuration, handler: handler)
    guard wire == .http2 else {
      connection = nil
      return
    }
    var client = HTTP2ConnectionConfiguration(host: "127.0.0.1", port: listener.port)
    client.extraAnchorsPEM = Array(authorityPEM.utf8)
    client.connectTimeout = .seconds(240)
    client.replyTimeout = .seconds(240)
    client.batchTimeout = .seconds(240)
    client.maxReplyBody = 16 << 20
    connection = HTTP2Connection(client)
  }

  package var port: UInt16 { listener.port }
  /// `http://127.0.0.1:1234`.
  package var base: String { "\(wire.isSecure ? "https" : "http")://\(host)" }
  package var host: String { "127.0.0.1:\(port)" }

  package func stop() async {
    connection?.close()
    await listener.stop()
  }

  /// Ends the HTTP/2 client, which connects at the start.
  package func closeClient() { connection?.close() }

  /// A client that sends bytes of its own making: one of HTTP/1.1, or of TLS that offers `h2`.
  package func rawClient(receiveBuffer: Int32? = nil) throws -> RawClient {
    try RawClient(
      port: port, receiveBuffer: receiveBuffer, trusting: wire.isSecure ? authorityPEM : nil,
      offering: wire == .http2 ? ["h2"] : [])
  }

  /// The replies' headers that are seen over HTTP/2, whose client has to name them.
  private static let replyHeaders = [
    "content-type", "content-length", "location", "content-location", "etag", "date", "trackingid",
    "x-ms-continuationtoken", "x-ms-correlation-request-id", "www-authenticate", "retry-after",
    "cache-control", "allow", "x-test", "server", "access-control-allow-origin",
  ]

  /// Sends a request and waits for its reply.
  package func exchange(
    _ method: String, _ target: String, headers: [(name: String, value: String)] = [],
    body: String = ""
  ) async throws -> RawReply {
    guard let connection else {
      let host = host
      var head = "\(method) \(target) HTTP/1.1\r\n"
      if !headers.contains(where: { $0.name.lowercased() == "host" }) {
        head += "Host: \(host)\r\n"
      }
      for (name, value) in headers { head += "\(name): \(value)\r\n" }
      if !body.isEmpty { head += "Content-Length: \(body.utf8.count)\r\n" }
      let request = head + "\r\n" + body
      return try await onThread { [self] in
        let client = try rawClient()
        try client.send(request)
        return try client.readReply(toHead: method == "HEAD")
      }
    }
    let authority = headers.first { $0.name.lowercased() == "host" }?.value ?? host
    var batch = HTTP2RequestBatch(
      method: method, authority: authority, replyHeaders: Self.replyHeaders,
      keepsSuccessBodies: true)
    let fields = batch.addFieldSet(
      headers.filter { $0.name.lowercased() != "host" }
        .map { HTTP2Field($0.name.lowercased(), $0.value) })
    let path = batch.write(target)
    batch.addRequest(path: path, fields: fields, body: body.isEmpty ? .empty : batch.write(body))
    let replies = await connection.send(batch)
    if let failure = replies.replies[0].failure { throw RawClient.Failure(reason: "\(failure)") }
    var reply = RawReply()
    reply.status = Int(replies.replies[0].status)
    for (index, name) in Self.replyHeaders.enumerated() {
      reply.headers[name] = replies.value(ofHeader: index, in: 0)
    }
    reply.body = String(decoding: replies.body(of: 0), as: UTF8.self)
    return reply
  }
}

/// One certificate for `localhost` and 127.0.0.1, made once.
package struct TestIdentity: Sendable {
  package let tls: TLSIdentity
  package let authorityPEM: String

  /// The server's certificate, DER.
  package let certificate: [UInt8]

  package static let shared = Result { try TestIdentity() }

  package static func another() throws -> TestIdentity { try TestIdentity() }

  private init() throws {
    let authority = try CertificateAuthority(commonName: "Test")
    let made = try authority.issueForLocalhost()
    tls = TLSIdentity(
      certificatePEM: made.certificatePEM, privateKeyPEM: try made.privateKeyPEM())
    authorityPEM = authority.certificate.pem
    certificate = made.certificate.der
  }
}

/// Frames of HTTP/2 by hand, for clients that behave badly.
package struct RawHTTP2 {
  package struct Frame: Sendable {
    package var type: UInt8
    package var flags: UInt8
    package var stream: UInt32
    package var payload: [UInt8]
  }

  package enum Kind {
    package static let data: UInt8 = 0
    package static let headers: UInt8 = 1
    package static let reset: UInt8 = 3
    package static let settings: UInt8 = 4
    package static let goAway: UInt8 = 7
    package static let windowUpdate: UInt8 = 8
  }

  /// Flags of DATA and HEADERS.
  package static let endStream: UInt8 = 1
  package static let endHeaders: UInt8 = 4

  package let client: RawClient

  /// Greets the server.
  ///
  /// - Parameter window: Bytes that the server may send on a stream.
  package init(_ client: RawClient, window: UInt32 = 65_535) throws {
    self.client = client
    try client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    try send(Kind.settings, payload: [UInt8]([0, 4]) + Self.bytes(window))
  }

  package static func bytes(_ number: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
  }

  package func send(
    _ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, payload: [UInt8] = []
  ) throws {
    var frame = Array(Self.bytes(UInt32(payload.count)).dropFirst())
    frame += [type, flags]
    frame += Self.bytes(stream)
    frame += payload
    try client.send(frame)
  }

  /// Sends a request's head, each field literal and in no table.
  package func request(
    _ method: String, _ path: String, stream: UInt32 = 1, fields: [(String, String)] = [],
    flags: UInt8 = endHeaders | endStream
  ) throws {
    let all =
      [(":method", method), (":path", path), (":scheme", "https"), (":authority", "h")] + fields
    try send(Kind.headers, flags: flags, stream: stream, payload: Self.block(all))
  }

  package static func block(_ fields: [(String, String)]) -> [UInt8] {
    var bytes: [UInt8] = []
    for (name, value) in fields {
      bytes.append(contentsOf: [0, UInt8(name.utf8.count)])
      bytes += name.utf8
      bytes.append(UInt8(value.utf8.count))
      bytes += value.utf8
    }
    return bytes
  }

  package func read() throws -> Frame {
    let head = try client.readBytes(9)
    let size = head[..<3].reduce(0) { $0 << 8 | Int($1) }
    return Frame(
      type: head[3], flags: head[4], stream: head[5...].reduce(0) { $0 << 8 | UInt32($1) },
      payload: try client.readBytes(size))
  }

  /// Reads until a frame of this type comes on this stream.
  package func read(_ type: UInt8, stream: UInt32 = 0) throws -> Frame {
    while true {
      let frame = try read()
      if frame.type == type, frame.stream == stream { return frame }
    }
  }
}
