import Cryptography
import Foundation
import HTTPServer
import HubCore
import HubServer
import NotificationHubs
import Wire

/// Signs the local user of a development hub in at the portal, and gives the portal access to the
/// emulator.
struct DevelopmentPortalController: PortalController {
  let service: HubService
  let hub: String
  let control: EmulatorControl

  /// A key derived from that of the namespace, so that a browser is still recognized after a
  /// restart with the same data.
  static func key(_ root: AccessPolicy) throws -> String {
    let code = try MessageAuthentication.code(
      of: Array("the portal's local user".utf8), key: Array(root.primaryKey.utf8))
    return Base64URL.encode(Array(code.prefix(18)))
  }

  func key() async throws -> String { try Self.key(try await service.policies.root()) }

  func signIn(host: String, isSecure: Bool) async throws -> LocalSignIn {
    guard let endpoint = ServiceEndpoint(parsing: (isSecure ? "https://" : "http://") + host) else {
      throw HubFailure(status: 400, message: "The Host header is no host")
    }
    let root = try await service.policies.root()
    return LocalSignIn(
      connectionString: root.connectionString(endpoint: endpoint).text, hub: hub, emulator: true)
  }

  func emulate(_ call: EmulatorCall) async throws -> HTTPResponse {
    let reply = try await control.answer(
      call.method.rawValue, call.path, call.body.isEmpty ? nil : Data(call.body))
    var response = HTTPResponse(
      HTTPStatus(rawValue: reply.status), headers: ["Cache-Control": "no-store"])
    if !reply.body.isEmpty {
      response.headers["Content-Type"] = "application/json"
      response.body = .bytes(Array(reply.body))
    }
    return response
  }

  func events(
    _ call: EmulatorCall, after: Int?
  ) async throws -> AsyncThrowingStream<ServerSentEvent, any Error> {
    // The journal is always there, and long.
    let isOfJournal = call.path == "v1/requests/events"
    let owner =
      isOfJournal ? "v1/health" : call.path.split(separator: "/").dropLast().joined(separator: "/")
    guard try await control.answer("GET", owner).status == 200 else {
      throw HubFailure(status: 404, message: "The emulator has no such device or app")
    }
    let events = control.events(at: call.path, after: after)
    return .whileIterated { yield in
      for try await event in events {
        yield(ServerSentEvent(event: event.name, id: event.id, data: event.data))
      }
    }
  }
}
