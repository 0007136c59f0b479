import HTTPServer
import HubCore
import NotificationHubs

/// What Belfry tells about a notification beyond its telemetry (`docs/extensions.md`).
extension HubAPI {
  func explainNotification(_ call: HubCall) async throws -> HTTPResponse {
    typealias Parameter = DeviceOutcomeList.Parameter
    let target = call.request.target
    let installation = target.queryItem(Parameter.installation)
    let registration = target.queryItem(Parameter.registration)
    let device: ExplainedDevice
    switch (installation, registration) {
    case (let item?, nil): device = .installation(try text(item.value, Parameter.installation))
    case (nil, let item?): device = .registration(try text(item.value, Parameter.registration))
    default:
      throw HubFailure(
        status: 400,
        message: "Say which device to explain: either the query parameter installation or "
          + "registration, with its id")
    }
    let explanation = try await service.explain(
      NotificationID(rawValue: call.requiredID()), hub: call.hub, device: device)
    return call.replies.json(explanation.json)
  }

  private func text(_ value: String?, _ name: String) throws(HubFailure) -> String {
    guard let value, !value.isEmpty, value.utf8.count <= 1024 else {
      throw HubFailure(status: 400, message: "The query parameter \(name) is no id")
    }
    return value
  }

  func getProgress(_ call: HubCall) async throws -> HTTPResponse {
    let progress = try await service.progress(
      of: NotificationID(rawValue: call.requiredID()), hub: call.hub)
    return call.replies.json(progress.json)
  }

  /// A send that is only thought through.
  func previewSend(_ call: HubCall, isDirect: Bool) async throws -> HTTPResponse {
    let preview = try await service.preview(
      hub: call.hub, headers: call.request.headers, body: call.request.body, isDirect: isDirect)
    return call.replies.json(preview.json)
  }
}
