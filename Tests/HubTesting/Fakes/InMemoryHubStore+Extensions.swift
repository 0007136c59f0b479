import Foundation
package import HubCore
package import NotificationHubs

extension InMemoryHubStore {
  package func installations(
    _ filter: InstallationFilter, hub: Hub.ID, after: String?, limit: Int
  ) throws -> InstallationPage {
    try check()
    let all = (books[hub]?.installations.values).map(Array.init) ?? []
    let later = all.filter { installation in after.map { installation.installationID > $0 } ?? true
    }
    .sorted { $0.installationID < $1.installationID }
    var page = InstallationPage()
    for (index, installation) in later.enumerated() {
      if page.installations.count >= limit || index == stretch {
        page.next = later[index - 1].installationID
        break
      }
      if filter.matches(installation) { page.installations.append(installation) }
    }
    return page
  }

  package func notifications(
    _ filter: NotificationFilter, in order: NotificationOrder, hub: Hub.ID,
    after: NotificationPosition?, limit: Int
  ) throws -> NotificationPage {
    try check()
    func position(_ entry: Entry) -> NotificationPosition {
      let time = order == .newestFirst ? entry.record.enqueuedAt : entry.record.scheduledFor
      return NotificationPosition(
        time: Self.milliseconds(time ?? .distantPast), number: entry.number)
    }
    func comesBefore(_ left: NotificationPosition, _ right: NotificationPosition) -> Bool {
      order == .newestFirst
        ? (right.time, right.number) < (left.time, left.number)
        : (left.time, left.number) < (right.time, right.number)
    }
    let inRange = entries.values.filter { entry in
      let place = position(entry)
      return entry.record.hub == hub && (order == .newestFirst || entry.record.state == .scheduled)
        && place.time >= filter.from.map(Self.milliseconds) ?? .min
        && place.time < filter.until.map(Self.milliseconds) ?? .max
        && after.map { comesBefore($0, place) } ?? true
    }.sorted { comesBefore(position($0), position($1)) }
    var page = NotificationPage()
    for (index, entry) in inRange.enumerated() {
      if page.notifications.count >= limit || index == stretch {
        page.next = position(inRange[index - 1])
        break
      }
      let summary = Self.summary(entry.record)
      if filter.matches(summary, entry.record.request.expression) {
        page.notifications.append(summary)
      }
    }
    return page
  }

  private static func summary(_ record: NotificationRecord) -> NotificationSummary {
    var outcomes: [String: Int] = [:]
    for (key, count) in record.counts {
      outcomes[key.outcome.inTelemetry.name, default: 0] += count
    }
    return NotificationSummary(
      notificationID: record.id.rawValue, state: .init(rawValue: record.state.rawValue),
      kind: .init(
        isScheduled: record.scheduledFor != nil, isDirect: record.request.isDirect,
        expression: record.request.expression),
      format: record.request.format.word, tags: record.request.tags,
      enqueueTime: record.enqueuedAt, startTime: record.startedAt, endTime: record.endedAt,
      dueTime: record.scheduledFor, outcomes: outcomes)
  }

  package func templateCounts(_ query: AudienceQuery) throws -> [TemplateKey: Int] {
    try check()
    var counts: [TemplateKey: Int] = [:]
    for row in matches(query) {
      guard case .template(_, let name) = row.draft.kind else { continue }
      counts[TemplateKey(platform: row.draft.platform, name: name ?? ""), default: 0] += 1
    }
    return counts
  }

  package func eraseUser(_ userID: String, hub: Hub.ID) throws -> UserErasure {
    var book = try book(hub)
    let before = vocabulary(of: book)
    let devices = Set(
      book.installations.values.filter { $0.userID?.lowercased() == userID.lowercased() }
        .map(\.installationID))
    var erasure = UserErasure(installations: 0, schedules: 0, notifications: 0, deviceRecords: 0)
    var handles: Set<String> = []
    for (id, installation) in book.installations
    where installation.userID?.lowercased() == userID.lowercased() {
      erasure.installations += 1
      book.installations[id] = nil
      book.removed = book.removed.filter { $0.value.row.installation != id }
      for row in book.rows.values where row.installation == id {
        book.rows[row.id] = nil
        handles.insert(String(decoding: row.draft.channel.storedBytes, as: UTF8.self))
        for (key, entry) in entries
        where entry.record.hub == hub && !entry.record.request.isDirect {
          if entries[key]?.failures.removeValue(forKey: row.id) != nil {
            erasure.deviceRecords += 1
          }
        }
      }
    }
    books[hub] = book
    let after = vocabulary(of: book)
    let gone = before.tags.subtracting(after.tags)
    erasure.tags = gone.count
    erasure.templates = before.templates.subtracting(after.templates).count
    let own = gone.union([.user(userID)]).union(devices.map { Tag.installation($0) })
    for (id, entry) in entries where entry.record.hub == hub {
      let isNamed =
        !entry.targets.isEmpty && entry.targets.allSatisfy { handles.contains($0.handle) }
      let isTagged = entry.record.request.expression?.isOnly(for: own) == true
      guard isNamed || isTagged else { continue }
      erasure.deviceRecords += entry.failures.count
      entries[id] = nil
      if entry.record.state == .scheduled {
        erasure.schedules += 1
      } else {
        erasure.notifications += 1
      }
    }
    return erasure
  }

  /// The different tags and templates of a hub, without those that the hub gives.
  func vocabulary(of book: Book) -> (tags: Set<Tag>, templates: Set<PushTemplate>) {
    var tags: Set<Tag> = []
    var templates: Set<PushTemplate> = []
    func add(_ template: PushTemplate) {
      var bare = template
      bare.tags = []
      templates.insert(bare)
    }
    for row in book.rows.values {
      tags.formUnion(row.draft.tags.filter { !$0.isImplicit })
      if case .template(let template, _) = row.draft.kind { add(template) }
    }
    for removed in book.removed.values {
      if case .template(let template, _) = removed.row.draft.kind { add(template) }
    }
    for installation in book.installations.values {
      installation.templates.values.forEach(add)
      for tile in installation.secondaryTiles.values { tile.templates.values.forEach(add) }
    }
    return (tags, templates)
  }

  /// - Throws: ``StoreError/quota(_:limit:)`` when a change has made a hub's vocabulary too large.
  func checkVocabulary(of book: Book) throws {
    guard tagsPerHub < .max || templatesPerHub < .max else { return }
    let found = vocabulary(of: book)
    if found.tags.count > tagsPerHub { throw StoreError.quota("tags", limit: tagsPerHub) }
    if found.templates.count > templatesPerHub {
      throw StoreError.quota("templates", limit: templatesPerHub)
    }
  }
}
