import Foundation
import HubCore
import NotificationHubs
import SQLDatabase
import Wire

/// A row of `registration`, with the columns that writing needs.
struct RegistrationRow {
  let number: RegistrationID
  let installation: Int64
  let key: RegistrationKey
  /// `nil` for a native registration.
  let template: Int64?
  let platform: Int64
  let handle: String
  let handleHash: Int64
  /// The numbers of its tags.
  let tags: [Int64]
  let confirmedAt: Int64
  /// See ``TargetPage/revision``; 0 for a removed registration.
  let revision: Int64

  static let columns = """
    id, installation, template, name, tile, platform, handle, handle_hash, tags, confirmed_at,
    revision
    """

  /// - Parameter row: Selected with ``columns``.
  init(_ row: borrowing Statement) throws {
    number = row.integer(0)
    installation = row.integer(1)
    key = RegistrationKey(
      isNative: row.isNull(2), name: row.optionalText(3), tile: row.optionalText(4))
    template = row.optionalInteger(2)
    platform = row.integer(5)
    handle = row.text(6)
    handleHash = row.integer(7)
    var reader = ByteReader(row.bytes(8))
    tags = try (0..<(try reader.count())).map { _ in try reader.signedNumber() }
    confirmedAt = row.integer(9)
    revision = row.integer(10)
  }

  /// The column `tags`.
  static func encode(tags: [Int64]) -> [UInt8] {
    var numbers = ByteWriter(capacity: 1 + 5 * tags.count)
    numbers.write(UInt64(tags.count))
    for tag in tags { numbers.write(tag) }
    return numbers.bytes
  }
}

/// The circumstances of a write of a registration: hub, installation and time.
struct RegistrationContext {
  let hub: Hub.ID
  /// 0 for one that a client writes.
  let installation: Int64
  /// Milliseconds since 1970.
  let at: Int64
  /// The tags as a client wrote them; `nil` when they are derived from the installation.
  var tagText: String?
}

