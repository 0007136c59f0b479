package import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase
import Wire

extension SQLiteHubStore {
  package func installation(_ id: String, hub: Hub.ID) async throws -> Installation? {
    try await readRows { try $0.installation(id, hub: hub) }
  }

  package func confirmInstallation(
    _ id: String, request: InstallationRequest, hub: Hub.ID, at: Date
  ) async throws -> Bool {
    try await intercepted(#function) { [engine] in
      let confirmations = engine.confirmations
      let idHash = PreparedInstallation.hash(id.foldingCapitals)
      guard let attempt = confirmations.attempt(.installation(idHash: idHash, hub: hub), of: hub)
      else { return false }
      let hash = engine.hash(request)
      let number = try engine.rows.read { session in
        try session.repeatedInstallation(id, idHash: idHash, request: hash, hub: hub, at: at)
      }
      guard let number = number ?? nil else { return false }
      return confirmations.confirm(number, at: at.milliseconds, attempt)
    }
  }

  package func putInstallation(
    _ installation: consuming Installation, registrations: consuming [RegistrationDraft],
    request: InstallationRequest?, hub: Hub.ID, at: Date
  ) async throws {
    let prepared = PreparedInstallation(
      consume installation, registrations: consume registrations,
      hash: engine.coding.contentHash, request: request.map(engine.hash) ?? 0, hub: hub, at: at)
    try await engine.confirmations.whileWriting(prepared.key) {
      try await intercepted(#function) { [engine] in
        try await engine.writer.wait(prepared.registrations.label) {
          InstallationJob(prepared, end: $0)
        }
      }
    }
  }

  package func updateInstallation(
    _ id: String, hub: Hub.ID, at: Date,
    change: @escaping @Sendable (Installation) throws -> (Installation, [RegistrationDraft])
  ) async throws -> Bool {
    let hash = PreparedInstallation.hash(id.foldingCapitals)
    let contentHash = engine.coding.contentHash
    return try await engine.confirmations.whileWriting(.installation(idHash: hash, hub: hub)) {
      try await write(as: .asked(.devices, rows: JobLabel.unknownRows)) { session in
        try session.requireHub(hub)
        guard
          let row = try session.deviceKeys().installationRow(id, idHash: hash, hub: hub),
          let present = try session.connection.installation(
            row.number, templates: session.templates)
        else { return false }
        let (changed, registrations) = try change(present)
        let prepared = PreparedInstallation(
          changed, registrations: registrations, hash: contentHash, hub: hub, at: at)
        try InstallationWriter(session).write(prepared, over: row)
        return true
      }
    }
  }

  package func deleteInstallation(_ id: String, hub: Hub.ID) async throws -> Bool {
    let hash = PreparedInstallation.hash(id.foldingCapitals)
    return try await write(as: .asked(.devices, rows: JobLabel.unknownRows)) { session in
      guard try session.hasHub(hub) else { return false }
      return try InstallationWriter(session).deleteInstallation(id, idHash: hash, hub: hub)
    }
  }

  package func installations(
    _ filter: InstallationFilter, hub: Hub.ID, after: InstallationPosition?, limit: Int
  ) async throws -> InstallationPage {
    try await read {
      try InstallationReader($0).installations(filter, hub: hub, after: after, limit: limit)
    }
  }
}

extension StoreEngine {
  /// The hash of a request as stored: never 0, which is none.
  fileprivate func hash(_ request: InstallationRequest) -> Int64 {
    var hash = requestHash
    for rule in request.rules { hash.combine(UInt64(rule)) }
    let value = Int64(bitPattern: hash.finish(with: request.body))
    return value == 0 ? 1 : value
  }
}

