import HTTPServer
import HubCore
import NotificationHubs

/// Sends and what became of them (spec `rest-api.md` section 5).
extension HubAPI {
  private enum Flag {
    static let direct = "direct"
    static let test = "test"
  }

  /// One path for three operations, told apart by flags; `direct` wins over `test`, which says
  /// nothing about a direct send (spec 5.7).
  func send(_ call: HubCall) async throws -> HTTPResponse {
    let request = call.request
    if request.target.isFlagSet(Flag.direct) {
      let record = try await service.sendDirect(
        hub: call.hub, headers: request.headers, body: request.body)
      return accepted(record, call)
    }
    if request.target.isFlagSet(Flag.test) {
      let report = try await service.testSend(
        hub: call.hub, headers: request.headers, body: request.body)
      return call.replies.document(.created, Array(report.xml.utf8))
    }
    let record = try await service.send(
      hub: call.hub, headers: request.headers, body: request.body)
    return accepted(record, call)
  }

  func sendBatch(_ call: HubCall) async throws -> HTTPResponse {
    let record = try await service.sendBatch(
      hub: call.hub, headers: call.request.headers, body: call.request.body)
    return accepted(record, call)
  }

  func schedule(_ call: HubCall) async throws -> HTTPResponse {
    guard !call.request.target.isFlagSet(Flag.direct) else {
      throw HubFailure(
        status: 400,
        message: "A scheduled notification goes to tags or to every device; 'direct' is not "
          + "supported")
    }
    let record = try await service.schedule(
      hub: call.hub, headers: call.request.headers, body: call.request.body)
    return accepted(record, call)
  }

  func cancelScheduled(_ call: HubCall) async throws -> HTTPResponse {
    try await service.cancelScheduled(
      hub: call.hub, id: NotificationID(rawValue: call.requiredID()))
    return call.replies.empty(.ok)
  }

  private func accepted(_ record: NotificationRecord, _ call: HubCall) -> HTTPResponse {
    var response = call.replies.empty(.created)
    response.headers.add(WireName.location, address(of: record.id, below: call.request))
    return response
  }

  // MARK: Telemetry (spec 5.8)

  func getNotification(_ call: HubCall) async throws -> HTTPResponse {
    let id = NotificationID(rawValue: try call.requiredID())
    var telemetry = try await service.telemetry(hub: call.hub, id: id)
    telemetry.location = address(of: call.request, scheme: "sb")
    if telemetry.hasErrors, APIVersion.hasErrorDetails(call.request.target) {
      telemetry.pnsErrorDetailsURI = try await errorDetailsAddress(of: id, call)
    }
    return call.replies.document(.ok, Array(telemetry.xml.utf8))
  }
}
