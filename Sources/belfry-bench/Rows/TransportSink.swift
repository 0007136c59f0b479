import Cryptography
import Foundation
import HTTP2

/// The server for the rows' pushes, which replies 200 to everything. Runs in a child process until
/// its standard input ends, then reports its CPU seconds.
enum TransportSink {
  /// The hidden first word that starts it.
  static let word = "transport-sink"

  struct Greeting: Codable {
    var port: UInt16
    var authorityPEM: String
  }

  /// - Parameter words: The latency of replies in milliseconds; none or 0 replies at once.
  static func run(_ words: [String]) async throws {
    let latency = words.first.flatMap { Int($0) } ?? 0
    let authority = try CertificateAuthority(commonName: "belfry-bench")
    let identity = try authority.issueForLocalhost()
    let configuration = HTTP2ServerConfiguration(
      host: "127.0.0.1", port: 0, certificatePEM: Array(identity.certificatePEM.utf8),
      keyPEM: Array(try identity.privateKeyPEM().utf8))
    let server = try HTTP2Server(configuration, handler: AcceptAll(latency: latency))
    try say(Greeting(port: server.port, authorityPEM: authority.certificate.pem))
    while !FileHandle.standardInput.availableData.isEmpty {}
    try say(ProcessUsage.current().cpuSeconds)
    await server.stop()
  }

  private struct AcceptAll: HTTP2ServerHandler {
    let latency: Int
    private static let answer = answer(id: "EC1BF194-B3B2-424A-89E9-5A918A6E6B5F")

    private static func answer(id: String) -> HTTP2ServerResponse {
      HTTP2ServerResponse(status: 200, fields: HTTP2FieldList([("apns-id", id)]))
    }

    func received(_ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection) {
      // Like APNs, returns the sender's id.
      let answer = request.fields.first("apns-id").map(Self.answer(id:)) ?? Self.answer
      guard latency > 0 else { return connection.respond(answer, to: request.stream) }
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(latency)) {
        connection.respond(answer, to: request.stream)
      }
    }
  }
}

/// The sink from the view of its parent.
struct TransportSinkProcess {
  private let child: ChildProcess<TransportSink.Greeting, Double>

  /// - Parameters:
  ///   - latency: The latency in milliseconds.
  ///   - program: The path of a program that takes its place; see ``BroadcastHub/sink``.
  init(latency: Int = 0, program: String? = nil) throws {
    child = try ChildProcess([TransportSink.word, "\(latency)"], of: program)
  }

  var port: UInt16 { child.greeting.port }
  var authorityPEM: [UInt8] { Array(child.greeting.authorityPEM.utf8) }

  /// Stops the sink; returns its CPU seconds.
  func stop() throws -> Double { try child.stop() }
}
