import Foundation
import HTTPClient
import NotificationHubs
import Synchronization

/// Carries the requests of the command line, and the server's to an OpenID provider: over libcurl,
/// because Foundation's `URLSession` on Linux trusts the system's store and nothing else, never
/// ends a request that is answered with 401 to HTTP Basic, and keeps a core busy while a connection
/// is open.
struct ClientTransport: StreamingTransport {
  /// Trusts the system's store alone.
  static let shared = ClientTransport()

  private let session: HTTPSession

  /// - Parameters:
  ///   - largestBody: By default room for a page of a hundred registrations, each with a template of
  ///     its own.
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

  /// - Parameter file: PEM certificates, trusted beside the system's store.
  init(trusting file: String) throws { self.init(anchorsPEM: try Self.anchors(in: file)) }

  /// - Throws: ``CommandFailure`` for a file that cannot be read, or holds no certificate.
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

  /// The body of a reply to a GET, in pieces as they come, for as long as the server goes on.
  ///
  /// - Throws: ``HTTPFailure``, or what `take` throws, which ends the reply.
  /// - Returns: The reply's status; a body of another than 2xx is not handed on.
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
