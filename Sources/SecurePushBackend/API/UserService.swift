import Authentication
import Foundation
import HTTPServer
import NotificationHubs
import Wire

/// Resolves the name in a request to a user.
struct People: Sendable {
  /// The kinds of users that can sign in.
  let kinds: Set<UserName.Kind>
  let everyoneSends: Bool

  /// Returns the recipient of a message.
  /// - Throws: ``APIFailure`` 400 for an ambiguous name, 403 for a user other than the caller.
  func recipient(_ name: String, of call: Call) throws -> UserName {
    let user = try user(name, of: call, kinds)
    guard user == call.user || call.identity.isOperator || everyoneSends else {
      throw APIFailure(.forbidden, "only an operator may send to other users")
    }
    return user
  }

  /// - Throws: ``APIFailure`` 400 for an ambiguous name.
  func user(_ name: String, of call: Call, _ kinds: Set<UserName.Kind>) throws -> UserName {
    // A caller who can only name themselves need not specify the name space.
    let own = call.user.kind == .name ? name.lowercased() : name
    if own == call.user.text, !call.identity.isOperator, !everyoneSends { return call.user }
    do {
      return try UserName(reference: name, kinds: kinds)
    } catch {
      throw APIFailure(.badRequest, error.description)
    }
  }
}

/// `DELETE /api/users/{name}`: erases a user here and removes their devices from the hub.
struct UserService: Sendable {
  let hub: NotificationHubClient
  let store: BackendStore
  let people: People
  let locks: DeviceLocks
  let now: @Sendable () -> Date

  func erase(_ call: Call) async throws -> HTTPResponse {
    let name = try call.parameter("name")
    // Only operators can erase data of older versions without a name space, as `old:carol`.
    let isOld = call.identity.isOperator && name.hasPrefix("\(UserName.Kind.old.rawValue):")
    let user = try people.user(name, of: call, isOld ? [.old] : people.kinds)
    guard user == call.user || call.identity.isOperator else {
      throw APIFailure(.forbidden, "only an operator may erase other users")
    }
    // A token stolen from a phone must not suffice for an irreversible action.
    guard call.identity.session == nil else {
      throw APIFailure(.forbidden, "sign in with the password to erase a user")
    }
    let line =
      user == call.user
      ? AuditLine(
        at: now(), actor: "erased user", action: "erase", subject: "oneself", outcome: "done",
        address: "")
      : call.audit("erase", "a user", at: now())
    // The hub comes first: if it fails, the devices are still known here and the request can be
    // retried.
    while true {
      for device in try await store.devices(of: user) {
        try await locks.holding(device.id) {
          // Another user may have taken it over in the meantime.
          guard try await store.owner(ofDevice: device.id)?.isOwn(of: user) == true else { return }
          try await ignoringAbsence {
            // Older versions accepted ids such as "..", which no request can address.
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
