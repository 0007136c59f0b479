import HTTPServer
import HubCore
import NotificationHubs

extension HubAPI {
  /// Carries an operation out.
  func perform(_ call: HubCall) async throws -> HTTPResponse {
    switch call.operation {
    case .putInstallation: try await putInstallation(call)
    case .getInstallation: try await getInstallation(call)
    case .patchInstallation: try await patchInstallation(call)
    case .deleteInstallation: try await deleteInstallation(call)
    case .createRegistration: try await createRegistration(call)
    case .createRegistrationID: try await createRegistrationID(call)
    case .putRegistration: try await putRegistration(call)
    case .getRegistration: try await getRegistration(call)
    case .deleteRegistration: try await deleteRegistration(call)
    case .listTaggedRegistrations: try await listTaggedRegistrations(call)
    case .listRegistrations: try await listRegistrations(call)
    case .send: try await send(call)
    case .getNotification: try await getNotification(call)
    case .submitJob: try await submitJob(call)
    case .getJob: try await getJob(call)
    case .listJobs: try await listJobs(call)
    }
  }

  // MARK: Installations (spec section 4)

  private func putInstallation(_ call: HubCall) async throws -> HTTPResponse {
    try await service.putInstallation(
      hub: call.hub, id: call.requiredID(), body: call.request.body)
    return call.replies.empty(.ok)
  }

  private func getInstallation(_ call: HubCall) async throws -> HTTPResponse {
    let installation = try await service.installation(hub: call.hub, id: call.requiredID())
    return call.replies.document(.ok, installation.hubJSON)
  }

  private func patchInstallation(_ call: HubCall) async throws -> HTTPResponse {
    try await service.patchInstallation(
      hub: call.hub, id: call.requiredID(), body: call.request.body)
    return call.replies.empty(.ok)
  }

  private func deleteInstallation(_ call: HubCall) async throws -> HTTPResponse {
    try await service.deleteInstallation(hub: call.hub, id: call.requiredID())
    return call.replies.empty(.noContent)
  }

  // MARK: Sends (spec 5.3, 5.8)

  private func send(_ call: HubCall) async throws -> HTTPResponse {
    for flag in ["direct", "test"] where call.request.target.isFlagSet(flag) {
      // Carrying such a send out as an ordinary one would reach the wrong devices.
      throw HubFailure(
        status: 501, message: "This server does not offer sends with the parameter '\(flag)'")
    }
    let record = try await service.send(
      hub: call.hub, headers: call.request.headers, body: call.request.body)
    var response = call.replies.empty(.created)
    response.headers.add(
      WireName.location, address(of: record.id, below: call.request))
    return response
  }

  private func getNotification(_ call: HubCall) async throws -> HTTPResponse {
    var telemetry = try await service.telemetry(
      hub: call.hub, id: NotificationID(rawValue: call.requiredID()))
    telemetry.location = address(of: call.request, scheme: "sb")
    return call.replies.document(.ok, Array(telemetry.xml.utf8))
  }
}