extension ReadSession {
  /// The number of an installation that is the result of a request with this hash; `nil` if the
  /// request has to be read and written.
  fileprivate func repeatedInstallation(
    _ id: String, idHash: Int64, request: Int64, hub: Hub.ID, at: Date
  ) throws -> Int64? {
    guard try hasHub(hub),
      let row = try deviceKeys().installationRow(id, idHash: idHash, hub: hub),
      row.fingerprint != 0, row.request == request ^ row.fingerprint,
      row.expiresAt ?? .max > at.milliseconds
    else { return nil }
    return row.number
  }

  /// - Throws: ``RowReaders/TakesLong`` if that may not be done here.
  func installation(_ id: String, hub: Hub.ID) throws -> Installation? {
    let hash = PreparedInstallation.hash(id.foldingCapitals)
    guard try hasHub(hub), let row = try deviceKeys().installationRow(id, idHash: hash, hub: hub)
    else { return nil }
    return try connection.installation(
      row.number, templates: templates, mostBytes: mostDocumentBytes)
  }
}

extension SQLConnection {
  /// The installation with a number.
  /// - Throws: ``RowReaders/TakesLong`` if its document and templates have more than `mostBytes` bytes.
  func installation(
    _ number: Int64, templates: TemplateTable, mostBytes: Int = .max
  ) throws -> Installation? {
    let row = try statement("SELECT public_id, document FROM installation WHERE id = ?1")
    try row.bind(number, at: 1)
    guard try row.step() else { return nil }
    var room = mostBytes
    func take(_ bytes: Int) throws {
      room -= bytes
      if room < 0 { throw RowReaders.TakesLong() }
    }
    if mostBytes < .max { try take(row.withBytes(1) { $0.count }) }
    return try InstallationDocument.decode(row.bytes(1), id: row.text(0)) {
      let template = try templates.template($0)
      try take(template.body.utf8.count)
      return template
    }
  }
}

/// An installation with everything that can be computed before the writing thread takes it. A class,
/// because each asynchronous function that passes it on would hold a copy of all of it.
final class PreparedInstallation: Sendable {
  let id: String
  let hub: Hub.ID
  let idHash: Int64
  let userHash: Int64?
  let document: InstallationDocument.Prepared
  /// The stored value of ``fingerprint``: 0, which no write has, where the document names templates
  /// that no registration has, as after a dead handle.
  let storedFingerprint: Int64
  /// The stored value for the request, 0 for none; see ``InstallationRequest``. It holds for this
  /// content only: an older build may write the row without it.
  let request: Int64
  let registrations: [PreparedRegistration]
  /// Milliseconds since 1970.
  let expiresAt: Int64?
  /// Milliseconds since 1970.
  let at: Int64

  init(
    _ installation: Installation, registrations: [RegistrationDraft], hash: SipHash,
    request: Int64 = 0, hub: Hub.ID, at: Date
  ) {
    id = installation.installationID
    self.hub = hub
    idHash = Self.hash(installation.installationID.foldingCapitals)
    userHash = installation.userID.map { Self.hash($0.foldingCapitals) }
    document = InstallationDocument.prepare(
      installation, registrations: registrations, hash: hash)
    var prepared: [PreparedRegistration] = []
    prepared.reserveCapacity(registrations.count)
    for draft in registrations {
      prepared.append(PreparedRegistration(draft, hub: hub, after: prepared.last))
    }
    self.registrations = prepared
    let named = installation.secondaryTiles.values.reduce(installation.templates.count) {
      $0 + $1.templates.count
    }
    storedFingerprint =
      named == prepared.count { $0.template != nil } ? document.fingerprint : 0
    self.request = request == 0 ? 0 : request ^ storedFingerprint
    expiresAt = installation.expirationTime?.milliseconds
    self.at = at.milliseconds
  }

  var fingerprint: Int64 { document.fingerprint }
  /// At least the number of different tags: one that several registrations have counts as often, and
  /// their kinds count, too.
  var tagCount: Int { registrations.reduce(0) { $0 + $1.tags.count } }
  var key: DeviceKey { .installation(idHash: idHash, hub: hub) }

