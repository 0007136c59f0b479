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
    case .listInstallations: try await listInstallations(call)
    case .countAudience: try await countAudience(call)
    case .eraseUser: try await eraseUser(call)
    case .listRemovals: try await listRemovals(call)
    case .restoreRemovals: try await restoreRemovals(call)
    case .submitJob: try await submitJob(call)
    case .getJob: try await getJob(call)
    case .listJobs: try await listJobs(call)
    case .sendBatch: try await sendBatch(call)
    case .schedule: try await schedule(call)
    case .cancelScheduled: try await cancelScheduled(call)
    case .getNotification, .getBatchNotification: try await getNotification(call)
    case .listNotifications: try await listNotifications(call, .newestFirst)
    case .listScheduled: try await listNotifications(call, .scheduled)
    case .getNotificationErrors: try await getNotificationErrors(call)
    case .listDeviceOutcomes: try await listDeviceOutcomes(call)
    case .explainNotification: try await explainNotification(call)
    case .getProgress: try await getProgress(call)
    case .feedbackContainer: try await feedbackContainer(call)
    case .createChannel: try await createChannel(call)
    case .listChannels: try await listChannels(call)
    case .getChannel: try await getChannel(call)
    case .deleteChannel: try await deleteChannel(call)
    case .broadcast: try await broadcast(call)
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
}
