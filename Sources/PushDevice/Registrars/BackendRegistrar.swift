public import Foundation
public import NotificationHubs
import Wire

/// Registers the device through the app's backend, which decides about users and tags and alone
/// has a key of the hub: `PUT` and `DELETE /api/installations/{id}` with the bearer token of the
/// sign-in, as `belfry backend` and backends like it offer (docs/backend.md).
///
/// ```swift
/// BackendRegistrar(backend: url) { user, refused in
///   try await session.token(of: user, insteadOf: refused)
/// }
/// ```
public struct BackendRegistrar: InstallationRegistrar {
  /// Returns the bearer token for a user's requests.
  ///
  /// - Parameters:
  ///   - userID: The signed-in user, or one who has just signed out: the request that removes
  ///     their device still needs their token.
  ///   - refused: A token that the backend has just refused and that must be renewed; `nil` at
  ///     first.
  /// - Throws: ``RegistrarError`` of kind `unauthorized` if there is no token; any other error
  ///   counts as `unreachable`, unless it is ``RegistrarErrorConvertible``.
  public typealias Token =
    @Sendable (_ userID: String, _ refused: String?) async throws -> String

  public var address: String { backend.absoluteString }
  public var isForSignedInUsersOnly: Bool { true }
  private let backend: URL
  private let transport: any HTTPTransport
  private let token: Token

  /// - Parameter backend: The URL of the backend, without the path `/api`.
  public init(
    backend: URL, transport: any HTTPTransport = URLSessionTransport.shared,
    token: @escaping Token
  ) {
    self.backend = backend
    self.transport = transport
    self.token = token
  }

  public func save(_ installation: Installation) async throws(RegistrarError) {
    try await call(
      "PUT", installation.installationID, of: installation.userID, body: installation.jsonData)
  }

  public func delete(installation id: String, of userID: String?) async throws(RegistrarError) {
    do { try await call("DELETE", id, of: userID) } catch  where error.kind == .notFound {}
  }

  private func call(
    _ method: String, _ id: String, of userID: String?, body: Data? = nil
  ) async throws(RegistrarError) {
    guard let userID else { throw RegistrarError(.unauthorized, "nobody is signed in") }
    guard id.isPathSegment else {
      throw RegistrarError(.rejected, "the installation's id would change the request's path")
    }
    var request = TransportRequest(
      method: method,
      url: backend.appending(path: "api/installations").appending(component: id),
      headers: ["Accept": "application/json"], body: body)
    if body != nil { request.headers["Content-Type"] = "application/json" }
    do {
      var refused: String?
      while true {
        let bearer = try await token(userID, refused)
        request.headers["Authorization"] = "Bearer \(bearer)"
        let reply = try await transport.send(request)
        if (200...299).contains(reply.status) { return }
        guard reply.status == 401, refused == nil else {
          let message = (try? JSONValue.parse(reply.body))?["message"]?.scalarText
          throw RegistrarError(
            status: reply.status, message ?? "the backend answered \(reply.status)",
            retryAfter: reply.retryAfter.map { .seconds($0) })
        }
        refused = bearer
      }
    } catch { throw RegistrarError(error) }
  }
}