/// Rows of registrations, with everything that follows from them.
struct RegistrationRowWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Allocates the number of a registration.
  func nextRegistration() throws(StoreError) -> RegistrationID {
    guard session.state.lastRegistration < Int64(UInt32.max) else {
      throw .registrationNumbersUsed
    }
    session.state.lastRegistration += 1
    return session.state.lastRegistration
  }

  /// A registration that has no row yet.
  struct New {
    let content: PreparedRegistration
    let number: RegistrationID
    /// `nil` for an id that the hub makes from the number.
    var publicID: String?
    let context: RegistrationContext
  }

  func insert(
    _ registration: PreparedRegistration, as number: RegistrationID, publicID: String? = nil,
    in context: RegistrationContext
  ) throws {
    try insert([
      New(content: registration, number: number, publicID: publicID, context: context)
    ])
  }

  /// Inserts rows, several a statement, and what follows from them.
  func insert(_ new: [New]) throws {
    let writer = TagWriter(session)
    let tags = try new.map { try $0.content.tags.map(writer.tagNumber) }
    try Self.insertion.insert(new.indices, on: connection) { index, row, first in
      try bind(new[index], tags: tags[index], to: row, from: first)
    }
    for (row, tags) in zip(new, tags) {
      let (content, hub) = (row.content, row.context.hub)
      session.tally.addRegistrations(1, hub: hub, platform: content.platform)
      for tag in tags { writer.setTag(tag, of: row.number, isMember: true) }
      if let name = try writer.nameTag(content.key, platform: content.platform, hub: hub) {
        writer.setTag(name, of: row.number, isMember: true)
      }
      if content.key.isNative {
        try HandleWriter(session).noteHandle(
          of: row.number, content.handle, content.handleHash, hub: hub)
      }
    }
  }

  private static let insertion = RowInsertion(
    into: "registration",
    [
      "id", "hub", "installation", "public_id", "public_hash", "etag", "written", "name", "tile",
      "tag_text", "template_handle", "platform", "template", "handle", "handle_hash", "variables",
      "tags", "expires_at", "confirmed_at", "revision",
    ])

  private func bind(
    _ new: New, tags: [Int64], to row: borrowing Statement, from index: Int32
  ) throws {
    try row.bind(new.number, at: index)
    try row.bind(new.context.hub, at: index + 1)
    try row.bind(new.context.installation, at: index + 2)
    try row.bind(new.publicID, at: index + 3)
    try row.bind(new.publicID.map(PreparedInstallation.hash), at: index + 4)
    try row.bind(Int64(1), at: index + 5)
    try row.bind(revision, at: index + 6)
    try bind(new.content, tags: tags, in: new.context, to: row, from: index + 7)
  }

  func change(
    _ old: RegistrationRow, to registration: PreparedRegistration, in context: RegistrationContext
  ) throws {
    let hasMoved =
      old.handle != registration.handle || old.handleHash != registration.handleHash
      || old.key.isNative != registration.key.isNative
    if hasMoved && old.key.isNative {
      try HandleWriter(session).forgetHandle(of: old, hub: context.hub)
    }
    if let template = old.template { session.leftTemplates.insert(template) }
    let tags = try registration.tags.map { try TagWriter(session).tagNumber($0) }
    do {
      let row = try connection.statement(
        """
        UPDATE registration SET name = ?2, tile = ?3, tag_text = ?4, template_handle = ?5,
          platform = ?6, template = ?7, handle = ?8, handle_hash = ?9, variables = ?10, tags = ?11,
          expires_at = ?12, confirmed_at = ?13, revision = ?14, written = ?14, etag = etag + 1
        WHERE id = ?1
        """)
      try row.bind(old.number, at: 1)
      try bind(registration, tags: tags, in: context, to: row, from: 2)
      try row.run()
    }
    session.tally.addRegistrations(-1, hub: context.hub, platform: old.platform)
    session.tally.addRegistrations(1, hub: context.hub, platform: registration.platform)
    for tag in old.tags where !tags.contains(tag) {
      TagWriter(session).setTag(tag, of: old.number, isMember: false)
    }
    for tag in tags where !old.tags.contains(tag) {
      TagWriter(session).setTag(tag, of: old.number, isMember: true)
    }
    let oldName = try TagWriter(session).nameTag(old.key, platform: old.platform, hub: context.hub)
    let name = try TagWriter(session).nameTag(
      registration.key, platform: registration.platform, hub: context.hub)
    if oldName != name {
      if let oldName { TagWriter(session).setTag(oldName, of: old.number, isMember: false) }
      if let name { TagWriter(session).setTag(name, of: old.number, isMember: true) }
    }
    if hasMoved && registration.key.isNative {
      try HandleWriter(session).noteHandle(
        of: old.number, registration.handle, registration.handleHash, hub: context.hub)
    }
  }

  func remove(_ row: RegistrationRow, hub: Hub.ID) throws {
    if row.key.isNative { try HandleWriter(session).forgetHandle(of: row, hub: hub) }
    if let template = row.template { session.leftTemplates.insert(template) }
    session.tally.addRegistrations(-1, hub: hub, platform: row.platform)
    for tag in row.tags { TagWriter(session).setTag(tag, of: row.number, isMember: false) }
    if let name = try TagWriter(session).nameTag(row.key, platform: row.platform, hub: hub) {
      TagWriter(session).setTag(name, of: row.number, isMember: false)
    }
    let delete = try connection.statement("DELETE FROM registration WHERE id = ?1")
    try delete.bind(row.number, at: 1)
    try delete.run()
  }

  /// Binds, in this order: name, tile, text of the tags, handle of a template, platform, template,
  /// handle, its hash, variables, tags, expiry, time and revision.
  private func bind(
    _ registration: PreparedRegistration, tags: [Int64], in context: RegistrationContext,
    to row: borrowing Statement, from index: Int32
  ) throws {
    try row.bind(registration.key.name, at: index)
    try row.bind(registration.key.tile, at: index + 1)
    try row.bind(context.tagText, at: index + 2)
    let isFoundByHandle = registration.key.isNative || context.tagText == nil
    try row.bind(isFoundByHandle ? nil : registration.handleHash, at: index + 3)
    try row.bind(registration.platform, at: index + 4)
    let template = try registration.template.map {
      try VocabularyWriter(session).templateNumber($0, hub: context.hub)
    }
    try row.bind(template, at: index + 5)
    try row.bind(registration.handle, at: index + 6)
    try row.bind(registration.handleHash, at: index + 7)
    try row.bind(registration.variables, at: index + 8)
    try row.bind(RegistrationRow.encode(tags: tags), at: index + 9)
    try row.bind(registration.expiresAt, at: index + 10)
    try row.bind(context.at, at: index + 11)
    try row.bind(revision, at: index + 12)
  }
}

