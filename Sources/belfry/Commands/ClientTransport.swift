import Foundation
import HTTPClient
import NotificationHubs
import Synchronization

/// Carries the requests of the command line: over libcurl, because Foundation's `URLSession` on
/// Linux trusts the system's store and nothing else, never ends a request that is answered with 401
/// to HTTP Basic, and keeps a core busy while a connection is open.
struct ClientTransport: HTTPTransport {
  /// Trusts the system's store alone.
  static let shared = ClientTransport()

  private let session: HTTPSession

  private init(anchorsPEM: [UInt8] = []) {
    var configuration = HTTPSessionConfiguration()
    configuration.extraAnchorsPEM = anchorsPEM
    configuration.allowsPlainHTTP = true
    configuration.usesProxy = true
    // A page of a hundred registrations, each with a template of its own.
    configuration.maxReplyBodyBytes = 64 << 20
    session = HTTPSession(configuration)
  }

  /// - Parameter file: PEM certificates, trusted beside the system's store.
  init(trusting file: String) throws {
    guard let pem = FileManager.default.contents(atPath: file) else {
      throw CommandFailure("--ca: \(file) cannot be read", exitCode: .usage)
    }
    guard pem.firstRange(of: Data("-----BEGIN CERTIFICATE-----".utf8)) != nil else {
      throw CommandFailure("--ca: \(file) holds no PEM block 'CERTIFICATE'", exitCode: .usage)
    }
    self.init(anchorsPEM: Array(pem))
  }

  func send(_ request: TransportRequest) async throws -> TransportReply {
    let reply = try await session.send(
      HTTPCall(
        method: request.method, url: request.url.absoluteString,
        headers: request.headers.map { (name: $0.key, value: $0.value) },
        body: Array(request.body ?? Data())))
    return TransportReply(
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
    let failure = Mutex<(any Error)?>(nil)
    var call = HTTPCall(
      method: "GET", url: url.absoluteString, headers: [(name: "Accept", value: accept)])
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
      return Int(try await session.send(call).status)
    } catch {
      throw failure.withLock { $0 } ?? error
    }
  }
}
