package import Foundation
package import HubCore
package import NotificationHubs

extension InMemoryHubStore {
  static let coding = RegistrationIDCoding(key: (7, 11))

  package func reserveRegistrationID(hub: Hub.ID) throws -> String {
    _ = try book(hub)
    lastRegistration += 1
    return Self.coding.id(of: lastRegistration, hub: hub)
  }

  package func createRegistration(
    _ draft: RegistrationDraft, hub: Hub.ID, at: Date
  ) throws -> StoredRegistration {
    let id = try reserveRegistrationID(hub: hub)
    return try insert(id, draft, hub: hub, at: at)
  }

  package func putRegistration(
    _ id: String, _ draft: RegistrationDraft, hub: Hub.ID, condition: ETagCondition, at: Date
  ) throws -> RegistrationWrite {
    guard var row = try row(id, hub: hub, asOf: at) else {
      return condition == .none ? .done(try insert(id, draft, hub: hub, at: at)) : .missing
    }
    guard condition.holds(for: String(row.etag)) else { return .stale }
    let implicit = row.installation.isEmpty ? [] : row.draft.tags.filter(\.isImplicit)
    row.draft = draft
    row.draft.tags = implicit + draft.tags
    row.etag += 1
    row.written = nextWrite()
    row.confirmedAt = Self.milliseconds(at)
    revision += 1
    row.revision = revision
    var book = try book(hub)
    book.rows[row.id] = row
    book.forgetRemoved(draft)
    book.removed[row.id] = nil
    try checkVocabulary(of: book)
    books[hub] = book
    return .done(stored(row, hub: hub))
  }

  package func deleteRegistration(
    _ id: String, hub: Hub.ID, condition: ETagCondition, at: Date
  ) throws -> RegistrationWrite {
    guard let row = try row(id, hub: hub, asOf: at) else {
      for removed in try book(hub).removed.values
      where removed.row.id == Self.coding.number(in: id, hub: hub) || removed.row.publicID == id {
        books[hub]?.removed[removed.row.id] = nil
      }
      return .missing
    }
    guard condition.holds(for: String(row.etag)) else { return .stale }
    books[hub]?.rows[row.id] = nil
    books[hub]?.removed[row.id] = nil
    return .done(stored(row, hub: hub))
  }

  package func registration(
    _ id: String, hub: Hub.ID, asOf: Date
  ) throws -> StoredRegistration? {
    try row(id, hub: hub, asOf: asOf).map { stored($0, hub: hub) }
  }

  package func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int
  ) throws -> RegistrationPage {
    let rows = try book(hub).rows.values.sorted { $0.id < $1.id }.filter { row in
      guard row.id > after, isLive(row, asOf: asOf) else { return false }
      switch query {
      case .all: return true
      case .tag(let tag): return row.draft.tags.contains(tag)
      case .device(let filter):
        return filter.matches(platform: row.draft.platform, channel: row.draft.channel)
      }
    }
    return RegistrationPage(
      registrations: rows.prefix(limit).map { stored($0, hub: hub) }, hasMore: rows.count > limit)
  }

  private func insert(
    _ id: String, _ draft: RegistrationDraft, hub: Hub.ID, at: Date
  ) throws -> StoredRegistration {
    let own = Self.coding.number(in: id, hub: hub)
    if own == nil { lastRegistration += 1 }
    let row = Row(
      id: own ?? lastRegistration, draft: draft, installation: "",
      confirmedAt: Self.milliseconds(at), publicID: own == nil ? id : nil,
      written: nextWrite(), revision: revision + 1)
    revision += 1
    var book = try book(hub)
    book.rows[row.id] = row
    book.forgetRemoved(draft)
    try checkVocabulary(of: book)
    books[hub] = book
    return stored(row, hub: hub)
  }

  private func row(_ id: String, hub: Hub.ID, asOf: Date) throws -> Row? {
    let rows = try book(hub).rows
    let row =
      if let number = Self.coding.number(in: id, hub: hub) { rows[number] } else {
        rows.values.first { $0.publicID == id }
      }
    guard let row else { return nil }
    guard isLive(row, asOf: asOf) else {
      books[hub]?.rows[row.id] = nil
      return nil
    }
    return row
  }

  private func isLive(_ row: Row, asOf: Date) -> Bool {
    row.draft.expiresAt.map { $0 > asOf } ?? true
  }

  private func stored(_ row: Row, hub: Hub.ID) -> StoredRegistration {
    StoredRegistration(
      number: row.id, id: row.publicID ?? Self.coding.id(of: row.id, hub: hub), draft: row.draft,
      etag: row.etag, isDerived: !row.installation.isEmpty)
  }
}