extension SQLConnection {
  func registrationRows(of installation: Int64) throws -> [RegistrationRow] {
    let row = try statement(
      "SELECT \(RegistrationRow.columns) FROM registration WHERE installation = ?1")
    try row.bind(installation, at: 1)
    var rows: [RegistrationRow] = []
    while try row.step() { rows.append(try RegistrationRow(row)) }
    return rows
  }

  func registrationRow(_ number: RegistrationID) throws -> RegistrationRow? {
    let row = try statement("SELECT \(RegistrationRow.columns) FROM registration WHERE id = ?1")
    try row.bind(number, at: 1)
    return try row.step() ? try RegistrationRow(row) : nil
  }
}

extension StoreError {
  /// Numbers are 32 bits wide and never used twice: each new registration takes one, of the 4.3
  /// thousand million that a database has.
  static let registrationNumbersUsed = StoreError.engine(
    code: 0,
    message:
      "all numbers for registrations have been used; move the hubs to a new database with "
      + "`belfry export` and `belfry import`")
}

/// A registration as its row will contain it, except for values that only the database knows.
final class PreparedRegistration: Sendable {
  /// `nil` for a native registration.
  let template: PushTemplate?
  let key: RegistrationKey
  let platform: Int64
  let handle: String
  let handleHash: Int64
  let variables: [UInt8]?
  /// Its plain tags and its kind.
  let tags: [TagKey]
  let expiresAt: Int64?

  init(
    template: PushTemplate?, key: RegistrationKey, platform: Int64, handle: String,
    handleHash: Int64, variables: [UInt8]?, tags: [TagKey], expiresAt: Int64?
  ) {
    self.template = template
    self.key = key
    self.platform = platform
    self.handle = handle
    self.handleHash = handleHash
    self.variables = variables
    self.tags = tags
    self.expiresAt = expiresAt
  }

  /// - Parameter previous: Another registration of the same installation, mostly with the same handle.
  init(_ draft: RegistrationDraft, hub: Hub.ID, after previous: PreparedRegistration? = nil) {
    let everyone: AudienceQuery.Kind
    switch draft.kind {
    case .native:
      template = nil
      everyone = .native(draft.platform)
    case .template(let template, _):
      self.template = template
      everyone = .template
    }
    key = draft.key
    platform = draft.platform.code
    handle = draft.channel.stored
    handleHash =
      if let previous, previous.platform == platform,
        previous.handle.utf8.hasSameBytes(as: handle.utf8)
      {
        previous.handleHash
      } else {
        Self.hash(of: draft.channel.handle, platform: platform, hub: hub)
      }
    if draft.pushVariables.isEmpty {
      variables = nil
    } else {
      var writer = ByteWriter(capacity: 64)
      writer.write(draft.pushVariables)
      variables = writer.bytes
    }
    tags = Self.tags(draft.tags, kind: everyone, hub: hub)
    expiresAt = draft.expiresAt?.milliseconds
  }

  /// The tags of a registration that have rows of their own, and the one of its kind.
  static func tags(_ tags: [Tag], kind: AudienceQuery.Kind, hub: Hub.ID) -> [TagKey] {
    var keys: [TagKey] = []
    keys.reserveCapacity(tags.count + 1)
    keys.append(.everyone(kind, hub: hub))
    for tag in tags where !tag.isImplicit {
      let key = TagKey.plain(tag.folded, hub: hub)
      if !keys.contains(key) { keys.append(key) }
    }
    return keys
  }

  /// The value of `handle_hash`: equal for the same device at the same push service of a hub. FCM's
  /// tokens of one installation, and its id, share one.
  static func hash(of identity: String, platform: Int64, hub: Hub.ID) -> Int64 {
    var hash = StableHash()
    hash.combine(hub)
    hash.combine(platform)
    if platform == PushPlatform.fcmv1.code, let id = identity.utf8.firebaseInstallationID {
      hash.combine(id)
    } else {
      hash.combine(identity.utf8)
    }
    return hash.value
  }
}