  /// The value of `id_hash` or `user_hash` for an id in lower case.
  static func hash(_ folded: String) -> Int64 {
    var hash = StableHash()
    hash.combine(folded.utf8)
    return hash.value
  }
}

/// The write of an installation, alone or, by ``InstallationWriter/put(_:)``, together with others.
final class InstallationJob: WaitedJob<WriteSession, Void>, @unchecked Sendable {
  // Adds a constant.
  let prepared: PreparedInstallation

  init(_ prepared: PreparedInstallation, end: JobEnd<Void>) {
    self.prepared = prepared
    super.init(end) { session in
      try session.requireHub(prepared.hub)
      try InstallationWriter(session).put([prepared])
    }
  }
}

/// A row of `installation`, without its document.
struct InstallationRow {
  let number: Int64
  let fingerprint: Int64
  let userHash: Int64?
  let request: Int64
  let expiresAt: Int64?
}

/// Installations, and the registrations that are derived from them.
struct InstallationWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Creates or replaces installations, each of another device and of a hub that exists; of an unchanged
  /// one it only records that the device was seen.
  func put(_ all: [PreparedInstallation]) throws {
    var new: [PreparedInstallation] = []
    for prepared in all {
      guard
        let row = try session.deviceKeys().installationRow(
          prepared.id, idHash: prepared.idHash, hub: prepared.hub)
      else {
        new.append(prepared)
        continue
      }
      if row.fingerprint == prepared.fingerprint {
        try confirm(row.number, at: prepared.at)
        if row.request != prepared.request {
          try execute(
            "UPDATE installation SET request = ?2 WHERE id = ?1", row.number, prepared.request)
        }
      } else {
        try write(prepared, over: row)
        // The app has registered again, so nothing removed before is restored.
        try RemovalWriter(session).forgetRemoved(installation: row.number)
      }
    }
    try insert(new)
  }

  /// Writes new installations, several rows a statement, and derives their registrations.
  private func insert(_ new: [PreparedInstallation]) throws {
    for prepared in new { try VocabularyWriter(session).requireRoom(for: prepared) }
    let installations = try new.map { prepared in
      let document = try document(of: prepared)
      session.state.lastInstallation += 1
      return (number: session.state.lastInstallation, prepared: prepared, document: document)
    }
    try Self.insertion.insert(installations, on: connection) { new, row, first in
      try bind(new.prepared, new.document, as: new.number, to: row, from: first)
    }
    let rows = RegistrationRowWriter(session)
    var registrations: [RegistrationRowWriter.New] = []
    for (number, prepared, _) in installations {
      try DeviceKeyWriter(session).addKey(prepared.key, of: number)
      if let user = prepared.userHash {
        try DeviceKeyWriter(session).addKey(.user(hash: user, hub: prepared.hub), of: number)
      }
      try forgetRemovedHandles(of: prepared)
      let context = RegistrationContext(
        hub: prepared.hub, installation: number, at: prepared.at)
      for registration in prepared.registrations {
        registrations.append(
          .init(content: registration, number: try rows.nextRegistration(), context: context))
      }
    }
    try rows.insert(registrations)
  }

  /// Writes an installation that exists, and derives its registrations.
  func write(_ prepared: PreparedInstallation, over row: InstallationRow) throws {
    try VocabularyWriter(session).requireRoom(for: prepared)
    try update(row, prepared, try document(of: prepared))
    var old = try connection.registrationRows(of: row.number)
    let context = RegistrationContext(hub: prepared.hub, installation: row.number, at: prepared.at)
    let rows = RegistrationRowWriter(session)
    try forgetRemovedHandles(of: prepared)
    for registration in prepared.registrations {
      if let index = old.firstIndex(where: { $0.key == registration.key }) {
        try rows.change(old.remove(at: index), to: registration, in: context)
      } else {
        try rows.insert(registration, as: try rows.nextRegistration(), in: context)
      }
    }
    for row in old { try rows.remove(row, hub: prepared.hub) }
  }

  private func document(of prepared: PreparedInstallation) throws -> [UInt8] {
    try prepared.document.encode {
      try VocabularyWriter(session).templateNumber($0, hub: prepared.hub)
    }
  }

  private func forgetRemovedHandles(of prepared: PreparedInstallation) throws {
    var forgotten: Int64?
    // Mostly all have one handle.
    for registration in prepared.registrations where forgotten != registration.handleHash {
      try RemovalWriter(session).forgetRemoved(handle: registration.handleHash)
      forgotten = registration.handleHash
    }
  }

  func deleteInstallation(_ id: String, idHash: Int64, hub: Hub.ID) throws -> Bool {
    guard let row = try session.deviceKeys().installationRow(id, idHash: idHash, hub: hub) else {
      return false
    }
    try deleteInstallation(row.number, hub: hub)
    return true
  }

  /// Deletes the installation with a number, and its registrations.
  func deleteInstallation(_ number: Int64, hub: Hub.ID) throws {
    for registration in try connection.registrationRows(of: number) {
      try RegistrationRowWriter(session).remove(registration, hub: hub)
    }
    try deleteInstallation(number)
  }

  /// Deletes the row, and its removed registrations that could be restored.
  func deleteInstallation(_ number: Int64) throws {
    try RemovalWriter(session).forgetRemoved(installation: number)
    let keys = try connection.rows(
      "SELECT hub, id_hash, user_hash FROM installation WHERE id = ?1", number
    ) { row in
      let hub = row.integer(0)
      return [DeviceKey.installation(idHash: row.integer(1), hub: hub)]
        + (row.optionalInteger(2).map { [DeviceKey.user(hash: $0, hub: hub)] } ?? [])
    }
    for key in keys.joined() { try DeviceKeyWriter(session).removeKey(key, of: number) }
    let delete = try connection.statement("DELETE FROM installation WHERE id = ?1")
    try delete.bind(number, at: 1)
    try delete.run()
  }

  private func confirm(_ installation: Int64, at: Int64) throws {
    let row = try connection.statement(
      "UPDATE registration SET confirmed_at = ?1, revision = ?3 WHERE installation = ?2")
    try row.bind(at, at: 1)
    try row.bind(installation, at: 2)
    try row.bind(revision, at: 3)
    try row.run()
  }

  private static let insertion = RowInsertion(
    into: "installation",
    [
      "id", "hub", "id_hash", "public_id", "user_hash", "fingerprint", "document", "expires_at",
      "request",
    ])

  private func bind(
    _ prepared: PreparedInstallation, _ document: [UInt8], as number: Int64,
    to row: borrowing Statement, from index: Int32
  ) throws {
    try row.bind(number, at: index)
    try row.bind(prepared.hub, at: index + 1)
    try row.bind(prepared.idHash, at: index + 2)
    try row.bind(prepared.id, at: index + 3)
    try row.bind(prepared.userHash, at: index + 4)
    try row.bind(prepared.storedFingerprint, at: index + 5)
    try row.bind(document, at: index + 6)
    try row.bind(prepared.expiresAt, at: index + 7)
    try row.bind(prepared.request, at: index + 8)
  }

  private func update(
    _ old: InstallationRow, _ prepared: PreparedInstallation, _ document: [UInt8]
  ) throws {
    if old.userHash != prepared.userHash {
      if let user = old.userHash {
        try DeviceKeyWriter(session).removeKey(.user(hash: user, hub: prepared.hub), of: old.number)
      }
      if let user = prepared.userHash {
        try DeviceKeyWriter(session).addKey(.user(hash: user, hub: prepared.hub), of: old.number)
      }
    }
    let row = try connection.statement(
      """
      UPDATE installation SET user_hash = ?1, fingerprint = ?2, document = ?3, expires_at = ?5,
        request = ?6
      WHERE id = ?4
      """)
    try row.bind(prepared.userHash, at: 1)
    try row.bind(prepared.storedFingerprint, at: 2)
    try row.bind(document, at: 3)
    try row.bind(old.number, at: 4)
    try row.bind(prepared.expiresAt, at: 5)
    try row.bind(prepared.request, at: 6)
    try row.run()
  }
}

