import NotificationHubs

/// The notification that a command is about: its id, the beginning of it, or the newest of the hub.
struct NotificationChoice: ParameterGroup {
  @Argument("ID", "what `belfry send` printed, or the beginning of it") var id: String?
  @Flag("--last", "the newest notification of the hub, in place of an ID") var isLast

  /// The number of notifications, the newest first, among which a beginning is looked up.
  private static let searched = 1000
  /// An id begins with so many digits, of which no two are alike.
  private static let digits = 32

  /// The least length of an id's beginning for a command that changes the notification.
  private static let leastForChange = 8

  /// - Throws: ``UsageError`` unless one of the two was given, the beginning long enough for a
  ///   command that changes the notification.
  func check(changes: Bool = false) throws(UsageError) {
    try UsageError.check(exclusive: $id, $isLast)
    if id == nil && !isLast {
      throw UsageError("ID is missing: what `belfry send` printed, or --last for the newest")
    }
    if let id, id.count < (changes ? Self.leastForChange : 1) {
      throw UsageError(
        id.isEmpty
          ? "ID is empty: what `belfry send` printed, or --last for the newest"
          : "ID: at least \(Self.leastForChange) of its characters, since this changes it")
    }
  }

  /// The whole id.
  ///
  /// - Throws: ``CommandFailure`` if nothing was sent yet, or several ids begin so. A beginning that
  ///   is unknown, and one in a hub of Azure, which has no list, is returned as it is: the hub then
  ///   says that there is none.
  func wholeID(in access: HubAccess) async throws -> String {
    if let id, id.count > Self.digits { return id }
    let query = NotificationQuery(pageSize: id == nil ? 1 : 100)
    let found: [NotificationSummary]
    do {
      found = try await access.client.notifications(query).first(id == nil ? 1 : Self.searched)
    } catch let error as NotificationHubError where error.kind == .notFound {
      guard let id else {
        throw CommandFailure(
          "this hub has no list of notifications: give the ID in place of --last")
      }
      return id
    }
    guard let id else {
      guard let last = found.first else {
        throw CommandFailure("nothing was sent in hub \(access.hub) yet")
      }
      return last.notificationID
    }
    let fitting = found.map(\.notificationID).filter { $0.hasPrefix(id) }
    if fitting.count > 1 {
      throw CommandFailure(
        "\(fitting.count) notifications begin with '\(id)':\n"
          + fitting.prefix(5).map { "  " + $0 }.joined(separator: "\n"))
    }
    return fitting.first ?? id
  }
}
