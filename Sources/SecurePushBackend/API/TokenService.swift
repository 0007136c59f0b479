import Authentication
import Cryptography
import Foundation
import HTTPServer
import NotificationHubs
import Wire

/// `POST /api/token` and related requests: tokens that replace passwords and hub keys.
struct TokenService: Sendable {
  let tokens: SessionTokens
  let store: BackendStore
  let configuration: BackendConfiguration
  let now: @Sendable () -> Date

  /// `POST /api/token`: a token for a user who signs in with a password or presents a refresh
  /// token.
  func issue(_ call: Call) async throws -> HTTPResponse {
    let now = now()
    let sessionEnd = now.addingTimeInterval(configuration.sessionLifetime)
    let session: String
    if let known = call.identity.session {
      guard call.identity.isRefreshing else {
        throw APIFailure(.forbidden, "show the refresh token, or sign in with the password")
      }
      let line = call.audit("refresh", known, at: now)
      guard try await store.extend(known, to: sessionEnd, audit: line) else {
        throw APIFailure(.unauthorized, BearerRefusal.revoked.description)
      }
      session = known
    } else if let fingerprint = call.identity.fingerprint {
      session = Base64URL.encode(try SecureRandom.bytes(16))
      try await store.add(
        StoredSession(
          id: session, owner: call.user, expiresAt: sessionEnd, fingerprint: fingerprint),
        audit: call.audit("sign in", session, at: now))
    } else {
      throw APIFailure(
        .forbidden, "tokens are given for a password; use your provider's token as it is")
    }
    let tokenEnd = now.addingTimeInterval(configuration.tokenLifetime)
    func token(_ kind: SessionTokens.Kind, until end: Date) async throws -> String {
      try await tokens.sign(
        SessionTokens.Claims(session: session, user: call.user, expiresAt: end), as: kind)
    }
    return BackendAPI.json(
      .ok,
      .object([
        .init("User", .string(call.user.description)),
        .init("Token", .string(try await token(.access, until: tokenEnd))),
        .init("ExpiresAt", .string(WireDate.seconds(tokenEnd))),
        .init("RefreshToken", .string(try await token(.refresh, until: sessionEnd))),
        .init("RefreshExpiresAt", .string(WireDate.seconds(sessionEnd))),
      ]))
  }

  /// `DELETE /api/token`: ends the sign-in of the token that is presented; with a password or a
  /// provider's token, all of the user's.
  func revoke(_ call: Call) async throws -> HTTPResponse {
    let session = call.identity.session
    try await store.revoke(
      call.user, session: session,
      audit: call.audit("revoke", session ?? "every token", at: now()))
    return HTTPResponse(.noContent)
  }

  /// `POST /api/token/hub[?installation=ID]`: a token with the Listen right on the hub.
  func issueHubToken(_ call: Call) async throws -> HTTPResponse {
    guard let access = configuration.listening else {
      throw APIFailure(
        .notFound, "this backend gives no tokens for its hub: it has no key with the right Listen")
    }
    let now = now()
    var resource = access.connectionString.endpoint.resource(hub: access.hub)
    var subject = access.hub
    if let item = call.request.target.queryItem("installation") {
      guard let id = item.value, id.isPathSegment, id.utf8.count <= 256 else {
        throw APIFailure(.badRequest, "'installation' must be an installation's id")
      }
      if try await store.isForeign(device: id, to: call.user) {
        throw APIFailure(.conflict, "this id belongs to another device; take one of your own")
      }
      // An id that is unknown here may be another user's device, registered directly at the hub.
      guard try await store.owner(ofDevice: id)?.isOwn(of: call.user) == true else {
        throw APIFailure(
          .notFound,
          "this is no installation of yours: register it here first, by "
            + "PUT /api/installations/\(id)")
      }
      // The capital letter makes the comparison case-sensitive: the token is for this id only.
      resource += "/Installations/\(id.percentEncoded)"
      subject = id
    }
    let expiry = now.addingTimeInterval(configuration.tokenLifetime)
    let token = SharedAccessSignature(
      resource: resource, keyName: access.connectionString.keyName,
      key: access.connectionString.key, expiresAt: expiry)
    try await store.note(call.audit("hub token", subject, at: now))
    return BackendAPI.json(
      .ok,
      .object([
        .init("Token", .string(token.text)), .init("Hub", .string(access.hub)),
        .init("ExpiresAt", .string(WireDate.seconds(token.expiresAt))),
      ]))
  }
}
