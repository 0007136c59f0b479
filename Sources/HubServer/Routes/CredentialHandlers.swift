import HTTPServer
import HubCore
import NotificationHubs

/// The credentials of a hub without their secrets (docs/extensions.md).
struct CredentialHandlers: RouteHandlers {
  let api: HubAPI

  func list(_ call: HubCall) async throws -> HTTPResponse {
    call.replies.json(CredentialState.json(try await service.credentials.states(hub: call.hub)))
  }

  func probe(_ call: HubCall) async throws -> HTTPResponse {
    guard let platform = PushPlatform(installationWord: try call.requiredID()) else {
      throw HubFailure(status: 400, message: "The path names no platform; say apns, fcmv1 …")
    }
    return call.replies.json(try await service.credentials.probe(of: platform, hub: call.hub).json)
  }
}
