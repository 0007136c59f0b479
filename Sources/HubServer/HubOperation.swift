import HTTPServer
import HubCore

/// The operations of the REST API (spec `rest-api.md` section 2) that are served.
enum HubOperation: Sendable, CaseIterable {
  case putInstallation
  case getInstallation
  case patchInstallation
  case deleteInstallation
  case send
  case getNotification

  /// The least right that suffices; `manage` always does (spec `sas.md` section 5).
  var right: AccessRights {
    switch self {
    case .putInstallation, .getInstallation, .patchInstallation, .deleteInstallation: .listen
    case .send, .getNotification: .send
    }
  }

  private var route: (method: HTTPMethod, pattern: String) {
    switch self {
    case .putInstallation: (.put, "/{hub+}/installations/{id}")
    case .getInstallation: (.get, "/{hub+}/installations/{id}")
    case .patchInstallation: (.patch, "/{hub+}/installations/{id}")
    case .deleteInstallation: (.delete, "/{hub+}/installations/{id}")
    case .send: (.post, "/{hub+}/messages")
    case .getNotification: (.get, "/{hub+}/messages/{id}")
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
