import Foundation
import HTTPClient
import NotificationHubs
import Synchronization

/// Sends the requests of the command line, and those of the server to an OpenID provider, with
/// libcurl. On Linux Foundation's `URLSession` trusts only the system's store, never completes a
/// request that is answered with 401 for HTTP Basic, and keeps a core busy while a connection is
/// open.
struct ClientTransport: StreamingTransport {
  /// A transport that trusts only the system's store.
  static let shared = ClientTransport()

  private let session: HTTPSession

  /// - Parameters:
  ///   - largestBody: The maximum body in bytes; by default it fits a page of a hundred
  ///     registrations, each with a template.
  init(
    anchorsPEM: [UInt8] = [], largestBody: Int = 64 << 20, totalTimeout: Duration = .seconds(30)
  ) {
    var configuration = HTTPSessionConfiguration()
    configuration.extraAnchorsPEM = anchorsPEM
    configuration.allowsPlainHTTP = true
    configuration.usesProxy = true
    configuration.maxReplyBodyBytes = largestBody
    configuration.totalTimeout = totalTimeout
    session = HTTPSession(configuration)
  }

  /// - Parameter file: PEM certificates to trust in addition to the system's store.
  init(trusting file: String) throws { self.init(anchorsPEM: try Self.anchors(in: file)) }

  /// - Throws: ``CommandFailure`` for a file that cannot be read, or has no certificate.
  static func anchors(in file: String) throws -> [UInt8] {
    guard let pem = FileManager.default.contents(atPath: file) else {
      throw CommandFailure("--ca: \(file) cannot be read", exitCode: .usage)
    }
    guard pem.firstRange(of: Data("-----BEGIN CERTIFICATE-----".utf8)) != nil else {
      throw CommandFailure("--ca: \(file) holds no PEM block 'CERTIFICATE'", exitCode: .usage)
    }
    return Array(pem)
  }

  func send(_ request: TransportRequest) async throws -> TransportReply {
    Self.reply(try await session.send(Self.call(request)))
  }

  func stream(
    _ request: TransportRequest, _ receive: @escaping @Sendable (Data) throws -> Void
  ) async throws -> TransportReply {
    Self.reply(try await stream(Self.call(request)) { try receive(Data($0)) })
  }

  private static func call(_ request: TransportRequest) -> HTTPCall {
    HTTPCall(
      method: request.method, url: request.url.absoluteString,
      headers: request.headers.map { (name: $0.key, value: $0.value) },
      body: Array(request.body ?? Data()))
  }

  private static func reply(_ reply: HTTPReply) -> TransportReply {
    TransportReply(
      status: Int(reply.status),
      headers: Dictionary(reply.headers.map { ($0.name, $0.value) }) { first, _ in first },
      body: Data(reply.body))
  }

  /// Passes on the body of a reply to a GET as it arrives, until the server ends it.
  ///
  /// - Throws: ``HTTPFailure``, or the error of `take`, which ends the reply.
  /// - Returns: The status of the reply; a body with a status other than 2xx is not passed on.
  func stream(
    _ url: URL, accept: String, _ take: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws -> Int {
    Int(
      try await stream(
        HTTPCall(
          method: "GET", url: url.absoluteString, headers: [(name: "Accept", value: accept)]),
        take
      ).status)
  }

  private func stream(
    _ call: HTTPCall, _ take: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws -> HTTPReply {
    let failure = Mutex<(any Error)?>(nil)
    var call = call
    call.receive = { bytes in
      do {
        try take(bytes)
        return true
      } catch {
        failure.withLock { $0 = error }
        return false
      }
    }
    do {
      return try await session.send(call)
    } catch {
      throw failure.withLock { $0 } ?? error
    }
  }
}
