import Foundation
import HTTPServer
import NotificationHubs

/// `DELETE /api/users/{name}`: forgets a user here and takes their devices off the hub.
struct UserService: Sendable {
  let hub: NotificationHubClient
  let store: BackendStore
  let now: @Sendable () -> Date

  func erase(_ call: Call) async throws -> HTTPResponse {
    let name = try call.parameter("name")
    guard
      let user = [UserName(subject: name), UserName(typed: name)].compactMap(\.self).first(where: {
        $0 == call.user
      }) ?? UserName(typed: name)
    else { throw APIFailure(.badRequest, "'\(name)' is not a user's name") }
    guard user == call.user || call.identity.isOperator else {
      throw APIFailure(.forbidden, "only an operator may erase other users")
    }
    // First the hub: if that fails, the devices are still known here and it can be tried again.
    while true {
      let devices = try await store.devices(of: user)
      for device in devices {
        // No request can name an id such as "..", which older versions took.
        if device.id.isPathSegment {
          try await ignoringAbsence {
            if device.isInstallation {
              try await hub.delete(installation: device.id)
            } else {
              try await hub.delete(registration: device.id)
            }
          }
        }
        try await store.removeDevice(device.id, audit: nil)
      }
      if devices.isEmpty { break }
    }
    let erasure = try await store.erase(user, audit: call.audit("erase", "a user", at: now()))
    return BackendAPI.json(
      .ok,
      .object([
        .init("Messages", .number(String(erasure.messages))),
        .init("AuditLines", .number(String(erasure.auditLines))),
      ]))
  }
}
