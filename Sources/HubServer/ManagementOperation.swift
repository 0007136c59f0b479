import HTTPServer

/// The operations on hubs themselves (spec `rest-api.md` section 8, rows 25 to 29).
enum ManagementOperation: Sendable, CaseIterable {
  case putHub
  case getHub
  case deleteHub
  case listServices
  case listHubs

  private var route: (method: HTTPMethod, pattern: String) {
    switch self {
    case .putHub: (.put, "/{hub}")
    case .getHub: (.get, "/{hub}")
    case .deleteHub: (.delete, "/{hub}")
    case .listServices: (.get, "/")
    case .listHubs: (.get, "/$Resources/NotificationHubs")
    }
  }

  /// Whether it makes, replaces or deletes a hub.
  var changesHub: Bool { self == .putHub || self == .deleteHub }

  /// All operations by method and path; none of the paths is one of a resource in a hub.
  static let table: HTTPRouteTable<ManagementOperation> = {
    var table = HTTPRouteTable<ManagementOperation>()
    for operation in allCases {
      table.add(operation.route.method, operation.route.pattern, operation)
    }
    return table
  }()
}
