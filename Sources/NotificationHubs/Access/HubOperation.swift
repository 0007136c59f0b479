/// An operation of the REST API (docs/protocol/rest.md, section 2): declared here once, for the
/// routes of the server and the requests of the client. Tests compare the table of rights in
/// docs/protocol/sas.md, the OpenAPI description and the calls of the portal with it.
package struct HubOperation: Sendable {
  /// The least right that suffices; Manage always does (docs/protocol/sas.md, section 5).
  package enum Access: Sendable {
    case listen
    case send
    /// Send, also by a token in the URL's query.
    case sendByAddress
    case manage
    /// Listen for a device's own registrations, selected by `$filter`; Manage for those of all.
    case manageOrOwn
    /// The signature in the URL of the feedback container.
    case container
  }

  /// The name in the logs.
  package let name: String
  package let method: String
  /// The path with its parameters: `{hub+}` for a hub's name, which may have several segments,
  /// `{hub}` for a name of one segment, and `{id}`.
  package let pattern: String
  package let access: Access

  private init(_ name: String, _ method: String, _ pattern: String, _ access: Access) {
    (self.name, self.method, self.pattern, self.access) = (name, method, pattern, access)
  }

  private static func inHub(
    _ name: String, _ method: String, _ path: String, of hub: String = "/{hub+}", _ access: Access
  ) -> HubOperation {
    HubOperation(name, method, hub + path, access)
  }

  /// The segments of the path, not percent-encoded.
  ///
  /// - Parameters:
  ///   - hub: The name, which may contain slashes.
  func path(hub: String, id: String? = nil) -> [String] {
    pattern.split(separator: "/").flatMap { segment -> [String] in
      switch segment {
      case "{hub+}", "{hub}": hub.split(separator: "/").map(String.init)
      case "{id}": [id ?? ""]
      default: [String(segment)]
      }
    }
  }

  /// The name of the right that a request needs.
  /// - Parameter hasFilter: Whether it asks for the registrations of one device.
  func right(hasFilter: Bool) -> String {
    switch access {
    case .listen: "Listen"
    case .send, .sendByAddress: "Send"
    case .manageOrOwn: hasFilter ? "Listen" : "Manage"
    case .manage, .container: "Manage"
    }
  }
}

extension HubOperation {
  package static let putInstallation = inHub(
    "putInstallation", "PUT", "/installations/{id}", .listen)
  package static let getInstallation = inHub(
    "getInstallation", "GET", "/installations/{id}", .listen)
  package static let patchInstallation = inHub(
    "patchInstallation", "PATCH", "/installations/{id}", .listen)
  package static let deleteInstallation = inHub(
    "deleteInstallation", "DELETE", "/installations/{id}", .listen)
  package static let listInstallations = inHub(
    "listInstallations", "GET", "/installations", .manage)
  package static let searchDevices = inHub("searchDevices", "POST", "/devices/search", .manage)
  package static let createRegistration = inHub(
    "createRegistration", "POST", "/registrations", .listen)
  package static let createRegistrationID = inHub(
    "createRegistrationID", "POST", "/registrationids", .listen)
  package static let putRegistration = inHub(
    "putRegistration", "PUT", "/registrations/{id}", .listen)
  package static let getRegistration = inHub(
    "getRegistration", "GET", "/registrations/{id}", .listen)
  package static let deleteRegistration = inHub(
    "deleteRegistration", "DELETE", "/registrations/{id}", .listen)
  package static let listTaggedRegistrations = inHub(
    "listTaggedRegistrations", "GET", "/tags/{id}/registrations", .manage)
  package static let listRegistrations = inHub(
    "listRegistrations", "GET", "/registrations", .manageOrOwn)
  package static let broadcast = inHub("broadcast", "POST", "/channels/{id}/messages", .send)
  package static let send = inHub("send", "POST", "/messages", .send)
  package static let sendBatch = inHub("sendBatch", "POST", "/messages/$batch", .send)
  package static let schedule = inHub("schedule", "POST", "/schedulednotifications", .send)
  package static let cancelScheduled = inHub(
    "cancelScheduled", "DELETE", "/schedulednotifications/{id}", .send)
  package static let getNotification = inHub("getNotification", "GET", "/messages/{id}", .send)
  package static let abortNotification = inHub(
    "abortNotification", "DELETE", "/messages/{id}", .send)
  package static let getBatchNotification = inHub(
    "getBatchNotification", "GET", "/messages/$batch/{id}", .send)
  package static let getNotificationErrors = inHub(
    "getNotificationErrors", "GET", "/messages/{id}/errors", .sendByAddress)
  package static let listDeviceOutcomes = inHub(
    "listDeviceOutcomes", "GET", "/messages/{id}/devices", .send)
  package static let explainNotification = inHub(
    "explainNotification", "GET", "/messages/{id}/explain", .manage)
  package static let getProgress = inHub("getProgress", "GET", "/messages/{id}/progress", .send)
  package static let streamEvents = inHub("streamEvents", "GET", "/messages/{id}/events", .send)
  package static let listNotifications = inHub(
    "listNotifications", "GET", "/messages", of: "/{hub}", .send)
  package static let listScheduled = inHub(
    "listScheduled", "GET", "/schedulednotifications", of: "/{hub}", .send)
  package static let getStatistics = inHub("getStatistics", "GET", "/statistics", .send)
  package static let countAudience = inHub("countAudience", "GET", "/audience", .send)
  package static let eraseUser = inHub("eraseUser", "DELETE", "/users/{id}", .manage)
  package static let listRemovals = inHub("listRemovals", "GET", "/removals", .manage)
  package static let restoreRemovals = inHub(
    "restoreRemovals", "POST", "/removals/restore", .manage)
  package static let submitJob = inHub("submitJob", "POST", "/jobs", .manage)
  package static let getJob = inHub("getJob", "GET", "/jobs/{id}", .manage)
  package static let listJobs = inHub("listJobs", "GET", "/jobs", .manage)
  package static let feedbackContainer = inHub(
    "feedbackContainer", "GET", "/feedbackcontainer", .manage)
  package static let listFeedback = inHub("readFeedback", "GET", "/$feedback", .container)
  package static let readFeedback = inHub("readFeedback", "GET", "/$feedback/{id}", .container)
  package static let listCredentials = inHub(
    "listCredentials", "GET", "/credentials", of: "/{hub}", .manage)
  package static let probeCredential = inHub(
    "probeCredential", "POST", "/credentials/{id}/probe", .manage)
  package static let createChannel = inHub("createChannel", "POST", "/channels", .manage)
  package static let listChannels = inHub("listChannels", "GET", "/channels", .manage)
  package static let getChannel = inHub("getChannel", "GET", "/channels/{id}", .manage)
  package static let deleteChannel = inHub("deleteChannel", "DELETE", "/channels/{id}", .manage)
  package static let listActivity = inHub("listActivity", "GET", "/activity", .manage)
  package static let listAllActivity = HubOperation("manageHub", "GET", "/$activity", .manage)
  package static let putHub = HubOperation("manageHub", "PUT", "/{hub}", .manage)
  package static let getHub = HubOperation("manageHub", "GET", "/{hub}", .manage)
  package static let deleteHub = HubOperation("manageHub", "DELETE", "/{hub}", .manage)
  package static let listServices = HubOperation("manageHub", "GET", "/", .manage)
  package static let listHubs = HubOperation(
    "manageHub", "GET", "/$Resources/NotificationHubs", .manage)
}
