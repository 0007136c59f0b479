import Authentication
import Foundation
import HTTPServer
import NotificationHubs
import Wire

/// Finds out who is meant by a name in a request.
struct People: Sendable {
  /// The kinds of users who sign in.
  let kinds: Set<UserName.Kind>
  let everyoneSends: Bool

  /// The user that a message is for.
  /// - Throws: ``APIFailure`` 400 for a name that is not clear, 403 for others than oneself.
  func recipient(_ name: String, of call: Call) throws -> UserName {
    let user = try user(name, of: call, kinds)
    guard user == call.user || call.identity.isOperator || everyoneSends else {
      throw APIFailure(.forbidden, "only an operator may send to other users")
    }
    return user
  }

  /// - Throws: ``APIFailure`` 400 for a name that is not clear.
  func user(_ name: String, of call: Call, _ kinds: Set<UserName.Kind>) throws -> UserName {
    // Who may name nobody but themselves is not asked which name space that is in.
    let own = call.user.kind == .name ? name.lowercased() : name
    if own == call.user.text, !call.identity.isOperator, !everyoneSends { return call.user }
    do {
      return try UserName(reference: name, kinds: kinds)
    } catch {
      throw APIFailure(.badRequest, error.description)
    }
  }
}

/// `DELETE /api/users/{name}`: forgets a user here and takes their devices off the hub.
struct UserService: Sendable {
  let hub: NotificationHubClient
  let store: BackendStore
  let people: People
  let locks: DeviceLocks
  let now: @Sendable () -> Date

  func erase(_ call: Call) async throws -> HTTPResponse {
    let name = try call.parameter("name")
    // What an older version left without a name space is an operator's to erase, as `old:carol`.
    let isOld = call.identity.isOperator && name.hasPrefix("\(UserName.Kind.old.rawValue):")
    let user = try people.user(name, of: call, isOld ? [.old] : people.kinds)
    guard user == call.user || call.identity.isOperator else {
      throw APIFailure(.forbidden, "only an operator may erase other users")
    }
    // A token that was stolen from a phone is not enough for what cannot be undone.
    guard call.identity.session == nil else {
      throw APIFailure(.forbidden, "sign in with the password to erase a user")
    }
    let line =
      user == call.user
      ? AuditLine(
        at: now(), actor: "erased user", action: "erase", subject: "oneself", outcome: "done",
        address: "")
      : call.audit("erase", "a user", at: now())
    // First the hub: if that fails, the devices are still known here and it can be tried again.
    while true {
      for device in try await store.devices(of: user) {
        try await locks.holding(device.id) {
          // Somebody else may have taken it over meanwhile.
          guard try await store.owner(ofDevice: device.id)?.isOwn(of: user) == true else { return }
          try await ignoringAbsence {
            // No request can name an id such as "..", which older versions took.
            guard device.id.isPathSegment else { return }
            if device.isInstallation {
              try await hub.delete(installation: device.id)
            } else {
              try await hub.delete(registration: device.id)
            }
          }
          try await store.removeDevice(device.id, of: user, audit: nil)
        }
      }
      guard let erasure = try await store.erase(user, audit: line) else { continue }
      return BackendAPI.json(
        .ok,
        .object([
          .init("Messages", .number(String(erasure.messages))),
          .init("AuditLines", .number(String(erasure.auditLines))),
        ]))
    }
  }
}
