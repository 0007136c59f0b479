import HTTPServer
import HubCore
import NotificationHubs

/// The operations of the REST API (spec `rest-api.md` section 2) that are served.
enum HubOperation: Sendable, CaseIterable {
  // Before `send`, which would take the path for that of a hub with a longer name.
  case broadcast
  case putInstallation
  case getInstallation
  case patchInstallation
  case deleteInstallation
  case createRegistration
  case createRegistrationID
  case putRegistration
  case getRegistration
  case deleteRegistration
  // Before the next one, which would take the path for that of a hub with a longer name.
  case listTaggedRegistrations
  case listRegistrations
  case send
  case sendBatch
  case schedule
  case cancelScheduled
  case getNotification
  case listNotifications
  case listScheduled
  /// By the `Location` of a batch.
  case getBatchNotification
  case getNotificationErrors
  case listDeviceOutcomes
  case explainNotification
  case getProgress
  case listInstallations
  case countAudience
  case eraseUser
  case listRemovals
  case restoreRemovals
  case submitJob
  case getJob
  case listJobs
  case feedbackContainer
  case createChannel
  case listChannels
  case getChannel
  case deleteChannel

  /// The least right that suffices; `manage` always does (spec `sas.md` section 5).
  ///
  /// - Parameter target: What the request asks for; a device may list its own registrations, those
  ///   of all devices only a manager may.
  func right(for target: HTTPTarget) -> AccessRights {
    switch self {
    case .putInstallation, .getInstallation, .patchInstallation, .deleteInstallation,
      .createRegistration, .createRegistrationID, .putRegistration, .getRegistration,
      .deleteRegistration:
      .listen
    case .listRegistrations: target.queryItem(WireName.filter) == nil ? .manage : .listen
    case .listTaggedRegistrations: .manage
    // It shows what is stored of a device.
    case .explainNotification: .manage
    case .listInstallations, .eraseUser, .listRemovals, .restoreRemovals: .manage
    case .submitJob, .getJob, .listJobs, .feedbackContainer: .manage
    case .createChannel, .listChannels, .getChannel, .deleteChannel: .manage
    case .send, .sendBatch, .schedule, .cancelScheduled, .getNotification, .getBatchNotification,
      .listNotifications, .listScheduled, .getNotificationErrors, .listDeviceOutcomes, .getProgress,
      .countAudience, .broadcast:
      .send
    }
  }

  private var route: (method: HTTPMethod, pattern: String) {
    switch self {
    case .putInstallation: (.put, "/{hub+}/installations/{id}")
    case .getInstallation: (.get, "/{hub+}/installations/{id}")
    case .patchInstallation: (.patch, "/{hub+}/installations/{id}")
    case .deleteInstallation: (.delete, "/{hub+}/installations/{id}")
    case .createRegistration: (.post, "/{hub+}/registrations")
    case .createRegistrationID: (.post, "/{hub+}/registrationids")
    case .putRegistration: (.put, "/{hub+}/registrations/{id}")
    case .getRegistration: (.get, "/{hub+}/registrations/{id}")
    case .deleteRegistration: (.delete, "/{hub+}/registrations/{id}")
    case .listTaggedRegistrations: (.get, "/{hub+}/tags/{id}/registrations")
    case .listRegistrations: (.get, "/{hub+}/registrations")
    case .send: (.post, "/{hub+}/messages")
    case .sendBatch: (.post, "/{hub+}/messages/$batch")
    case .schedule: (.post, "/{hub+}/schedulednotifications")
    case .cancelScheduled: (.delete, "/{hub+}/schedulednotifications/{id}")
    case .listNotifications: (.get, "/{hub}/messages")
    case .listScheduled: (.get, "/{hub}/schedulednotifications")
    case .getNotification: (.get, "/{hub+}/messages/{id}")
    case .getBatchNotification: (.get, "/{hub+}/messages/$batch/{id}")
    case .getNotificationErrors: (.get, "/{hub+}/messages/{id}/errors")
    case .listDeviceOutcomes: (.get, "/{hub+}/messages/{id}/devices")
    case .explainNotification: (.get, "/{hub+}/messages/{id}/explain")
    case .getProgress: (.get, "/{hub+}/messages/{id}/progress")
    case .listInstallations: (.get, "/{hub+}/installations")
    case .countAudience: (.get, "/{hub+}/audience")
    case .eraseUser: (.delete, "/{hub+}/users/{id}")
    case .listRemovals: (.get, "/{hub+}/removals")
    case .restoreRemovals: (.post, "/{hub+}/removals/restore")
    case .submitJob: (.post, "/{hub+}/jobs")
    case .getJob: (.get, "/{hub+}/jobs/{id}")
    case .listJobs: (.get, "/{hub+}/jobs")
    case .feedbackContainer: (.get, "/{hub+}/feedbackcontainer")
    case .createChannel: (.post, "/{hub+}/channels")
    case .listChannels: (.get, "/{hub+}/channels")
    case .getChannel: (.get, "/{hub+}/channels/{id}")
    case .deleteChannel: (.delete, "/{hub+}/channels/{id}")
    case .broadcast: (.post, "/{hub+}/channels/{id}/messages")
    }
  }

  /// All operations by method and path; a hub's name may have several segments.
  static let table: HTTPRouteTable<HubOperation> = {
    var table = HTTPRouteTable<HubOperation>()
    for operation in allCases {
      table.add(operation.route.method, operation.route.pattern, operation)
    }
    return table
  }()
}