extension DeviceKeys {
  func installationRow(_ id: String, idHash: Int64, hub: Hub.ID) throws -> InstallationRow? {
    var found: InstallationRow?
    try visit(.installation(idHash: idHash, hub: hub)) { number in
      let row = try connection.statement(
        """
        SELECT fingerprint, user_hash, public_id, request, expires_at FROM installation
        WHERE id = ?1 AND hub = ?2
        """)
      try row.bind(number, at: 1)
      try row.bind(hub, at: 2)
      guard try row.step(),
        row.withBytes(2, { id.utf8.hasSameBytes(as: $0) })
      else { return true }
      found = InstallationRow(
        number: number, fingerprint: row.integer(0), userHash: row.optionalInteger(1),
        request: row.integer(3), expiresAt: row.optionalInteger(4))
      return false
    }
    return found
  }
}

/// Lists of installations.
struct InstallationReader: ReadingSubject {
  let session: ReadSession

  init(_ session: ReadSession) { self.session = session }

  /// The next installations that match a filter, in the order of their creation.
  func installations(
    _ filter: InstallationFilter, hub: Hub.ID, after: InstallationPosition?, limit: Int
  ) throws -> InstallationPage {
    guard limit > 0, try session.hasHub(hub) else { return InstallationPage() }
    var cursor = after ?? 0
    var page = InstallationPage()
    // One more than needed tells whether there are more.
    let stretch = filter.search == nil ? session.stretch : min(session.stretch, SearchBudget.rows)
    var budget = SearchBudget()
    let candidates = try candidates(filter, hub: hub, after: cursor, limit: stretch + 1)
    for (seen, position) in candidates.positions.enumerated() {
      if page.isFull(limit) || seen == stretch || budget.isSpent {
        page.next = cursor
        break
      }
      cursor = position
      guard let number = try candidates.installation(position) else { continue }
      let row = try connection.statement(
        "SELECT public_id, document FROM installation WHERE id = ?1 AND hub = ?2")
      try row.bind(number, at: 1)
      try row.bind(hub, at: 2)
      guard try row.step() else { continue }
      let installation = try InstallationDocument.decode(row.bytes(1), id: row.text(0)) {
        try templates.template($0)
      }
      if filter.search != nil { budget.take(bytes: installation.size) }
      if filter.matches(installation) { page.append(installation) }
    }
    return page
  }

  /// The candidates among which a list searches for matches of its filter.
  struct Candidates {
    /// In rising order.
    let positions: [InstallationPosition]
    /// The number of the installation at a position; `nil` when it is listed at another one.
    var installation: (InstallationPosition) throws -> Int64? = { $0 }
  }

  private func candidates(
    _ filter: InstallationFilter, hub: Hub.ID, after position: InstallationPosition, limit: Int
  ) throws -> Candidates {
    if let user = filter.userID?.foldingCapitals {
      let own = try session.deviceKeys().numbers(
        of: .user(hash: PreparedInstallation.hash(user), hub: hub))
      return Candidates(
        positions: Array(own.drop { $0 <= position }.prefix(limit)))
    }
    if let tag = filter.tag, ImplicitTag(folded: tag.folded) == nil {
      return try TaggedInstallationReader(session).candidates(
        carrying: tag, hub: hub, after: position, limit: limit)
    }
    return Candidates(
      positions: try connection.numbers(
        "SELECT id FROM installation WHERE hub = ?1 AND id > ?2 ORDER BY id LIMIT ?3", hub,
        position, Int64(limit)))
  }
}
