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
    var erasure = UserErasure(installations: 0, schedules: 0, notifications: 0, deviceRecords: 0)
    var handles: Set<String> = []
    for (id, installation) in book.installations
    where installation.userID?.lowercased() == userID.lowercased() {
      erasure.installations += 1
      book.installations[id] = nil
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
    for (id, entry) in entries where entry.record.hub == hub {
      let isNamed =
        !entry.targets.isEmpty && entry.targets.allSatisfy { handles.contains($0.handle) }
      let isTagged = entry.record.request.expression?.isOnly(forUser: .user(userID)) == true
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
}
