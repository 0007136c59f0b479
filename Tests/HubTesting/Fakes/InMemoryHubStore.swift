package import Foundation
package import HubCore
package import NotificationHubs

/// A ``HubStore`` in memory for tests: plain and slow, with the promises of the real ones.
///
/// ``fail(with:)`` makes every later call throw, as a full disk would.
package actor InMemoryHubStore: HubStore {
  /// A stored registration.
  struct Row {
    let id: RegistrationID
    var draft: RegistrationDraft
    /// The id; empty for a registration that a client wrote.
    var installation: String
    /// Milliseconds since 1970.
    var confirmedAt: Int64
    var environment = PushEnvironment.own
    /// `nil` when the hub made it.
    var publicID: String?
    var etag: Int64 = 1
    /// As ``InMemoryHubStore/writes`` was when it was written last, a repeat apart.
    var written = 0
    /// As ``InMemoryHubStore/revision`` was when an app or a client wrote it last.
    var revision: Int64 = 0
  }

  /// A registration that was removed, or given another handle, on the word of a push service.
  struct Removed {
    var row: Row
    let at: Date
    let outcome: NotificationOutcome
    /// `nil` when the row is gone.
    let newHandle: String?
  }

  /// Counts the writes of registrations.
  var writes = 0

  struct Book {
    var hub: Hub
    var policies: [AccessPolicy]
    var credentials: [PushPlatform: PushCredential] = [:]
    var installations: [String: Installation] = [:]
    var rows: [RegistrationID: Row] = [:]
    var feedback: [HandleFeedback] = []
    var removed: [RegistrationID: Removed] = [:]
  }

  struct Entry {
    /// In the order of acceptance, from 1.
    let number: Int64
    var record: NotificationRecord
    /// With successes, where they are kept.
    var failures: [RegistrationID: Checkpoint.Failure] = [:]
    /// When each was recorded.
    var times: [RegistrationID: Date] = [:]
    var retries: [RegistrationID: Checkpoint.Retry] = [:]
    /// As ``InMemoryHubStore/writes`` was when it was accepted or released.
    var version = 0
    /// The devices of a direct send.
    var targets: [DirectTarget] = []
    /// The rows of failures whose registration was removed with them.
    var removed: [RegistrationID: Row] = [:]
  }

  var books: [Hub.ID: Book] = [:]
  var namespacePolicies: [AccessPolicy] = []
  var entries: [NotificationID: Entry] = [:]
  var templates: [PushTemplate: Int64] = [:]
  var jobs: [HubJob] = []
  var lastFeedback: Int64 = 0
  var lastNotification: Int64 = 0
  var revision: Int64 = 0
  var claims: [Hub.ID: [String: (claim: IdempotencyClaim, notification: NotificationID)]] = [:]
  private var lastHub: Hub.ID = 0
  var lastRegistration: RegistrationID = 0
  private var version = 1
  private var failure: StoreError?
  /// How often ``directoryVersion()`` was asked.
  package private(set) var versionReads = 0

  /// The most installations that one page of a filtered list looks at.
  let stretch: Int

  let tagsPerHub: Int
  let templatesPerHub: Int

  package init(
    stretch: Int = .max, tagsPerHub: Int = .max, templatesPerHub: Int = .max
  ) {
    self.stretch = stretch
    self.tagsPerHub = tagsPerHub
    self.templatesPerHub = templatesPerHub
  }

  /// Every call from now on throws this; `nil` ends it.
  package func fail(with error: StoreError?) { failure = error }

  /// The registrations of an installation in the order of their numbers.
  package func registrations(of installation: String, hub: Hub.ID) -> [RegistrationDraft] {
    let rows = books[hub]?.rows.values.filter { $0.installation == installation } ?? []
    return rows.sorted { $0.id < $1.id }.map(\.draft)
  }

  func check() throws { if let failure { throw failure } }

  /// The hub's book, if there is such a hub.
  func book(_ hub: Hub.ID) throws -> Book {
    try check()
    guard let book = books[hub] else { throw StoreError.noHub }
    return book
  }

  // MARK: Hubs and access

  package func hubs() throws -> [Hub] {
    try check()
    return books.values.map(\.hub).sorted { $0.id < $1.id }
  }

  package func hub(named name: String) throws -> Hub? {
    try check()
    return books.values.first { $0.hub.name.lowercased() == name.lowercased() }?.hub
  }

  package func createHub(named name: String, _ contents: HubContents, at: Date) throws -> Hub {
    guard try hub(named: name) == nil else { throw StoreError.hubExists(name) }
    lastHub += 1
    let hub = Hub(
      id: lastHub, name: name, registrationTTL: contents.registrationTTL,
      isDisabled: contents.isDisabled, userMetadata: contents.userMetadata, createdAt: at)
    books[hub.id] = Book(hub: hub, policies: [])
    set(contents, hub: hub.id)
    return hub
  }

  package func updateHub(_ id: Hub.ID, _ contents: HubContents, at: Date) throws -> Hub {
    var hub = try book(id).hub
    hub.registrationTTL = contents.registrationTTL
    hub.isDisabled = contents.isDisabled
    hub.userMetadata = contents.userMetadata
    hub.updatedAt = at
    books[id]?.hub = hub
    set(contents, hub: id)
    return hub
  }

  private func set(_ contents: HubContents, hub: Hub.ID) {
    if let policies = contents.policies { books[hub]?.policies = policies }
    if let credentials = contents.credentials {
      books[hub]?.credentials = Dictionary(
        credentials.map { ($0.platform, $0) }, uniquingKeysWith: { $1 })
    }
    version += 1
  }

  package func deleteHub(named name: String) throws -> Bool {
    guard let hub = try hub(named: name) else { return false }
    books[hub.id] = nil
    entries = entries.filter { $0.value.record.hub != hub.id }
    jobs = jobs.filter { $0.hub != hub.id }
    claims[hub.id] = nil
    version += 1
    return true
  }

  package func accessPolicies(hub: Hub.ID?) throws -> [AccessPolicy] {
    try check()
    guard let hub else { return namespacePolicies }
    return books[hub]?.policies ?? []
  }

  package func putAccessPolicy(_ policy: AccessPolicy, hub: Hub.ID?) throws {
    var policies = try hub.map { try book($0).policies } ?? namespacePolicies
    try check()
    if let index = policies.firstIndex(where: { $0.name == policy.name }) {
      policies[index] = policy
    } else {
      policies.append(policy)
    }
    setPolicies(policies, hub: hub)
  }

  package func deleteAccessPolicy(named name: String, hub: Hub.ID?) throws -> Bool {
    var policies = try accessPolicies(hub: hub)
    let before = policies.count
    policies.removeAll { $0.name == name }
    guard policies.count < before else { return false }
    setPolicies(policies, hub: hub)
    return true
  }

  private func setPolicies(_ policies: [AccessPolicy], hub: Hub.ID?) {
    if let hub { books[hub]?.policies = policies } else { namespacePolicies = policies }
    version += 1
  }

  package func credentials(hub: Hub.ID) throws -> [PushCredential] {
    try check()
    return (books[hub]?.credentials.values).map(Array.init) ?? []
  }

  package func putCredential(_ credential: PushCredential, hub: Hub.ID) throws {
    _ = try book(hub)
    books[hub]?.credentials[credential.platform] = credential
    version += 1
  }

  package func deleteCredential(_ platform: PushPlatform, hub: Hub.ID) throws -> Bool {
    try check()
    version += 1
    return books[hub]?.credentials.removeValue(forKey: platform) != nil
  }

  package func directoryVersion() throws -> Int {
    versionReads += 1
    try check()
    return version
  }

  // MARK: Devices

  package func installation(_ id: String, hub: Hub.ID) throws -> Installation? {
    try check()
    return books[hub]?.installations[id]
  }

  package func putInstallation(
    _ installation: Installation, registrations: [RegistrationDraft], hub: Hub.ID, at: Date
  ) throws {
    try write(installation, registrations: registrations, hub: hub, at: at, isUpdate: false)
    var book = try book(hub)
    book.removed = book.removed.filter {
      $0.value.row.installation != installation.installationID
    }
    books[hub] = book
  }

  func nextWrite() -> Int {
    writes += 1
    return writes
  }

  /// - Parameter isUpdate: Etags rise even when nothing has changed.
  private func write(
    _ installation: Installation, registrations: [RegistrationDraft], hub: Hub.ID, at: Date,
    isUpdate: Bool
  ) throws {
    var book = try book(hub)
    revision += 1
    let id = installation.installationID
    // A registration keeps its number as long as it is the same one of its installation.
    var old = book.rows.values.filter { $0.installation == id }.sorted { $0.id < $1.id }
    let isRepeat =
      !isUpdate && book.installations[id] == installation
      && Set(old.map(\.draft)) == Set(registrations)
    for draft in registrations {
      var row: Row
      if let index = old.firstIndex(where: { Self.isSame($0.draft, draft) }) {
        row = old.remove(at: index)
        row.draft = draft
        row.confirmedAt = Self.milliseconds(at)
        row.revision = revision
        if !isRepeat {
          row.etag += 1
          row.written = nextWrite()
        }
      } else {
        lastRegistration += 1
        row = Row(
          id: lastRegistration, draft: draft, installation: id,
          confirmedAt: Self.milliseconds(at), written: nextWrite(), revision: revision)
      }
      book.rows[row.id] = row
      book.forgetRemoved(draft)
    }
    for row in old { book.rows[row.id] = nil }
    book.installations[id] = installation
    try checkVocabulary(of: book)
    books[hub] = book
  }

  package func updateInstallation(
    _ id: String, hub: Hub.ID, at: Date,
    change: @Sendable (Installation) throws -> (Installation, [RegistrationDraft])
  ) throws -> Bool {
    try check()
    guard let present = books[hub]?.installations[id] else { return false }
    let (changed, registrations) = try change(present)
    try write(changed, registrations: registrations, hub: hub, at: at, isUpdate: true)
    return true
  }

  package func deleteInstallation(_ id: String, hub: Hub.ID) throws -> Bool {
    try check()
    guard var book = books[hub], book.installations.removeValue(forKey: id) != nil else {
      return false
    }
    book.rows = book.rows.filter { $0.value.installation != id }
    book.removed = book.removed.filter { $0.value.row.installation != id }
    books[hub] = book
    return true
  }

  package func installations(hub: Hub.ID, after: String?, limit: Int) throws -> [Installation] {
    try check()
    let all = (books[hub]?.installations.values).map(Array.init) ?? []
    let later = all.filter { after == nil || $0.installationID > after ?? "" }
    return Array(later.sorted { $0.installationID < $1.installationID }.prefix(limit))
  }

  package func clear(expiredBy limit: Date) throws -> Bool {
    try check()
    for (hub, book) in books {
      let over = book.installations.values.filter { $0.expirationTime.map { $0 <= limit } ?? false }
      let ids = Set(over.map(\.installationID))
      for id in ids { books[hub]?.installations[id] = nil }
      books[hub]?.rows = book.rows.filter { _, row in
        !ids.contains(row.installation) && row.draft.expiresAt.map { $0 > limit } ?? true
      }
      let oldest = limit.addingTimeInterval(-RemovalCount.lifetime)
      books[hub]?.removed = book.removed.filter { _, removed in
        !ids.contains(removed.row.installation) && removed.at > oldest
      }
    }
    return false
  }

  package func clearNotifications(endedBefore limit: Date) throws -> Bool {
    try check()
    entries = entries.filter { _, entry in
      !entry.record.state.isFinal || entry.record.endedAt.map { $0 >= limit } ?? true
    }
    return false
  }

  package func statistics() -> StoreStatistics { StoreStatistics() }
  package func condition() -> StoreCondition { failure?.condition ?? .healthy }

  package func close() { failure = .closed }

  static func isSame(_ left: RegistrationDraft, _ right: RegistrationDraft) -> Bool {
    guard left.secondaryTileName == right.secondaryTileName else { return false }
    switch (left.kind, right.kind) {
    case (.native, .native): return true
    case (.template(_, let left), .template(_, let right)): return left == right
    default: return false
    }
  }

  static func milliseconds(_ date: Date) -> Int64 {
    Int64((date.timeIntervalSince1970 * 1000).rounded())
  }
}
