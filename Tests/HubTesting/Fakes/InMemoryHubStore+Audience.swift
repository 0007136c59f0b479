package import HubCore
import NotificationHubs

extension InMemoryHubStore {
  package func targets(
    _ query: AudienceQuery, after: RegistrationID, limit: Int
  ) throws -> TargetPage {
    try check()
    var seen: Set<[UInt8]> = []
    var page = PageBuilder(templates: templates)
    page.page.revision = StoreVersion(rawValue: revision)
    let version = query.notification.flatMap { entries[$0]?.version } ?? .max
    for row in matches(query) {
      // One of an earlier page that was written since need not have been sent to.
      guard row.id > after || row.written <= version else { continue }
      let isFirst = seen.insert(row.draft.channel.storedBytes).inserted
      guard row.id > after else { continue }
      if page.page.targets.count == limit {
        page.page.next = page.page.targets.last?.registration ?? after
        break
      }
      page.append(row, isDuplicate: query.kind != .template && !isFirst)
    }
    templates = page.templateIDs
    return page.page
  }

  package func count(_ query: AudienceQuery) throws -> Int {
    try check()
    return matches(query).count
  }

  func matches(_ query: AudienceQuery) -> [Row] {
    let rows = (books[query.hub]?.rows.values).map(Array.init) ?? []
    return rows.sorted { $0.id < $1.id }.filter { row in
      if let expires = row.draft.expiresAt, expires <= query.asOf { return false }
      switch (query.kind, row.draft.kind) {
      case (.native(let platform), .native):
        guard platform == row.draft.platform else { return false }
      case (.template, .template): break
      default: return false
      }
      return query.expression.map { Self.isTrue($0, for: Set(row.draft.tags)) } ?? true
    }
  }

  private static func isTrue(_ expression: TagExpression, for tags: Set<Tag>) -> Bool {
    switch expression {
    case .tag(let tag): tags.contains(tag)
    case .not(let inner): !isTrue(inner, for: tags)
    case .and(let left, let right): isTrue(left, for: tags) && isTrue(right, for: tags)
    case .or(let left, let right): isTrue(left, for: tags) || isTrue(right, for: tags)
    }
  }
}

extension PushChannel {
  /// As in ``TargetPage/handles``.
  var storedBytes: [UInt8] {
    switch self {
    case .handle(let text): Array(text.utf8)
    case .subscription(let endpoint, let p256dh, let auth):
      Array("\(endpoint)\n\(p256dh)\n\(auth)".utf8)
    }
  }
}

/// Lays rows out as a ``TargetPage``.
struct PageBuilder {
  var page = TargetPage()
  /// Numbers of template bodies, by the template without its tags.
  var templateIDs: [PushTemplate: Int64]

  init(templates: [PushTemplate: Int64]) { templateIDs = templates }

  mutating func append(_ row: InMemoryHubStore.Row, isDuplicate: Bool) {
    var template: Int32 = -1
    if case .template(let full, _) = row.draft.kind { template = index(of: full) }
    var variables: Int32 = -1
    if !row.draft.pushVariables.isEmpty {
      variables = Int32(page.pushVariables.count)
      page.pushVariables.append(row.draft.pushVariables)
    }
    let start = page.handles.count
    page.handles += row.draft.channel.storedBytes
    page.targets.append(
      Target(
        registration: row.id, handle: start..<page.handles.count, platform: row.draft.platform,
        template: template, variables: variables, confirmedAt: row.confirmedAt,
        isDuplicate: isDuplicate, environment: row.environment))
  }

  private mutating func index(of full: PushTemplate) -> Int32 {
    var shared = full
    shared.tags = []
    let id = templateIDs[shared] ?? Int64(templateIDs.count + 1)
    templateIDs[shared] = id
    if let index = page.templates.firstIndex(where: { $0.id == id }) { return Int32(index) }
    page.templates.append(StoredTemplate(id: id, template: shared))
    return Int32(page.templates.count - 1)
  }
}
